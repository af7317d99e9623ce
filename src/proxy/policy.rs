//! The user's rules, as the catalog applies them: what is denied is neither found nor described nor called.

use std::collections::BTreeMap;

use crate::catalog::Rules;
use crate::config::{BUILT_IN_SERVER, Config, Policy, Verdict};
use crate::tool::QualifiedName;

/// What withholds the tools that `config` denies, if there is anything to withhold.
pub(super) fn rules(config: &Config) -> Option<Rules> {
    let policies: BTreeMap<_, _> =
        config.servers.iter().map(|(name, entry)| (name.clone(), entry.tools.clone())).collect();
    if config.tools.is_empty() && policies.values().all(Policy::is_empty) {
        return None;
    }
    let all = config.tools.clone();
    Some(Rules::new(move |server, entry| {
        let name = QualifiedName { server: server.clone(), tool: entry.name.clone() };
        let own = policies.get(server).map_or(Verdict::Allowed, |policy| policy.judge(&name, entry.hints));
        server.as_str() != BUILT_IN_SERVER && own.max(all.judge(&name, entry.hints)) == Verdict::Denied
    }))
}
