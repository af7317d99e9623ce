//! JSON, with comments and trailing commas.

use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::error::{EditError, SyntaxError};
use crate::clients::node::Node;
use crate::config::{Document, DocumentError};

pub(super) fn read(text: &str) -> Result<Node, SyntaxError> {
    // The document checks the syntax; its output has no comments.
    let document = Document::parse(text)?;
    let plain = document.get(&[]).unwrap_or_default();
    let parsed = parse_to_ast(&plain, &CollectOptions::default(), &ParseOptions::default());
    let parsed = parsed.map_err(|error| SyntaxError::Value(error.to_string()))?;
    Ok(parsed.value.as_ref().map_or(Node::Null, Node::from))
}

pub(super) fn set(text: &str, path: &[String], value: &Node) -> Result<String, EditError> {
    edit(text, |document| document.set(&keys(path), &value.to_json()))
}

pub(super) fn remove(text: &str, paths: &[Vec<String>]) -> Result<String, EditError> {
    let paths: Vec<Vec<&str>> = paths.iter().map(|path| keys(path)).collect();
    let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
    edit(text, |document| document.remove_all(&paths).map(drop))
}

fn edit(
    text: &str,
    change: impl FnOnce(&mut Document) -> Result<(), DocumentError>,
) -> Result<String, EditError> {
    let mut document = Document::parse(text)?;
    change(&mut document)?;
    Ok(document.text())
}

fn keys(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}
