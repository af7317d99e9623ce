//! The error of the library.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::proxy::{Failure, View};
use crate::upstream::oauth::AuthRequired;
use crate::upstream::{CallError, ConnectError, HttpError, code_of, message_of};

type Source = Arc<dyn StdError + Send + Sync>;

/// A failure of the library. Its texts have no secrets of the configuration.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mcpzip::Error> {
/// use mcpzip::{ErrorKind, Runner};
///
/// let runner = Runner::builder().build().await?;
/// let error = runner.start("github").await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::UnknownServer);
/// assert!(error.to_string().contains("github"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Source>,
}

/// The kind of an [`Error`], for a program that acts on it.
///
/// ```
/// use mcpzip::ErrorKind;
///
/// assert!(ErrorKind::Unavailable.is_retryable());
/// assert!(!ErrorKind::Denied.is_retryable());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration cannot be used.
    Config,
    /// No server has this name.
    UnknownServer,
    /// No tool has this name, or several have.
    UnknownTool,
    /// The arguments do not fit the tool, or there is no such prompt or resource. Nothing was sent.
    Arguments,
    /// A rule, a person or a handler refused it. Nothing was sent.
    Denied,
    /// The server cannot be reached or is busy, so nothing was sent; or the connection ended during a request that cannot act twice.
    Unavailable,
    /// The server needs a login.
    Login,
    /// The server gave no answer in time.
    Timeout,
    /// The connection ended during the request, which may have acted.
    Lost,
    /// The server answered with an error.
    Server,
    /// The tool answered that it failed.
    Tool,
    /// The answer cannot be read as what was asked for.
    Answer,
    /// The tools cannot be searched now.
    Search,
    /// The filter of a `select` failed.
    Filter,
    /// The audit log, or a directory, cannot be written; or an address cannot be used.
    Io,
    /// The runner has ended. A call in progress may have acted.
    Ended,
}

impl ErrorKind {
    /// Whether a repetition cannot act twice, and may succeed if the cause passes. A program that is not installed or a disabled
    /// server is [`Self::Unavailable`], too, so limit the number of repetitions.
    ///
    /// ```
    /// assert!(mcpzip::ErrorKind::Search.is_retryable());
    /// assert!(!mcpzip::ErrorKind::Lost.is_retryable());
    /// ```
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Unavailable | Self::Search)
    }
}

impl Error {
    /// An error for a server's question that a [`Handler`](crate::Handler) does not answer. The server reads the message.
    ///
    /// ```
    /// let error = mcpzip::Error::refusal("there is nobody to ask");
    /// assert_eq!(error.kind(), mcpzip::ErrorKind::Denied);
    /// ```
    pub fn refusal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Denied, message)
    }

    /// The kind.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// # use serde_json::json;
    /// let error = runner.execute("notes__remove", json!({})).await.unwrap_err();
    /// assert_eq!(error.kind(), mcpzip::ErrorKind::UnknownTool);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// An error of a part of the program, such as a [`Transport`](crate::Transport) or a [`LoginStore`](crate::LoginStore).
    ///
    /// ```
    /// use mcpzip::{Error, ErrorKind};
    ///
    /// let error = std::fs::read("/no/such/key").unwrap_err();
    /// let error = Error::new(ErrorKind::Io, "the key cannot be read").with_source(error);
    /// assert!(std::error::Error::source(&error).is_some());
    /// ```
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// With the error that caused it. Its texts are not masked.
    ///
    /// ```
    /// use std::error::Error as _;
    ///
    /// let cause = std::io::Error::other("the disk is full");
    /// let error = mcpzip::Error::new(mcpzip::ErrorKind::Io, "the login cannot be kept").with_source(cause);
    /// assert_eq!(error.source().unwrap().to_string(), "the disk is full");
    /// ```
    #[must_use]
    pub fn with_source(self, source: impl StdError + Send + Sync + 'static) -> Self {
        Self {
            source: Some(Arc::new(source)),
            ..self
        }
    }

    /// With the causes of `source` as masked texts, because those may name secrets.
    pub(super) fn with_masked(self, source: &dyn StdError, mask: impl Fn(&str) -> String) -> Self {
        Self {
            source: Cause::of(source, &mask).map(|cause| Arc::new(cause) as Source),
            ..self
        }
    }

    pub(super) fn unknown_server(name: &str) -> Self {
        let message = format!("there is no server `{name}` in the configuration");
        Self::new(ErrorKind::UnknownServer, message)
    }

    pub(super) fn ended() -> Self {
        Self::new(ErrorKind::Ended, "the runner has ended")
    }

    pub(super) fn of_failure(failure: &Failure, view: &View) -> Self {
        let fact = failure.fact(view);
        match failure {
            Failure::Call { error, .. } => Self::of_call(error, fact, view),
            _ => Self::new(kind_of(failure), fact),
        }
    }

    /// The failure of a request to a server.
    pub(super) fn of_call(error: &CallError, message: String, view: &View) -> Self {
        let mask = |text: &str| view.config().masker.mask(text).into_owned();
        Self::new(kind_of_call(error), message).with_masked(error, mask)
    }

    /// The error response of a server; `error` is a JSON-RPC error object.
    pub(super) fn of_server(error: &[u8], view: &View) -> Self {
        let message = view.config().masker.mask(&message_of(error)).into_owned();
        let code = code_of(error).map(|code| format!(" ({code})"));
        let message = format!("{message}{}", code.unwrap_or_default());
        Self::new(ErrorKind::Server, message)
    }
}

fn kind_of(failure: &Failure) -> ErrorKind {
    match failure {
        Failure::Unknown {
            server: Some(_), ..
        } => ErrorKind::UnknownServer,
        Failure::Unknown { .. } | Failure::Ambiguous { .. } | Failure::NotShown { .. } => {
            ErrorKind::UnknownTool
        }
        Failure::Withheld { .. }
        | Failure::NotReadOnly { .. }
        | Failure::Paused { .. }
        | Failure::Limited { .. }
        | Failure::Scopes { .. }
        | Failure::NotInScript { .. }
        | Failure::Consent { .. }
        | Failure::NoConsent { .. } => ErrorKind::Denied,
        Failure::Unlisted { .. } | Failure::DefinitionLost { .. } => ErrorKind::Unavailable,
        Failure::Faulty { .. } => ErrorKind::Config,
        Failure::Arguments { .. } | Failure::Preset { .. } | Failure::Unreadable { .. } => {
            ErrorKind::Arguments
        }
        Failure::Call { error, .. } => kind_of_call(error),
        Failure::Refused { .. } => ErrorKind::Server,
        Failure::Malformed { .. } => ErrorKind::Answer,
        Failure::Unlogged { .. } => ErrorKind::Io,
    }
}

fn kind_of_call(error: &CallError) -> ErrorKind {
    match error {
        _ if error.wants_login() => ErrorKind::Login,
        CallError::Connect(error) => match &**error {
            ConnectError::ShuttingDown => ErrorKind::Ended,
            ConnectError::Http { error, .. } => match kind_of_http(error) {
                // The answers to a handshake: no request was sent after it.
                ErrorKind::Server | ErrorKind::Answer => ErrorKind::Unavailable,
                kind => kind,
            },
            _ => ErrorKind::Unavailable,
        },
        CallError::Connecting { .. } | CallError::Busy { .. } => ErrorKind::Unavailable,
        CallError::Lost { .. } if error.is_unsent() => ErrorKind::Unavailable,
        CallError::Lost { .. } => ErrorKind::Lost,
        CallError::Timeout { .. } => ErrorKind::Timeout,
        CallError::TooLarge { .. } | CallError::Malformed { .. } => ErrorKind::Answer,
        CallError::Uncompared { .. }
        | CallError::Withheld { .. }
        | CallError::Changed { .. }
        | CallError::Paused(_) => ErrorKind::Denied,
        CallError::Http { error, .. } => kind_of_http(error),
    }
}

fn kind_of_http(error: &HttpError) -> ErrorKind {
    match error {
        HttpError::Login {
            need: AuthRequired::Rights,
            ..
        } => ErrorKind::Denied,
        HttpError::Login {
            need: AuthRequired::Patience(_),
            ..
        } => ErrorKind::Unavailable,
        HttpError::Login { .. } => ErrorKind::Login,
        HttpError::Unreachable { .. }
        | HttpError::Insecure { .. }
        | HttpError::Command(_)
        | HttpError::Identity(_)
        | HttpError::Elsewhere { .. }
        | HttpError::Redirect { .. }
        | HttpError::Endless { .. }
        | HttpError::NoEndpoint { .. } => ErrorKind::Unavailable,
        HttpError::Status { .. } => ErrorKind::Server,
        HttpError::TooLarge { .. } | HttpError::ContentType { .. } => ErrorKind::Answer,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// A cause without secrets.
#[derive(Debug)]
struct Cause {
    text: String,
    source: Option<Box<Cause>>,
}

impl Cause {
    /// The causes of `error`.
    fn of(error: &dyn StdError, mask: &impl Fn(&str) -> String) -> Option<Self> {
        let cause = error.source()?;
        Some(Self {
            text: mask(&cause.to_string()),
            source: Self::of(cause, mask).map(Box::new),
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
