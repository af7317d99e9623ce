//! The stream of a legacy server's own messages: opened by GET, and reopened when it ends.

use std::sync::Arc;

use reqwest::StatusCode;

use super::Endpoint;
use super::answer::{PAUSE, SHORTEST_PAUSE};
use crate::upstream::transport::http::body::{self, Content};
use crate::upstream::transport::http::events::{EventStream, Resumption};
use crate::upstream::{MESSAGE_LIMIT, backoff};

/// The end of a stream.
enum End {
    /// It may be resumed.
    Broken,
    /// The server offers no such stream.
    NotOffered,
}

/// Listens until the endpoint closes, or the server turns out to offer no stream.
pub(super) async fn listen(endpoint: Arc<Endpoint>) {
    let ended = endpoint.ended.clone();
    let listening = async {
        let mut resumption = Resumption::default();
        let mut failures = 0;
        while matches!(
            once(&endpoint, &mut resumption, &mut failures).await,
            End::Broken
        ) {
            failures += 1;
            let pause = resumption.pause.unwrap_or(PAUSE).max(SHORTEST_PAUSE);
            tokio::time::sleep(if failures > 1 {
                pause.max(backoff(failures))
            } else {
                pause
            })
            .await;
        }
    };
    tokio::select! {
        () = listening => {}
        () = ended.cancelled() => {}
    }
}

async fn once(endpoint: &Arc<Endpoint>, resumption: &mut Resumption, failures: &mut u32) -> End {
    let Ok(response) = endpoint.get(resumption.last_id.as_deref()).await else {
        return End::Broken;
    };
    let status = response.status();
    if status == StatusCode::NOT_FOUND && endpoint.session.get().is_some() {
        // The 404 may be about the session or the stream: the next request shows which.
        return End::NotOffered;
    }
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        return End::Broken;
    }
    if !status.is_success() || body::content(&response) != Content::Events {
        tracing::debug!(server = %endpoint.peer.server, %status, "it has no stream of its own messages");
        return End::NotOffered;
    }
    let mut events = EventStream::new(response, MESSAGE_LIMIT, std::mem::take(resumption));
    while let Ok(Some(event)) = events.next().await {
        *failures = 0;
        // No request was sent here, so the event cannot be a response.
        let _ = endpoint.event(event, None);
    }
    *resumption = events.resumption().clone();
    End::Broken
}
