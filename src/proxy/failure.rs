//! Why a call has no result.

/// Why a call has no result; each with a text for whoever called.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// No such tool, or more than one, among those that are known.
    Unknown(String),
    /// The arguments do not fit; nothing was sent.
    Arguments(String),
    /// The server could not be reached, or gave no usable answer.
    Unavailable(String),
    /// The server answered with a protocol error, or the user's rules do not let the call out.
    Refused(String),
    /// The rules want the user's word first, and there is no client that could ask; this is the question.
    Consent(String),
}

impl Failure {
    /// What happened, to which server, and what to do next.
    #[must_use]
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Unknown(text)
            | Self::Arguments(text)
            | Self::Unavailable(text)
            | Self::Refused(text)
            | Self::Consent(text) => text,
        }
    }
}
