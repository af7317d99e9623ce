//! The errors of connecting, calling and listing. Their texts are shown to users and agents.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::HttpError;
use super::oauth::AuthRequired;
use super::person::IdentityError;
use crate::config::shown_command;
use crate::pause::Paused;
use crate::tool::{ServerName, is_hidden};

/// Why a server cannot be reached. All requests that waited for one attempt share it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// No server of this name is configured.
    #[error("no server `{server}` is configured")]
    Unknown {
        /// The requested name.
        server: ServerName,
    },
    /// It is switched off in the configuration.
    #[error("server `{server}` is disabled in the configuration")]
    Disabled {
        /// The server's name.
        server: ServerName,
    },
    /// It is used in the name of each person, and there is none.
    #[error(
        "server `{server}` is used in the name of each person (`identity`: \"{identity}\"), and this session has no identity: it is there for clients of `mcpzip serve --http` with `http.auth`"
    )]
    NoPerson {
        /// The server's name.
        server: ServerName,
        /// The word in the configuration.
        identity: &'static str,
    },
    /// An agent has added it, and no person has approved its entry.
    #[error(
        "server `{server}` was added by an agent and is not started before a person approves it (`mcpzip approve {server}`)"
    )]
    Unapproved {
        /// The server's name.
        server: ServerName,
    },
    /// Its configuration entry cannot be used.
    #[error("server `{server}`: {reason}")]
    Configuration {
        /// The server's name, as written.
        server: String,
        /// The fault of the entry.
        reason: String,
    },
    /// Its process could not be started.
    #[error("server `{server}` did not start: {}", not_run(.command, .source))]
    Spawn {
        /// The server's name.
        server: ServerName,
        /// The program.
        command: String,
        /// The system's error.
        source: io::Error,
    },
    /// It was not started: its sandbox cannot be had, or its package not be fetched into it.
    #[error("server `{server}` did not start: {reason}")]
    NotStarted {
        /// The server's name.
        server: ServerName,
        /// The reason.
        reason: String,
    },
    /// It ended before the handshake was complete.
    #[error("server `{server}` ended during the handshake ({status}){last_words}")]
    Ended {
        /// The server's name.
        server: ServerName,
        /// The exit status of its process.
        status: String,
        /// The end of its stderr.
        last_words: Box<LastWords>,
    },
    /// It wrote text where messages belong, and completed no handshake.
    #[error(
        "server `{server}` does not speak MCP: its stdout begins with `{text}`, and it {failure}{last_words}"
    )]
    NotMcp {
        /// The server's name.
        server: ServerName,
        /// The beginning of its stdout, without secrets.
        text: String,
        /// The end of the attempt.
        failure: String,
        /// The end of its stderr.
        last_words: Box<LastWords>,
    },
    /// It did not answer the handshake in time.
    #[error("server `{server}` did not answer the handshake within {limit:?}{last_words}")]
    Timeout {
        /// The server's name.
        server: ServerName,
        /// The time limit.
        limit: Duration,
        /// The end of its stderr.
        last_words: Box<LastWords>,
    },
    /// The transport of the program did not connect it.
    #[error("server `{server}` cannot be connected: {reason}")]
    Transport {
        /// The server.
        server: ServerName,
        /// The reason.
        reason: String,
    },
    /// It answered the handshake with an error, or with something unexpected.
    #[error("server `{server}` refused the handshake: {reason}")]
    Handshake {
        /// The server's name.
        server: ServerName,
        /// Its message, or the fault of its answer.
        reason: String,
    },
    /// The connection over HTTP failed.
    #[error("server `{server}` {error}{}", cure(.server, .error))]
    Http {
        /// The server's name.
        server: ServerName,
        /// The error.
        error: HttpError,
    },
    /// It answered before, and did not answer a check of its open connection.
    #[error("server `{server}` did not answer a health check: {reason}")]
    Unhealthy {
        /// The server's name.
        server: ServerName,
        /// The reason.
        reason: String,
    },
    /// It was stopped while it was starting.
    #[error("server `{server}` was stopped while it was starting")]
    Stopped {
        /// The server's name.
        server: ServerName,
    },
    /// mcpzip is shutting down.
    #[error("mcpzip is shutting down")]
    ShuttingDown,
}

/// Why a request to a server has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CallError {
    /// There is no connection, and none could be made. Nothing was sent.
    #[error(transparent)]
    Connect(#[from] Arc<ConnectError>),
    /// The connection is still being made. Nothing was sent.
    #[error("server `{server}` was not connected within {limit:?}")]
    Connecting {
        /// The server's name.
        server: ServerName,
        /// The caller's time limit.
        limit: Duration,
    },
    /// The connection ended before the answer arrived.
    #[error("server `{server}` went away during the call ({reason})")]
    Lost {
        /// The server's name.
        server: ServerName,
        /// The cause.
        reason: String,
        /// Whether the request may have reached the server, so that a repetition could act twice.
        may_have_acted: bool,
    },
    /// The time limit passed.
    #[error("server `{server}` gave no answer within {limit:?}")]
    Timeout {
        /// The server's name.
        server: ServerName,
        /// The time limit.
        limit: Duration,
    },
    /// The answer exceeds the size limit of a message.
    #[error("the answer of server `{server}` has {length} bytes, more than the limit of {limit}")]
    TooLarge {
        /// The server's name.
        server: ServerName,
        /// The answer's size in bytes.
        length: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// The answer could not be read.
    #[error("server `{server}` sent an answer that cannot be read: {reason}")]
    Malformed {
        /// The server's name.
        server: ServerName,
        /// The fault.
        reason: String,
    },
    /// The exchange over HTTP failed.
    #[error("server `{server}` {error}{}", cure(.server, .error))]
    Http {
        /// The server's name.
        server: ServerName,
        /// The error.
        error: HttpError,
    },
    /// Under `"trust": "pin"`, the server's current list could not be compared with the first one. Nothing was sent.
    #[error("the tools of server `{server}` could not be compared with those first seen: {reason}")]
    Uncompared {
        /// The server's name.
        server: ServerName,
        /// The cause.
        reason: NotListed,
    },
    /// Under `"trust": "pin"`, the tool has changed since it was first seen. Nothing was sent.
    #[error("`{tool}` of server `{server}` is held back: it has changed since it was first seen")]
    Withheld {
        /// The server's name.
        server: ServerName,
        /// The tool's name.
        tool: String,
    },
    /// The user has agreed to a call of the tool as it was defined before. Nothing was sent.
    #[error("`{tool}` of server `{server}` has changed since the user agreed to the call")]
    Changed {
        /// The server's name.
        server: ServerName,
        /// The tool's name.
        tool: String,
    },
    /// The user has paused mcpzip. Nothing was sent.
    #[error("{0}")]
    Paused(Paused),
    /// The server has its maximum of running and waiting calls.
    #[error("server `{server}` is busy: {running} calls are running and {waiting} are waiting")]
    Busy {
        /// The server's name.
        server: ServerName,
        /// The number of calls in flight.
        running: usize,
        /// The number of calls in the queue.
        waiting: usize,
    },
}

impl NotListed {
    /// Whether the server was stopped, which is not a failure.
    #[must_use]
    pub(crate) fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped)
    }

    /// Whether there was no connection.
    #[must_use]
    pub(crate) fn is_unconnected(&self) -> bool {
        matches!(self, Self::List(error) if matches!(error.as_ref(), ListError::Call(CallError::Connect(_))))
    }

    /// Whether no connection to a remote server could be made.
    #[must_use]
    pub(crate) fn is_unreachable(&self) -> bool {
        let Self::List(error) = self else {
            return false;
        };
        let error = match error.as_ref() {
            ListError::Call(CallError::Http { error, .. }) => error,
            ListError::Call(CallError::Connect(error)) => match error.as_ref() {
                ConnectError::Http { error, .. } => error,
                _ => return false,
            },
            _ => return false,
        };
        matches!(error, HttpError::Unreachable { .. })
    }
}

impl ConnectError {
    /// Whether a server of the other era may fail like this: it refuses unknown messages, or ends.
    #[must_use]
    pub(crate) fn may_be_of_era(&self) -> bool {
        matches!(
            self,
            Self::Handshake { .. }
                | Self::Ended { .. }
                | Self::NotMcp { .. }
                | Self::Http {
                    error: HttpError::Status { .. } | HttpError::ContentType { .. },
                    ..
                }
        )
    }
}

impl ConnectError {
    /// Whether a login by a person could help.
    #[must_use]
    pub(crate) fn wants_login(&self) -> bool {
        matches!(self, Self::Http { error, .. } if error.wants_login())
    }
}

/// Why a program could not be started, with the remedy if its name was found nowhere.
fn not_run(command: &str, source: &io::Error) -> String {
    let is_name = !command.contains(std::path::is_separator);
    let shown = shown_command(command);
    match source.kind() {
        io::ErrorKind::NotFound if command.trim().contains(' ') && is_name => {
            let program = command.split_whitespace().next().unwrap_or_default();
            format!(
                "`{shown}` is a whole command line; split it: `{program}` as `command`, the rest as `args`"
            )
        }
        io::ErrorKind::NotFound if is_name => {
            format!("`{shown}` is not on the PATH; install it, or set `command` to its full path")
        }
        _ => format!("cannot run `{shown}`: {source}"),
    }
}

/// Why the tools of a server are not known, or not stored.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum NotListed {
    /// Their list did not come within this time.
    #[error("it did not list its tools within {0:?}")]
    Late(Duration),
    /// Their list did not come.
    #[error(transparent)]
    List(#[from] Box<ListError>),
    /// Its entry was removed or disabled.
    #[error("it is not configured any more")]
    NotConfigured,
    /// The task that stores the list failed.
    #[error("its tools could not be kept")]
    NotKept,
    /// It was stopped meanwhile.
    #[error("it was stopped")]
    Stopped,
    /// The sessions that used it have ended.
    #[error("no session uses it any more")]
    Unused,
    /// The process ends.
    #[error("mcpzip is shutting down")]
    ShuttingDown,
}

/// Why a list is missing.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ListError {
    /// The request for a page failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server does not have this list.
    #[error("server `{server}` has no {list}")]
    Missing {
        /// The server's name.
        server: ServerName,
        /// The name of the list.
        list: &'static str,
    },
    /// The list took much longer than the tools.
    #[error("server `{server}` did not list its {list} in time")]
    Late {
        /// The server's name.
        server: ServerName,
        /// The name of the list.
        list: &'static str,
    },
    /// The server refused, or its response is not a list.
    #[error("server `{server}` did not list its {list}: {reason}")]
    Refused {
        /// The server's name.
        server: ServerName,
        /// The name of the list.
        list: &'static str,
        /// The server's message, or the fault of the response.
        reason: String,
    },
}

impl CallError {
    /// Whether a login by a person could help. The request then had no effect.
    #[must_use]
    pub(crate) fn wants_login(&self) -> bool {
        match self {
            Self::Connect(error) => error.wants_login(),
            Self::Http { error, .. } => error.wants_login(),
            _ => false,
        }
    }

    /// Why a person's token was not exchanged, if that is it.
    #[must_use]
    pub(crate) fn failed_exchange(&self) -> Option<&IdentityError> {
        let error = match self {
            Self::Connect(error) => match error.as_ref() {
                ConnectError::Http { error, .. } => error,
                _ => return None,
            },
            Self::Http { error, .. } => error,
            _ => return None,
        };
        match error {
            HttpError::Identity(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether the request can be repeated without the risk of acting twice.
    #[must_use]
    pub(crate) fn is_unsent(&self) -> bool {
        matches!(
            self,
            Self::Lost {
                may_have_acted: false,
                ..
            }
        )
    }

    /// Whether the connection was lost during the request.
    #[must_use]
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }
}

/// The next step for a person, for a server that requires a login.
fn cure(server: &ServerName, error: &HttpError) -> String {
    let HttpError::Login { need, .. } = error else {
        return String::new();
    };
    let login = format!("; login needed: run `mcpzip login {server}`");
    match need {
        AuthRequired::Credentials => String::new(),
        AuthRequired::Header => {
            format!("; renew the token there, or remove it and run `mcpzip login {server}`")
        }
        AuthRequired::Command => {
            "; it does not accept the headers of its `headers_command`".to_owned()
        }
        AuthRequired::Login => login,
        AuthRequired::Sealed(reason) => {
            format!("; {reason}{login} to replace it, or unlock the keychain")
        }
        AuthRequired::Renewal => format!("{login}, because the previous login has ended"),
        AuthRequired::Refused => format!(
            "; the token is new, so perhaps the account has no access: `mcpzip login {server}` logs in with another one"
        ),
        AuthRequired::Client => {
            "; the token is new, so perhaps its client or account has no access there"
                .to_owned()
        }
        AuthRequired::Scopes(scopes) => format!(
            "{login}, because the current login lacks the scopes {}",
            scopes.join(", ")
        ),
        AuthRequired::Rights => {
            "; the current login does not permit this, and a new login would not change that"
                .to_owned()
        }
        AuthRequired::Page(Some(page)) => {
            format!("; login needed: open {page} in a browser and log in there as yourself")
        }
        AuthRequired::Page(None) => {
            "; login needed, and the gateway does not know its own URL: its administrator sets `http.public_url`".to_owned()
        }
        AuthRequired::Identity => {
            "; it does not accept what the gateway says about this person: the administrator has to check `identity` of its entry".to_owned()
        }
        AuthRequired::Patience(reason) => format!("; no token is available now: {reason}"),
    }
}

/// The last words of a server that did not connect.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastWords {
    /// The end of its stderr, without secrets.
    pub(super) stderr: String,
    /// A package that npm did not find.
    pub(super) missing: Option<String>,
    /// Variables that its stderr names, which the session has and the server does not get.
    pub(super) withheld: Vec<String>,
}

impl std::fmt::Display for LastWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The text reaches agents and terminals.
        let shown = |text: &str| -> String {
            let is_shown = |c: &char| matches!(c, '\n' | '\t') || !c.is_control() && !is_hidden(*c);
            text.chars().filter(is_shown).collect()
        };
        match &self.missing {
            Some(package) => write!(f, "; npm has no package `{}`", shown(package))?,
            None if self.stderr.is_empty() => {}
            None => write!(f, "; its stderr ends with: {}", shown(&self.stderr))?,
        }
        for name in &self.withheld {
            write!(
                f,
                "; {name} is set here, but mcpzip passes no variables of your shell to servers: its entry needs \"env\": {{\"{name}\": \"${{{name}}}\"}} \
                 (`mcpzip add` takes -e '{name}=${{{name}}}')"
            )?;
        }
        Ok(())
    }
}

/// Whether a line of npm has nothing about a failure: an advertisement, or the place of its log.
pub(super) fn is_noise(line: &str) -> bool {
    line.starts_with("npm notice")
        || line.starts_with("npm ") && line.contains("A complete log of this run")
        || matches!(
            line,
            "npm error" | "npm ERR!" | "npm error 404" | "npm ERR! 404"
        )
        // Its advice on other sources, in two lines.
        || line.starts_with("npm ")
            && (line.ends_with("Note that you can also install from a")
                || line.contains("404 tarball, folder, http url, or git "))
}

/// The words of npm about a package that it did not find, after the quoted name: those of npm 11, and older ones.
const MISSING: [&str; 2] = [
    "could not be found or you do not",
    "is not in this registry",
];

/// The package that npm looked for in vain, by the text of its error.
pub(super) fn missing_package(text: &str) -> Option<String> {
    let line = text
        .lines()
        .find(|line| line.contains("npm ") && MISSING.iter().any(|end| line.contains(end)))?;
    let quoted = line.split('\'').nth(1)?;
    // A name with a scope begins with `@`, and one without a version has no other.
    let end = quoted.rfind('@').filter(|at| *at > 0);
    Some(quoted[..end.unwrap_or(quoted.len())].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_comes_first_in_the_last_words() {
        let npm = "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/@a%2fb - Not found\n\
                   npm error 404  '@a/b@*' is not in this registry.\nnpm error 404\n";
        assert_eq!(missing_package(npm).as_deref(), Some("@a/b"));
        let npm = "npm ERR! 404  'left-pad@9' is not in this registry.";
        assert_eq!(missing_package(npm).as_deref(), Some("left-pad"));
        let npm = "npm error 404  The requested resource 'no-such@*' could not be found or you do not have permission to access it.\n\
                   npm error 404\nnpm error 404 Note that you can also install from a\n\
                   npm error 404 tarball, folder, http url, or git url.\n";
        assert_eq!(missing_package(npm).as_deref(), Some("no-such"));
        assert!(npm.lines().skip(1).all(is_noise), "{npm}");
        assert_eq!(missing_package("is not in this registry"), None);
        let words = LastWords {
            stderr: "KEY is required".to_owned(),
            missing: None,
            withheld: vec!["KEY".to_owned()],
        };
        let text = words.to_string();
        assert!(
            text.contains("its stderr ends with: KEY is required; KEY is set here"),
            "{text}"
        );
        assert!(text.contains(r#""env": {"KEY": "${KEY}"}"#), "{text}");
    }
}
