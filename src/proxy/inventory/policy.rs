//! The user's rules, applied to the catalog. A denied tool cannot be found, described or called. Under `"trust":
//! "pin"` or `"quarantine"`, the same applies to a tool that is not an approved one. The catalog itself withholds tools for
//! their server's own interface from clients that cannot hide them from their models.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Hold, Pins, Rules, ToolEntry};
use crate::config::{Config, Policy, Trust, Verdict};
use crate::tool::{QualifiedName, ServerName};

/// The rules that withhold tools: those that `config` denies, or that differ from their pins. A tool that a profile denies does
/// not exist.
pub(in crate::proxy) fn rules(config: &Config, pins: &Arc<Pins>) -> Rules {
    let servers: BTreeMap<_, _> = config
        .servers
        .iter()
        .map(|(name, entry)| (name.clone(), entry.tools.clone()))
        .collect();
    let is_free = config.tools.is_empty() && servers.values().all(Policy::is_empty);
    let (all, pins, held) = (config.tools.clone(), pins.clone(), pins.clone());
    let entries = pins.clone();
    let hold = move |server: &ServerName| Hold {
        everything: held.is_quarantined(server),
        instructions: held.holds_instructions(server),
    };
    let is_withheld = move |server: &ServerName, entry: &ToolEntry| {
        if pins.is_held(server, entry) {
            return true;
        }
        if is_free {
            return false;
        }
        let name = QualifiedName {
            server: server.clone(),
            tool: entry.name.clone(),
        };
        let own = servers.get(server).map_or(Verdict::Allowed, |policy| {
            policy.judge_own(&name, entry.hints)
        });
        own.max(all.judge(&name, entry.hints)) == Verdict::Denied
    };
    let overridden = config.servers.iter();
    let overridden = overridden.filter(|(_, entry)| !entry.overrides.is_empty());
    let overrides = overridden.map(|(server, entry)| (server.clone(), entry.overrides.clone()));
    let rules = Rules::new(is_withheld, hold)
        .withholding(move |server, kind, entry| entries.is_entry_held(server, kind, entry))
        .adapting(overrides.collect());
    if !config.has_profile_rules() {
        return rules;
    }
    let of_person = config.is_for_person().then(|| Arc::new(config.clone()));
    let profiles = config.profile_rules.clone();
    rules.hiding(move |server, entry| {
        let name = QualifiedName {
            server: server.clone(),
            tool: entry.name.clone(),
        };
        if let Some(config) = &of_person {
            return config.judge(&name, entry.hints) == Verdict::Denied;
        }
        let mut profiles = profiles.iter();
        profiles.any(|(_, rules)| rules.judge(&name, entry.hints) == Verdict::Denied)
    })
}

/// The `trust` of the servers, where their entries or those of the same programs say one.
pub(in crate::proxy) fn pinned(config: &Config) -> BTreeMap<ServerName, Trust> {
    let pinned = config
        .servers
        .iter()
        .map(|(server, entry)| (server.clone(), entry.trust));
    pinned.filter(|(_, trust)| *trust != Trust::Unset).collect()
}
