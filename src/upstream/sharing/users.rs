//! The sessions that share a server's slots.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tracing::Level;
use tracing::level_filters::LevelFilter;

use crate::config::env::{AGEING, is_ageing};
use crate::config::{Sharing, Transport};
use crate::mcp::{ClientCapabilities, LogLevel};
use crate::secret::Secret;
use crate::shutdown::LogLines;
use crate::tool::{ServerName, ToolHash};
use crate::upstream::followed::Followed;
use crate::upstream::host::{Audience, Comparing, Host, Notice};
use crate::upstream::{Listing, NotListed, UpstreamContext};

/// The sessions that share a server's slots. Its processes start in the context of the first session, with volatile
/// values from the newest.
pub(in crate::upstream) struct Users {
    /// How the server is shared; `None` in a run of its own.
    pub(super) sharing: Option<Sharing>,
    first: Arc<UpstreamContext>,
    /// The sessions, oldest first.
    all: RwLock<Vec<User>>,
    /// When the last session left.
    left: Mutex<Instant>,
    /// Called when the server asks for roots.
    asked_for_roots: Box<dyn Fn() + Send + Sync>,
}

/// One of these sessions.
struct User {
    number: u64,
    session: Arc<UpstreamContext>,
    audience: Arc<dyn Audience>,
    /// The resources and tasks that it follows.
    followed: BTreeSet<Followed>,
}

impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Users")
            .field("sharing", &self.sharing)
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

impl Users {
    pub(super) fn new(
        first: Arc<UpstreamContext>,
        sharing: Option<Sharing>,
        asked_for_roots: Box<dyn Fn() + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            sharing,
            first,
            all: RwLock::default(),
            left: Mutex::new(Instant::now()),
            asked_for_roots,
        })
    }

    pub(super) fn add(
        &self,
        number: u64,
        session: Arc<UpstreamContext>,
        audience: Arc<dyn Audience>,
    ) {
        self.all.write().push(User {
            number,
            session,
            audience,
            followed: BTreeSet::new(),
        });
    }

    pub(in crate::upstream) fn remove(&self, number: u64) {
        self.all.write().retain(|user| user.number != number);
        *self.left.lock() = Instant::now();
    }

    pub(super) fn count(&self) -> usize {
        self.all.read().len()
    }

    /// The time since the last session left.
    pub(super) fn unused_for(&self) -> Duration {
        self.left.lock().elapsed()
    }

    /// The session whose directory and variables the server's processes get: the first one, or the newest if the
    /// first one's directory no longer exists.
    pub(in crate::upstream) fn context(&self) -> Arc<UpstreamContext> {
        let is_gone = |session: &UpstreamContext| {
            let directory = session.directory.as_ref();
            directory.is_some_and(|directory| !directory.is_dir())
        };
        let newest = || self.all.read().last().map(|user| user.session.clone());
        match self.sharing {
            Some(_) if is_gone(&self.first) => newest().unwrap_or_else(|| self.first.clone()),
            _ => self.first.clone(),
        }
    }

    /// `transport` with the volatile values of the newest session.
    pub(in crate::upstream) fn renewed<'t>(&self, transport: &'t Transport) -> Cow<'t, Transport> {
        let newest = self.all.read().last().map(|user| user.session.clone());
        let (Transport::Stdio(stdio), Some(newest)) = (transport, newest) else {
            return Cow::Borrowed(transport);
        };
        let mut renewed = stdio.clone();
        for name in AGEING {
            if let Some(value) = renewed.env.get_mut(name)
                && is_ageing(name, value.expose(), &self.first.variables)
                && let Some(current) = newest.variables.get(name)
            {
                *value = Secret::new(current.to_owned());
            }
        }
        Cow::Owned(Transport::Stdio(renewed))
    }

    /// Sets the resources that a session follows; returns those of all sessions.
    pub(in crate::upstream) fn follow(
        &self,
        number: u64,
        uris: BTreeSet<Followed>,
    ) -> BTreeSet<Followed> {
        let mut all = self.all.write();
        if let Some(user) = all.iter_mut().find(|user| user.number == number) {
            user.followed = uris;
        }
        all.iter().flat_map(|user| user.followed.clone()).collect()
    }

    fn audiences(&self) -> Vec<Arc<dyn Audience>> {
        self.all
            .read()
            .iter()
            .map(|user| user.audience.clone())
            .collect()
    }

    fn newest(&self) -> Option<Arc<dyn Audience>> {
        self.all.read().last().map(|user| user.audience.clone())
    }
}

/// All sessions get the lines about their server.
impl LogLines for Users {
    fn is_wanted(&self, level: Level) -> bool {
        let all = self.all.read();
        let mut receivers = all
            .iter()
            .filter_map(|user| user.session.log_lines.as_ref());
        receivers.any(|lines| lines.is_wanted(level))
    }

    fn line(&self, level: Level, line: &str) {
        for user in self.all.read().iter() {
            if let Some(lines) = &user.session.log_lines
                && lines.is_wanted(level)
            {
                lines.line(level, line);
            }
        }
    }

    /// A server has no configuration of its own.
    fn configure(&self, _level: Option<LevelFilter>) {}
}

impl Audience for Users {
    fn capabilities(&self) -> ClientCapabilities {
        self.newest()
            .map_or(ClientCapabilities::NONE, |newest| newest.capabilities())
    }

    /// The lowest level, if every session has set one.
    fn log_level(&self) -> Option<LogLevel> {
        let audiences = self.audiences();
        audiences.iter().map(|one| one.log_level()).min().flatten()
    }

    fn hosts(&self, server: &ServerName, method: &str) -> Vec<Arc<dyn Host>> {
        let audiences = self.audiences();
        audiences
            .iter()
            .flat_map(|audience| audience.hosts(server, method))
            .collect()
    }

    fn roots(&self) -> Option<Vec<PathBuf>> {
        (self.asked_for_roots)();
        self.sharing.as_ref()?;
        // A single session's client is asked, as without other sessions.
        if self.count() == 1 {
            return None;
        }
        let context = self.context();
        let is_project = |directory: &&PathBuf| {
            // Many programs with windows start their servers in one of these.
            let home = context.variables.get("HOME").map(Path::new);
            directory.parent().is_some() && home != Some(directory.as_path())
        };
        Some(
            context
                .directory
                .iter()
                .filter(is_project)
                .cloned()
                .collect(),
        )
    }

    fn compare(&self, server: &ServerName, listing: Listing) -> Comparing {
        match self.newest() {
            Some(newest) => newest.compare(server, listing),
            None => Box::pin(async { Err(NotListed::Unused) }),
        }
    }

    fn is_pinned(&self, server: &ServerName) -> bool {
        self.audiences().iter().any(|one| one.is_pinned(server))
    }

    fn is_withheld(&self, server: &ServerName, tool: &str) -> bool {
        let audiences = self.audiences();
        audiences.is_empty() || audiences.iter().any(|one| one.is_withheld(server, tool))
    }

    fn definition(&self, server: &ServerName, tool: &str) -> Option<ToolHash> {
        self.newest()?.definition(server, tool)
    }

    fn may_start(&self, server: &ServerName) -> bool {
        self.audiences().iter().any(|one| one.may_start(server))
    }

    fn noticed(&self, server: &ServerName, notice: Notice<'_>) {
        self.audiences()
            .iter()
            .for_each(|audience| audience.noticed(server, notice));
    }
}
