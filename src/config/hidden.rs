//! The text of a configuration without its literal secrets, for a page that edits it.
//!
//! Each text that may be a secret is written as `"<hidden 1>"`, with rising numbers. The value comes back when the text is written.

use jsonc_parser::ast::{StringLit, Value};
use jsonc_parser::common::Ranged as _;

use super::error::Position;
use super::file;
use crate::secret::{Masker, is_reference, is_secret_name};

/// The start of a text in place of a secret.
const MARK: &str = "\"<hidden ";

/// Members whose texts are all hidden.
const PRIVATE: [&str; 2] = ["env", "headers"];

/// A text without its secrets.
#[derive(Debug)]
pub(crate) struct Hidden {
    /// The text to be shown.
    pub(crate) text: String,
    /// The secrets, as they are written, with quotes.
    secrets: Vec<String>,
}

/// A text that names a secret which the configuration does not have.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`<hidden {0}>` no longer stands for a secret of the configuration")]
pub(crate) struct UnknownSecret(String);

impl Hidden {
    /// Hides the secrets of `text`. `None` if it is not JSON, so that they cannot be found.
    pub(crate) fn of(text: &str, masker: &Masker) -> Option<Self> {
        let root = file::parse(text).ok()?;
        let mut found = Vec::new();
        if let Some(root) = &root {
            let is_secret = |literal: &StringLit<'_>, is_private: bool| {
                let value = &*literal.value;
                let is_known = || masker.mask(value) != value;
                !value.is_empty() && !is_reference(value) && (is_private || is_known())
                    || value.starts_with(&MARK[1..])
            };
            texts(root, false, &mut |literal, is_private| {
                if is_secret(literal, is_private) {
                    found.push(literal.start()..literal.end());
                }
            });
        }
        let (mut shown, mut secrets, mut done) = (String::new(), Vec::new(), 0);
        for range in found {
            shown.push_str(&text[done..range.start]);
            done = range.end;
            let secret = &text[range];
            let known = secrets.iter().position(|known| known == secret);
            let number = known.unwrap_or_else(|| {
                secrets.push(secret.to_owned());
                secrets.len() - 1
            });
            shown.push_str(&placeholder(number));
        }
        shown.push_str(&text[done..]);
        Some(Self {
            text: shown,
            secrets,
        })
    }

    /// `text` with the secrets in their places.
    ///
    /// # Errors
    /// When it names one that there is not.
    pub(crate) fn restored(&self, text: &str) -> Result<String, UnknownSecret> {
        let mut parts = text.split(MARK);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (number, rest) = part.split_once(">\"").unwrap_or((part, ""));
            let secret = number.parse::<usize>().ok();
            let secret = secret.and_then(|number| self.secrets.get(number.checked_sub(1)?));
            let secret = secret.ok_or_else(|| UnknownSecret(number.chars().take(20).collect()))?;
            whole.push_str(secret);
            whole.push_str(rest);
        }
        Ok(whole)
    }

    /// The position in the shown text of one in the text with secrets, which is `whole`.
    pub(crate) fn position(&self, whole: &str, position: Position) -> Position {
        let line = whole.lines().nth(position.line.saturating_sub(1));
        let before: String = line
            .unwrap_or_default()
            .chars()
            .take(position.column.saturating_sub(1))
            .collect();
        let mut shown = before;
        for (number, secret) in self.secrets.iter().enumerate() {
            shown = shown.replace(secret, &placeholder(number));
        }
        Position {
            line: position.line,
            column: shown.chars().count() + 1,
        }
    }

    /// A masker of the secrets, for messages about the text.
    pub(crate) fn masker(&self) -> Masker {
        let inner = self
            .secrets
            .iter()
            .map(|secret| &secret[1..secret.len() - 1]);
        Masker::new(inner.map(|secret| secret.to_owned().into()))
    }
}

fn placeholder(number: usize) -> String {
    format!("{MARK}{}>\"", number + 1)
}

/// Visits each text below `value`, and says whether it is in a place for secrets.
fn texts<'a>(value: &'a Value<'a>, is_private: bool, visit: &mut impl FnMut(&StringLit<'a>, bool)) {
    match value {
        Value::StringLit(literal) => visit(literal, is_private),
        Value::Array(array) => {
            let items = array.elements.iter();
            items.for_each(|item| texts(item, is_private, visit));
        }
        Value::Object(object) => {
            for property in &object.properties {
                let name = property.name.as_str();
                let is_text = matches!(property.value, Value::StringLit(_));
                let is_own = PRIVATE.contains(&name) || is_text && is_secret_name(name);
                texts(&property.value, is_private || is_own, visit);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{ // a comment
  "mcpServers": { "a": { "command": "x", "args": ["--key", "literal-value"], "env": { "MODE": "quick", "T": "${T}", "U": "quick" } } },
  "http": { "token": "abc\"def" }
}"#;

    #[test]
    fn secrets_are_hidden_and_come_back() {
        let masker = Masker::new([String::from("literal-value").into()]);
        let hidden = Hidden::of(TEXT, &masker).unwrap();
        for secret in ["literal-value", "quick", "def"] {
            assert!(!hidden.text.contains(secret), "{}", hidden.text);
        }
        assert!(hidden.text.contains("// a comment") && hidden.text.contains("${T}"));
        assert_eq!(hidden.restored(&hidden.text).unwrap(), TEXT);
        let moved = hidden.restored(r#"{"x": "<hidden 2>", "y": 1}"#);
        assert_eq!(moved.unwrap(), r#"{"x": "quick", "y": 1}"#);
        for wrong in ["<hidden 9>", "<hidden 0>", "<hidden x>", "<hidden 1"] {
            let text = format!("{{\"x\": \"{wrong}\"}}");
            assert!(hidden.restored(&text).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_text_that_is_not_json_is_not_shown() {
        assert!(Hidden::of("{ \"env\": { \"A\": \"secret\" ", &Masker::default()).is_none());
    }

    #[test]
    fn faults_are_where_the_shown_text_has_them() {
        let hidden = Hidden::of(TEXT, &Masker::default()).unwrap();
        let at = |text: &str| {
            let line = text.lines().nth(1).unwrap();
            let column = line.find("\"T\"").unwrap() + 1;
            Position { line: 2, column }
        };
        assert_eq!(hidden.position(TEXT, at(TEXT)), at(&hidden.text));
    }
}
