//! A folder of saved scripts: each is a tool, whose call gives the script. The caller runs it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{DIGEST, files, front_matter, legal_name};
use crate::tool::FAULT;

/// The ending of a script's name.
const ENDING: &str = ".js";

/// The paths of the scripts in `folder`.
pub(super) fn paths(folder: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    names(folder).map(|name| folder.join(name))
}

/// The names of the scripts' files. Scripts lie side by side, and no link leads to one.
fn names(folder: &Path) -> impl Iterator<Item = String> {
    let all = files::within(folder).into_iter();
    all.filter(|name| name.ends_with(ENDING) && !name.contains('/'))
}

/// The definitions of all scripts, and the faults of those that cannot be tools.
pub(super) fn definitions(folder: &Path) -> Vec<Value> {
    let defined = names(folder).map(|file| {
        definition(folder, &file).unwrap_or_else(
            |reason| json!({ FAULT: format!("script `{file}` is left out: {reason}") }),
        )
    });
    defined.collect()
}

fn definition(folder: &Path, file: &str) -> Result<Value, String> {
    let stem = file.trim_end_matches(ENDING);
    if legal_name(stem).as_deref() != Some(stem) {
        return Err("its name has other characters than letters, digits, `-` and `_`".to_owned());
    }
    let code = files::read_text(folder, file)?;
    let fields = front_matter::of_script(&code)?;
    let description = fields.get("description").and_then(Value::as_str);
    let description = description.map(str::trim).filter(|text| !text.is_empty());
    let description = description
        .ok_or("it has no `description` between `/*---` and `---*/` at its beginning")?;
    if let Some(name) = fields.get("name")
        && name != stem
    {
        return Err(format!(
            "its `name` is {name}, and must be the file's, `{stem}`"
        ));
    }
    let schema = match fields.get("arguments") {
        None => json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        Some(Value::Object(schema)) => object_schema(schema)?,
        Some(_) => return Err("its `arguments` are no JSON Schema of an object".to_owned()),
    };
    Ok(json!({
        "name": stem,
        "description": description,
        "inputSchema": schema,
        "_meta": { DIGEST: digest(&code) },
    }))
}

/// The schema of all arguments: a whole one, or its properties by name.
fn object_schema(written: &Map<String, Value>) -> Result<Value, String> {
    if written.get("type").is_some_and(Value::is_string) {
        return match written.get("type") == Some(&json!("object")) {
            true => Ok(json!(written)),
            false => Err("its `arguments` are no JSON Schema of an object".to_owned()),
        };
    }
    Ok(json!({ "type": "object", "properties": written, "additionalProperties": false }))
}

fn digest(code: &str) -> String {
    let mut hash = files::Hash::new();
    hash.add("", code.as_bytes());
    hash.finish()
}

/// The script of this name with its digest, as a result of a call; `None` if there is no such one.
///
/// # Errors
/// The reason why it cannot be read.
pub(super) fn answer(folder: &Path, name: &str) -> Option<Result<Value, String>> {
    let file = names(folder).find(|file| file.trim_end_matches(ENDING) == name)?;
    Some(files::read_text(folder, &file).map(|code| {
        json!({ "content": [{ "type": "text", "text": code }], "_meta": { DIGEST: digest(&code) } })
    }))
}
