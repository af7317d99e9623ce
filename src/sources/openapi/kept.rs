//! The cache of fetched descriptions on disk: a call in a new process needs no fetch, and the next listing sends the `ETag`.
//!
//! A file has a line of JSON with the tags, and then the description as received.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use data_encoding::HEXLOWER;
use http::HeaderValue;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::files;

/// The size limit of a description, in bytes.
pub(super) const LARGEST: usize = 64 * 1024 * 1024;

/// The state of a description when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Version {
    File(Option<(SystemTime, u64)>),
    Answer {
        tag: Option<HeaderValue>,
        modified: Option<HeaderValue>,
    },
}

/// The place of one description on disk.
#[derive(Debug)]
pub(super) struct Kept(Option<PathBuf>);

#[derive(Serialize, Deserialize)]
struct Head {
    tag: Option<String>,
    modified: Option<String>,
}

impl Kept {
    /// The place for `key` in `directory`; `None` keeps nothing.
    pub(super) fn of(directory: Option<&Path>, key: &str) -> Self {
        let hash = HEXLOWER.encode(&Sha256::digest(key)[..12]);
        Self(directory.map(|directory| directory.join(hash)))
    }

    /// The kept description.
    pub(super) fn load(&self) -> Option<(Vec<u8>, Version)> {
        let mut bytes = files::read_regular(self.0.as_deref()?, LARGEST as u64 * 2).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let head: Head = serde_json::from_slice(&bytes[..end]).ok()?;
        bytes.drain(..=end);
        let value = |text: Option<String>| HeaderValue::from_str(&text?).ok();
        let version = Version::Answer {
            tag: value(head.tag),
            modified: value(head.modified),
        };
        Some((bytes, version))
    }

    /// Keeps a description. If that fails, the next process fetches it.
    pub(super) fn store(&self, bytes: &[u8], version: &Version) {
        let (Some(path), Version::Answer { tag, modified }) = (&self.0, version) else {
            return;
        };
        let text = |value: &Option<HeaderValue>| Some(value.as_ref()?.to_str().ok()?.to_owned());
        let head = Head {
            tag: text(tag),
            modified: text(modified),
        };
        let directory = path.parent().unwrap_or(path);
        let stored = files::create_private_directory(directory)
            .and_then(|()| Ok(serde_json::to_vec(&head)?))
            .and_then(|head| files::replace(path, &[&head, b"\n", bytes]));
        if let Err(error) = stored {
            tracing::warn!(%error, "a description was not kept");
        }
    }
}
