//! The secrets that a preview of a client's file must hide: those of all its servers, including the ones that stay,
//! and other values whose keys name a secret.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Node, Text};
use crate::config::{secret_arguments, secret_parameters, secrets_by_argument};
use crate::secret::{Masker, SHORTEST as SHORTEST_MASKED, Secret, is_reference, is_secret_name};

/// A value of a secret's name that is none.
const KEYCHAIN: &str = "keychain";

/// The keys whose members are variables or headers with any names.
const GIVEN: &[&str] = &[
    "env",
    "environment",
    "envs",
    "headers",
    "http_headers",
    "requestOptions",
];

/// The keys whose values are names of variables.
const NAMES: &[&str] = &[
    "bearer_token_env_var",
    "env_http_headers",
    "env_keys",
    "env_vars",
];

/// The last words of names of variables and headers whose values are secret. Options and arguments of tools have them for other values, too.
const SECRET_ENDS: [&str; 2] = ["pin", "session"];

/// The keys of programs, of which some have arguments.
const PROGRAMS: [&str; 2] = ["command", "cmd"];

/// Shorter values of variables are not secret.
const SHORTEST: usize = 8;

/// More short secrets than this are masked wherever their text is in a file.
const MOST_PLACES: usize = 64;

/// The place of a value in a file.
#[derive(Clone)]
struct Place {
    /// As it is shown, such as `mcpServers.github.env.TOKEN`.
    shown: String,
    /// The keys to it. `None` if the keys lead to another value.
    path: Option<Vec<String>>,
}

/// The secrets in a file.
pub(super) fn of(node: &Node) -> Vec<Secret<String>> {
    let mut all = Vec::new();
    visit(node, &mut |_, _, secrets| {
        all.extend(secrets.into_iter().map(Secret::new));
    });
    all
}

/// The paths of the texts that a preview hides as secrets, such as `mcpServers.github.env.TOKEN`.
pub(super) fn places(node: &Node) -> Vec<String> {
    let mut all = Vec::new();
    visit(node, &mut |place, _, secrets| {
        if !secrets.is_empty() && !all.contains(&place.shown) {
            all.push(place.shown.clone());
        }
    });
    all
}

/// A masker of the secrets in `text`.
pub(super) fn masker(text: &Text) -> Masker {
    Masker::new(of(text.node()))
}

/// A file's text for display, in which the secrets are masked that are too short for a [`Masker`] to find: in their places, as their text
/// may also be elsewhere.
pub(super) fn shown(text: &Text) -> Arc<String> {
    let (mut placed, mut others) = (BTreeMap::<Vec<String>, Vec<String>>::new(), Vec::new());
    visit(text.node(), &mut |place, _, secrets| {
        if !secrets.iter().any(|secret| is_short(secret)) {
            return;
        }
        match &place.path {
            Some(path) => placed.entry(path.clone()).or_default().extend(secrets),
            None => others.extend(secrets),
        }
    });
    let mut masked = text.clone();
    for (number, (path, secrets)) in placed.into_iter().enumerate() {
        if number >= MOST_PLACES || !mask_at(&mut masked, &path, &secrets) {
            others.extend(secrets);
        }
    }
    match others.is_empty() {
        true => Arc::clone(masked.shown()),
        false => Arc::new(Masker::of_all(others).mask(masked.shown()).into_owned()),
    }
}

/// Masks secrets in the text at `path`. Returns whether that was possible.
fn mask_at(text: &mut Text, path: &[String], secrets: &[String]) -> bool {
    let plain = match text.node().at(path) {
        Some(Node::Text(plain) | Node::Number(plain)) => plain,
        _ => return false,
    };
    let masked = Masker::of_all(secrets.to_vec()).mask(plain).into_owned();
    let masked = Node::Text(masked);
    if text.set(path, &masked).is_ok() {
        return true;
    }
    // Of some syntaxes only a whole list can be replaced.
    let Some((last, list)) = path.split_last() else {
        return false;
    };
    let Some(mut items) = text.node().at(list).cloned() else {
        return false;
    };
    items.set(std::slice::from_ref(last), masked) && text.set(list, &items).is_ok()
}

/// Whether a [`Masker`] of all secrets leaves this one out.
fn is_short(secret: &str) -> bool {
    !secret.is_empty() && secret.chars().count() < SHORTEST_MASKED
}

/// Calls `visit` with the place of each value that may have secrets, the value, and the secrets.
fn visit(node: &Node, visit: &mut impl FnMut(&Place, &Node, Vec<String>)) {
    let root = Place {
        shown: String::new(),
        path: Some(Vec::new()),
    };
    collect(node, &root, false, "", visit);
}

fn collect(
    node: &Node,
    place: &Place,
    is_given: bool,
    command: &str,
    visit: &mut impl FnMut(&Place, &Node, Vec<String>),
) {
    let literal = |mut secrets: Vec<String>| -> Vec<String> {
        secrets.retain(|secret| !is_reference(secret));
        secrets
    };
    match node {
        Node::Map(members) => {
            let command = PROGRAMS.into_iter().find_map(|key| node.get(key));
            let command = command.and_then(Node::as_text).unwrap_or_default();
            for (at, (key, value)) in members.iter().enumerate() {
                if NAMES.contains(&key.as_str()) {
                    continue;
                }
                let is_repeated = members[at + 1..].iter().any(|(later, _)| later == key);
                let place = place.member(key, is_repeated);
                let is_secret = is_secret_name(key) || is_given && has_secret_end(key);
                match value {
                    Node::Text(text)
                        if (is_secret || is_given && is_telling(text))
                            && !is_reference(text)
                            && text != KEYCHAIN =>
                    {
                        // `Bearer abc`: the token may also appear alone.
                        let last = text.rsplit_once(' ').map(|(_, last)| last);
                        let parts = last.into_iter().chain([text.as_str()]);
                        visit(&place, value, literal(parts.map(str::to_owned).collect()));
                    }
                    Node::Number(number) if is_given && is_secret => {
                        visit(&place, value, vec![number.clone()]);
                    }
                    Node::List(items) if is_secret => {
                        for (at, item) in items.iter().enumerate() {
                            let text = item.as_text().map(str::to_owned);
                            let secrets = literal(text.into_iter().collect());
                            visit(&place.item(at, item), item, secrets);
                        }
                    }
                    _ => {}
                }
                let command = match value {
                    Node::Text(line) if PROGRAMS.contains(&key.as_str()) => line.as_str(),
                    _ => command,
                };
                let is_given = is_given || GIVEN.contains(&key.as_str());
                collect(value, &place, is_given, command, visit);
            }
        }
        Node::List(items) => {
            let texts = items.iter().map(|item| item.as_text().unwrap_or_default());
            let texts: Vec<String> = texts.map(str::to_owned).collect();
            let secrets = secrets_by_argument(command, &texts);
            for (at, (item, secrets)) in items.iter().zip(secrets).enumerate() {
                let place = place.item(at, item);
                visit(&place, item, literal(secrets));
                collect(item, &place, false, "", visit);
            }
        }
        Node::Text(text) if text == command || text.contains("://") => {
            let secrets = match text == command {
                true => secret_arguments(text, &[]),
                false => secret_parameters(text),
            };
            let secrets = secrets.into_iter();
            let secrets = secrets.map(|secret| secret.expose().clone());
            visit(place, node, literal(secrets.collect()));
        }
        _ => {}
    }
}

impl Place {
    fn member(&self, key: &str, is_repeated: bool) -> Self {
        let dot = if self.shown.is_empty() { "" } else { "." };
        let mark = match is_repeated {
            true => " (not the last of this name)",
            false => "",
        };
        let path = self.path.as_ref().filter(|_| !is_repeated);
        Self {
            shown: format!("{}{dot}{key}{mark}", self.shown),
            path: path.map(|path| [path.as_slice(), &[key.to_owned()]].concat()),
        }
    }

    fn item(&self, at: usize, item: &Node) -> Self {
        // As a node finds it: a text by its index, a map by its name.
        let key = match item {
            Node::Text(_) => Some(at.to_string()),
            item => item.get("name").and_then(Node::as_text).map(str::to_owned),
        };
        let path = self.path.as_ref().zip(key);
        Self {
            shown: format!("{}[{at}]", self.shown),
            path: path.map(|(path, key)| [path.as_slice(), &[key]].concat()),
        }
    }
}

fn has_secret_end(name: &str) -> bool {
    let end = name.rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
    let is_end = |word: &&str| end.is_some_and(|end| end.eq_ignore_ascii_case(word));
    SECRET_ENDS.iter().any(is_end)
}

/// Whether a variable's value may be more than a path or a switch.
fn is_telling(value: &str) -> bool {
    let is_path = value.starts_with(['/', '~', '.']);
    value.chars().count() >= SHORTEST && !is_path && !value.contains("://")
}
