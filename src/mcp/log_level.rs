/// How grave a log message is (specification, server/utilities/logging): the levels of RFC 5424.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogLevel {
    /// For developers.
    Debug,
    /// What goes on.
    Info,
    /// What is worth noting.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Somebody has to act at once.
    Alert,
    /// Nothing works.
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

    /// Reads a level's name.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, name)| *name == text)
            .map(|(level, _)| level)
    }

    /// Its name on the wire.
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
