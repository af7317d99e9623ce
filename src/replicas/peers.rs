//! Requests to other replicas.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use reqwest::{Client, redirect};

use super::{LETTERS, SEAL};
use crate::tls;

type BoxError = Box<dyn Error + Send + Sync>;

/// The time limit of a connection to a replica.
const CONNECT: Duration = Duration::from_secs(2);

/// The time after which a connection that is not used is closed.
const IDLE: Duration = Duration::from_secs(30);

/// Why a replica did not get a letter.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreachable {
    /// It does not live any more.
    #[error("the replica has gone")]
    Gone,
    /// It has no connection free, or another program answers in its place.
    #[error("the answer at its address is 503")]
    Busy,
    /// The connection failed, before or after the replica got the letter.
    #[error("the replica cannot be reached")]
    Failed(#[source] reqwest::Error),
    /// It got the letter, or may have got it, and has died before it answered.
    #[error("the replica gives no sign of life any more")]
    Died,
}

impl Unreachable {
    /// Whether the replica cannot have got the letter.
    pub(crate) fn is_before(&self) -> bool {
        match self {
            Self::Gone | Self::Busy => true,
            Self::Failed(error) => error.is_connect(),
            Self::Died => false,
        }
    }
}

/// Resolves when a replica that was asked has died.
pub(super) type Death = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The body of a response, which fails when the replica that sends it dies: its connection may stay open.
pub(crate) struct Answer {
    body: reqwest::Body,
    death: Death,
}

impl Answer {
    pub(super) fn new(body: reqwest::Body, death: Death) -> Self {
        Self { body, death }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(piece) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(piece.map(|piece| piece.map_err(BoxError::from)));
        }
        match self.death.as_mut().poll(context) {
            Poll::Ready(()) => {
                // It is not asked again.
                self.death = Box::pin(std::future::pending());
                Poll::Ready(Some(Err(Unreachable::Died.into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The HTTP client for other replicas.
#[derive(Debug)]
pub(super) struct Peers(Client);

impl Peers {
    pub(super) fn new() -> Self {
        let client = tls::begin()
            .no_proxy()
            .no_gzip()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            .build();
        Self(client.expect("the settings are constant"))
    }

    /// Sends a letter to the replica at `url`.
    pub(super) async fn send(
        &self,
        url: &str,
        seal: String,
        letter: Bytes,
    ) -> Result<http::Response<reqwest::Body>, Unreachable> {
        let url = format!("{}{LETTERS}", url.trim_end_matches('/'));
        let sent = self
            .0
            .post(url)
            .header(SEAL, seal)
            .body(letter)
            .send()
            .await;
        sent.map(http::Response::from).map_err(Unreachable::Failed)
    }
}
