//! `serverAuth` of avelino/mcp: who may call which tools over HTTP.
//!
//! The ways to show an identity become `http.auth`. Tokens are not taken over, because those of a file may be short: each person gets a
//! new one. Rules and roles become `tools`, `roles` and `profiles` if those permit the same or less; all else stops the import.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Node;
use super::{Draft, Setting, is_on};

/// A server of the file.
pub(super) struct Known<'a> {
    pub(super) name: &'a str,
    /// Its tools are subcommands, whose names begin with this there and not here.
    pub(super) program: Option<String>,
    /// The tools of its `tool_acl`, which counts before what they declare and what their texts suggest.
    pub(super) reading: Vec<&'a str>,
    pub(super) writing: Vec<&'a str>,
}

/// The roles and rules in our form.
#[derive(Default)]
struct Rights {
    roles: BTreeMap<String, Role>,
    profiles: Vec<(String, Node)>,
    allow: Vec<String>,
    deny: Vec<String>,
    /// Denials in the entries of servers: those by class cannot name a server.
    deny_at: Vec<(String, String)>,
    /// Whether something depends on whether tools read or write.
    is_by_class: bool,
    /// Whether a denial is about more tools here than there.
    denies_more: bool,
}

#[derive(Default)]
struct Role {
    users: BTreeSet<String>,
    profiles: BTreeSet<String>,
}

/// Why something cannot be carried over.
type Refusal = String;

/// Reads `serverAuth`; `servers` are those of the file.
pub(super) fn server_auth(auth: &Node, servers: &[Known<'_>], draft: &mut Draft) {
    let known = [
        "providers",
        "provider",
        "acl",
        "bearer",
        "forwarded",
        "oauthAs",
    ];
    for (key, _) in auth.members() {
        if !known.contains(&key) {
            let text = format!("`serverAuth.{key}` is not known here");
            draft.blocking.push(text);
        }
    }
    let mut providers: Vec<&str> = auth
        .get("providers")
        .map(Node::items)
        .unwrap_or_default()
        .iter()
        .filter_map(Node::as_text)
        .collect();
    // Earlier releases had one provider.
    providers.extend(auth.get("provider").and_then(Node::as_text));
    providers.retain(|provider| *provider != "none");
    let mut rights = Rights::default();
    let people = match ways(auth, &providers, &mut rights, draft) {
        Ok(people) => people,
        Err(refusal) => return draft.blocking.push(refusal),
    };
    // Also where the rules below stop the import: it can go on without them.
    if !people.is_empty() {
        draft.notes.push(format!(
            "the tokens of `serverAuth` do not count here: `mcpzip token create NAME` makes one for each of {}",
            people.iter().cloned().collect::<Vec<_>>().join(", ")
        ));
    }
    let acl = auth.get("acl").filter(|acl| restricts(acl));
    if let Some(acl) = acl {
        if providers.is_empty() {
            let text = "`serverAuth.acl` has rules, but no provider identifies people: write them as `tools.allow`, `tools.ask` and `tools.deny`";
            return draft.blocking.push(text.to_owned());
        }
        if let Err(refusal) = rights.read(acl, servers) {
            let text = format!(
                "`serverAuth.acl`: {refusal}; write it as rules for `@user:NAME` and `@role:NAME` (`tools.allow`, `tools.deny`)"
            );
            return draft.blocking.push(text);
        }
    }
    // A person without a role gets nothing here if there are roles; there, only if roles are all that permits.
    let is_by_roles = acl
        .is_some_and(|acl| default(acl) == Some("deny") && acl.get("rules").is_none_or(is_empty));
    // Without any role, everyone would get everything here.
    if is_by_roles && rights.roles.values().all(|role| role.profiles.is_empty()) {
        let text = "`serverAuth.acl` permits nothing of these servers to anyone";
        return draft.blocking.push(text.to_owned());
    }
    if !rights.roles.is_empty() && !is_by_roles {
        if providers.contains(&"forwarded") {
            let text = "`serverAuth.acl` names roles and permits the rest to everyone, also to users whom only the proxy in front knows: write `roles`";
            return draft.blocking.push(text.to_owned());
        }
        let everyone = rights.roles.entry("everyone".to_owned()).or_default();
        everyone.users.extend(people.iter().cloned());
        for role in rights.roles.values_mut() {
            role.profiles.insert("*".to_owned());
        }
    }
    if is_by_roles {
        draft.blocking.push(
            "`serverAuth.acl` gives clients over stdio nothing, as they are `anonymous` there. Roles are for clients over HTTP here: over stdio, \
             the user of this machine may call everything, unless `tools` denies it".to_owned(),
        );
    }
    rights.carry(providers.contains(&"forwarded"), draft);
}

/// Carries the ways to show an identity over. Returns the names that have tokens.
fn ways(
    auth: &Node,
    providers: &[&str],
    rights: &mut Rights,
    draft: &mut Draft,
) -> Result<BTreeSet<String>, Refusal> {
    let (mut ours, mut people) = (Vec::new(), BTreeSet::new());
    for provider in providers {
        match *provider {
            "bearer" => {
                ours.push(("tokens", Node::Flag(true)));
                let note = "`serverAuth.bearer` becomes `http.auth.tokens`: over HTTP, each client shows a token";
                draft.notes.push(note.to_owned());
                let tokens = auth.at(&["bearer", "tokens"]).map(Node::members);
                for (_, owner) in tokens.unwrap_or_default() {
                    let subject = owner.as_text().or_else(|| owner.get("subject")?.as_text());
                    let subject = person(subject.unwrap_or_default())
                        .ok_or("`serverAuth.bearer` has a subject that is not a valid name here")?;
                    people.insert(subject.to_owned());
                    for role in owner.get("roles").map(Node::items).unwrap_or_default() {
                        let name = role_name(role.as_text().unwrap_or_default())?;
                        let role = rights.roles.entry(name).or_default();
                        role.users.insert(subject.to_owned());
                    }
                }
            }
            "forwarded" => {
                let header = |key: &str, usual: &str| {
                    let named = auth
                        .at(&["forwarded", key])
                        .and_then(Node::as_text)
                        .unwrap_or(usual);
                    Node::text(named)
                };
                ours.push((
                    "forwarded",
                    Node::map([
                        ("user_header", header("header", "x-forwarded-user")),
                        (
                            "groups_header",
                            header("groups_header", "x-forwarded-groups"),
                        ),
                        ("from", Node::texts(["127.0.0.0/8", "::1"])),
                    ]),
                ));
                draft.notes.push(
                    "the user's name is taken from a proxy on this machine alone; `http.auth.forwarded.from` takes other addresses".to_owned(),
                );
            }
            other => {
                return Err(format!(
                    "`serverAuth` authenticates users with `{other}`: give them identities here by `http.auth`, with an OAuth issuer or by \
                     `mcpzip token create`"
                ));
            }
        }
    }
    if !ours.is_empty() {
        draft.settings.push(Setting {
            path: vec!["http", "auth"],
            value: Node::map(ours),
            protects: Some(is_on),
        });
    }
    Ok(people)
}

impl Rights {
    fn read(&mut self, acl: &Node, servers: &[Known<'_>]) -> Result<(), Refusal> {
        let known = [
            "default",
            "rules",
            "roles",
            "subjects",
            "strictClassification",
        ];
        if let Some((key, _)) = acl
            .members()
            .into_iter()
            .find(|(key, value)| !known.contains(key) && is_on(value))
        {
            return Err(format!("`{key}` is not known here"));
        }
        let is_denied = match default(acl) {
            None | Some("allow") => false,
            Some("deny") => true,
            Some(_) => return Err("`default` has a value that is not known here".to_owned()),
        };
        let has = |key: &str| acl.get(key).is_some_and(|value| !is_empty(value));
        match (has("rules"), has("roles") || has("subjects")) {
            (true, true) => Err("it has `rules` and roles".to_owned()),
            (true, false) => self.rules(acl.get("rules").map(Node::items), servers, is_denied),
            (false, true) if acl.get("strictClassification").is_some_and(is_on) => {
                Err("`strictClassification` has no counterpart".to_owned())
            }
            (false, true) => self.grants(acl, servers, is_denied),
            (false, false) => Err("it denies everything".to_owned()),
        }
    }

    /// Rules of which the first that fits counts. Here a denial always counts, so only those lists are carried over in which none is
    /// excepted from.
    fn rules(
        &mut self,
        rules: Option<&[Node]>,
        servers: &[Known<'_>],
        is_denied: bool,
    ) -> Result<(), Refusal> {
        let mut read = Vec::new();
        for rule in rules.unwrap_or_default() {
            let allows = match rule.get("policy").and_then(Node::as_text) {
                Some("allow") => true,
                Some("deny") => false,
                _ => return Err("a rule has no `policy`".to_owned()),
            };
            read.push((rule, allows));
        }
        // The last rules may say what holds anyway.
        while read.last().is_some_and(|(_, allows)| *allows != is_denied) {
            read.pop();
        }
        let first = read.iter().position(|(_, allows)| *allows);
        let denies_later =
            first.is_some_and(|first| read[first..].iter().any(|(_, allows)| !allows));
        if denies_later || first.is_some() != is_denied {
            return Err("its rules depend on their order, or permit nothing".to_owned());
        }
        for (rule, allows) in read {
            let audience = self.audience(rule)?;
            let tools = rule.get("tools").map(Node::items).unwrap_or_default();
            if tools.is_empty() {
                return Err("a rule has no list of `tools`".to_owned());
            }
            for glob in tools {
                let globs = glob.as_text().and_then(|glob| here(glob, servers));
                let list = match allows {
                    true => &mut self.allow,
                    false => &mut self.deny,
                };
                let globs = globs.ok_or("a pattern of tools has no counterpart")?;
                list.extend(globs.iter().map(|glob| rule_text(&audience, glob)));
            }
        }
        // No rule here would permit everything.
        if is_denied && self.allow.is_empty() {
            return Err("its rules permit no tool of these servers".to_owned());
        }
        Ok(())
    }

    /// The users or roles of a rule, as ours begin with them; empty for everyone.
    fn audience(&mut self, rule: &Node) -> Result<Vec<String>, Refusal> {
        let names = |key: &str| -> Vec<&str> {
            let items = rule.get(key).map(Node::items).unwrap_or_default();
            let names: Vec<&str> = items.iter().filter_map(Node::as_text).collect();
            match names.contains(&"*") {
                true => Vec::new(),
                false => names,
            }
        };
        let (subjects, roles) = (names("subjects"), names("roles"));
        if !subjects.is_empty() && !roles.is_empty() {
            return Err("a rule is for users only if they have a role".to_owned());
        }
        let mut audience = Vec::new();
        for subject in subjects {
            let name =
                person(subject).ok_or("a rule names a subject that is not a valid name here")?;
            audience.push(format!("@user:{name}"));
        }
        for role in roles {
            let name = role_name(role)?;
            audience.push(format!("@role:{name}"));
            self.roles
                .entry(name)
                .or_default()
                .profiles
                .insert("*".to_owned());
        }
        Ok(audience)
    }

    /// Roles, with what each may use. A role is a set of profiles, which add up.
    fn grants(
        &mut self,
        acl: &Node,
        servers: &[Known<'_>],
        is_denied: bool,
    ) -> Result<(), Refusal> {
        let of = |key: &str| acl.get(key).map(Node::members).unwrap_or_default();
        for (role, grants) in of("roles") {
            let name = role_name(role)?;
            self.role(&name, grants.items(), servers, is_denied)?;
        }
        for (subject, entry) in of("subjects") {
            let subject =
                person(subject).ok_or("it names a subject that is not a valid name here")?;
            for role in entry.get("roles").map(Node::items).unwrap_or_default() {
                let name = role_name(role.as_text().unwrap_or_default())?;
                let role = self.roles.entry(name).or_default();
                role.users.insert(subject.to_owned());
            }
            let extra = entry.get("extra").map(Node::items).unwrap_or_default();
            if !extra.is_empty() {
                let name = role_name(&format!("user-{subject}"))?;
                self.role(&name, extra, servers, is_denied)?;
                let role = self.roles.entry(name).or_default();
                role.users.insert(subject.to_owned());
            }
        }
        Ok(())
    }

    fn role(
        &mut self,
        name: &str,
        grants: &[Node],
        known: &[Known<'_>],
        is_denied: bool,
    ) -> Result<(), Refusal> {
        self.roles.entry(name.to_owned()).or_default();
        let mut readable = BTreeSet::new();
        let mut written = BTreeSet::new();
        for grant in grants {
            let Grant {
                servers,
                tools,
                access,
                denies,
            } = Grant::read(grant, known)?;
            if servers.is_empty() {
                continue;
            }
            let everywhere = servers == ["*"];
            let (reading, writing) = overridden(&servers, known);
            if denies {
                self.deny(name, &servers, &tools, (access, reading, writing));
                continue;
            }
            if !is_denied {
                // It permits what is permitted anyway.
                continue;
            }
            match access {
                Access::Write => written.extend(servers.iter().cloned()),
                _ => readable.extend(servers.iter().cloned()),
            }
            self.is_by_class |= access != Access::All;
            // As there, tools that declare nothing are judged by their texts. In a profile a denial counts before a permission, so tools
            // that `tool_acl` puts into the other class are permitted by a profile of their own.
            let (ours, others, other_class) = match access {
                Access::All => (Vec::new(), Vec::new(), ""),
                Access::Read => (reading, writing, "@write?"),
                Access::Write => (writing, reading, "@read?"),
            };
            let rules = match (access, tools.is_empty()) {
                (Access::All, true) => Vec::new(),
                (Access::All, false) => vec![("allow", Node::texts(tools.clone()))],
                (Access::Read, true) => vec![
                    ("allow", Node::texts(["@read?"])),
                    ("deny", Node::texts(others.clone())),
                ],
                (Access::Write, true) => {
                    let denied = others.iter().map(String::as_str).chain([other_class]);
                    vec![("deny", Node::texts(denied))]
                }
                (Access::Read | Access::Write, false) => {
                    let denied = others.iter().map(String::as_str).chain([other_class]);
                    vec![
                        ("allow", Node::texts(tools.clone())),
                        ("deny", Node::texts(denied)),
                    ]
                }
            };
            match rules.is_empty() && everywhere {
                true => {
                    let role = self.roles.entry(name.to_owned()).or_default();
                    role.profiles.insert("*".to_owned());
                }
                false => self.profile(name, &servers, rules),
            }
            // A tool in both lists writes there.
            if !ours.is_empty() && tools.is_empty() {
                let denied = match access {
                    Access::Read => others,
                    _ => Vec::new(),
                };
                let rules = vec![("allow", Node::texts(ours)), ("deny", Node::texts(denied))];
                self.profile(name, &servers, rules);
            }
        }
        // There, the resources of a server are for those who may read.
        match readable.contains("*") || written.is_subset(&readable) {
            true => Ok(()),
            false => Err(format!(
                "the role `{name}` may write and not read, which profiles cannot say about resources"
            )),
        }
    }

    /// Gives a role a profile of these servers with these rules.
    fn profile(&mut self, role: &str, servers: &[String], rules: Vec<(&str, Node)>) {
        let name = format!("{role}-{}", self.profiles.len() + 1);
        let rules: Vec<_> = rules
            .into_iter()
            .filter(|(_, texts)| !texts.items().is_empty())
            .collect();
        let mut members = vec![("servers", Node::texts(servers.iter().cloned()))];
        if !rules.is_empty() {
            members.push(("tools", Node::map(rules)));
        }
        self.profiles.push((name.clone(), Node::map(members)));
        let role = self.roles.entry(role.to_owned()).or_default();
        role.profiles.insert(name);
    }

    /// Denies a role what a grant denies. Rules cannot except from a denial, so tools that it names are denied, be they reading or writing.
    fn deny(
        &mut self,
        role: &str,
        servers: &[String],
        tools: &[String],
        (access, reading, writing): (Access, Vec<String>, Vec<String>),
    ) {
        let audience = [format!("@role:{role}")];
        self.is_by_class |= access != Access::All;
        let (class, listed, others) = match access {
            Access::All => (None, Vec::new(), Vec::new()),
            Access::Read => (Some("@read?"), reading, writing),
            Access::Write => (Some("@write?"), writing, reading),
        };
        self.denies_more |= class.is_some() && !(tools.is_empty() && others.is_empty());
        if let Some(class) = class.filter(|_| tools.is_empty()) {
            let rules = listed.iter().map(|glob| rule_text(&audience, glob));
            self.deny.extend(rules);
            let rule = rule_text(&audience, class);
            match servers {
                [all] if all == "*" => self.deny.push(rule),
                servers => {
                    let at = servers.iter().map(|server| (server.clone(), rule.clone()));
                    self.deny_at.extend(at);
                }
            }
            return;
        }
        let all = ["*".to_owned()];
        let tools = if tools.is_empty() { &all[..] } else { tools };
        for server in servers {
            let own = |tool: &str| match server.as_str() {
                "*" => tool.to_owned(),
                server => format!("{server}__{tool}"),
            };
            let rules = tools.iter().map(|tool| rule_text(&audience, &own(tool)));
            self.deny.extend(rules);
        }
    }

    fn carry(mut self, is_forwarded: bool, draft: &mut Draft) {
        // A role without any profile would be a fault, and gives nothing.
        self.roles.retain(|_, role| !role.profiles.is_empty());
        draft.notes.extend(self.notes());
        let mut draft_notes = Vec::new();
        let mut set = |path: &[&'static str], value: Node| {
            draft.settings.push(Setting {
                path: path.to_vec(),
                value,
                // Other rules of the user do not make up for these.
                protects: Some(|_| false),
            });
        };
        if !self.profiles.is_empty() {
            set(&["profiles"], Node::map(self.profiles));
        }
        let roles = self.roles.into_iter().map(|(name, role)| {
            let mut members = vec![("profiles", Node::texts(role.profiles))];
            if !role.users.is_empty() {
                members.push(("users", Node::texts(role.users)));
            }
            if is_forwarded {
                members.push(("groups", Node::texts([name.clone()])));
            }
            (name, Node::map(members))
        });
        let roles: Vec<_> = roles.collect();
        if !roles.is_empty() {
            set(&["roles"], Node::map(roles));
        }
        let is_by_name = |rule: &String| rule.starts_with("@user:") || rule.starts_with("@role:");
        if !self.allow.is_empty() {
            let note = match self.allow.iter().all(is_by_name) {
                true => {
                    "every rule in `tools.allow` names users or roles, which a client over stdio does not have: there, nothing may be \
                         called. A rule for `@local` permits tools to the user of this machine"
                }
                false => {
                    "`tools.allow` also holds for clients over stdio and for commands such as `mcpzip call`: there, only the tools of its \
                          rules without a user or role may be called. The rule `@local *` permits all tools to the user of this machine"
                }
            };
            draft_notes.push(note.to_owned());
        }
        for (key, rules) in [("allow", self.allow), ("deny", self.deny)] {
            if !rules.is_empty() {
                set(&["tools", key], Node::texts(rules));
            }
        }
        for (server, rule) in self.deny_at {
            if let Some(drafted) = draft.servers.iter_mut().find(|one| one.name == server) {
                drafted.restrict("deny", rule);
            }
        }
        if self.is_by_class {
            let note = "whether a tool that declares nothing reads or writes is judged by its texts here as there, but not by the same words: \
                        `mcpzip rules check TOOL --role NAME` says what holds";
            draft_notes.push(note.to_owned());
        }
        if self.denies_more {
            let note = "a grant of `serverAuth.acl` denies tools by whether they read or write: those that it names, and those whose class `tool_acl` \
                        changes, are denied here in either case";
            draft_notes.push(note.to_owned());
        }
        draft.notes.extend(draft_notes);
    }
}

impl Rights {
    /// A note about each rule and role that is carried over.
    fn notes(&self) -> Vec<String> {
        let at = self.deny_at.iter().map(|(server, rule)| {
            format!("a grant of `serverAuth.acl` becomes `{rule}` in `tools.deny` of `{server}`")
        });
        let rules = [("allow", &self.allow), ("deny", &self.deny)];
        let rules = rules.into_iter().flat_map(|(key, rules)| {
            let note =
                move |rule| format!("a rule of `serverAuth.acl` becomes `{rule}` in `tools.{key}`");
            rules.iter().map(note)
        });
        let roles = self.roles.iter().map(|(name, role)| {
            let listed = |names: &BTreeSet<String>| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                names.join("`, `")
            };
            let users = match role.users.is_empty() {
                true => String::new(),
                false => format!(" and the users `{}`", listed(&role.users)),
            };
            let profiles = listed(&role.profiles);
            format!(
                "the role `{name}` of `serverAuth` becomes `roles.{name}` with the profiles `{profiles}`{users}"
            )
        });
        let profiles = self
            .profiles
            .iter()
            .map(|(name, _)| format!("a grant of `serverAuth.acl` becomes the profile `{name}`"));
        rules.chain(at).chain(roles).chain(profiles).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    All,
}

/// One right of a role.
struct Grant {
    /// Names of the file, or `*`. Empty if it is about no server of the file.
    servers: Vec<String>,
    /// Patterns of tools' own names; empty for all.
    tools: Vec<String>,
    access: Access,
    denies: bool,
}

impl Grant {
    fn read(grant: &Node, known: &[Known<'_>]) -> Result<Self, Refusal> {
        let keys = ["server", "access", "tools", "deny"];
        if let Some((key, _)) = grant
            .members()
            .into_iter()
            .find(|(key, value)| !keys.contains(key) && !is_empty(value))
        {
            return Err(format!("`{key}` of a grant has no counterpart"));
        }
        let named: Vec<&str> = match grant.get("server") {
            Some(Node::Text(one)) => vec![one],
            Some(list) => {
                let names = list.items().iter().map(Node::as_text);
                let names: Option<Vec<&str>> = names.collect();
                names
                    .filter(|names| !names.is_empty())
                    .ok_or("the `server` of a grant is neither a name nor a list of names")?
            }
            None => return Err("a grant names no server".to_owned()),
        };
        let mut servers = Vec::new();
        for name in named {
            match name {
                "*" => servers = vec!["*".to_owned()],
                _ if name.contains('*') => {
                    return Err(format!("`{name}` is a pattern of servers"));
                }
                _ if known.iter().any(|one| one.name == name) && servers != ["*"] => {
                    servers.push(name.to_owned());
                }
                _ => {}
            }
        }
        let mut tools = Vec::new();
        let listed = grant.get("tools");
        if listed.is_some_and(|list| !matches!(list, Node::List(_) | Node::Null)) {
            return Err("the `tools` of a grant are no list".to_owned());
        }
        for tool in listed.map(Node::items).unwrap_or_default() {
            let tool = tool
                .as_text()
                .filter(|tool| is_glob(tool) && !tool.contains("__"));
            let tool = tool.ok_or("a pattern of tools has no counterpart")?;
            tools.push(own_name(tool, &servers, known)?);
        }
        let access = match grant.get("access").and_then(Node::as_text) {
            Some("read") => Access::Read,
            Some("write") => Access::Write,
            Some("*") => Access::All,
            _ => return Err("a grant has no `access`".to_owned()),
        };
        Ok(Self {
            servers,
            tools,
            access,
            denies: grant.get("deny").is_some_and(is_on),
        })
    }
}

/// The name of a tool here, for a grant about these servers.
fn own_name(tool: &str, servers: &[String], known: &[Known<'_>]) -> Result<String, Refusal> {
    let is_meant = |one: &&Known<'_>| servers.iter().any(|name| name == "*" || name == one.name);
    let Some(program) = known
        .iter()
        .filter(is_meant)
        .find_map(|one| one.program.as_deref())
    else {
        return Ok(tool.to_owned());
    };
    let rest = tool.strip_prefix(program).filter(|rest| !rest.is_empty());
    match (rest, servers) {
        _ if tool == "*" => Ok(tool.to_owned()),
        (Some(rest), [one]) if one != "*" => Ok(rest.to_owned()),
        _ => Err(format!(
            "tools of a command line are named without `{program}` here, so a grant that names tools has to be about that server alone"
        )),
    }
}

/// The patterns of `tool_acl` of these servers, for tools that read and those that write, with the server's name in front.
fn overridden(servers: &[String], known: &[Known<'_>]) -> (Vec<String>, Vec<String>) {
    let is_meant = |one: &&Known<'_>| servers.iter().any(|name| name == "*" || name == one.name);
    let qualified = |one: &Known<'_>, globs: &[&str]| -> Vec<String> {
        let program = one.program.as_deref().unwrap_or_default();
        // A pattern that does not begin with the program's name stops the import elsewhere.
        let own = |glob: &&str| Some(format!("{}__{}", one.name, glob.strip_prefix(program)?));
        globs.iter().filter_map(own).collect()
    };
    let meant = || known.iter().filter(is_meant);
    (
        meant()
            .flat_map(|one| qualified(one, &one.reading))
            .collect(),
        meant()
            .flat_map(|one| qualified(one, &one.writing))
            .collect(),
    )
}

fn default(acl: &Node) -> Option<&str> {
    acl.get("default").and_then(Node::as_text)
}

fn is_empty(value: &Node) -> bool {
    match value {
        Node::List(items) => items.is_empty(),
        Node::Map(members) => members.is_empty(),
        value => !is_on(value),
    }
}

/// Whether rules say more than that everyone may call everything.
fn restricts(acl: &Node) -> bool {
    let is_open = |(key, value): &(&str, &Node)| match *key {
        "default" => value.as_text() == Some("allow"),
        _ => is_empty(value),
    };
    !matches!(acl, Node::Null) && !acl.members().iter().all(is_open)
}

/// A name of a person that our rules can use. Without an identity everyone is `anonymous` there, also over stdio.
fn person(name: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.@+".contains(c);
    let is_name = !name.is_empty() && name != "anonymous" && name.chars().all(is_plain);
    is_name.then_some(name)
}

fn role_name(name: &str) -> Result<String, Refusal> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let is_name = name.len() <= 60
        && !name.starts_with(['-', '_'])
        && !name.is_empty()
        && name.chars().all(is_plain);
    match is_name {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "`{name}` is not a valid name of a role, which has letters `a-z`, digits, `-` and `_`"
        )),
    }
}

/// Whether a pattern means the same here, where `?` is a pattern, too.
fn is_glob(glob: &str) -> bool {
    !glob.is_empty()
        && !glob.starts_with(['@', '!'])
        && !glob.contains(|c: char| c == '?' || c.is_whitespace())
}

/// The patterns here for one of `server__tool`; tools of a command line have other names here.
fn here(glob: &str, servers: &[Known<'_>]) -> Option<Vec<String>> {
    let mut globs = joined(glob)?;
    for server in servers {
        let Some(program) = server.program.as_deref() else {
            continue;
        };
        let of_server = format!("{}__", server.name);
        match glob.strip_prefix(&of_server) {
            Some("*") => {}
            Some(tool) => {
                let own = tool.strip_prefix(program).filter(|own| !own.is_empty())?;
                globs = vec![format!("{of_server}{own}")];
            }
            // A pattern that may be about its tools among others.
            None if glob != "*" && may_begin_with(glob, &of_server) => return None,
            None => {}
        }
    }
    Some(globs)
}

/// Whether a pattern can match a text that begins so.
fn may_begin_with(glob: &str, start: &str) -> bool {
    match glob.split_once('*') {
        Some((fixed, _)) => fixed.starts_with(start) || start.starts_with(fixed),
        None => glob.starts_with(start),
    }
}

/// Patterns for `server__tool` that mean a pattern which is compared with that name as a whole.
fn joined(glob: &str) -> Option<Vec<String>> {
    if !is_glob(glob) {
        return None;
    }
    if glob == "*" || glob.contains("__") {
        return Some(vec![glob.to_owned()]);
    }
    let mut globs = Vec::new();
    for (at, _) in glob.match_indices('*') {
        let (before, after) = (&glob[..at], &glob[at + 1..]);
        globs.push(format!("{before}*__*{after}"));
        // An underscore of the pattern may be one of the two between the names.
        if before.ends_with('_') {
            globs.push(format!("{before}_*{after}"));
        }
        if after.starts_with('_') {
            globs.push(format!("{before}*_{after}"));
        }
    }
    Some(globs)
}

fn rule_text(audience: &[String], glob: &str) -> String {
    let words: Vec<&str> = audience.iter().map(String::as_str).chain([glob]).collect();
    words.join(" ")
}
