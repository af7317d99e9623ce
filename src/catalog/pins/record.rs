//! The approved definitions of a server's tools, and what a person has rejected.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::Trust;

/// The approved definitions of a server.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The hashes of the programs that it may be, or of the URL, without variables and versions. A space is between them.
    #[serde(default)]
    pub(super) program: String,
    /// The entry for which a person has approved something.
    #[serde(default)]
    pub(super) approved: Option<String>,
    /// The entry for which a person has approved the whole server, with its prompts and resources.
    #[serde(default)]
    pub(super) whole: Option<String>,
    /// The entry whose start a person has approved, if an agent wrote it.
    #[serde(default)]
    pub(super) started: Option<String>,
    /// Every record has them: JSON of another form is a damaged one.
    pub(super) tools: BTreeMap<String, Pinned>,
    /// The prompts, resources and templates, by their labels. `None` where they are not known.
    #[serde(default)]
    pub(super) entries: Option<BTreeMap<String, Pinned>>,
    /// `None` where they are not known.
    #[serde(default)]
    pub(super) instructions: Option<Option<String>>,
    /// Tools that a person has rejected. The server's record has those of every directory.
    #[serde(default)]
    pub(super) rejected: BTreeSet<String>,
    /// Prompts, resources and templates that a person has rejected, by their labels, as above.
    #[serde(default)]
    pub(super) rejected_entries: BTreeSet<String>,
    /// The record before it was lost, so everything waits until a person has decided. It follows the rejections: see `NOTHING_REJECTED`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) lost: bool,
    /// The server was in quarantine, and was not approved as a whole since. It follows the rejections, as above.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) quarantined: bool,
    /// Whether `approved` is the entry in force.
    #[serde(skip)]
    pub(super) is_approved_here: bool,
    /// Whether `whole` is the entry in force.
    #[serde(skip)]
    pub(super) is_whole_here: bool,
    /// Whether `started` is the entry in force.
    #[serde(skip)]
    pub(super) may_start: bool,
}

/// The part of a record that is in force under every value of `trust`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Rejections {
    /// As in a record.
    #[serde(rename = "tools")]
    _tools: IgnoredAny,
    #[serde(default)]
    pub(super) rejected: BTreeSet<String>,
    #[serde(default)]
    pub(super) rejected_entries: BTreeSet<String>,
    #[serde(default)]
    pub(super) lost: bool,
    #[serde(default)]
    pub(super) quarantined: bool,
}

impl Rejections {
    pub(super) fn add(&mut self, others: Self) {
        self.rejected.extend(others.rejected);
        self.rejected_entries.extend(others.rejected_entries);
        self.lost |= others.lost;
        self.quarantined |= others.quarantined;
    }
}

/// The `trust` in force. After a lost record, nothing is free but what a person has approved since, and so it is after a quarantine, unless the
/// entry itself says otherwise.
pub(super) fn in_force(trust: Trust, is_lost: bool, is_quarantined: bool) -> Trust {
    match trust {
        Trust::Quarantine | Trust::Unstarted => trust,
        _ if is_lost => Trust::Quarantine,
        Trust::Unset if is_quarantined => Trust::Quarantine,
        _ => trust,
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The definition of a tool that counts as unchanged. No definition has the hash of the default, so that its tool waits.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pinned {
    pub(super) hash: String,
    #[serde(default)]
    pub(super) json: Option<String>,
    /// By a person; otherwise it was seen first.
    #[serde(default)]
    pub(super) approved: bool,
    /// A person's approval under another name of its server, which is none here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) elsewhere: Option<Elsewhere>,
}

/// An approval under another name of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Elsewhere {
    name: String,
    hash: String,
}

impl Pinned {
    /// The definition under the other name `under` of its server, where `known` was inherited already.
    fn inherited(self, under: &str, known: Option<&Self>) -> Self {
        if !self.approved && known.is_none_or(|known| known.hash == self.hash) {
            return self;
        }
        let own = self.approved.then(|| Elsewhere {
            name: under.to_owned(),
            hash: self.hash,
        });
        let earlier = known.and_then(|known| known.elsewhere.clone());
        Self {
            elsewhere: own.or(self.elsewhere).or(earlier),
            ..Self::default()
        }
    }

    /// The other name of its server under which a person has approved the definition with this hash.
    pub(super) fn approved_under(&self, hash: &str) -> Option<String> {
        let elsewhere = self.elsewhere.as_ref().filter(|it| it.hash == hash);
        elsewhere.map(|elsewhere| elsewhere.name.clone())
    }

    /// Whether this definition differs in its bytes only.
    pub(super) fn is_alike(
        &self,
        json: Option<&str>,
        is_same: impl Fn(&str, &str) -> bool,
    ) -> bool {
        let both = self.json.as_deref().zip(json);
        both.is_some_and(|(one, other)| is_same(one, other))
    }
}

impl Record {
    pub(super) fn pin(&mut self, name: &str, hash: &str, json: Option<String>, approved: bool) {
        let pinned = Pinned {
            hash: hash.to_owned(),
            json,
            approved,
            elsewhere: None,
        };
        self.tools.insert(name.to_owned(), pinned);
    }

    /// Whether a tool of this definition may be used under `trust`.
    pub(super) fn permits(&self, name: &str, hash: &str, trust: Trust) -> bool {
        let known = self.tools.get(name).filter(|known| known.hash == hash);
        let is_enough =
            |known: &Pinned| !trust.is_quarantine() || known.approved && self.is_approved_here;
        known.is_some_and(is_enough) && !self.rejected.contains(name)
    }

    /// Notes that a person approves something of the entry. Approvals of another entry are void from then on.
    pub(super) fn approve_entry(&mut self, entry: &str) {
        if !self.is_approved_here {
            self.tools.values_mut().for_each(|it| it.approved = false);
        }
        self.approved = Some(entry.to_owned());
        self.is_approved_here = true;
    }

    /// Notes that a person approves the whole server, with these prompts, resources and templates.
    pub(super) fn approve_whole(&mut self, entry: &str, entries: BTreeMap<String, Pinned>) {
        self.entries = Some(entries);
        self.whole = Some(entry.to_owned());
        self.is_whole_here = true;
        self.quarantined = false;
        self.lost = false;
    }

    /// Whether everything but approved tools waits for the approval of the whole server. An edit from `"quarantine"` to
    /// `"pin"` changes nothing about that.
    pub(super) fn is_quarantined(&self, trust: Trust) -> bool {
        match trust {
            Trust::Unset | Trust::Report => false,
            Trust::Pin => self.quarantined,
            Trust::Quarantine | Trust::Unstarted => !self.is_whole_here,
        }
    }

    /// Takes over from the record of a server under another name what that holds back, and no approval: a definition that a
    /// person approved there waits here, and so does one for which two records differ.
    pub(super) fn inherit(&mut self, under: &str, other: Self) {
        self.quarantined |= other.quarantined;
        self.lost |= other.lost;
        self.rejected.extend(other.rejected);
        self.rejected_entries.extend(other.rejected_entries);
        let theirs = match other.approved {
            // Which instructions were approved is not recorded.
            Some(_) => other.instructions.map(|_| None),
            None => other.instructions,
        };
        self.instructions = match (self.instructions.take(), theirs) {
            (Some(own), Some(theirs)) if own != theirs => Some(None),
            (own, theirs) => own.or(theirs),
        };
        for (name, pinned) in other.tools {
            let known = self.tools.get(&name);
            let pinned = pinned.inherited(under, known);
            self.tools.insert(name, pinned);
        }
        for (label, pinned) in other.entries.into_iter().flatten() {
            let entries = self.entries.get_or_insert_default();
            let pinned = pinned.inherited(under, entries.get(&label));
            entries.insert(label, pinned);
        }
    }

    /// The `trust` in force.
    pub(super) fn in_force(&self, trust: Trust) -> Trust {
        in_force(trust, self.lost, self.quarantined && !self.is_whole_here)
    }

    pub(super) fn for_entry(mut self, entry: &str) -> Self {
        self.is_whole_here = self.whole.as_deref() == Some(entry);
        self.is_approved_here = self.approved.as_deref() == Some(entry);
        self.may_start = self.started.as_deref() == Some(entry);
        self
    }
}

pub(super) fn hash_of(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text)[..16])
}
