//! The HTTP clients, each made when it is first needed: for servers on this machine, for plain ones and for those with
//! TLS elsewhere. The first knows no proxy, which could not reach them.

use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, StatusCode, Url};

use super::error::{HttpError, words};
use super::headers::origin;

/// How long a connection may take until it stands, TLS included.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Servers of this many redirects lead nowhere.
const MOST_REDIRECTS: usize = 5;

/// How long a connection waits for its next request: less than the five seconds after which common small servers close
/// it, as a request that crosses that close is lost and must not be sent again. Those behind TLS are more patient.
const PLAIN_IDLE: Duration = Duration::from_secs(4);
const TLS_IDLE: Duration = Duration::from_secs(45);

/// The clients, shared by all servers. They hold no credentials.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Clients {
    local: OnceLock<Client>,
    unpooled: OnceLock<Client>,
    plain: OnceLock<Client>,
    tls: OnceLock<Client>,
}

/// How connections are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Plain, on this machine.
    Local,
    /// The same, with a connection for each request.
    Unpooled,
    Plain,
    Tls,
}

impl Clients {
    /// The client for a server at `url`.
    pub(in crate::upstream) fn of(&self, url: &Url) -> Result<Client, HttpError> {
        self.get(match url.scheme() {
            "http" if is_local(url) => Kind::Local,
            "http" => Kind::Plain,
            _ => Kind::Tls,
        })
    }

    /// The client for when answers on kept connections stall; only for a plain server on this machine, where a new
    /// connection costs little.
    pub(in crate::upstream) fn unpooled(&self, url: &Url) -> Result<Option<Client>, HttpError> {
        (url.scheme() == "http" && is_local(url)).then(|| self.get(Kind::Unpooled)).transpose()
    }

    fn get(&self, kind: Kind) -> Result<Client, HttpError> {
        let place = match kind {
            Kind::Local => &self.local,
            Kind::Unpooled => &self.unpooled,
            Kind::Plain => &self.plain,
            Kind::Tls => &self.tls,
        };
        if let Some(client) = place.get() {
            return Ok(client.clone());
        }
        // Where two build it at once, one of the two is kept.
        let built = build(kind)?;
        Ok(place.get_or_init(|| built).clone())
    }
}

fn build(kind: Kind) -> Result<Client, HttpError> {
    // It is there already when a client was made before; any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("mcpzip/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_LIMIT)
        .tcp_nodelay(true)
        .referer(false)
        .redirect(Policy::custom(|attempt| if may_follow(&attempt) { attempt.follow() } else { attempt.stop() }));
    // No certificates are loaded for what needs none; a proxy before a plain server may be behind TLS.
    let builder = match kind {
        Kind::Local => builder.pool_idle_timeout(PLAIN_IDLE).tls_certs_only([]).no_proxy(),
        Kind::Unpooled => builder.pool_max_idle_per_host(0).tls_certs_only([]).no_proxy(),
        Kind::Plain => builder.pool_idle_timeout(PLAIN_IDLE),
        Kind::Tls => builder.pool_idle_timeout(TLS_IDLE),
    };
    builder.build().map_err(|error| HttpError::Unreachable { reason: words(error) })
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Only to the same origin, as credentials go along, and only where the method stays.
fn may_follow(attempt: &Attempt<'_>) -> bool {
    let keeps_method = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let stays = attempt.previous().first().is_some_and(|first| origin(first) == origin(attempt.url()));
    keeps_method && stays && attempt.previous().len() <= MOST_REDIRECTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_this_machine_is_told_apart() {
        for (url, expected) in [
            ("http://127.0.0.1:3000/mcp", true),
            ("http://127.8.0.1/mcp", true),
            ("http://[::1]:80/", true),
            ("http://LOCALHOST/", true),
            ("http://localhost.example.com/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(is_local(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
