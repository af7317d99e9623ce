//! `allowedMcpServers` in the user's own settings of Claude Code: our entry is added to the list, because Claude Code
//! would not start it otherwise. Lists of administrators and projects stay unchanged.

use std::path::PathBuf;

use super::cache::read_source;
use super::edit::{Edit, PlanError};
use super::model::{Entry, Target};
use super::{Client, Node, Surroundings, Syntax, fixed};

const ALLOWED: &str = "allowedMcpServers";

/// The settings file whose list may be edited.
pub(super) fn file(around: &Surroundings) -> PathBuf {
    around.claude_directory().join("settings.json")
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
    if client != Client::ClaudeCode {
        return Ok(None);
    }
    let path = file(around);
    let unreadable = |problem| PlanError::Unreadable {
        path: path.clone(),
        problem,
    };
    let source = read_source(&path, Syntax::Json).map_err(unreadable)?;
    let list = source.text.node().get(ALLOWED);
    let Some(list @ Node::List(rules)) = list else {
        return Ok(None);
    };
    if fixed::is_permitted(list, name, entry) {
        return Ok(None);
    }
    let has_commands = rules.iter().any(|rule| rule.get("serverCommand").is_some());
    let rule = match &entry.target {
        Target::Local { command, args, .. } if has_commands => {
            let line = [command].into_iter().chain(args);
            Node::map([("serverCommand", Node::texts(line))])
        }
        _ => Node::map([("serverName", Node::text(name))]),
    };
    let mut text = source.text.clone();
    let key = [ALLOWED.to_owned()];
    let rules = rules.iter().cloned().chain([rule]).collect();
    let failed = |source| PlanError::Edit {
        path: path.clone(),
        source,
    };
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
