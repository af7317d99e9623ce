//! The part of a configuration that profiles permit.

use std::collections::BTreeSet;

use super::error::{EntryError, ProfileRefusal};
use super::profiles::{Profile, ProfileRequest, UNREADABLE};
use super::roles::GrantedProfile;
use super::{Config, Lifetime, Management, Policy, RuleList, ScriptOptions};
use crate::tool::{Hints, QualifiedName, ServerName};

impl Config {
    /// Whether a session with this part, after `before`, must not read the results that it has stored: a server is gone, or the
    /// rules of its profiles are others.
    #[must_use]
    pub(crate) fn withholds_results_of(&self, before: &Self) -> bool {
        let is_gone = |server: &ServerName| !self.servers.contains_key(server);
        let rules = (&self.profile_rules, &before.profile_rules);
        self.servers.is_empty()
            || !self.profile_rules.is_empty()
                && (before.servers.keys().any(is_gone) || rules.0 != rules.1)
    }

    /// A text that is another one once results that were stored before must not be read any more. `None` if none may be read.
    #[must_use]
    pub(crate) fn results_scope(&self) -> Option<String> {
        if self.servers.is_empty() {
            return None;
        }
        let is_narrowed = !self.profile_rules.is_empty() || !self.role_profiles.is_empty();
        let servers = is_narrowed.then(|| self.servers.keys().collect::<Vec<_>>());
        let (rules, roles) = (&self.profile_rules, &self.role_profiles);
        Some(format!("{rules:?} {roles:?} {servers:?}"))
    }

    /// The names of the profiles that a session gets: all that are named, that of its client, and those of its directories.
    #[must_use]
    pub(crate) fn profiles_of(&self, request: ProfileRequest<'_>) -> Vec<String> {
        let mut names = request.named.to_vec();
        let has_profiles = self.profiles.as_ref().is_ok_and(|known| !known.is_empty());
        if self.surface.is_unreadable && has_profiles {
            names.push(UNREADABLE.to_owned());
        }
        if let Some(client) = request.client {
            if has_profiles && self.surface.is_unclear(client) {
                names.push(UNREADABLE.to_owned());
            }
            names.extend(self.surface.profiles_of(client).map(str::to_owned));
        }
        if self.profiles.is_err() && !request.directories.is_empty() {
            names.push(UNREADABLE.to_owned());
        }
        for (name, profile) in self.profiles.iter().flatten() {
            let is_concerned = match profile {
                Ok(Profile { projects, .. }) => {
                    !projects.is_everywhere() && projects.admit(request.directories)
                }
                Err(faulty) => faulty.may_concern(request.directories),
            };
            if is_concerned {
                names.push(name.clone());
            }
        }
        let mut known = BTreeSet::new();
        names.retain(|name| known.insert(name.clone()));
        names
    }

    /// Whether tools that its rules deny do not exist for its sessions: a profile that it is narrowed to has rules, or it is for a person.
    #[must_use]
    pub(crate) fn has_profile_rules(&self) -> bool {
        // Of what a person may not use, nothing is shown either.
        self.is_for_person() || !self.profile_rules.iter().all(|(_, rules)| rules.is_empty())
    }

    /// The profiles that the configuration is narrowed to.
    pub(crate) fn profile_names(&self) -> impl Iterator<Item = &str> {
        let roles = self.role_profiles.iter().map(GrantedProfile::name);
        let named = self.profile_rules.iter().map(|(name, _)| name.as_str());
        named.chain(roles)
    }

    /// The profiles that the session was narrowed to, without those that roles give.
    #[must_use]
    pub(crate) fn narrowed_to(&self) -> Vec<String> {
        let names = self.profile_rules.iter().map(|(name, _)| name.clone());
        names.collect()
    }

    /// The lists of rules that ask about some call of a tool.
    #[must_use]
    pub(crate) fn asking_lists(&self, name: &QualifiedName, hints: Hints) -> Vec<RuleList> {
        let asks = |rules: &Policy| rules.asks_about(name, hints);
        let all = asks(&self.tools).then_some(RuleList::All);
        let own = self.servers.get(&name.server);
        let own = own.filter(|entry| asks(&entry.tools));
        let named = self.profile_rules.iter();
        let named = named.filter(|(_, rules)| asks(rules));
        let roles = self.role_profiles.iter();
        let roles = roles.filter(|profile| profile.has(&name.server) && asks(&profile.rules));
        let profiles = named.map(|(name, _)| name.as_str());
        let profiles: BTreeSet<&str> = profiles.chain(roles.map(GrantedProfile::name)).collect();
        let profiles = profiles.into_iter().map(str::to_owned);
        let own = own.map(|_| RuleList::Server);
        all.into_iter()
            .chain(own)
            .chain(profiles.map(RuleList::Profile))
            .collect()
    }

    /// Whether the directories of a session can decide its profiles.
    #[must_use]
    pub(crate) fn has_profiles_of_directories(&self) -> bool {
        let Ok(profiles) = &self.profiles else {
            return true;
        };
        profiles.values().any(|profile| match profile {
            Ok(profile) => !profile.projects.is_everywhere(),
            Err(faulty) => faulty.has_directories(),
        })
    }

    /// The part of the configuration that all of these profiles permit; the first one with a surface decides it.
    ///
    /// # Errors
    /// When a profile is unknown or faulty, or no server is left.
    pub(crate) fn narrowed(&self, names: &[String]) -> Result<Self, ProfileRefusal> {
        let mut config = self.clone();
        if names.is_empty() {
            return Ok(config);
        }
        for name in names {
            let profile = self.profile(name)?;
            if let Some(servers) = &profile.servers {
                config.keep_servers(|server| servers.contains(server));
            }
            let most = profile.management.unwrap_or(Management::Read);
            config.management = most.min(config.management);
            let of_profiles = &mut config.surface.of_profiles;
            *of_profiles = of_profiles.or(profile.surface);
            let rules = (name.clone(), profile.tools.clone());
            config.profile_rules.push(rules);
        }
        if config.servers.is_empty() {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            return Err(ProfileRefusal::Empty {
                names: names.join(" and "),
            });
        }
        config.withhold();
        Ok(config)
    }

    /// Removes what sessions of a part must not see.
    pub(super) fn withhold(&mut self) {
        // They are about all servers, and agents read them.
        self.warnings.clear();
        // Results that are kept longer than their session can be read by others.
        self.results.kept_for = Lifetime::default();
    }

    /// The configuration for sessions whose profiles cannot be used: it has no server.
    #[must_use]
    pub(crate) fn without_servers(&self) -> Self {
        let mut config = self.clone();
        config.keep_servers(|_| false);
        config.warnings.clear();
        config.management = Management::Off;
        config.scripts = ScriptOptions::default();
        config
    }

    /// Removes the other servers, and every mention of them.
    pub(super) fn keep_servers(&mut self, is_kept: impl Fn(&ServerName) -> bool) {
        self.servers.retain(|server, _| is_kept(server));
        let is_named = |name: &str| ServerName::new(name).is_ok_and(|server| is_kept(&server));
        self.faults.retain(|fault| is_named(&fault.name));
        self.renamed.retain(|server, _| is_kept(server));
        self.raised_trust
            .retain(|server, by| is_kept(server) && is_kept(by));
        let written: BTreeSet<&String> = self.renamed.values().collect();
        let names = std::mem::take(&mut self.names).into_iter();
        self.names = names
            .filter(|name| is_named(name) || written.contains(name))
            .collect();
    }

    pub(super) fn profile(&self, name: &str) -> Result<&Profile, ProfileRefusal> {
        let fault = |fault: &EntryError| ProfileRefusal::Fault {
            name: name.to_owned(),
            fault: fault.clone(),
        };
        if name == UNREADABLE {
            return Err(ProfileRefusal::Unreadable);
        }
        let profiles = self.profiles.as_ref().map_err(fault)?;
        let unknown = || {
            let known: Vec<&str> = profiles.keys().map(String::as_str).collect();
            ProfileRefusal::Unknown {
                name: name.to_owned(),
                known: match known.is_empty() {
                    true => "the configuration has none; add it to `profiles`".to_owned(),
                    false => format!("the configuration has {}", known.join(", ")),
                },
            }
        };
        profiles
            .get(name)
            .ok_or_else(unknown)?
            .as_ref()
            .map_err(|faulty| fault(&faulty.fault))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::{Environment, Verdict};
    use crate::tool::{Hints, QualifiedName, ToolName};

    const SERVERS: &str = r#""mcpServers":{"git":{"command":"x"},"notes":{"command":"x"},"My Notes":{"command":"x"}}"#;

    fn config(rest: &str) -> Config {
        let text = format!("{{{SERVERS},{rest}}}");
        let path = std::path::Path::new("/config.json");
        Config::parse(&text, path, &Environment::default()).expect("the text is a configuration")
    }

    fn verdict(config: &Config, tool: &str) -> Verdict {
        let (server, name) = tool.split_once("__").expect("the name has a server");
        let server = ServerName::new(server).expect("a server's name");
        let name = QualifiedName {
            server,
            tool: ToolName::new(name).expect("a tool name"),
        };
        let decided = config.decide(&name, Hints::default(), None).0;
        assert_eq!(decided, config.judge(&name, Hints::default()), "{tool}");
        decided
    }

    fn named(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn servers(config: &Config) -> Vec<&str> {
        config.servers.keys().map(ServerName::as_str).collect()
    }

    #[test]
    fn a_profile_removes_servers_and_adds_rules() {
        let config =
            config(r#""profiles":{"review":{"servers":["git"],"tools":{"deny":["git__push"]}}}"#);
        let narrowed = config
            .narrowed(&named(&["review"]))
            .expect("the profile is usable");
        assert_eq!(servers(&narrowed), ["git"]);
        assert_eq!(verdict(&narrowed, "git__push"), Verdict::Denied);
        assert_eq!(verdict(&narrowed, "git__log"), Verdict::Allowed);
        assert_eq!(verdict(&config, "git__push"), Verdict::Allowed);
    }

    #[test]
    fn a_profile_never_permits_more_than_the_file() {
        let config = config(
            r#""management":"off","tools":{"deny":["git__push"],"ask":["git__tag"]},
               "profiles":{"wide":{"servers":["*"],"management":"read","tools":{"allow":["*"]}},"off":{"servers":["*"],"management":"off"}}"#,
        );
        let wide = config
            .narrowed(&named(&["wide"]))
            .expect("the profile is usable");
        assert_eq!(wide.management, Management::Off);
        assert_eq!(verdict(&wide, "git__push"), Verdict::Denied);
        assert_eq!(verdict(&wide, "git__tag"), Verdict::Asked);
        assert_eq!(servers(&wide), servers(&config));
    }

    #[test]
    fn several_profiles_leave_what_each_of_them_permits() {
        let config = config(
            r#""profiles":{"a":{"servers":["git","notes"],"management":"off"},"b":{"servers":["notes"],"management":"read","tools":{"deny":["notes__drop"]}},"c":{"servers":["git"]}}"#,
        );
        for names in [["a", "b"], ["b", "a"]] {
            let both = config.narrowed(&named(&names)).expect("both have a server");
            assert_eq!(servers(&both), ["notes"]);
            assert_eq!(both.management, Management::Off);
            assert_eq!(verdict(&both, "notes__drop"), Verdict::Denied);
        }
        let none = config.narrowed(&named(&["b", "c"])).map(|_| ());
        assert!(matches!(none, Err(ProfileRefusal::Empty { .. })));
    }

    #[test]
    fn an_unusable_profile_is_refused_alone() {
        for entry in [
            "{}",
            "[]",
            "7",
            r#""git""#,
            r#"{"servers":[]}"#,
            r#"{"servers":"git"}"#,
            r#"{"servers":[7]}"#,
            r#"{"servers":["other"]}"#,
            r#"{"servers":["git"],"tool":{}}"#,
            r#"{"servers":["git"],"tools":[]}"#,
            r#"{"servers":["git"],"tools":{"deny":["@nothing"]}}"#,
            r#"{"servers":["git"],"surface":"wide"}"#,
            r#"{"servers":["git"],"management":"none"}"#,
            r#"{"servers":["git"],"management":"full"}"#,
            r#"{"servers":["git"],"projects":["relative"]}"#,
        ] {
            let config = config(&format!(
                r#""profiles":{{"x":{entry},"good":{{"servers":["git"]}}}}"#
            ));
            assert!(config.narrowed(&named(&["x"])).is_err(), "{entry}");
            assert!(config.narrowed(&named(&["good"])).is_ok(), "{entry}");
            assert!(!config.warnings.is_empty(), "{entry}");
            assert_eq!(config.servers.len(), 3, "{entry}");
        }
        for all in ["[]", "7", r#""x""#] {
            assert!(
                config(&format!(r#""profiles":{all}"#))
                    .narrowed(&named(&["x"]))
                    .is_err()
            );
        }
    }

    #[test]
    fn a_profile_is_named_by_a_plain_part_of_a_url() {
        for name in [
            "a/b",
            "..",
            "",
            "é",
            "A",
            "-a",
            "a b",
            "a%2fb",
            &"a".repeat(65),
        ] {
            let config = config(&format!(r#""profiles":{{"{name}":{{"servers":["git"]}}}}"#));
            assert!(config.narrowed(&named(&[name])).is_err(), "{name}");
        }
        let config = config(r#""profiles":{"re-view_2":{"servers":["git"]}}"#);
        assert!(config.narrowed(&named(&["re-view_2"])).is_ok());
        let unknown = config
            .narrowed(&named(&["review"]))
            .map(|_| ())
            .expect_err("no such profile");
        assert!(
            unknown
                .to_string()
                .ends_with("the configuration has re-view_2"),
            "{unknown}"
        );
    }

    #[test]
    fn a_server_with_a_changed_name_is_found_by_its_name_in_the_file() {
        let config = config(r#""profiles":{"x":{"servers":["My Notes","gone"]}}"#);
        let narrowed = config.narrowed(&named(&["x"])).expect("one server is left");
        assert_eq!(narrowed.servers.len(), 1);
        assert!(
            narrowed
                .renamed
                .contains_key(narrowed.servers.keys().next().expect("one"))
        );
        let mut warnings = config.warnings.iter();
        assert!(warnings.any(|warning| format!("{warning:?}").contains("gone")));
    }

    #[test]
    fn the_client_and_the_directories_of_a_session_add_profiles() {
        let config = config(
            r#""profiles":{"a":{"servers":["git"]},"here":{"servers":["*"],"projects":["/p"]}},
               "clients":{"Agent":{"profile":"a"},"other":{"profile":7}}"#,
        );
        let of = |named: &[String], client, directories: &[&str]| {
            let directories: Vec<PathBuf> = directories.iter().map(PathBuf::from).collect();
            config.profiles_of(ProfileRequest {
                named,
                client: Some(client),
                directories: &directories,
            })
        };
        assert!(of(&[], "x", &["/q"]).is_empty());
        assert_eq!(of(&named(&["b"]), "agent", &["/p/sub"]), ["b", "a", "here"]);
        assert_eq!(of(&named(&["a"]), "agent", &[]), ["a"]);
        let unreadable = config.narrowed(&of(&[], "other", &[])).map(|_| ());
        assert_eq!(unreadable, Err(ProfileRefusal::Unreadable));
    }

    #[test]
    fn clients_that_cannot_be_read_are_refused_where_there_are_profiles() {
        for (profiles, is_refused) in [(r#"{"a":{"servers":["git"]}}"#, true), ("{}", false)] {
            let config = config(&format!(r#""profiles":{profiles},"clients":7"#));
            let names = config.profiles_of(ProfileRequest::default());
            assert_eq!(config.narrowed(&names).is_err(), is_refused, "{profiles}");
        }
    }

    #[test]
    fn a_narrowed_configuration_mentions_no_other_server() {
        let config = config(
            r#""profiles":{"x":{"servers":["git"]}},"results":{"kept_for":"1h"},"unknown_key_of_notes":1"#,
        );
        let narrowed = config.narrowed(&named(&["x"])).expect("it is usable");
        assert!(!config.warnings.is_empty() && narrowed.warnings.is_empty());
        assert_eq!(narrowed.names, BTreeSet::from(["git".to_owned()]));
        assert!(narrowed.renamed.is_empty());
        assert_eq!(narrowed.results.kept_for, Lifetime::default());
        assert!(config.without_servers().servers.is_empty());
    }
}
