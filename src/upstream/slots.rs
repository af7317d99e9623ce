//! The slots of one server: one, or several while clients with different capabilities use it in parallel.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use super::followed::Followed;
use super::host::Declared;
use super::sharing::Users;
use super::slot::{Idle, ServerState, Slot};
use super::subscription::Subscriptions;
use crate::config::Server;
use crate::tool::ServerName;

/// The maximum number of slots of one server for clients with settings of extensions, which they choose freely: each would be a
/// process. Further ones share the connections of clients without extensions.
const MOST_SLOTS: usize = 8;

/// The slots of a server, for all sessions that share them.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) first: Arc<Slot>,
    others: RwLock<Vec<Arc<Slot>>>,
    /// The followed resources; empty until the first subscription.
    subscriptions: OnceLock<Subscriptions>,
    pub(super) users: Arc<Users>,
}

impl Slots {
    pub(super) fn new(
        server: &ServerName,
        entry: &Server,
        idle: Idle,
        users: Arc<Users>,
    ) -> Arc<Self> {
        Arc::new(Self {
            first: Slot::new(server.clone(), entry.clone(), idle, users.clone()),
            others: RwLock::default(),
            subscriptions: OnceLock::new(),
            users,
        })
    }

    pub(super) fn all(&self) -> Vec<Arc<Slot>> {
        let others = self.others.read();
        std::iter::once(&self.first)
            .chain(&*others)
            .cloned()
            .collect()
    }

    /// A slot whose connection takes requests for clients that declare this; for `None`, the first slot.
    pub(super) fn suiting(&self, declared: Option<Declared>) -> Arc<Slot> {
        let Some(declared) = declared else {
            return self.first.clone();
        };
        if self.first.suits(&declared) {
            return self.first.clone();
        }
        let find = |others: &[Arc<Slot>], declared: &Declared| {
            let mut all = std::iter::once(&self.first).chain(others);
            all.find(|slot| slot.suits(declared)).cloned()
        };
        if let Some(other) = find(&self.others.read(), &declared) {
            return other;
        }
        let mut others = self.others.write();
        let plain = Declared::from(declared.capabilities);
        let declared = match others.len() + 1 < MOST_SLOTS {
            true => declared,
            false => plain,
        };
        find(&others, &declared).unwrap_or_else(|| {
            let slot = self.first.sibling();
            others.push(slot.clone());
            slot
        })
    }

    /// The number of open connections.
    pub(super) fn connections(&self) -> usize {
        let slots = self.all().into_iter();
        slots.filter(|slot| slot.connection().is_some()).count()
    }

    /// The state that says most: an open connection before none.
    pub(super) fn state(&self) -> ServerState {
        let mut states = self.all().into_iter().map(|slot| slot.state());
        states
            .find(|state| matches!(state, ServerState::Ready))
            .unwrap_or_else(|| self.first.state())
    }

    /// Sets what a session follows. While there are any, the connection stays open.
    pub(super) fn follow(&self, user: u64, uris: BTreeSet<Followed>) {
        let uris = self.users.follow(user, uris);
        self.first.follow(&uris);
        if uris.is_empty() && self.subscriptions.get().is_none() {
            return;
        }
        let start = || Subscriptions::new(self.first.clone());
        self.subscriptions.get_or_init(start).want(uris);
    }

    /// The resources that sessions follow, once there have been any.
    pub(super) fn subscriptions(&self) -> Option<&Subscriptions> {
        self.subscriptions.get()
    }

    /// Removes a session.
    pub(super) fn leave(&self, user: u64) {
        self.follow(user, BTreeSet::new());
        self.users.remove(user);
    }

    /// Ends the connections now, with the calls that they have; the next call makes a new one. Whether there was any.
    pub(super) fn stop(&self) -> bool {
        self.all().iter().filter(|slot| slot.stop()).count() > 0
    }

    pub(super) fn retire(&self) {
        self.all().iter().for_each(|slot| slot.retire());
    }
}
