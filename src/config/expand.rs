//! Expands `${NAME}`, `${NAME:-default}`, `${keyring:NAME}` and a leading `~/`. `$${` stands for `${`; any other `$` is
//! literal.
//!
//! The expanded value records the variables that it used, because they may be secrets, and the secrets of the keyring.
//! Expanded text is not expanded again: a variable cannot refer to another.

use super::env::{Environment, SECRET_KEY};
use super::error::EntryError;
use super::keyring::{self, SecretFault, SecretName};
use crate::secret::Secret;

/// A text after expansion.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expanded {
    pub(super) text: String,
    /// Name and value of the variables from the environment, without defaults.
    pub(super) variables: Vec<(String, String)>,
    /// The secrets of the keyring.
    pub(super) secrets: Vec<Secret<String>>,
}

/// Expands the variables of `written`, the value of `key`. As in a shell, the default also replaces an empty value.
pub(super) fn variables(
    key: &str,
    written: &str,
    environment: &Environment,
) -> Result<Expanded, EntryError> {
    let mut expanded = Expanded {
        text: String::with_capacity(written.len()),
        variables: Vec::new(),
        secrets: Vec::new(),
    };
    let mut rest = written;
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            expanded.text.push_str(before);
            expanded.text.push_str("${");
            rest = &reference[2..];
            continue;
        }
        expanded.text.push_str(before);
        let unclear = |end: usize, hint| EntryError::Reference {
            key: key.to_owned(),
            written: quotable(&reference[..end]),
            hint,
        };
        let Some(end) = reference.find('}') else {
            return Err(unclear(
                2,
                "a closing `}` is missing, or write `$${` for the characters themselves".to_owned(),
            ));
        };
        let inner = &reference[2..end];
        if let Some(name) = inner.strip_prefix(keyring::PREFIX) {
            let name =
                SecretName::parse(name).ok_or_else(|| unclear(end + 1, keyring_hint(name)))?;
            let missing = |fault| EntryError::Secret {
                key: key.to_owned(),
                name: name.clone(),
                fault,
            };
            let keyring = environment.keyring().ok_or(SecretFault::Absent);
            let secret = keyring
                .and_then(|keyring| keyring.secret(&name))
                .map_err(missing)?;
            expanded.text.push_str(secret.expose());
            expanded.secrets.push(secret);
            rest = &reference[end + 1..];
            continue;
        }
        let (name, default) = inner
            .split_once(":-")
            .map_or((inner, None), |(name, default)| (name, Some(default)));
        if !is_variable_name(name) {
            return Err(unclear(end + 1, hint(inner)));
        }
        if super::env::is_same(name, SECRET_KEY.name) {
            return Err(EntryError::KeyOfSecrets {
                key: key.to_owned(),
                variable: SECRET_KEY.name,
            });
        }
        match (environment.get(name), default) {
            (Some(value), None) => expanded.fill_in(name, value),
            (Some(value), Some(_)) if !value.is_empty() => expanded.fill_in(name, value),
            (_, Some(default)) => expanded.text.push_str(default),
            (None, None) => {
                return Err(EntryError::MissingVariable {
                    key: key.to_owned(),
                    variable: name.to_owned(),
                });
            }
        }
        rest = &reference[end + 1..];
    }
    expanded.text.push_str(rest);
    Ok(expanded)
}

/// The names of the variables that a text refers to.
pub(super) fn variables_in(text: &str) -> Vec<String> {
    let references = text.match_indices("${").filter_map(|(at, _)| {
        let inner = &text[at + 2..];
        let inner = &inner[..inner.find('}')?];
        let name = inner.split_once(":-").map_or(inner, |(name, _)| name);
        (is_variable_name(name) && !text[..at].ends_with('$')).then(|| name.to_owned())
    });
    references.collect()
}

/// `text` with a leading `~` or `~/` replaced. `None` if it has none, or no home directory is known.
pub(super) fn home(text: &str, environment: &Environment) -> Option<String> {
    let rest = home_relative(text)?;
    Some(
        environment
            .home()?
            .join(rest)
            .to_string_lossy()
            .into_owned(),
    )
}

/// The rest after a leading `~/`.
pub(super) fn home_relative(text: &str) -> Option<&str> {
    if text == "~" {
        Some("")
    } else {
        text.strip_prefix("~/")
    }
}

impl Expanded {
    fn fill_in(&mut self, name: &str, value: &str) {
        self.text.push_str(value);
        self.variables.push((name.to_owned(), value.to_owned()));
    }
}

/// The quotation of a reference. One with characters other than those of names may be a secret and is not quoted.
fn quotable(reference: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "${}_:.".contains(c);
    match reference.chars().all(is_plain) {
        true => reference.to_owned(),
        false => "${…}".to_owned(),
    }
}

/// A hint for `${env:NAME}`, which some clients write.
fn hint(inner: &str) -> String {
    if let Some(("keychain" | "secret", name)) = inner.split_once(':')
        && SecretName::parse(name).is_some()
    {
        return format!("write `${{keyring:{name}}}`");
    }
    match inner.strip_prefix("env:") {
        Some(name) if is_variable_name(name) => format!("write `${{{name}}}`"),
        _ => "write `$${` for the characters themselves".to_owned(),
    }
}

/// A hint for a name of a secret that breaks the rule. A default would hide that the secret cannot be read.
fn keyring_hint(name: &str) -> String {
    match name.contains(":-") {
        true => "`${keyring:NAME}` takes no default".to_owned(),
        false => format!("the name of a secret has {}", keyring::NAME_RULE),
    }
}

fn is_variable_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment::from_iter([
            ("A", "one"),
            ("B_2", "two"),
            ("EMPTY", ""),
            ("NESTED", "${A}"),
            ("HOME", "/home/me"),
        ])
    }

    #[test]
    fn variables_are_filled_in() {
        for (written, expected) in [
            ("plain", "plain"),
            ("", ""),
            ("${A}", "one"),
            ("x${A}y${B_2}z", "xoneytwoz"),
            ("${A}${A}", "oneone"),
            ("${A:-default}", "one"),
            ("${NO:-default}", "default"),
            ("${NO:-}", ""),
            ("${NO:-a:-b}", "a:-b"),
            ("${NO:-http://x/?q=$1}", "http://x/?q=$1"),
            ("${EMPTY}", ""),
            ("${EMPTY:-default}", "default"),
            ("${NESTED}", "${A}"),
            ("$A $ $$ 5$", "$A $ $$ 5$"),
            ("$${A}", "${A}"),
            ("$$${A}", "$${A}"),
            ("$${A} ${A}", "${A} one"),
            ("ü${A}ü", "üoneü"),
        ] {
            let expanded =
                variables("args[0]", written, &environment()).map(|expanded| expanded.text);
            assert_eq!(expanded.as_deref(), Ok(expected), "{written}");
        }
    }

    #[test]
    fn what_cannot_be_filled_in_is_named() {
        for (written, expected) in [
            (
                "${NO}",
                "`k` needs the variable `NO`, which is not set; set it where mcpzip is started, store a value with `mcpzip secret set NO` and write `${keyring:NO}`, or write `${NO:-default}`",
            ),
            (
                "x${A",
                "`k` has `${`, which is neither `${NAME}` nor `${NAME:-default}`; a closing `}` is missing, or write \
                 `$${` for the characters themselves",
            ),
            (
                "${env:A}",
                "`k` has `${env:A}`, which is neither `${NAME}` nor `${NAME:-default}`; write `${A}`",
            ),
            (
                "${1}",
                "`k` has `${1}`, which is neither `${NAME}` nor `${NAME:-default}`; write `$${` for the characters \
                 themselves",
            ),
            (
                "${}",
                "`k` has `${}`, which is neither `${NAME}` nor `${NAME:-default}`; write `$${` for the characters \
                 themselves",
            ),
        ] {
            let fault = variables("k", written, &environment()).unwrap_err();
            assert_eq!(fault.to_string(), expected, "{written}");
        }
    }

    #[test]
    fn the_key_of_the_file_of_secrets_is_given_to_no_server() {
        let environment = Environment::from_iter([(SECRET_KEY.name, "hunter2-key")]);
        for written in [
            "${MCPZIP_SECRET_KEY}",
            "x${MCPZIP_SECRET_KEY:-default}",
            "${MCPZIP_SECRET_KEY}${A}",
        ] {
            let fault = variables("k", written, &environment).unwrap_err();
            let said = fault.to_string();
            assert!(
                said.contains("opens all stored secrets") && !said.contains("hunter2"),
                "{said}"
            );
        }
        let literal = variables("k", "$${MCPZIP_SECRET_KEY}", &environment).unwrap();
        assert_eq!(literal.text, "${MCPZIP_SECRET_KEY}");
    }

    #[test]
    fn what_came_from_the_environment_is_remembered() {
        let expanded = variables("k", "${A} ${NO:-default} ${B_2}", &environment()).unwrap();
        let names: Vec<_> = expanded
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(names, [("A", "one"), ("B_2", "two")]);
    }

    #[cfg(unix)]
    #[test]
    fn a_leading_tilde_is_the_home_directory() {
        for (written, expected) in [
            ("~/x/y", Some("/home/me/x/y")),
            ("~", Some("/home/me/")),
            ("~you/x", None),
            ("a/~/x", None),
        ] {
            assert_eq!(
                home(written, &environment()).as_deref(),
                expected,
                "{written}"
            );
        }
        assert_eq!(home("~/x", &Environment::default()), None);
    }
}
