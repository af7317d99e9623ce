//! The failures of a store.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use super::url::UrlFault;

/// An operation of the store that failed. Its texts have no secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The URL cannot be used.
    #[error(transparent)]
    Url(#[from] UrlFault),
    /// The system starts no thread.
    #[error("the thread of the store could not be started")]
    Thread(#[source] std::io::Error),
    /// No connection.
    #[error("PostgreSQL cannot be reached: {0}")]
    Unreachable(String),
    /// Repeated failures a moment ago.
    #[error("PostgreSQL has not answered, and is asked again in a moment: {0}")]
    Resting(String),
    /// No answer within the time limit.
    #[error("PostgreSQL did not answer in time")]
    Slow,
    /// Another replica has the lock.
    #[error("another process is changing this in the store; try again")]
    Busy,
    /// The statement was refused.
    #[error("PostgreSQL refused a statement: {0}")]
    Refused(String),
    /// The schema is for newer programs.
    #[error(
        "the store has schema {found}, which needs at least the mcpzip that knows schema {oldest}; this one knows {known}. Update this mcpzip"
    )]
    Newer {
        /// The schema of the store.
        found: i32,
        /// The schema that a program must know to use it.
        oldest: i32,
        /// The schema that this program knows.
        known: i32,
    },
    /// There is no way to this schema.
    #[error("there is no schema {wanted} in this program, which knows 0 to {known}")]
    NoSchema {
        /// The schema that was asked for.
        wanted: i32,
        /// The latest schema that this program knows.
        known: i32,
    },
    /// A database that does not have every character.
    #[error(
        "the database of the store has the encoding {0}; make one with `create database … encoding 'UTF8' template template0`"
    )]
    Encoding(String),
    /// A migration that failed; the store is as it was.
    #[error("the migration to schema {version} failed, and the store is as it was: {problem}")]
    Migration {
        /// The schema.
        version: i32,
        /// The problem.
        problem: String,
    },
    /// A copy that cannot be used.
    #[error("nothing was imported, and the store is as it was: {0}")]
    Copy(String),
    /// Another key.
    #[error(
        "the store has another key than `MCPZIP_STORE_KEY` and `MCPZIP_STORE_KEY_PREVIOUS` here: set the key that the other gateways have. docs/store.md says what to do if it is lost"
    )]
    Key,
}

impl StoreError {
    /// Whether PostgreSQL does not answer now, so that trying again later can succeed.
    #[must_use]
    pub(crate) fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::Resting(_) | Self::Slow)
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(refusal) = error.as_db_error() {
            let text = refusal.message().to_owned();
            let code = refusal.code();
            // It is about to end, has just begun, has no room, or cancelled the statement at its time limit.
            return match code.code() {
                "57014" => Self::Slow,
                "55P03" => Self::Busy,
                code if code.starts_with("57P") || code.starts_with("08") => {
                    Self::Unreachable(text)
                }
                _ if *code == SqlState::TOO_MANY_CONNECTIONS => Self::Unreachable(text),
                // A server that only reads: the standby of another.
                _ if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Self::Unreachable(text),
                // Wrong passwords and the like: the next attempt may have other ones.
                code if code.starts_with("28") => Self::Unreachable(text),
                _ => Self::Refused(text),
            };
        }
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            source = cause.source();
        }
        if is_of_connection(&error) {
            Self::Unreachable(text)
        } else {
            Self::Refused(text)
        }
    }
}

/// Whether the connection failed, and no value or parameter.
fn is_of_connection(error: &tokio_postgres::Error) -> bool {
    let is_io =
        std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>());
    let text = error.to_string();
    let connects = [
        "error connecting",
        "error performing TLS",
        "timeout",
        "authentication",
        "unexpected message",
        "communicating",
    ];
    error.is_closed() || is_io || connects.iter().any(|part| text.contains(part))
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => match Self::from(error) {
                // A refusal while connecting means that there is no connection.
                Self::Refused(text) => Self::Unreachable(text),
                other => other,
            },
            PoolError::Timeout(_) => Self::Slow,
            other => Self::Unreachable(other.to_string()),
        }
    }
}
