//! The state behind the screen, and the lines that are chosen on it.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;
use serde_json::Value;

use crate::pause::Paused;

/// Number of ended calls that are shown.
const ENDED: usize = 50;

/// The daemon's answer to `daemon.status`, as far as it is shown.
#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) version: String,
    pub(super) process: u32,
    pub(super) uptime: u64,
    pub(super) paused: Option<Paused>,
    pub(super) sessions: Vec<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Servers {
    servers: Vec<Server>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Server {
    pub(super) server: String,
    pub(super) state: String,
    pub(super) reason: Option<String>,
    pub(super) tools: usize,
    pub(super) connections: usize,
    pub(super) sessions: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Approvals {
    approvals: Vec<Approval>,
}

/// A call that waits for approval.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Approval {
    pub(super) id: String,
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) client: Option<String>,
    pub(super) question: String,
}

/// A call in flight.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) began: Instant,
}

/// The list that keys are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Focus {
    #[default]
    Servers,
    Approvals,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) status: Option<Status>,
    pub(super) servers: Vec<Server>,
    pub(super) approvals: Vec<Approval>,
    /// Calls in flight, by their numbers.
    pub(super) calls: BTreeMap<u64, Call>,
    /// Calls that have ended, the newest first.
    pub(super) ended: VecDeque<String>,
    pub(super) log: Vec<String>,
    pub(super) log_of: String,
    /// How the last order went.
    pub(super) message: String,
    pub(super) focus: Focus,
    /// The chosen server and approval, by name and id: lists change under a person.
    chosen_server: Option<String>,
    chosen_approval: Option<String>,
    /// The approval whose question is shown.
    shown: Option<String>,
    /// The first line of the question on the screen.
    pub(super) scrolled: u16,
    /// Whether an event says that the lists have changed.
    pub(super) is_old: bool,
}

impl State {
    /// Takes an event; `None` is the end of the daemon.
    pub(super) fn hear(&mut self, event: Option<Value>) {
        let Some(event) = event else {
            self.calls.clear();
            self.is_old = true;
            return;
        };
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let name = || format!("{}__{}", text("server"), text("tool"));
        match (event["kind"].as_str(), event["call"].as_u64()) {
            (Some("call_began"), Some(call)) => {
                let began = began(&event);
                self.calls.insert(
                    call,
                    Call {
                        name: name(),
                        began,
                    },
                );
            }
            (Some("call_ended"), Some(call)) => {
                self.calls.remove(&call);
                let (outcome, milliseconds) = (text("outcome"), &event["milliseconds"]);
                let line = format!("{}  {outcome}  {milliseconds} ms", name());
                self.ended.push_front(line);
                self.ended.truncate(ENDED);
            }
            _ => self.is_old = true,
        }
    }

    pub(super) fn set_servers(&mut self, Servers { mut servers }: Servers) {
        servers.sort_by(|one, other| one.server.cmp(&other.server));
        self.servers = servers;
    }

    pub(super) fn set_approvals(&mut self, Approvals { approvals }: Approvals) {
        self.approvals = approvals;
        if self.question().is_none() {
            self.shown = None;
        }
    }

    /// The pause, while the user has paused mcpzip.
    pub(super) fn paused(&self) -> Option<&Paused> {
        self.status.as_ref()?.paused.as_ref()
    }

    /// The chosen server.
    pub(super) fn server(&self) -> Option<&Server> {
        let chosen = self.chosen_server.as_ref()?;
        self.servers.iter().find(|server| server.server == *chosen)
    }

    /// The chosen approval; the first if none is chosen.
    pub(super) fn approval(&self) -> Option<&Approval> {
        let is_chosen = |approval: &&Approval| Some(&approval.id) == self.chosen_approval.as_ref();
        let chosen = self.approvals.iter().find(is_chosen);
        chosen.or_else(|| self.approvals.first())
    }

    /// The approval whose question is shown.
    pub(super) fn question(&self) -> Option<&Approval> {
        let shown = self.shown.as_ref()?;
        self.approvals.iter().find(|one| one.id == *shown)
    }

    pub(super) fn open_question(&mut self) {
        if self.focus == Focus::Approvals {
            self.shown = self.approval().map(|approval| approval.id.clone());
            self.scrolled = 0;
        }
    }

    pub(super) fn close_question(&mut self) {
        self.shown = None;
    }

    pub(super) fn change_focus(&mut self) {
        self.shown = None;
        self.focus = match self.focus {
            Focus::Servers => Focus::Approvals,
            Focus::Approvals => Focus::Servers,
        };
    }

    /// Chooses another line of the list that keys are for, or moves the question.
    pub(super) fn choose(&mut self, by: i16) {
        if self.question().is_some() {
            self.scrolled = self.scrolled.saturating_add_signed(by);
            return;
        }
        match self.focus {
            Focus::Servers => {
                let names = self.servers.iter().map(|server| &server.server);
                self.chosen_server = moved(names, self.chosen_server.as_ref(), by);
                self.is_old = true;
            }
            Focus::Approvals => {
                let current = self.approval().map(|approval| approval.id.clone());
                let ids = self.approvals.iter().map(|approval| &approval.id);
                self.chosen_approval = moved(ids, current.as_ref(), by);
            }
        }
    }
}

/// The time of an event. A clock that was set back makes it now.
fn began(event: &Value) -> Instant {
    let time = event["time"].as_u64().map(Duration::from_millis);
    let past = time.and_then(|time| SystemTime::UNIX_EPOCH.checked_add(time)?.elapsed().ok());
    let now = Instant::now();
    past.and_then(|past| now.checked_sub(past)).unwrap_or(now)
}

/// The item `by` lines from `chosen`; the first or last at the ends.
fn moved<'a>(
    all: impl Iterator<Item = &'a String>,
    chosen: Option<&String>,
    by: i16,
) -> Option<String> {
    let all: Vec<&String> = all.collect();
    let at = all.iter().position(|one| Some(*one) == chosen);
    let at = match at {
        Some(at) => at.saturating_add_signed(by.into()),
        None => 0,
    };
    all.get(at.min(all.len().saturating_sub(1)))
        .map(|one| (*one).clone())
}
