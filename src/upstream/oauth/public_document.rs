//! A JSON document at a URL that a stranger names, such as the id of a client: nothing in a private network is reached by it.

use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde_json::Value;

use super::address::AddressGuard;
use super::fetcher::permitted;
use crate::config::Network;
use crate::tls;
use crate::upstream::transport::http::body::{Broken, whole};
use crate::upstream::transport::http::reason;

/// The time limit of the request.
const LIMIT: Duration = Duration::from_secs(5);

/// The size limit of the document, in bytes.
const LARGEST: usize = 64 * 1024;

/// Why there is no document.
#[derive(Debug)]
pub(crate) enum Unfetched {
    /// The URL may not be asked, in words for anyone.
    Forbidden(String),
    /// It was asked, in words for the operator.
    Failed(String),
}

/// Gets the document. Redirects are not followed. `may_be_private` is for hosts that the configuration names.
///
/// # Errors
/// When there is none, or the URL leads into a private network.
pub(crate) async fn public_document(
    url: &Url,
    network: &Network,
    may_be_private: bool,
) -> Result<Value, Unfetched> {
    if url.scheme() != "https" {
        return Err(Unfetched::Forbidden("its URL has no `https`".to_owned()));
    }
    if !may_be_private {
        let nowhere = Url::parse("https://stranger.invalid/").expect("it is a URL");
        let permitted = permitted(&nowhere, true, url);
        permitted.map_err(|error| Unfetched::Forbidden(error.to_string()))?;
    }
    let fetched = fetched(url, network, may_be_private).await;
    fetched.map_err(Unfetched::Failed)
}

async fn fetched(url: &Url, network: &Network, may_be_private: bool) -> Result<Value, String> {
    let builder = tls::begin()
        .user_agent(concat!("mcpzip/", env!("CARGO_PKG_VERSION")))
        .timeout(LIMIT)
        .redirect(Policy::none())
        .referer(false);
    let builder = network.with_proxies(builder);
    let builder = if may_be_private {
        builder
    } else {
        builder.dns_resolver(AddressGuard::sparing(network.proxies()))
    };
    let builder = network.with_certificates(builder, None);
    let builder = builder.map_err(|error| error.to_string())?;
    let client: Client = builder.build().map_err(|error| error.to_string())?;
    let request = client.get(url.clone()).header("accept", "application/json");
    let answer = request.send().await.map_err(reason)?;
    let status = answer.status();
    if status.as_u16() != 200 {
        return Err(format!("HTTP {}", status.as_u16()));
    }
    let body = whole(answer, LARGEST)
        .await
        .map_err(|broken| match broken {
            Broken::TooLarge(_) => format!("it has more than {LARGEST} bytes"),
            Broken::Lost(reason) => reason,
        })?;
    serde_json::from_slice(&body).map_err(|_| "it is not JSON".to_owned())
}
