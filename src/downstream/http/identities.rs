//! Lets requests in by their identity, and ends them when it does not count any more.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http_body::{Body as _, Frame};
use reqwest::Url;

use super::admission::Peer;
use super::connections::Connection;
use super::refusal;
use crate::identity::{Authenticator, Denial, Pass, Resource};

/// The path of the metadata, before the path of the resource.
pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Passes a request on if it shows an identity, for as long as that counts.
pub(super) async fn admit(
    authenticator: &Authenticator,
    connection: Option<&Connection>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>();
    let certificate = peer.and_then(|peer| peer.certificate.clone());
    // A connection always has an address; without one, nothing is from the proxy.
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address);
    let pass = match authenticator
        .check(request.headers(), peer, certificate.as_deref())
        .await
    {
        Ok(pass) => pass,
        Err(denial) => return refused(authenticator, denial),
    };
    let identity = pass.entitlement().identity.as_str();
    if !connection.is_none_or(|one| one.let_in(Some(identity))) {
        return refusal::all_in_use();
    }
    request.extensions_mut().insert(pass.clone());
    let response = tokio::select! {
        response = next.run(request) => response,
        () = pass.ended() => return refused(authenticator, Denial::Invalid),
    };
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        Body::new(Limited {
            body,
            ended: Box::pin(pass.ended()),
        })
    })
}

fn refused(authenticator: &Authenticator, denial: Denial) -> Response {
    match denial {
        Denial::Missing => refusal::unidentified(&challenge(authenticator, None), false),
        Denial::Invalid => {
            refusal::unidentified(&challenge(authenticator, Some("invalid_token")), true)
        }
        Denial::InsufficientScope => {
            refusal::unscoped(&challenge(authenticator, Some("insufficient_scope")))
        }
        Denial::BadHeader => refusal::bad_request(
            "a header that names a user is only taken once, in plain characters, and from the proxy that this server trusts",
        ),
        Denial::NotEntitled => refusal::forbidden(
            "this identity may use nothing here; the administrator of the server gives it a role",
        ),
        Denial::Unavailable => refusal::unavailable(
            "identities cannot be checked now; the administrator of the server finds the reason in its log",
        ),
    }
}

/// The challenge of RFC 6750 and RFC 9728: clients find the issuer by it.
fn challenge(authenticator: &Authenticator, error: Option<&str>) -> String {
    let resource = authenticator.resource();
    let scopes = resource.iter().flat_map(|resource| &resource.scopes);
    challenge_for(resource.as_ref(), error, scopes)
}

fn challenge_for<'s>(
    resource: Option<&Resource>,
    error: Option<&str>,
    scopes: impl Iterator<Item = &'s String>,
) -> String {
    let mut parts = Vec::new();
    parts.extend(error.map(|error| format!("error=\"{error}\"")));
    if let Some(resource) = resource {
        let url = metadata_url(&resource.url);
        parts.extend(url.map(|url| format!("resource_metadata=\"{url}\"")));
        let scopes: Vec<&str> = scopes.map(String::as_str).collect();
        if !scopes.is_empty() {
            parts.push(format!("scope=\"{}\"", scopes.join(" ")));
        }
    }
    match parts.is_empty() {
        true => "Bearer".to_owned(),
        false => format!("Bearer {}", parts.join(", ")),
    }
}

/// The challenge for a call that needs these scopes. It has those that the token has, so that the next one does not lose them.
pub(super) fn scope_challenge(
    authenticator: &Authenticator,
    needed: &[String],
    pass: Option<&Pass>,
) -> String {
    let resource = authenticator.resource();
    let known = authenticator.tool_scopes();
    let own = pass.and_then(Pass::scopes);
    let own = own.into_iter().flat_map(|own| own.iter());
    let own = own.filter(|scope| known.contains(*scope));
    let base = resource.iter().flat_map(|resource| &resource.scopes);
    let all: BTreeSet<&String> = base.chain(needed).chain(own).collect();
    challenge_for(
        resource.as_ref(),
        Some("insufficient_scope"),
        all.into_iter(),
    )
}

/// The URL of the metadata of a resource.
pub(super) fn metadata_url(resource: &str) -> Option<String> {
    let mut url = Url::parse(resource).ok()?;
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&format!("{METADATA_PATH}{path}"));
    url.set_query(None);
    url.set_fragment(None);
    Some(url.to_string())
}

/// The body of a response, which ends with the identity that it is for.
struct Limited {
    body: Body,
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl http_body::Body for Limited {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}
