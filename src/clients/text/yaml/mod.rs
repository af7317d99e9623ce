//! YAML, edited by whole lines: an entry in block style is added or removed; one in flow style is left to the user.

mod tree;
mod write;

use super::error::{EditError, SyntaxError};
use super::unified;
use crate::clients::node::Node;
use tree::{Kind, Tree};

/// The indentation of new lines below their key.
const STEP: usize = 2;

pub(super) fn read(text: &str) -> Result<Node, SyntaxError> {
    Tree::parse(&text.replace("\r\n", "\n")).map(|tree| tree.node())
}

pub(super) fn set(text: &str, path: &[String], value: &Node) -> Result<String, EditError> {
    edit(text, |lines, root| {
        let (key, _) = path.split_last().ok_or(EditError::NoKey)?;
        if let Some(found) = find(root, path) {
            let (from, to) = found.extent(lines);
            let new = found.render(key, value);
            lines.splice(from..to, new);
            return Ok(());
        }
        // The deepest existing parent, and the missing ones below it.
        let depth = (0..path.len())
            .rev()
            .find(|depth| *depth == 0 || find(root, &path[..*depth]).is_some());
        let depth = depth.unwrap_or(0);
        let (key, missing) = path[depth..].split_first().ok_or(EditError::NoKey)?;
        let value = missing.iter().rev().fold(value.clone(), |value, key| {
            Node::map([(key.as_str(), value)])
        });
        let owner = find(root, &path[..depth]);
        let holder = owner.as_ref().map_or(root, |owner| owner.value);
        let (at, column, in_list) = match &holder.kind {
            Kind::Map(members) if !holder.is_flow && !members.is_empty() => {
                let last = &members[members.len() - 1];
                (last.location().extent(lines).1, members[0].column, false)
            }
            Kind::List(items) if !holder.is_flow && !items.is_empty() => {
                let last = items[items.len() - 1].location().ok_or(EditError::List)?;
                (last.extent(lines).1, last.column, true)
            }
            Kind::Map(members) if !members.is_empty() => return Err(EditError::Braces),
            Kind::List(items) if !items.is_empty() => return Err(EditError::Braces),
            Kind::Scalar(Node::Null) | Kind::Map(_) | Kind::List(_) => match &owner {
                None => (lines.len(), 0, false),
                Some(owner) => {
                    owner.open(lines)?;
                    (
                        owner.line + 1,
                        owner.column + STEP,
                        matches!(holder.kind, Kind::List(_)),
                    )
                }
            },
            Kind::Scalar(_) => return Err(EditError::Scalar),
        };
        if let Some(last) = at.checked_sub(1).and_then(|last| lines.get_mut(last))
            && !last.ends_with('\n')
        {
            last.push('\n');
        }
        lines.splice(at..at, write::member(key, &value, column, in_list));
        Ok(())
    })
}

pub(super) fn remove(text: &str, path: &[String]) -> Result<String, EditError> {
    edit(text, |lines, root| {
        let found = find(root, path).ok_or(EditError::Braces)?;
        let (from, to) = found.extent(lines);
        lines.drain(from..to);
        let owner = find(root, &path[..path.len() - 1]);
        match owner {
            Some(owner) if owner.value.len() == 1 => owner.empty(lines, found.in_list),
            _ => Ok(()),
        }
    })
}

fn edit(
    text: &str,
    change: impl FnOnce(&mut Vec<String>, &Tree) -> Result<(), EditError>,
) -> Result<String, EditError> {
    let (plain, has_returns) = unified(text)?;
    let tree = Tree::parse(&plain)?;
    let mut lines: Vec<String> = plain.split_inclusive('\n').map(str::to_owned).collect();
    change(&mut lines, &tree)?;
    let edited = lines.concat();
    Ok(if has_returns {
        edited.replace('\n', "\r\n")
    } else {
        edited
    })
}

/// A member of a map, or an item of a list, with its position.
#[derive(Clone, Copy)]
struct Location<'t> {
    line: usize,
    column: usize,
    /// The end of the key; an item of a list has none.
    key_end: usize,
    in_list: bool,
    value: &'t Tree,
}

/// Finds the value at `path`, as far as it is in block style.
fn find<'t>(root: &'t Tree, path: &[String]) -> Option<Location<'t>> {
    let mut location: Option<Location<'t>> = None;
    for key in path {
        let tree = location.map_or(root, |location| location.value);
        if tree.is_flow {
            return None;
        }
        location = Some(match &tree.kind {
            Kind::Map(members) => members
                .iter()
                .rev()
                .find(|member| member.key == *key)?
                .location(),
            Kind::List(items) => items
                .iter()
                .find(|item| item.node().get("name").and_then(Node::as_text) == Some(key))?
                .location()?,
            Kind::Scalar(_) => return None,
        });
    }
    location
}

impl Location<'_> {
    /// The lines of the value, with deeper comments after it.
    fn extent(&self, lines: &[String]) -> (usize, usize) {
        let has_flush_list =
            !self.in_list && matches!(self.value.kind, Kind::List(_)) && !self.value.is_flow;
        let mut end = self.line + 1;
        let mut at = end;
        while let Some(line) = lines.get(at) {
            let trimmed = line.trim_start_matches(' ');
            let indent = line.len() - trimmed.len();
            let is_item = trimmed.starts_with("- ") || trimmed.trim_end() == "-";
            if trimmed.trim().is_empty() {
                at += 1;
                continue;
            }
            let is_own = indent > self.column || has_flush_list && indent == self.column && is_item;
            if trimmed.starts_with('#') {
                // It belongs to the value if it follows at once, or if more of the value comes after it.
                if is_own && at == end {
                    end = at + 1;
                }
            } else if is_own {
                end = at + 1;
            } else {
                break;
            }
            at += 1;
        }
        (self.line, end)
    }

    fn render(&self, key: &str, value: &Node) -> Vec<String> {
        write::member(key, value, self.column, self.in_list)
    }

    /// Makes room for lines below a key that has no value or an empty pair of braces.
    fn open(&self, lines: &mut [String]) -> Result<(), EditError> {
        let (before, after) = self.behind_colon(lines).ok_or(EditError::Key)?;
        let rest = after.trim_start();
        let rest = rest
            .strip_prefix("{}")
            .or_else(|| rest.strip_prefix("[]"))
            .or_else(|| rest.strip_prefix("null"));
        if let Some(rest) = rest {
            lines[self.line] = format!("{before}{rest}");
        }
        Ok(())
    }

    /// Writes an empty value for the key.
    fn empty(&self, lines: &mut [String], is_list: bool) -> Result<(), EditError> {
        let (before, after) = self.behind_colon(lines).ok_or(EditError::Key)?;
        lines[self.line] = format!("{before} {}{after}", if is_list { "[]" } else { "{}" });
        Ok(())
    }

    fn behind_colon(&self, lines: &[String]) -> Option<(String, String)> {
        let line = lines.get(self.line)?;
        let from = line.char_indices().nth(self.key_end).map(|(at, _)| at)?;
        let colon = from + line[from..].find(':')? + 1;
        Some((line[..colon].to_owned(), line[colon..].to_owned()))
    }
}
