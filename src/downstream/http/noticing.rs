//! Follows what happens at other replicas.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::MissedTickBehavior;

use super::continuing::send_elsewhere;
use super::shared::Shared;
use crate::replicas::{Notice, Replicas};

/// The time between two attempts to read sessions that could not be read.
const AGAIN: Duration = Duration::from_secs(1);

/// Follows what happens at other replicas, until the run ends.
pub(super) async fn follow(shared: Arc<Shared>) {
    let Some(replicas) = shared.replicas.clone() else {
        return;
    };
    let mut notices = replicas.notices();
    let mut is_behind = false;
    let mut again = tokio::time::interval(AGAIN);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let notice = tokio::select! {
            notice = notices.recv() => notice,
            _ = again.tick(), if is_behind => {
                is_behind = !read_again(&shared, &replicas).await;
                continue;
            }
            () = shared.tasks.stopped() => return,
        };
        match notice {
            Ok(Notice::Reread) | Err(RecvError::Lagged(_)) => {
                is_behind = true;
                again.reset_immediately();
            }
            Ok(notice) => noticed(&shared, &replicas, notice),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Reads again what the store has about the sessions here. Returns whether it answered.
async fn read_again(shared: &Shared, replicas: &Arc<Replicas>) -> bool {
    let sessions = shared.sessions.names();
    if let Err(error) = replicas.read_again(&sessions).await {
        tracing::debug!(%error, "sessions are read later");
        return false;
    }
    for session in sessions {
        changed(shared, replicas, &session);
    }
    true
}

fn noticed(shared: &Shared, replicas: &Arc<Replicas>, notice: Notice) {
    match notice {
        Notice::Cancelled { session, request } => {
            if let Some(guard) = shared.sessions.named(&session) {
                guard.session().cancel(&request);
            }
        }
        Notice::Listening {
            session, replica, ..
        } => {
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
        // The caller reads.
        Notice::Reread => {}
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
