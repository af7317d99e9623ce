//! The texts of failures. Every text that names a failure to an agent is made here: the facts, which the library also gives to programs, and
//! the advice.

use super::reply::Reply;
use crate::catalog::{ChangeKind, Rejected};
use crate::mcp::ErrorCode;
use crate::pause::Paused;
use crate::proxy::arguments::Fault;
use crate::proxy::failure::{Failure, NoConsent, Unlisted, Withheld};
use crate::proxy::view::{Mode, View};
use crate::telemetry;
use crate::text::shortened;
use crate::tool::QualifiedName;
use crate::upstream::oauth::AuthRequired;
use crate::upstream::{CallError, ConnectError, HttpError};

/// The text of a failure.
pub(in crate::proxy) struct Words {
    /// The facts.
    fact: String,
    /// The next step for an agent, with the punctuation before it; empty if there is none.
    advice: String,
}

impl Words {
    fn new(fact: String, advice: impl Into<String>) -> Self {
        let advice = advice.into();
        Self { fact, advice }
    }

    /// The whole text, for an agent.
    pub(in crate::proxy) fn whole(self) -> String {
        self.fact + &self.advice
    }
}

impl From<String> for Words {
    fn from(fact: String) -> Self {
        Self::new(fact, "")
    }
}

impl Failure {
    /// The failure as the answer to the call of an agent. Missing scopes are an error of the request: its client can get them.
    pub(in crate::proxy) fn reply(&self, view: &View) -> Reply {
        let text = self.text(view);
        match self {
            Self::Scopes { needed, .. } => Reply::Error {
                code: ErrorCode::INSUFFICIENT_SCOPE,
                message: text,
                data: Some(serde_json::json!({ "scopes": needed }).to_string()),
                cause: None,
            },
            _ => Reply::tool_error(&text),
        }
    }

    /// The failure, its server, and the next step for an agent, without the secrets of the configuration.
    #[must_use]
    pub(crate) fn text(&self, view: &View) -> String {
        view.suited(self.words(view).whole())
    }

    /// The failure and its server without advice to an agent, for a program, and without the secrets of the configuration.
    #[must_use]
    pub(crate) fn fact(&self, view: &View) -> String {
        self.words(view).fact
    }

    fn words(&self, view: &View) -> Words {
        match self {
            Self::Unknown {
                name,
                server,
                nearest,
                ..
            } => unknown_tool(name, server.as_deref(), nearest, view.surface().mode),
            Self::Ambiguous { name, names } => {
                let names = names[..names.len().min(10)].join(" or ");
                Words::new(format!("`{name}` could be {names}"), ": say which")
            }
            Self::NotShown { name } => format!("there is no tool `{name}`").into(),
            Self::Withheld { name, reason } => match reason {
                Withheld::Denied(rule) => denied_tool(name, rule),
                Withheld::ByArguments(rule) => denied_call(name, rule),
                Withheld::AppOnly => app_only_tool(name),
                Withheld::Unapproved(kind, said) => {
                    held_tool(view, name, Some(kind), said.as_deref())
                }
                Withheld::Rejected => rejected_tool(name),
                Withheld::NotAdapted => unadapted_tool(name),
                Withheld::Uncompared(fault) => unpinned_tool(name, fault.as_deref()),
            },
            Self::Unlisted { server, reason } => {
                let next = match reason {
                    Unlisted::UnderWay => "; try again in a moment",
                    _ => "",
                };
                let reason = match reason {
                    Unlisted::Failed(reason) => view.masked(reason),
                    Unlisted::UnderWay => "it is still being listed".to_owned(),
                    Unlisted::Disabled => "it is disabled in the configuration".to_owned(),
                    Unlisted::Elsewhere(projects) => format!("it is there {projects}"),
                };
                let fact = format!("the tools of server `{server}` are not known: {reason}");
                Words::new(fact, next)
            }
            Self::Faulty { server, fault } => {
                format!("server `{server}` cannot be used: {fault}").into()
            }
            Self::DefinitionLost { name } => Words::new(
                format!("the definition of `{name}` was lost from the cache and is fetched again"),
                "; try again in a moment",
            ),
            Self::Arguments {
                name,
                faults,
                signature,
            } => unfit_arguments(name, faults, signature).into(),
            Self::NotReadOnly { name } => Words::new(
                format!(
                    "`{name}` was not called: it does not declare to be read-only, and execute_read_tool runs only tools that do"
                ),
                ". Next: call it with execute_tool, which the user may have to permit",
            ),
            Self::NotInScript {
                name,
                is_builtin: true,
            } => Words::new(
                format!(
                    "`{name}` was not called: a script runs no other script and calls no tool of mcpzip except mcpzip__read_result"
                ),
                ". Next: call it with execute_tool, outside of the script",
            ),
            Self::NotInScript {
                name,
                is_builtin: false,
            } => Words::new(
                format!(
                    "`{name}` was not called: it does not declare to be read-only, and scripts run only tools that do"
                ),
                ". Next: call it with execute_tool, outside of the script; the user permits scripts all tools with \
                 `\"scripts\": {\"allow\": \"all\"}`",
            ),
            Self::Limited { name, exceeded } => Words::new(
                format!("`{name}` was not called: {exceeded}"),
                format!(". Next: try again in {}", exceeded.later()),
            ),
            Self::Scopes { name, needed } => Words::new(
                format!(
                    "`{name}` was not called: it needs the scope {}, which the access token of this client does not have",
                    needed.join(" ")
                ),
                ". Next: the user logs in again in the client and allows it",
            ),
            Self::Unreadable { reason } => (*reason).to_owned().into(),
            Self::Preset { name, rejected } => preset_argument(name, rejected),
            Self::Consent { question, .. } => question.clone().into(),
            Self::NoConsent { name, reason } => no_consent(view, name, reason),
            Self::Paused { name, paused } => held_call(name, paused),
            Self::Call { name, error } => {
                let words = failed_call(view, name, error);
                Words::new(view.masked(&words.fact), words.advice)
            }
            Self::Refused {
                name,
                message,
                data,
            } => view
                .masked(&refused_call(name, message, data.as_deref()))
                .into(),
            Self::Unlogged {
                name,
                was_made,
                cause,
            } => {
                let cause = match view.config().is_for_person() {
                    true => "the audit log of this gateway cannot be written",
                    false => cause,
                };
                let (outcome, advice) = match was_made {
                    true => (
                        format!("the call of `{name}` has no answer and may have acted"),
                        ": tell the user, and check before calling again",
                    ),
                    false => (format!("`{name}` was not called"), ": tell the user"),
                };
                Words::new(
                    format!("{outcome}, because {cause}; calls resume when it can be written"),
                    advice,
                )
            }
            Self::Malformed { name } => {
                refused_call(name, "its result is not a JSON object", None).into()
            }
        }
    }
}

/// The rules require the user's consent, and there is none.
fn no_consent(view: &View, name: &QualifiedName, reason: &NoConsent) -> Words {
    let fact = |reason: &str| {
        format!(
            "`{name}` was not called: the user's rules (`tools.ask`) require the user's consent, and {reason}"
        )
    };
    let (reason, advice) = match reason {
        NoConsent::TooLarge { characters, limit } => {
            let reason = format!(
                "its arguments are too large to be shown whole ({characters} characters, {limit} at most)"
            );
            return Words::new(fact(&reason), "; call it with fewer at a time");
        }
        NoConsent::Waiting { id } => {
            let config = view.config();
            let way = match config.window_of_manager() {
                Some(window) => format!("tell the user to allow it in {window} (or deny it)"),
                None if config.is_for_person() => {
                    "ask who runs this gateway to allow it".to_owned()
                }
                None => format!(
                    "tell the user to run `mcpzip approvals allow {id}` in a terminal (or `deny`)"
                ),
            };
            let advice =
                format!(": {way}, then make exactly the same call again within ten minutes");
            let reason = format!("this client cannot ask. The call waits for approval {id}");
            return Words::new(fact(&reason), advice);
        }
        NoConsent::Paused { paused } => {
            let advice = ". Next: tell the user, and make exactly the same call again when the user has resumed it";
            return Words::new(fact(&paused.to_string()), advice);
        }
        NoConsent::Acted { tool } => {
            let reason = format!(
                "with this client the script would have to run again after the question, and it has called `{tool}`, which may have acted"
            );
            return Words::new(fact(&reason), ": make the calls that need consent first");
        }
        NoConsent::Unkept { error } => {
            return fact(&format!("this client cannot ask, and {error}")).into();
        }
        NoConsent::Failed { message } => {
            return fact(&format!("the client could not ask ({message})")).into();
        }
        NoConsent::Unable => (
            "this client cannot ask (it declares no `elicitation`)",
            "; use another tool, or tell the user",
        ),
        NoConsent::InCompany => (
            "it cannot be requested for one of several calls",
            "; call this tool alone",
        ),
        NoConsent::InScript => (
            "a script asks the user once, about all calls that it makes together",
            ": put the calls that need consent into one `await all([…])`, or call it with execute_tool, outside of the script",
        ),
        NoConsent::TooMany => (
            "too many questions of other clients are open",
            "; try again in some minutes",
        ),
        NoConsent::UnknownState => (
            "the `requestState` is unknown or has expired, or belongs to another request",
            "",
        ),
        NoConsent::Declined => ("the user did not agree", ""),
        NoConsent::Changed => (
            "the tool or its server changed while the user was asked",
            "; call again, so that the user is asked about it as it is now",
        ),
    };
    Words::new(fact(reason), advice)
}

/// No tool has this name.
fn unknown_tool(name: &str, server: Option<&str>, nearest: &[String], mode: Mode) -> Words {
    let fact = match server {
        Some(server) => {
            format!("there is no tool `{name}`, because no server `{server}` is configured")
        }
        None => format!("there is no tool `{name}`"),
    };
    match nearest {
        [] if mode == Mode::Direct => Words::new(fact, ": `tools/list` has all tools"),
        [] => Words::new(fact, ": find it with search_tools"),
        nearest => format!("{fact}: did you mean {}?", nearest.join(", ")).into(),
    }
}

/// The user's rules deny the tool.
pub(in crate::proxy) fn denied_tool(name: &QualifiedName, rule: &str) -> Words {
    Words::new(
        format!("`{name}` is denied by the user's rules (`tools` in the configuration: {rule})"),
        ": use another tool, or tell the user",
    )
}

/// The user's rules do not allow this call of the tool.
fn denied_call(name: &QualifiedName, rule: &str) -> Words {
    Words::new(
        format!(
            "`{name}` was not called: the user's rules do not allow it with these arguments ({rule})"
        ),
        ". Use other arguments or another tool, or tell the user",
    )
}

/// The tool differs from the approved ones.
fn held_tool(
    view: &View,
    name: &QualifiedName,
    kind: Option<&ChangeKind>,
    said: Option<&str>,
) -> Words {
    let reason = match (said, kind) {
        (Some(said), _) => said.to_owned(),
        (_, Some(ChangeKind::New)) => "no person has approved it yet".to_owned(),
        (_, Some(ChangeKind::Renamed { from })) => {
            format!("no person has approved it yet; it was probably called `{from}` before")
        }
        (_, Some(ChangeKind::Changed | ChangeKind::Vanished) | None) => {
            "its server changed its definition after it was approved or first seen".to_owned()
        }
    };
    let config = view.config();
    let way = match config.window_of_manager() {
        Some(window) => format!("A person has to review that in {window}"),
        None if config.is_for_person() => "Who runs this gateway has to review that".to_owned(),
        None => format!(
            "A person has to review that with `mcpzip approve {}` at a terminal",
            name.server
        ),
    };
    Words::new(
        format!("`{name}` is held back: {reason}. {way}"),
        "; use another tool, or tell the user",
    )
}

/// A person has rejected the tool.
fn rejected_tool(name: &QualifiedName) -> Words {
    Words::new(
        format!("`{name}` is held back: a person has rejected it"),
        ". Use another tool, or tell the user",
    )
}

/// It is not known whether the tool has changed since it was first seen.
fn unpinned_tool(name: &QualifiedName, fault: Option<&str>) -> Words {
    let (reason, advice) = match fault {
        Some(fault) => (
            format!("cannot be checked ({fault})"),
            ". A person has to check that file (`mcpzip doctor` says how); use another tool, or tell the user",
        ),
        None => (
            "is not known yet".to_owned(),
            ". Call again when its server has listed its tools; use another tool, or tell the user",
        ),
    };
    Words::new(
        format!("`{name}` is held back: whether it has changed since it was first seen {reason}"),
        advice,
    )
}

/// The user's override of the tool cannot be applied.
fn unadapted_tool(name: &QualifiedName) -> Words {
    Words::new(
        format!(
            "`{name}` is held back, because the user's override of it (`tools.override` in the configuration) cannot be applied; `mcpzip \
             doctor {}` shows the reason",
            name.server
        ),
        ". Use another tool, or tell the user",
    )
}

/// The call has an argument that only the user sets.
fn preset_argument(name: &QualifiedName, rejected: &Rejected) -> Words {
    match rejected {
        Rejected::Preset(argument) => Words::new(
            format!(
                "`{name}` was not called: its argument `{argument}` is set by the user's configuration and cannot be given"
            ),
            "; leave it out",
        ),
        Rejected::NotAnObject => {
            format!("`{name}` was not called: its arguments must be an object").into()
        }
    }
}

/// The user has paused mcpzip.
fn held_call(name: &str, paused: &Paused) -> Words {
    Words::new(
        format!("`{name}` was not called: {paused}"),
        ". Next: tell the user, and call again when the user has resumed it",
    )
}

/// The tool is meant for its server's own interface.
fn app_only_tool(name: &QualifiedName) -> Words {
    Words::new(
        format!(
            "`{name}` is kept from models by its server, which uses it in its own interface (`_meta.ui.visibility`)"
        ),
        ": use another tool",
    )
}

/// A read-only request failed.
pub(in crate::proxy) fn failed_request(what: &str, error: &CallError) -> String {
    format!("{what} failed: {error}")
}

/// The arguments are invalid. The text lists each fault and the tool's signature.
fn unfit_arguments(name: &QualifiedName, faults: &[Fault], signature: &str) -> String {
    let faults: Vec<String> = faults
        .iter()
        .map(|fault| match fault.path.as_str() {
            path if path.is_empty() || fault.message.starts_with(&format!("`{path}`")) => {
                format!("- {}", fault.message)
            }
            path => format!("- {path}: {}", fault.message),
        })
        .collect();
    format!(
        "`{name}` was not called, its arguments do not fit:\n{}\nCall it as {signature}",
        faults.join("\n")
    )
}

/// A call failed without an answer.
fn failed_call(view: &View, name: &QualifiedName, error: &CallError) -> Words {
    let next = match error {
        CallError::Connect(error) => match &**error {
            ConnectError::Spawn { .. } | ConnectError::Configuration { .. } => {
                "check its entry in the configuration"
            }
            ConnectError::NotStarted { .. } => "a person has to change its entry or this machine",
            ConnectError::Disabled { .. }
            | ConnectError::Unapproved { .. }
            | ConnectError::NoPerson { .. }
            | ConnectError::Unknown { .. } => "use another tool",
            ConnectError::Http { error, .. } => after_http(error),
            ConnectError::ShuttingDown => "nothing more can be called",
            ConnectError::Ended { .. }
            | ConnectError::NotMcp { .. }
            | ConnectError::Timeout { .. }
            | ConnectError::Transport { .. }
            | ConnectError::Unhealthy { .. }
            | ConnectError::Stopped { .. }
            | ConnectError::Handshake { .. } => "a new call tries to connect again",
        },
        CallError::Connecting { .. } => {
            "nothing was sent, and the server is still starting; call again in a moment"
        }
        CallError::Lost {
            may_have_acted: true,
            ..
        } => {
            "it may or may not have acted, so the call was not repeated; check before calling again, which restarts the server"
        }
        CallError::Lost { .. } => "call again to restart the server",
        CallError::Timeout { .. } => {
            "the call was cancelled; it may have acted; `timeout` (seconds) allows more"
        }
        CallError::TooLarge { .. } => "ask for less at once",
        CallError::Malformed { .. } => "the tool may have acted",
        CallError::Http { error, .. } => after_http(error),
        CallError::Busy { .. } => "call again later",
        CallError::Uncompared { .. } => "nothing was called; call again to try again",
        CallError::Changed { .. } => {
            "nothing was called; call again, so that the user is asked about the tool as it is now"
        }
        CallError::Withheld { .. } => return held_tool(view, name, None, None),
        CallError::Paused(paused) => return held_call(&name.to_string(), paused),
    };
    Words::new(
        format!("`{name}` failed: {error}"),
        format!(". Next: {next}."),
    )
}

fn after_http(error: &HttpError) -> &'static str {
    match error {
        HttpError::Unreachable { .. } => "nothing was sent; a new call tries to connect again",
        HttpError::Insecure { .. } => "nothing was sent; check its entry in the configuration",
        HttpError::Login {
            need: AuthRequired::Credentials | AuthRequired::Header,
            ..
        } => "a person has to give it valid credentials in the configuration",
        HttpError::Command { .. }
        | HttpError::Login {
            need: AuthRequired::Command,
            ..
        } => "a person has to fix that command, which is run again with the next call",
        HttpError::Login {
            need: AuthRequired::Rights,
            ..
        } => "use another tool",
        HttpError::Login {
            need: AuthRequired::Patience(_),
            ..
        } => "call again later",
        HttpError::Identity(_) => "nothing was sent; tell the user",
        HttpError::Endless { .. }
        | HttpError::Login {
            need: AuthRequired::Identity | AuthRequired::Client,
            ..
        } => "tell the user",
        HttpError::Login { .. } => "call again when a person has done that",
        HttpError::Elsewhere { .. } => "nothing was sent; use another tool",
        HttpError::TooLarge { .. } => "it may have acted; ask for less, such as one page",
        HttpError::Status {
            status: 429 | 503, ..
        } => "call again later",
        HttpError::Status { status: 500.., .. } => "it may have acted; check before calling again",
        HttpError::Status { .. } | HttpError::Redirect { .. } | HttpError::NoEndpoint { .. } => {
            "check its entry in the configuration"
        }
        HttpError::ContentType { .. } => {
            "it may have acted; check that its URL is that of an MCP server"
        }
    }
}

/// The server answered with a JSON-RPC error.
fn refused_call(name: &QualifiedName, message: &str, data: Option<&str>) -> String {
    let data = data
        .map(|data| format!(" {}", shortened(&telemetry::masked(data), 500)))
        .unwrap_or_default();
    format!("`{name}` was refused by its server: {message}{data}")
}
