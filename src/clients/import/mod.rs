//! Import of the configuration of another proxy or of mcpzip 0.1.
//!
//! The other program's file is not changed, because that program may still be in use. A key that protects something is carried over or
//! stops the import, so that no protection is lost unnoticed.

mod avelino;
mod mcpproxy;
mod older;
mod runner;
mod server_auth;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Item;
use super::cache::read_source;
use super::model::{Approval, Invocation, Unmovable};
use super::model_key;
use super::plan::{guarded_elsewhere, off_here, ruled};
use super::reading;
use super::servers::{Servers, Twin};
use super::stored::Stored;
use super::withheld::{self, Withheld, becomes_limit};
use super::{
    Choice, Client, ConfigLocation, Edit, Entry, Found, Launch, Node, PlanError, Scope,
    SecretsPlan, Surroundings, Survey, Syntax, Text, Verdict, secrets,
};
use crate::config::{Config, Environment, Trust, env, older_config_file, safe_name};
use crate::secret::{Masker, Secret};
use crate::tool::{SEPARATOR, ServerName};

/// A program whose configuration can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// mcpzip 0.1.
    Older,
    /// avelino/mcp.
    Avelino,
    /// smart-mcp-proxy/mcpproxy-go.
    McpProxy,
    /// The library and proxy mcp-runner.
    McpRunner,
}

/// The part of a configuration to import.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The program.
    pub origin: Origin,
    /// The configuration file of that program.
    pub file: &'a Path,
    /// The servers to import, and the choices about their secrets.
    pub choice: &'a Choice,
}

/// The clients, whose rules hold for what comes over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clients<'a> {
    /// Their files.
    pub survey: &'a Survey,
    /// The command by which they start mcpzip.
    pub launch: &'a Launch,
    /// The environment in which their files are found.
    pub around: &'a Surroundings,
}

/// A planned import.
#[derive(Debug)]
pub(crate) struct Import {
    /// A verdict for each server, as for a client's servers.
    pub items: Vec<Item>,
    /// The changed files: that of secrets, and our configuration.
    pub edits: Vec<Edit>,
    /// The secrets of the servers.
    pub secrets: SecretsPlan,
    /// The protections that cannot be carried over, one sentence each.
    pub blocking: Vec<String>,
    /// Other differences, one sentence each.
    pub notes: Vec<String>,
    /// Hides the secrets.
    pub masker: Masker,
}

/// The content of another program's file, in our keys.
#[derive(Debug, Default)]
struct Draft {
    servers: Vec<DraftServer>,
    settings: Vec<Setting>,
    blocking: Vec<String>,
    notes: Vec<String>,
    secrets: Vec<Secret<String>>,
}

/// A server of such a file.
#[derive(Debug)]
struct DraftServer {
    name: String,
    /// Our entry, or the reason why the server stays.
    entry: Result<Entry, Unmovable>,
    /// Whether references `${keyring:NAME}` are carried over, which are texts in the files of clients.
    has_keyring: bool,
    /// Members of our entry that a client's entry does not have, rules among them.
    more: Vec<(&'static str, Node)>,
    /// The protections of this server that cannot be carried over.
    blocking: Vec<String>,
    /// The keys without a counterpart.
    left_behind: Vec<String>,
    /// Differences after the import.
    notes: Vec<String>,
    /// Those of the notes that say why it comes over disabled.
    why_off: Vec<String>,
}

/// A setting of mcpzip.
#[derive(Debug)]
struct Setting {
    path: Vec<&'static str>,
    value: Node,
    /// For a protection: whether a different value in our file protects as well. `None` for other settings.
    protects: Option<fn(&Node) -> bool>,
}

/// `node` with each of its texts changed.
fn with_texts(node: &Node, change: &mut dyn FnMut(&str) -> String) -> Node {
    match node {
        Node::Text(text) => Node::Text(change(text)),
        Node::List(items) => {
            Node::List(items.iter().map(|item| with_texts(item, change)).collect())
        }
        Node::Map(members) => {
            let members = members.iter();
            Node::map(members.map(|(key, value)| (key.clone(), with_texts(value, change))))
        }
        other => other.clone(),
    }
}

impl Origin {
    /// Its name in a sentence.
    #[must_use]
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Older => "mcpzip 0.1",
            Self::Avelino => "avelino/mcp",
            Self::McpProxy => "mcpproxy-go",
            Self::McpRunner => "mcp-runner",
        }
    }

    /// The usual path of its configuration, if it has one.
    #[must_use]
    pub(crate) fn usual_file(self, environment: &Environment) -> Option<PathBuf> {
        let named = |variable: env::Variable| {
            let value = environment.get(variable.name)?;
            (!value.is_empty()).then(|| PathBuf::from(value))
        };
        match self {
            Self::Older => older_config_file(environment),
            Self::Avelino => named(env::MCP_CONFIG_PATH)
                .or_else(|| Some(named(env::MCP_CONFIG_DIR)?.join("servers.json")))
                .or_else(|| Some(environment.home()?.join(".config/mcp/servers.json"))),
            Self::McpProxy => Some(environment.home()?.join(".mcpproxy/mcp_config.json")),
            Self::McpRunner => None,
        }
    }

    fn draft(self, wanted: &Wanted<'_>, node: &Node, home: Option<&Path>) -> Draft {
        let file = wanted.file;
        let mut draft = match self {
            Self::Older => older::draft(file, node),
            Self::Avelino => avelino::draft(node),
            Self::McpProxy => mcpproxy::draft((file, &wanted.choice.only), node, home),
            Self::McpRunner => runner::draft(node),
        };
        let has_servers = !draft.servers.is_empty();
        let is_other = match node.get("mcpServers") {
            Some(Node::Map(members)) => !has_servers && !members.is_empty(),
            // Only mcpproxy-go has a list; what the rest of such a file protects is not known to the others.
            Some(Node::List(items)) => self != Self::McpProxy && !items.is_empty(),
            Some(_) => true,
            // avelino/mcp has an audit log, which is a setting, even if its file says nothing.
            None => self == Self::Avelino || draft.settings.is_empty(),
        };
        if is_other && draft.blocking.is_empty() {
            draft.blocking.push(format!(
                "the file has no server in the form of {}: is it that of another program?",
                self.title()
            ));
        }
        for server in &mut draft.servers {
            if let Some(written) = node.at(&["mcpServers", &server.name]) {
                server.heed_others(written, self);
            }
        }
        draft
    }
}

/// Keys by which other programs restrict the tools of a server, or isolate it.
const RESTRICTING: [&str; 20] = [
    "allow",
    "allowed_tools",
    "allowedTools",
    "blocked_tools",
    "blockedTools",
    "denied_tools",
    "deniedTools",
    "deny",
    "disabled_tools",
    "disabledTools",
    "enabled_tools",
    "enabledTools",
    "excludeTools",
    "includeTools",
    "isolation",
    "permissions",
    "readOnly",
    "read_only",
    "rules",
    "sandbox",
];

impl Import {
    /// Plans to import what is `wanted` into the configuration at `config_file`. The rules of `clients` about equal servers, and those of the
    /// clients that run mcpzip about servers that they do not have, hold for what comes over, because they can call it here.
    ///
    /// # Errors
    /// When one of the files cannot be read, or ours cannot be edited.
    pub(crate) fn new(
        wanted: Wanted<'_>,
        config_file: &Path,
        environment: &Environment,
        clients: Option<Clients<'_>>,
    ) -> Result<Self, PlanError> {
        let read = |path: &Path| {
            let unreadable = PlanError::unreadable(path);
            read_source(path, Syntax::Json).map_err(unreadable)
        };
        let (from, source) = (read(wanted.file)?, read(config_file)?);
        let node = from.text.node();
        let Draft {
            servers: drafted,
            settings,
            mut blocking,
            mut notes,
            mut secrets,
        } = wanted
            .origin
            .draft(&wanted, node, environment.home().as_deref());
        secrets.extend(secrets::of(node));
        let mut text = source.text.clone();
        let stored = Stored::of(config_file, environment)?;
        let history = wanted.choice.history.clone();
        notes.extend(history.warning());
        let servers = Servers::of(&text).with_secrets(stored);
        let mut servers = servers.with_history(history);
        let Choice { only, .. } = wanted.choice;
        let is_wanted = |server: &DraftServer| only.is_empty() || only.contains(&server.name);
        let (mut items, mut twins, mut placed) = (Vec::new(), Vec::new(), Vec::new());
        let drafted: Vec<DraftServer> = drafted.into_iter().filter(is_wanted).collect();
        let all = drafted.iter().map(|server| server.as_found(wanted.file));
        let all: Vec<Found> = all.collect();
        let elsewhere = clients.map(|clients| {
            let Clients {
                survey,
                launch,
                around,
            } = clients;
            let ours = (&servers, config_file);
            Withheld::of(survey, &BTreeSet::new(), ours, &all, launch, around)
        });
        for server in drafted {
            secrets.extend(server.secrets());
            let found = server.as_found(wanted.file);
            let item = server.into_item(wanted, &mut servers, &mut twins, &mut blocking);
            if let Verdict::Moves { name, .. } | Verdict::Conflicts { name } = &item.verdict {
                placed.push((found, name.clone()));
            }
            items.push(item);
        }
        let placed = placed.iter().map(|(found, name)| (found, name.clone()));
        let placed: Vec<_> = placed.collect();
        let (mut of_clients, mut limits) = (Vec::new(), Vec::new());
        if let (Some(Clients { survey, .. }), Some(elsewhere)) = (clients, &elsewhere) {
            let guarded = placed.iter().filter_map(|(found, _)| {
                let mut rules = Vec::new();
                let why = guarded_elsewhere(found, survey, wanted.choice, &servers, &mut rules)
                    .or_else(|| elsewhere.reason(found, &[]))?;
                let parts = [why.text].into_iter().chain(why.remedies);
                let why = parts.collect::<Vec<_>>().join("; ");
                Some(format!("`{}`: {why}", found.name))
            });
            blocking.extend(guarded);
            let rules = elsewhere.rules(&placed).into_iter();
            let (carried, given_up): (Vec<_>, Vec<_>) =
                rules.partition(|(_, rule)| becomes_limit(rule));
            limits = carried;
            notes.extend(withheld::given_up(&given_up));
            let unread = survey.unreadable.iter().map(|(path, problem)| {
                format!(
                    "rules in {} are not known, as it is not read: {problem}",
                    path.display()
                )
            });
            notes.extend(unread);
            of_clients = ruled(survey, &placed);
        }
        let shared = servers.share_rules(&of_clients, &placed, &limits);
        notes.extend(shared.limits());
        notes.extend(shared.notes);
        let is_extracting = wanted.choice.extracts_secrets;
        let renamed = items.iter().filter_map(|item| match &item.verdict {
            Verdict::Moves { name, .. } | Verdict::Conflicts { name } if *name != item.server => {
                Some(format!(
                    "`{0}`: it gets another name here (`{name}`), and rules of the file name servers; rename or remove mcpzip's `{0}` first",
                    item.server
                ))
            }
            _ => None,
        });
        if settings.iter().any(names_servers) {
            blocking.extend(renamed);
        }
        let had_key = !model_key::literals(text.node()).is_empty();
        let mut of_servers = SecretsPlan::of(twins, &mut servers, is_extracting);
        let failed = PlanError::edit(config_file);
        let mut paths = servers.write(&mut text).map_err(failed)?;
        for mut setting in settings {
            if wanted.origin == Origin::McpProxy && setting.path == ["profiles"] {
                setting.value = mcpproxy::usable(&setting.value, servers.all(), &mut notes);
                if setting.value.members().is_empty() {
                    continue;
                }
            }
            let path: Vec<String> = setting.path.iter().map(|key| (*key).to_owned()).collect();
            if text.node().at(&path).is_none() {
                text.set(&path, &setting.value).map_err(failed)?;
                paths.push(path);
            } else if let Some(ours) = text.node().at(&path).filter(|ours| **ours != setting.value)
            {
                let key = path.join(".");
                match setting.protects {
                    Some(is_enough) if !is_enough(ours) => {
                        blocking.push(format!("`{key}` has a value here that allows more"));
                    }
                    _ => notes.push(format!("`{key}` stays as it is here")),
                }
            }
        }
        // A key that was here before stays as it is.
        if !had_key && is_extracting {
            model_key::store(&mut text, &mut servers).map_err(failed)?;
            of_servers = of_servers.with_stored(&servers);
        } else if !had_key {
            of_servers.literals.extend(model_key::literals(text.node()));
        }
        secrets.extend(servers.stored().secrets());
        // A secret is stored before an entry refers to it.
        let mut edits = Vec::from_iter(servers.edit_of_secrets(config_file)?);
        let has_literals = !of_servers.literals.is_empty();
        let edit = Edit::of_config(config_file, &source, &text, paths, has_literals, &mut notes);
        edits.extend(edit);
        let config = |text: &Text| Config::parse(&text.text(), config_file, environment).ok();
        if let (Some(before), Some(after)) = (config(&source.text), config(&text)) {
            notes.extend(stricter(&before, &after));
        }
        Ok(Self {
            items,
            edits,
            secrets: of_servers,
            blocking,
            notes,
            masker: Masker::new(secrets),
        })
    }
}

/// Whether rules are about servers by their names, so that they would miss one that has another name here.
fn names_servers(setting: &Setting) -> bool {
    let is_of_all = |pattern: &Node| {
        let text = pattern.as_text();
        text.is_some_and(|text| text.starts_with("*__") || !text.contains(SEPARATOR))
    };
    match setting.path[0] {
        "tools" => {
            !matches!(&setting.value, Node::List(patterns) if patterns.iter().all(is_of_all))
        }
        "roles" | "profiles" => true,
        _ => false,
    }
}

/// Names the servers of `before` that get a stricter `trust`, as they run the program of one that comes over.
fn stricter(before: &Config, after: &Config) -> Vec<String> {
    let note = |(name, by): (&ServerName, &ServerName)| {
        let (earlier, now) = (
            before.servers.get(name)?.trust,
            after.servers.get(name)?.trust,
        );
        let wait = match now {
            Trust::Pin => "changed and new tools of it wait for",
            _ => "nothing of it can be used before",
        };
        (now > earlier).then(|| {
            format!(
                "`{name}` of mcpzip is the same program or URL as `{by}` and gets its `\"trust\": \"{}\"`: {wait} `mcpzip approve {name}`",
                now.text()
            )
        })
    };
    after.raised_trust.iter().filter_map(note).collect()
}

impl Draft {
    fn set(&mut self, path: &[&'static str], value: Node) {
        self.settings.push(Setting {
            path: path.to_vec(),
            value,
            protects: None,
        });
    }

    /// Has clients over HTTP show a token, as `key` does. The one in the file may be short, so it does not count here.
    fn want_tokens(&mut self, key: &str) {
        self.settings.push(Setting {
            path: vec!["http", "auth"],
            value: Node::map([("tokens", Node::Flag(true))]),
            protects: Some(is_on),
        });
        self.notes.push(format!(
            "{key} asks clients for a token, and so does `mcpzip serve --http` (`http.auth`): `mcpzip token create NAME` makes one for each; \
             the one in the file does not count here"
        ));
    }

    /// Notes the keys of `node` that are not among `known`.
    fn note_rest(&mut self, node: &Node, known: &[&str]) {
        let members = node.members().into_iter();
        let rest = members.filter(|(key, value)| !known.contains(key) && **value != Node::Null);
        let rest: Vec<String> = rest.map(|(key, _)| format!("`{key}`")).collect();
        if !rest.is_empty() {
            let fate = match rest.len() {
                1 => "is not known here and stays behind",
                _ => "are not known here and stay behind",
            };
            self.notes.push(format!("{} {fate}", rest.join(", ")));
        }
    }
}

impl DraftServer {
    /// Reads the `known` keys of an entry; references to variables are written as in `client`.
    fn read(name: &str, written: &Node, known: &[&str], client: Client) -> Self {
        let members = written.members().into_iter();
        let read = match written {
            Node::Map(_) => Node::map(
                members
                    .filter(|(key, _)| known.contains(key))
                    .map(|(key, value)| (key, value.clone())),
            ),
            other => other.clone(),
        };
        let left = written.members().into_iter().map(|(key, _)| key.to_owned());
        Self {
            name: name.to_owned(),
            entry: reading::read(client, &read, None),
            has_keyring: false,
            more: Vec::new(),
            blocking: Vec::new(),
            left_behind: left.filter(|key| !known.contains(&key.as_str())).collect(),
            notes: Vec::new(),
            why_off: Vec::new(),
        }
    }

    /// Adds the counterpart of `key` to our entry.
    fn carry(&mut self, key: &str, ours: &'static str, value: Node) {
        self.left_behind.retain(|left| left != key);
        self.more.push((ours, value));
    }

    /// Adds a rule to a list of our entry: `ask` or `deny`.
    fn restrict(&mut self, list: &str, rule: String) {
        let rule = Node::Text(rule);
        let at = self.more.iter_mut().find(|(key, _)| *key == "tools");
        let Some((_, Node::Map(tools))) = at else {
            let tools = Node::map([(list, Node::List(vec![rule]))]);
            return self.more.push(("tools", tools));
        };
        match tools.iter_mut().find(|(key, _)| key == list) {
            Some((_, Node::List(rules))) => rules.push(rule),
            _ => tools.push((list.to_owned(), Node::List(vec![rule]))),
        }
    }

    /// Imports the server disabled, with the reason as a note.
    fn switch_off(&mut self, key: &str, why: impl Into<String>) {
        self.left_behind.retain(|left| left != key);
        let why = why.into();
        self.notes.push(why.clone());
        self.why_off.push(why);
        if let Ok(entry) = &mut self.entry {
            entry.is_disabled = true;
        }
    }

    /// Heeds keys that the program does not have and others do: the file may be that of another program, and what is off or
    /// restricted there must not be on here.
    fn heed_others(&mut self, written: &Node, origin: Origin) {
        let title = origin.title();
        for key in self.left_behind.clone() {
            let value = written.get(&key).unwrap_or(&Node::Null);
            let is_off = match key.as_str() {
                "disabled" | "quarantined" => !matches!(value, Node::Flag(false) | Node::Null),
                "enabled" | "isActive" | "active" => {
                    !matches!(value, Node::Flag(true) | Node::Null)
                }
                _ => false,
            };
            if is_off {
                let note = format!(
                    "has `{key}`, which {title} does not know, so it comes over disabled; `mcpzip enable` lets clients use it"
                );
                self.switch_off(&key, note);
            }
            let is_empty = match value {
                Node::List(items) => items.is_empty(),
                other => !is_on(other),
            };
            if RESTRICTING.contains(&key.as_str()) && !is_empty {
                self.blocking.push(format!(
                    "`{key}` restricts it, and {title} has no such key: is the file that of another program?"
                ));
            }
        }
    }

    fn secrets(&self) -> Vec<Secret<String>> {
        self.entry.as_ref().map(Entry::secrets).unwrap_or_default()
    }

    /// The server as one of the file at `path`, so that it can be compared with those of clients.
    fn as_found(&self, path: &Path) -> Found {
        Found {
            location: ConfigLocation {
                client: Client::ClaudeDesktop,
                scope: Scope::User,
                path: path.to_owned(),
                syntax: Syntax::Json,
                container: Vec::new(),
                project: None,
            },
            name: self.name.clone(),
            entry: self.entry.clone(),
            written: match &self.entry {
                Ok(entry) => entry.target.invocation(),
                Err(_) => Invocation::Unknown,
            },
            form: self.entry.as_ref().ok().map(Entry::to_node),
            tool_rules: Vec::new(),
            switch: None,
            origins: Vec::new(),
            is_switched_off: self.entry.as_ref().is_ok_and(|entry| entry.is_disabled),
            is_off: self.entry.as_ref().is_ok_and(|entry| entry.is_disabled),
            is_mcpzip: false,
            approval: Approval::Given,
        }
    }

    fn into_item(
        mut self,
        wanted: Wanted<'_>,
        servers: &mut Servers,
        twins: &mut Vec<Twin>,
        blocking: &mut Vec<String>,
    ) -> Item {
        let was_off = self.entry.as_ref().is_ok_and(|entry| entry.is_disabled);
        let title = wanted.origin.title();
        let verdict = match self.entry {
            Err(reason) => Verdict::Stays(reason.to_string()),
            Ok(entry) if entry.is_mcpzip() => Verdict::Stays("is mcpzip itself".to_owned()),
            Ok(entry) => {
                let name = &self.name;
                blocking.extend(self.blocking.iter().map(|why| format!("`{name}`: {why}")));
                let mut node = with(entry.to_node(), self.more);
                if self.has_keyring {
                    node = with_texts(&node, &mut |text| text.replace("$${keyring:", "${keyring:"));
                }
                let is_merged = wanted.choice.merged.contains(name);
                let off = servers.off_equal(&node).filter(|off| {
                    let is_other = **off != safe_name(name);
                    is_other && !was_off && !wanted.choice.drop_rules
                });
                blocking.extend(off.map(|off| format!("`{name}`: {}", off_here(off, ""))));
                let unlike = servers.same_as(name, &node, is_merged).and_then(|known| {
                    ["tools", "trust"]
                        .into_iter()
                        .find(|key| lacks(known, &node, key))
                });
                if let Some(key) = unlike {
                    blocking.push(format!(
                        "`{name}`: mcpzip has this server without the `{key}` that it would get; `mcpzip remove` takes it out first"
                    ));
                }
                servers.add((name, title), node, &mut self.notes, (is_merged, twins))
            }
        };
        let ours = match &verdict {
            Verdict::Moves { name, .. } | Verdict::Conflicts { name } => name,
            Verdict::Stays(_) => &self.name,
        };
        let is_off = match &verdict {
            Verdict::Stays(_) => was_off,
            _ => servers.is_off(ours),
        };
        // An equal server that was here before stays as it is.
        match (was_off, is_off) {
            (true, false) => {
                self.notes.retain(|note| !self.why_off.contains(note));
                self.notes.push(format!(
                    "is switched off in {title}, and on here: mcpzip has this server already, which stays on; `mcpzip disable` keeps clients from it"
                ));
            }
            (false, true) => {
                let note = format!(
                    "is on in {title}, and switched off here; `mcpzip enable` lets clients use it"
                );
                self.notes.push(note);
            }
            _ => {}
        }
        // Notes are written before the name here is known.
        let notes = self.notes.iter().map(|note| {
            ["enable", "disable", "approve"]
                .iter()
                .fold(note.clone(), |note, command| {
                    note.replace(
                        &format!("`mcpzip {command}`"),
                        &format!("`mcpzip {command} {ours}`"),
                    )
                })
        });
        Item {
            client: Client::ClaudeDesktop,
            scope: Scope::User,
            path: wanted.file.to_owned(),
            notes: notes.collect(),
            server: self.name,
            verdict,
            left_behind: self.left_behind,
            project: None,
            is_off_there: was_off,
            is_off,
        }
    }
}

/// The entry with more members.
fn with(mut entry: Node, more: Vec<(&'static str, Node)>) -> Node {
    if let Node::Map(members) = &mut entry {
        members.extend(more.into_iter().map(|(key, value)| (key.to_owned(), value)));
    }
    entry
}

/// Whether `known` does not have the value of `key` in `wanted`.
fn lacks(known: &Node, wanted: &Node, key: &str) -> bool {
    wanted.get(key).is_some() && known.get(key) != wanted.get(key)
}

/// Whether a value is not off: not false, null, or an object with `"enabled": false`.
fn is_on(node: &Node) -> bool {
    !matches!(node, Node::Null | Node::Flag(false))
        && node.get("enabled").and_then(Node::as_flag) != Some(false)
}

/// Patterns for a server's own tools. One that contains `__` gets a prefix, because it would be compared with `server__tool`.
fn patterns(node: &Node) -> Vec<Node> {
    let texts = node.items().iter().filter_map(Node::as_text);
    let own = |pattern: &str| match pattern.contains("__") {
        true => format!("*__{pattern}"),
        false => pattern.to_owned(),
    };
    texts.map(|pattern| Node::Text(own(pattern))).collect()
}
