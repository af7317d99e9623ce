//! JSON, with comments and trailing commas.

use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::clients::node::Node;
use crate::config::Document;

pub(super) fn read(text: &str) -> Result<Node, String> {
    // The document checks the syntax; its output has no comments.
    let document = Document::parse(text).map_err(|error| error.to_string())?;
    let plain = document.get(&[]).unwrap_or_default();
    let parsed = parse_to_ast(&plain, &CollectOptions::default(), &ParseOptions::default());
    let parsed = parsed.map_err(|error| error.to_string())?;
    Ok(parsed.value.as_ref().map_or(Node::Null, Node::from))
}

pub(super) fn set(text: &str, path: &[String], value: &Node) -> Result<String, String> {
    edit(text, |document| {
        document
            .set(&keys(path), &value.to_json())
            .map_err(|error| error.to_string())
    })
}

pub(super) fn remove(text: &str, paths: &[Vec<String>]) -> Result<String, String> {
    let paths: Vec<Vec<&str>> = paths.iter().map(|path| keys(path)).collect();
    let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
    edit(text, |document| {
        document
            .remove_all(&paths)
            .map(drop)
            .map_err(|error| error.to_string())
    })
}

fn edit(
    text: &str,
    change: impl FnOnce(&mut Document) -> Result<(), String>,
) -> Result<String, String> {
    let mut document = Document::parse(text).map_err(|error| error.to_string())?;
    change(&mut document)?;
    Ok(document.text())
}

fn keys(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}
