//! The session of a request: one that this replica has, or one that another replica has opened and that goes on here.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use serde_json::value::RawValue;

use super::admission::Admission;
use super::keeping::AnswerKeeper;
use super::refusal::Refusal;
use super::sessions::{Opening, SessionGuard};
use super::shared::Shared;
use crate::downstream::Session;
use crate::mcp::object::quoted;
use crate::mcp::{Revision, headers};
use crate::replicas::{ClientOfReplica, Content, Replicas, VALID, name_of};

/// The session of a Streamable HTTP request, with its id.
pub(super) async fn session_of(
    shared: &Arc<Shared>,
    admission: &Admission,
    map: &HeaderMap,
) -> Result<(SessionGuard, String), Refusal> {
    let Some(id) = map.get(headers::SESSION) else {
        let message =
            "the header `Mcp-Session-Id` is missing; the response to `initialize` has one";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    };
    if map.get_all(headers::SESSION).iter().nth(1).is_some() {
        // A proxy in front may have looked at the other one.
        let message = "the request has the header `Mcp-Session-Id` twice; send it once";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    }
    let id = id.to_str().unwrap_or_default();
    let sessions = &shared.sessions;
    let guard = match sessions.find(id, &admission.kind(), admission.pass.as_ref()) {
        None if shared.replicas.is_some() => Box::pin(continued(shared, admission, id)).await?,
        guard => guard,
    };
    let unknown = || {
        Refusal::new(
            StatusCode::NOT_FOUND,
            "there is no such session; begin with `initialize`",
        )
    };
    let guard = guard.ok_or_else(unknown)?;
    if let Some(version) = map.get(headers::VERSION) {
        let version = version.to_str().unwrap_or_default();
        if Revision::parse(version).is_none() {
            let message = format!("protocol revision `{version}` is not known");
            return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
        }
    }
    Ok((guard, id.to_owned()))
}

/// The id of a new session, which any replica can continue, and what keeps its answers.
pub(super) async fn name(
    shared: &Shared,
    replicas: &Arc<Replicas>,
    admission: &Admission,
    session: &Session,
) -> Result<(String, Option<AnswerKeeper>), Refusal> {
    let facts = session.facts(admission.hash());
    let (facts, rest) = facts.expect("its handshake has been answered");
    let id = replicas.session_id(&facts);
    let name = name_of(&id);
    if facts.is_incomplete {
        let expires = u64::from(facts.opened) + VALID;
        let edit = |change: &mut _| *change = rest.clone();
        let written = replicas
            .change_session(admission.hash(), &name, expires, edit)
            .await;
        written.map_err(|error| {
            tracing::warn!(%error, "a session was not opened");
            unavailable()
        })?;
    }
    replicas.begin(&name);
    join(shared, replicas, admission, session, &name);
    Ok((id, Some(keeper(shared, replicas, name))))
}

fn join(
    shared: &Shared,
    replicas: &Arc<Replicas>,
    admission: &Admission,
    session: &Session,
    name: &str,
) {
    let client = ClientOfReplica::new(replicas.clone(), admission.hash(), Some(name.to_owned()));
    session.join_replicas(client, shared.draining.token().clone());
}

fn keeper(shared: &Shared, replicas: &Arc<Replicas>, session: String) -> AnswerKeeper {
    AnswerKeeper::new(replicas.clone(), session, shared.draining.clone())
}

fn unavailable() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the store of the gateway does not answer, which this session needs; try again later",
    )
}

/// The session with this id, which another replica has opened for the same identity. `None` if there is none.
async fn continued(
    shared: &Arc<Shared>,
    admission: &Admission,
    id: &str,
) -> Result<Option<SessionGuard>, Refusal> {
    let Some(replicas) = &shared.replicas else {
        return Ok(None);
    };
    let facts = replicas.open_session(id);
    let Some(facts) = facts.filter(|facts| facts.identity == admission.hash()) else {
        return Ok(None);
    };
    let name = name_of(id);
    let mut is_read = true;
    let change = match replicas.read_change(&name).await {
        Ok(Some(change)) => change,
        Ok(None) if !facts.is_incomplete => Arc::default(),
        // The store had a row, which was removed.
        Ok(None) => return Ok(None),
        Err(error) if facts.is_incomplete => {
            tracing::warn!(%error, "a session is not continued");
            return Err(unavailable());
        }
        Err(error) => {
            tracing::debug!(%error, "a session is continued as it began");
            is_read = false;
            replicas.begin(&name);
            replicas.change(&name)
        }
    };
    if replicas.has_ended(&name) {
        return Ok(None);
    }
    let software = change.name.as_ref().unwrap_or(&facts.name);
    let client = format!(r#"{{"name":{}}}"#, quoted(software));
    let client = RawValue::from_string(client).expect("it is JSON");
    let proxy = shared.proxy(admission, Some(&client))?;
    let session = admission.session(proxy, &shared.tasks);
    join(shared, replicas, admission, &session, &name);
    session.continue_with(&facts, &change);
    let opening = Opening {
        id: id.to_owned(),
        session,
        kind: admission.kind(),
        pass: admission.pass.clone(),
        keeper: Some(keeper(shared, replicas, name.clone())),
    };
    let full = |_| Refusal::overload();
    let guard = shared.sessions.open(opening).map_err(full)?;
    if !is_read {
        replicas.doubt();
    }
    if guard.stream().is_none()
        && let Some(replica) = replicas.stream_of(&name)
    {
        send_elsewhere(shared, replicas, &guard, &name, replica);
    }
    tracing::debug!(session = name, "a session of another replica goes on here");
    Ok(Some(guard))
}

/// Sends what only this replica knows to the replica that has a session's stream.
pub(super) fn send_elsewhere(
    shared: &Shared,
    replicas: &Arc<Replicas>,
    guard: &SessionGuard,
    session: &str,
    replica: String,
) {
    let outbox = guard.listen_elsewhere();
    let (replicas, session) = (replicas.clone(), session.to_owned());
    let stop = shared.tasks.stop().clone();
    shared
        .tasks
        .spawn(stop.run_until_cancelled_owned(async move {
            while let Some(frame) = outbox.next().await {
                let message = [&frame.head[..], &frame.body, &frame.tail].concat();
                let session = session.clone();
                let content = Content::Message { session };
                if !replicas.deliver(&replica, content, message.into()).await {
                    break;
                }
            }
            outbox.abandon();
        }));
}
