//! The findings of the scanner in what servers list, for people and the audit log. Agents are not shown them.

mod kept;

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use self::kept::ByServer;
pub(super) use self::kept::KeptFindings;
use crate::audit;
use crate::catalog::{ServerTools, Snapshot};
use crate::proxy::ledger::Ledger;
use crate::scan::{self, Finding, Kind, Neighbours};

/// A finding in one text of a server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TextFinding {
    /// The tool; `None` for the server's instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(serialize_with = "in_words")]
    kind: Kind,
}

impl fmt::Display for TextFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tool {
            Some(tool) => write!(f, "`{tool}` has {}", self.kind),
            None => write!(f, "its instructions have {}", self.kind),
        }
    }
}

fn in_words<S: serde::Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(kind)
}

/// The names of the tools that all servers list.
#[must_use]
pub(crate) fn neighbours(snapshot: &Snapshot) -> Neighbours {
    let tools = snapshot.servers().flat_map(|server| {
        let entries = server.as_listed().entries().iter();
        entries.map(|entry| (server.name().as_str(), entry.name.as_str()))
    });
    Neighbours::of(tools)
}

/// The findings in the texts of all servers, by the server's name.
#[must_use]
pub(super) fn of_all(
    snapshot: &Snapshot,
    kept: &KeptFindings,
) -> HashMap<String, Vec<TextFinding>> {
    let digest = kept::digest(snapshot);
    let all = kept.load(&digest).unwrap_or_else(|| {
        let neighbours = neighbours(snapshot);
        let (mut all, mut is_complete) = (ByServer::new(), true);
        for server in snapshot.servers() {
            let scanned = of_server(server.as_listed(), None, &neighbours);
            is_complete &= scanned.is_complete;
            let found = scanned.findings.into_iter();
            let found = found.map(|TextFinding { tool, kind }| (tool, kind));
            all.insert(server.name().to_string(), found.collect());
        }
        if is_complete {
            kept.store(&digest, &all);
        }
        all
    });
    let all = all.into_iter().map(|(server, found)| {
        let found = found.into_iter();
        let found = found.map(|(tool, kind)| TextFinding { tool, kind });
        (server, found.collect())
    });
    all.collect()
}

/// The result of a scan.
pub(super) struct Scanned {
    pub(super) findings: Vec<TextFinding>,
    /// Whether every text could be read.
    is_complete: bool,
}

/// The findings in a server's tools and instructions, without those in texts that it had `before`.
#[must_use]
pub(super) fn of_server(
    now: &ServerTools,
    before: Option<&ServerTools>,
    neighbours: &Neighbours,
) -> Scanned {
    let is_new = |entry: &&crate::catalog::ToolEntry| {
        let known =
            before.and_then(|before| Some(&before.entries()[before.position(&entry.name)?]));
        known.is_none_or(|known| known.hash != entry.hash)
    };
    let (mut found, mut is_complete) = (Vec::new(), true);
    let mut add = |tool: Option<&str>, findings: Vec<Finding>| {
        found.extend(findings.into_iter().map(|finding| TextFinding {
            tool: tool.map(str::to_owned),
            kind: finding.kind,
        }));
    };
    for entry in now.entries().iter().filter(is_new) {
        // A file that cannot be read is reported where it is used.
        let Ok(json) = now.json(entry) else {
            is_complete = false;
            continue;
        };
        let (definition, unreadable) = scan::read(json.get());
        let mut findings = scan::tool(&definition);
        findings.extend(unreadable);
        findings.extend(neighbours.shadowed(now.name().as_str(), &definition));
        add(Some(entry.name.as_str()), findings);
    }
    let instructions = now
        .instructions()
        .filter(|text| before.is_none_or(|before| before.instructions() != Some(text)));
    if let Some(instructions) = instructions {
        add(None, scan::instructions(instructions));
    }
    Scanned {
        findings: found,
        is_complete,
    }
}

/// Writes an audit event for each finding in a text that is new or has changed.
pub(super) fn note(
    ledger: &Ledger,
    snapshot: &Snapshot,
    now: &ServerTools,
    before: Option<&ServerTools>,
) {
    if ledger.audit().is_none() {
        return;
    }
    for finding in of_server(now, before, &neighbours(snapshot)).findings {
        let detail = format!("the scanner found {}", finding.kind);
        let tool = finding.tool.as_deref();
        ledger.note(
            audit::Kind::Finding,
            audit::Outcome::Ok,
            now.name(),
            tool,
            &detail,
        );
    }
}
