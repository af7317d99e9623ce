//! `http.auth.tool_scopes`: the scopes that an access token must have for calls of tools. A client whose token lacks one learns which,
//! and can ask its user for a token that has it.

use std::collections::BTreeSet;

use super::error::EntryError;
use super::policy::pattern::{Pattern, Use};
use super::reader::{At, Field};
use crate::tool::{Hints, QualifiedName};

const KEY_EXPECTED: &str =
    "the name of a tool with `*` and `?`, or a class, such as `github__*` or `@write`";
const SCOPES_EXPECTED: &str = "scopes of printable characters, with spaces between them";

/// The scopes that calls of tools need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolScopes(Vec<(Pattern, BTreeSet<String>)>);

impl ToolScopes {
    /// The scopes that a call of a tool needs; its server may have another name in the file.
    pub(crate) fn needed(
        &self,
        name: &QualifiedName,
        written: Option<&str>,
        hints: Hints,
    ) -> BTreeSet<&str> {
        let tool = name.tool.as_str().to_lowercase();
        let is_written = |pattern: &Pattern| {
            written.is_some_and(|server| pattern.is_of(&server.to_lowercase(), &tool))
        };
        let about = self.0.iter().filter(|(pattern, _)| {
            pattern.matches(name, hints, Use::Restriction) || is_written(pattern)
        });
        about
            .flat_map(|(_, scopes)| scopes.iter().map(String::as_str))
            .collect()
    }

    /// All scopes that it names.
    pub(crate) fn all(&self) -> BTreeSet<&str> {
        let scopes = self.0.iter().flat_map(|(_, scopes)| scopes);
        scopes.map(String::as_str).collect()
    }
}

/// Whether a text can be a scope (RFC 6749, 3.3).
fn is_scope(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    !text.is_empty() && text.bytes().all(is_plain)
}

/// Reads `http.auth.tool_scopes`.
pub(super) fn tool_scopes(field: &Field<'_>) -> Result<ToolScopes, At<EntryError>> {
    field.object()?;
    let read = field.members(|name, field| {
        let pattern = Pattern::parse(name).filter(|_| !name.trim().starts_with('!'));
        let pattern = pattern.ok_or_else(|| {
            let key = "http.auth.tool_scopes";
            let fault = EntryError::value(key, KEY_EXPECTED, format!("`{name}`"));
            At::new(field.offset(), fault)
        })?;
        let text = field.text()?.value;
        let scopes: BTreeSet<String> = text.split_whitespace().map(str::to_owned).collect();
        match !scopes.is_empty() && scopes.iter().all(|scope| is_scope(scope)) {
            true => Ok((pattern, scopes)),
            false => Err(field.wrong(SCOPES_EXPECTED)),
        }
    })?;
    Ok(ToolScopes(read))
}
