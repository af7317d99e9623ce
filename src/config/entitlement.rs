//! The part of a configuration that an identity gets by its roles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use super::error::{EntryError, ProfileRefusal};
use super::roles::{EVERYTHING, GrantedProfile, Role};
use super::subject::{Person, Subject};
use super::{Config, Policy, Server, UpstreamIdentity};
use crate::secret::Secret;

/// The part of a configuration that one identity may use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Entitlement {
    /// The identity, unique among all ways to show one.
    pub(crate) identity: String,
    /// The issuer that says so, if there is one: another one may mean another person by the same identity.
    pub(crate) issuer: Option<String>,
    /// Its name and roles, as rules know them.
    pub(crate) person: Arc<Person>,
    /// The profiles that its roles give; `None` gives the whole configuration.
    pub(crate) profiles: Option<BTreeSet<String>>,
    /// The profile that its credential is limited to.
    pub(crate) limit: Option<String>,
    /// Whether it manages the gateway in its window.
    pub(crate) manages: bool,
    /// The grant of its token, if a server of the configuration gets one in exchange: what another grant got serves none of this one.
    pub(crate) grant: Option<String>,
}

/// An access token that a person has shown, for servers that get one in exchange for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SubjectToken {
    /// The token.
    pub(crate) token: Secret<String>,
    /// The client that it was given to, and its scopes: tokens with different ones may do different things.
    pub(crate) grant: String,
    /// When it ends.
    pub(crate) expires: SystemTime,
}

impl Entitlement {
    /// Whether it is the whole configuration.
    #[must_use]
    pub(crate) fn is_everything(&self) -> bool {
        self.profiles.is_none() && self.limit.is_none()
    }

    /// The name under which things are kept for this person alone.
    #[must_use]
    pub(crate) fn account(&self) -> String {
        account(&self.identity, self.issuer.as_deref())
    }
}

/// The facts about an identity that decide its roles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// The identity, unique among all ways to show one.
    pub(crate) identity: String,
    /// The issuer that says so, if there is one.
    pub(crate) issuer: Option<String>,
    /// The name.
    pub(crate) name: String,
    /// The groups that its provider says.
    pub(crate) groups: BTreeSet<String>,
    /// The roles that its credential names.
    pub(crate) roles: BTreeSet<String>,
    /// The profile that its credential is limited to.
    pub(crate) profile: Option<String>,
    /// Its token, if that can be exchanged for another.
    pub(crate) token: Option<SubjectToken>,
}

impl Claims {
    /// As [`Entitlement::account`].
    #[must_use]
    pub(crate) fn account(&self) -> String {
        account(&self.identity, self.issuer.as_deref())
    }
}

fn account(identity: &str, issuer: Option<&str>) -> String {
    // Neither has line breaks.
    match issuer {
        Some(issuer) => format!("{identity}\n{issuer}"),
        None => identity.to_owned(),
    }
}

/// Why an identity gets nothing, for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotEntitled {
    /// The key cannot be read.
    #[error("`roles` cannot be used: {0}")]
    Unreadable(EntryError),
    /// No role is the identity's.
    #[error(
        "no role of the configuration is for it: name it in `users`, one of its groups in `groups`, or give its token a role"
    )]
    NoRole,
    /// No profile of its roles can be used.
    #[error(transparent)]
    Profile(#[from] ProfileRefusal),
}

impl Config {
    /// The part of the configuration that an identity with these claims gets.
    ///
    /// # Errors
    /// When that is nothing.
    pub(crate) fn entitlement(&self, claims: &Claims) -> Result<Entitlement, NotEntitled> {
        let roles = self
            .roles
            .as_ref()
            .map_err(|fault| NotEntitled::Unreadable(fault.clone()))?;
        let is_theirs = |name: &str, role: &Role| {
            claims.roles.contains(name)
                || role.users.contains(&claims.name)
                || role
                    .groups
                    .iter()
                    .any(|group| claims.groups.contains(group))
        };
        let usable = roles.iter().flatten().filter_map(|(name, role)| {
            let role = role.as_ref().ok()?;
            is_theirs(name, role).then_some((name, role))
        });
        let theirs: BTreeMap<&String, &Role> = usable.collect();
        let names = theirs.keys().map(|name| (*name).clone()).collect();
        let given = theirs
            .values()
            .flat_map(|role| role.profiles.iter().cloned());
        let given: BTreeSet<String> = given.collect();
        let profiles = match (roles, &claims.profile) {
            // Without roles, everyone with an identity gets everything, unless the credential is for one profile.
            (None, _) if claims.roles.is_empty() => None,
            (_, Some(profile)) if given.is_empty() && claims.roles.is_empty() => {
                Some(BTreeSet::from([profile.clone()]))
            }
            _ if given.is_empty() => return Err(NotEntitled::NoRole),
            _ if given.contains(EVERYTHING) => None,
            _ => Some(given),
        };
        let entitlement = Entitlement {
            identity: claims.identity.clone(),
            issuer: claims.issuer.clone(),
            person: Arc::new(Person {
                name: claims.name.clone(),
                roles: names,
            }),
            profiles,
            // A credential that is limited to a profile has no rights beyond it.
            manages: claims.profile.is_none() && theirs.values().any(|role| role.manages),
            limit: claims.profile.clone(),
            grant: match &claims.token {
                Some(token) if self.exchanges_tokens() => Some(token.grant.clone()),
                _ => None,
            },
        };
        self.entitled(&entitlement)?;
        Ok(entitlement)
    }

    /// The part of the configuration that an entitlement permits, judged for its person. A profile that cannot be used gives nothing.
    ///
    /// # Errors
    /// When none of its profiles can be used, or the one that it is limited to cannot.
    pub(crate) fn entitled(&self, entitlement: &Entitlement) -> Result<Self, ProfileRefusal> {
        let mut config = match &entitlement.profiles {
            None => self.clone(),
            Some(names) => self.united(names)?,
        };
        if let Some(profile) = &entitlement.limit {
            config = config.narrowed(std::slice::from_ref(profile))?;
        }
        config.judge_for(&Subject::Person(entitlement.person.clone()));
        Ok(config)
    }

    /// The configuration, judged for `subject`.
    pub(crate) fn judge_for(&mut self, subject: &Subject) {
        let own = self.servers.values_mut().map(|entry| &mut entry.tools);
        let profiles = self.profile_rules.iter_mut().map(|(_, rules)| rules);
        let roles = self.role_profiles.iter_mut().map(|part| &mut part.rules);
        let all = std::iter::once(&mut self.tools);
        all.chain(own)
            .chain(profiles)
            .chain(roles)
            .for_each(|rules| rules.judge_for(subject));
        self.subject.clone_from(subject);
    }

    /// The configuration with what any of these profiles permits.
    fn united(&self, names: &BTreeSet<String>) -> Result<Self, ProfileRefusal> {
        let mut config = self.clone();
        let mut refusals = Vec::new();
        let mut management = super::Management::Off;
        for name in names {
            let part = self.narrowed(std::slice::from_ref(name));
            match part.and_then(|part| Ok((part, self.profile(name)?))) {
                Ok((part, profile)) => {
                    management = management.max(part.management);
                    let surface = &mut config.surface.of_profiles;
                    *surface = surface.or(profile.surface);
                    config.role_profiles.push(GrantedProfile {
                        name: name.clone(),
                        servers: profile.servers.clone(),
                        rules: profile.tools.clone(),
                    });
                }
                Err(refusal) => refusals.push(refusal),
            }
        }
        let granted = std::mem::take(&mut config.role_profiles);
        if let (true, Some(refusal)) = (granted.is_empty(), refusals.into_iter().next()) {
            return Err(refusal);
        }
        config.keep_servers(|server| granted.iter().any(|profile| profile.has(server)));
        config.role_profiles = granted;
        config.management = management;
        config.withhold();
        Ok(config)
    }

    /// Whether a server gets a token in exchange for that of a person.
    #[must_use]
    pub(crate) fn exchanges_tokens(&self) -> bool {
        let mut all = self.identities();
        all.any(|identity| matches!(identity, UpstreamIdentity::Exchange(_)))
    }

    /// Whether what one person gets from a server may differ from what another one gets.
    #[must_use]
    pub(crate) fn has_servers_of_people(&self) -> bool {
        let mut all = self.identities();
        all.any(|identity| !identity.is_shared())
    }

    fn identities(&self) -> impl Iterator<Item = &UpstreamIdentity> {
        let remotes = self.servers.values().filter_map(Server::remote);
        remotes.map(|remote| &remote.identity)
    }

    /// The roles that let people manage the gateway in its window.
    pub(crate) fn managing_roles(&self) -> impl Iterator<Item = &String> {
        let roles = self.roles.iter().flatten().flatten();
        let managing = roles.filter(|(_, role)| matches!(role, Ok(role) if role.manages));
        managing.map(|(name, _)| name)
    }

    /// The roles that its rules and limits name.
    #[must_use]
    pub(crate) fn roles_of_rules(&self) -> BTreeSet<String> {
        let own = self.servers.values().map(|entry| &entry.tools);
        let profiles = self.profiles.iter().flat_map(BTreeMap::values).flatten();
        let profiles = profiles.map(|profile| &profile.tools);
        let all = std::iter::once(&self.tools).chain(own).chain(profiles);
        let limits = self.limits.iter().flatten().flat_map(super::Limit::roles);
        let rules = all.flat_map(Policy::roles);
        rules.chain(limits).map(str::to_owned).collect()
    }

    /// Whether what is recorded about the calls of others may be shown too: a person with a part of the configuration sees none of it.
    #[must_use]
    pub(crate) fn shows_calls_of_others(&self) -> bool {
        !self.is_for_person() || self.profile_names().next().is_none()
    }

    /// The name of the person whom the configuration is for, as `@user:` has it.
    #[must_use]
    pub(crate) fn person_name(&self) -> Option<&str> {
        match &self.subject {
            Subject::Person(person) => Some(&person.name),
            Subject::Local | Subject::Unidentified => None,
        }
    }

    /// The window in which the person whom the configuration is for manages the gateway, in words.
    #[must_use]
    pub(crate) fn window_of_manager(&self) -> Option<String> {
        let Subject::Person(person) = &self.subject else {
            return None;
        };
        let http = self.http.as_ref().ok().filter(|http| http.ui)?;
        let manages = self
            .managing_roles()
            .any(|role| person.roles.contains(role));
        manages.then(|| match &http.public_url {
            Some(url) => format!("the window {url}/ui/"),
            None => "the window of this gateway".to_owned(),
        })
    }

    /// Whether the configuration is for one person.
    #[must_use]
    pub(crate) fn is_for_person(&self) -> bool {
        matches!(self.subject, Subject::Person(_))
    }
}
