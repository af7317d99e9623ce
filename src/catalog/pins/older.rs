//! The pins of an older version, which had hashes by name, in files named by the server and its entry.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use super::fault::Fault;
use super::files::{Files, read};
use super::record::Record;
use super::store::Store;
use crate::tool::ServerName;

impl Store<'_> {
    /// The pins of an older version: those of this entry, otherwise the latest of any entry of this name.
    pub(super) fn read_older(&self) -> io::Result<Option<Record>> {
        let mut found: Option<(u8, std::time::SystemTime, PathBuf)> = None;
        let Files::Disk { older, .. } = &self.files else {
            return Ok(None);
        };
        let files = match fs::read_dir(older) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Fault::at(older, &error)),
        };
        for file in files {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            let Some(configuration) = older_configuration(&name, &self.key.server) else {
                continue;
            };
            let (entry, place) = configuration.split_once('-').unzip();
            let entry = entry.unwrap_or(configuration);
            let rank = match (self.entry().starts_with(entry), place) {
                (true, place) if place == self.place() => 2,
                (true, None) => 1,
                _ => 0,
            };
            let written = file.metadata()?.modified()?;
            let is_better = |(best, at, _): &(u8, _, _)| (rank, written) > (*best, *at);
            if found.as_ref().is_none_or(is_better) {
                found = Some((rank, written, file.path()));
            }
        }
        let Some((_, _, path)) = found else {
            return Ok(None);
        };
        let hashes: BTreeMap<String, String> = read(&path)?.unwrap_or_default();
        let mut record = Record::default();
        for (name, hash) in hashes {
            record.pin(&name, &hash, None, false);
        }
        Ok(Some(record))
    }
}

/// The configuration in the name of an older file of `server`.
fn older_configuration<'n>(name: &'n str, server: &ServerName) -> Option<&'n str> {
    let rest = name.strip_prefix(server.as_str())?.strip_prefix('-')?;
    let configuration = rest.strip_suffix(".json")?;
    let is_hash = |part: &str| part.len() == 16 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let (entry, place) = configuration.split_once('-').unwrap_or((configuration, ""));
    (is_hash(entry) && place.bytes().all(|b| b.is_ascii_hexdigit())).then_some(configuration)
}
