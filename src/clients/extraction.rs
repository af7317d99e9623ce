//! Moves the literal secrets of our configuration to the file of secrets next to it, or to the store of `${keyring:NAME}`.

use std::path::{Path, PathBuf};

use super::cache::read_own;
use super::model_key;
use super::servers::{Literals, Servers};
use super::stored::{Destination, Stored};
use super::{Edit, Node, PlanError, Survey, Syntax, Text, references, secrets};
use crate::config::{Environment, SecretName, secrets_file};
use crate::secret::{Masker, Secret};

/// A planned move of all literal secrets.
#[derive(Debug)]
pub(crate) struct Extraction {
    /// The literal secrets that move.
    pub literals: Literals,
    /// The secrets that are stored, by name.
    pub stored: Vec<(String, Secret<String>)>,
    /// The secrets that leave the files: those, and the ones that are stored already.
    pub moved: Vec<(String, Secret<String>)>,
    /// The paths of the texts that are hidden as secrets and stay in the configuration.
    pub staying: Vec<String>,
    /// The changed files, each secret before what refers to it.
    pub edits: Vec<Edit>,
    /// Hides the secrets.
    pub masker: Masker,
}

impl Extraction {
    /// Plans to move the literal secrets of the configuration at `config_file` to `destination`.
    ///
    /// # Errors
    /// When it or the file of secrets cannot be read or edited.
    pub(crate) fn to(
        destination: Destination,
        config_file: &Path,
        environment: &Environment,
    ) -> Result<Self, PlanError> {
        let config = read_own(config_file).map_err(PlanError::unreadable(config_file))?;
        let stored = Stored::of(config_file, environment)?.to(destination);
        let mut servers = Servers::of(&config.text).with_secrets(stored);
        let mut text = config.text.clone();
        let moved = OwnSecrets::store(&mut text, &mut servers, config_file)?;
        // A secret is stored before an entry refers to it, and removed after that.
        let mut edits = Vec::from_iter(servers.edit_of_secrets(config_file)?);
        let edit = Edit::new(None, config_file, Syntax::Json, &config, &text, moved.steps);
        edits.extend(edit);
        edits.extend(moved.file);
        let written = secrets::of(config.text.node()).into_iter();
        let added = servers.stored().added().iter();
        Ok(Self {
            literals: moved.literals,
            staying: secrets::places(text.node()),
            stored: added
                .map(|(name, value)| (name.clone(), Secret::new(value.clone())))
                .collect(),
            moved: servers.stored().moved(),
            edits,
            masker: Masker::new(written.chain(servers.stored().secrets())),
        })
    }
}

/// The move of the secrets in our own files.
pub(super) struct OwnSecrets {
    /// The literal ones, and those of the file of secrets.
    pub(super) literals: Literals,
    /// The changed values of the configuration.
    pub(super) steps: Vec<Vec<String>>,
    /// The file of secrets without those that leave it.
    pub(super) file: Option<Edit>,
}

impl OwnSecrets {
    /// Stores the secrets of all `servers`, and changes `text`, the configuration, so that it refers to them.
    pub(super) fn store(
        text: &mut Text,
        servers: &mut Servers,
        config_file: &Path,
    ) -> Result<Self, PlanError> {
        let mut literals = servers.all_literals();
        literals.extend(model_key::literals(text.node()));
        let failed = PlanError::edit(config_file);
        let mut steps = servers.store_all_literals(text).map_err(failed)?;
        steps.extend(model_key::store(text, servers).map_err(failed)?);
        let mut moved = Self {
            literals,
            steps,
            file: None,
        };
        if servers.stored().is_keyring() {
            moved.empty_file(text, servers, config_file)?;
        }
        Ok(moved)
    }

    /// Moves the values of the file of secrets to the store of `${keyring:NAME}`.
    fn empty_file(
        &mut self,
        text: &mut Text,
        servers: &mut Servers,
        config_file: &Path,
    ) -> Result<(), PlanError> {
        let values = servers.stored().in_file().clone().into_iter();
        let fits = |(name, value): &(String, String)| {
            SecretName::parse(name).is_some() && !value.is_empty() && !value.contains('\0')
        };
        let values: Vec<(String, String)> = values.filter(fits).collect();
        if values.is_empty() {
            return Ok(());
        }
        let failed = PlanError::edit(config_file);
        for (name, value) in &values {
            let reference = servers.store_value("stored", name.clone(), value.clone());
            let mut changed = Vec::new();
            texts(text.node(), &mut Vec::new(), &mut |path, written| {
                let new = references::replaced(written, name, &reference);
                changed.extend(new.map(|new| (path.to_vec(), new)));
            });
            for (path, new) in changed {
                text.set(&path, &Node::Text(new)).map_err(failed)?;
                self.steps.push(path);
            }
        }
        let path = secrets_file(config_file);
        let source = read_own(&path).map_err(PlanError::unreadable(&path))?;
        let mut rest = source.text.clone();
        let names: Vec<Vec<String>> = values.iter().map(|(name, _)| vec![name.clone()]).collect();
        for name in &names {
            rest.remove(name).map_err(PlanError::edit(&path))?;
        }
        let edit = Edit::new(None, &path, Syntax::Json, &source, &rest, names);
        self.file = edit.map(|edit| edit.of_secrets([&source.text, &rest]));
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let names = values.into_iter().map(|(name, _)| name);
        self.literals.push((file.into_owned(), names.collect()));
        Ok(())
    }
}

/// Visits each text in `node` with its path.
fn texts(node: &Node, path: &mut Vec<String>, visit: &mut impl FnMut(&[String], &str)) {
    let inner: Vec<(String, &Node)> = match node {
        Node::Text(text) => return visit(path.as_slice(), text),
        Node::List(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, item)| (at.to_string(), item)).collect()
        }
        _ => {
            let members = node.members().into_iter();
            members
                .map(|(name, node)| (name.to_owned(), node))
                .collect()
        }
    };
    for (name, node) in inner {
        path.push(name);
        texts(node, path, visit);
        path.pop();
    }
}

/// The literal secrets in clients' files: the file, the server, and the names of their keys.
#[must_use]
pub(crate) fn client_literals(survey: &Survey) -> Vec<(PathBuf, String, Vec<String>)> {
    let found = survey.found.iter().filter(|found| !found.is_mcpzip);
    let literals = found.filter_map(|found| {
        let entry = found.entry.as_ref().ok()?;
        if entry.other_proxy().is_some() {
            return None;
        }
        let keys = super::servers::literal_keys(&found.name, &entry.to_node());
        (!keys.is_empty()).then(|| (found.location.path.clone(), found.name.clone(), keys))
    });
    literals.collect()
}

/// The literal secrets of the configuration at `config_file`; none if it cannot be read.
#[must_use]
pub(crate) fn literal_secrets(config_file: &Path) -> Literals {
    let config = read_own(config_file).ok();
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
        let made = Extraction::to(Destination::File, &file, &environment).unwrap();
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
        let again = Extraction::to(Destination::File, &file, &environment).unwrap();
        assert!(again.edits.is_empty(), "{:?}", again.stored);
    }
}
