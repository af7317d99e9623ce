//! Words for what went wrong, as agents read them. Everything that names a failure to an agent comes from here.

use crate::proxy::arguments::Fault;
use crate::telemetry;
use crate::text::shortened;
use crate::tool::QualifiedName;
use crate::upstream::oauth::AuthRequired;
use crate::upstream::{CallError, ConnectError, HttpError};

/// No tool has this name.
pub(in crate::proxy) fn unknown_tool(name: &str, nearest: &[String]) -> String {
    let advice = match nearest {
        [] => "find it with search_tools".to_owned(),
        nearest => format!("did you mean {}?", nearest.join(", ")),
    };
    format!("there is no tool `{name}`: {advice}")
}

/// The user's rules deny the tool.
pub(in crate::proxy) fn denied_tool(name: &QualifiedName) -> String {
    format!(
        "`{name}` is switched off by the user's rules (`tools` in the configuration): use another tool, or tell the user"
    )
}

/// The tool is not what the user came to trust.
pub(in crate::proxy) fn held_tool(name: &QualifiedName) -> String {
    format!(
        "`{name}` is held back: its server changed what it says of it after it was first seen. A person has to look at that, by \
         `mcpzip approve {}` at a terminal; use another tool, or tell the user",
        name.server
    )
}

/// It is not known whether the tool is what the user came to trust.
pub(in crate::proxy) fn unpinned_tool(name: &QualifiedName, fault: Option<&str>) -> String {
    let (reason, advice) = match fault {
        Some(fault) => (
            format!("cannot be told ({fault})"),
            "A person has to look at that file",
        ),
        None => (
            "is not known yet".to_owned(),
            "Call again when its server has listed its tools",
        ),
    };
    format!(
        "`{name}` is held back: whether it is still what it was when it was first seen {reason}. {advice}; use another tool, or \
         tell the user"
    )
}

/// The tool is there for its server's own interface.
pub(in crate::proxy) fn app_only_tool(name: &QualifiedName) -> String {
    format!(
        "`{name}` is kept from models by its server, for the use of its own interface (`_meta.ui.visibility`): use another tool"
    )
}

/// No prompt has this name.
pub(in crate::proxy) fn unknown_prompt(name: &str, nearest: &[String]) -> String {
    let advice = match nearest {
        [] => "prompts/list has those there are".to_owned(),
        nearest => format!("did you mean {}?", nearest.join(", ")),
    };
    format!("there is no prompt `{name}`: {advice}")
}

/// A request that only reads has no answer.
pub(in crate::proxy) fn failed_request(what: &str, error: &CallError) -> String {
    format!("{what} failed: {error}")
}

/// The arguments do not fit; what each fault is, and how to call the tool.
pub(in crate::proxy) fn unfit_arguments(
    name: &QualifiedName,
    faults: &[Fault],
    signature: &str,
) -> String {
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

/// A call has no answer; what to do about it.
pub(in crate::proxy) fn failed_call(name: &QualifiedName, error: &CallError) -> String {
    let next = match error {
        CallError::Connect(error) => match &**error {
            ConnectError::Spawn { .. } | ConnectError::Configuration { .. } => {
                "check its entry in the configuration"
            }
            ConnectError::Disabled { .. } | ConnectError::Unknown { .. } => "use another tool",
            ConnectError::Http { error, .. } => after_http(error),
            ConnectError::ShuttingDown => "nothing more can be called",
            ConnectError::Ended { .. }
            | ConnectError::Timeout { .. }
            | ConnectError::Handshake { .. } => "a new call tries to connect again",
        },
        CallError::Connecting { .. } => {
            "nothing was sent, and its start goes on; call again in a moment"
        }
        CallError::Lost {
            may_have_acted: true,
            ..
        } => {
            "it may or may not have acted, so the call was not repeated; check before calling again, which starts it anew"
        }
        CallError::Lost { .. } => "call again to start it anew",
        CallError::Timeout { .. } => {
            "the call was cancelled; it may have acted; `timeout` (seconds) allows more"
        }
        CallError::TooLarge { .. } => "ask for less at once",
        CallError::Malformed { .. } => "the tool may have acted",
        CallError::Http { error, .. } => after_http(error),
        CallError::Busy { .. } => "call again later",
        CallError::Uncompared { .. } => "nothing was called; call again to try again",
        CallError::Withheld { .. } => return held_tool(name),
    };
    format!("`{name}` failed: {error}. Next: {next}.")
}

fn after_http(error: &HttpError) -> &'static str {
    match error {
        HttpError::Unreachable { .. } => "nothing was sent; a new call tries to connect again",
        HttpError::Insecure { .. } => "nothing was sent; check its entry in the configuration",
        HttpError::Login {
            need: AuthRequired::Credentials,
            ..
        } => "a person has to give it valid credentials in the configuration",
        HttpError::Command { .. }
        | HttpError::Login {
            need: AuthRequired::Command,
            ..
        } => "a person has to look after that command, which is run again with the next call",
        HttpError::Login {
            need: AuthRequired::Rights,
            ..
        } => "use another tool",
        HttpError::Login {
            need: AuthRequired::Patience(_),
            ..
        } => "call again later",
        HttpError::Login { .. } => "call again when a person has done that",
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
pub(in crate::proxy) fn refused_call(
    name: &QualifiedName,
    message: &str,
    data: Option<&str>,
) -> String {
    let data = data
        .map(|data| format!(" {}", shortened(&telemetry::masked(data), 500)))
        .unwrap_or_default();
    format!("`{name}` was refused by its server: {message}{data}")
}
