//! `profiles`: named parts of the configuration. A profile removes servers, adds rules and lowers permissions; nothing in it permits
//! what the rest of the file does not. A profile that cannot be read, or that leaves no server, is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::error::EntryError;
use super::names::safe_name;
use super::reader::{At, Field, Read, Report};
use super::sections::PolicyEntry;
use super::surface::surface_name;
use super::{Environment, Management, Policy, Projects, Surface, expand};
use crate::tool::ServerName;

/// The longest name of a profile; it is a part of a URL.
const LONGEST_NAME: usize = 64;

const NAME_EXPECTED: &str =
    "a name of at most 64 letters `a-z`, digits, `-` and `_`, which begins with a letter or digit";
const SERVERS_EXPECTED: &str =
    "a list with at least one name of a server in `mcpServers`, or `[\"*\"]` for all of them";
const KEYS_EXPECTED: &str = "one of `servers`, `tools`, `surface`, `management` and `projects`";
const MANAGEMENT_EXPECTED: &str =
    "\"off\" or \"read\"; a change of the configuration would reach servers outside the profile";

/// Stands for a profile of a client that cannot be read; no profile has this name.
pub(super) const UNREADABLE: &str = "\0";

/// The profiles as they stand in the file; each may have a fault of its own.
pub(super) type ProfileEntries = Vec<(String, Result<ProfileEntry, At<EntryError>>)>;

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
pub(crate) type Profiles = Result<BTreeMap<String, Result<Profile, EntryError>>, EntryError>;

/// Reads `profiles`.
pub(super) fn profiles(field: &Field<'_>) -> Result<ProfileEntries, At<EntryError>> {
    field.members(|name, field| Ok((name.to_owned(), profile(name, field))))
}

fn profile(name: &str, field: &Field<'_>) -> Result<ProfileEntry, At<EntryError>> {
    if !is_name(name) {
        let fault = EntryError::value("profiles", NAME_EXPECTED, format!("`{name}`"));
        return Err(At::new(field.offset(), fault));
    }
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
            "tools" => entry.tools = PolicyEntry::read(field)?,
            "surface" => entry.surface = Some(surface_name(field)?),
            "management" => entry.management = Some(management(field)?),
            "projects" => entry.projects = field.texts()?,
            // A restriction whose key is misspelt would otherwise be lost.
            _ => return Err(field.wrong(KEYS_EXPECTED)),
        }
        Ok(())
    })?;
    match entry.servers.is_empty() {
        // Neither a missing nor an empty list stands for all servers.
        true => Err(field.wrong(format!("an object whose `servers` is {SERVERS_EXPECTED}"))),
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

fn is_name(name: &str) -> bool {
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
        let profile = entry.and_then(|mut entry| {
            let written = std::mem::take(&mut entry.projects);
            let home = |text: &str| expand::home(text, environment);
            let projects = Projects::read(written, home, |_, text| Ok(text.value.clone()))?;
            let profile = resolved(&name, entry, names, renamed, report)?;
            Ok(Profile {
                projects,
                ..profile
            })
        });
        let profile = profile.map_err(|at| {
            let fault = at.value.clone();
            report.fall_back(at, REFUSED);
            fault
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
