//! The revisions of the MCP specification, and what differs between them.

use std::fmt;

/// A revision of the MCP specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05, the first.
    V2024_11_05,
    /// 2025-03-26, the only revision with batches.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the last with a handshake.
    V2025_11_25,
    /// 2026-07-28, the first without a handshake: every request names its revision.
    V2026_07_28,
}

impl Revision {
    /// All revisions, newest first.
    pub const ALL: [Self; 5] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
        Self::V2024_11_05,
    ];

    /// The newest revision that is opened by `initialize`.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// Parses a revision's date.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|revision| revision.as_str() == text)
    }

    /// The date that identifies it on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Whether each request carries its revision and capabilities (specification 2026-07-28, basic/versioning),
    /// instead of a handshake.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// The revision to answer an `initialize` for `requested` with: `requested` if it is known and has a handshake,
    /// else the newest that has one.
    #[must_use]
    pub fn negotiate_legacy(requested: &str) -> Self {
        Self::parse(requested)
            .filter(|revision| !revision.is_modern())
            .unwrap_or(Self::NEWEST_LEGACY)
    }

    /// Whether an event stream begins with an event that has an id and no data (2025-11-25, basic/transports).
    #[must_use]
    pub fn has_priming_events(self) -> bool {
        self == Self::V2025_11_25
    }

    /// Whether a client may send several messages in one array (2025-03-26, basic).
    #[must_use]
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialize_never_agrees_to_a_modern_revision() {
        assert_eq!(
            Revision::negotiate_legacy("2024-11-05"),
            Revision::V2024_11_05
        );
        assert_eq!(
            Revision::negotiate_legacy("2026-07-28"),
            Revision::V2025_11_25
        );
        assert_eq!(
            Revision::negotiate_legacy("2031-01-01"),
            Revision::V2025_11_25
        );
        assert_eq!(Revision::negotiate_legacy(""), Revision::V2025_11_25);
    }
}
