//! The differences between a server's current list and the approved one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use similar::TextDiff;

use super::record::{Pinned, Record};
use crate::catalog::sameness::is_same;
use crate::catalog::{Kind, ServerTools};
use crate::config::Trust;
use crate::tool::{ServerName, ToolHash};

/// Pairs of tools that are compared for renaming, and the characters compared of each.
const MOST_PAIRS: usize = 400;
const MOST_COMPARED: usize = 4_000;

/// How alike two definitions are at least if one is the other renamed.
const ALIKE: f32 = 0.6;

/// Everything of a server that waits for a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// By the tool's name.
    #[serde(default)]
    pub tools: Changes,
    /// Prompts, resources and templates, by their labels. Of a server in quarantine they are in `features` instead.
    #[serde(default)]
    pub entries: Changes,
    /// The server's instructions.
    #[serde(default)]
    pub instructions: Option<Change>,
    /// Its prompts, resources and templates, as one JSON text. They wait until the whole server is approved.
    #[serde(default)]
    pub features: Option<Change>,
    /// The server was not approved as a whole since it was in quarantine. `false` where only some tools are selected.
    #[serde(skip)]
    pub is_quarantined: bool,
    /// An earlier record is lost, so it is not known what was approved or rejected before.
    #[serde(skip)]
    pub is_lost: bool,
}

/// The differing tools of a server, by name.
pub(crate) type Changes = BTreeMap<String, Change>;

/// A tool, or the instructions, that differ from the approved ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// How it differs.
    pub kind: ChangeKind,
    /// The hash of the current definition; empty for a vanished tool.
    pub now: String,
    /// The approved definition, if it is known.
    pub before: Option<String>,
    /// The current definition.
    pub after: Option<String>,
    /// A person has rejected it.
    #[serde(default)]
    pub is_rejected: bool,
    /// The other name of its server under which a person has approved this definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
}

/// How a tool differs from the approved ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChangeKind {
    /// Its definition is another one.
    Changed,
    /// No tool of this name was approved.
    New,
    /// No tool of this name was approved, and one that has vanished is much like it.
    Renamed {
        /// The likeliest old name.
        from: String,
    },
    /// It was approved, and is not listed.
    Vanished,
}

impl ChangeKind {
    /// The word for it in JSON and in tables.
    #[must_use]
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::New => "new",
            Self::Renamed { .. } => "renamed",
            Self::Vanished => "vanished",
        }
    }
}

impl Change {
    /// That a person has approved the tool under another name of `server`, if so.
    #[must_use]
    pub(crate) fn approved_elsewhere(&self, server: &ServerName) -> Option<String> {
        let under = self.under.as_ref()?;
        Some(format!(
            "a person approved it under the name `{under}`, and under `{server}` it waits again"
        ))
    }
}

impl Pending {
    /// Whether nothing waits.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty()
            && self.entries.is_empty()
            && self.instructions.is_none()
            && self.features.is_none()
            && !self.is_quarantined
    }

    /// Whether an agent misses something until a person decides. Rejections are decisions.
    #[must_use]
    pub(super) fn waits(&self) -> bool {
        let mut tools = self.tools.values();
        tools.any(|change| change.kind != ChangeKind::Vanished && !change.is_rejected)
            || self.entries.values().any(|change| !change.is_rejected)
            || !self.is_rejected()
                && (self.instructions.is_some() || self.features.is_some() || self.is_quarantined)
    }

    /// Whether a person has rejected everything that it lists.
    pub(super) fn has_only_rejected(&self) -> bool {
        let mut all = self.tools.values().chain(self.entries.values());
        self.instructions.is_none() && all.all(|change| change.is_rejected)
    }

    /// Whether it is in quarantine, and a person has rejected everything that it lists.
    #[must_use]
    pub(crate) fn is_rejected(&self) -> bool {
        let tools = self.tools.values();
        let mut all = tools.chain(self.entries.values()).peekable();
        self.is_quarantined && all.peek().is_some() && all.all(|change| change.is_rejected)
    }

    /// Whether a person's decision is missing about something that is not in `before`.
    #[must_use]
    pub(super) fn has_news(&self, before: &Self) -> bool {
        let is_other = |now: &Change, before: Option<&Change>| {
            now.kind != ChangeKind::Vanished
                && !now.is_rejected
                && before.is_none_or(|before| before.now != now.now)
        };
        let texts = [
            (&self.instructions, &before.instructions),
            (&self.features, &before.features),
        ];
        let mut tools = self.tools.iter();
        let mut texts = texts.into_iter();
        let mut entries = self.entries.iter();
        tools.any(|(name, change)| is_other(change, before.tools.get(name)))
            || entries.any(|(name, change)| is_other(change, before.entries.get(name)))
            || texts.any(|(now, before)| {
                now.as_ref()
                    .is_some_and(|now| is_other(now, before.as_ref()))
            })
    }

    /// A hash of everything that an approval would cover. It changes when any part of that does.
    #[must_use]
    pub(crate) fn digest(&self) -> String {
        let now = |change: &Option<Change>| change.as_ref().map(|change| change.now.clone());
        let tools = self.tools.iter();
        let tools =
            tools.map(|(name, change)| (name, &change.kind, &change.now, change.is_rejected));
        let entries = self.entries.iter();
        let parts = (
            tools.collect::<Vec<_>>(),
            entries
                .map(|(label, change)| (label, &change.now, change.is_rejected))
                .collect::<Vec<_>>(),
            now(&self.instructions),
            now(&self.features),
            self.is_quarantined,
        );
        super::record::hash_of(&serde_json::to_string(&parts).unwrap_or_default())
    }
}

/// The definition of each tool of a server's list, by name.
pub(super) struct Listed {
    pub(super) tools: BTreeMap<String, (String, Option<String>)>,
    pub(super) entries: BTreeMap<String, (String, Option<String>)>,
    pub(super) instructions: Option<String>,
}

impl Listed {
    pub(super) fn of(server: &ServerTools) -> Self {
        let tools = server.entries().iter().map(|tool| {
            let json = server.json(tool).ok().map(|json| json.get().to_owned());
            (tool.name.to_string(), (tool.hash.to_string(), json))
        });
        Self {
            tools: tools.collect(),
            entries: entries(server),
            instructions: server.instructions().map(str::to_owned),
        }
    }

    /// The prompts, resources and templates as one JSON text, if there are any.
    fn features(&self) -> Option<String> {
        let members = self.entries.iter().map(|(label, (_, json))| {
            let label = serde_json::Value::from(label.as_str());
            format!("{label}:{}", json.as_deref().unwrap_or("null"))
        });
        let members: Vec<String> = members.collect();
        (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
    }

    /// The pins of the prompts, resources and templates for which `is_free` is true of their hashes.
    pub(super) fn pinned_entries(
        &self,
        is_free: impl Fn(&str) -> bool,
    ) -> BTreeMap<String, Pinned> {
        let free = self.entries.iter().filter(|(_, (hash, _))| is_free(hash));
        free.map(|(label, (hash, json))| (label.clone(), pinned(hash, json)))
            .collect()
    }
}

fn pinned(hash: &str, json: &Option<String>) -> Pinned {
    Pinned {
        hash: hash.to_owned(),
        json: json.clone(),
        ..Pinned::default()
    }
}

/// The pins of the entries in `features`, a text of [`Listed::features`].
pub(super) fn approved_entries(features: Option<&str>) -> BTreeMap<String, Pinned> {
    let entries: BTreeMap<String, &RawValue> = features
        .and_then(|json| serde_json::from_str(json).ok())
        .unwrap_or_default();
    let pins = entries.into_iter().map(|(label, json)| {
        let hash = ToolHash::of(json.get().as_bytes()).to_string();
        let json = Some(json.get().to_owned());
        (
            label,
            Pinned {
                approved: true,
                ..pinned(&hash, &json)
            },
        )
    });
    pins.collect()
}

/// The name of a prompt, resource or template among the pins of its server.
pub(super) fn label(kind: Kind, key: &str) -> String {
    format!("{kind}: {key}")
}

/// The definition of each prompt, resource and template of a server, by its label.
fn entries(server: &ServerTools) -> BTreeMap<String, (String, Option<String>)> {
    let lists = [
        (Kind::Prompt, server.prompts()),
        (Kind::Resource, server.resources()),
        (Kind::Template, server.templates()),
    ];
    let entries = lists.into_iter().flat_map(|(kind, entries)| {
        entries.as_slice().iter().map(move |entry| {
            let json = server.json_of(entry).ok().map(|json| json.get().to_owned());
            (label(kind, &entry.key), (entry.hash.to_string(), json))
        })
    });
    entries.collect()
}

/// Takes over into `record` every definition that is the approved one in other bytes, and returns the other differences.
/// Where differences are only reported, new tools are taken over, too.
pub(super) fn differences(record: &mut Record, listed: &Listed, trust: Trust) -> Pending {
    let mut pending = Pending::default();
    for (name, (hash, json)) in &listed.tools {
        let known = record.tools.get_mut(name);
        let under = known.as_ref().and_then(|known| known.approved_under(hash));
        let kind = match known {
            Some(known) if known.hash == *hash => None,
            Some(_) if under.is_some() => Some(ChangeKind::New),
            Some(known) if known.is_alike(json.as_deref(), is_same) => {
                known.hash.clone_from(hash);
                known.json.clone_from(json);
                None
            }
            Some(_) => Some(ChangeKind::Changed),
            None => Some(ChangeKind::New),
        };
        let is_free = kind.is_none() && record.permits(name, hash, trust);
        if is_free {
            // A record of an older version has only hashes.
            if let Some(known) = record.tools.get_mut(name).filter(|it| it.json.is_none()) {
                known.json.clone_from(json);
            }
            continue;
        }
        let change = Change {
            kind: kind.unwrap_or(ChangeKind::New),
            now: hash.clone(),
            before: record.tools.get(name).and_then(|known| known.json.clone()),
            after: json.clone(),
            is_rejected: record.rejected.contains(name),
            under,
        };
        pending.tools.insert(name.clone(), change);
    }
    find_vanished(record, listed, &mut pending);
    find_renamed(&mut pending);
    if trust.is_report() {
        accept_new(record, &mut pending);
    }
    pending.instructions = instructions(record, listed.instructions.as_deref(), trust);
    let features = listed.features();
    pending.features = features
        .filter(|_| record.is_quarantined(trust))
        .map(|json| Change {
            kind: ChangeKind::New,
            now: super::record::hash_of(&json),
            before: None,
            after: Some(json),
            is_rejected: false,
            under: None,
        });
    pending.entries = changed_entries(record, listed, trust);
    pending
}

/// The prompts, resources and templates that are new, differ, or were rejected. In quarantine all of them wait as one, and under
/// `Trust::Report` only rejected ones.
fn changed_entries(record: &mut Record, listed: &Listed, trust: Trust) -> Changes {
    if record.is_quarantined(trust) {
        return Changes::new();
    }
    let mut changes = rejected_entries(record, listed);
    if trust.is_report() {
        return changes;
    }
    let Some(known) = &mut record.entries else {
        record.entries = Some(listed.pinned_entries(|_| true));
        return changes;
    };
    let others = listed.entries.iter();
    for (label, (hash, json)) in
        others.filter(|(label, _)| !record.rejected_entries.contains(*label))
    {
        let known_one = known.get_mut(label);
        let under = known_one
            .as_ref()
            .and_then(|known| known.approved_under(hash));
        let kind = match known_one {
            Some(known) if known.hash == *hash => continue,
            Some(_) if under.is_some() => ChangeKind::New,
            Some(known) if known.is_alike(json.as_deref(), is_same) => {
                *known = Pinned {
                    approved: known.approved,
                    ..pinned(hash, json)
                };
                continue;
            }
            Some(_) => ChangeKind::Changed,
            None => ChangeKind::New,
        };
        let change = Change {
            kind,
            now: hash.clone(),
            before: known.get(label).and_then(|known| known.json.clone()),
            after: json.clone(),
            is_rejected: false,
            under,
        };
        changes.insert(label.clone(), change);
    }
    changes
}

/// The listed prompts, resources and templates that a person has rejected.
fn rejected_entries(record: &Record, listed: &Listed) -> Changes {
    let all = listed.entries.iter();
    let rejected = all.filter(|(label, _)| record.rejected_entries.contains(*label));
    let changes = rejected.map(|(label, (hash, json))| {
        let known = record.entries.as_ref().and_then(|known| known.get(label));
        let change = Change {
            kind: known.map_or(ChangeKind::New, |_| ChangeKind::Changed),
            now: hash.clone(),
            before: known.and_then(|known| known.json.clone()),
            after: json.clone(),
            is_rejected: true,
            under: None,
        };
        (label.clone(), change)
    });
    changes.collect()
}

/// Adds the approved tools that are not listed.
fn find_vanished(record: &Record, listed: &Listed, pending: &mut Pending) {
    let gone = record
        .tools
        .iter()
        .filter(|(name, _)| !listed.tools.contains_key(*name));
    for (name, known) in gone {
        let change = Change {
            kind: ChangeKind::Vanished,
            now: String::new(),
            before: known.json.clone(),
            after: None,
            is_rejected: false,
            under: None,
        };
        pending.tools.insert(name.clone(), change);
    }
}

/// Finds the likeliest old name of each new tool among the vanished ones; each of those has one new name at most.
fn find_renamed(pending: &mut Pending) {
    let of = |kind: ChangeKind| {
        let found = pending
            .tools
            .iter()
            .filter(move |(_, change)| change.kind == kind);
        found.map(|(name, change)| {
            let text = change.after.as_ref().or(change.before.as_ref());
            (name.clone(), text.map(|text| nameless(text)))
        })
    };
    let vanished: Vec<_> = of(ChangeKind::Vanished).collect();
    let mut pairs = Vec::new();
    let new: Vec<_> = of(ChangeKind::New).collect();
    let all = new
        .iter()
        .flat_map(|new| vanished.iter().map(move |old| (new, old)));
    for ((name, after), (old, before)) in all.take(MOST_PAIRS) {
        let both = after.as_deref().zip(before.as_deref());
        let likeness = both.map_or(0.0, |(one, other)| TextDiff::from_words(one, other).ratio());
        if likeness >= ALIKE {
            pairs.push((likeness, name.clone(), old.clone()));
        }
    }
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
    for (_, name, old) in pairs {
        let is_new = pending
            .tools
            .get(&name)
            .is_some_and(|change| change.kind == ChangeKind::New);
        if !is_new || !pending.tools.contains_key(&old) {
            continue;
        }
        let gone = pending.tools.remove(&old);
        if let Some(change) = pending.tools.get_mut(&name) {
            change.before = gone.and_then(|gone| gone.before);
            change.kind = ChangeKind::Renamed { from: old };
        }
    }
}

/// A definition without the tool's name, cut to a bounded length.
fn nameless(json: &str) -> String {
    let mut value: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.remove("name");
    }
    value.to_string().chars().take(MOST_COMPARED).collect()
}

/// Takes over new tools, and forgets that others have vanished: nothing of that is reported where nothing waits.
fn accept_new(record: &mut Record, pending: &mut Pending) {
    pending.tools.retain(|name, change| match change.kind {
        ChangeKind::New if !change.is_rejected => {
            record.pin(name, &change.now, change.after.clone(), false);
            false
        }
        ChangeKind::Vanished => false,
        _ => true,
    });
}

fn instructions(record: &mut Record, now: Option<&str>, trust: Trust) -> Option<Change> {
    // After a quarantine, the first text that is seen counts as approved no more than under it.
    let was_quarantined = trust == Trust::Pin && record.quarantined;
    let is_unapproved = trust.is_quarantine() && !record.is_approved_here;
    match &record.instructions {
        Some(known) if known.as_deref() == now && !is_unapproved => return None,
        None if now.is_none() && (was_quarantined || trust.is_quarantine()) => return None,
        None if !trust.is_quarantine() && !was_quarantined => {
            record.instructions = Some(now.map(str::to_owned));
            return None;
        }
        _ if is_unapproved && now.is_none() => return None,
        _ => {}
    }
    let before = record.instructions.clone().flatten();
    Some(Change {
        kind: ChangeKind::Changed,
        now: super::record::hash_of(now.unwrap_or_default()),
        before,
        after: now.map(str::to_owned),
        is_rejected: false,
        under: None,
    })
}

/// The names of rejected changes.
pub(super) fn rejected(changes: &Changes) -> impl Iterator<Item = String> + '_ {
    let rejected = changes.iter().filter(|(_, change)| change.is_rejected);
    rejected.map(|(name, _)| name.clone())
}
