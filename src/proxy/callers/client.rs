//! A client as the proxy knows it: what it can be asked, what it wants to hear, and what it has yet to answer.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OnceCell, oneshot};

use super::listener::Listener;
use crate::mcp::{ClientCapabilities, ErrorCode, Frame, LogLevel, Outbox, Outcome};
use crate::secret::random_token;
use crate::upstream::ServerReply;

/// One client, from its first message to its last.
#[derive(Debug)]
pub(crate) struct Client {
    number: u64,
    /// Whose share of the filter workers it takes, where that is not its own.
    share: OnceLock<u64>,
    /// What it hears unasked, after a handshake.
    listener: Arc<Listener>,
    state: Mutex<State>,
    questions: Mutex<HashMap<u64, oneshot::Sender<ServerReply>>>,
    next_question: AtomicU64,
    /// Its name and version, as it gave them first.
    software: OnceLock<(String, String)>,
}

/// A client as records name it.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct Identity {
    /// Tells it apart from all clients of all processes.
    pub(in crate::proxy) session: String,
    /// Its name and version, as it gave them.
    pub(in crate::proxy) software: Option<(String, String)>,
}

#[derive(Debug, Default)]
struct State {
    /// What the handshake declared; `None` without one.
    capabilities: Option<ClientCapabilities>,
    log_level: Option<LogLevel>,
    /// What it shows its model, where that is known.
    shows: Option<Shows>,
    /// Whether it has asked for the tools.
    has_listed: bool,
    /// Where we were started for it.
    home: Arc<[PathBuf]>,
    /// Where it says that it is.
    roots: Arc<OnceCell<Vec<PathBuf>>>,
}

/// What a client shows its model of a result that has both text and structured content.
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
    /// What the client of this name (`clientInfo`) shows, where somebody has looked.
    #[must_use]
    pub(crate) fn of(client: &str) -> Option<Self> {
        match client {
            "claude-code" | "codex-mcp-client" => Some(Self::Structured),
            "opencode" => Some(Self::Text),
            "copilot-cli" | "github-copilot-developer" => Some(Self::Both),
            // Newer ones put the server's name behind it.
            name if name.starts_with("gemini-cli-mcp-client") => Some(Self::Text),
            _ => None,
        }
    }
}

impl Client {
    /// A client that has not said anything yet.
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
            software: OnceLock::new(),
        })
    }

    /// Tells clients apart.
    #[must_use]
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whose share of the filter workers it takes.
    #[must_use]
    pub(crate) fn share(&self) -> u64 {
        self.share.get().copied().unwrap_or(self.number)
    }

    /// Notes that it takes the share of all requests without a session from a client of this name: each of them would have a
    /// share of its own otherwise.
    pub(crate) fn shares_as(&self, name: &str) {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        self.share.get_or_init(|| KEYS.hash_one(name));
    }

    /// What it hears unasked, and where that goes.
    #[must_use]
    pub(crate) fn listener(&self) -> &Arc<Listener> {
        &self.listener
    }

    /// What its handshake declared; `None` before one.
    #[must_use]
    pub(crate) fn capabilities(&self) -> Option<ClientCapabilities> {
        self.state().capabilities
    }

    /// Notes what its handshake declares.
    pub(in crate::proxy) fn introduce(&self, capabilities: ClientCapabilities) {
        self.state().capabilities = Some(capabilities);
    }

    /// What it shows its model, where that is known.
    #[must_use]
    pub(crate) fn shows(&self) -> Option<Shows> {
        self.state().shows
    }

    /// Notes the name that its handshake gives.
    pub(crate) fn named(&self, name: &str) {
        self.state().shows = Shows::of(name);
    }

    /// Notes the name and version that it gives, of which the first stay.
    pub(crate) fn note_software(&self, read: impl FnOnce() -> (String, String)) {
        self.software.get_or_init(read);
    }

    /// The client as records name it.
    pub(in crate::proxy) fn identity(&self) -> Identity {
        static PROCESS: LazyLock<String> = LazyLock::new(random_token);
        Identity {
            session: format!("{}-{}", *PROCESS, self.number),
            software: self.software.get().cloned(),
        }
    }

    /// Sets the directories this process was started in on the client's behalf.
    pub(crate) fn set_workspace(&self, home: Arc<[PathBuf]>) {
        self.state().home = home;
    }

    /// The client's `roots`, once they were fetched.
    pub(in crate::proxy) fn roots(&self) -> Arc<OnceCell<Vec<PathBuf>>> {
        self.state().roots.clone()
    }

    /// Forgets the client's `roots`, which have changed.
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

    /// Notes that it asks for the tools; whether it does so for the first time.
    pub(in crate::proxy) fn lists(&self) -> bool {
        !std::mem::replace(&mut self.state().has_listed, true)
    }

    /// The level from which on it wants log messages; all of them before it says so.
    #[must_use]
    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.state().log_level
    }

    /// Notes the level from which on it wants log messages.
    pub(in crate::proxy) fn set_log_level(&self, level: LogLevel) {
        self.state().log_level = Some(level);
    }

    /// Asks it over `outbox`, and waits for the answer. Dropping the future takes the question back.
    pub(in crate::proxy) async fn ask(
        &self,
        outbox: &Outbox,
        method: &str,
        params: Bytes,
    ) -> ServerReply {
        let id = self.next_question.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.questions().insert(id, answer);
        let _open = OpenQuestion {
            client: self,
            outbox,
            id,
        };
        let question = Frame::request(
            id,
            method,
            Frame {
                body: params,
                ..Frame::default()
            },
        );
        let Ok(question) = outbox.hold(question) else {
            return refusal("the clients have too much to read already");
        };
        if outbox.send(question).await.is_err() {
            return gone();
        }
        answered.await.unwrap_or_else(|_| gone())
    }

    /// Takes an answer to question `id`; nobody waits for one that comes late or twice.
    pub(crate) fn answered(&self, id: u64, outcome: &Outcome<'_>) {
        let question = self.questions().remove(&id);
        let copied =
            |raw: &serde_json::value::RawValue| Bytes::copy_from_slice(raw.get().as_bytes());
        let answer = match outcome {
            Outcome::Result(raw) if raw.get().starts_with('{') => ServerReply::Result(copied(raw)),
            Outcome::Result(_) => refusal("the client's answer is not an object"),
            Outcome::Error(raw) => ServerReply::Error(copied(raw)),
        };
        if let Some(question) = question {
            // Whoever asked may have gone in the meantime.
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

/// The number of a client's first question: random, so that an answer to a question of the process that served this client before is
/// not taken for an answer to one of ours. It is below 2³⁰, as some clients have no larger ids.
fn first_question() -> u64 {
    (RandomState::new().hash_one(0) >> 34) + 1
}

/// A question that the client is told to forget when nobody waits for its answer any more.
struct OpenQuestion<'a> {
    client: &'a Client,
    outbox: &'a Outbox,
    id: u64,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.client.questions().remove(&self.id).is_some() {
            let params = format!(r#"{{"requestId":{}}}"#, self.id);
            // A client that is gone needs no telling.
            let _ = self
                .outbox
                .push(Frame::notification("notifications/cancelled", &params));
        }
    }
}

fn gone() -> ServerReply {
    refusal("the client is gone")
}

/// An error answer given on behalf of a client.
pub(in crate::proxy) fn refusal(message: &str) -> ServerReply {
    let message = crate::mcp::object::quoted(message);
    ServerReply::Error(format!(r#"{{"code":{},"message":{message}}}"#, ErrorCode::INTERNAL).into())
}
