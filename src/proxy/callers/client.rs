//! A client as the proxy knows it: capabilities, interests, and open questions.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::{OnceCell, oneshot};

use super::listener::Listener;
use crate::mcp::object::quoted;
use crate::mcp::{
    ClientCapabilities, ErrorCode, Extensions, Frame, LogLevel, Object, Outbox, Outcome,
};
use crate::proxy::view::SessionSurface;
use crate::replicas::ClientOfReplica;
use crate::secret::random_token;
use crate::tool::{QualifiedName, ServerName};
use crate::upstream::ServerReply;

/// The maximum number of places that a client's user may be at.
const MOST_ELSEWHERE: usize = 64;

/// The person behind a client in this process. No message carries the question, so no server can imitate it.
pub(crate) trait Consenting: Send + Sync {
    /// Whether the tool may be called with these arguments, which `question` shows for reading.
    ///
    /// # Errors
    /// The reason why there is no answer.
    fn consents<'a>(
        &'a self,
        name: &'a QualifiedName,
        arguments: &'a str,
        question: &'a str,
    ) -> BoxFuture<'a, Result<bool, String>>;
}

impl std::fmt::Debug for dyn Consenting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consenting").finish_non_exhaustive()
    }
}

/// One client, from its first message to its last.
#[derive(Debug)]
pub(crate) struct Client {
    number: u64,
    /// The client whose share of the filter workers it uses, if not its own.
    share: OnceLock<u64>,
    /// The listener for the server's own messages, after a handshake.
    listener: Arc<Listener>,
    state: Mutex<State>,
    questions: Mutex<HashMap<u64, oneshot::Sender<ServerReply>>>,
    next_question: AtomicU64,
    /// The places that servers sent its user to: the server, and its id of the question.
    elsewhere: Mutex<VecDeque<(ServerName, String)>>,
    /// Its name and version, as given first.
    software: OnceLock<(String, String)>,
    /// Whether it shows interfaces of tools, as declared first.
    interfaces: OnceLock<bool>,
    /// Its identity, if it showed one.
    person: OnceLock<Arc<str>>,
    /// The definitions of the meta-tools that it got first.
    definitions: Mutex<Option<Bytes>>,
    /// How it sees the servers' tools, once that is decided.
    surface: OnceLock<SessionSurface>,
    /// The client as all replicas know it, if there are several.
    replica: OnceLock<ClientOfReplica>,
    /// Who decides for it, if it is in this process.
    consenting: OnceLock<Arc<dyn Consenting>>,
}

/// A client's identity in records.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct Identity {
    /// The session id, unique among all processes.
    pub(in crate::proxy) session: String,
    /// Its name and version, as given.
    pub(in crate::proxy) software: Option<(String, String)>,
}

#[derive(Debug, Default)]
struct State {
    /// The capabilities that the handshake declared; `None` without a handshake.
    capabilities: Option<ClientCapabilities>,
    extensions: Extensions,
    log_level: Option<LogLevel>,
    /// The part of a result that it shows to its model, if known.
    shows: Option<Shows>,
    /// Whether it has requested the tools.
    has_listed: bool,
    /// The directories of the process that the client started.
    home: Arc<[PathBuf]>,
    /// The directories in its `roots`.
    roots: Arc<OnceCell<Vec<PathBuf>>>,
}

/// The part of a result with both text and structured content that a client shows to its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// The text blocks.
    Text,
    /// The structured content instead of the texts.
    Structured,
    /// Both.
    Both,
}

impl Shows {
    /// The part that the client with this name (`clientInfo`) shows, by observation; `None` if unknown.
    #[must_use]
    pub(crate) fn of(client: &str) -> Option<Self> {
        match client {
            "claude-code" | "codex-mcp-client" => Some(Self::Structured),
            "opencode" => Some(Self::Text),
            "copilot-cli" | "github-copilot-developer" => Some(Self::Both),
            // Newer versions append the server's name.
            name if name.starts_with("gemini-cli-mcp-client") => Some(Self::Text),
            _ => None,
        }
    }
}

/// A random name of this process.
fn process() -> &'static str {
    static PROCESS: LazyLock<String> = LazyLock::new(random_token);
    &PROCESS
}

impl Client {
    /// Creates a client that has sent nothing yet.
    #[must_use]
    pub(crate) fn new() -> Arc<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            share: OnceLock::new(),
            listener: Listener::for_session(),
            state: Mutex::default(),
            questions: Mutex::default(),
            next_question: AtomicU64::new(first_question()),
            elsewhere: Mutex::default(),
            software: OnceLock::new(),
            interfaces: OnceLock::new(),
            person: OnceLock::new(),
            definitions: Mutex::default(),
            surface: OnceLock::new(),
            replica: OnceLock::new(),
            consenting: OnceLock::new(),
        })
    }

    /// Creates the client of a program that has mcpzip as a library.
    #[must_use]
    pub(crate) fn of_program(consenting: Arc<dyn Consenting>) -> Arc<Self> {
        let client = Self::new();
        // It is new.
        let _ = client.consenting.set(consenting);
        client
    }

    /// Who decides for it, if it is in this process.
    pub(in crate::proxy) fn consenting(&self) -> Option<&dyn Consenting> {
        self.consenting.get().map(|consenting| &**consenting)
    }

    /// Makes it one that other replicas know, too.
    pub(crate) fn join_replicas(&self, replica: ClientOfReplica) {
        // It belongs to one session.
        let _ = self.replica.set(replica);
    }

    /// The client as all replicas know it.
    #[must_use]
    pub(crate) fn replica(&self) -> Option<&ClientOfReplica> {
        self.replica.get()
    }

    /// A word for a request that waits for its client's answers. It cannot be guessed, and leads every replica to this one.
    pub(in crate::proxy) fn state_word(&self) -> String {
        let replica = self.replica.get();
        replica.map_or_else(random_token, ClientOfReplica::state_word)
    }

    /// The number that identifies the client.
    #[must_use]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The client whose share of the filter workers it uses.
    #[must_use]
    pub(crate) fn share(&self) -> u64 {
        self.share.get().copied().unwrap_or(self.number)
    }

    /// Whether it stands for requests that belong to no session.
    pub(in crate::proxy) fn is_without_session(&self) -> bool {
        self.share.get().is_some()
    }

    /// Uses one share for all requests without a session from clients of this name; otherwise each request would have
    /// a share of its own.
    pub(crate) fn shares_as(&self, name: &str) {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        self.share.get_or_init(|| KEYS.hash_one(name));
    }

    /// The listener for the server's own messages.
    #[must_use]
    pub(crate) fn listener(&self) -> &Arc<Listener> {
        &self.listener
    }

    /// The capabilities that its handshake declared; `None` before the handshake.
    #[must_use]
    pub(crate) fn capabilities(&self) -> Option<ClientCapabilities> {
        self.state().capabilities
    }

    /// Records the capabilities that its handshake declares.
    pub(in crate::proxy) fn introduce(&self, capabilities: ClientCapabilities) {
        self.state().capabilities = Some(capabilities);
    }

    /// The extensions that its handshake declared, without those of its capabilities.
    #[must_use]
    pub(crate) fn extensions(&self) -> Extensions {
        self.state().extensions.clone()
    }

    /// Records the extensions that its handshake declares.
    pub(crate) fn declare(&self, extensions: Extensions) {
        self.state().extensions = extensions;
    }

    /// The part of a result that it shows to its model, if known.
    #[must_use]
    pub(crate) fn shows(&self) -> Option<Shows> {
        self.state().shows
    }

    /// Records the name that its handshake gives.
    pub(crate) fn named(&self, name: &str) {
        self.state().shows = Shows::of(name);
    }

    /// Records its name and version, once.
    pub(crate) fn note_software(&self, read: impl FnOnce() -> (String, String)) {
        self.software.get_or_init(read);
    }

    /// Records whether it shows interfaces of tools, once.
    pub(crate) fn note_interfaces(&self, capabilities: ClientCapabilities) {
        let shows = capabilities.shows_interfaces();
        if self.interfaces.set(shows).is_ok() && shows && self.has_surface() {
            self.listener.interests().tools = true;
        }
    }

    /// Whether it shows interfaces of tools (MCP Apps).
    pub(in crate::proxy) fn shows_interfaces(&self) -> bool {
        self.interfaces.get().copied().unwrap_or(false)
    }

    /// Records its identity, once.
    pub(crate) fn identify(&self, identity: &str) {
        self.person.get_or_init(|| identity.into());
    }

    /// Lets it use the meta-tools, also where clients get each tool under its own name.
    pub(crate) fn use_meta_tools(&self) {
        self.show(SessionSurface::default());
    }

    /// Its name and version, as given first.
    #[must_use]
    pub(crate) fn software_text(&self) -> Option<String> {
        let (name, version) = self.software.get()?;
        Some(format!("{name} {version}"))
    }

    /// Its identity, if it showed one.
    #[must_use]
    pub(crate) fn person(&self) -> Option<&str> {
        self.person.get().map(|identity| &**identity)
    }

    /// The definitions of the meta-tools: those of its first request, so that they stay
    /// the same for its session.
    pub(in crate::proxy) fn definitions(&self, make: impl FnOnce() -> String) -> Bytes {
        let mut definitions = self.definitions.lock();
        definitions.get_or_insert_with(|| make().into()).clone()
    }

    /// Has its definitions made again, because they name servers that it does not see any more.
    pub(in crate::proxy) fn forget_definitions(&self) {
        *self.definitions.lock() = None;
    }

    /// How it sees the servers' tools.
    pub(in crate::proxy) fn surface(&self) -> SessionSurface {
        let mut surface = self.surface.get().cloned().unwrap_or_default();
        // A client may say so only after it has discovered the server.
        surface.shows_interfaces |= self.surface.get().is_some() && self.shows_interfaces();
        surface
    }

    /// How it sees the servers' tools, for its session's id.
    #[must_use]
    pub(crate) fn surface_bits(&self) -> u8 {
        self.surface().bits()
    }

    /// Its name and version, as given first.
    #[must_use]
    pub(crate) fn software(&self) -> Option<&(String, String)> {
        self.software.get()
    }

    /// Whether it has been decided how it sees the servers' tools.
    pub(in crate::proxy) fn has_surface(&self) -> bool {
        self.surface.get().is_some()
    }

    /// Records how it sees the servers' tools, once.
    pub(in crate::proxy) fn show(&self, surface: SessionSurface) {
        // The meta-tools never change.
        let can_change = surface.lists_tools_of_servers();
        if self.surface.set(surface).is_ok() {
            self.listener.interests().tools = can_change;
        }
    }

    /// Its name, as given first.
    pub(in crate::proxy) fn software_name(&self) -> Option<&str> {
        self.software.get().map(|(name, _)| name.as_str())
    }

    /// The client's identity for records.
    pub(in crate::proxy) fn identity(&self) -> Identity {
        let of_replicas = self.replica.get().and_then(ClientOfReplica::session);
        Identity {
            session: match of_replicas {
                Some(session) => session.to_owned(),
                None => format!("{}-{}", process(), self.number),
            },
            software: self.software.get().cloned(),
        }
    }

    /// The id of its session for approvals. Requests without a session from clients of one name share it.
    pub(in crate::proxy) fn session(&self) -> String {
        let Some(replica) = self.replica.get() else {
            return format!("{}-{:x}", process(), self.share());
        };
        match replica.session() {
            Some(session) => session.to_owned(),
            // At every replica alike.
            None => format!(
                "{}-{}",
                replica.identity_name(),
                self.software_name().unwrap_or_default()
            ),
        }
    }

    /// Sets the directories this process was started in on the client's behalf.
    pub(crate) fn set_workspace(&self, home: Arc<[PathBuf]>) {
        self.state().home = home;
    }

    /// The client's `roots`, once they have been fetched.
    pub(in crate::proxy) fn roots(&self) -> Arc<OnceCell<Vec<PathBuf>>> {
        self.state().roots.clone()
    }

    /// Takes directories that came when nothing waited for `roots` any more, unless they have changed meanwhile.
    pub(in crate::proxy) fn roots_came(
        &self,
        roots: &Arc<OnceCell<Vec<PathBuf>>>,
        directories: Vec<PathBuf>,
    ) {
        let mut state = self.state();
        if Arc::ptr_eq(&state.roots, roots) {
            state.roots = Arc::new(OnceCell::new_with(Some(directories)));
        }
    }

    /// Forgets the client's `roots`, because they have changed.
    pub(crate) fn moved(&self) {
        self.state().roots = Arc::default();
    }

    /// The client's workspace, as far as it is known.
    pub(in crate::proxy) fn workspace(&self) -> Arc<[PathBuf]> {
        let state = self.state();
        match state.roots.get() {
            None => state.home.clone(),
            Some(roots) if roots.iter().all(|root| state.home.contains(root)) => state.home.clone(),
            Some(roots) => {
                let mut workspace: Vec<PathBuf> = state.home.iter().chain(roots).cloned().collect();
                workspace.sort();
                workspace.dedup();
                workspace.into()
            }
        }
    }

    /// Records that it requests the tools; returns whether it is the first time.
    pub(in crate::proxy) fn lists(&self) -> bool {
        !std::mem::replace(&mut self.state().has_listed, true)
    }

    /// The lowest log level that it accepts; all levels until it sets one.
    #[must_use]
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.state().log_level
    }

    /// Sets the lowest log level that it accepts.
    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.state().log_level = Some(level);
    }

    /// Asks the client over `outbox` and waits for the answer. Dropping the future cancels the question.
    pub(in crate::proxy) async fn ask(
        &self,
        outbox: &Outbox,
        method: &str,
        params: Bytes,
    ) -> ServerReply {
        let id = self.next_question.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.questions().insert(id, answer);
        let named = self.replica.get().and_then(|one| one.question(id));
        let name = named.map_or_else(|| id.to_string(), |name| quoted(&name));
        let question = Frame::request(
            &name,
            method,
            Frame {
                body: params,
                ..Frame::default()
            },
        );
        let _open = OpenQuestion {
            client: self,
            outbox,
            id,
            name,
        };
        let Ok(question) = outbox.hold(question) else {
            return refusal("the clients have too much to read already");
        };
        if outbox.send(question).await.is_err() {
            return gone();
        }
        answered.await.unwrap_or_else(|_| gone())
    }

    /// Notes that `server` sends its user to a place by `params`, those of an elicitation. False if another server has done that
    /// under the same id, so that the client could not tell whose is done.
    pub(in crate::proxy) fn begins(&self, server: &ServerName, params: &RawValue) -> bool {
        let Some(id) = elicitation_of(params) else {
            return true;
        };
        let mut elsewhere = self.elsewhere.lock();
        if let Some((of, _)) = elsewhere.iter().find(|(_, known)| *known == id) {
            return of == server;
        }
        // A server displaces its own places only.
        let mut own = (0..elsewhere.len()).filter(|at| elsewhere[*at].0 == *server);
        let oldest = own.next();
        let is_full = own.count() + 1 >= MOST_ELSEWHERE;
        if let Some(oldest) = oldest.filter(|_| is_full) {
            elsewhere.remove(oldest);
        }
        elsewhere.push_back((server.clone(), id));
        true
    }

    /// Whether the place that `params` of a notification of `server` name is one that the server sent its user to. Each is done once.
    pub(in crate::proxy) fn completes(&self, server: &ServerName, params: &RawValue) -> bool {
        let Some(id) = elicitation_of(params) else {
            return false;
        };
        let mut elsewhere = self.elsewhere.lock();
        let known = elsewhere
            .iter()
            .position(|(of, known)| of == server && *known == id);
        known.and_then(|at| elsewhere.remove(at)).is_some()
    }

    /// Replaces the URIs that it follows by those that another replica has noted.
    pub(crate) fn follow_uris(&self, uris: BTreeSet<String>) {
        self.listener.interests().uris = uris;
    }

    /// The URIs that it follows.
    #[must_use]
    pub(crate) fn followed_uris(&self) -> BTreeSet<String> {
        self.listener.interests().uris.clone()
    }

    /// Passes on the answer to question `id`. A late or duplicate answer is ignored.
    pub(crate) fn answered(&self, id: u64, outcome: &Outcome<'_>) {
        let question = self.questions().remove(&id);
        let copied =
            |raw: &serde_json::value::RawValue| Bytes::copy_from_slice(raw.get().as_bytes());
        let answer = match outcome {
            Outcome::Result(raw) if raw.get().starts_with('{') => {
                ServerReply::Result(copied(raw).into())
            }
            Outcome::Result(_) => refusal("the client's answer is not an object"),
            Outcome::Error(raw) => ServerReply::Error(copied(raw)),
        };
        if let Some(question) = question {
            // The receiver may have gone meanwhile.
            let _ = question.send(answer);
        }
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<ServerReply>>> {
        self.questions.lock()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is a single step.
        self.state.lock()
    }
}

/// The id of an elicitation by URL in its parameters, or in those of the notification that it is done.
fn elicitation_of(params: &RawValue) -> Option<String> {
    Object::parse(params).ok()?.text("elicitationId")
}

/// The number of a client's first question. It is random, so that an answer to a question of an earlier process is
/// not taken for one to a question of this process, and below 2³⁰, because some clients do not support larger ids.
fn first_question() -> u64 {
    (RandomState::new().hash_one(0) >> 34) + 1
}

/// An open question. Dropping it cancels the question at the client.
struct OpenQuestion<'a> {
    client: &'a Client,
    outbox: &'a Outbox,
    id: u64,
    /// The id that the client knows, as JSON.
    name: String,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.client.questions().remove(&self.id).is_some() {
            let params = format!(r#"{{"requestId":{}}}"#, self.name);
            // If the client is gone, it needs no notification.
            let _ = self
                .outbox
                .push(Frame::notification("notifications/cancelled", &params));
        }
    }
}

fn gone() -> ServerReply {
    refusal("the client has gone")
}

/// An error response on behalf of a client.
pub(in crate::proxy) fn refusal(message: &str) -> ServerReply {
    let message = crate::mcp::object::quoted(message);
    ServerReply::Error(format!(r#"{{"code":{},"message":{message}}}"#, ErrorCode::INTERNAL).into())
}
