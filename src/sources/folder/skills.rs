//! A folder of skills. A skill with the front matter that the format requires is an entry of `skills/list`, as on a
//! server of skills. Any other is a tool that gives its instructions and files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{DIGEST, files, front_matter, legal_name};
use crate::tool::FAULT;

/// The scheme of the URIs of files, and the text before a skill's name.
const SCHEME: &str = "skill://";

/// The length of a name, in bytes.
const LONGEST_NAME: usize = 64;

/// The length of a description, in characters. The specification has the same limit.
const LONGEST_DESCRIPTION: usize = 1_024;

/// A segment of a path in a URI.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// The size limit of all files of a skill, in bytes; readers of skills need not take more.
const LARGEST: usize = 16 * 1024 * 1024;

/// The files of a skill, as they were read.
struct Read {
    names: Vec<String>,
    /// The hash of all of them.
    digest: String,
    /// Its entries of the list of files.
    listed: Vec<Value>,
    /// The content of the file that was wanted.
    content: Option<Vec<u8>>,
}

/// A skill.
#[derive(Debug, Clone)]
pub(super) struct Skill {
    pub(super) name: String,
    folder: PathBuf,
    /// The front matter, if it is one that the format permits.
    front: Option<Map<String, Value>>,
}

/// The skills in `folder` with their names: the front matter's, or else the folder's.
pub(super) fn all(folder: &Path) -> Vec<Skill> {
    let (mut taken, mut numbers) = (BTreeSet::new(), BTreeMap::new());
    let named = files::skills(folder).into_iter().map(|folder| {
        let written = files::read_text(&folder, files::SKILL).unwrap_or_default();
        let read = front_matter::of_markdown(&written);
        let front = is_permitted(&read).then(|| read.fields.clone());
        let fields = read.fields;
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
        // The next number for this name; a name of its own may be like one with a number.
        let number: &mut usize = numbers.entry(name.clone()).or_default();
        let unique = loop {
            *number += 1;
            let unique = match *number {
                1 => name.clone(),
                number => format!("{name}-{number}"),
            };
            if taken.insert(unique.clone()) {
                break unique;
            }
        };
        Skill {
            name: unique,
            folder,
            front,
        }
    });
    named.collect()
}

/// The definitions of all skills, and the faults of those that cannot be tools.
pub(super) fn definitions(folder: &Path) -> Vec<Value> {
    let all = all(folder);
    let others = all.iter().filter(|skill| !skill.is_listed());
    let mut definitions: Vec<Value> = others.map(Skill::definition).collect();
    if all.len() >= files::MOST_SKILLS {
        let most = files::MOST_SKILLS;
        definitions.push(json!({ FAULT: format!("skills after the first {most} are left out") }));
    }
    definitions
}

/// The entries of the skills that are listed, or the faults of those that cannot be.
pub(super) fn entries(folder: &Path) -> Vec<String> {
    let all = all(folder);
    let listed = all.iter().filter_map(Skill::entry);
    listed.map(|entry| entry.to_string()).collect()
}

/// Whether a front matter is what the format requires: YAML with a name of lower-case words, and a description.
fn is_permitted(front: &front_matter::FrontMatter<'_>) -> bool {
    let text = |key| {
        front
            .fields
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let name = text("name");
    let is_word = |word: &str| {
        let mut bytes = word.bytes();
        !word.is_empty() && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    front.is_yaml
        && name.len() <= LONGEST_NAME
        && name.split('-').all(is_word)
        && !text("description").trim().is_empty()
}

/// The paths of all files of the skills in `folder`.
pub(super) fn paths(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let skills = files::skills(folder).into_iter();
    skills.flat_map(|folder| {
        let names = files::within(&folder).unwrap_or_default().into_iter();
        names.map(move |name| folder.join(name))
    })
}

impl Skill {
    /// Reads all its files: their names, a hash of all, and the content of `wanted` if it is one of them. The content is what was hashed.
    fn read(&self, wanted: &str) -> Result<Read, String> {
        let names = files::within(&self.folder)?;
        let (mut hash, mut content, mut size) = (files::Hash::new(), None, 0);
        let mut listed = Vec::new();
        for name in &names {
            let bytes = files::read(&self.folder, name)?;
            size += bytes.len();
            if size > LARGEST {
                return Err(format!(
                    "its files have more than {} MB",
                    LARGEST / 1024 / 1024
                ));
            }
            hash.add(name, &bytes);
            let digest = HEXLOWER.encode(&Sha256::digest(&bytes));
            listed.push(json!({ "uri": self.uri(name), "digest": format!("sha256:{digest}"), "size": bytes.len() }));
            if name == wanted {
                content = Some(bytes);
            }
        }
        Ok(Read {
            names,
            digest: hash.finish(),
            listed,
            content,
        })
    }

    /// The instructions, the names of the other files, and a hash of all.
    fn instructions(&self) -> Result<(String, Vec<String>, String), String> {
        let Read {
            mut names,
            digest,
            content,
            ..
        } = self.read(files::SKILL)?;
        let content = content.ok_or_else(|| format!("it has no `{}` any more", files::SKILL))?;
        names.retain(|name| name != files::SKILL);
        Ok((
            String::from_utf8_lossy(&content).into_owned(),
            names,
            digest,
        ))
    }

    /// Whether it is an entry of the list of skills, and not a tool.
    pub(super) fn is_listed(&self) -> bool {
        self.front.is_some()
    }

    /// Its entry of the list of skills, or the fault that keeps it from being one.
    fn entry(&self) -> Option<Value> {
        let front = self.front.as_ref()?;
        Some(match self.read(files::SKILL) {
            Ok(read) => {
                json!({ "uri": self.uri(files::SKILL), "frontmatter": front, "resources": read.listed })
            }
            Err(reason) => self.fault(&reason),
        })
    }

    fn fault(&self, reason: &str) -> Value {
        json!({ FAULT: format!("skill `{}` is left out: {reason}", self.name) })
    }

    /// Its definition as a tool, or the fault that keeps it from being one.
    fn definition(&self) -> Value {
        let (text, others, digest) = match self.instructions() {
            Ok(read) => read,
            Err(reason) => return self.fault(&reason),
        };
        let read = front_matter::of_markdown(&text);
        let described = read.fields.get("description").and_then(Value::as_str);
        let description = described.map(str::trim).filter(|text| !text.is_empty());
        let description = description.unwrap_or_else(|| first_paragraph(read.body));
        let description: String = description.chars().take(LONGEST_DESCRIPTION).collect();
        let schema = match others.is_empty() {
            true => json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            false => json!({ "type": "object", "properties": { "file": {
                "type": "string",
                "description": "Path of one of the skill's files. Without it, the instructions are returned.",
            } }, "additionalProperties": false }),
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
        let Some(file) = file else {
            let (text, others, digest) = self.instructions()?;
            let body = front_matter::of_markdown(&text).body;
            let mut content = vec![json!({ "type": "text", "text": body })];
            if !others.is_empty() {
                let list = format!(
                    "Files of this skill, which `file` reads:\n{}",
                    others.join("\n")
                );
                content.push(json!({ "type": "text", "text": list }));
            }
            return Ok(json!({ "content": content, "_meta": { DIGEST: digest } }));
        };
        let Read {
            digest, content, ..
        } = self.read(file)?;
        let Some(bytes) = content else {
            return Err(format!("skill `{}` has no file `{file}`", self.name));
        };
        let read = self.content(file, bytes);
        let content = match read.get("text") {
            Some(text) => json!({ "type": "text", "text": text }),
            None => json!({ "type": "resource", "resource": read }),
        };
        Ok(json!({ "content": [content], "_meta": { DIGEST: digest } }))
    }

    /// The definitions of its files as resources.
    pub(super) fn resources(&self) -> Vec<String> {
        let names = files::within(&self.folder).unwrap_or_default();
        let all = names.into_iter().map(|name| {
            let (uri, media) = (self.uri(&name), media(&name).unwrap_or("text/plain"));
            let mut resource =
                json!({ "uri": uri, "name": format!("{}/{name}", self.name), "mimeType": media });
            // The instructions have the name and the description of the skill.
            if let Some(front) = self.front.as_ref().filter(|_| name == files::SKILL) {
                for key in ["name", "description"] {
                    resource[key] = front.get(key).cloned().unwrap_or_default();
                }
            }
            resource.to_string()
        });
        all.collect()
    }

    fn uri(&self, file: &str) -> String {
        format!(
            "{SCHEME}{}/{}",
            self.path(),
            utf8_percent_encode(file, SEGMENT)
        )
    }

    /// The path in its URIs. The last part of that of a listed skill is the name in its front matter.
    fn path(&self) -> String {
        let front = self.front.as_ref().and_then(|front| front.get("name"));
        match front.and_then(Value::as_str) {
            Some(name) if name != self.name => format!("{}/{name}", self.name),
            _ => self.name.clone(),
        }
    }

    /// The content of a file as in the result of `resources/read`.
    fn content(&self, file: &str, bytes: Vec<u8>) -> Value {
        let (uri, media) = (self.uri(file), media(file));
        match String::from_utf8(bytes) {
            Ok(text) => {
                json!({ "uri": uri, "mimeType": media.unwrap_or("text/plain"), "text": text })
            }
            Err(error) => {
                let blob = STANDARD.encode(error.as_bytes());
                json!({ "uri": uri, "mimeType": media.unwrap_or("application/octet-stream"), "blob": blob })
            }
        }
    }
}

/// The result of reading the resource at `uri`; `None` if no skill has it. Those of skills that are not listed are read with `has_all` only.
pub(super) fn read(folder: &Path, uri: &str, has_all: bool) -> Option<String> {
    let path = uri.strip_prefix(SCHEME)?;
    let (skill, file) = all(folder).into_iter().find_map(|skill| {
        let file = path.strip_prefix(&skill.path())?.strip_prefix('/')?;
        (has_all || skill.is_listed()).then_some((skill, file))
    })?;
    let file = percent_decode_str(file).decode_utf8().ok()?;
    // Only a file that is listed: a path may lead elsewhere.
    let names = files::within(&skill.folder).ok()?;
    let is_listed = names.iter().any(|known| *known == file);
    let bytes = is_listed.then(|| files::read(&skill.folder, &file).ok())??;
    Some(json!({ "contents": [skill.content(&file, bytes)] }).to_string())
}

/// The first paragraph of a Markdown text that is not a heading.
fn first_paragraph(body: &str) -> &str {
    let paragraphs = body.split("\n\n").flat_map(|part| part.split("\n\r\n"));
    let paragraphs = paragraphs.map(str::trim);
    let mut texts = paragraphs.filter(|text| !text.is_empty() && !text.starts_with('#'));
    texts.next().unwrap_or_else(|| body.trim())
}

/// The media type of a file by its name.
fn media(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "md" => "text/markdown",
        "json" => "application/json",
        "html" => "text/html",
        "csv" => "text/csv",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        _ => return None,
    })
}
