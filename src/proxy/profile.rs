//! The profiles of a proxy's clients: the one place that decides which part of the configuration a proxy has.
//!
//! A proxy gets its configuration from here at the start, after each edit, and when its client turns out to have another
//! profile. Everything in it (catalog, search index, connections, stored results) is made from that part, so a server outside
//! of it does not exist there. Clients with different profiles have different proxies (see [`super::Proxies`]).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::config::{Config, ProfileRefusal, ProfileRequest};

/// The profiles with which a proxy starts.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProfileChoice {
    /// Those that the command line or the URL names.
    pub named: Vec<String>,
    /// The directories that its only client works in; they may have profiles, too.
    pub directories: Vec<PathBuf>,
}

impl ProfileChoice {
    /// The part of `config` that these profiles permit.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(crate) fn narrow(&self, config: &Config) -> Result<Config, ProfileRefusal> {
        config.narrowed(&config.profiles_of(ProfileRequest {
            named: &self.named,
            client: None,
            directories: &self.directories,
        }))
    }
}

/// The facts that decide the profiles of a proxy's clients, and the whole configuration.
#[derive(Debug)]
pub(super) struct ProfileScope {
    named: Vec<String>,
    state: Mutex<State>,
    /// Held while a part is computed and applied, so that an older one never replaces a newer one.
    pub(super) turn: Mutex<()>,
}

#[derive(Debug)]
struct State {
    whole: Arc<Config>,
    client: Option<String>,
    /// All directories that the client has worked in: leaving one does not widen its session.
    directories: BTreeSet<PathBuf>,
    /// The profiles in use.
    names: Vec<String>,
    /// The reason why nothing is shown.
    refusal: Option<String>,
}

impl ProfileScope {
    pub(super) fn new(choice: ProfileChoice, whole: Config) -> Self {
        let whole = Arc::new(whole);
        Self {
            named: choice.named,
            state: Mutex::new(State {
                whole,
                client: None,
                directories: choice.directories.into_iter().collect(),
                names: Vec::new(),
                refusal: None,
            }),
            turn: Mutex::default(),
        }
    }

    /// The proxy's part of the current configuration.
    pub(super) fn part(&self) -> Arc<Config> {
        self.state.lock().part(&self.named)
    }

    /// The proxy's part of an edited configuration.
    pub(super) fn part_of(&self, whole: Config) -> Arc<Config> {
        let mut state = self.state.lock();
        state.whole = Arc::new(whole);
        state.part(&self.named)
    }

    /// Records the name of the proxy's only client; returns the proxy's part of the configuration if that changes it.
    pub(super) fn note_client(&self, name: &str) -> Option<Arc<Config>> {
        self.note(|state| state.client = Some(name.to_owned()))
    }

    /// Records directories of the proxy's only client; returns the proxy's part of the configuration if that changes it.
    pub(super) fn note_directories(&self, directories: &[PathBuf]) -> Option<Arc<Config>> {
        let known = |directory| self.state.lock().directories.contains(directory);
        if directories.iter().all(known) {
            return None;
        }
        self.note(|state| state.directories.extend(directories.iter().cloned()))
    }

    fn note(&self, record: impl FnOnce(&mut State)) -> Option<Arc<Config>> {
        let mut state = self.state.lock();
        record(&mut state);
        let names = state.wanted(&self.named);
        // Nothing takes a profile away from a session but an edit of the file.
        (!names.iter().all(|name| state.names.contains(name))).then(|| state.part(&self.named))
    }

    /// The whole configuration.
    pub(super) fn whole(&self) -> Arc<Config> {
        self.state.lock().whole.clone()
    }

    /// Whether the directories of a client may have profiles.
    pub(super) fn depend_on_directories(&self) -> bool {
        self.state.lock().whole.has_profiles_of_directories()
    }

    /// The profiles that are named for this proxy.
    pub(super) fn named(&self) -> &[String] {
        &self.named
    }

    /// The reason why the clients are refused, if they are.
    pub(super) fn refusal(&self) -> Option<String> {
        self.state.lock().refusal.clone()
    }
}

impl State {
    fn wanted(&self, named: &[String]) -> Vec<String> {
        let directories: Vec<PathBuf> = self.directories.iter().cloned().collect();
        self.whole.profiles_of(ProfileRequest {
            named,
            client: self.client.as_deref(),
            directories: &directories,
        })
    }

    /// The part that the profiles permit; without a server if one of them cannot be used.
    fn part(&mut self, named: &[String]) -> Arc<Config> {
        self.names = self.wanted(named);
        if self.names.is_empty() {
            self.refusal = None;
            return self.whole.clone();
        }
        match self.whole.narrowed(&self.names) {
            Ok(part) => {
                self.refusal = None;
                Arc::new(part)
            }
            Err(refusal) => {
                tracing::error!(%refusal, "the session shows no server");
                self.refusal = Some(refusal.to_string());
                Arc::new(self.whole.without_servers())
            }
        }
    }
}
