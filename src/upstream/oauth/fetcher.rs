//! HTTP requests of a login: to metadata documents and to the endpoints of the authorization server. Each is limited in size
//! and time, and a server of the internet cannot direct them into a private network.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, StatusCode, Url};

use super::address::is_public;
use super::error::LoginError;
use crate::config::{Network, Proxy, Remote};
use crate::upstream::UpstreamContext;
use crate::upstream::transport::http::body::{Broken, whole};
use crate::upstream::transport::http::reason;

/// The time limit of one request.
const FETCH_LIMIT: Duration = Duration::from_secs(10);

/// The size limit of a response, in bytes.
const SIZE_LIMIT: usize = 256 * 1024;

/// Sends the login requests for one server, and refuses addresses that the server must not make us reach.
pub(super) struct MetadataFetcher<'a> {
    remote: &'a Remote,
    context: &'a UpstreamContext,
    own: Url,
    /// Whether the server is on the internet, and so refers us to internet addresses only. It never changes back.
    is_public: AtomicBool,
    /// Whether its name does not prove that, so that the address which really answers counts as well.
    is_named: bool,
}

/// The response to one request.
pub(super) struct FetchedResponse {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl<'a> MetadataFetcher<'a> {
    /// The fetcher for the server at `own`.
    pub(super) async fn of(own: &Url, remote: &'a Remote, context: &'a UpstreamContext) -> Self {
        Self {
            remote,
            context,
            own: own.clone(),
            is_public: AtomicBool::new(
                !may_be_private(own, remote, context.clients.network()).await,
            ),
            is_named: !is_fixed(own),
        }
    }

    /// Whether the server is on the internet, as far as it is known.
    pub(super) fn is_public(&self) -> bool {
        self.is_public.load(Ordering::Relaxed)
    }

    /// Records the address that really answered for the server; an unknown one counts as the internet's. A name may
    /// have another address by the time of the connection.
    pub(super) fn answered_by(&self, peer: Option<IpAddr>) {
        if self.is_named && peer.is_none_or(is_public) {
            self.note_public();
        }
    }

    /// Records that the server is on the internet.
    pub(super) fn note_public(&self) {
        self.is_public.store(true, Ordering::Relaxed);
    }

    /// Gets a JSON document, or what the server answers in place of it.
    pub(super) async fn document(
        &self,
        url: &Url,
    ) -> Result<Result<serde_json::Value, String>, LoginError> {
        let get = || self.send(Method::GET, url, None, Bytes::new(), None);
        let answer = match get().await {
            // A kept connection may have closed just then; a repetition is harmless.
            Err(LoginError::Fetch { .. }) => get().await?,
            first => first?,
        };
        if answer.status.is_server_error() {
            return Err(wrong(
                url,
                format!("answered with HTTP {}", answer.status.as_u16()),
            ));
        }
        let is_success = answer.status.is_success();
        let document = serde_json::from_slice(&answer.body).ok();
        Ok(document.filter(|_| is_success).ok_or_else(|| {
            let words = if is_success { ", and no JSON" } else { "" };
            format!("HTTP {}{words}", answer.status.as_u16())
        }))
    }

    /// Posts a form; `authorization` authenticates the client.
    pub(super) async fn form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        authorization: Option<HeaderValue>,
    ) -> Result<FetchedResponse, LoginError> {
        // A URL's query is encoded like a form.
        let mut form = Url::parse("http://form").expect("it is a URL");
        form.query_pairs_mut().extend_pairs(fields);
        let body = form.query().unwrap_or_default().to_owned();
        self.send(
            Method::POST,
            url,
            Some("application/x-www-form-urlencoded"),
            body.into(),
            authorization,
        )
        .await
    }

    /// Posts JSON.
    pub(super) async fn json(
        &self,
        url: &Url,
        body: &serde_json::Value,
    ) -> Result<FetchedResponse, LoginError> {
        self.send(
            Method::POST,
            url,
            Some("application/json"),
            body.to_string().into(),
            None,
        )
        .await
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        kind: Option<&'static str>,
        body: Bytes,
        authorization: Option<HeaderValue>,
    ) -> Result<FetchedResponse, LoginError> {
        self.check(url)?;
        let is_own = url.origin() == self.own.origin();
        let is_guarded = self.is_public() && !is_own;
        let clients = &self.context.clients;
        let client = if is_guarded {
            clients.guarded(self.remote, url, &self.context.variables)
        } else {
            clients.of(self.remote, url)
        };
        let client = client.map_err(|error| wrong(url, error.to_string()))?;
        let mut request = client
            .request(method, url.clone())
            .header(ACCEPT, "application/json")
            .body(body);
        if let Some(kind) = kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let fetch = async {
            let response = request.send().await.map_err(reason)?;
            if is_own {
                self.answered_by(response.remote_addr().map(|peer| peer.ip()));
            }
            let status = response.status();
            let body = whole(response, SIZE_LIMIT)
                .await
                .map_err(|broken| match broken {
                    Broken::TooLarge(_) => format!("answered with more than {SIZE_LIMIT} bytes"),
                    Broken::Lost(reason) => format!("broke off its answer ({reason})"),
                })?;
            Ok::<_, String>(FetchedResponse { status, body })
        };
        match tokio::time::timeout(FETCH_LIMIT, fetch).await {
            Ok(fetched) => fetched.map_err(|reason| wrong(url, reason)),
            Err(_) => Err(wrong(url, format!("did not answer within {FETCH_LIMIT:?}"))),
        }
    }

    /// Checks that a request may be sent to `url`.
    pub(super) fn check(&self, url: &Url) -> Result<(), LoginError> {
        permitted(&self.own, self.is_public(), url)
    }
}

/// Checks that a server at `own` may refer us to `url`.
pub(super) fn permitted(own: &Url, is_public_server: bool, url: &Url) -> Result<(), LoginError> {
    let forbidden = |reason| {
        Err(LoginError::Forbidden {
            url: shown(url),
            reason,
        })
    };
    let address = literal(url);
    let is_loopback = address.map_or(url.host_str() == Some("localhost"), |address| {
        address.is_loopback()
    });
    match url.scheme() {
        "https" => {}
        "http" if is_loopback => {}
        // A server without TLS may use itself; no other server may refer us to it.
        "http" if url.origin() == own.origin() => {}
        _ => return forbidden("only https, or an address of this machine, may be"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return forbidden("it contains a user or a password");
    }
    let is_private =
        url.host_str() == Some("localhost") || address.is_some_and(|address| !is_public(address));
    if is_public_server && is_private && url.origin() != own.origin() {
        return forbidden("an internet server must not refer to a private address");
    }
    Ok(())
}

/// A URL for display: without a query.
pub(super) fn shown(url: &Url) -> String {
    match url.origin() {
        origin if origin.is_tuple() => format!("{}{}", origin.ascii_serialization(), url.path()),
        _ => format!("{}:{}", url.scheme(), url.path()),
    }
}

/// The error that an answer arrived, and cannot be used.
pub(super) fn unusable(url: &Url, reason: &'static str) -> LoginError {
    LoginError::Answer {
        url: shown(url),
        reason,
    }
}

pub(super) fn wrong(url: &Url, reason: impl Into<String>) -> LoginError {
    LoginError::Fetch {
        url: shown(url),
        reason: reason.into(),
    }
}

fn literal(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_matches(['[', ']']).parse().ok()
}

/// Whether a server's URL has an address, so that no name resolution changes it.
fn is_fixed(url: &Url) -> bool {
    literal(url).is_some() || url.host_str() == Some("localhost")
}

/// Whether a server may stand in a private network: all addresses of its name are private. One that cannot be told,
/// behind a proxy say, does not.
async fn may_be_private(url: &Url, remote: &Remote, network: &Network) -> bool {
    if is_fixed(url) {
        return literal(url).is_none_or(|address| !is_public(address));
    }
    let Some(host) = url.host_str().filter(|_| !is_proxied(url, remote, network)) else {
        return false;
    };
    let found = tokio::time::timeout(FETCH_LIMIT, tokio::net::lookup_host((host, 0))).await;
    let Ok(Ok(found)) = found else {
        return false;
    };
    let mut found = found.map(|address| is_public(address.ip())).peekable();
    found.peek().is_some() && found.all(|is_public| !is_public)
}

/// Whether a proxy stands before the server, which looks its name up.
fn is_proxied(url: &Url, remote: &Remote, network: &Network) -> bool {
    match &remote.proxy {
        Proxy::None => false,
        Proxy::Url(_) => true,
        Proxy::Environment => network.has_proxy_for(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OAuth;
    use crate::shutdown::Tasks;

    fn remote(url: &str) -> Remote {
        Remote {
            url: url.to_owned(),
            headers: std::collections::BTreeMap::new(),
            headers_command: None,
            openapi: None,
            proxy: Proxy::None,
            certificates: None,
            oauth: OAuth::default(),
            identity: crate::config::UpstreamIdentity::Shared,
            masker: crate::secret::Masker::default(),
        }
    }

    fn context() -> UpstreamContext {
        let shared = crate::upstream::SharedServers::of_one(Tasks::new());
        UpstreamContext::new(shared, crate::config::SessionEnv::default(), None)
    }

    #[track_caller]
    fn check(own: &str, is_public: bool, url: &str, expected: Result<(), &str>) {
        let (remote, context) = (remote(own), context());
        let fetcher = MetadataFetcher {
            remote: &remote,
            context: &context,
            own: Url::parse(own).unwrap(),
            is_public: AtomicBool::new(is_public),
            is_named: true,
        };
        let checked = fetcher
            .check(&Url::parse(url).unwrap())
            .map_err(|error| error.to_string());
        match (&checked, expected) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(words)) if error.contains(words) => {}
            _ => panic!("{url} for {own}: {checked:?}"),
        }
    }

    #[test]
    fn a_server_of_the_internet_leads_to_nothing_private() {
        let own = "https://mcp.example.com/mcp";
        for url in [
            "https://10.0.0.1/x",
            "https://[::1]/x",
            "https://localhost/x",
            "http://127.0.0.1:1/x",
            "https://[::ffff:10.0.0.1]/",
        ] {
            check(own, true, url, Err("must not refer to a private address"));
        }
        check(own, true, "http://login.example.com/x", Err("only https"));
        check(own, true, "ftp://login.example.com/x", Err("only https"));
        check(
            own,
            true,
            "https://me:secret@login.example.com/x",
            Err("a user or a password"),
        );
        check(own, true, "https://login.example.com/x", Ok(()));
        check("https://10.0.0.1/mcp", false, "https://10.0.0.2/x", Ok(()));
        check("http://10.0.0.1/mcp", false, "http://10.0.0.1/x", Ok(()));
        check(
            "http://10.0.0.1/mcp",
            false,
            "http://10.0.0.2/x",
            Err("only https"),
        );
    }

    #[test]
    fn a_name_is_as_private_as_the_peer_that_answers_for_it() {
        #[track_caller]
        fn check(own: &str, peer: Option<&str>, expected: bool) {
            let (remote, url) = (remote(own), Url::parse(own).unwrap());
            let context = context();
            let fetcher = MetadataFetcher {
                remote: &remote,
                context: &context,
                is_named: !is_fixed(&url),
                own: url,
                is_public: AtomicBool::new(false),
            };
            fetcher.answered_by(peer.map(|peer| peer.parse().unwrap()));
            assert_eq!(fetcher.is_public(), expected, "{own} by {peer:?}");
        }
        check("https://mcp.example/", Some("10.0.0.1"), false);
        check("https://mcp.example/", Some("1.1.1.1"), true);
        check("https://mcp.example/", Some("::ffff:1.1.1.1"), true);
        check("https://mcp.example/", None, true);
        // An address stays the same behind a proxy.
        check("https://10.0.0.1/", Some("1.1.1.1"), false);
        check("http://localhost/", None, false);
    }

    #[tokio::test]
    async fn a_server_is_private_where_its_address_is() {
        for (url, expected) in [
            ("http://127.0.0.1/", true),
            ("http://localhost/", true),
            ("https://8.8.8.8/", false),
        ] {
            assert_eq!(
                may_be_private(&Url::parse(url).unwrap(), &remote(url), &Network::default()).await,
                expected,
                "{url}"
            );
        }
    }
}
