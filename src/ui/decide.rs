//! A person's decision about the differences of a server.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::Decision;
use crate::catalog::Pending;
use crate::proxy::Proxy;
use crate::tool::ServerName;

/// Time limit for listing a server that was not listed before.
const LIST_LIMIT: Duration = Duration::from_secs(30);

/// Decides on the differences of a server, if they are still those that the person saw.
pub(crate) async fn decide(proxy: &Proxy, decision: &Decision) -> Result<Value, String> {
    let inventory = &proxy.inventory;
    inventory.loaded().await;
    let config = proxy.unscoped().config();
    let server = ServerName::new(&decision.server).ok();
    let server = server.filter(|server| config.servers.contains_key(server));
    let server = server.ok_or_else(|| format!("there is no server `{}`", decision.server))?;
    let failed = |error: io::Error| format!("the decision cannot be kept: {error}");
    let changed =
        || "the differences are not those that were shown any more: look at them again".to_owned();
    if inventory.is_unstarted(&server) {
        if !decision.is_approval {
            return Err("it is not started before it is approved; remove it instead".to_owned());
        }
        let now = config
            .servers
            .get(&server)
            .map(|entry| entry.hash.to_string());
        if now.as_ref() != Some(&decision.digest) {
            return Err(changed());
        }
        let name = server.clone();
        let started = inventory.blocking(move |inventory| inventory.approve_start(&name));
        started.await.map_err(failed)?;
        return Ok(json!({ "server": server.as_str(), "decided": [server.as_str()] }));
    }
    let mut pending = inventory.pending(&server);
    if pending.is_quarantined && pending.tools.is_empty() {
        inventory.list(Some(&server), LIST_LIMIT).await;
        pending = inventory.pending(&server);
    }
    if pending.digest() != decision.digest {
        return Err(changed());
    }
    select(&mut pending, decision);
    let (name, is_approval) = (server.clone(), decision.is_approval);
    let decided = inventory.blocking(move |all| all.decide(&name, &pending, is_approval));
    let decided = decided.await.map_err(failed)?;
    Ok(json!({ "server": server.as_str(), "decided": decided }))
}

/// Keeps the differences that are meant. Those that were rejected before are shown to agents only if they are named.
fn select(pending: &mut Pending, decision: &Decision) {
    let Decision {
        is_approval, tools, ..
    } = decision;
    let is_meant = |name: &String, is_rejected: bool| match tools.is_empty() {
        true => !(*is_approval && is_rejected),
        false => tools.contains(name),
    };
    let before = pending.tools.len() + pending.entries.len();
    pending
        .tools
        .retain(|name, change| is_meant(name, change.is_rejected));
    pending
        .entries
        .retain(|name, change| is_meant(name, change.is_rejected));
    if !tools.is_empty() {
        pending.instructions = None;
        pending.is_quarantined = false;
    }
    // They are approved together with the last of everything else, unless that is the end of a lost record.
    if !pending.is_lost && pending.tools.len() + pending.entries.len() < before {
        pending.features = None;
    }
}
