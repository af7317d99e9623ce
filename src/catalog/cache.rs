//! The catalog's disk form: one file per server and configuration, replaced whole.
//!
//! A file is a line that names the format, a JSON header with what is known of each tool, and the definitions, one
//! behind the other, in the server's own bytes. The name holds the hash of the server's configuration entry, so that an
//! edited entry never meets the tools of its old self. Writers need no lock: each writes a file of its own and renames
//! it, and whichever comes last is whole.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::server_tools::{Body, Flaw, ServerTools, ToolEntry};
use crate::files;
use crate::tool::{Definition, Hints, ServerName, ToolHash, ToolName};

/// Changes with every change of the format; files of other formats are left alone.
const FORMAT: &str = "v1";

/// A header beyond this is no header, in bytes.
const LARGEST_HEADER: u64 = 256 * 1024 * 1024;

/// Lists are confirmed with every start that uses them.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The cache directory's part that holds tool lists.
#[derive(Debug)]
pub struct Cache {
    /// `None` where nothing is to be kept on disk.
    directory: Option<PathBuf>,
}

/// What a list belongs to: a server under one configuration entry.
#[derive(Debug, Clone)]
pub struct Key {
    /// The server's name.
    pub server: ServerName,
    /// The hash of its configuration entry, safe in a file name.
    pub configuration: String,
}

/// A list as it came from a server.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The entries of `tools/list`, each in its own bytes.
    pub tools: Vec<Bytes>,
    /// The server's name and version for itself.
    pub software: Option<String>,
    /// What it tells agents about itself.
    pub instructions: Option<String>,
    /// How long it stays fresh.
    pub fresh_for: Option<Duration>,
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Header {
    server: String,
    software: Option<String>,
    instructions: Option<String>,
    fresh_for_ms: Option<u64>,
    tools: Vec<HeaderTool>,
    flaws: Vec<(usize, String)>,
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct HeaderTool {
    name: String,
    hash: String,
    length: u32,
    /// `readOnlyHint`, `destructiveHint`, `idempotentHint`.
    hints: (Option<bool>, Option<bool>, Option<bool>),
}

impl Cache {
    /// The cache under `directory`, or none.
    #[must_use]
    pub fn new(directory: Option<&Path>) -> Self {
        Self { directory: directory.map(|directory| directory.join("catalog").join(FORMAT)) }
    }

    /// What the server listed when it was asked last, if that is known and whole. A file that cannot be used is set
    /// aside and reported.
    #[must_use]
    pub fn load(&self, key: &Key) -> Option<ServerTools> {
        let path = self.path(key)?;
        match read(&path, &key.server) {
            Ok(tools) => Some(tools),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a cached tool list is unusable and will be fetched again");
                set_aside(&path);
                None
            }
        }
    }

    /// Keeps a list, on disk where that works, and returns it in the form the catalog holds.
    #[must_use]
    pub fn store(&self, key: &Key, listed: &Listed) -> ServerTools {
        let (header, body) = Header::of(&key.server, listed);
        let now = SystemTime::now();
        let in_memory = |body: Vec<u8>| header.to_tools(key.server.clone(), Body::Memory(body.into()), now);
        let Some(path) = self.path(key) else { return in_memory(body) };
        match write(&path, &header, &body, now) {
            Ok(file) => header.to_tools(key.server.clone(), file, now),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a tool list cannot be kept on disk");
                in_memory(body)
            }
        }
    }

    /// Removes files that nobody has written or confirmed for a month: of servers that are gone, of entries that were
    /// edited, and what was set aside.
    pub fn tidy(&self) {
        let Some(directory) = &self.directory else { return };
        // A directory that cannot be read has nothing that could be removed.
        let files = fs::read_dir(directory).into_iter().flatten().flatten();
        for file in files {
            let age = file.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > KEPT_FOR) {
                // Another process may have been quicker.
                let _ = fs::remove_file(file.path());
            }
        }
    }

    /// Sets the list aside that turned out damaged while it was in use.
    pub fn discard(&self, key: &Key) {
        if let Some(path) = self.path(key) {
            set_aside(&path);
        }
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(format!("{}-{}.tools", key.server, key.configuration)))
    }
}

impl Header {
    /// Sorts out what can be called, and lays the definitions behind one another.
    fn of(server: &ServerName, listed: &Listed) -> (Self, Vec<u8>) {
        let mut header = Self {
            server: server.to_string(),
            software: listed.software.clone(),
            instructions: listed.instructions.clone(),
            fresh_for_ms: listed.fresh_for.map(|fresh| u64::try_from(fresh.as_millis()).unwrap_or(u64::MAX)),
            tools: Vec::new(),
            flaws: Vec::new(),
        };
        let mut body = Vec::new();
        let mut names = std::collections::HashSet::new();
        for (index, json) in listed.tools.iter().enumerate() {
            match HeaderTool::of(json) {
                Ok(tool) if names.insert(tool.name.clone()) => {
                    body.extend_from_slice(json);
                    header.tools.push(tool);
                }
                Ok(tool) => header.flaws.push((index, format!("a second tool named `{}`", tool.name))),
                Err(reason) => header.flaws.push((index, reason)),
            }
        }
        (header, body)
    }

    fn to_tools(&self, name: ServerName, body: Body, listed_at: SystemTime) -> ServerTools {
        let mut offset = 0;
        let entries: Vec<ToolEntry> = self
            .tools
            .iter()
            .filter_map(|tool| {
                let (read_only, destructive, idempotent) = tool.hints;
                let entry = ToolEntry {
                    name: ToolName::new(&tool.name).ok()?,
                    hash: ToolHash::from_hex(&tool.hash)?,
                    hints: Hints { read_only, destructive, idempotent },
                    offset,
                    length: tool.length,
                };
                offset += u64::from(tool.length);
                Some(entry)
            })
            .collect();
        ServerTools {
            name,
            by_name: ServerTools::order_by_name(&entries),
            entries,
            body,
            software: self.software.clone(),
            instructions: self.instructions.clone(),
            flaws: self.flaws.iter().map(|(index, reason)| Flaw { index: *index, reason: reason.clone() }).collect(),
            listed_at,
            fresh_for: self.fresh_for_ms.map(Duration::from_millis),
        }
    }

    fn body_length(&self) -> u64 {
        self.tools.iter().map(|tool| u64::from(tool.length)).sum()
    }
}

impl HeaderTool {
    fn of(json: &[u8]) -> Result<Self, String> {
        let raw: &RawValue = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let definition = Definition::parse(raw).map_err(|error| error.to_string())?;
        let hints = definition.hints;
        Ok(Self {
            name: definition.name.as_str().to_owned(),
            hash: ToolHash::of(json).to_string(),
            length: u32::try_from(json.len()).map_err(|_| "the definition is over 4 GB".to_owned())?,
            hints: (hints.read_only, hints.destructive, hints.idempotent),
        })
    }
}

/// Writes the file, or, where it holds the same already, only notes the time.
fn write(path: &Path, header: &Header, body: &[u8], now: SystemTime) -> io::Result<Body> {
    if let Ok((known, start, file)) = read_header(path)
        && known == *header
        && holds(path, start, body)
    {
        // The time of listing is the file's own; a file that cannot be touched looks older than it is, no more.
        let _ = File::options().append(true).open(path).and_then(|file| file.set_modified(now));
        return Ok(Body::File { file, start, path: path.to_owned() });
    }
    let header = serde_json::to_vec(header).map_err(io::Error::other)?;
    let first_line = format!("mcpzip-catalog {FORMAT} {} {}\n", header.len(), ToolHash::of(&header));
    files::replace(path, &[first_line.as_bytes(), &header, body])?;
    let start = (first_line.len() + header.len()) as u64;
    Ok(Body::File { file: File::open(path)?, start, path: path.to_owned() })
}

/// Whether the file's content from `start` on is `body`: a header that is whole says nothing of what follows.
fn holds(path: &Path, start: u64, body: &[u8]) -> bool {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    fs::read(path).is_ok_and(|content| content.get(start..) == Some(body))
}

fn read(path: &Path, server: &ServerName) -> io::Result<ServerTools> {
    let (header, start, file) = read_header(path)?;
    let metadata = file.metadata()?;
    if header.server != server.as_str() {
        return Err(damaged("it belongs to another server"));
    }
    if metadata.len() != start + header.body_length() {
        return Err(damaged("its length is wrong"));
    }
    let tools = header.tools.len();
    let read = header.to_tools(server.clone(), Body::File { file, start, path: path.to_owned() }, metadata.modified()?);
    if read.entries.len() == tools { Ok(read) } else { Err(damaged("a tool has no usable name or hash")) }
}

fn read_header(path: &Path) -> io::Result<(Header, u64, File)> {
    let mut file = File::open(path)?;
    let mut first = [0; 128];
    let length = read_up_to(&mut file, &mut first)?;
    let end = first[..length].iter().position(|byte| *byte == b'\n').ok_or_else(|| damaged("it has no first line"))?;
    let line = std::str::from_utf8(&first[..end]).map_err(|_| damaged("its first line is no text"))?;
    let mut words = line.split(' ');
    let (Some("mcpzip-catalog"), Some(FORMAT), Some(header_length), Some(hash)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(damaged("its first line is unknown"));
    };
    let header_length: u64 = header_length.parse().map_err(|_| damaged("its header has no length"))?;
    if header_length > LARGEST_HEADER.min(file.metadata()?.len()) {
        return Err(damaged("its header is cut off"));
    }
    let mut header = first[end + 1..length].to_vec();
    let rest = header_length.saturating_sub(header.len() as u64);
    (&file).take(rest).read_to_end(&mut header)?;
    header.truncate(usize::try_from(header_length).map_err(io::Error::other)?);
    if header.len() as u64 != header_length || ToolHash::from_hex(hash) != Some(ToolHash::of(&header)) {
        return Err(damaged("its header is damaged"));
    }
    let header: Header = serde_json::from_slice(&header).map_err(io::Error::other)?;
    Ok((header, end as u64 + 1 + header_length, file))
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn set_aside(path: &Path) {
    if let Err(error) = fs::rename(path, path.with_extension("damaged"))
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "a damaged cache file stays where it is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(server: &str) -> Key {
        Key { server: ServerName::new(server).unwrap(), configuration: "0123".to_owned() }
    }

    fn listed(tools: &[&'static str]) -> Listed {
        Listed {
            tools: tools.iter().map(|json| Bytes::from_static(json.as_bytes())).collect(),
            software: Some("it 1".to_owned()),
            instructions: None,
            fresh_for: Some(Duration::from_secs(5)),
        }
    }

    const ODD: &str = r#"{"name":"odd", "x": 1e400,"description":"\ud83d","inputSchema":true}"#;

    #[test]
    fn a_list_comes_back_from_disk_byte_for_byte() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(directory.path()));
        let stored = cache.store(&key("a"), &listed(&[r#"{"name":"t"}"#, ODD]));
        for tools in [stored, cache.load(&key("a")).unwrap()] {
            let entry = &tools.entries()[tools.position(&ToolName::new("odd").unwrap()).unwrap()];
            assert_eq!(tools.json(entry).unwrap().get(), ODD);
            assert_eq!(tools.software(), Some("it 1"));
            assert_eq!(tools.fresh_for(), Some(Duration::from_secs(5)));
        }
        assert!(cache.load(&key("b")).is_none());
    }

    #[test]
    fn one_odd_entry_never_costs_the_others() {
        let cache = Cache::new(None);
        let tools = cache.store(&key("a"), &listed(&["7", r#"{"name":"t"}"#, r#"{"name":3}"#, r#"{"name":"t"}"#]));
        assert_eq!(tools.entries().len(), 1);
        assert_eq!(tools.flaws().iter().map(|flaw| flaw.index).collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(tools.json(&tools.entries()[0]).unwrap().get(), r#"{"name":"t"}"#);
    }

    #[test]
    fn the_same_list_again_only_moves_its_time() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(directory.path()));
        let first = cache.store(&key("a"), &listed(&[ODD]));
        let path = cache.path(&key("a")).unwrap();
        let before = fs::metadata(&path).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let second = cache.store(&key("a"), &listed(&[ODD]));
        assert!(second.listed_at() > first.listed_at());
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            assert_eq!(before.ino(), fs::metadata(&path).unwrap().ino(), "the file was written again");
        }
        assert!(fs::metadata(&path).unwrap().modified().unwrap() > before.modified().unwrap());
    }

    #[test]
    fn a_damaged_definition_is_replaced_by_the_next_listing() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(directory.path()));
        drop(cache.store(&key("a"), &listed(&[ODD])));
        let path = cache.path(&key("a")).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 0x11;
        fs::write(&path, bytes).unwrap();
        let tools = cache.store(&key("a"), &listed(&[ODD]));
        assert_eq!(tools.json(&tools.entries()[0]).unwrap().get(), ODD);
    }

    #[test]
    fn damage_anywhere_is_noticed_and_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(directory.path()));
        drop(cache.store(&key("a"), &listed(&[r#"{"name":"t"}"#, ODD])));
        let path = cache.path(&key("a")).unwrap();
        let whole = fs::read(&path).unwrap();
        for offset in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[offset] ^= 0x11;
            fs::write(&path, &bytes).unwrap();
            let Some(tools) = cache.load(&key("a")) else {
                assert!(path.with_extension("damaged").exists());
                continue;
            };
            let read: Vec<_> = tools.entries().iter().map(|entry| tools.json(entry).is_ok()).collect();
            assert!(read.contains(&false), "damage at {offset} went unnoticed");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(cache.load(&key("a")).is_none(), "cut at {length} went unnoticed");
        }
    }

    #[test]
    fn what_nobody_uses_any_more_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(directory.path()));
        for server in ["a", "b"] {
            drop(cache.store(&key(server), &listed(&[ODD])));
        }
        let old = File::options().append(true).open(cache.path(&key("a")).unwrap()).unwrap();
        old.set_modified(SystemTime::now() - KEPT_FOR - Duration::from_secs(60)).unwrap();
        cache.tidy();
        assert!(cache.load(&key("a")).is_none());
        assert!(cache.load(&key("b")).is_some());
    }

    #[test]
    fn a_cache_that_cannot_be_written_costs_nothing_but_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        let blocked = directory.path().join("file");
        fs::write(&blocked, "not a directory").unwrap();
        let cache = Cache::new(Some(&blocked));
        let tools = cache.store(&key("a"), &listed(&[ODD]));
        assert_eq!(tools.json(&tools.entries()[0]).unwrap().get(), ODD);
    }
}
