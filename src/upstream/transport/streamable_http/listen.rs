//! What a legacy server says unasked: a stream of events of its own, opened by GET and opened again when it ends.

use std::sync::Arc;

use reqwest::StatusCode;

use super::Endpoint;
use super::answer::{PAUSE, SHORTEST_PAUSE};
use crate::upstream::transport::http::body::{self, Content};
use crate::upstream::transport::http::events::{EventStream, Resumption};
use crate::upstream::{MESSAGE_LIMIT, backoff};

/// How a stream ended.
enum End {
    /// It may go on.
    Broken,
    /// There is none.
    NotOffered,
}

/// Listens until the endpoint ends, or the server turns out not to speak unasked.
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
        // It may stand for the session or for the stream: the next request tells.
        return End::NotOffered;
    }
    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
        return End::Broken;
    }
    if !status.is_success() || body::content(&response) != Content::Events {
        tracing::debug!(server = %endpoint.peer.server, %status, "it does not speak unasked");
        return End::NotOffered;
    }
    let mut events = EventStream::new(response, MESSAGE_LIMIT, std::mem::take(resumption));
    while let Ok(Some(event)) = events.next().await {
        *failures = 0;
        // Nothing was asked here, so nothing is answered.
        let _ = endpoint.event(event, None);
    }
    *resumption = events.resumption().clone();
    End::Broken
}
