//! How a request was let in: by which URL, and with which identity.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{Extensions, Method};
use sha2::{Digest as _, Sha256};

use crate::config::Entitlement;
use crate::downstream::Session;
use crate::identity::{ClientCertificate, Pass};
use crate::proxy::Proxy;
use crate::replicas::IdentityHash;
use crate::shutdown::Tasks;

/// The other end of a request's connection.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    /// The certificate that it has shown.
    pub(super) certificate: Option<Arc<ClientCertificate>>,
}

/// How a request was let in: by the URL of a profile, and with an identity.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) profile: Option<String>,
    pub(super) pass: Option<Arc<Pass>>,
    /// The request as it came, if it may be for another replica.
    pub(super) arrival: Option<Arrival>,
}

/// Marks a request that another replica has passed on. It is not passed on again.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassedOn;

/// A request, to be passed on to another replica.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) method: Method,
    /// The path with its query.
    pub(super) path: String,
    pub(super) peer: Option<Peer>,
}

impl Admission {
    /// The part of the configuration that the identity gets.
    pub(super) fn entitlement(&self) -> Option<&Arc<Entitlement>> {
        self.pass.as_deref().map(Pass::entitlement)
    }

    /// The scopes of the access token, if there is one.
    pub(super) fn scopes(&self) -> Option<&Arc<BTreeSet<String>>> {
        self.pass.as_deref().and_then(Pass::scopes)
    }

    /// The kind of session of Streamable HTTP.
    pub(super) fn kind(&self) -> Kind {
        Kind::StreamableHttp(self.profile.clone())
    }

    /// A session of this identity.
    pub(super) fn session(&self, proxy: Arc<Proxy>, tasks: &Tasks) -> Arc<Session> {
        let session = Session::new(proxy, tasks.clone());
        if let Some(entitlement) = self.entitlement() {
            session.identify(&entitlement.identity);
        }
        session
    }

    /// A hash of the identity and of all that decides what it may use, for ids that other replicas open.
    pub(super) fn hash(&self) -> IdentityHash {
        let mut hash = Sha256::new();
        // Each part with its length, so that no two lists of parts are the same bytes.
        let mut add = |part: Option<&str>| {
            let part = part.map_or_else(|| "-".to_owned(), |part| format!("{}:{part}", part.len()));
            hash.update(part);
        };
        add(self.profile.as_deref());
        if let Some(entitlement) = self.entitlement() {
            let Entitlement {
                identity,
                issuer,
                person,
                profiles,
                limit,
                manages,
                grant,
            } = &**entitlement;
            add(Some(identity));
            add(issuer.as_deref());
            add(Some(&person.name));
            add(Some(&person.roles.len().to_string()));
            person.roles.iter().for_each(|role| add(Some(role)));
            add(profiles
                .as_ref()
                .map(|all| all.len().to_string())
                .as_deref());
            profiles.iter().flatten().for_each(|one| add(Some(one)));
            add(limit.as_deref());
            add(manages.then_some("manages"));
            add(grant.as_deref());
        }
        let mut short = IdentityHash::default();
        short.copy_from_slice(&hash.finalize()[..16]);
        short
    }

    /// A name that no other identity has, and no client under another profile.
    pub(super) fn own(&self, name: &str) -> String {
        let identity = self.entitlement().map_or("", |one| &one.identity);
        let profile = self.profile.as_deref().unwrap_or_default();
        // Neither has control characters.
        format!("{identity}\0{profile}\0{name}")
    }
}

/// The pass of a request that was let in by its identity.
pub(super) fn pass(extensions: &Extensions) -> Option<Arc<Pass>> {
    extensions.get::<Arc<Pass>>().cloned()
}

/// The two transports with sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Streamable HTTP, 2025-03-26 to 2025-11-25, at the URL of this profile.
    StreamableHttp(Option<String>),
    /// HTTP+SSE, 2024-11-05.
    Sse,
}

/// Whether a request may see figures about all servers: it was let in without an identity, or its identity may use everything.
pub(super) fn may_see_all(extensions: &Extensions) -> bool {
    let pass = extensions.get::<Arc<Pass>>();
    pass.is_none_or(|pass| pass.entitlement().is_everything())
}
