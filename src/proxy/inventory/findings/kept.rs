//! The findings of the last scan on disk, so that `mcpzip status` need not read every text again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::catalog::Snapshot;
use crate::files;
use crate::scan::Kind;
use crate::text::hex;

/// Changes with the scanner and the form of the file.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " 1");

/// The maximum size of the file, in bytes. More findings are not kept.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The file with the findings of the last scan. Without a directory for it, or if it cannot be read, every scan is a whole one.
#[derive(Debug)]
pub(in crate::proxy::inventory) struct KeptFindings {
    file: Option<PathBuf>,
}

/// The tool and the kind of each finding, by server. Findings without a tool are about the server's instructions.
pub(super) type ByServer = BTreeMap<String, Vec<(Option<String>, Kind)>>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content<S> {
    /// The texts that were scanned.
    digest: String,
    servers: S,
}

impl KeptFindings {
    pub(in crate::proxy::inventory) fn new(cache: Option<&Path>) -> Self {
        let file = cache.map(|cache| cache.join("findings.json"));
        Self { file }
    }

    /// The findings in texts of this digest, if those are the ones that are kept.
    pub(super) fn load(&self, digest: &str) -> Option<ByServer> {
        let bytes = files::read_regular(self.file.as_deref()?, LARGEST).ok()?;
        let content: Content<ByServer> = serde_json::from_slice(&bytes).ok()?;
        (content.digest == digest).then_some(content.servers)
    }

    /// Keeps the findings. If the disk refuses them, the next scan is a whole one.
    pub(super) fn store(&self, digest: &str, servers: &ByServer) {
        let Some(file) = &self.file else {
            return;
        };
        let digest = digest.to_owned();
        let content = Content { digest, servers };
        let json = serde_json::to_vec(&content).unwrap_or_default();
        if json.len() as u64 > LARGEST {
            return;
        }
        if let Err(error) = files::replace(file, &[&json]) {
            tracing::debug!(path = %file.display(), %error, "findings cannot be kept on disk");
        }
    }
}

/// A digest of every text that the scanner reads, and of the names that it compares.
pub(super) fn digest(snapshot: &Snapshot) -> String {
    let mut hash = Sha256::new();
    // With its length, no two lists of parts are the same bytes.
    let mut add = |part: &[u8]| {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    };
    add(VERSION.as_bytes());
    for server in snapshot.servers() {
        let listed = server.as_listed();
        add(listed.name().as_str().as_bytes());
        add(&listed.entries().len().to_be_bytes());
        for entry in listed.entries() {
            add(entry.name.as_str().as_bytes());
            add(entry.hash.as_bytes());
        }
        let instructions = listed.instructions();
        add(&[u8::from(instructions.is_some())]);
        add(instructions.unwrap_or_default().as_bytes());
    }
    hex(&hash.finalize())
}
