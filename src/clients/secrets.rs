//! The secrets that a preview of a client's file must hide: those of all its servers, including the ones that stay,
//! and other values whose keys name a secret.

use super::{Node, Text};
use crate::config::{secret_arguments, secret_parameters};
use crate::secret::{Masker, Secret, is_reference, is_secret_name};

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

/// Shorter values of variables are not secret.
const SHORTEST: usize = 8;

/// The secrets in a file.
pub(super) fn of(node: &Node) -> Vec<Secret<String>> {
    let mut all = Vec::new();
    collect(node, "", false, &mut |_, secrets| all.extend(secrets));
    all
}

/// The paths of the texts that a preview hides as secrets, such as `mcpServers.github.env.TOKEN`.
pub(super) fn places(node: &Node) -> Vec<String> {
    let mut all = Vec::new();
    collect(node, "", false, &mut |path, secrets| {
        if !secrets.is_empty() && !all.iter().any(|known| known == path) {
            all.push(path.to_owned());
        }
    });
    all
}

/// A masker of the secrets in `text`.
pub(super) fn masker(text: &Text) -> Masker {
    Masker::new(of(text.node()))
}

fn collect(
    node: &Node,
    path: &str,
    is_given: bool,
    visit: &mut impl FnMut(&str, Vec<Secret<String>>),
) {
    let literal = |secrets: Vec<Secret<String>>| -> Vec<Secret<String>> {
        let secrets = secrets.into_iter();
        secrets
            .filter(|secret| !is_reference(secret.expose()))
            .collect()
    };
    match node {
        Node::Map(members) => {
            for (at, (key, value)) in members.iter().enumerate() {
                if NAMES.contains(&key.as_str()) {
                    continue;
                }
                let is_repeated = members[at + 1..].iter().any(|(later, _)| later == key);
                let path = match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                let path = match is_repeated {
                    true => format!("{path} (not the last of this name)"),
                    false => path,
                };
                if let Node::Text(text) = value
                    && (is_secret_name(key) || is_given && is_telling(text))
                    && !is_reference(text)
                    && text != KEYCHAIN
                {
                    // `Bearer abc`: the token may also appear alone.
                    let last = text.rsplit_once(' ').map(|(_, last)| last);
                    let parts = last.into_iter().chain([text.as_str()]);
                    let parts = parts.map(|part| Secret::new(part.to_owned()));
                    visit(&path, literal(parts.collect()));
                }
                let is_given = is_given || GIVEN.contains(&key.as_str());
                collect(value, &path, is_given, visit);
            }
        }
        Node::List(items) => {
            let texts = items.iter().map(|item| item.as_text().unwrap_or_default());
            let texts: Vec<String> = texts.map(str::to_owned).collect();
            for secret in literal(secret_arguments("", &texts)) {
                let has_it = |text: &String| text.contains(secret.expose().as_str());
                let at = texts.iter().position(has_it).unwrap_or_default();
                visit(&format!("{path}[{at}]"), vec![secret]);
            }
            for (at, item) in items.iter().enumerate() {
                collect(item, &format!("{path}[{at}]"), false, visit);
            }
        }
        Node::Text(text) if text.contains("://") => visit(path, literal(secret_parameters(text))),
        _ => {}
    }
}

/// Whether a variable's value may be more than a path or a switch.
fn is_telling(value: &str) -> bool {
    let is_path = value.starts_with(['/', '~', '.']);
    value.chars().count() >= SHORTEST && !is_path && !value.contains("://")
}
