//! The reasons other than rules for which agents do not get a tool: `trust` and rejections. Findings of the scanner are none.

use std::collections::{BTreeMap, BTreeSet};

use super::listed;
use crate::catalog::{ChangeKind, Key, PinHome, Pins, ServerTools, ToolEntry};
use crate::config::{Config, Paths, Server, Trust};
use crate::scan::{self, Neighbours};

/// Why a tool is withheld.
pub(super) struct Withheld {
    /// For programs.
    pub(super) word: &'static str,
    pub(super) reason: String,
}

/// Why a tool of the server with this key is withheld, by the pins in `home`. `tool` is its last listed form.
pub(super) fn of(
    key: &Key,
    entry: &Server,
    tool: Option<&ToolEntry>,
    home: &PinHome,
) -> Option<Withheld> {
    let server = &key.server;
    let pins = loaded(key, entry.trust, home);
    let review = format!("`mcpzip approve {server}` shows it");
    let withheld = |word, reason: String| Some(Withheld { word, reason });
    if pins.is_unstarted(server) {
        let reason = format!(
            "an agent has added or redirected the server, and no person has approved its start ({review})"
        );
        return withheld("unstarted", reason);
    }
    let Some(tool) = tool else {
        let reason =
            format!("the server is in quarantine until a person has approved it ({review})");
        return pins
            .is_quarantined(server)
            .then_some(reason)
            .and_then(|reason| withheld("quarantined", reason));
    };
    if tool.is_app_only {
        let reason = "the tool is for its server's own interface, and not for models".to_owned();
        return withheld("app-only", reason);
    }
    if !pins.is_held(server, tool) {
        return None;
    }
    // Of a server that does not depend on the directory, what waits is kept without one.
    let anywhere = || {
        let key = Key {
            server: server.clone(),
            configuration: entry.hash.to_string(),
        };
        loaded(&key, entry.trust, home).change(server, tool)
    };
    let change = pins.change(server, tool).or_else(anywhere);
    let is_rejected = change.as_ref().is_some_and(|change| change.is_rejected);
    let is_reported = entry.trust.is_report() && !pins.is_quarantined(server);
    if is_rejected || is_reported && pins.holding_fault(server).is_none() {
        return withheld(
            "rejected",
            format!("a person has rejected the tool ({review})"),
        );
    }
    let elsewhere = change
        .as_ref()
        .and_then(|change| change.approved_elsewhere(server));
    if pins.is_quarantined(server) {
        let reason = match &elsewhere {
            Some(elsewhere) => format!("the tool is in quarantine: {elsewhere} ({review})"),
            None => {
                format!("the tool is in quarantine until a person has approved it ({review})")
            }
        };
        return withheld("quarantined", reason);
    }
    let Some(change) = change else {
        let fault = pins.fault(server).unwrap_or_default();
        let reason = match fault.is_empty() {
            true => "it is not known whether the tool was approved: mcpzip has not compared it yet"
                .to_owned(),
            false => format!("it is not known whether the tool was approved: {fault}"),
        };
        return withheld("uncompared", reason);
    };
    if let Some(elsewhere) = elsewhere {
        let reason = format!("the tool waits for a person: {elsewhere} ({review})");
        return withheld(change.kind.word(), reason);
    }
    let how = match &change.kind {
        ChangeKind::Renamed { from } => format!("is new, and was probably `{from}` before"),
        ChangeKind::New => match pins.waits_under(key, &change.now) {
            Some(other) => format!(
                "is new, with a definition that waits or was rejected under the name `{other}`"
            ),
            None => "is new".to_owned(),
        },
        ChangeKind::Changed | ChangeKind::Vanished => {
            "has another definition than the approved one".to_owned()
        }
    };
    withheld(
        change.kind.word(),
        format!("the tool {how}, and waits for a person by `trust` ({review})"),
    )
}

/// The pins of one server, as they are kept.
fn loaded(key: &Key, trust: Trust, home: &PinHome) -> Pins {
    let pins = Pins::new(Some(home.clone()));
    pins.require(BTreeMap::from([(key.server.clone(), trust)]));
    pins.load(std::iter::once(key));
    pins
}

/// The kinds of findings in a tool's texts, which are compared with the names of all servers' tools, too.
pub(super) fn findings(
    list: &ServerTools,
    tool: &ToolEntry,
    config: &Config,
    paths: &Paths,
) -> Vec<String> {
    let Ok(json) = list.json(tool) else {
        return Vec::new();
    };
    let lists = config
        .servers
        .iter()
        .filter(|(_, entry)| !entry.disabled)
        .filter_map(|(server, entry)| listed(server, &entry.hash.to_string(), paths));
    let lists: Vec<ServerTools> = lists.collect();
    let names = lists.iter().flat_map(|list| {
        let entries = list.entries().iter();
        entries.map(|entry| (list.name().as_str(), entry.name.as_str()))
    });
    let (definition, unreadable) = scan::read(json.get());
    let mut findings = scan::tool(&definition);
    findings.extend(unreadable);
    findings.extend(Neighbours::of(names).shadowed(list.name().as_str(), &definition));
    let kinds: BTreeSet<String> = findings
        .iter()
        .map(|finding| finding.kind.to_string())
        .collect();
    kinds.into_iter().collect()
}
