//! Why an entry of a client cannot move.

use std::path::PathBuf;

use crate::clients::Client;

/// Why an entry cannot move, worded to follow the server's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unmovable {
    /// It is not a map.
    #[error("is not an entry for a server")]
    NoEntry,
    /// It has an unpaired surrogate.
    #[error("has an unpaired surrogate, such as `\\ud83d`, which cannot be passed to a server")]
    HalfCharacter,
    /// It has two targets.
    #[error("has both a command and a URL; which one counts is not clear")]
    BothTargets,
    /// It has no target.
    #[error("has neither a command nor a URL")]
    NoTarget,
    /// It is laid over a server of the user's, without a target of its own.
    #[error(
        "only changes your own `{name}` of another file; its limits go with that server. Without it {} may refuse this entry: remove it once the server has moved",
        client.title()
    )]
    Part { name: String, client: Client },
    /// It needs something that only its client provides.
    #[error("{need}, which only {} does", client.title())]
    NeedsClient { need: &'static str, client: Client },
    /// It is a part of its client.
    #[error("is a part of {} (`{kind}`)", client.title())]
    PartOfClient { kind: String, client: Client },
    /// It speaks over WebSocket.
    #[error("speaks over WebSocket, which mcpzip does not")]
    WebSocket,
    /// Its URL has another scheme than HTTP.
    #[error("is reached by `{0}`, which mcpzip does not speak")]
    Scheme(String),
    /// Its `type` is none of a remote server.
    #[error("is of type `{0}`, which is not known")]
    Type(String),
    /// Its login has a key without a counterpart.
    #[error("logs in with `{0}`, which mcpzip has no word for")]
    Login(String),
    /// A path of an entry outside of projects is relative.
    #[error("its {key} `{path}` is relative to the directory that the client runs in")]
    Relative { key: String, path: String },
    /// Its command is empty.
    #[error("has a `{0}` that names no program")]
    NoProgram(&'static str),
    /// A value is of the wrong kind.
    #[error("has {0} that is not a string")]
    NoText(String),
    /// A member is of the wrong kind.
    #[error("has a form of `{0}` that is not known here")]
    Form(String),
    /// It has a reference that only its client can expand.
    #[error("needs `{written}`, which only {} can fill in", client.title())]
    Reference { written: String, client: Client },
    /// It has a `$` that our syntax would read as an escape.
    #[error("has `$` before `{0}`, which would mean something else here")]
    Dollar(String),
    /// It is in mcpzip's configuration, not in a client's file.
    #[error("is configured at mcpzip")]
    Configured,
    /// The client loads the servers of this file only.
    #[error("does not run: Claude Code loads nothing but what {} has", .0.display())]
    NotLoaded(PathBuf),
    /// The settings in this file keep the profile of VS Code that has it from starting servers.
    #[error("does not run: `{key}` in {} starts no servers of this profile", path.display())]
    NotStarted { key: &'static str, path: PathBuf },
    /// The settings in this file deny it.
    #[error("is blocked by `deniedMcpServers` in {}", .0.display())]
    Denied(PathBuf),
    /// The settings in this file allow others only.
    #[error("is blocked: `allowedMcpServers` in {} does not have it", .0.display())]
    NotAllowed(PathBuf),
    /// An administrator's file of Codex has others only.
    #[error("is blocked: `mcp_servers` in {} has no entry with its name and its command or URL", .0.display())]
    NotRequired(PathBuf),
}
