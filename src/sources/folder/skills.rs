//! A folder of skills: each is a tool that gives its instructions and files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};

use super::{DIGEST, files, front_matter, legal_name};
use crate::tool::FAULT;

/// The scheme of the URIs of files, and the text before a skill's name.
const SCHEME: &str = "skill://";

/// The length of a description, in characters. The specification has the same limit.
const LONGEST_DESCRIPTION: usize = 1_024;

/// A segment of a path in a URI.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// A skill.
#[derive(Debug, Clone)]
pub(super) struct Skill {
    pub(super) name: String,
    folder: PathBuf,
}

/// The skills in `folder` with their names: the front matter's, or else the folder's.
pub(super) fn all(folder: &Path) -> Vec<Skill> {
    let mut taken = BTreeSet::new();
    let named = files::skills(folder).into_iter().map(|folder| {
        let written = files::read_text(&folder, files::SKILL).unwrap_or_default();
        let fields = front_matter::of_markdown(&written).fields;
        let own = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = fields
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let name = legal_name(name)
            .or_else(|| legal_name(&own))
            .unwrap_or_else(|| "skill".to_owned());
        let unique = (1..).map(|number| match number {
            1 => name.clone(),
            number => format!("{name}-{number}"),
        });
        let name = unique
            .into_iter()
            .find(|name| taken.insert(name.clone()))
            .unwrap_or(name);
        Skill { name, folder }
    });
    named.collect()
}

impl Skill {
    /// All paths of files that belong to it.
    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        files::within(&self.folder)
            .into_iter()
            .map(|name| self.folder.join(name))
    }

    /// The names of its files beside `SKILL.md`.
    fn others(&self) -> Vec<String> {
        let mut names = files::within(&self.folder);
        names.retain(|name| name != files::SKILL);
        names
    }

    /// A hash of all its files.
    fn digest(&self) -> Result<String, String> {
        let mut hash = files::Hash::new();
        for name in files::within(&self.folder) {
            hash.add(&name, &files::read(&self.folder, &name)?);
        }
        Ok(hash.finish())
    }

    /// Its definition as a tool, or the fault that keeps it from being one.
    pub(super) fn definition(&self) -> Value {
        let read = || {
            let text = files::read_text(&self.folder, files::SKILL)?;
            Ok::<_, String>((text, self.digest()?))
        };
        let (text, digest) = match read() {
            Ok(read) => read,
            Err(reason) => {
                return json!({ FAULT: format!("skill `{}` is left out: {reason}", self.name) });
            }
        };
        let read = front_matter::of_markdown(&text);
        let described = read.fields.get("description").and_then(Value::as_str);
        let description = described.map(str::trim).filter(|text| !text.is_empty());
        let description = description.unwrap_or_else(|| first_paragraph(read.body));
        let description: String = description.chars().take(LONGEST_DESCRIPTION).collect();
        let others = self.others();
        let schema = match others.is_empty() {
            true => json!({ "type": "object", "properties": {} }),
            false => json!({ "type": "object", "properties": { "file": {
                "type": "string",
                "description": "A file of the skill, to be read in place of its instructions, which name the files",
            } } }),
        };
        json!({
            "name": self.name,
            "description": description,
            "inputSchema": schema,
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
            "_meta": { DIGEST: digest },
        })
    }

    /// The result of a call: the instructions with a list of the files, or the named file.
    ///
    /// # Errors
    /// The reason why the file cannot be had.
    pub(super) fn answer(&self, file: Option<&str>) -> Result<Value, String> {
        // Before the content: a change in between gives a digest of what was before it.
        let digest = self.digest()?;
        let others = self.others();
        let content = match file {
            None => {
                let text = files::read_text(&self.folder, files::SKILL)?;
                let body = front_matter::of_markdown(&text).body;
                let mut content = vec![json!({ "type": "text", "text": body })];
                if !others.is_empty() {
                    let list = format!(
                        "Files of this skill, which `file` reads:\n{}",
                        others.join("\n")
                    );
                    content.push(json!({ "type": "text", "text": list }));
                }
                content
            }
            Some(file) if file == files::SKILL || others.iter().any(|name| name == file) => {
                let read = self.content(file)?;
                match read.get("text") {
                    Some(text) => vec![json!({ "type": "text", "text": text })],
                    None => vec![json!({ "type": "resource", "resource": read })],
                }
            }
            Some(file) => {
                return Err(format!(
                    "skill `{}` has no file `{file}`; it has {}",
                    self.name,
                    listed(&others)
                ));
            }
        };
        if self.digest()? != digest {
            return Err("the skill changed while it was read".to_owned());
        }
        Ok(json!({ "content": content, "_meta": { DIGEST: digest } }))
    }

    /// The definitions of its files as resources.
    pub(super) fn resources(&self) -> Vec<String> {
        let names = files::within(&self.folder).into_iter();
        let all = names.map(|name| {
            json!({ "uri": self.uri(&name), "name": format!("{}/{name}", self.name), "mimeType": media(&name) }).to_string()
        });
        all.collect()
    }

    fn uri(&self, file: &str) -> String {
        format!(
            "{SCHEME}{}/{}",
            self.name,
            utf8_percent_encode(file, SEGMENT)
        )
    }

    /// The content of a file as in the result of `resources/read`.
    fn content(&self, file: &str) -> Result<Value, String> {
        let bytes = files::read(&self.folder, file)?;
        let mut content = json!({ "uri": self.uri(file), "mimeType": media(file) });
        match String::from_utf8(bytes) {
            Ok(text) => content["text"] = text.into(),
            Err(error) => content["blob"] = STANDARD.encode(error.as_bytes()).into(),
        }
        Ok(content)
    }
}

/// The result of reading the resource at `uri`; `None` if no skill has it.
pub(super) fn read(folder: &Path, uri: &str) -> Option<String> {
    let (name, file) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let file = percent_decode_str(file).decode_utf8().ok()?;
    let skill = all(folder).into_iter().find(|skill| skill.name == name)?;
    // Only a file that is listed: a path may lead elsewhere.
    let is_listed = files::within(&skill.folder)
        .iter()
        .any(|known| *known == file);
    let content = is_listed.then(|| skill.content(&file).ok())??;
    Some(json!({ "contents": [content] }).to_string())
}

fn listed(names: &[String]) -> String {
    match names.is_empty() {
        true => "no files".to_owned(),
        false => names.join(", "),
    }
}

/// The first paragraph of a Markdown text that is no heading.
fn first_paragraph(body: &str) -> &str {
    let paragraphs = body.split("\n\n").map(str::trim);
    let mut texts = paragraphs.filter(|text| !text.is_empty() && !text.starts_with('#'));
    texts.next().unwrap_or_else(|| body.trim())
}

/// The media type of a file by its name.
fn media(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "md" => "text/markdown",
        "json" => "application/json",
        "html" => "text/html",
        "csv" => "text/csv",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        _ => "text/plain",
    }
}
