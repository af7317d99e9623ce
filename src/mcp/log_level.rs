//! The levels of log messages.

/// The severity of a log message: the levels of RFC 5424 (specification, server/utilities/logging).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogLevel {
    /// Details for developers.
    Debug,
    /// Normal operation.
    Info,
    /// A normal but significant event.
    Notice,
    /// A possible problem.
    Warning,
    /// An error.
    Error,
    /// A failed component.
    Critical,
    /// A problem that needs action at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LogLevel {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    /// Parses a level's name.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, name)| *name == text)
            .map(|(level, _)| level)
    }

    /// The name on the wire.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_an_order_and_keep_their_names() {
        assert!(LogLevel::Debug < LogLevel::Error);
        for (level, name) in LogLevel::ALL {
            assert_eq!((LogLevel::parse(name), level.as_str()), (Some(level), name));
        }
        assert_eq!(LogLevel::parse("loud"), None);
    }
}
