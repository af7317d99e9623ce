//! `roles`: which profiles a person gets, by name, by group or by token. The profiles of all roles add up; what a person's token
//! or URL names narrows them. A role that cannot be read gives nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::error::EntryError;
use super::policy::Policy;
use super::profiles::is_profile_name;
use super::reader::{At, Field, Read, Report};
use crate::tool::ServerName;

const NAME_EXPECTED: &str =
    "a name of at most 64 letters `a-z`, digits, `-` and `_`, which begins with a letter or digit";
const PROFILES_EXPECTED: &str =
    "a list with at least one name in `profiles`, or `[\"*\"]` for the whole configuration";
const KEYS_EXPECTED: &str = "one of `profiles`, `groups`, `users` and `manage`";

/// Stands for the whole configuration among the profiles of a role.
pub(super) const EVERYTHING: &str = "*";

/// A role as it stands in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Role {
    /// The names of its profiles; `*` is the whole configuration.
    pub(crate) profiles: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) users: Vec<String>,
    /// Whether its people manage the gateway in its window.
    pub(crate) manages: bool,
}

/// The roles by name; `None` without the key. A fault in one is a fault of that role alone.
pub(crate) type Roles = Result<Option<BTreeMap<String, Result<Role, EntryError>>>, EntryError>;

/// The roles as they stand in the file.
pub(super) type RoleEntries = Vec<(String, Result<Role, At<EntryError>>)>;

/// A profile that a role gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GrantedProfile {
    pub(super) name: String,
    /// Its servers; `None` stands for all.
    pub(super) servers: Option<BTreeSet<ServerName>>,
    pub(super) rules: Policy,
}

impl GrantedProfile {
    /// The name of the profile.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has a server.
    pub(super) fn has(&self, server: &ServerName) -> bool {
        self.servers.as_ref().is_none_or(|servers| {
            servers.contains(server) || server.as_str() == super::BUILT_IN_SERVER
        })
    }
}

/// Reads `roles`.
pub(super) fn roles(field: &Field<'_>) -> Result<RoleEntries, At<EntryError>> {
    field.members(|name, field| Ok((name.to_owned(), role(name, field))))
}

fn role(name: &str, field: &Field<'_>) -> Result<Role, At<EntryError>> {
    if !is_profile_name(name) {
        let fault = EntryError::value("roles", NAME_EXPECTED, format!("`{name}`"));
        return Err(At::new(field.offset(), fault));
    }
    let mut role = Role::default();
    field.members(|key, field| {
        let texts = || -> Result<Vec<String>, At<EntryError>> {
            let texts = field.texts()?;
            // An empty name would be that of an identity whose name is missing.
            match texts.iter().find(|text| text.value.trim().is_empty()) {
                Some(_) => Err(field.wrong("a list of names, none of them empty")),
                None => Ok(texts.into_iter().map(|text| text.value).collect()),
            }
        };
        match key {
            "profiles" => role.profiles = texts()?,
            "groups" => role.groups = texts()?,
            "users" => role.users = texts()?,
            "manage" => role.manages = field.flag()?,
            _ => return Err(field.wrong(KEYS_EXPECTED)),
        }
        Ok(())
    })?;
    match role.profiles.is_empty() {
        // A missing list must not stand for everything.
        true => Err(field.wrong(format!("an object whose `profiles` is {PROFILES_EXPECTED}"))),
        false => Ok(role),
    }
}

/// The roles as written.
pub(super) fn of(read: Read<RoleEntries>, report: &Report) -> Roles {
    let entries = match read {
        Ok(entries) => entries,
        Err(at) => {
            let fault = at.value.clone();
            report.refuse(at, "everyone with an identity is refused");
            return Err(fault);
        }
    };
    let Some(entries) = entries else {
        return Ok(None);
    };
    let roles = entries.into_iter().map(|(name, role)| {
        let role = role.map_err(|at| {
            let fault = at.value.clone();
            report.refuse(at, "the role gives nothing");
            fault
        });
        (name, role)
    });
    Ok(Some(roles.collect()))
}
