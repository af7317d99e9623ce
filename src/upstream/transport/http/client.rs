//! The HTTP clients. Each is created on first use and shared by all servers with the same connection settings. A
//! server on this machine is reached without a proxy, which could not reach it.
//!
//! TCP keep-alive detects dead connections within a minute, so there is no other check.

use std::collections::HashMap;
use std::net::IpAddr;

use std::time::Duration;

use parking_lot::Mutex;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, StatusCode, Url};

use super::error::{HttpError, unsent};
use super::headers::origin;
use crate::config::{Certificates, Environment, Network, Proxy, Remote};
use crate::tls;
use crate::upstream::oauth::AddressGuard;

/// The time limit for opening a connection, including TLS.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The maximum number of redirects.
const MOST_REDIRECTS: usize = 5;

/// How long an idle plain connection is kept: less than the five seconds after which common small servers close it. A
/// request that crosses that close is lost, and must not be repeated. Servers behind TLS wait longer.
const PLAIN_IDLE: Duration = Duration::from_secs(4);
const TLS_IDLE: Duration = Duration::from_secs(45);

/// The clients, shared by all servers. They hold no credentials except those of proxies.
#[derive(Debug)]
pub(in crate::upstream) struct Clients {
    /// The proxies and certificates of the session.
    network: Network,
    made: Mutex<HashMap<Way, Client>>,
}

/// The connection settings of a client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Way {
    is_tls: bool,
    /// Whether connections are kept for the next request.
    keeps: bool,
    /// Whether it may connect to public addresses only.
    is_guarded: bool,
    proxy: Proxy,
    certificates: Option<Certificates>,
}

impl Clients {
    /// Creates an empty set of clients, for a session with these proxies and certificates.
    pub(in crate::upstream) fn new(network: Network) -> Self {
        Self {
            network,
            made: Mutex::default(),
        }
    }

    /// The proxies and certificates of the session.
    pub(in crate::upstream) fn network(&self) -> &Network {
        &self.network
    }

    /// The client for a server at `url`.
    pub(in crate::upstream) fn of(&self, remote: &Remote, url: &Url) -> Result<Client, HttpError> {
        self.get(Way::to(remote, url))
    }

    /// The client without kept connections, for a server whose responses on kept connections stall or get lost.
    /// `None` except for a plain server on this machine, where a new connection costs little.
    pub(in crate::upstream) fn unpooled(
        &self,
        remote: &Remote,
        url: &Url,
    ) -> Result<Option<Client>, HttpError> {
        let way = Way {
            keeps: false,
            ..Way::to(remote, url)
        };
        (!way.is_tls && is_local(url))
            .then(|| self.get(way))
            .transpose()
    }

    /// The client for a URL that an internet server named: it connects to no private address except proxies.
    pub(in crate::upstream) fn guarded(
        &self,
        remote: &Remote,
        url: &Url,
        variables: &Environment,
    ) -> Result<Client, HttpError> {
        let way = Way {
            is_guarded: true,
            ..Way::to(remote, url)
        };
        let named = variables
            .iter()
            .filter(|(name, _)| name.to_ascii_lowercase().ends_with("_proxy"));
        let proxies = named.map(|(_, value)| value);
        let guard = match &remote.proxy {
            Proxy::Url(proxy) => AddressGuard::sparing(proxies.chain([proxy.as_str()])),
            Proxy::Environment | Proxy::None => AddressGuard::sparing(proxies),
        };
        self.get_with(way, Some(guard))
    }

    fn get(&self, way: Way) -> Result<Client, HttpError> {
        self.get_with(way, None)
    }

    fn get_with(&self, way: Way, guard: Option<AddressGuard>) -> Result<Client, HttpError> {
        // Held while a client is built, so that each is built once; nothing is awaited meanwhile.
        let mut clients = self.made.lock();
        if let Some(client) = clients.get(&way) {
            return Ok(client.clone());
        }
        let client = build(&way, &self.network, guard)?;
        clients.insert(way, client.clone());
        Ok(client)
    }
}

impl Way {
    fn to(remote: &Remote, url: &Url) -> Self {
        let is_tls = url.scheme() == "https";
        let proxy = if is_local(url) {
            Proxy::None
        } else {
            remote.proxy.clone()
        };
        Self {
            is_tls,
            keeps: true,
            is_guarded: false,
            proxy,
            certificates: remote.certificates.clone(),
        }
    }
}

fn build(way: &Way, network: &Network, guard: Option<AddressGuard>) -> Result<Client, HttpError> {
    let builder = tls::begin()
        .user_agent(concat!("mcpzip/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_LIMIT)
        .tcp_nodelay(true)
        .referer(false)
        .redirect(Policy::custom(|attempt| {
            if may_follow(&attempt) {
                attempt.follow()
            } else {
                attempt.stop()
            }
        }));
    let builder = match (way.keeps, way.is_tls) {
        (false, _) => builder.pool_max_idle_per_host(0),
        (true, false) => builder.pool_idle_timeout(PLAIN_IDLE),
        (true, true) => builder.pool_idle_timeout(TLS_IDLE),
    };
    let builder = match &way.proxy {
        Proxy::Environment => network.with_proxies(builder),
        Proxy::None => builder.no_proxy(),
        Proxy::Url(url) => builder.proxy(reqwest::Proxy::all(url).map_err(unsent)?),
    };
    let builder = guard
        .into_iter()
        .fold(builder, |builder, guard| builder.dns_resolver(guard));
    // Certificates are loaded only if TLS is needed; a proxy before a plain server may use TLS.
    let builder = if way.is_tls || way.proxy != Proxy::None {
        network.with_certificates(builder, way.certificates.as_ref())?
    } else {
        tls::plain(builder)
    };
    builder.build().map_err(unsent)
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Whether a redirect with this status keeps the method of the request. On one origin, only such redirects are followed.
pub(super) fn keeps_method(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    )
}

/// Whether to follow a redirect: only to the same origin, because credentials are sent along, and only if the method
/// stays.
fn may_follow(attempt: &Attempt<'_>) -> bool {
    let stays = attempt
        .previous()
        .first()
        .is_some_and(|first| origin(first) == origin(attempt.url()));
    keeps_method(attempt.status()) && stays && attempt.previous().len() <= MOST_REDIRECTS
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
