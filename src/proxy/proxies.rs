//! The proxies of one run: the proxy of the run's own profiles, and one for each identity and each narrower choice
//! of profiles. So connections, stored results and open questions of one identity serve no other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::metrics::OfPeople;
use super::{ProfileChoice, Proxy, SharedFigures};
use crate::config::{Config, Entitlement, ProfileRefusal, ProfileRequest};
use crate::homes::HomesOfReplicas;
use crate::replicas::Replicas;
use crate::shutdown::Tasks;
use crate::tool::ServerName;
use crate::upstream::ServerStatus;
use crate::upstream::person::Front;

/// Creates a proxy with a configuration, these profiles, the figures of the first one, and the tasks of those that end before the run.
type Make = dyn Fn(Config, ProfileChoice, Option<SharedFigures>, Option<&Tasks>) -> Arc<Proxy>
    + Send
    + Sync;

/// The profiles and the identity of a narrower proxy.
type Key = (Vec<String>, Option<Arc<Entitlement>>);

/// A narrower proxy.
struct Narrower {
    proxy: Arc<Proxy>,
    /// The tasks of a proxy for an identity.
    tasks: Option<Tasks>,
}

/// The proxies of one run.
pub(crate) struct Proxies {
    main: Arc<Proxy>,
    make: Box<Make>,
    narrower: Mutex<BTreeMap<Key, Narrower>>,
    /// Whether no client reads stdout.
    is_stdout_free: OnceLock<()>,
    /// The gateway that clients over HTTP reach.
    front: OnceLock<Arc<Front>>,
    /// The other replicas of the gateway.
    replicas: OnceLock<(Arc<Replicas>, HomesOfReplicas)>,
    /// The servers that a person has switched off until the run ends.
    switched_off: Mutex<BTreeSet<ServerName>>,
}

impl Proxies {
    /// Creates the proxies; the first one has `config` and these profiles.
    pub(crate) fn new(config: Config, profiles: ProfileChoice, make: Box<Make>) -> Self {
        Self {
            main: make(config, profiles, None, None),
            make,
            narrower: Mutex::default(),
            is_stdout_free: OnceLock::new(),
            front: OnceLock::new(),
            replicas: OnceLock::new(),
            switched_off: Mutex::default(),
        }
    }

    /// Sets the gateway that clients reach, before the first of them comes.
    pub(crate) fn set_front(&self, front: Arc<Front>) {
        // A run has one server.
        let _ = self.front.set(front);
    }

    /// Joins the other replicas of the gateway, before the first client comes and the first server is started.
    pub(crate) fn join_replicas(&self, replicas: Arc<Replicas>, tasks: &Tasks) {
        let homes = HomesOfReplicas::new(replicas.clone(), self.main.relay.pool(), tasks);
        self.main.join_replicas(replicas.clone(), homes.clone());
        // A run has one server.
        let _ = self.replicas.set((replicas, homes));
    }

    /// The servers that run at one of several replicas, if there are some.
    #[must_use]
    pub(crate) fn homes(&self) -> Option<&HomesOfReplicas> {
        self.replicas.get().map(|(_, homes)| homes)
    }

    /// The gateway that clients reach.
    #[must_use]
    pub(crate) fn front(&self) -> Option<&Arc<Front>> {
        self.front.get()
    }

    /// The proxies of an identity.
    #[must_use]
    pub(crate) fn of_identity(&self, identity: &str) -> Vec<Arc<Proxy>> {
        let narrower = self.narrower.lock();
        let is_theirs = |(_, entitlement): &&Key| {
            entitlement
                .as_ref()
                .is_some_and(|one| one.identity == identity)
        };
        let theirs = narrower.iter().filter(|(key, _)| is_theirs(key));
        theirs.map(|(_, known)| known.proxy.clone()).collect()
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
        let all = std::iter::once(&self.main).chain(narrower.values().map(|known| &known.proxy));
        all.cloned().collect()
    }

    /// The proxy for a client with this name and identity that came by the URL of `profile`.
    ///
    /// # Errors
    /// When a profile of the client cannot be used.
    pub(crate) fn of(
        &self,
        profile: Option<&str>,
        client: &str,
        entitlement: Option<&Arc<Entitlement>>,
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
        if names == own && entitlement.is_none() {
            return Ok(self.main.clone());
        }
        let choice = ProfileChoice {
            named: names.clone(),
            is_over_http: self.main.profiles.is_over_http(),
            entitlement: entitlement.cloned(),
            front: self.front.get().cloned(),
            ..ProfileChoice::default()
        };
        let key = (names, entitlement.cloned());
        let mut narrower = self.narrower.lock();
        if let Some(known) = narrower.get(&key) {
            let proxy = known.proxy.clone();
            return match proxy.profiles.refusal() {
                None => Ok(proxy),
                Some(_) => choice.narrow_to(&whole, &key.0).map(|_| proxy),
            };
        }
        choice.narrow_to(&whole, &key.0)?;
        let tasks = entitlement.map(|_| Tasks::new());
        let figures = Some(self.main.figures());
        let proxy = (self.make)((*whole).clone(), choice, figures, tasks.as_ref());
        if self.is_stdout_free.get().is_some() {
            proxy.free_stdout();
        }
        if let Some(tracer) = self.main.tracer() {
            proxy.trace_with(tracer.clone());
        }
        if let Some((replicas, homes)) = self.replicas.get() {
            proxy.join_replicas(replicas.clone(), homes.clone());
        }
        if let Some(files) = self.main.inventory.vector_files() {
            proxy.inventory.share_vectors(files);
        }
        proxy.inventory.release();
        let known = Narrower {
            proxy: proxy.clone(),
            tasks,
        };
        narrower.insert(key, known);
        Ok(proxy)
    }

    /// Whether the profile of a URL can be used by an identity.
    #[must_use]
    pub(crate) fn has(&self, profile: &str, entitlement: Option<&Arc<Entitlement>>) -> bool {
        self.of(Some(profile), "", entitlement).is_ok()
    }

    /// The whole configuration.
    #[must_use]
    pub(crate) fn whole(&self) -> Arc<Config> {
        self.main.profiles.whole()
    }

    /// Ends the proxies of the identities that are not among `entitled`.
    pub(crate) async fn end_others(&self, is_entitled: impl Fn(&Entitlement) -> bool) {
        self.end(|(_, entitlement)| entitlement.as_ref().is_some_and(|one| !is_entitled(one)))
            .await;
    }

    /// Ends the proxies of identities, whose clients have gone.
    pub(crate) async fn finish(&self) {
        self.end(|(_, entitlement)| entitlement.is_some()).await;
    }

    async fn end(&self, is_over: impl Fn(&Key) -> bool) {
        let over: Vec<Narrower> = {
            let mut narrower = self.narrower.lock();
            let (over, stay) = std::mem::take(&mut *narrower)
                .into_iter()
                .partition(|(key, _)| is_over(key));
            *narrower = stay;
            let over: BTreeMap<Key, Narrower> = over;
            over.into_values().collect()
        };
        for Narrower { proxy, tasks } in over {
            if let Some(tasks) = tasks {
                tasks.finish().await;
            }
            proxy.close().await;
        }
    }

    /// Applies an edited configuration. Servers that a person has switched off stay so.
    pub(crate) fn configure(&self, config: &Config) {
        let mut off = self.switched_off.lock();
        let mut config = config.clone();
        let mut is_used = |server: &ServerName| {
            let entry = config.servers.get_mut(server);
            entry.is_some_and(|entry| !std::mem::replace(&mut entry.disabled, true))
        };
        off.retain(&mut is_used);
        self.apply(&config);
    }

    /// Switches a server off until the run ends, or on again. The file is not changed.
    ///
    /// # Errors
    /// In words, when there is no such server, or it is off for another reason.
    pub(crate) fn switch(&self, server: &ServerName, is_on: bool) -> Result<(), String> {
        let mut off = self.switched_off.lock();
        let mut config = (*self.whole()).clone();
        let entry = config.servers.get_mut(server);
        let entry = entry.ok_or_else(|| format!("there is no server `{server}`"))?;
        if is_on && entry.disabled && !off.contains(server) {
            return Err(format!(
                "`{server}` is disabled in the configuration of the gateway"
            ));
        }
        if entry.disabled != is_on {
            return Ok(());
        }
        entry.disabled = !is_on;
        match is_on {
            true => off.remove(server),
            false => off.insert(server.clone()),
        };
        self.apply(&config);
        Ok(())
    }

    fn apply(&self, config: &Config) {
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

impl OfPeople for Proxies {
    fn connections(&self) -> Vec<ServerStatus> {
        let all = self.all().into_iter().skip(1);
        all.flat_map(|proxy| proxy.inventory.connections())
            .collect()
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxies").field("main", &self.main).finish()
    }
}
