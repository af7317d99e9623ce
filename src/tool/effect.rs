//! The effects by which rules tell tools apart.

use serde::{Deserialize, Serialize};

/// The guessed effect of a tool, the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It only reads.
    Read,
    /// It creates or changes something.
    Write,
    /// It removes something, or runs what it is given.
    Destructive,
}

impl Effect {
    /// The word for it in rules and output.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }

    /// Whether the class of this effect includes a tool of the guessed effect `guess`: what destroys also writes.
    #[must_use]
    pub fn covers(self, guess: Self) -> bool {
        guess == self || self == Self::Write && guess == Self::Destructive
    }
}
