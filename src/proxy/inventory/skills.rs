//! The skills that servers have listed, read once for each list, and the URIs that stand for them.
//!
//! *Invariant*: a skill that rules, a profile or pins withhold is not read by any spelling of a URI. A server may take many spellings
//! for one URI, so where a skill is withheld, only URIs that are known to mean something else are let through.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use parking_lot::Mutex;
use percent_encoding::percent_decode_str;

use super::Inventory;
use crate::catalog::{ServerTools, Snapshot, ToolEntry};
use crate::config::{Config, Verdict};
use crate::proxy::own_uris;
use crate::proxy::skill::Skill;
use crate::proxy::view::View;
use crate::tool::{Hints, QualifiedName, ServerName, ToolName};
use crate::upstream::{SKILLS, skill_of_definition};

/// A skill of a server.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct KnownSkill {
    /// The tool that it stands for, by the server's own name.
    pub(in crate::proxy) tool: ToolName,
    /// Its entry in its server's list.
    pub(in crate::proxy) skill: Arc<Skill>,
}

/// The skills of a server, and those of them that a client may see.
#[derive(Debug)]
pub(in crate::proxy) struct SkillGuard {
    server: Arc<ServerTools>,
    config: Arc<Config>,
    /// Whether its skills are compared with those that were listed.
    is_compared: bool,
    /// The visible ones, by the server's own names of their tools.
    shown: BTreeSet<ToolName>,
    /// `None` if they cannot be read.
    skills: Option<Arc<[KnownSkill]>>,
}

/// The skills by server, each with a hash of the list that they are from.
#[derive(Debug, Default)]
pub(super) struct KnownSkills(Mutex<BTreeMap<ServerName, OfList>>);

/// The hash of a list, and its skills.
type OfList = (u64, Arc<[KnownSkill]>);

impl KnownSkills {
    /// The skills that `server` listed, also those that no client sees; `None` if one of them cannot be read.
    fn of(&self, server: &ServerTools) -> Option<Arc<[KnownSkill]>> {
        let listed = server.as_listed();
        let entries = || listed.entries().iter().filter(|entry| entry.is_skill);
        let mut hasher = DefaultHasher::new();
        entries().for_each(|entry| (&entry.name, entry.hash).hash(&mut hasher));
        let hash = hasher.finish();
        if let Some((of, skills)) = self.0.lock().get(server.name())
            && *of == hash
        {
            return Some(skills.clone());
        }
        let read = |entry: &ToolEntry| {
            let definition = listed.json(entry).ok()?;
            let skill = Skill::of(skill_of_definition(definition.get().as_bytes())?)?;
            Some(KnownSkill {
                tool: entry.name.clone(),
                skill: Arc::new(skill),
            })
        };
        let skills: Arc<[KnownSkill]> = entries().map(read).collect::<Option<_>>()?;
        let known = (hash, skills.clone());
        self.0.lock().insert(server.name().clone(), known);
        Some(skills)
    }
}

impl Inventory {
    /// The skills of a server that a client with this view may see.
    pub(in crate::proxy) fn visible_skills(
        &self,
        view: &View,
        server: &ServerName,
    ) -> Vec<KnownSkill> {
        let snapshot = view.snapshot();
        let Some(known) = snapshot.server(server) else {
            return Vec::new();
        };
        let (shown, all) = (shown(&snapshot, server), self.known_skills(known));
        let all = all.unwrap_or_default();
        let seen = all.iter().filter(|one| shown.contains(&one.tool));
        seen.cloned().collect()
    }

    /// The visible skill of `server` in whose folder `uri` is. A skill may be in the folder of another one.
    pub(in crate::proxy) fn skill_with(
        &self,
        view: &View,
        server: &ServerName,
        uri: &str,
    ) -> Option<KnownSkill> {
        let skills = self.visible_skills(view, server).into_iter();
        let holding = skills.filter(|one| one.skill.has(uri));
        holding.max_by_key(|one| one.skill.folder().len())
    }

    /// Whether what is read of a server's skills has to be what was listed: where a person has approved that, and in a folder of this
    /// machine.
    pub(in crate::proxy) fn compares_skills(&self, config: &Config, server: &ServerName) -> bool {
        let entry = config.servers.get(server);
        self.is_pinned(server)
            || entry.is_some_and(|entry| entry.holds().is_some() || !entry.trust.is_report())
    }

    /// Whether `own` may stand, at its server, for something of a skill that the client may not see.
    pub(in crate::proxy) fn withholds_skill(
        &self,
        view: &View,
        server: &ServerName,
        own: &str,
    ) -> bool {
        let guard = self.skill_guard(view, server);
        guard.is_some_and(|guard| guard.withholds(own))
    }

    /// The guard of a server's skills; `None` if it has none.
    pub(in crate::proxy) fn skill_guard(
        &self,
        view: &View,
        server: &ServerName,
    ) -> Option<SkillGuard> {
        let snapshot = view.snapshot();
        let known = snapshot.server(server)?;
        if !known.capabilities().has_extension(SKILLS) {
            return None;
        }
        Some(SkillGuard {
            server: known.clone(),
            is_compared: self.compares_skills(&view.config(), server),
            config: view.config(),
            shown: shown(&snapshot, server),
            skills: self.known_skills(known),
        })
    }

    fn known_skills(&self, server: &ServerTools) -> Option<Arc<[KnownSkill]>> {
        let skills = self.skills.of(server);
        if skills.is_none() {
            tracing::warn!(server = %server.name(), "its skills cannot be read, so the server is listed again");
            self.discard(server.name());
        }
        skills
    }
}

impl SkillGuard {
    /// Whether `own` may stand, at the server, for something of a skill that the client may not see.
    pub(in crate::proxy) fn withholds(&self, own: &str) -> bool {
        if own_uris::leads_elsewhere(own) {
            return true;
        }
        let Some(skills) = &self.skills else {
            return true;
        };
        let schemes = skills.iter().map(|one| scheme(one.skill.folder()));
        let schemes: BTreeSet<String> = schemes.chain(["skill".to_owned()]).collect();
        let written = scheme(own);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let is_other = !written.is_empty() && written.chars().all(is_plain);
        if is_other && !schemes.contains(&written) {
            return false;
        }
        let is_shown = |one: &KnownSkill| self.shown.contains(&one.tool);
        let near = skills.iter().filter(|one| one.skill.may_have(own));
        let nearest = near.max_by_key(|one| one.skill.folder().len());
        match nearest {
            Some(one) if !is_shown(one) => return true,
            Some(one) if one.skill.gives(own) => return false,
            Some(_) | None => {}
        }
        let server = self.server.name();
        if self.is_compared || !skills.iter().all(is_shown) {
            return !self.server.resources().has(own);
        }
        // Rules have no tool for a skill that is not listed, so they are asked about each name in its URI.
        nearest.is_none() && has_denied_name(&self.config, server, own)
    }
}

/// The skills of a server that are visible in `snapshot`, by the server's own names of their tools.
fn shown(snapshot: &Snapshot, server: &ServerName) -> BTreeSet<ToolName> {
    let entries = snapshot.server(server).into_iter();
    let entries = entries.flat_map(|known| known.entries());
    let shown = entries
        .filter(|entry| entry.is_skill && snapshot.tool(server, &entry.name).is_some())
        .map(|entry| entry.as_listed().name.clone());
    shown.collect()
}

fn scheme(uri: &str) -> String {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.trim().to_ascii_lowercase()
}

fn has_denied_name(config: &Config, server: &ServerName, own: &str) -> bool {
    let hints = Hints {
        read_only: Some(true),
        ..Hints::default()
    };
    let (_, path) = own.split_once(':').unwrap_or(("", own));
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let is_part = |c: char| !c.is_alphanumeric() && !"-_.".contains(c);
    let mut names = path.split(is_part).chain(decoded.split(is_part));
    names.any(|name| {
        ToolName::new(name).is_ok_and(|tool| {
            let name = QualifiedName {
                server: server.clone(),
                tool,
            };
            config.decide(&name, hints, None).0 == Verdict::Denied
        })
    })
}
