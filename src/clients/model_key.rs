//! The key of the search's language model, the one secret of our configuration outside of the servers that may be literal.

use super::node::Node;
use super::servers::{Literals, Servers};
use super::{Text, TextError};
use crate::text::variable_name;

const SECTION: [&str; 2] = ["search", "llm"];
const KEY: &str = "api_key";

/// The value that stands for the system's keychain.
const KEYCHAIN: &str = "keychain";

/// The key, if it is literal, with a name for a variable.
fn literal(config: &Node) -> Option<(String, &str)> {
    let section = config.at(&SECTION)?;
    let key = section.get(KEY)?.as_text()?;
    let is_literal = !key.trim().is_empty() && key.trim() != KEYCHAIN && !key.contains('$');
    let provider = section.get("provider").and_then(Node::as_text);
    let name = variable_name(&format!("{}_{KEY}", provider.unwrap_or("llm")));
    is_literal.then_some((name, key))
}

/// The literal key, in the form of the servers' secrets.
pub(super) fn literals(config: &Node) -> Literals {
    let found = literal(config).map(|_| (SECTION.join("."), vec![KEY.to_owned()]));
    found.into_iter().collect()
}

/// Replaces a literal key in `text` by a reference to a stored one. Returns the paths of the changed values.
///
/// # Errors
/// When the text cannot be edited.
pub(super) fn store(text: &mut Text, servers: &mut Servers) -> Result<Vec<Vec<String>>, TextError> {
    let Some((variable, value)) = literal(text.node()) else {
        return Ok(Vec::new());
    };
    let reference = servers.store_value("llm", variable, value.to_owned());
    let path: Vec<String> = [&SECTION[..], &[KEY]]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect();
    text.set(&path, &Node::Text(reference))?;
    Ok(vec![path])
}
