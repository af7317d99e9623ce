//! The methods of the control interface, as a person at a gateway may see them.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Gateway, offered, stream};
use crate::approvals::{Approvals, Question};
use crate::downstream::http::Visit;
use crate::proxy::Proxy;
use crate::ui::{API, servers};

/// The session of what the gateway has for everyone.
const GATEWAY: &str = "gateway";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    server: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WhichApproval {
    id: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Since {
    since: Option<u64>,
}

impl Gateway {
    /// Answers a method that the person has the right to.
    ///
    /// # Errors
    /// In words.
    pub(super) async fn method(
        &self,
        visit: &Visit,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Value, String> {
        match method {
            "ui.offered" => none(params).map(|()| json!(offered(visit))),
            "ui.close" => none(params).map(|()| json!({ "count": usize::from(visit.leave()) })),
            "daemon.status" => none(params).map(|()| self.status(visit)),
            "servers.list" => {
                none(params)?;
                Ok(json!({ "servers": servers::states(proxies(visit)?) }))
            }
            "servers.stop" | "servers.restart" => {
                let Which { server } = of(params)?;
                self.note(visit, method, Some(&server))?;
                let all = visit.proxies().all();
                let count = servers::stop(all, &server, method == "servers.restart");
                let count = count.ok_or_else(|| format!("there is no server `{server}`"))?;
                Ok(json!({ "count": count }))
            }
            "approvals.list" => {
                none(params)?;
                Ok(json!({ "approvals": self.pending(visit)? }))
            }
            "approvals.allow" | "approvals.deny" => {
                let WhichApproval { id } = of(params)?;
                let is_allowed = method == "approvals.allow";
                self.decide_call(visit, &id, is_allowed).await
            }
            "events.list" => {
                let Since { since } = of(params)?;
                Ok(stream::past(visit, since.unwrap_or(0)))
            }
            method => Err(format!("unknown method `{method}`")),
        }
    }

    /// The calls of people that wait at this gateway. The machine's own user may have others in the same state directory.
    pub(super) fn pending(&self, visit: &Visit) -> Result<Vec<Question>, String> {
        let whole = visit.proxies().whole();
        let pending = self.approvals().pending();
        let mut pending = pending.map_err(|error| error.to_string())?;
        // Replicas may have their configuration at different paths.
        let is_ours =
            |one: &Question| self.state.shared.is_some() || one.configuration == whole.path;
        pending.retain(|one| one.person.is_some() && is_ours(one));
        Ok(pending)
    }

    /// Decides on a call that waits.
    pub(super) async fn decide_call(
        &self,
        visit: &Visit,
        id: &str,
        is_allowed: bool,
    ) -> Result<Value, String> {
        let approvals = self.approvals();
        let pending = self.pending(visit)?;
        let question = pending.iter().find(|question| question.id == id);
        let question = question.ok_or(
            "no call of this gateway waits for that approval: it was used or withdrawn, or ten minutes have passed",
        )?;
        let word = if is_allowed { "allow" } else { "deny" };
        let order = format!("{word} call {id} of {}: {}", question.tool, question.call);
        self.note(visit, &order, Some(&question.server))?;
        let id = id.to_owned();
        let decided = visit.blocking(move || approvals.decide(&id, is_allowed));
        let decided = decided.await.ok_or("the gateway ends")?;
        Ok(json!(decided.map_err(|error| error.to_string())?))
    }

    /// Records what a person does to the gateway, before it is done.
    ///
    /// # Errors
    /// When the audit log cannot be written. It must not be done then.
    pub(super) fn note(
        &self,
        visit: &Visit,
        order: &str,
        server: Option<&str>,
    ) -> Result<(), String> {
        let identity = &visit.entitlement().identity;
        tracing::info!(
            identity,
            order,
            server,
            "an order in the window of the gateway"
        );
        let noted = visit.proxies().main().note_order(identity, order, server);
        noted.map_err(|error| {
            format!("nothing was done, because the audit log cannot be written: {error}")
        })
    }

    fn approvals(&self) -> Approvals {
        Approvals::of(&self.state)
    }

    /// The gateway and its sessions. Nothing of the machine is shown.
    fn status(&self, visit: &Visit) -> Value {
        let sessions = visit.sessions().into_iter().map(|session| {
            json!({
                "id": session.id,
                "process": 0,
                "directory": "",
                "generation": 0,
                "since": session.since,
                "client": session.client,
                "identity": session.identity,
            })
        });
        let sessions: Vec<Value> = sessions.collect();
        json!({
            "api": API,
            "protocol": 0,
            "version": env!("CARGO_PKG_VERSION"),
            "process": 0,
            "socket": "",
            "configuration": "",
            "uptime": self.began.elapsed().as_secs(),
            "idle": 0.0,
            "windows": 0,
            "sessions": sessions,
        })
    }
}

/// The proxies that a person may see, each with the identity that it is for.
fn proxies(visit: &Visit) -> Result<Vec<(String, Arc<Proxy>)>, String> {
    let named = |proxy: Arc<Proxy>| (proxy.identity().unwrap_or(GATEWAY).to_owned(), proxy);
    Ok(match visit.manages() {
        true => visit.proxies().all().into_iter().map(named).collect(),
        false => vec![named(visit.proxy()?)],
    })
}

fn none(params: Option<&RawValue>) -> Result<(), String> {
    params.map_or(Ok(()), |params| of(Some(params)).map(|Nothing {}| ()))
}

fn of<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, String> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| format!("`params`: {error}"))
}
