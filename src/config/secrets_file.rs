//! The file of secrets next to the configuration: a map of names to the values of `${NAME}`.
//!
//! A value in it takes precedence over a variable of the environment, so that a secret that was moved into it keeps its
//! value if a shell exports another.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::env::Environment;
use super::error::Error;
use super::file;
use super::paths::is_inline;
use super::{LARGEST_FILE, expand};
use crate::files::read_regular;

/// The path of the secrets of the configuration at `config_file`.
#[must_use]
pub(crate) fn secrets_file(config_file: &Path) -> PathBuf {
    config_file.with_extension("secrets.json")
}

/// `environment` with the stored secrets of the configuration at `config_file`.
///
/// # Errors
/// When the file exists and is not a map of texts.
pub(super) fn with_secrets(
    config_file: &Path,
    environment: &Environment,
) -> Result<Environment, Error> {
    Ok(environment.with(stored_secrets(config_file)?))
}

/// The stored secrets of the configuration at `config_file`, by name; none if there is no file.
///
/// # Errors
/// When the file exists and is not a map of texts.
pub(crate) fn stored_secrets(config_file: &Path) -> Result<BTreeMap<String, String>, Error> {
    if is_inline(config_file) {
        return Ok(BTreeMap::new());
    }
    let path = secrets_file(config_file);
    let bytes = match read_regular(&path, LARGEST_FILE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(source) => return Err(Error::Secrets { path, source }),
    };
    values(&bytes).ok_or_else(|| Error::Secrets {
        path,
        source: io::Error::other("is not an object of texts such as {\"GITHUB_TOKEN\": \"...\"}"),
    })
}

fn values(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(root) = file::parse(text).ok()? else {
        return Some(BTreeMap::new());
    };
    let jsonc_parser::ast::Value::Object(object) = root else {
        return None;
    };
    let pairs = object.properties.into_iter().map(|property| {
        let jsonc_parser::ast::Value::StringLit(value) = property.value else {
            return None;
        };
        Some((property.name.into_string(), value.value.into_owned()))
    });
    pairs.collect()
}

/// `text` with its references filled in from `environment`. `None` if one cannot be filled in.
#[must_use]
pub(crate) fn filled_in(text: &str, environment: &Environment) -> Option<String> {
    let expanded = expand::variables("", text, environment).ok()?;
    Some(expanded.text)
}
