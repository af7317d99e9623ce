//! The profiles of a proxy's clients: the one place that decides which part of the configuration a proxy has.
//!
//! A proxy gets its configuration from here at the start, after each edit, and when its client turns out to have
//! another profile. Catalog, search index, connections and stored results are made from this part of the
//! configuration, so a server outside of it does not exist in the proxy. Clients with different profiles have
//! different proxies (see [`super::Proxies`]).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::config::{Config, Entitlement, ProfileRefusal, ProfileRequest, Subject};
use crate::upstream::person::{Figures, Front, Person};

/// The profiles with which a proxy starts.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProfileChoice {
    /// Those that the command line or the URL names.
    pub named: Vec<String>,
    /// The directories that its only client works in; they may have profiles, too.
    pub directories: Vec<PathBuf>,
    /// Whether its clients come over HTTP.
    pub is_over_http: bool,
    /// The part of the configuration that its clients' identity gets, if they have one.
    pub entitlement: Option<Arc<Entitlement>>,
    /// The gateway that they reach it by.
    pub front: Option<Arc<Front>>,
}

impl ProfileChoice {
    /// The part of `config` that these profiles permit.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(crate) fn narrow(&self, config: &Config) -> Result<Config, ProfileRefusal> {
        self.narrow_to(
            config,
            &config.profiles_of(ProfileRequest {
                named: &self.named,
                client: None,
                directories: &self.directories,
            }),
        )
    }

    /// The part of `config` that these profiles and the identity permit.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(super) fn narrow_to(
        &self,
        config: &Config,
        names: &[String],
    ) -> Result<Config, ProfileRefusal> {
        let Some(entitlement) = &self.entitlement else {
            let mut part = config.narrowed(names)?;
            if self.is_over_http {
                part.judge_for(&Subject::Unidentified);
            }
            return Ok(part);
        };
        config.entitled(entitlement)?.narrowed(names)
    }
}

/// The facts that decide the profiles of a proxy's clients, and the whole configuration.
#[derive(Debug)]
pub(super) struct ProfileScope {
    choice: ProfileChoice,
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
    /// The profiles in use. A session keeps those that it has got by its client or its directories.
    names: Vec<String>,
    /// Why nothing is shown.
    refusal: Option<String>,
}

impl ProfileScope {
    pub(super) fn new(choice: ProfileChoice, whole: Config) -> Self {
        let whole = Arc::new(whole);
        let directories = choice.directories.iter().cloned().collect();
        Self {
            choice,
            state: Mutex::new(State {
                whole,
                client: None,
                directories,
                names: Vec::new(),
                refusal: None,
            }),
            turn: Mutex::default(),
        }
    }

    /// The proxy's part of the current configuration.
    pub(super) fn part(&self) -> Arc<Config> {
        self.state.lock().part(&self.choice)
    }

    /// The proxy's part of an edited configuration.
    pub(super) fn part_of(&self, whole: Config) -> Arc<Config> {
        let mut state = self.state.lock();
        state.whole = Arc::new(whole);
        state.part(&self.choice)
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
        let names = state.wanted(&self.choice.named);
        // Nothing takes a profile away from a session but an edit of the file.
        (!names.iter().all(|name| state.names.contains(name))).then(|| state.part(&self.choice))
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
        &self.choice.named
    }

    /// The part of the configuration that the clients' identity gets, if they have one.
    pub(super) fn entitlement(&self) -> Option<&Arc<Entitlement>> {
        self.choice.entitlement.as_ref()
    }

    /// The person that the clients are, if they have an identity.
    pub(super) fn person(&self, figures: &Arc<Figures>) -> Option<Arc<Person>> {
        let entitlement = self.choice.entitlement.clone()?;
        let front = self.choice.front.clone();
        let figures = figures.clone();
        Some(Arc::new(Person {
            entitlement,
            front,
            figures,
        }))
    }

    /// Whether the clients come over HTTP.
    pub(super) fn is_over_http(&self) -> bool {
        self.choice.is_over_http
    }

    /// Why the clients are refused, if they are.
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
    fn part(&mut self, choice: &ProfileChoice) -> Arc<Config> {
        let mut names = self.wanted(&choice.named);
        let kept = self.names.iter().filter(|name| !names.contains(name));
        let kept: Vec<String> = kept.cloned().collect();
        names.extend(kept);
        if names.is_empty() && choice.entitlement.is_none() && !choice.is_over_http {
            self.refusal = None;
            return self.whole.clone();
        }
        match choice.narrow_to(&self.whole, &names) {
            Ok(part) => {
                // A profile that cannot be read may concern other sessions, so only a usable one is kept.
                self.names = names;
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
