//! Moves the literal secrets of our configuration to the file of secrets next to it.

use std::path::Path;

use super::cache::read_source;
use super::model_key;
use super::servers::{Literals, Servers};
use super::stored::Stored;
use super::{Edit, PlanError, Syntax, secrets};
use crate::config::Environment;
use crate::secret::Masker;

/// A planned move of all literal secrets.
#[derive(Debug)]
pub(crate) struct Extraction {
    /// The literal secrets that move.
    pub literals: Literals,
    /// The names under which they are stored.
    pub names: Vec<String>,
    /// The changed files, the one of secrets first.
    pub edits: Vec<Edit>,
    /// Hides the secrets.
    pub masker: Masker,
}

impl Extraction {
    /// Plans to move the literal secrets of the configuration at `config_file`.
    ///
    /// # Errors
    /// When it or the file of secrets cannot be read or edited.
    pub(crate) fn new(config_file: &Path, environment: &Environment) -> Result<Self, PlanError> {
        let config =
            read_source(config_file, Syntax::Json).map_err(PlanError::unreadable(config_file))?;
        let stored = Stored::of(config_file, environment)?;
        let mut servers = Servers::of(&config.text).with_secrets(stored);
        let mut literals = servers.all_literals();
        literals.extend(model_key::literals(config.text.node()));
        let mut text = config.text.clone();
        let failed = PlanError::edit(config_file);
        let mut steps = servers.store_all_literals(&mut text).map_err(failed)?;
        steps.extend(model_key::store(&mut text, &mut servers).map_err(failed)?);
        // A secret is stored before an entry refers to it.
        let mut edits = Vec::from_iter(servers.edit_of_secrets(config_file)?);
        let edit = Edit::new(None, config_file, Syntax::Json, &config, &text, steps);
        edits.extend(edit);
        let written = secrets::of(config.text.node()).into_iter();
        Ok(Self {
            literals,
            names: servers.stored().added().keys().cloned().collect(),
            edits,
            masker: Masker::new(written.chain(servers.stored().secrets())),
        })
    }
}

/// The literal secrets of the configuration at `config_file`; none if it cannot be read.
#[must_use]
pub(crate) fn literal_secrets(config_file: &Path) -> Literals {
    let config = read_source(config_file, Syntax::Json).ok();
    config.map_or_else(Vec::new, |config| {
        let mut literals = Servers::of(&config.text).all_literals();
        literals.extend(model_key::literals(config.text.node()));
        literals
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// Names and values that are odd in every way that JSON permits.
    const ODD: &str = r#"{
  // kept
  "mcpServers": {
    "my server": {"command": "a", "env": {"API-KEY": "abcdefgh12345", "naïve_TOKEN": "zzzzzzzzz9", "PASSWORD": "abc"}},
    "a.b/c": {"command": "a", "args": ["--token", /* kept */ "plain-secret-1", "--api-key=equals=secret2", "--password", "quote\"s and\\back"], },
    "two": {"url": "https://u:passw0rdX@host/mcp?api_key=abcdefgh12345&x=1", "headers": {"Authorization": "Bearer abcdefgh12345", "X-Api-Key": "pre${FOO}post", "Cookie": "Basic Zm9v YmFy"}},
    "two ": {"command": "b", "env": {"TOKEN": "${TOKEN:-default-secret}", "SECRET": "$${literal}", "GITHUB_TOKEN": "ghp_dollar$x"}},
    "three": {"command": "b", "env": {"API_KEY": "otherotherother", "TWO_TOKEN": "taken-name"}},
    "four": {"command": "b", "env": {"API_KEY": "${API_KEY}"}},
    "five": {"command": "b", "env": {"API_KEY": "line1\nline2\u2028\t'"}},
  }
}"#;

    #[test]
    fn servers_get_the_values_that_they_had() {
        let directory = tempfile::TempDir::new().unwrap();
        let file = directory.path().join("config.json");
        std::fs::write(&file, ODD).unwrap();
        let variables = [
            ("API_KEY", "of-the-shell"),
            ("FOO", "foo"),
            ("TWO_URL", "x"),
        ];
        let environment: Environment = variables.into_iter().collect();
        let before = Config::parse(ODD, &file, &environment).unwrap();
        let made = Extraction::new(&file, &environment).unwrap();
        let [secrets, config] = made.edits.as_slice() else {
            panic!("{:?}", made.edits);
        };
        std::fs::write(&secrets.path, &secrets.after).unwrap();
        let stored = crate::config::stored_secrets(&file).unwrap();
        let after = Config::parse(&config.after, &file, &environment.with(stored.clone())).unwrap();
        assert_eq!(before.servers.len(), 7);
        for (name, entry) in &before.servers {
            let there = &after.servers[name];
            assert_eq!(entry.hash, there.hash, "{name}: {}", config.after);
        }
        assert_eq!(config.after.matches("kept").count(), 2, "{}", config.after);
        for (name, value) in &stored {
            assert!(config.after.contains(&format!("${{{name}}}")), "{name}");
            assert!(
                !config.after.contains(value.as_str()) || value == "abc",
                "{name}"
            );
        }
        let shown: String = made
            .edits
            .iter()
            .map(|edit| edit.diff(&made.masker))
            .collect();
        for secret in ["abcdefgh12345", "passw0rdX", "equals=secret2", "otherother"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        std::fs::write(&file, &config.after).unwrap();
        let again = Extraction::new(&file, &environment).unwrap();
        assert!(again.edits.is_empty(), "{:?}", again.names);
    }
}
