//! Access control for HTTP clients.
//!
//! Any web page can make a browser send requests to a server on the same machine. The `Host` header shows whether a
//! foreign name was pointed here (DNS rebinding); `Origin` shows which page sends the request.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    AUTHORIZATION, HOST, ORIGIN, VARY,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;

use super::connections::Connection;
use super::{identities, refusal};
use crate::identity::Authenticator;
use crate::secret::{Secret, is_same_secret};

/// The requests that pages of permitted origins may send, and the headers that they may read.
const CROSS_ORIGIN: [(HeaderName, &str); 4] = [
    (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, DELETE"),
    (
        ACCESS_CONTROL_ALLOW_HEADERS,
        "Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, \
         Traceparent, Tracestate",
    ),
    (
        ACCESS_CONTROL_EXPOSE_HEADERS,
        "Mcp-Session-Id, WWW-Authenticate",
    ),
    (ACCESS_CONTROL_MAX_AGE, "600"),
];

/// Marks the response of a page to a person whom it knows. Other requests are counted when they are permitted.
#[derive(Debug, Clone, Copy)]
pub(super) struct LetIn;

/// The access rules of one server.
#[derive(Debug)]
pub(super) struct Access {
    /// Whether the address can be reached from this machine only.
    pub(super) is_loopback: bool,
    pub(super) token: Option<Secret<String>>,
    pub(super) origins: Vec<Origin>,
    /// Whether the server speaks TLS itself.
    pub(super) is_tls: bool,
    /// The origin of the gateway's own pages, if it is known.
    pub(super) own_origin: Option<Origin>,
    /// Finds out who sends a request, where clients have identities.
    pub(super) authenticator: Option<Arc<Authenticator>>,
}

/// The origin of a web page: scheme, host and port, as browsers send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin(String);

/// The text is not an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an origin is a scheme, a host and, if need be, a port, as `https://app.example.com`")]
pub(crate) struct NoOrigin;

impl FromStr for Origin {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        let (scheme, rest) = text.split_once("://").ok_or(NoOrigin)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let is_scheme = !scheme.is_empty()
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        let is_host = !rest.is_empty()
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"/?#@*,".contains(&byte));
        if is_scheme && is_host {
            Ok(Self(format!("{scheme}://{rest}").to_ascii_lowercase()))
        } else {
            Err(NoOrigin)
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Origin {
    /// Host and port.
    fn authority(&self) -> &str {
        self.0.split_once("://").map_or("", |(_, rest)| rest)
    }
}

impl Access {
    /// The response that refuses the request; `None` if it is permitted.
    pub(super) fn refusal(&self, headers: &HeaderMap, uri: &Uri) -> Option<Response> {
        // If a header is given twice, a proxy in front may have checked the other one.
        let is_double = |name: &HeaderName| headers.get_all(name).iter().nth(1).is_some();
        if let Some(name) = [HOST, ORIGIN, AUTHORIZATION]
            .iter()
            .find(|name| is_double(name))
        {
            return Some(refusal::bad_request(&format!(
                "the header `{name}` stands there more than once"
            )));
        }
        let host = host_of(headers, uri);
        if let Some(refusal) = self.host_refusal(headers, uri) {
            return Some(refusal);
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let origin = origin
                .to_str()
                .ok()
                .and_then(|origin| origin.parse::<Origin>().ok());
            if !origin.is_some_and(|origin| self.is_allowed(&origin, host)) {
                return Some(refusal::forbidden(
                    "pages of this `Origin` may not call the server; `--allow-origin` permits them",
                ));
            }
        }
        (!self.is_authorized(headers)).then(refusal::unauthorized)
    }

    /// The response that refuses a request for the host that it names.
    pub(super) fn host_refusal(&self, headers: &HeaderMap, uri: &Uri) -> Option<Response> {
        let is_ours = |named: &str| is_loopback(named) || self.is_named(named);
        let is_local = !self.is_loopback
            || is_ours(host_of(headers, uri))
                && uri.authority().is_none_or(|named| is_ours(named.as_str()));
        (!is_local).then(|| {
            refusal::forbidden(
                "the `Host` is not this machine: call the server by 127.0.0.1 or localhost",
            )
        })
    }

    /// Whether the configuration names this host as that of the server, behind a proxy on this machine.
    fn is_named(&self, host: &str) -> bool {
        let server = self.authenticator.as_ref().and_then(|one| one.server());
        server.is_some_and(|server| {
            let own = server.options().url.split_once("://");
            own.is_some_and(|(_, own)| own.eq_ignore_ascii_case(host))
        })
    }

    /// Whether a form was sent by one of the gateway's own pages; browsers always say where a form is from.
    pub(super) fn is_own_form(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let origin = headers.get(ORIGIN).and_then(|value| value.to_str().ok());
        let Some(origin) = origin.and_then(|text| text.parse::<Origin>().ok()) else {
            return false;
        };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host.or(uri.authority().map(Authority::as_str));
        let is_host = host.is_some_and(|host| origin.authority().eq_ignore_ascii_case(host));
        let is_page = origin.0.starts_with("http://") || origin.0.starts_with("https://");
        self.own_origin.as_ref() == Some(&origin) || is_page && is_host
    }

    /// Whether a request names the gateway by its URL, by a name of this machine, or by an address. A foreign name that was pointed here is none of
    /// these.
    pub(super) fn is_own_host(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let host = host_of(headers, uri);
        let own = self.own_origin.as_ref();
        own.is_some_and(|own| own.authority().eq_ignore_ascii_case(host))
            || self.is_named(host)
            || is_loopback(host)
            || is_address(host)
    }

    fn is_allowed(&self, origin: &Origin, host: &str) -> bool {
        let authority = origin.authority();
        let is_own = if self.is_loopback {
            is_loopback(authority) || self.is_named(authority)
        } else {
            authority.eq_ignore_ascii_case(host)
        };
        let is_page = origin.0.starts_with("http://") || origin.0.starts_with("https://");
        is_page && is_own || self.origins.contains(origin)
    }

    /// Whether a request has the token, if one is required.
    pub(super) fn is_authorized(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let shown = headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok()?.split_once(' '));
        shown.is_some_and(|(scheme, shown)| {
            scheme.eq_ignore_ascii_case("bearer") && is_same_secret(shown.trim(), token.expose())
        })
    }

    /// The request's `Origin`, if it is one of the configured ones. Only such a page may also read the response.
    fn listed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut values = headers.get_all(ORIGIN).iter();
        let (value, None) = (values.next()?, values.next()) else {
            return None;
        };
        let origin: Origin = value.to_str().ok()?.parse().ok()?;
        self.origins.contains(&origin).then(|| value.clone())
    }
}

/// Passes a permitted request on, and refuses others.
pub(super) async fn check(
    State(access): State<Arc<Access>>,
    mut request: Request,
    next: Next,
) -> Response {
    let connection = request.extensions_mut().remove::<Arc<Connection>>();
    let connection = connection.as_deref();
    let listed = access.listed(request.headers());
    let is_preflight = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if listed.is_some() && is_preflight {
        // A browser's preflight request has no token.
        let mut allowed = Response::default();
        *allowed.status_mut() = StatusCode::NO_CONTENT;
        allowed
    } else {
        match access.refusal(request.headers(), request.uri()) {
            Some(refusal) => refusal,
            None => match &access.authenticator {
                Some(authenticator) => {
                    identities::admit(authenticator, connection, request, next).await
                }
                None if connection.is_none_or(|one| one.let_in(None)) => next.run(request).await,
                None => refusal::all_in_use(),
            },
        }
    };
    if let Some(origin) = listed {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        headers.extend(CROSS_ORIGIN.map(|(name, value)| (name, HeaderValue::from_static(value))));
    }
    response
}

/// The host that a request names.
fn host_of<'r>(headers: &'r HeaderMap, uri: &'r Uri) -> &'r str {
    headers
        .get(HOST)
        .map(|host| host.to_str().unwrap_or_default())
        // HTTP/2 has it in the URI.
        .or(uri.authority().map(Authority::as_str))
        .unwrap_or_default()
}

/// Whether `authority`, a host with or without a port, is a name of this machine that no DNS server can assign.
fn is_loopback(authority: &str) -> bool {
    let (host, port) = match authority
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        Some((host, rest)) => (
            host,
            rest.strip_prefix(':').or(rest.is_empty().then_some("")),
        ),
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, Some("")),
        },
    };
    let is_port = port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    is_port
        && (host.eq_ignore_ascii_case("localhost")
            || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()))
}

/// Whether `authority` is an address, with or without a port.
fn is_address(authority: &str) -> bool {
    let bare = authority
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(authority);
    authority.parse::<SocketAddr>().is_ok() || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_its_own_names_only() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1",
            "127.9.9.9:1",
            "[::1]",
            "[::1]:8080",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "localhost.evil.com",
            "evil.com",
            "127.0.0.1.evil.com",
            "10.0.0.1",
            "[::2]:1",
            "[::1]x",
            "localhost:80:evil",
            "user@localhost",
            "127.0.0.1:evil",
            "0.0.0.0",
            "localhost.",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        for text in [
            "https://App.example.com",
            "http://127.0.0.1:6274",
            "vscode-webview://abc",
            "https://a.b/",
        ] {
            assert!(text.parse::<Origin>().is_ok(), "{text}");
        }
        assert_eq!(
            "https://App.example.com/".parse(),
            Ok(Origin("https://app.example.com".to_owned()))
        );
        for text in [
            "null",
            "*",
            "app.example.com",
            "https://",
            "https://a.b/c",
            "https://*.b",
            "https://a@b",
            "",
        ] {
            assert_eq!(text.parse::<Origin>(), Err(NoOrigin), "{text}");
        }
    }
}
