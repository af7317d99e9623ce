//! Names of tools: legal, at most 64 characters, stable, and each different.
//!
//! A name comes from the `operationId`, else from method and path. If several operations have one name, each gets a
//! hash of its method and path, so that no name depends on a position. This is done before names are cut.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// The longest name of a tool.
const LONGEST: usize = 64;

/// An operation, as far as its name depends on it.
pub(super) struct Named<'a> {
    pub(super) id: Option<&'a str>,
    pub(super) method: &'a str,
    pub(super) path: &'a str,
}

/// The names of all operations, in their order.
pub(super) fn names(all: &[Named<'_>]) -> Vec<String> {
    let wanted: Vec<String> = all.iter().map(wanted).collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in &wanted {
        *counts.entry(name.to_ascii_lowercase()).or_default() += 1;
    }
    let named = all.iter().zip(wanted).map(|(one, name)| {
        let is_unique = counts.get(&name.to_ascii_lowercase()) == Some(&1);
        if is_unique && name.len() <= LONGEST {
            name
        } else {
            hashed(&name, one)
        }
    });
    named.collect()
}

fn wanted(one: &Named<'_>) -> String {
    let id = one.id.map(legal).filter(|id| !id.is_empty());
    id.unwrap_or_else(|| {
        let words = legal(&format!("{} {}", one.method, one.path));
        words.to_ascii_lowercase()
    })
}

/// `text` with every run of other characters made one `_`.
fn legal(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        };
        if c != '_' || !name.ends_with('_') {
            name.push(c);
        }
    }
    name.trim_matches('_').to_owned()
}

fn hashed(name: &str, one: &Named<'_>) -> String {
    let whole = format!("{} {}", one.method, one.path);
    let hash = HEXLOWER.encode(&Sha256::digest(whole)[..4]);
    let kept = &name[..name.len().min(LONGEST - hash.len() - 1)];
    format!("{}_{hash}", kept.trim_end_matches(['_', '-']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(id: &'a str, method: &'a str, path: &'a str) -> Named<'a> {
        Named {
            id: Some(id).filter(|id| !id.is_empty()),
            method,
            path,
        }
    }

    #[test]
    fn names_are_legal_short_different_and_do_not_depend_on_the_order() {
        let long = "a/very.long ".repeat(10);
        let all = [
            named("repos/create-release", "POST", "/a"),
            named("", "GET", "/pets/{petId}/toys"),
            named("list", "GET", "/x"),
            named("LIST", "GET", "/y"),
            named(&long, "GET", "/z"),
            named("", "GET", "/"),
        ];
        let first = names(&all);
        assert_eq!(first[..2], ["repos_create-release", "get_pets_petid_toys"]);
        assert_eq!(first[5], "get");
        let different: std::collections::BTreeSet<_> = first.iter().collect();
        assert_eq!(different.len(), all.len());
        for name in &first {
            assert!(name.len() <= LONGEST, "{name}");
            assert!(
                name.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
                "{name}"
            );
        }
        let mut reversed: Vec<_> = all.into_iter().rev().collect();
        let again = names(&reversed);
        assert_eq!(again.into_iter().rev().collect::<Vec<_>>(), first);
        // Each keeps its own name when the other of its name is gone, up to the hash.
        reversed.retain(|one| one.path != "/y");
        assert_eq!(names(&reversed)[2], "list");
    }
}
