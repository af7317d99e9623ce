//! The lists whose content has changed for clients.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::catalog::{Entries, ServerTools, Snapshot};
use crate::config::Config;
use crate::proxy::callers::listener::ChangeNotice;
use crate::tool::ServerName;

/// The lists that a change of the configuration affects.
pub(super) fn by_configuration(before: &Config, now: &Config) -> &'static [ChangeNotice] {
    let shown = |config: &Config| -> Vec<_> {
        config
            .servers
            .keys()
            .map(|server| config.exposes(server))
            .collect()
    };
    if shown(before) == shown(now) {
        &[]
    } else {
        &[ChangeNotice::Prompts, ChangeNotice::Resources]
    }
}

/// The lists in which the entries of `server` have changed.
pub(super) fn by_listing(
    server: &ServerName,
    before: &Snapshot,
    now: &Snapshot,
) -> Vec<ChangeNotice> {
    let differs =
        |list: fn(&ServerTools) -> &Entries| match (before.server(server), now.server(server)) {
            (Some(before), Some(now)) => !list(before).is_same(list(now)),
            (Some(only), None) | (None, Some(only)) => !list(only).is_empty(),
            (None, None) => false,
        };
    let tools = |snapshot: &Snapshot| -> Vec<_> {
        snapshot
            .server(server)
            .iter()
            .flat_map(|known| known.entries())
            .map(|tool| tool.hash)
            .collect()
    };
    let mut changes = Vec::new();
    if tools(before) != tools(now) {
        changes.push(ChangeNotice::Tools);
    }
    if differs(ServerTools::prompts) {
        changes.push(ChangeNotice::Prompts);
    }
    if differs(ServerTools::resources) || differs(ServerTools::templates) {
        changes.push(ChangeNotice::Resources);
    }
    changes
}

/// A hash of all lists of a server, which replicas compare.
pub(in crate::proxy) fn hash_of(known: &ServerTools) -> String {
    let mut hash = Sha256::new();
    for tool in known.entries() {
        hash.update(tool.hash.to_string());
    }
    for list in [known.prompts(), known.resources(), known.templates()] {
        hash.update([0]);
        let entries = list.as_slice().iter();
        entries.for_each(|entry| hash.update(entry.hash.to_string()));
    }
    HEXLOWER.encode(&hash.finalize()[..8])
}
