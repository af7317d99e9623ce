//! The effect of a tool that declares nothing, guessed by the words of its name, description and schema.
//!
//! A guess is as little a promise as an annotation: both come from the server's texts. Rules use it only where they say so
//! (`@read?`, `@write?`, `@destructive?`).

use serde_json::Value;

use super::definition::{Definition, Parameter};
use super::effect::Effect;

/// The words of one effect, in the imperative.
type Words = &'static [&'static str];

const READING: Words = &[
    "analyse",
    "analyze",
    "ask",
    "browse",
    "calculate",
    "check",
    "compare",
    "compute",
    "count",
    "decode",
    "describe",
    "detect",
    "diagnose",
    "diff",
    "download",
    "encode",
    "enumerate",
    "estimate",
    "evaluate",
    "examine",
    "explain",
    "explore",
    "extract",
    "fetch",
    "find",
    "get",
    "grep",
    "hash",
    "head",
    "identify",
    "inspect",
    "introspect",
    "is",
    "list",
    "load",
    "lookup",
    "match",
    "monitor",
    "parse",
    "ping",
    "poll",
    "predict",
    "preview",
    "query",
    "read",
    "recommend",
    "render",
    "resolve",
    "retrieve",
    "return",
    "scan",
    "scrape",
    "screenshot",
    "search",
    "see",
    "show",
    "stat",
    "status",
    "suggest",
    "summarize",
    "summary",
    "tail",
    "test",
    "translate",
    "validate",
    "verify",
    "view",
    "watch",
    "what",
    "who",
];

const WRITING: Words = &[
    "accept",
    "activate",
    "add",
    "annotate",
    "answer",
    "append",
    "apply",
    "approve",
    "archive",
    "assign",
    "attach",
    "backup",
    "block",
    "book",
    "build",
    "buy",
    "cancel",
    "change",
    "click",
    "clone",
    "close",
    "comment",
    "commit",
    "complete",
    "compose",
    "configure",
    "connect",
    "copy",
    "create",
    "deploy",
    "disable",
    "disconnect",
    "dismiss",
    "draft",
    "drag",
    "edit",
    "enable",
    "enqueue",
    "ensure",
    "escalate",
    "export",
    "fill",
    "finish",
    "follow",
    "fork",
    "forward",
    "generate",
    "import",
    "increment",
    "ingest",
    "init",
    "initialize",
    "insert",
    "install",
    "invite",
    "invoke",
    "join",
    "label",
    "launch",
    "leave",
    "lock",
    "log",
    "manage",
    "mark",
    "merge",
    "migrate",
    "modify",
    "move",
    "mute",
    "navigate",
    "notify",
    "open",
    "order",
    "patch",
    "pause",
    "pay",
    "pin",
    "play",
    "post",
    "press",
    "publish",
    "push",
    "put",
    "queue",
    "rate",
    "rebase",
    "record",
    "register",
    "reject",
    "release",
    "rename",
    "reopen",
    "reply",
    "reprioritize",
    "request",
    "rerun",
    "restart",
    "restore",
    "resume",
    "retry",
    "review",
    "rotate",
    "save",
    "scale",
    "schedule",
    "send",
    "set",
    "share",
    "sign",
    "stake",
    "star",
    "start",
    "stop",
    "store",
    "submit",
    "subscribe",
    "swap",
    "switch",
    "sync",
    "tag",
    "toggle",
    "transfer",
    "trigger",
    "type",
    "unarchive",
    "unassign",
    "unblock",
    "unfollow",
    "unlock",
    "unpin",
    "unstake",
    "unstar",
    "unsubscribe",
    "update",
    "upgrade",
    "upload",
    "upsert",
    "vote",
    "write",
];

const DESTROYING: Words = &[
    "abort",
    "ban",
    "bash",
    "clean",
    "cleanup",
    "clear",
    "deprovision",
    "discard",
    "empty",
    "eval",
    "exec",
    "execute",
    "expire",
    "flush",
    "force",
    "format",
    "kill",
    "overwrite",
    "reset",
    "revert",
    "rollback",
    "run",
    "shell",
    "shutdown",
    "sudo",
    "trash",
    "unpublish",
    "unset",
];

/// Words of destruction that count wherever they stand in a name.
const REMOVING: Words = &[
    "delete",
    "destroy",
    "drop",
    "erase",
    "prune",
    "purge",
    "remove",
    "revoke",
    "rm",
    "terminate",
    "truncate",
    "uninstall",
    "wipe",
];

/// Words that join a second verb to the first.
const JOINING: Words = &["also", "and", "or", "then"];

/// Verbs that are more often nouns in a description.
const NOUNS: Words = &[
    "answer", "block", "book", "build", "change", "clean", "clear", "close", "comment", "draft",
    "empty", "export", "filter", "follow", "fork", "format", "issue", "join", "label", "lock",
    "log", "mark", "open", "order", "patch", "pin", "play", "post", "queue", "rate", "record",
    "register", "release", "report", "request", "review", "run", "schedule", "set", "share",
    "start", "tag", "transfer", "type",
];

/// Parameters that take a program's text.
const PROGRAMS: Words = &[
    "cmd",
    "code",
    "command",
    "script",
    "shell",
    "sql",
    "statement",
    "statements",
];

/// Parameters that choose what is done.
const CHOICES: Words = &["action", "method", "mode", "op", "operation"];

/// The first words of a description among which its verb is looked for.
const OPENING: usize = 6;

impl Effect {
    /// The effect that the words of a definition suggest. `None` if they suggest none, or contradict each other.
    #[must_use]
    pub fn of(definition: &Definition<'_>) -> Option<Self> {
        let name = definition.name.as_str();
        // Letters that look like others could hide a word.
        if !name.is_ascii() {
            return None;
        }
        let opening = first_sentence(&definition.description);
        let said = words(opening);
        let named = of_name(&words(name));
        let found = named.or_else(|| {
            said.iter()
                .take(OPENING)
                .find_map(|word| of_inflected(word))
        })?;
        let joined = said.windows(2).filter(|pair| is_among(JOINING, &pair[0]));
        let joined = joined
            .filter(|pair| !is_among(NOUNS, &pair[1]) && !pair[1].ends_with("ing"))
            .filter_map(|pair| of_inflected(&pair[1]));
        let found = joined.fold(found, Self::max);
        let found = definition
            .parameters
            .iter()
            .filter_map(chosen)
            .fold(found, Self::max);
        let takes_program = definition.parameters.iter().any(is_program);
        (found != Self::Read || !takes_program).then_some(found)
    }

    fn of_word(word: &str) -> Option<Self> {
        if is_among(DESTROYING, word) || is_among(REMOVING, word) {
            Some(Self::Destructive)
        } else if is_among(WRITING, word) {
            Some(Self::Write)
        } else {
            is_among(READING, word).then_some(Self::Read)
        }
    }
}

fn is_among(list: Words, word: &str) -> bool {
    list.contains(&word)
}

/// The words of a text, in lower case; `camelCase` is several.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut was_lower) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        if !c.is_ascii_alphanumeric() || c.is_ascii_uppercase() && was_lower {
            words.push(std::mem::take(&mut word));
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn first_sentence(text: &str) -> &str {
    let text = text.trim_start();
    let ends = [". ", "! ", "? ", "\n"];
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    &text[..end.unwrap_or(text.len())]
}

/// The effect that a name suggests: by its first word and those joined to it, otherwise by the gravest of all its words.
fn of_name(words: &[String]) -> Option<Effect> {
    let first = Effect::of_word(words.first()?);
    let joined = words.windows(2).filter(|pair| is_among(JOINING, &pair[0]));
    let joined = joined.filter_map(|pair| Effect::of_word(&pair[1]));
    let by_place = match first {
        Some(first) => Some(joined.fold(first, Effect::max)),
        None => words.iter().filter_map(|word| Effect::of_word(word)).max(),
    };
    let removes = words.iter().any(|word| is_among(REMOVING, word));
    by_place.max(removes.then_some(Effect::Destructive))
}

/// The effect of a verb in any form: `deletes`, `querying`.
fn of_inflected(word: &str) -> Option<Effect> {
    let endings = [
        ("", ""),
        ("ies", "y"),
        ("es", ""),
        ("es", "e"),
        ("s", ""),
        ("ing", ""),
        ("ing", "e"),
    ];
    endings.iter().find_map(|(ending, instead)| {
        let stem = word.strip_suffix(ending)?;
        Effect::of_word(&format!("{stem}{instead}"))
    })
}

/// The gravest effect that a parameter offers as a choice.
fn chosen(parameter: &Parameter<'_>) -> Option<Effect> {
    let name = words(&parameter.name);
    let schema: Value = serde_json::from_str(parameter.schema.get()).ok()?;
    if schema["type"] == "boolean" {
        let removes = name.first().is_some_and(|word| is_among(REMOVING, word));
        return removes.then_some(Effect::Destructive);
    }
    if !is_among(CHOICES, &parameter.name.to_ascii_lowercase()) {
        return None;
    }
    let choices = schema["enum"].as_array()?.iter().filter_map(Value::as_str);
    choices.filter_map(|choice| of_name(&words(choice))).max()
}

/// Whether a parameter takes a program's text.
fn is_program(parameter: &Parameter<'_>) -> bool {
    is_among(PROGRAMS, &parameter.name.to_ascii_lowercase())
        && !parameter.schema.get().contains("\"enum\"")
}

#[cfg(test)]
mod quality;

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn effect(definition: &Value) -> Option<Effect> {
        let raw = to_raw_value(definition).unwrap();
        Effect::of(&Definition::parse(&raw).unwrap())
    }

    #[test]
    fn the_words_of_a_definition_suggest_its_effect() {
        use Effect::{Destructive, Read, Write};
        let tool = |name: &str, description: &str, properties: Value| json!({ "name": name, "description": description, "inputSchema": { "properties": properties } });
        let choice = json!({ "method": { "type": "string", "enum": ["get", "delete"] } });
        for (name, description, properties, expected) in [
            ("get_file", "", json!({}), Some(Read)),
            ("listIssues", "", json!({}), Some(Read)),
            ("acme_search", "", json!({}), Some(Read)),
            ("pages", "Lists the pages.", json!({}), Some(Read)),
            ("get_posts", "", json!({}), Some(Read)),
            ("create_view", "", json!({}), Some(Write)),
            ("acme_create_view", "", json!({}), Some(Write)),
            ("get_or_create_user", "", json!({}), Some(Write)),
            (
                "get_file",
                "Reads a file and archives it.",
                json!({}),
                Some(Write),
            ),
            ("keyvault_secret_delete", "", json!({}), Some(Destructive)),
            ("list_and_purge", "", json!({}), Some(Destructive)),
            ("wipeDisk", "", json!({}), Some(Destructive)),
            ("run_query", "", json!({}), Some(Destructive)),
            (
                "read_table",
                "",
                json!({ "remove_rows": { "type": "boolean" } }),
                Some(Destructive),
            ),
            ("get_label", "", choice, Some(Destructive)),
            ("query", "", json!({ "sql": { "type": "string" } }), None),
            ("l\u{456}st_files", "", json!({}), None),
            ("zork", "Does it all.", json!({}), None),
        ] {
            let found = effect(&tool(name, description, properties));
            assert_eq!(found, expected, "{name}: {description}");
        }
    }

    /// The annotated tools of every second server of the search benchmark, by which no word was chosen: all declare that they read.
    #[test]
    fn seven_of_ten_annotated_tools_of_the_search_benchmark_suggest_what_they_declare() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../shared/search-bench/dev/corpus.json"
        );
        let Ok(text) = std::fs::read_to_string(path) else {
            return;
        };
        let mut servers: Vec<Value> = serde_json::from_str(&text).unwrap();
        servers.sort_by_key(|server| server["server"].as_str().unwrap().to_owned());
        let is_annotated = |tool: &&Value| {
            tool["annotations"]["readOnlyHint"].is_boolean()
                || tool["annotations"]["destructiveHint"].is_boolean()
        };
        let annotated = servers.iter().filter_map(|server| {
            let tools = server["tools"].as_array().unwrap().iter();
            let tools: Vec<&Value> = tools.filter(is_annotated).collect();
            (!tools.is_empty()).then_some(tools)
        });
        let reported: Vec<&Value> = annotated.skip(1).step_by(2).flatten().collect();
        let agree = |tool: &&&Value| {
            tool["annotations"]["readOnlyHint"] == true && effect(tool) == Some(Effect::Read)
        };
        let agreeing = reported.iter().filter(agree).count();
        assert!(reported.len() >= 20, "{}", reported.len());
        assert!(
            agreeing * 10 >= reported.len() * 7,
            "{agreeing} of {}",
            reported.len()
        );
    }
}
