//! The user's rules, as the catalog applies them: what is denied is neither found nor described nor called, and under
//! `"trust": "pin"` neither is what has changed since it was first seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Pins, Rules};
use crate::config::{BUILT_IN_SERVER, Config, Policy, Trust, Verdict};
use crate::tool::QualifiedName;

/// What withholds the tools that `config` denies, or that have changed behind the user's back, if anything may be withheld.
pub(super) fn rules(config: &Config, pins: &Arc<Pins>) -> Option<Rules> {
    let servers: BTreeMap<_, _> = config
        .servers
        .iter()
        .map(|(name, entry)| (name.clone(), (entry.tools.clone(), entry.trust)))
        .collect();
    let is_free = |(policy, trust): &(Policy, Trust)| policy.is_empty() && *trust == Trust::Report;
    if config.tools.is_empty() && servers.values().all(is_free) {
        return None;
    }
    let (all, pins) = (config.tools.clone(), pins.clone());
    Some(Rules::new(move |server, entry| {
        if server.as_str() == BUILT_IN_SERVER {
            return false;
        }
        let name = QualifiedName {
            server: server.clone(),
            tool: entry.name.clone(),
        };
        let (own, trust) = servers
            .get(server)
            .map_or((Verdict::Allowed, Trust::Report), |(policy, trust)| {
                (policy.judge(&name, entry.hints), *trust)
            });
        own.max(all.judge(&name, entry.hints)) == Verdict::Denied
            || trust == Trust::Pin && pins.is_changed(server, entry)
    }))
}
