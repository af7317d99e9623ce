//! Requests to other replicas.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, redirect};

use super::{LETTERS, SEAL};
use crate::tls;

/// The time limit of a connection to a replica.
const CONNECT: Duration = Duration::from_secs(2);

/// The time after which a connection that is not used is closed.
const IDLE: Duration = Duration::from_secs(30);

/// The reason why a replica did not get a letter.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreachable {
    /// It does not live any more.
    #[error("the replica has gone")]
    Gone,
    /// The connection failed, before or after the replica got the letter.
    #[error("the replica cannot be reached")]
    Failed(#[source] reqwest::Error),
}

impl Unreachable {
    /// Whether the replica cannot have got the letter.
    pub(crate) fn is_before(&self) -> bool {
        match self {
            Self::Gone => true,
            Self::Failed(error) => error.is_connect(),
        }
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
