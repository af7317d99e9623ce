//! `allowedMcpServers` in the user's own settings of Claude Code: our entry is added to the list, because Claude Code
//! would not start it otherwise. Lists of administrators and projects stay unchanged.

use std::path::PathBuf;

use super::cache::read_source;
use super::edit::{Edit, PlanError};
use super::model::{Entry, Target};
use super::{Client, Node, Surroundings, Syntax, fixed, reading};

const ALLOWED: &str = "allowedMcpServers";

/// The settings file whose list may be edited.
pub(super) fn file(around: &Surroundings) -> PathBuf {
    around.claude_directory().join("settings.json")
}

/// The edit that takes the permission of our entries `names` out, as far as it names them; `None` where there is none.
///
/// # Errors
/// As for [`edit`].
pub(super) fn removal(
    client: Client,
    names: &[String],
    around: &Surroundings,
) -> Result<Option<Edit>, PlanError> {
    let own = |rule: &Node| {
        let is_named = rule.get("serverName").and_then(Node::as_text);
        let command = rule
            .get("serverCommand")
            .map(Node::items)
            .unwrap_or_default();
        is_named.is_some_and(|name| names.iter().any(|own| own == name)) || is_own_command(command)
    };
    change(client, around, |rules| {
        let rest: Vec<Node> = rules.iter().filter(|rule| !own(rule)).cloned().collect();
        (rest.len() < rules.len()).then_some(rest)
    })
}

/// Whether a command line starts mcpzip.
fn is_own_command(words: &[Node]) -> bool {
    let words: Option<Vec<&str>> = words.iter().map(Node::as_text).collect();
    let Some((command, args)) = words.as_deref().and_then(<[&str]>::split_first) else {
        return false;
    };
    let entry = Node::map([
        ("command", Node::text(*command)),
        ("args", Node::texts(args.iter().copied())),
    ]);
    reading::read(Client::ClaudeCode, &entry, None).is_ok_and(|entry| entry.is_mcpzip())
}

/// The edit that permits our entry `name`. `None` if it is permitted already or there is no list.
///
/// # Errors
/// When the settings cannot be read or edited.
pub(super) fn edit(
    client: Client,
    name: &str,
    entry: &Entry,
    around: &Surroundings,
) -> Result<Option<Edit>, PlanError> {
    change(client, around, |rules| {
        let list = Node::List(rules.to_vec());
        if fixed::is_permitted(&list, name, &entry.target.invocation()) {
            return None;
        }
        let has_commands = rules.iter().any(|rule| rule.get("serverCommand").is_some());
        let rule = match &entry.target {
            Target::Local { command, args, .. } if has_commands => {
                let line = [command].into_iter().chain(args);
                Node::map([("serverCommand", Node::texts(line))])
            }
            _ => Node::map([("serverName", Node::text(name))]),
        };
        Some(rules.iter().cloned().chain([rule]).collect())
    })
}

/// The edit that gives the list the rules that `changed` makes of those it has.
fn change(
    client: Client,
    around: &Surroundings,
    changed: impl FnOnce(&[Node]) -> Option<Vec<Node>>,
) -> Result<Option<Edit>, PlanError> {
    if client != Client::ClaudeCode {
        return Ok(None);
    }
    let path = file(around);
    let unreadable = PlanError::unreadable(&path);
    let source = read_source(&path, Syntax::Json).map_err(unreadable)?;
    let Some(Node::List(rules)) = source.text.node().get(ALLOWED) else {
        return Ok(None);
    };
    let Some(rules) = changed(rules) else {
        return Ok(None);
    };
    let mut text = source.text.clone();
    let key = [ALLOWED.to_owned()];
    let failed = PlanError::edit(&path);
    text.set(&key, &Node::List(rules)).map_err(failed)?;
    let paths = vec![key.to_vec()];
    Ok(Edit::new(
        Some(client),
        &path,
        Syntax::Json,
        &source,
        &text,
        paths,
    ))
}
