//! `profiles`: named parts of the configuration. A profile removes servers, adds rules and lowers permissions; nothing in it permits
//! what the rest of the file does not. A profile that cannot be read, or that leaves no server, is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::error::EntryError;
use super::names::safe_name;
use super::nearest::nearest;
use super::reader::{At, Field, Read, Report};
use super::sections::PolicyEntry;
use super::surface::surface_name;
use super::{Environment, ListedRule, Management, Policy, Projects, Surface, expand};
use crate::tool::ServerName;

/// The longest name of a profile; it is a part of a URL.
const LONGEST_NAME: usize = 64;

const NAME_EXPECTED: &str =
    "a name of at most 64 letters `a-z`, digits, `-` and `_`, which begins with a letter or digit";
const SERVERS_EXPECTED: &str =
    "a list with at least one name of a server in `mcpServers`, or `[\"*\"]` for all of them";
const KEYS: [&str; 5] = ["servers", "tools", "surface", "management", "projects"];
const RULES: [&str; 4] = ["allow", "ask", "deny", "without_asking"];
const RULES_EXPECTED: &str = "one of the lists `allow`, `ask`, `deny` and `without_asking`";
const KEYS_EXPECTED: &str = "one of `servers`, `tools`, `surface`, `management` and `projects`";
const MANAGEMENT_EXPECTED: &str =
    "\"off\" or \"read\"; a change of the configuration would reach servers outside the profile";

/// Stands for a profile of a client that cannot be read; no profile has this name.
pub(super) const UNREADABLE: &str = "\0";

/// The profiles as they stand in the file; each may have a fault of its own.
pub(super) type ProfileEntries = Vec<(String, Result<ProfileEntry, FaultyEntry>)>;

/// A profile that cannot be read, and its directories as far as they can: `None` where any may be meant.
pub(super) type FaultyEntry = (At<EntryError>, Option<Vec<At<String>>>);

/// A profile as it stands in the file.
pub(super) struct ProfileEntry {
    servers: Vec<At<String>>,
    tools: PolicyEntry,
    surface: Option<Surface>,
    management: Option<Management>,
    projects: Vec<At<String>>,
}

/// A named part of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Profile {
    /// Its servers; `None` stands for all.
    pub(super) servers: Option<BTreeSet<ServerName>>,
    pub(super) tools: Policy,
    pub(super) surface: Option<Surface>,
    pub(super) management: Option<Management>,
    /// The directories whose sessions get it without asking; everywhere stands for none.
    pub(super) projects: Projects,
}

/// The facts about a session that decide its profiles.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProfileRequest<'a> {
    /// The profiles that its command line or URL names.
    pub named: &'a [String],
    /// The name of its client (`clientInfo`).
    pub client: Option<&'a str>,
    /// The directories that it works in, without symbolic links.
    pub directories: &'a [PathBuf],
}

/// The profiles by name. A fault in one refuses that profile alone; a fault of the whole key refuses every profile.
pub(crate) type Profiles = Result<BTreeMap<String, Result<Profile, FaultyProfile>>, EntryError>;

/// A profile that cannot be used. Sessions in its directories are refused, because without it they would get more than it permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FaultyProfile {
    pub(super) fault: EntryError,
    /// Its directories; `None` where they cannot be read, so that any may be meant.
    projects: Option<Projects>,
}

impl Profile {
    /// Whether a rule of it asks about some tool or call.
    pub(crate) fn asks(&self) -> bool {
        self.tools.asks()
    }

    /// How its sessions see the tools, if it decides that.
    pub(crate) fn surface(&self) -> Option<Surface> {
        self.surface
    }

    /// Whether the directories of a session can lead to it.
    pub(crate) fn has_directories(&self) -> bool {
        !self.projects.is_everywhere()
    }

    /// Its rules for tools.
    pub(crate) fn rules(&self) -> impl Iterator<Item = ListedRule<'_>> {
        self.tools.rules()
    }
}

impl FaultyProfile {
    /// Whether it may be meant for a session in `directories`.
    pub(super) fn may_concern(&self, directories: &[PathBuf]) -> bool {
        match &self.projects {
            None => !directories.is_empty(),
            Some(projects) => !projects.is_everywhere() && projects.admit(directories),
        }
    }

    /// Whether it depends on a session's directories.
    pub(super) fn has_directories(&self) -> bool {
        !(self.projects.as_ref()).is_some_and(Projects::is_everywhere)
    }
}

/// Reads `profiles`.
pub(super) fn profiles(field: &Field<'_>) -> Result<ProfileEntries, At<EntryError>> {
    field.members(|name, field| {
        let entry = profile(name, field).map_err(|fault| (fault, directories(field)));
        Ok((name.to_owned(), entry))
    })
}

/// The directories of a profile that has a fault; `None` where it may have others than those.
fn directories(field: &Field<'_>) -> Option<Vec<At<String>>> {
    let mut written = Some(Vec::new());
    let read = field.members(|key, field| {
        match key {
            "projects" => written = field.texts().ok(),
            _ if nearest(key, &KEYS) == Some("projects") => written = None,
            _ => {}
        }
        Ok(())
    });
    read.ok().and(written)
}

/// Refuses an object with other keys than `keys`, or with `null`: a restriction would be lost.
fn only(field: &Field<'_>, keys: &[&str], expected: &str) -> Result<(), At<EntryError>> {
    let checked = field.members(
        |key, member| match keys.contains(&key) && !member.is_null() {
            true => Ok(()),
            false => Err(member.wrong(expected)),
        },
    );
    checked.map(drop)
}

fn profile(name: &str, field: &Field<'_>) -> Result<ProfileEntry, At<EntryError>> {
    if !is_profile_name(name) {
        let fault = EntryError::value("profiles", NAME_EXPECTED, format!("`{name}`"));
        return Err(At::new(field.offset(), fault));
    }
    only(field, &KEYS, KEYS_EXPECTED)?;
    let mut entry = ProfileEntry {
        servers: Vec::new(),
        tools: PolicyEntry::default(),
        surface: None,
        management: None,
        projects: Vec::new(),
    };
    field.members(|key, field| {
        match key {
            "servers" => entry.servers = field.texts()?,
            "tools" => {
                only(field, &RULES, RULES_EXPECTED)?;
                entry.tools = PolicyEntry::read(field)?;
            }
            "surface" => entry.surface = Some(surface_name(field)?),
            "management" => entry.management = Some(management(field)?),
            _ => entry.projects = field.texts()?,
        }
        Ok(())
    })?;
    match entry.servers.is_empty() {
        // Neither a missing nor an empty list stands for all servers.
        true => {
            let mut written = field.object()?.properties.iter();
            let found = match written.any(|property| property.name.as_str() == "servers") {
                true => "an empty list",
                false => "no such key",
            };
            let key = format!("profiles.{name}.servers");
            let fault = EntryError::value(&key, SERVERS_EXPECTED, found);
            Err(At::new(field.offset(), fault))
        }
        false => Ok(entry),
    }
}

fn management(field: &Field<'_>) -> Result<Management, At<EntryError>> {
    match field.word() {
        Some("off") => Ok(Management::Off),
        Some("read") => Ok(Management::Read),
        _ => Err(field.wrong(MANAGEMENT_EXPECTED)),
    }
}

/// Whether a profile may have this name.
pub(crate) fn is_profile_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= LONGEST_NAME
        && name.bytes().next().is_some_and(is_plain)
        && name
            .bytes()
            .all(|byte| is_plain(byte) || b"-_".contains(&byte))
}

/// The profiles as written, checked against the names of the servers.
pub(super) fn of(
    read: Read<ProfileEntries>,
    names: &BTreeSet<String>,
    renamed: &BTreeMap<ServerName, String>,
    environment: &Environment,
    report: &Report,
) -> Profiles {
    const REFUSED: &str = "sessions of the profile are refused";
    let entries = match read {
        Ok(entries) => entries.unwrap_or_default(),
        Err(at) => {
            let fault = at.value.clone();
            report.fall_back(at, "sessions of every profile are refused");
            return Err(fault);
        }
    };
    let mut profiles = BTreeMap::new();
    for (name, entry) in entries {
        let read = |written: Vec<At<String>>| {
            let home = |text: &str| expand::home(text, environment);
            Projects::read(written, home, |_, text| Ok(text.value.clone()))
        };
        let profile = match entry {
            Err((at, written)) => Err((at, written.and_then(|written| read(written).ok()))),
            Ok(mut entry) => match read(std::mem::take(&mut entry.projects)) {
                Err(at) => Err((at, None)),
                Ok(projects) => match resolved(&name, entry, names, renamed, report) {
                    Err(at) => Err((at, Some(projects))),
                    Ok(profile) => Ok(Profile {
                        projects,
                        ..profile
                    }),
                },
            },
        };
        let profile = profile.map_err(|(at, projects)| {
            let fault = at.value.clone();
            report.fall_back(at, REFUSED);
            FaultyProfile { fault, projects }
        });
        profiles.insert(name, profile);
    }
    Ok(profiles)
}

fn resolved(
    name: &str,
    entry: ProfileEntry,
    names: &BTreeSet<String>,
    renamed: &BTreeMap<ServerName, String>,
    report: &Report,
) -> Result<Profile, At<EntryError>> {
    let mut servers = BTreeSet::new();
    let mut has_all = false;
    for written in entry.servers {
        if written.value == "*" {
            has_all = true;
            continue;
        }
        let server = ServerName::new(&written.value)
            .or_else(|_| ServerName::new(&safe_name(&written.value)));
        match server {
            Ok(server) if names.contains(&written.value) => {
                let known = renamed.iter().find(|(_, text)| **text == written.value);
                servers.insert(known.map_or(server, |(server, _)| server.clone()));
            }
            _ => {
                let key = format!("profiles.{name}.servers");
                let found = format!("`{}`", written.value);
                let fault = EntryError::value(&key, "the name of a server in `mcpServers`", found);
                report.fall_back(
                    At::new(written.offset, fault),
                    "the profile goes without it",
                );
            }
        }
    }
    let mut tools = Policy::read(entry.tools)?;
    for (server, written) in renamed {
        tools.know_as(server, written);
    }
    Ok(Profile {
        servers: (!has_all).then_some(servers),
        tools,
        surface: entry.surface,
        management: entry.management,
        projects: Projects::default(),
    })
}
