//! The proxies of one run: that of its own profiles, and one for each narrower choice of its clients.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::{ProfileChoice, Proxy, SharedFigures};
use crate::config::{Config, ProfileRefusal, ProfileRequest};

/// Creates a proxy with a configuration, these profiles, and the figures of the first one.
type Make = dyn Fn(Config, ProfileChoice, Option<SharedFigures>) -> Arc<Proxy> + Send + Sync;

/// The proxies of one run.
pub(crate) struct Proxies {
    main: Arc<Proxy>,
    make: Box<Make>,
    narrower: Mutex<BTreeMap<Vec<String>, Arc<Proxy>>>,
    /// Whether no client reads stdout.
    is_stdout_free: OnceLock<()>,
}

impl Proxies {
    /// Creates the proxies; the first one has `config` and these profiles.
    pub(crate) fn new(config: Config, profiles: ProfileChoice, make: Box<Make>) -> Self {
        Self {
            main: make(config, profiles, None),
            make,
            narrower: Mutex::default(),
            is_stdout_free: OnceLock::new(),
        }
    }

    /// The proxy of the run's own profiles.
    #[must_use]
    pub(crate) fn main(&self) -> &Arc<Proxy> {
        &self.main
    }

    /// All proxies.
    #[must_use]
    pub(crate) fn all(&self) -> Vec<Arc<Proxy>> {
        let narrower = self.narrower.lock();
        let all = std::iter::once(&self.main).chain(narrower.values());
        all.cloned().collect()
    }

    /// The proxy for a client with this name that came by the URL of `profile`.
    ///
    /// # Errors
    /// When a profile of the client cannot be used.
    pub(crate) fn of(
        &self,
        profile: Option<&str>,
        client: &str,
    ) -> Result<Arc<Proxy>, ProfileRefusal> {
        let own = self.main.profiles.named();
        let mut named = own.to_vec();
        named.extend(profile.map(str::to_owned));
        let whole = self.main.profiles.whole();
        let names = whole.profiles_of(ProfileRequest {
            named: &named,
            client: Some(client),
            directories: &[],
        });
        if names == own {
            return Ok(self.main.clone());
        }
        let mut narrower = self.narrower.lock();
        if let Some(known) = narrower.get(&names) {
            let refusal = known.profiles.refusal();
            return match refusal {
                None => Ok(known.clone()),
                Some(_) => whole.narrowed(&names).map(|_| known.clone()),
            };
        }
        whole.narrowed(&names)?;
        let named = names.clone();
        let choice = ProfileChoice {
            named,
            ..ProfileChoice::default()
        };
        let proxy = (self.make)((*whole).clone(), choice, Some(self.main.figures()));
        if self.is_stdout_free.get().is_some() {
            proxy.free_stdout();
        }
        if let Some(tracer) = self.main.tracer() {
            proxy.trace_with(tracer.clone());
        }
        proxy.inventory.release();
        narrower.insert(names, proxy.clone());
        Ok(proxy)
    }

    /// Whether the profile of a URL can be used.
    #[must_use]
    pub(crate) fn has(&self, profile: &str) -> bool {
        self.of(Some(profile), "").is_ok()
    }

    /// Applies an edited configuration.
    pub(crate) fn configure(&self, config: &Config) {
        for proxy in self.all() {
            proxy.configure(config.clone());
        }
    }

    /// Lets the audit log use stdout, which no client reads.
    pub(crate) fn free_stdout(&self) {
        self.is_stdout_free.get_or_init(|| ());
        self.main.free_stdout();
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxies").field("main", &self.main).finish()
    }
}
