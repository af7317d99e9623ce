//! Counts the requests of each identity, and refuses those that are too many.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::admission::PassedOn;
use super::shared::Shared;
use super::{admission, refusal};
use crate::config::Subject;
use crate::identity::Pass;

/// Passes a request on unless its identity has sent too many.
pub(super) async fn check(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    if request.extensions().get::<PassedOn>().is_some() {
        // The replica that it came to has counted it.
        return next.run(request).await;
    }
    let pass = admission::pass(request.extensions());
    let entitlement = pass.as_deref().map(Pass::entitlement);
    let (subject, identity) = match entitlement {
        Some(entitlement) => (
            Subject::Person(entitlement.person.clone()),
            entitlement.identity.as_str(),
        ),
        None => (Subject::Unidentified, ""),
    };
    let whole = shared.proxies.whole();
    let admitted = shared
        .proxies
        .main()
        .limits
        .admit(&whole, &subject, identity)
        .await;
    match admitted {
        Ok(()) => next.run(request).await,
        Err(exceeded) => refusal::limited(&exceeded),
    }
}
