//! The secrets that a preview of a client's file must hide: those of all its servers, including the ones that stay,
//! and other values whose keys name a secret.

use super::{Node, Text};
use crate::config::{secret_arguments, secret_parameters};
use crate::secret::{Masker, Secret, is_reference, is_secret_name};

/// The keys whose members are variables or headers with any names.
const GIVEN: &[&str] = &[
    "env",
    "environment",
    "envs",
    "headers",
    "http_headers",
    "requestOptions",
];

/// Shorter values of variables are not secret.
const SHORTEST: usize = 8;

/// The secrets in a file.
pub(super) fn of(node: &Node) -> Vec<Secret<String>> {
    let mut secrets = Vec::new();
    collect(node, false, &mut secrets);
    secrets
}

/// A masker of the secrets in `text`.
pub(super) fn masker(text: &Text) -> Masker {
    Masker::new(of(text.node()))
}

fn collect(node: &Node, is_given: bool, secrets: &mut Vec<Secret<String>>) {
    match node {
        Node::Map(members) => {
            for (key, value) in members {
                if let Node::Text(text) = value
                    && (is_secret_name(key) || is_given && is_telling(text))
                    && !is_reference(text)
                {
                    // `Bearer abc`: the token may also appear alone.
                    let last = text.rsplit_once(' ').map(|(_, last)| last);
                    let parts = last.into_iter().chain([text.as_str()]);
                    let literal = parts.filter(|part| !is_reference(part));
                    secrets.extend(literal.map(|part| Secret::new(part.to_owned())));
                }
                collect(value, is_given || GIVEN.contains(&key.as_str()), secrets);
            }
        }
        Node::List(items) => {
            let texts = items.iter().filter_map(Node::as_text);
            secrets.extend(secret_arguments(
                "",
                &texts.map(str::to_owned).collect::<Vec<_>>(),
            ));
            items.iter().for_each(|item| collect(item, false, secrets));
        }
        Node::Text(text) if text.contains("://") => secrets.extend(secret_parameters(text)),
        _ => {}
    }
}

/// Whether a variable's value may be more than a path or a switch.
fn is_telling(value: &str) -> bool {
    let is_path = value.starts_with(['/', '~', '.']);
    value.chars().count() >= SHORTEST && !is_path && !value.contains("://")
}
