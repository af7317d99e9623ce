//! A skill as its server listed it: its files, and the check that a file which is read is the listed one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::own_uris;
use crate::sources;

pub(super) use crate::upstream::SKILL_INSTRUCTIONS as INSTRUCTIONS;

/// A skill of a server, by the server's own URIs.
#[derive(Debug)]
pub(super) struct Skill {
    /// The URI of its folder, with the `/` at its end.
    folder: String,
    front: Value,
    /// Its files; `None` if the server does not list them.
    files: Option<Vec<Listed>>,
}

/// A file of a skill.
#[derive(Debug)]
struct Listed {
    uri: String,
    digest: String,
    size: u64,
}

impl Skill {
    /// Reads an entry of `skills/list`.
    pub(super) fn of(entry: &RawValue) -> Option<Self> {
        let entry: Value = serde_json::from_str(entry.get()).ok()?;
        let uri = entry["uri"].as_str()?;
        let listed = |file: &Value| {
            Some(Listed {
                uri: file["uri"].as_str()?.to_owned(),
                digest: file["digest"].as_str()?.to_owned(),
                size: file["size"].as_u64()?,
            })
        };
        let files = match &entry["resources"] {
            Value::Array(files) => Some(files.iter().map(listed).collect::<Option<_>>()?),
            Value::String(kind) if kind == "dynamic" => None,
            _ => return None,
        };
        Some(Self {
            folder: uri.strip_suffix(INSTRUCTIONS)?.to_owned(),
            front: entry["frontmatter"].clone(),
            files,
        })
    }

    /// The URI of a file by its path in the skill, or why there is none.
    pub(super) fn uri_of(&self, name: &str) -> Result<String, String> {
        let Some(files) = &self.files else {
            let is_inside = name.split('/').all(|part| !part.is_empty());
            return match is_inside && !own_uris::leads_elsewhere(name) {
                true => Ok(format!("{}{name}", self.folder)),
                false => Err(format!("`{name}` is not a path in the skill")),
            };
        };
        let mut own = files
            .iter()
            .filter(|file| self.has(&file.uri) && !own_uris::leads_elsewhere(&file.uri));
        let file = own.find(|file| self.path(file) == name);
        file.map(|file| file.uri.clone()).ok_or_else(|| {
            format!(
                "the skill has no file `{name}`; its files are {}",
                self.names().join(", ")
            )
        })
    }

    /// The paths of its files in the skill.
    pub(super) fn names(&self) -> Vec<String> {
        let files = self.files.iter().flatten();
        files.map(|file| self.path(file)).collect()
    }

    /// The URI of its folder, with the `/` at its end.
    pub(super) fn folder(&self) -> &str {
        &self.folder
    }

    /// The URI of its instructions.
    pub(super) fn uri(&self) -> String {
        format!("{}{INSTRUCTIONS}", self.folder)
    }

    /// The URIs of its files and their sizes; `None` if its server does not list them.
    pub(super) fn files(&self) -> Option<impl Iterator<Item = (&str, u64)>> {
        let files = self.files.as_ref()?.iter();
        Some(files.map(|file| (&file.uri[..], file.size)))
    }

    /// Whether it gives `uri`: one of its files, or, if its server does not list them, a path in its folder in plain spelling.
    pub(super) fn gives(&self, uri: &str) -> bool {
        if own_uris::leads_elsewhere(uri) {
            return false;
        }
        let path = uri.strip_prefix(&self.folder);
        match (&self.files, path) {
            (Some(files), Some(_)) => files.iter().any(|file| file.uri == uri),
            (None, Some(path)) => {
                // Windows leaves out dots at the end, and gives other meanings to `~` and `:`.
                let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._/@+,=".contains(&b);
                let is_part = |part: &str| !part.is_empty() && !part.ends_with('.');
                path.bytes().all(is_plain) && path.split('/').all(is_part)
            }
            (_, None) => false,
        }
    }

    /// Whether a server could take this for the URI of something in its folder.
    pub(super) fn may_have(&self, uri: &str) -> bool {
        // The folder itself may have no slash at the end.
        format!("{}/", uri.to_lowercase()).starts_with(&self.folder.to_lowercase())
    }

    /// Whether this is the URI of something in its folder.
    pub(super) fn has(&self, uri: &str) -> bool {
        uri.starts_with(&self.folder)
    }

    /// The bytes of `content`, an entry of `contents` of a reading of `uri`, if they are what was listed. The error is the
    /// beginning of a sentence that ends with "than server `…` has listed".
    pub(super) fn verified(&self, uri: &str, content: &Value) -> Result<Vec<u8>, String> {
        let bytes = match (content["text"].as_str(), content["blob"].as_str()) {
            (Some(text), _) => Some(text.as_bytes().to_vec()),
            (None, Some(blob)) => STANDARD.decode(blob).ok(),
            _ => None,
        };
        let bytes = bytes.ok_or_else(|| "it has no content, other".to_owned())?;
        match &self.files {
            None => {}
            Some(files) => match files.iter().find(|file| file.uri == uri) {
                None => return Err("it has another name".to_owned()),
                Some(listed) if listed.size != bytes.len() as u64 => {
                    return Err(format!("it has another size, {} bytes,", bytes.len()));
                }
                Some(listed) => {
                    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes));
                    if listed.digest != format!("sha256:{digest}") {
                        return Err("it has other bytes".to_owned());
                    }
                }
            },
        }
        if uri.strip_prefix(&self.folder) == Some(INSTRUCTIONS) {
            let text = String::from_utf8_lossy(&bytes);
            if Value::Object(sources::front_matter(&text)) != self.front {
                return Err("its front matter says something else".to_owned());
            }
        }
        Ok(bytes)
    }

    /// Compares a result of `resources/read` with what was listed, as [`Self::verified`] does.
    pub(super) fn verified_result(&self, uri: &str, result: &[u8]) -> Result<(), String> {
        let read: Value = serde_json::from_slice(result).unwrap_or_default();
        match read["contents"].as_array().map(Vec::as_slice) {
            Some([content]) => self.verified(uri, content).map(drop),
            _ => Err("it is not one content, other".to_owned()),
        }
    }

    fn path(&self, file: &Listed) -> String {
        self.path_of(&file.uri)
    }

    /// The path in the skill of the file with this URI.
    pub(super) fn path_of(&self, uri: &str) -> String {
        let path = uri.strip_prefix(&self.folder).unwrap_or(uri);
        let plain = percent_encoding::percent_decode_str(path).decode_utf8();
        plain.map_or_else(|_| path.to_owned(), std::borrow::Cow::into_owned)
    }
}
