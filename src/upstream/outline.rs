//! Failures by kind, without details: agents may read no text of a server in quarantine.

use super::HttpError;
use super::error::{CallError, ConnectError, ListError, NotListed};
use super::oauth::AuthRequired;
use crate::tool::ServerName;

impl NotListed {
    /// The kind of the failure and the way to the rest for a person, without any text of the server.
    #[must_use]
    pub(crate) fn outline(&self, server: &ServerName) -> String {
        outlined(&self.kind(), server)
    }

    fn kind(&self) -> String {
        match self {
            Self::List(error) => error.kind(),
            Self::Late(_)
            | Self::NotConfigured
            | Self::NotKept
            | Self::Stopped
            | Self::Unused
            | Self::ShuttingDown => self.to_string(),
        }
    }
}

impl ConnectError {
    /// As [`NotListed::outline`].
    #[must_use]
    pub(crate) fn outline(&self, server: &ServerName) -> String {
        outlined(&self.kind(), server)
    }

    fn kind(&self) -> String {
        match self {
            Self::Ended { server, .. } => format!("server `{server}` ended during the handshake"),
            Self::Timeout { server, limit, .. } => {
                format!("server `{server}` did not answer the handshake within {limit:?}")
            }
            Self::NotMcp { server, .. } => format!("server `{server}` does not speak MCP"),
            Self::Handshake { server, .. } => format!("server `{server}` refused the handshake"),
            Self::Transport { server, .. } => format!("server `{server}` cannot be connected"),
            Self::Http { server, error } => of_http(server, error),
            Self::Unhealthy { server, .. } => {
                format!("server `{server}` did not answer a health check")
            }
            Self::NotStarted { server, .. } => format!("server `{server}` did not start"),
            Self::Unknown { .. }
            | Self::Disabled { .. }
            | Self::Unapproved { .. }
            | Self::NoPerson { .. }
            | Self::Configuration { .. }
            | Self::Spawn { .. }
            | Self::Stopped { .. }
            | Self::ShuttingDown => self.to_string(),
        }
    }
}

impl ListError {
    /// The kind of the failure, without any text of the server.
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::Call(error) => error.kind(),
            Self::Refused { server, list, .. } => {
                format!("server `{server}` refused to list its {list}, or sent no usable list")
            }
            Self::Missing { .. } | Self::Late { .. } => self.to_string(),
        }
    }
}

impl CallError {
    /// As [`ListError::kind`].
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Connect(error) => error.kind(),
            Self::Lost { server, .. } => format!("server `{server}` went away during the call"),
            Self::Malformed { server, .. } => {
                format!("server `{server}` sent an answer that cannot be read")
            }
            Self::Http { server, error } => of_http(server, error),
            Self::Uncompared { reason, .. } => reason.kind(),
            Self::Connecting { .. }
            | Self::Timeout { .. }
            | Self::TooLarge { .. }
            | Self::Withheld { .. }
            | Self::Changed { .. }
            | Self::Paused(_)
            | Self::Busy { .. } => self.to_string(),
        }
    }
}

fn of_http(server: &ServerName, error: &HttpError) -> String {
    let kind = match error {
        HttpError::Unreachable { .. } => "cannot be reached".to_owned(),
        HttpError::Insecure { .. } => "offers no secure connection (TLS)".to_owned(),
        HttpError::Status { status, .. } => format!("answered with HTTP {status}"),
        HttpError::Login {
            need: AuthRequired::Page(Some(page)),
            ..
        } => format!("requires a login of your own: {page}"),
        HttpError::Login { status, .. } if error.wants_login() => {
            format!("requires a login (HTTP {status}): run `mcpzip login {server}`")
        }
        HttpError::Login { status, need, .. } => format!("{} (HTTP {status})", need.demand()),
        HttpError::Identity(_) => "was not asked in the name of this person".to_owned(),
        HttpError::Command(_) => "cannot be called: its `headers_command` failed".to_owned(),
        HttpError::Redirect { .. } => "redirects to another address".to_owned(),
        HttpError::Endless { .. } => "redirects without end".to_owned(),
        HttpError::Elsewhere { .. } => "is described as being at another address".to_owned(),
        HttpError::TooLarge { .. } => "gave an answer over the size limit".to_owned(),
        HttpError::ContentType { .. } => "did not answer with JSON or an event stream".to_owned(),
        HttpError::NoEndpoint { .. } => "is not an HTTP+SSE server".to_owned(),
    };
    format!("server `{server}` {kind}")
}

fn outlined(kind: &str, server: &ServerName) -> String {
    format!(
        "{kind}; no person has approved this server, so `mcpzip doctor` and `mcpzip logs {server}` show a person its own words"
    )
}
