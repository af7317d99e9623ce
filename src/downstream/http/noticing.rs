//! Follows what happens at other replicas.

use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;

use super::continuing::send_elsewhere;
use super::shared::Shared;
use crate::replicas::{Notice, Replicas};

/// Follows what happens at other replicas, until the run ends.
pub(super) async fn follow(shared: Arc<Shared>) {
    let Some(replicas) = shared.replicas.clone() else {
        return;
    };
    let mut notices = replicas.notices();
    loop {
        let notice = tokio::select! {
            notice = notices.recv() => notice,
            () = shared.tasks.stopped() => return,
        };
        match notice {
            Ok(notice) => noticed(&shared, &replicas, notice),
            Err(RecvError::Lagged(_)) => noticed(&shared, &replicas, Notice::Reread),
            Err(RecvError::Closed) => return,
        }
    }
}

fn noticed(shared: &Shared, replicas: &Arc<Replicas>, notice: Notice) {
    match notice {
        Notice::Cancelled { session, request } => {
            if let Some(guard) = shared.sessions.named(&session) {
                guard.session().cancel(&request);
            }
        }
        Notice::Listening { session, replica } => {
            if let Some(guard) = shared.sessions.named(&session) {
                send_elsewhere(shared, replicas, &guard, &session, replica);
            }
        }
        Notice::Moved { session } => {
            if let Some(guard) = shared.sessions.named(&session) {
                guard.session().moved();
            }
        }
        Notice::Changed { session } => changed(shared, replicas, &session),
        Notice::Listed { server, hash } => {
            for proxy in shared.proxies.all() {
                proxy.listed_elsewhere(&server, &hash);
            }
        }
        Notice::Reread => {
            for session in shared.sessions.names() {
                changed(shared, replicas, &session);
            }
        }
    }
}

/// Applies what the store has about a session.
fn changed(shared: &Shared, replicas: &Replicas, session: &str) {
    if replicas.has_ended(session) {
        shared.sessions.end_named(session);
    } else if let Some(guard) = shared.sessions.named(session) {
        guard.session().changed(&replicas.change(session));
    }
}
