//! The members of a server's entry by which a person restricts it; an agent may not set them.

use crate::config::Document;

/// The members of an entry that an agent may set. A server may be redirected only if its entry has no others.
pub(super) const SETTABLE: &[&str] = &[
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "timeout",
    "idle_timeout",
    "min_idle_timeout",
    "max_idle_timeout",
    "max_concurrent",
    "era",
    "description",
];

/// The member that marks an entry that an agent has written, and its only value.
pub(super) const ADDED_BY: &str = "added_by";
pub(super) const AGENT: &str = "\"agent\"";

/// Further members that restrict nothing: an agent may remove an entry that has them.
const UNRESTRICTING: &[&str] = &[
    ADDED_BY,
    "registry",
    "oauth",
    "headers_command",
    "headersHelper",
    "proxy",
    "ca_file",
    "cli",
    "cli_help",
    "cli_depth",
    "cli_tools",
    "fetch",
    "openapi",
    "graphql",
    "skills",
    "base_url",
    "origins",
];

/// Whether an entry is disabled. A value other than `false` counts as `true`.
pub(super) fn is_disabled(name: &str, document: &Document) -> bool {
    let value = document.get(&["mcpServers", name, "disabled"]);
    value.is_some_and(|value| value.trim() != "false")
}

/// The members by which a person restricts a server.
pub(super) fn restrictions(name: &str, document: &Document) -> Vec<String> {
    let known: Vec<&str> = SETTABLE.iter().chain(UNRESTRICTING).copied().collect();
    beyond(name, document, &known)
}

/// The members of an entry that are not in `known` and have a value.
pub(super) fn beyond(name: &str, document: &Document, known: &[&str]) -> Vec<String> {
    let mut members = document.keys(&["mcpServers", name]);
    members.retain(|key| !known.contains(&key.as_str()));
    members.retain(|key| key != "disabled" || is_disabled(name, document));
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::entry_keys;

    /// The members that restrict a server: an entry that has one of them is not removed or redirected by an agent.
    const RESTRICTING: &[&str] = &[
        "disabled",
        "expose",
        "tools",
        "trust",
        "share",
        "placement",
        "client_capabilities",
        "projects",
        "sandbox",
        "cli_only",
        "cli_read",
        "include",
        "exclude",
        "identity",
    ];

    #[test]
    fn every_key_of_an_entry_is_declared_restricting_or_not() {
        let all = entry_keys();
        let lists = [SETTABLE, UNRESTRICTING, RESTRICTING];
        for key in &all {
            let count = lists.iter().filter(|list| list.contains(key)).count();
            assert_eq!(
                count, 1,
                "`{key}`: say in one list whether agents may set it, and whether it restricts a server"
            );
        }
        let unknown = lists.iter().flat_map(|list| list.iter());
        let unknown: Vec<_> = unknown.filter(|key| !all.contains(key)).collect();
        assert!(unknown.is_empty(), "not in the configuration: {unknown:?}");
    }
}
