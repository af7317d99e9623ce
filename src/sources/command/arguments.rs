//! The arguments of a call as those of the program: a list, which never passes a shell.
//!
//! A value cannot become a flag: it follows its flag, comes after `--`, or is refused if it begins with `-`.

use serde_json::{Map, Value};

use super::page::{Flag, Positional};
use super::tools::{Form, INPUT, REST, Tool, placeholders};

type Given = Map<String, Value>;

impl Tool {
    /// The program's arguments, and the text for its stdin.
    ///
    /// # Errors
    /// The reason why the arguments cannot be used.
    pub(super) fn arguments(&self, given: &Given) -> Result<(Vec<String>, Option<String>), String> {
        let input = given
            .get(INPUT)
            .map(|value| text(INPUT, value))
            .transpose()?;
        match &self.form {
            Form::Subcommand {
                path,
                flags,
                positionals,
                has_expression,
                has_end_of_flags,
            } => {
                let is_free = positionals.is_none();
                let is_known = |name: &str| {
                    let mut positionals = positionals.iter().flatten();
                    name == INPUT
                        || name == REST && is_free
                        || flags.iter().any(|(known, _)| known == name)
                        || positionals.any(|one| one.name == name)
                };
                // The agent may know the tool as it was before the program changed.
                if let Some(name) = given.keys().find(|name| !is_known(name)) {
                    return Err(format!("there is no argument `{name}`"));
                }
                let (mut line, mut expression) = (path.clone(), Vec::new());
                for (name, flag) in flags {
                    let is_first = !has_expression || flag.long.is_none();
                    let line = if is_first { &mut line } else { &mut expression };
                    if let Some(value) = given.get(name).filter(|value| !value.is_null()) {
                        add_flag(name, flag, value, line)?;
                    }
                }
                let rest = match positionals {
                    Some(list) => named(list, given)?,
                    None => given
                        .get(REST)
                        .map(|value| texts(REST, value))
                        .transpose()?
                        .unwrap_or_default(),
                };
                if let Some(value) = rest
                    .iter()
                    .find(|value| value.starts_with('-') && *value != "-")
                {
                    if !has_end_of_flags {
                        return Err(format!(
                            "`{value}` begins with `-`, and would be read as a flag: flags have arguments of their own"
                        ));
                    }
                    line.push("--".to_owned());
                }
                line.extend(rest);
                line.extend(expression);
                Ok((line, input))
            }
            Form::Words(words) => {
                let line: Result<Vec<Option<String>>, String> =
                    words.iter().map(|word| fill_in(word, given)).collect();
                Ok((line?.into_iter().flatten().collect(), input))
            }
        }
    }
}

fn add_flag(name: &str, flag: &Flag, value: &Value, line: &mut Vec<String>) -> Result<(), String> {
    let spelling = flag.long.as_ref().or(flag.short.as_ref());
    let spelling = spelling.ok_or_else(|| format!("`{name}` has no spelling"))?;
    let Some(kind) = &flag.value else {
        match value {
            Value::Bool(true) if flag.is_on => {}
            Value::Bool(true) => line.push(spelling.clone()),
            Value::Bool(false) if flag.is_negatable => {
                line.push(format!("--no-{}", spelling.trim_start_matches('-')));
            }
            Value::Bool(false) if flag.is_on => line.push(format!("{spelling}=false")),
            Value::Bool(false) => {}
            _ => return Err(format!("`{name}` must be true or false")),
        }
        return Ok(());
    };
    if kind.more > 0 {
        return add_several(name, spelling, kind.more + 1, value, line);
    }
    let values = match value {
        Value::Array(values) if flag.is_repeated => values.iter().collect(),
        value => vec![value],
    };
    for value in values {
        if kind.is_optional && *value == Value::Bool(true) {
            line.push(spelling.clone());
            continue;
        }
        let value = text(name, value)?;
        let is_long = spelling.starts_with("--");
        if is_long && (kind.is_attached || kind.is_optional || value.starts_with('-')) {
            line.push(format!("{spelling}={value}"));
        } else if kind.is_optional {
            line.push(format!("{spelling}{value}"));
        } else if value.starts_with('-') && value != "-" {
            return Err(format!(
                "`{name}`: `{value}` begins with `-`, and would be read as a flag"
            ));
        } else {
            line.extend([spelling.clone(), value]);
        }
    }
    Ok(())
}

/// Adds a flag with `count` values, once for each group of as many.
fn add_several(
    name: &str,
    spelling: &str,
    count: usize,
    value: &Value,
    line: &mut Vec<String>,
) -> Result<(), String> {
    let values = texts(name, value)?;
    if values.is_empty() || values.len() % count != 0 {
        return Err(format!("`{name}` takes {count} values at a time"));
    }
    if let Some(value) = values
        .iter()
        .find(|value| value.starts_with('-') && *value != "-")
    {
        return Err(format!(
            "`{name}`: `{value}` begins with `-`, and would be read as a flag"
        ));
    }
    for group in values.chunks(count) {
        line.push(spelling.to_owned());
        line.extend_from_slice(group);
    }
    Ok(())
}

/// The values of positional arguments, in order.
fn named(list: &[Positional], given: &Given) -> Result<Vec<String>, String> {
    let mut line = Vec::new();
    let mut missing: Option<&str> = None;
    for one in list {
        let Some(value) = given.get(&one.name).filter(|value| !value.is_null()) else {
            if one.is_required {
                return Err(format!("`{}` is missing", one.name));
            }
            missing = Some(&one.name);
            continue;
        };
        if let Some(missing) = missing {
            return Err(format!(
                "`{}` can only follow `{missing}`, which is missing",
                one.name
            ));
        }
        if one.is_repeated {
            line.extend(texts(&one.name, value)?);
        } else {
            line.push(text(&one.name, value)?);
        }
    }
    Ok(line)
}

/// A word of the entry with its arguments. `None` if an argument that is the whole word is missing.
fn fill_in(word: &str, given: &Given) -> Result<Option<String>, String> {
    let mut filled = String::new();
    let mut rest = word;
    for name in placeholders(word) {
        let written = format!("{{{name}}}");
        let value = match given.get(&name) {
            None | Some(Value::Null) if written == word => return Ok(None),
            None | Some(Value::Null) => return Err(format!("`{name}` is missing")),
            Some(value) => text(&name, value)?,
        };
        // A value is never filled in again.
        if let Some((before, after)) = rest.split_once(&written) {
            filled.push_str(before);
            filled.push_str(&value);
            rest = after;
        }
    }
    filled.push_str(rest);
    if filled.starts_with('-') && filled != "-" && !word.starts_with('-') {
        return Err(format!(
            "`{filled}` begins with `-`, and would be read as a flag"
        ));
    }
    Ok(Some(filled))
}

fn texts(name: &str, value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(values) => values.iter().map(|value| text(name, value)).collect(),
        value => Ok(vec![text(name, value)?]),
    }
}

/// A value as the program gets it.
fn text(name: &str, value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => return Err(format!("`{name}` must be a string or a number")),
    };
    if text.contains('\0') {
        return Err(format!("`{name}` has a NUL character"));
    }
    Ok(text)
}
