//! Errors of commands: their texts, hints and exit codes.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::printable::printable_within;
use super::unknown::{shown, unknown};
use crate::config::{self, ChangeError, Config, EditError, with_options};
use crate::daemon;
use crate::downstream::http;
use crate::proxy::{Failure, View, Withheld};
use crate::registry;
use crate::text::chain;
use crate::upstream::CallError;

/// Why a command failed.
#[derive(Debug)]
pub(super) struct Exit {
    kind: Kind,
    error: anyhow::Error,
    /// Whether the output has reported the reason already.
    is_printed: bool,
}

/// The command needs its own process, because it asks at a terminal or reads stdin.
#[derive(Debug, thiserror::Error)]
#[error("the command cannot run in the daemon")]
struct NeedsOwnProcess;

/// The failure of a command in the form for another process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reported {
    kind: Kind,
    message: String,
    is_printed: bool,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Kind {
    Failed = 1,
    Usage = 2,
    Configuration = 3,
    Unavailable = 4,
    ToolError = 5,
    Warnings = 6,
    /// As shells have it for a program that SIGINT ended.
    Interrupted = 130,
}

impl Kind {
    /// The `kind` in `--json`.
    fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Configuration => "configuration",
            Self::Unavailable => "unavailable",
            Self::ToolError => "tool",
            Self::Warnings => "warnings",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Exit {
    /// A wrong command line.
    pub(super) fn usage(error: &clap::Error) -> Self {
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        Self {
            kind: Kind::Usage,
            error: anyhow::Error::msg(text.to_owned()),
            is_printed: false,
        }
    }

    /// A server name that the configuration does not have, with the most similar one.
    pub(super) fn unknown_server(name: &str, config: &Config) -> Self {
        let names = config.names.iter().map(String::as_str);
        Self::failed(unknown(name, names))
    }

    /// Words on the command line that only the configuration shows to be wrong.
    pub(super) fn bad_usage(text: impl Into<String>) -> Self {
        Self {
            kind: Kind::Usage,
            error: anyhow::Error::msg(text.into()),
            is_printed: false,
        }
    }

    /// An unusable setting in the configuration or a variable.
    pub(super) fn of_setting(problem: &impl fmt::Display) -> Self {
        Self {
            kind: Kind::Configuration,
            error: anyhow::Error::msg(problem.to_string()),
            is_printed: false,
        }
    }

    /// A general failure.
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self {
            kind: Kind::Failed,
            error: anyhow::Error::msg(text.into()),
            is_printed: false,
        }
    }

    /// A server could not be reached, or did not answer.
    pub(super) fn unavailable(text: impl Into<String>) -> Self {
        Self {
            kind: Kind::Unavailable,
            error: anyhow::Error::msg(text.into()),
            is_printed: false,
        }
    }

    /// This failure, whose reason the output has shown already.
    pub(super) fn printed(self) -> Self {
        Self {
            is_printed: true,
            ..self
        }
    }

    /// A call without a result. `view` decides which names the text may mention.
    pub(super) fn of_call(failure: &Failure, view: &View) -> Self {
        let text = match failure {
            // A person searches with another command than an agent.
            Failure::Unknown {
                name,
                server: Some(server),
                ..
            } => {
                let config = view.config();
                let profiles = config.narrowed_to();
                let text = match profiles.is_empty() {
                    true => unknown(server, config.names.iter().map(String::as_str)),
                    false => format!(
                        "the profile `{}` has no server `{server}`; `mcpzip list` shows all servers",
                        profiles.join("`, `")
                    ),
                };
                format!("there is no tool `{}`: {text}", shown(name))
            }
            Failure::Withheld {
                name,
                reason: Withheld::Denied(rule),
            } => format!("`{name}` is denied by your rules: {rule}"),
            Failure::Unknown { name, nearest, .. } if nearest.is_empty() => {
                format!(
                    "there is no tool `{}`; `mcpzip search` finds tools by need",
                    shown(name)
                )
            }
            // An agent has the argument `timeout` instead.
            Failure::Call { error, .. } if matches!(**error, CallError::Timeout { .. }) => {
                let text = format!(
                    "{error}; the call was cancelled, and the tool may have acted. `--timeout SECONDS` waits longer for one call, and \
                     `timeout` in the server's entry for each"
                );
                view.config().masker.mask(&text).into_owned()
            }
            Failure::Call { name, error } if matches!(**error, CallError::Lost { .. }) => format!(
                "{}; `mcpzip logs {}` shows its last words",
                failure.text(view).trim_end_matches('.'),
                name.server
            ),
            failure => failure.text(view),
        };
        match failure {
            failure if failure.is_unavailable() => Self::unavailable(text),
            Failure::Arguments { .. } => Self::bad_usage(text),
            _ => Self::failed(text),
        }
    }

    /// The tool's result has `isError`. It is printed already.
    pub(super) fn tool_error() -> Self {
        Self {
            kind: Kind::ToolError,
            error: anyhow::Error::msg("the tool reported an error"),
            is_printed: false,
        }
    }

    /// The printed report has errors (`is_error`) or only warnings.
    pub(super) fn found(is_error: bool) -> Self {
        let kind = if is_error {
            Kind::Failed
        } else {
            Kind::Warnings
        };
        Self {
            kind,
            error: anyhow::Error::msg("something was found"),
            is_printed: true,
        }
    }

    /// The command did nothing, and must run in the process that the user started.
    pub(super) fn needs_own_process() -> Self {
        anyhow::Error::from(NeedsOwnProcess).into()
    }

    /// The form for another process; `None` if that process has to run the command itself.
    pub(super) fn report(&self) -> Option<Reported> {
        let is_possible = !self.error.is::<NeedsOwnProcess>();
        is_possible.then(|| Reported {
            kind: self.kind,
            message: chain(self.error.as_ref()),
            is_printed: self.is_printed,
        })
    }

    /// Whether the reason is printed already.
    pub(super) fn is_printed(&self) -> bool {
        self.is_printed
    }

    /// A signal of the user or the system ended the command.
    pub(super) fn interrupted(signal: std::io::Result<()>) -> Self {
        signal.map_or_else(Self::from, |()| Self::interrupted_with("interrupted"))
    }

    /// A person left a question by Ctrl-C.
    pub(super) fn interrupted_with(text: &str) -> Self {
        Self {
            kind: Kind::Interrupted,
            ..Self::failed(text)
        }
    }

    pub(super) fn code(&self) -> u8 {
        self.kind as u8
    }
}

impl Exit {
    /// Advice for the user, a line each.
    fn hints(&self) -> Vec<String> {
        match self.error.downcast_ref::<config::Error>() {
            Some(config::Error::Missing { .. }) => {}
            Some(error) => return error.hint().map(str::to_owned).into_iter().collect(),
            None => return Vec::new(),
        }
        let older = config::older_config_file(&config::Environment::process()).map(|older| {
            format!(
                "`mcpzip migrate --from mcpzip-0.1` imports the one of mcpzip 0.1 at {}",
                older.display()
            )
        });
        let rest =
            ["`mcpzip init` makes one, `--config FILE` names another, `mcpzip demo` needs none"];
        older.into_iter().chain(rest.map(str::to_owned)).collect()
    }

    /// The error for a terminal. A server's words in it have no colours, and lines of their own are indented, so that they are no
    /// lines of mcpzip.
    pub(super) fn for_terminal(&self) -> String {
        let mut text = printable_within(&chain(self.error.as_ref()));
        for hint in self.hints() {
            text.push_str("\nhint: ");
            text.push_str(&printable_within(&hint));
        }
        text
    }

    /// The error as a line of JSON: `{"error": {"code", "kind", "message", "hints"}}`.
    pub(super) fn to_json(&self) -> String {
        let error = serde_json::json!({
            "code": self.code(),
            "kind": self.kind.name(),
            "message": with_options(&chain(self.error.as_ref())),
            "hints": self.hints().iter().map(|hint| with_options(hint)).collect::<Vec<_>>(),
        });
        serde_json::json!({ "error": error }).to_string()
    }
}

/// The error and its causes on one line, then the hints.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&chain(self.error.as_ref()))?;
        self.hints()
            .iter()
            .try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

impl From<Reported> for Exit {
    fn from(reported: Reported) -> Self {
        Self {
            kind: reported.kind,
            error: anyhow::Error::msg(reported.message),
            is_printed: reported.is_printed,
        }
    }
}

impl From<config::Error> for Exit {
    fn from(error: config::Error) -> Self {
        Self {
            kind: Kind::Configuration,
            error: error.into(),
            is_printed: false,
        }
    }
}

impl From<ChangeError> for Exit {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Configuration(error) => error.into(),
            ChangeError::Edit(
                error @ (EditError::Document { .. } | EditError::Encoding { .. }),
            ) => {
                // The text contains the cause already.
                Self {
                    kind: Kind::Configuration,
                    error: anyhow::Error::msg(format!("{error}\nhint: {}", config::SYNTAX_HINT)),
                    is_printed: false,
                }
            }
            error => Self {
                kind: Kind::Failed,
                error: error.into(),
                is_printed: false,
            },
        }
    }
}

impl From<registry::Error> for Exit {
    fn from(error: registry::Error) -> Self {
        let kind = if error.is_absence() {
            Kind::Unavailable
        } else {
            Kind::Failed
        };
        Self {
            kind,
            error: error.into(),
            is_printed: false,
        }
    }
}

impl From<std::io::Error> for Exit {
    fn from(error: std::io::Error) -> Self {
        Self {
            kind: Kind::Failed,
            error: error.into(),
            is_printed: false,
        }
    }
}

impl From<daemon::Error> for Exit {
    fn from(error: daemon::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}

impl From<http::Error> for Exit {
    fn from(error: http::Error) -> Self {
        Self {
            kind: Kind::Failed,
            error: error.into(),
            is_printed: false,
        }
    }
}

impl From<anyhow::Error> for Exit {
    fn from(error: anyhow::Error) -> Self {
        Self {
            kind: Kind::Failed,
            error,
            is_printed: false,
        }
    }
}
