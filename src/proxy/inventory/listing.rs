//! The task that lists one server.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::watched::Watch;
use super::{Inventory, Progress, changes, findings};
use crate::audit::{Kind, Outcome};
use crate::catalog::{Entries, Failure, Listed, Pending, ServerTools};
use crate::events::Event;
use crate::notify::Notice;
use crate::proxy::callers::listener::ChangeNotice;
use crate::proxy::ledger::Ledger;
use crate::tool::ServerName;
use crate::upstream::{self, ListError, NotListed, backoff};

/// The time limit for listing a server, including the start of its process; longer if it may have to be installed
/// first.
const LIST_LIMIT: Duration = Duration::from_secs(30);

/// The fraction of that time after which a server releases its permit for parallel listings.
const TURN: u32 = 15;

/// The minimum interval between listings of a server that keeps announcing changes.
const PAUSE: Duration = Duration::from_millis(500);

/// The repeated listing of one server.
pub(super) struct ListingTask {
    pub(super) inventory: Arc<Inventory>,
    pub(super) server: ServerName,
    pub(super) watch: Arc<Watch>,
}

impl ListingTask {
    /// Lists the server whenever that is due, until `stop`.
    pub(super) async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = self.repeat() => {}
            () = stop.cancelled() => {}
            () = self.inventory.tasks.stopped() => {}
        }
    }

    async fn repeat(&self) {
        self.inventory.released.cancelled().await;
        let mut failures = 0;
        loop {
            let retry = Instant::now() + backoff(failures);
            tokio::select! {
                () = self.watch.asked() => {}
                () = sleep_until(retry), if failures > 0 => {}
            }
            let stopped = self.watch.stopped.notified();
            let listed = async {
                match self.watch.is_stopped() {
                    true => Err(NotListed::Stopped),
                    false => self.in_turn().await,
                }
            };
            let listed = tokio::select! {
                // First, because the stop also makes the listing fail.
                biased;
                () = stopped => Err(NotListed::Stopped),
                listed = listed => listed,
            };
            let progress = match listed {
                Err(NotListed::Stopped) => {
                    failures = 0;
                    self.watch.note_stopped();
                    continue;
                }
                Ok(()) => {
                    failures = 0;
                    Progress::Listed
                }
                Err(reason) => {
                    // A server with a known list is not started for a new one at once.
                    let has_time =
                        self.is_known() && !self.inventory.pool.is_connected(&self.server);
                    failures = if has_time { 0 } else { failures + 1 };
                    // A failed connection is in the log already.
                    match reason.is_unconnected() {
                        true => tracing::debug!(server = %self.server, %reason, "tools not listed"),
                        false => tracing::warn!(server = %self.server, %reason, "tools not listed"),
                    }
                    self.inventory.remember_failure(&self.server, &reason).await;
                    Progress::Failed(Arc::new(reason))
                }
            };
            self.watch.state.send_modify(|state| {
                state.progress = progress;
                state.rounds += 1;
            });
            self.inventory.came.send_replace(Some(Instant::now()));
            sleep(PAUSE).await;
        }
    }

    fn is_known(&self) -> bool {
        let snapshot = self.inventory.catalog.snapshot();
        snapshot.server(&self.server).is_some()
    }

    /// Lists the server when a permit is free and no other replica lists it, and releases the permit early if the server is slow. Neither is
    /// needed if a client waits for this server.
    async fn in_turn(&self) -> Result<(), NotListed> {
        let turn = async {
            let among_replicas = match (
                self.inventory.callers.replicas(),
                self.inventory.key(&self.server),
            ) {
                (Some(replicas), Some((key, _))) => {
                    let name = format!("{} {}", key.server, key.configuration);
                    replicas.listing_turn(name).await
                }
                _ => None,
            };
            let permit = self.inventory.permits.acquire().await;
            // Checked last: while a client waits for another server, servers with a permit do not start either.
            self.inventory.pool.quiet().await;
            (
                permit.expect("the semaphore is never closed"),
                among_replicas,
            )
        };
        let (permit, among_replicas) = tokio::select! {
            biased;
            () = self.watch.urgent.notified() => (None, None),
            (permit, among_replicas) = turn => (Some(permit), among_replicas),
        };
        self.watch
            .state
            .send_modify(|state| state.progress = Progress::UnderWay);
        let limit = self
            .inventory
            .pool
            .connected_within(&self.server, LIST_LIMIT);
        let mut list = pin!(async {
            let outcome = self.list(limit).await;
            if let Some(turn) = among_replicas {
                turn.end().await;
            }
            outcome
        });
        if let Ok(outcome) = timeout(limit / TURN, &mut list).await {
            return outcome;
        }
        drop(permit);
        list.await
    }

    async fn list(&self, limit: Duration) -> Result<(), NotListed> {
        let is_brief = self.watch.is_brief.swap(false, Ordering::Relaxed);
        let pool = &self.inventory.pool;
        let pages = pool.pages_within(&self.server, LIST_LIMIT);
        let listed = pool.list(&self.server, pages, is_brief);
        let listing = timeout(limit, listed)
            .await
            .map_err(|_| NotListed::Late(limit))?
            .map_err(Box::new)?;
        self.inventory.keep(&self.server, listing).await
    }
}

impl Inventory {
    /// Stores the reason of a failure, for commands that connect to no server.
    pub(super) async fn remember_failure(&self, server: &ServerName, reason: &NotListed) {
        let masked = self.callers.unscoped().masked(&reason.to_string());
        let failure = Failure::now(&masked);
        let Some((key, _)) = self.key(server) else {
            return;
        };
        let failures = self.failures.clone();
        let stored = self
            .tasks
            .spawn_blocking(move || failures.store(&key, &failure));
        // A failure has been logged already.
        let _ = stored.await;
    }

    /// Stores a new listing in the cache, the pins, the catalog and the index; notifies clients of changes.
    pub(in crate::proxy) async fn keep(
        &self,
        server: &ServerName,
        listing: upstream::Listing,
    ) -> Result<(), NotListed> {
        let (key, stop) = self.key(server).ok_or(NotListed::NotConfigured)?;
        let (lists, catalog) = (self.lists.clone(), self.catalog.clone());
        let (topics, extensions) = (self.topics.clone(), self.extensions.clone());
        let pins = self.pins.clone();
        let (failures, ledger) = (self.failures.clone(), self.ledger.clone());
        let notifier = self.notifier.clone();
        let config = self.callers.unscoped().config();
        let entry = config.servers.get(server);
        let is_for_people = entry.is_some_and(|entry| entry.is_for_people());
        let is_of_person = is_for_people && entry.is_some_and(|entry| entry.trust.is_report());
        // A first list does not change anything, and the list of one person does not concern others.
        let concerns_replicas = !is_for_people && self.snapshot().server(server).is_some();
        let program = entry.map_or_else(String::new, |entry| entry.transport.program());
        let stored = self.tasks.spawn_blocking(move || {
            let before = catalog.snapshot();
            let known = before.server(&key.server).map(|known| known.as_listed());
            let listed = Listed {
                tools: listing.tools.clone(),
                prompts: or_known(&key.server, &listing.prompts, known, ServerTools::prompts),
                resources: or_known(&key.server, &listing.resources, known, ServerTools::resources),
                templates: or_known(&key.server, &listing.templates, known, ServerTools::templates),
                software: listing.introduction.software.clone(),
                instructions: listing.introduction.instructions.clone(),
                capabilities: listing.introduction.capabilities.clone(),
                revision: Some(listing.introduction.revision),
                fresh_for: listing.fresh_for,
            };
            let tools = lists.store(&key, &listed);
            failures.remove(&key);
            for flaw in tools.flaws() {
                let (kind, entry, reason) = (flaw.kind, flaw.index, &flaw.reason);
                tracing::warn!(server = %key.server, %kind, entry, reason, "not usable");
            }
            let pending = pins.pending(&key.server);
            // A list of one person does not change that of another.
            let compared = match is_of_person {
                true => Ok(false),
                false => pins.note(&key, &program, &tools),
            };
            note_changes(&ledger, &key.server, &pending, &pins.pending(&key.server));
            findings::note(&ledger, &before, &tools, known);
            match &compared {
                Ok(true) if config.notify => notifier.notify(Notice::Held {
                    server: key.server.to_string(),
                }),
                Ok(_) => {}
                Err(error) => {
                tracing::error!(server = %key.server, %error, "its tools could not be compared with the approved ones, so those that may have changed or been rejected are held back");
                }
            }
            let server = key.server.clone();
            let snapshot = catalog.update(|servers| {
                // The entry may have been disabled or changed since the server answered.
                if !stop.is_cancelled() {
                    servers.insert(key.server, tools);
                }
            });
            if compared.is_ok() {
                listing.set_compared();
            }
            // Other sessions read them, and see other tools.
            if !config.has_profile_rules() && !config.has_servers_of_people() {
                topics.note(&catalog, Some(&server));
                extensions.note(&snapshot);
            }
            (changes::by_listing(&server, &before, &snapshot), snapshot)
        });
        let (changes, snapshot) = stored.await.map_err(|_| NotListed::NotKept)?;
        self.index.catalog_changed();
        if changes.contains(&ChangeNotice::Tools) {
            let server = || server.to_string();
            self.events.note(|session| Event::ToolsChanged {
                server: server(),
                session,
            });
        }
        self.callers.lists_changed(&changes);
        if concerns_replicas
            && let Some(known) = snapshot.server(server).filter(|_| !changes.is_empty())
        {
            let hash = || changes::hash_of(known);
            self.callers.tell_replicas(server, hash);
        }
        Ok(())
    }
}

/// Writes a line of the audit log for each tool, prompt, resource and template that differs from the approved ones since `before`.
fn note_changes(ledger: &Ledger, server: &ServerName, before: &Pending, now: &Pending) {
    let tools = now.tools.iter().map(|it| ("tool", it, &before.tools));
    let entries = now.entries.iter().map(|it| ("entry", it, &before.entries));
    for (what, (name, change), known) in tools.chain(entries) {
        if known.get(name) != Some(change) {
            let detail = format!("the {what} is not an approved one: {}", change.kind.word());
            ledger.note(Kind::Trust, Outcome::Waiting, server, Some(name), &detail);
        }
    }
}

/// A list, or the previously known one if it could not be fetched.
fn or_known(
    server: &ServerName,
    list: &Result<Vec<Bytes>, ListError>,
    known: Option<&ServerTools>,
    entries: fn(&ServerTools) -> &Entries,
) -> Vec<Bytes> {
    list.clone().unwrap_or_else(|error| {
        tracing::warn!(%server, %error, "what was known before is kept");
        let Some(known) = known else {
            return Vec::new();
        };
        let json = entries(known)
            .as_slice()
            .iter()
            .filter_map(|entry| known.json_of(entry).ok());
        json.map(|json| Bytes::copy_from_slice(json.get().as_bytes()))
            .collect()
    })
}
