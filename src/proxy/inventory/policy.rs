//! The user's rules, as the catalog applies them: what is denied is neither found nor described nor called, and under
//! `"trust": "pin"` neither is what has changed since it was first seen. A tool that its server keeps for its own interface
//! is not there for a model either.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::catalog::{Pins, Rules};
use crate::config::{Config, Policy, Trust, Verdict};
use crate::proxy::view::Mode;
use crate::tool::{QualifiedName, ServerName};

/// What withholds the tools that `config` denies, that have changed behind the user's back, or that no model may see.
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
        // In direct mode the client itself keeps these from its model.
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

/// The servers whose tools are held back where it is not known that they are what they were.
pub(in crate::proxy) fn pinned(config: &Config) -> BTreeSet<ServerName> {
    let pinned = config
        .servers
        .iter()
        .filter(|(_, entry)| entry.trust == Trust::Pin);
    pinned.map(|(server, _)| server.clone()).collect()
}
