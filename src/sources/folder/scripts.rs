//! A folder of saved scripts: each is a tool, whose call gives the script. The caller runs it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{DIGEST, files, front_matter, legal_name};
use crate::tool::FAULT;

/// The ending of a script's name.
const ENDING: &str = ".js";

/// The paths of the scripts in `folder`.
pub(super) fn paths(folder: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    let names = files(folder).unwrap_or_default().into_iter();
    names.map(|name| folder.join(format!("{name}{ENDING}")))
}

/// The names of the scripts, without their ending. Scripts lie side by side, and no link leads to one.
fn files(folder: &Path) -> Result<Vec<String>, String> {
    let all = files::beside(folder)?.into_iter();
    let stems = all.filter_map(|name| Some(name.strip_suffix(ENDING)?.to_owned()));
    Ok(stems.collect())
}

/// The definitions of all scripts, and the faults of those that cannot be tools.
///
/// # Errors
/// When there are too many files.
pub(super) fn definitions(folder: &Path) -> Result<Vec<Value>, String> {
    let defined = files(folder)?.into_iter().map(|name| {
        definition(folder, &name).unwrap_or_else(
            |reason| json!({ FAULT: format!("script `{name}{ENDING}` is left out: {reason}") }),
        )
    });
    Ok(defined.collect())
}

fn definition(folder: &Path, name: &str) -> Result<Value, String> {
    if legal_name(name).as_deref() != Some(name) {
        return Err(
            "its name must have letters, digits, `-` and `_` only, 64 at most, and no `-` at an end"
                .to_owned(),
        );
    }
    let code = files::read_text(folder, &format!("{name}{ENDING}"))?;
    let fields = front_matter::of_script(&code)?;
    let description = fields.get("description").and_then(Value::as_str);
    let description = description.map(str::trim).filter(|text| !text.is_empty());
    let description = description
        .ok_or("it has no `description` between `/*---` and `---*/` at its beginning")?;
    if fields.get("name").is_some_and(|own| own != name) {
        return Err(format!("its `name` must be the file's, `{name}`"));
    }
    let schema = match fields.get("arguments") {
        None => json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        Some(Value::Object(schema)) => object_schema(schema)?,
        Some(_) => return Err("its `arguments` are no JSON Schema of an object".to_owned()),
    };
    Ok(json!({
        "name": name,
        "description": description,
        "inputSchema": schema,
        "_meta": { DIGEST: digest(&code) },
    }))
}

/// The schema of all arguments: a whole one, or its properties by name.
fn object_schema(written: &Map<String, Value>) -> Result<Value, String> {
    let schema = match written.get("type") {
        Some(kind) if kind.is_string() => json!(written),
        _ => json!({ "type": "object", "properties": written, "additionalProperties": false }),
    };
    let is_object = schema.get("type") == Some(&json!("object"));
    match is_object && jsonschema::meta::is_valid(&schema) {
        true => Ok(schema),
        false => Err("its `arguments` are no JSON Schema of an object".to_owned()),
    }
}

fn digest(code: &str) -> String {
    let mut hash = files::Hash::new();
    hash.add("", code.as_bytes());
    hash.finish()
}

/// The script of this name and its digest; `None` if there is no such one.
///
/// # Errors
/// The reason why it cannot be read.
pub(super) fn read(folder: &Path, name: &str) -> Option<Result<(String, String), String>> {
    let is_there = files(folder).ok()?.iter().any(|known| known == name);
    let file = is_there.then(|| format!("{name}{ENDING}"))?;
    Some(files::read_text(folder, &file).map(|code| {
        let digest = digest(&code);
        (code, digest)
    }))
}

/// The script of this name with its digest, as a result of a call; `None` if there is no such one.
///
/// # Errors
/// The reason why it cannot be read.
pub(super) fn answer(folder: &Path, name: &str) -> Option<Result<Value, String>> {
    let read = read(folder, name)?;
    Some(read.map(|(code, digest)| {
        json!({ "content": [{ "type": "text", "text": code }], "_meta": { DIGEST: digest } })
    }))
}
