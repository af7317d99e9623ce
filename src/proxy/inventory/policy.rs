//! The user's rules, applied to the catalog. A denied tool cannot be found, described or called. Under `"trust":
//! "pin"` or `"quarantine"`, the same applies to a tool that is not an approved one. The catalog itself withholds tools for
//! their server's own interface from clients that cannot hide them from their models.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Hold, Pins, Rules, ServerRules, ToolEntry};
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
    let (policies, pins) = (Arc::new((config.tools.clone(), servers)), pins.clone());
    let judge = move |server: &ServerName| {
        let held = Arc::new(pins.held(server));
        let (of_entries, policies) = (held.clone(), policies.clone());
        let hold = Hold {
            everything: held.is_quarantined(),
            instructions: held.instructions(),
        };
        let server = server.clone();
        let is_withheld = move |entry: &ToolEntry| {
            if held.tool(entry) {
                return true;
            }
            if is_free {
                return false;
            }
            let name = QualifiedName {
                server: server.clone(),
                tool: entry.name.clone(),
            };
            let (all, servers) = &*policies;
            let own = servers.get(&server).map_or(Verdict::Allowed, |policy| {
                policy.judge_own(&name, entry.hints)
            });
            own.max(all.judge(&name, entry.hints)) == Verdict::Denied
        };
        ServerRules {
            hold,
            tools: Box::new(is_withheld),
            entries: Box::new(move |kind, entry| of_entries.entry(kind, entry)),
        }
    };
    let overridden = config.servers.iter();
    let overridden = overridden.filter(|(_, entry)| !entry.overrides.is_empty());
    let overrides = overridden.map(|(server, entry)| (server.clone(), entry.overrides.clone()));
    let rules = Rules::new(judge).adapting(overrides.collect());
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
