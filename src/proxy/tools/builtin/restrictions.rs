//! How a person restricts a server: the members of its entry that an agent may not set.

use crate::config::Document;

/// The members of an entry that an agent may set. A server goes elsewhere only where its entry has no other.
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

/// Members that restrict nothing, beside those: an agent may remove an entry that has them.
const UNRESTRICTING: &[&str] = &[
    "registry",
    "oauth",
    "headers_command",
    "headersHelper",
    "proxy",
    "ca_file",
];

/// Whether an entry is switched off; what is no `false` counts as if it were `true`.
pub(super) fn is_disabled(name: &str, document: &Document) -> bool {
    let value = document.get(&["mcpServers", name, "disabled"]);
    value.is_some_and(|value| value.trim() != "false")
}

/// The members by which a person keeps a server within bounds.
pub(super) fn restrictions(name: &str, document: &Document) -> Vec<String> {
    let known: Vec<&str> = SETTABLE.iter().chain(UNRESTRICTING).copied().collect();
    beyond(name, document, &known)
}

/// The members of an entry that are none of `known`, and say something.
pub(super) fn beyond(name: &str, document: &Document, known: &[&str]) -> Vec<String> {
    let mut members = document.keys(&["mcpServers", name]);
    members.retain(|key| !known.contains(&key.as_str()));
    members.retain(|key| key != "disabled" || is_disabled(name, document));
    members
}
