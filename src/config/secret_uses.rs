//! The texts of the configuration that refer to secrets.

use jsonc_parser::ast::Value;

use super::keyring::{SecretName, secrets_in};
use super::{Config, Environment, Error, Paths, file};

/// A use of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretUse {
    /// The secret.
    pub(crate) name: SecretName,
    /// The path of the text that refers to it, such as `mcpServers.github.env.TOKEN`.
    pub(crate) path: String,
}

/// The uses of secrets in the configuration, in its order.
///
/// # Errors
/// When it cannot be read, or is not JSON.
pub(crate) fn secret_uses(
    paths: &Paths,
    environment: &Environment,
) -> Result<Vec<SecretUse>, Error> {
    let text = Config::text(paths, environment)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut uses = Vec::new();
    // The reader of the configuration says what is wrong with it.
    if let Ok(Some(root)) = file::parse(text) {
        collect("", &root, &mut uses);
    }
    Ok(uses)
}

fn collect(path: &str, value: &Value<'_>, uses: &mut Vec<SecretUse>) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    match value {
        Value::StringLit(text) => {
            let names = secrets_in(&text.value).into_iter();
            uses.extend(names.map(|name| SecretUse {
                name,
                path: path.to_owned(),
            }));
        }
        Value::Object(object) => {
            for member in &object.properties {
                collect(&below(member.name.as_str()), &member.value, uses);
            }
        }
        Value::Array(array) => {
            for (at, item) in array.elements.iter().enumerate() {
                collect(&format!("{path}[{at}]"), item, uses);
            }
        }
        _ => {}
    }
}
