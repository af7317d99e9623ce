//! The texts of the configuration that refer to secrets.

use jsonc_parser::ast::Value;

use super::keyring::{SecretName, secrets_in};
use super::{Config, Environment, Error, Paths, expand, file};

/// A use of a secret, by the name of one of the keyring or of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretUse<N = SecretName> {
    /// The secret.
    pub(crate) name: N,
    /// The path of the text that refers to it, such as `mcpServers.github.env.TOKEN`.
    pub(crate) path: String,
}

/// The uses of secrets of the keyring in the configuration, in its order.
///
/// # Errors
/// When it cannot be read, or is not JSON.
pub(crate) fn secret_uses(
    paths: &Paths,
    environment: &Environment,
) -> Result<Vec<SecretUse>, Error> {
    uses(paths, environment, secrets_in)
}

/// The uses of variables in the configuration, which the file of secrets may have, in its order.
///
/// # Errors
/// When it cannot be read, or is not JSON.
pub(crate) fn variable_uses(
    paths: &Paths,
    environment: &Environment,
) -> Result<Vec<SecretUse<String>>, Error> {
    uses(paths, environment, expand::variables_in)
}

fn uses<N>(
    paths: &Paths,
    environment: &Environment,
    names_in: fn(&str) -> Vec<N>,
) -> Result<Vec<SecretUse<N>>, Error> {
    let text = Config::text(paths, environment)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut uses = Vec::new();
    // The reader of the configuration says what is wrong with it.
    if let Ok(Some(root)) = file::parse(text) {
        collect("", &root, names_in, &mut uses);
    }
    Ok(uses)
}

fn collect<N>(
    path: &str,
    value: &Value<'_>,
    names_in: fn(&str) -> Vec<N>,
    uses: &mut Vec<SecretUse<N>>,
) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::StringLit(text) => {
            let names = names_in(&text.value).into_iter();
            uses.extend(names.map(|name| SecretUse {
                name,
                path: path.to_owned(),
            }));
        }
        Value::Object(object) => {
            for member in &object.properties {
                collect(&below(member.name.as_str()), &member.value, names_in, uses);
            }
        }
        Value::Array(array) => {
            for (at, item) in array.elements.iter().enumerate() {
                collect(&format!("{path}[{at}]"), item, names_in, uses);
            }
        }
        _ => {}
    }
}
