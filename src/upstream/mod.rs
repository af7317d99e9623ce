//! Live links to MCP servers: one connection per server, made when it is needed and closed when it is not.
//!
//! The [`Pool`] is the way in: it connects once however many ask, passes calls on side by side, repeats none that may
//! have acted, and lets nobody wait for a server that is not theirs.
//!
//! *Invariant*: nothing here knows what a tool means, nor the client that asked. No lock is held across an await.

mod concurrency;
mod connection;
mod connector;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod guard;
mod handshake;
mod headers_command;
mod health;
mod host;
mod inbound;
mod introduction;
mod link;
mod list_limits;
mod listing;
mod log;
pub(crate) mod oauth;
mod opening;
mod paging;
mod pinned;
mod pool;
mod process_group;
mod program;
mod reply;
mod retry;
mod server_events;
mod sharing;
mod slot;
mod slots;
mod subscription;
mod transport;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use connection::ServerCall;
pub(crate) use error::{CallError, ConnectError};
#[cfg(unix)]
pub(crate) use guard::{COMMAND as GUARD_COMMAND, run as run_guard};
pub(crate) use host::{Asking, Audience, Comparing, Host, Notice, Question};
pub(crate) use introduction::Introduction;
pub(crate) use listing::{ListError, Listing};
pub(crate) use log::ServerLog;
pub(crate) use pool::{Pool, ServerStatus, Urgent};
pub(crate) use program::find as find_program;
pub(crate) use reply::{ServerReply, code_of, message_of, required_input};
pub(crate) use retry::backoff;
pub(crate) use sharing::SharedServers;
pub(crate) use slot::State;
pub(crate) use transport::http::HttpError;
pub(crate) use transport::http::mirrors::mirrored;

use crate::config;
use crate::config::env::Environment;
use crate::config::{Network, SessionEnv};
use crate::shutdown::Tasks;
use guard::Guard;
use headers_command::HeadersCommands;
use transport::http::client::Clients;

/// So many times longer has a server that may have to be installed first.
const INSTALLING: u32 = 6;

/// The largest message that is taken from a server, in bytes.
pub(crate) const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;

/// What all connections share: tasks, variables, directories, limits, HTTP clients.
#[derive(Debug)]
pub(crate) struct UpstreamContext {
    /// Where tasks are spawned.
    pub tasks: Tasks,
    /// The session's variables, of which servers inherit a few.
    pub variables: Environment,
    /// The session's directory, in which servers run whose entries name none.
    pub directory: Option<PathBuf>,
    /// Where the servers' stderr is kept; `None` keeps none.
    pub log_directory: Option<PathBuf>,
    /// Where it is remembered which servers asked for roots; `None` forgets it.
    pub sharing_directory: Option<PathBuf>,
    /// Where logins are kept; without it there are none.
    pub logins: Option<Arc<oauth::Vault>>,
    /// How long a server has to answer the handshake; longer if it may have to be installed first.
    pub handshake_limit: Duration,
    guard: Arc<Guard>,
    /// The servers that the session uses with others.
    servers: Arc<SharedServers>,
    clients: Clients,
    headers_commands: HeadersCommands,
}

impl UpstreamContext {
    /// A context with the usual limits.
    #[must_use]
    pub(crate) fn new(
        servers: Arc<SharedServers>,
        session: SessionEnv,
        log_directory: Option<PathBuf>,
    ) -> Self {
        Self {
            tasks: servers.tasks.clone(),
            guard: servers.guard.clone(),
            servers,
            clients: Clients::new(Network::of(&session.environment)),
            variables: session.environment,
            directory: session.directory,
            log_directory,
            sharing_directory: None,
            logins: None,
            handshake_limit: Duration::from_secs(30),
            headers_commands: HeadersCommands::default(),
        }
    }

    /// How long a server that is reached so has to answer the handshake.
    fn handshake_limit_of(&self, transport: &config::Transport) -> Duration {
        match transport {
            // One that is cut off in the middle may leave a broken package behind, which fails at once ever after.
            config::Transport::Stdio(transport) if transport.may_install() => {
                self.handshake_limit * INSTALLING
            }
            _ => self.handshake_limit,
        }
    }

    fn of_child(&self, transport: &config::Stdio) -> Environment {
        let variables = config::env::child_environment(&self.variables, &transport.env);
        variables.into_iter().chain(self.guard.variable()).collect()
    }
}
