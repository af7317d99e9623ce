//! The user's rules, applied to the catalog. A denied tool cannot be found, described or called. Under `"trust":
//! "pin"`, the same applies to a tool that differs from its pin, and in meta-tools mode to a tool for its server's
//! own interface.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::{Pins, Rules};
use crate::config::{Config, Policy, Trust, Verdict};
use crate::proxy::view::Mode;
use crate::tool::{QualifiedName, ServerName};

/// The rules that withhold tools: those that `config` denies, that differ from their pins, or that no model may see.
pub(in crate::proxy) fn rules(config: &Config, pins: &Arc<Pins>, mode: Mode) -> Rules {
    let servers: BTreeMap<_, _> = config
        .servers
        .iter()
        .map(|(name, entry)| (name.clone(), (entry.tools.clone(), entry.trust)))
        .collect();
    let is_free = |(policy, trust): &(Policy, Trust)| policy.is_empty() && *trust == Trust::Report;
    let is_free = config.tools.is_empty() && servers.values().all(is_free);
    let (all, pins) = (config.tools.clone(), pins.clone());
    Rules::new(move |server, entry| {
        // In direct mode, the client itself hides these from its model.
        if entry.is_app_only && mode == Mode::MetaTools {
            return true;
        }
        if is_free {
            return false;
        }
        let name = QualifiedName {
            server: server.clone(),
            tool: entry.name.clone(),
        };
        let (own, trust) = servers
            .get(server)
            .map_or((Verdict::Allowed, Trust::Report), |(policy, trust)| {
                (policy.judge_own(&name, entry.hints), *trust)
            });
        own.max(all.judge(&name, entry.hints)) == Verdict::Denied
            || trust == Trust::Pin && pins.is_held(server, entry)
    })
}

/// The servers whose tools are withheld unless they are known to equal their pins.
pub(in crate::proxy) fn pinned(config: &Config) -> BTreeSet<ServerName> {
    let pinned = config
        .servers
        .iter()
        .filter(|(_, entry)| entry.trust == Trust::Pin);
    pinned.map(|(server, _)| server.clone()).collect()
}
