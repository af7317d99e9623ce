//! The actions of the window: each is a command of the program.
//!
//! Values of the page never become options: a positional value comes after `--` or may not begin with a dash, and an option has its
//! value in the same word. Values that may be secret go to the command's stdin.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Decision;

/// An action and the form of its command.
pub(super) struct Action {
    pub(super) name: &'static str,
    parameters: &'static [Parameter],
    parts: &'static [Part],
    /// Whether it changes something.
    changes: bool,
    limit: Duration,
    /// Whether the command prints a line of JSON for each result.
    has_lines: bool,
}

struct Parameter {
    name: &'static str,
    kind: Kind,
    is_required: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Flag,
    Json,
    List,
}

/// A part of a command. All except words are about a parameter, and are left out without it.
enum Part {
    Word(&'static str),
    /// The value as a word.
    Value(&'static str),
    /// Each value of a list as a word.
    Values(&'static str),
    /// An option with the value.
    Option(&'static str, &'static str),
    /// An option for each member of an object.
    Pairs(&'static str, &'static str),
    /// A word if the value is true.
    If(&'static str, &'static str),
    /// A word if the value is false or absent.
    Unless(&'static str, &'static str),
    /// `-`, with the text on stdin.
    Text(&'static str),
    /// `-`, with the JSON on stdin. People read the JSON in its place.
    Json(&'static str),
    /// `-`, with the entry of a server on stdin.
    Entry,
}

/// An action with its arguments.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The command as people type it, without secrets.
    pub(super) shown: String,
    pub(super) work: Work,
    pub(super) changes: bool,
    pub(super) limit: Duration,
    pub(super) has_lines: bool,
    /// The server that it is about.
    pub(super) server: Option<String>,
}

/// How an action is carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// A process with these arguments.
    Command {
        arguments: Vec<String>,
        input: Option<String>,
    },
    /// A method of the control interface, because the command asks at a terminal.
    Method(&'static str, Value),
    /// Likewise.
    Decide(Decision),
}

use Kind::{Flag, Json, List, Number, Text};
use Part::{If, Option as Opt, Pairs, Unless, Values, Word};

/// The time limit of most commands.
const SHORT: Duration = Duration::from_secs(2 * 60);

/// The time limit of commands that wait for a person, a download or a tool.
const LONG: Duration = Duration::from_secs(15 * 60);

const fn needed(name: &'static str, kind: Kind) -> Parameter {
    Parameter {
        name,
        kind,
        is_required: true,
    }
}

const fn may(name: &'static str, kind: Kind) -> Parameter {
    Parameter {
        name,
        kind,
        is_required: false,
    }
}

impl Action {
    const fn shows(
        name: &'static str,
        parameters: &'static [Parameter],
        parts: &'static [Part],
    ) -> Self {
        Self {
            name,
            parameters,
            parts,
            changes: false,
            limit: SHORT,
            has_lines: false,
        }
    }

    const fn changes(
        name: &'static str,
        parameters: &'static [Parameter],
        parts: &'static [Part],
    ) -> Self {
        Self {
            changes: true,
            ..Self::shows(name, parameters, parts)
        }
    }

    const fn waiting(self) -> Self {
        Self {
            limit: LONG,
            ..self
        }
    }

    const fn in_lines(self) -> Self {
        Self {
            has_lines: true,
            ..self
        }
    }

    /// The action as the page reads it.
    pub(super) fn shown(&self) -> Value {
        let parameters = self.parameters.iter().map(|parameter| {
            let kind = match parameter.kind {
                Text => "string",
                Number => "number",
                Flag => "boolean",
                Json => "json",
                List => "list",
            };
            json!({ "name": parameter.name, "type": kind, "is_required": parameter.is_required })
        });
        let parameters: Vec<Value> = parameters.collect();
        json!({ "action": self.name, "parameters": parameters, "changes": self.changes })
    }
}

/// All actions.
pub(super) const ACTIONS: &[Action] = &[
    Action::shows("status", &[], &[Word("status")]),
    Action::shows("list", &[], &[Word("list")]),
    Action::shows(
        "tools",
        &[may("server", Text), may("schemas", Flag)],
        &[
            Word("tools"),
            If("--schemas", "schemas"),
            Word("--"),
            Part::Value("server"),
        ],
    ),
    Action::shows(
        "search",
        &[
            needed("query", Text),
            may("limit", Number),
            may("server", Text),
        ],
        &[
            Word("search"),
            Word("--explain"),
            Opt("--limit", "limit"),
            Opt("--server", "server"),
            Word("--"),
            Part::Value("query"),
        ],
    ),
    Action::shows(
        "describe",
        &[needed("name", Text)],
        &[Word("describe"), Word("--"), Part::Value("name")],
    ),
    Action::changes(
        "call",
        &[needed("name", Text), may("arguments", Json)],
        // After `--` come parameters of the tool.
        &[Word("call"), Part::Value("name"), Part::Json("arguments")],
    )
    .waiting(),
    Action::shows(
        "logs",
        &[may("server", Text), may("lines", Number)],
        &[
            Word("logs"),
            Opt("--lines", "lines"),
            Word("--"),
            Part::Value("server"),
        ],
    ),
    Action::changes(
        "enable",
        &[needed("server", Text)],
        &[Word("enable"), Word("--"), Part::Value("server")],
    ),
    Action::changes(
        "disable",
        &[needed("server", Text)],
        &[Word("disable"), Word("--"), Part::Value("server")],
    ),
    Action::changes(
        "remove",
        &[needed("server", Text)],
        &[Word("remove"), Word("--"), Part::Value("server")],
    ),
    Action::changes(
        "add",
        &[
            needed("name", Text),
            may("command", List),
            may("url", Text),
            may("env", Json),
            may("headers", Json),
        ],
        &[Word("add"), Word("--"), Part::Value("name"), Part::Entry],
    )
    .waiting(),
    Action::changes(
        "add_from_registry",
        &[needed("name", Text), may("id", Text), may("set", Json)],
        &[
            Word("add"),
            Unless("--from-registry=", "id"),
            Opt("--from-registry", "id"),
            Pairs("--set", "set"),
            Word("--yes"),
            Word("--"),
            Part::Value("name"),
        ],
    )
    .waiting(),
    Action::shows(
        "registry",
        &[needed("query", Text)],
        &[
            Word("registry"),
            Word("search"),
            Word("--"),
            Part::Value("query"),
        ],
    ),
    Action::changes(
        "login",
        &[needed("server", Text)],
        &[
            Word("login"),
            Word("--no-browser"),
            Word("--"),
            Part::Value("server"),
        ],
    )
    .waiting(),
    Action::changes(
        "logout",
        &[needed("server", Text)],
        &[Word("logout"), Word("--"), Part::Value("server")],
    ),
    Action::changes(
        "update",
        &[may("server", Text), may("dry_run", Flag)],
        &[
            Word("update"),
            If("--dry-run", "dry_run"),
            Unless("--yes", "dry_run"),
            Unless("--all", "server"),
            Word("--"),
            Part::Value("server"),
        ],
    )
    .waiting(),
    Action::shows(
        "differences",
        &[may("server", Text)],
        &[
            Word("approve"),
            Unless("--all", "server"),
            Word("--"),
            Part::Value("server"),
        ],
    ),
    Action::changes(
        "approve",
        &[
            needed("server", Text),
            needed("digest", Text),
            may("tools", List),
        ],
        &[
            Word("approve"),
            Opt("--digest", "digest"),
            Word("--"),
            Part::Value("server"),
            Values("tools"),
        ],
    ),
    Action::changes(
        "reject",
        &[
            needed("server", Text),
            needed("digest", Text),
            may("tools", List),
        ],
        &[
            Word("reject"),
            Opt("--digest", "digest"),
            Word("--"),
            Part::Value("server"),
            Values("tools"),
        ],
    ),
    Action::shows("approvals", &[], &[Word("approvals"), Word("list")]),
    Action::changes(
        "allow",
        &[needed("id", Text)],
        &[
            Word("approvals"),
            Word("allow"),
            Word("--"),
            Part::Value("id"),
        ],
    ),
    Action::changes(
        "deny",
        &[needed("id", Text)],
        &[
            Word("approvals"),
            Word("deny"),
            Word("--"),
            Part::Value("id"),
        ],
    ),
    Action::shows(
        "audit",
        &[
            may("since", Text),
            may("server", Text),
            may("tool", Text),
            may("client", Text),
            may("user", Text),
            may("kind", Text),
            may("denied", Flag),
            may("errors", Flag),
            may("limit", Number),
        ],
        &[
            Word("audit"),
            Opt("--since", "since"),
            Opt("--server", "server"),
            Opt("--tool", "tool"),
            Opt("--client", "client"),
            Opt("--user", "user"),
            Opt("--kind", "kind"),
            If("--denied", "denied"),
            If("--errors", "errors"),
            Opt("--limit", "limit"),
        ],
    )
    .in_lines(),
    Action::shows(
        "gain",
        &[may("since", Text)],
        &[Word("gain"), Opt("--since", "since")],
    ),
    Action::shows(
        "stats",
        &[may("since", Text), may("server", Text)],
        &[
            Word("stats"),
            Opt("--since", "since"),
            Opt("--server", "server"),
        ],
    ),
    Action::shows("clients", &[], &[Word("clients")]),
    Action::changes(
        "connect",
        &[
            needed("client", Text),
            may("dry_run", Flag),
            may("scope", Text),
            may("profile", Text),
        ],
        &[
            Word("connect"),
            If("--dry-run", "dry_run"),
            Opt("--scope", "scope"),
            Opt("--profile", "profile"),
            Word("--"),
            Part::Value("client"),
        ],
    ),
    Action::changes(
        "disconnect",
        &[
            needed("client", Text),
            may("dry_run", Flag),
            may("scope", Text),
        ],
        &[
            Word("disconnect"),
            If("--dry-run", "dry_run"),
            Opt("--scope", "scope"),
            Word("--"),
            Part::Value("client"),
        ],
    ),
    Action::changes(
        "migrate",
        &[may("client", Text), may("dry_run", Flag)],
        &[
            Word("migrate"),
            If("--dry-run", "dry_run"),
            Unless("--yes", "dry_run"),
            Opt("--client", "client"),
        ],
    ),
    Action::changes(
        "undo",
        &[may("run", Text), may("dry_run", Flag)],
        &[
            Word("undo"),
            If("--dry-run", "dry_run"),
            Unless("--yes", "dry_run"),
            Word("--"),
            Part::Value("run"),
        ],
    ),
    Action::shows("undo_list", &[], &[Word("undo"), Word("--list")]),
    Action::shows(
        "doctor",
        &[may("fix", Flag)],
        &[Word("doctor"), If("--fix", "fix")],
    )
    .waiting(),
    Action::shows("config", &[], &[Word("config"), Word("show")]),
    Action::shows(
        "config_check",
        &[needed("text", Text)],
        &[Word("config"), Word("check"), Part::Text("text")],
    ),
    Action::changes(
        "config_write",
        &[needed("text", Text), needed("before", Text)],
        &[
            Word("config"),
            Word("write"),
            Opt("--before", "before"),
            Part::Text("text"),
        ],
    ),
    Action::shows("config_schema", &[], &[Word("config"), Word("schema")]),
    Action::shows("version", &[], &[Word("--version")]),
];

/// Makes the command of an action.
///
/// # Errors
/// When there is no such action, or an argument is missing, unknown or of another kind.
pub(super) fn prepare(
    name: &str,
    arguments: &Map<String, Value>,
    options: &[String],
) -> Result<Prepared, String> {
    let action = ACTIONS.iter().find(|action| action.name == name);
    let action = action.ok_or_else(|| format!("there is no action `{name}`"))?;
    action.check(arguments)?;
    let mut line = Line::default();
    for part in action.parts {
        line.add(part, arguments)?;
    }
    if line.words.last().is_some_and(|word| word == "--") {
        line.words.pop();
        line.shown.pop();
    }
    let text = |name: &str| arguments.get(name).map(shown_value);
    let server = text("server").or_else(|| text("name").filter(|_| name.starts_with("add")));
    // Options of the program come after the names of the command.
    let at = action.parts.iter();
    let at = at.take_while(|part| matches!(part, Word(word) if !word.starts_with('-')));
    let at = at.count();
    let shown = [&line.shown[..at], options, &line.shown[at..]].concat();
    let shown: Vec<String> = shown.iter().map(|word| quoted(word)).collect();
    let is_flagged = |name: &str| arguments.get(name).and_then(Value::as_bool) == Some(true);
    let work = match name {
        "allow" => Work::Method(
            "approvals.allow",
            json!({ "id": text("id").unwrap_or_default() }),
        ),
        "approve" | "reject" => Work::Decide(Decision {
            is_approval: name == "approve",
            server: text("server").unwrap_or_default(),
            digest: text("digest").unwrap_or_default(),
            tools: arguments.get("tools").map(texts).unwrap_or_default(),
        }),
        _ => Work::Command {
            arguments: [
                &line.words[..at],
                options,
                &["--json".to_owned()],
                &line.words[at..],
            ]
            .concat(),
            input: line.input,
        },
    };
    Ok(Prepared {
        shown: format!("mcpzip {}", shown.join(" ")),
        work,
        changes: (action.changes && !is_flagged("dry_run")) || is_flagged("fix"),
        limit: action.limit,
        has_lines: action.has_lines,
        server,
    })
}

impl Action {
    fn check(&self, arguments: &Map<String, Value>) -> Result<(), String> {
        for (name, value) in arguments {
            let mut known = self.parameters.iter();
            let Some(parameter) = known.find(|parameter| parameter.name == name) else {
                return Err(format!("`{}` has no argument `{name}`", self.name));
            };
            let is_legal = match parameter.kind {
                Text => value.is_string(),
                Number => value.is_u64(),
                Flag => value.is_boolean(),
                Json => true,
                List => value
                    .as_array()
                    .is_some_and(|list| list.iter().all(Value::is_string)),
            };
            if !is_legal {
                return Err(format!("`{name}` of `{}` is of another type", self.name));
            }
        }
        let mut needed = self.parameters.iter().filter(|one| one.is_required);
        match needed.find(|one| !arguments.contains_key(one.name)) {
            Some(missing) => Err(format!("`{}` needs `{}`", self.name, missing.name)),
            None => Ok(()),
        }
    }
}

/// A command that is being made: its words, and those that people see.
#[derive(Default)]
struct Line {
    words: Vec<String>,
    shown: Vec<String>,
    input: Option<String>,
}

impl Line {
    fn push(&mut self, word: impl Into<String>) {
        let word = word.into();
        self.shown.push(word.clone());
        self.words.push(word);
    }

    /// Adds a value that must not be read as an option.
    fn value(&mut self, value: String) -> Result<(), String> {
        if value.starts_with('-') && !self.words.iter().any(|word| word == "--") {
            return Err(format!("`{value}` begins with a dash"));
        }
        self.push(value);
        Ok(())
    }

    fn add(&mut self, part: &Part, arguments: &Map<String, Value>) -> Result<(), String> {
        let of = |name: &str| arguments.get(name);
        let is_set = |name: &str| !matches!(of(name), None | Some(Value::Bool(false)));
        match part {
            Word(word) => self.push(*word),
            Part::Value(name) => {
                if let Some(value) = of(name) {
                    self.value(shown_value(value))?;
                }
            }
            Values(name) => {
                for value in of(name).map(texts).unwrap_or_default() {
                    self.value(value)?;
                }
            }
            Opt(option, name) => {
                if let Some(value) = of(name) {
                    self.push(format!("{option}={}", shown_value(value)));
                }
            }
            Pairs(option, name) => {
                for (key, value) in members(of(name))? {
                    self.push(format!("{option}={key}={}", shown_value(value)));
                }
            }
            If(word, name) if is_set(name) => self.push(*word),
            Unless(word, name) if !is_set(name) => self.push(*word),
            If(..) | Unless(..) => {}
            Part::Text(name) => self.input(of(name).map_or_else(String::new, shown_value), "-"),
            Part::Json(name) => {
                let json = of(name).map_or_else(|| "{}".to_owned(), Value::to_string);
                self.input(json.clone(), &json);
            }
            Part::Entry => {
                let (entry, shown) = entry(arguments)?;
                self.input(entry, &shown);
            }
        }
        Ok(())
    }

    fn input(&mut self, input: String, shown: &str) {
        self.words.push("-".to_owned());
        self.shown.push(shown.to_owned());
        self.input = Some(input);
    }
}

/// The entry of a server, and the entry without the values of variables and headers.
fn entry(arguments: &Map<String, Value>) -> Result<(String, String), String> {
    let mut entry = Map::new();
    match (arguments.get("command").map(texts), arguments.get("url")) {
        (Some(command), None) if !command.is_empty() => {
            entry.insert("command".to_owned(), json!(command[0]));
            if command.len() > 1 {
                entry.insert("args".to_owned(), json!(command[1..]));
            }
        }
        (None, Some(url)) => {
            entry.insert("url".to_owned(), url.clone());
        }
        _ => return Err("`add` needs either `command` or `url`".to_owned()),
    }
    let mut shown = entry.clone();
    for key in ["env", "headers"] {
        let pairs: Vec<_> = members(arguments.get(key))?.collect();
        if !pairs.is_empty() {
            let own = pairs.iter();
            let own: Map<_, _> = own
                .map(|(name, value)| ((*name).clone(), (*value).clone()))
                .collect();
            let hidden = own.keys().map(|name| (name.clone(), json!("***")));
            shown.insert(key.to_owned(), Value::Object(hidden.collect()));
            entry.insert(key.to_owned(), Value::Object(own));
        }
    }
    Ok((
        Value::Object(entry).to_string(),
        Value::Object(shown).to_string(),
    ))
}

/// The members of an object of texts.
fn members(value: Option<&Value>) -> Result<impl Iterator<Item = (&String, &Value)>, String> {
    let members = match value {
        None => None,
        Some(Value::Object(members)) if members.values().all(Value::is_string) => Some(members),
        Some(_) => return Err("an object of texts is needed".to_owned()),
    };
    Ok(members.into_iter().flatten())
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A value as it stands on a command line.
fn shown_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The words of a command for each action, with all of its parameters or with the required ones.
#[cfg(test)]
pub(crate) fn samples() -> Vec<(String, Vec<String>)> {
    let value = |parameter: &Parameter| match (parameter.name, parameter.kind) {
        ("since", _) => json!("7d"),
        ("client", _) => json!("claude-code"),
        ("scope", _) => json!("user"),
        ("kind", _) => json!("call"),
        (_, Text) => json!("word"),
        (_, Number) => json!(3),
        (_, Flag) => json!(true),
        (_, Json) => json!({ "name": "value" }),
        (_, List) => json!(["one", "two"]),
    };
    let mut all = Vec::new();
    for action in ACTIONS {
        for is_whole in [false, true] {
            let wanted = |one: &&Parameter| one.is_required || is_whole && one.name != "url";
            let parameters = action.parameters.iter().filter(wanted);
            let mut arguments: Map<String, Value> = parameters
                .map(|one| (one.name.to_owned(), value(one)))
                .collect();
            if action.name == "add" && !is_whole {
                arguments.insert("url".to_owned(), json!("https://x.example/mcp"));
            }
            let options = ["--config".to_owned(), "file".to_owned()];
            let prepared = prepare(action.name, &arguments, &options).unwrap();
            if let Work::Command { arguments, .. } = prepared.work {
                all.push((action.name.to_owned(), arguments));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(action: &str, arguments: Value) -> Result<Prepared, String> {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object")
        };
        prepare(action, &arguments, &[])
    }

    #[test]
    fn no_value_becomes_an_option() {
        for action in ACTIONS {
            let arguments = action.parameters.iter().map(|parameter| {
                let value = match parameter.kind {
                    Text => json!("--state-dir=/tmp"),
                    Number => json!(1),
                    Flag => json!(true),
                    Json => json!({ "--state-dir": "--state-dir" }),
                    List => json!(["--state-dir=/tmp"]),
                };
                (parameter.name, value)
            });
            let mut arguments: Value = Value::from_iter(arguments);
            if action.name == "add" {
                arguments.as_object_mut().unwrap().remove("url");
            }
            let Ok(prepared) = made(action.name, arguments) else {
                assert_eq!(action.name, "call");
                continue;
            };
            if let Work::Command { arguments, .. } = prepared.work {
                let options = arguments.iter().take_while(|word| *word != "--");
                let mut options = options.filter(|word| word.starts_with("--state-dir"));
                assert_eq!(options.next(), None, "{}", action.name);
            }
        }
    }

    #[test]
    fn secrets_go_to_stdin_and_are_not_shown() {
        let entry = json!({ "name": "x", "command": ["npx", "-y", "it"], "env": { "TOKEN": "s3cret-value" } });
        let prepared = made("add", entry).unwrap();
        assert_eq!(
            prepared.shown,
            r#"mcpzip add -- x '{"args":["-y","it"],"command":"npx","env":{"TOKEN":"***"}}'"#
        );
        let Work::Command { arguments, input } = prepared.work else {
            panic!()
        };
        assert_eq!(arguments, ["add", "--json", "--", "x", "-"]);
        assert!(input.unwrap().contains("s3cret-value"));
    }

    #[test]
    fn what_is_no_argument_is_refused() {
        for (action, arguments) in [
            ("nothing", json!({})),
            ("status", json!({ "more": 1 })),
            ("describe", json!({})),
            ("describe", json!({ "name": 1 })),
            ("search", json!({ "query": "x", "limit": -1 })),
            ("add", json!({ "name": "x" })),
            (
                "add",
                json!({ "name": "x", "command": ["x"], "url": "https://x" }),
            ),
            (
                "add",
                json!({ "name": "x", "command": ["x"], "env": { "A": 1 } }),
            ),
            ("approve", json!({ "server": "x" })),
            ("call", json!({ "name": "--config=x" })),
        ] {
            assert!(made(action, arguments).is_err(), "{action}");
        }
    }

    #[test]
    fn commands_are_shown_as_a_shell_reads_them() {
        let shown = |action: &str, arguments: Value| made(action, arguments).unwrap().shown;
        assert_eq!(
            shown("search", json!({ "query": "it's; rm -rf /", "limit": 5 })),
            r"mcpzip search --explain --limit=5 -- 'it'\''s; rm -rf /'"
        );
        assert_eq!(shown("tools", json!({})), "mcpzip tools");
        assert_eq!(
            shown("update", json!({ "dry_run": true })),
            "mcpzip update --dry-run --all"
        );
    }
}
