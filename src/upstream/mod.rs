//! Connections to MCP servers: one per server, opened on demand and closed when idle.
//!
//! The [`Pool`] is the entry point. Concurrent callers share one connection attempt, and calls run in parallel. A
//! call that may have acted is not repeated, unless its tool is declared read-only or idempotent. A slow server
//! delays only its own callers.
//!
//! *Invariant*: nothing here knows the meaning of a tool, or the kind of client that calls it. No lock is held across
//! an await.

mod concurrency;
mod connection;
mod connector;
mod container;
mod error;
mod followed;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod guard;
mod handshake;
mod headers_command;
mod health;
mod home;
mod host;
mod inbound;
mod interface;
mod introduction;
mod link;
mod list_limits;
mod listing;
mod log;
pub(crate) mod oauth;
mod opening;
mod outline;
mod own;
mod packages;
mod paging;
pub(crate) mod person;
mod pinned;
mod placed;
mod pool;
mod process_group;
mod raw_result;
mod receiver;
mod reply;
mod retry;
mod run;
mod server_events;
mod sharing;
mod skills;
mod slot;
mod slots;
mod source;
mod subscription;
mod transport;
mod wire;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use connection::ServerCall;
pub(crate) use error::{CallError, ConnectError, ListError, NotListed};
pub(crate) use followed::Followed;
#[cfg(unix)]
pub(crate) use guard::{COMMAND as GUARD_COMMAND, run as run_guard};
pub(crate) use home::{Attached, Homes, Wanted};
pub(crate) use host::{Asking, Audience, Comparing, Host, Notice, Question};
pub(crate) use interface::{Interface, InterfaceAnswer, InterfaceRequest};
pub(crate) use introduction::Introduction;
pub(crate) use listing::Listing;
pub(crate) use log::ServerLog;
pub(crate) use own::{OpenStreams, OwnServer, OwnServers, Streams};
pub(crate) use packages::{DIRECTORY as PACKAGES, fetched_version};
pub(crate) use placed::Placed;
pub(crate) use pool::{Pool, ServerStatus, Urgent};
pub(crate) use raw_result::{RawResult, Word};
pub(crate) use reply::{
    ServerReply, code_of, may_have_text, message_of, required_input, with_plain_code,
};
pub(crate) use retry::backoff;
pub(crate) use run::{Finished, Run};
pub(crate) use sharing::{SharedServers, list_name};
pub(crate) use skills::{
    EXTENSION as SKILLS, INSTRUCTIONS as SKILL_INSTRUCTIONS, of_definition as skill_of_definition,
};
pub(crate) use slot::ServerState;
pub(crate) use source::{DIGEST, OpenSource, SCHEMA_MARK, SCHEMA_REQUEST, Source, SourceError};
pub(crate) use transport::http::HttpError;
pub(crate) use transport::http::mirrors::mirrored;

use crate::config;
use crate::config::env::Environment;
use crate::config::{Network, SessionEnv};
use crate::events::{Event, Events};
use crate::sandbox::Sandboxes;
use crate::shutdown::{self, LogLines, Tasks};
use guard::Guard;
use headers_command::HeadersCommands;
use transport::http::client::Clients;

/// The factor by which limits are longer for a server that may have to be installed first, or whose tools come from a program's help.
const INSTALLING: u32 = 6;

/// The size limit of a message from a server, in bytes.
pub(crate) const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;

/// The context that all connections share: tasks, environment variables, directories, limits, HTTP clients.
pub(crate) struct UpstreamContext {
    /// Spawns the tasks.
    pub tasks: Tasks,
    /// The session's environment variables; servers inherit a few of them.
    pub variables: Environment,
    /// The session's directory, the default working directory of servers.
    pub directory: Option<PathBuf>,
    /// The person that the connections are for, if it is known; others get connections of their own.
    pub person: Option<Arc<person::Person>>,
    /// The vault of people's logins; without it, there are none.
    pub logins_of_people: Option<Arc<oauth::Vault>>,
    exchanges: oauth::Exchanges,
    /// The soft limit of open files of servers, if it is not that of this process.
    pub open_files: Option<u64>,
    /// The directory of the servers' stderr logs; `None` keeps none.
    pub log_directory: Option<PathBuf>,
    /// The directory of the records of servers that asked for roots; `None` keeps none.
    pub sharing_directory: Option<PathBuf>,
    /// The vault of logins; without it, there are no logins.
    pub logins: Option<Arc<oauth::Vault>>,
    /// The time limit of the handshake; longer if the server may have to be installed first.
    pub handshake_limit: Duration,
    /// Makes servers inside the program; `None` refuses entries that need one.
    pub sources: Option<Arc<dyn OpenSource>>,
    /// Makes the sandboxes of servers.
    pub sandboxes: Arc<Sandboxes>,
    /// The directory of fetched packages; `None` leaves packages to their runners.
    pub packages: Option<PathBuf>,
    guard: Arc<Guard>,
    /// Receives the session's log lines.
    log_lines: Option<Arc<dyn LogLines>>,
    /// The servers that the session shares with others.
    servers: Arc<SharedServers>,
    clients: Clients,
    headers_commands: HeadersCommands,
    /// The way to servers that run at one of several replicas.
    pub(crate) homes: OnceLock<Arc<dyn Homes>>,
}

impl std::fmt::Debug for UpstreamContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamContext")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl UpstreamContext {
    /// The events of its servers.
    pub(crate) fn events(&self) -> &Arc<Events> {
        &self.servers.events
    }

    /// Notes an event of a server, whose connection is that of the context's person alone.
    pub(crate) fn note(&self, event: impl FnOnce() -> Event) {
        let owner = self.person.as_ref().map(|person| person.identity());
        self.events().note_of(owner, event);
    }

    /// Creates a context with the default limits.
    #[must_use]
    pub(crate) fn new(
        servers: Arc<SharedServers>,
        session: SessionEnv,
        log_directory: Option<PathBuf>,
    ) -> Self {
        Self {
            tasks: servers.tasks.clone(),
            guard: servers.guard.clone(),
            log_lines: shutdown::log_lines(),
            servers,
            clients: Clients::new(Network::of(&session.environment)),
            variables: session.environment,
            directory: session.directory,
            open_files: session.open_files,
            log_directory,
            sharing_directory: None,
            person: None,
            logins_of_people: None,
            exchanges: oauth::Exchanges::default(),
            logins: None,
            sources: None,
            sandboxes: Arc::default(),
            packages: None,
            handshake_limit: Duration::from_secs(30),
            headers_commands: HeadersCommands::default(),
            homes: OnceLock::new(),
        }
    }

    /// The time limit of the handshake for this transport.
    fn handshake_limit_of(&self, transport: &config::Transport) -> Duration {
        match transport {
            // An installation that is aborted midway may leave a broken package, which then fails every time.
            config::Transport::Stdio(transport)
                if transport.may_install() || transport.reads_help() =>
            {
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
