//! The inputs that a server needs from its user.

use std::collections::BTreeMap;

use super::RecipeError;
use crate::registry::wire;
use crate::text::variable_name;

/// One input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    /// Its name in `--env` and `--set`.
    pub name: String,
    /// The description of the input.
    pub description: String,
    /// Whether the server does not run without it.
    pub is_required: bool,
    /// Whether its value must not be written to a file.
    pub is_secret: bool,
    /// Its default value.
    pub default: Option<String>,
    /// Its permitted values; empty permits any.
    pub choices: Vec<String>,
    /// Whether it may be given several times.
    pub is_repeated: bool,
    /// For secrets, the variable that holds the value.
    pub variable: String,
    format: String,
}

/// The user's values, by the inputs' names.
pub(crate) type Given = BTreeMap<String, Vec<String>>;

impl Input {
    pub(super) fn new(
        name: &str,
        input: &wire::Input,
        is_required: bool,
        is_repeated: bool,
        is_env: bool,
        server: &str,
    ) -> Self {
        let is_secret = input.is_secret == Some(true);
        Self {
            name: name.to_owned(),
            description: wire::clean(input.description.as_deref().unwrap_or_default()),
            is_required,
            is_secret,
            // A published default of a secret is not a secret.
            default: input
                .default
                .clone()
                .filter(|default| !is_secret && !default.is_empty()),
            choices: input.choices.clone().unwrap_or_default(),
            is_repeated,
            variable: if is_env {
                name.to_owned()
            } else {
                variable_name(&format!("{server}_{name}"))
            },
            format: input.format.clone().unwrap_or_default(),
        }
    }

    /// Whether the user must still give a value for this input.
    #[must_use]
    pub(crate) fn is_missing(&self, given: &Given) -> bool {
        self.is_required
            && self.default.is_none()
            && !self.is_secret
            && !given.contains_key(&self.name)
    }

    /// The permitted values, in words.
    #[must_use]
    pub(crate) fn expected(&self) -> String {
        match (self.choices.as_slice(), self.format.as_str()) {
            ([], "number") => "a number".to_owned(),
            ([], "boolean") => "true or false".to_owned(),
            ([], "filepath") => "a path".to_owned(),
            ([], _) => String::new(),
            (choices, _) => {
                let choices: Vec<String> = choices
                    .iter()
                    .take(20)
                    .map(|choice| wire::clean(choice))
                    .collect();
                format!("one of {}", choices.join(", "))
            }
        }
    }

    /// Checks that it may have the value `value`. A value that contains a variable is not checked.
    ///
    /// # Errors
    /// When it may not.
    pub(crate) fn check(&self, value: &str) -> Result<(), RecipeError> {
        let is_right = match self.format.as_str() {
            _ if value.contains("${") => true,
            _ if !self.choices.is_empty() => self.choices.iter().any(|choice| choice == value),
            "number" => value.parse::<f64>().is_ok(),
            "boolean" => matches!(value, "true" | "false"),
            _ => true,
        };
        if is_right {
            Ok(())
        } else {
            Err(RecipeError::Input {
                name: self.name.clone(),
                expected: self.expected(),
            })
        }
    }
}
