//! The catalog's disk form: one file per server and configuration, replaced whole.
//!
//! A file is a line that names the format, a header in bytes (`postcard`) with the known properties of each tool, prompt, resource and
//! template, and then the definitions, one after another, in the server's own bytes. The file name contains the hash
//! of the server's configuration entry, so an edited entry never gets the tools of its former version. Writers need
//! no lock: each writes a file of its own and renames it, so the last one is complete.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::header::Header;
use super::server_tools::{Body, Listed, ServerTools};
use crate::files;
use crate::tool::{ServerName, ToolHash};

/// The directory of the lists, below the cache directory: one directory per format.
pub(crate) const DIRECTORY: &str = "catalog";

/// Changes with every change of the format; files of other formats are left alone.
pub(crate) const FORMAT: &str = "v4";

/// The largest header that is read, in bytes. A larger one means a damaged file.
const LARGEST_HEADER: u64 = 256 * 1024 * 1024;

/// Lists not confirmed for this long are removed. Each start that uses a list confirms it.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The part of the cache directory that holds the servers' lists.
#[derive(Debug)]
pub struct Cache {
    /// `None` when nothing is kept on disk.
    directory: Option<PathBuf>,
}

/// The owner of a list: a server under one configuration entry.
#[derive(Debug, Clone)]
pub struct Key {
    /// The server's name.
    pub server: ServerName,
    /// The hash of its configuration entry, usable as a file name. If the list depends on the directory, `-` and a hash of the directory
    /// follow; if it is one person's, `+` and a hash of the person.
    pub configuration: String,
}

impl Key {
    /// The hash of the entry, and that of the directory or person, if there is one.
    pub(super) fn parts(&self) -> (&str, Option<&str>) {
        let parts = self.configuration.split_once(['-', '+']);
        parts.map_or((&self.configuration, None), |(entry, place)| {
            (entry, Some(place))
        })
    }

    /// The key of the entry in any directory, if this is its key in one. The list of one person is never that of another.
    pub(super) fn elsewhere(&self) -> Option<Self> {
        let (entry, _) = self.configuration.split_once('-')?;
        Some(Self {
            server: self.server.clone(),
            configuration: entry.to_owned(),
        })
    }
}

impl Cache {
    /// Creates the cache under `directory`. `None` keeps lists in memory only.
    #[must_use]
    pub fn new(directory: Option<&Path>) -> Self {
        Self {
            directory: directory.map(|directory| directory.join(DIRECTORY).join(FORMAT)),
        }
    }

    /// Reads the server's last list, if there is a complete one. A damaged file is set aside and reported.
    #[must_use]
    pub fn load(&self, key: &Key) -> Option<ServerTools> {
        self.load_own(key).or_else(|| {
            // The list of another directory serves until the server has listed its tools here.
            let tools = self.load_own(&key.elsewhere()?)?;
            Some(tools.outdated())
        })
    }

    fn load_own(&self, key: &Key) -> Option<ServerTools> {
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

    /// Stores a list, on disk if possible, and returns it in the form the catalog holds.
    #[must_use]
    pub fn store(&self, key: &Key, listed: &Listed) -> ServerTools {
        let (header, body) = Header::of(&key.server, listed);
        let now = SystemTime::now();
        let to_tools = |body: Body| {
            let tools = header.to_tools(key.server.clone(), body, now);
            tools.expect("a header that was just made of a list is whole")
        };
        let in_memory = |body: Vec<u8>| to_tools(Body::Memory(body.into()));
        let Some(path) = self.path(key) else {
            return in_memory(body);
        };
        if let Some(elsewhere) = key.elsewhere().and_then(|key| self.path(&key))
            && let Err(error) = write(&elsewhere, &header, &body, now)
        {
            tracing::warn!(path = %elsewhere.display(), %error, "a tool list cannot be kept on disk");
        }
        match write(&path, &header, &body, now) {
            Ok(file) => to_tools(file),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a tool list cannot be kept on disk");
                in_memory(body)
            }
        }
    }

    /// Removes files that were not written or confirmed for a month: of removed servers, of edited entries, and
    /// damaged ones that were set aside.
    pub fn tidy(&self) {
        let Some(directory) = &self.directory else {
            return;
        };
        // An unreadable directory has nothing to remove.
        let files = fs::read_dir(directory).into_iter().flatten().flatten();
        for file in files {
            let age = file
                .metadata()
                .and_then(|metadata| metadata.modified())
                .ok()
                .and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age > KEPT_FOR) {
                // Another process may have been quicker.
                let _ = fs::remove_file(file.path());
            }
        }
    }

    /// Sets aside a list that turned out to be damaged while in use.
    pub fn discard(&self, key: &Key) {
        if let Some(path) = self.path(key) {
            set_aside(&path);
        }
    }

    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn fuzzing_path(&self, key: &Key) -> PathBuf {
        self.path(key).expect("a fuzzer's cache is on disk")
    }

    pub(super) fn path(&self, key: &Key) -> Option<PathBuf> {
        Some(
            self.directory
                .as_ref()?
                .join(format!("{}-{}.tools", key.server, key.configuration)),
        )
    }
}

/// Writes the file. If it already has this content, only its time is updated.
fn write(path: &Path, header: &Header<'_>, body: &[u8], now: SystemTime) -> io::Result<Body> {
    let header = header.write()?;
    if let Ok(Known {
        header: known,
        start,
        file,
    }) = Known::read(path)
        && known == header
        && holds(path, start, body)
    {
        // The file's time is the time of listing. Without the update it only looks older than it is.
        let _ = File::options()
            .append(true)
            .open(path)
            .and_then(|file| file.set_modified(now));
        return Ok(Body::File {
            file,
            start,
            path: path.to_owned(),
        });
    }
    let first_line = format!(
        "mcpzip-catalog {FORMAT} {} {}\n",
        header.len(),
        ToolHash::of(&header)
    );
    files::replace(path, &[first_line.as_bytes(), &header, body])?;
    let start = (first_line.len() + header.len()) as u64;
    Ok(Body::File {
        file: files::open_regular(path)?,
        start,
        path: path.to_owned(),
    })
}

/// Whether the file's content from `start` on is `body`. A correct header proves nothing about the definitions after
/// it.
fn holds(path: &Path, start: u64, body: &[u8]) -> bool {
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    files::read_any(path).is_ok_and(|content| content.get(start..) == Some(body))
}

fn read(path: &Path, server: &ServerName) -> io::Result<ServerTools> {
    let Known {
        header,
        start,
        file,
    } = Known::read(path)?;
    let header = Header::read(&header)?;
    let metadata = file.metadata()?;
    if header.server != server.as_str() {
        return Err(damaged("it belongs to another server"));
    }
    if metadata.len() != start + header.body_length() {
        return Err(damaged("its length is wrong"));
    }
    let body = Body::File {
        file,
        start,
        path: path.to_owned(),
    };
    let read = header.to_tools(server.clone(), body, metadata.modified()?);
    read.ok_or_else(|| damaged("a name or the capabilities are unusable"))
}

/// The beginning of a file: the bytes of its header, and the offset of the definitions.
struct Known {
    header: Vec<u8>,
    start: u64,
    file: File,
}

impl Known {
    fn read(path: &Path) -> io::Result<Self> {
        let mut file = files::open_regular(path)?;
        let mut first = [0; 128];
        let length = read_up_to(&mut file, &mut first)?;
        let end = first[..length]
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or_else(|| damaged("it has no first line"))?;
        let line = std::str::from_utf8(&first[..end])
            .map_err(|_| damaged("its first line is not text"))?;
        let mut words = line.split(' ');
        let (Some("mcpzip-catalog"), Some(FORMAT), Some(header_length), Some(hash)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(damaged("its first line is unknown"));
        };
        let header_length: u64 = header_length
            .parse()
            .map_err(|_| damaged("its header has no length"))?;
        if header_length > LARGEST_HEADER.min(file.metadata()?.len()) {
            return Err(damaged("its header is cut off"));
        }
        let mut header = first[end + 1..length].to_vec();
        let rest = header_length.saturating_sub(header.len() as u64);
        (&file).take(rest).read_to_end(&mut header)?;
        header.truncate(usize::try_from(header_length).map_err(io::Error::other)?);
        if header.len() as u64 != header_length
            || ToolHash::from_hex(hash) != Some(ToolHash::of(&header))
        {
            return Err(damaged("its header is damaged"));
        }
        Ok(Self {
            header,
            start: end as u64 + 1 + header_length,
            file,
        })
    }
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
    use bytes::Bytes;

    use super::*;
    use crate::catalog::Kind;
    use crate::mcp::{Revision, ServerCapabilities};
    use crate::tool::ToolName;
    use serde_json::value::RawValue;

    fn key(server: &str) -> Key {
        Key {
            server: ServerName::new(server).unwrap(),
            configuration: "0123".to_owned(),
        }
    }

    fn entries(entries: &[&'static str]) -> Vec<Bytes> {
        entries
            .iter()
            .map(|json| Bytes::from_static(json.as_bytes()))
            .collect()
    }

    fn listed(tools: &[&'static str]) -> Listed {
        Listed {
            tools: entries(tools),
            prompts: entries(&[PROMPT]),
            resources: entries(&[
                r#"{"uri":"file:///a","name":"a"}"#,
                r#"{"uri":"file:///b","name":"b"}"#,
            ]),
            templates: entries(&[r#"{"uriTemplate":"x:{y}","name":"t"}"#]),
            software: Some("it 1".to_owned()),
            fresh_for: Some(Duration::from_secs(5)),
            capabilities: ServerCapabilities::new(
                &RawValue::from_string(r#"{"prompts": {}}"#.to_owned()).unwrap(),
            ),
            revision: Some(Revision::V2026_07_28),
            ..Listed::default()
        }
    }

    const PROMPT: &str = r#"{"name":"p", "arguments":[1e400]}"#;

    const ODD: &str = r#"{"name":"odd", "x": 1e400,"description":"\ud83d","inputSchema":true}"#;

    #[test]
    fn the_list_of_another_directory_serves_until_there_is_one_of_this() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(directory.path()));
        let of = |place: &str| Key {
            configuration: format!("0123-{place}"),
            ..key("a")
        };
        let names = |tools: &ServerTools| -> Vec<String> {
            let entries = tools.entries().iter();
            entries.map(|tool| tool.name.to_string()).collect()
        };
        assert!(cache.load(&of("one")).is_none());
        let _ = cache.store(&of("one"), &listed(&[r#"{"name":"one"}"#]));
        let borrowed = cache.load(&of("two")).unwrap();
        assert_eq!(names(&borrowed), ["one"]);
        assert_eq!(
            borrowed.listed_at(),
            SystemTime::UNIX_EPOCH,
            "it counts as old"
        );
        let _ = cache.store(&of("two"), &listed(&[r#"{"name":"two"}"#]));
        let own = cache.load(&of("one")).unwrap();
        assert_eq!(names(&own), ["one"]);
        assert!(own.listed_at() > SystemTime::UNIX_EPOCH);
        assert_eq!(names(&cache.load(&of("two")).unwrap()), ["two"]);
    }

    #[test]
    fn the_list_of_one_person_serves_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(directory.path()));
        let of = |suffix: &str| Key {
            configuration: format!("0123{suffix}"),
            ..key("a")
        };
        let _ = cache.store(&of("+one"), &listed(&[r#"{"name":"one"}"#]));
        assert!(cache.load(&of("+one")).is_some());
        for other in ["+two", "", "-one"] {
            assert!(cache.load(&of(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn a_list_comes_back_from_disk_byte_for_byte() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(directory.path()));
        let stored = cache.store(&key("a"), &listed(&[r#"{"name":"t"}"#, ODD]));
        for tools in [stored, cache.load(&key("a")).unwrap()] {
            let entry = &tools.entries()[tools.position(&ToolName::new("odd").unwrap()).unwrap()];
            assert_eq!(tools.json(entry).unwrap().get(), ODD);
            assert_eq!(
                tools.json_of(&tools.prompts().as_slice()[0]).unwrap().get(),
                PROMPT
            );
            let resource =
                &tools.resources().as_slice()[tools.resources().position("file:///b").unwrap()];
            assert_eq!(
                tools.json_of(resource).unwrap().get(),
                r#"{"uri":"file:///b","name":"b"}"#
            );
            assert!(tools.templates().has("x:{y}") && !tools.resources().has("file:///c"));
            assert!(tools.capabilities().has("prompts") && !tools.capabilities().has("resources"));
            assert_eq!(tools.revision(), Some(Revision::V2026_07_28));
            assert_eq!(tools.software(), Some("it 1"));
            assert_eq!(tools.fresh_for(), Some(Duration::from_secs(5)));
        }
        assert!(cache.load(&key("b")).is_none());
    }

    #[test]
    fn one_odd_entry_never_costs_the_others() {
        let cache = Cache::new(None);
        let tools = cache.store(
            &key("a"),
            &listed(&["7", r#"{"name":"t"}"#, r#"{"name":3}"#, r#"{"name":"t"}"#]),
        );
        assert_eq!(tools.entries().len(), 1);
        assert_eq!(
            tools
                .flaws()
                .iter()
                .map(|flaw| flaw.index)
                .collect::<Vec<_>>(),
            [0, 2, 3]
        );
        assert_eq!(
            tools.json(&tools.entries()[0]).unwrap().get(),
            r#"{"name":"t"}"#
        );
        let resources = entries(&[
            "[]",
            r#"{"uri":"a:b"}"#,
            r#"{"uri":5}"#,
            r#"{"uri":""}"#,
            r#"{"uri":"a:b"}"#,
        ]);
        let tools = cache.store(
            &key("a"),
            &Listed {
                resources,
                ..Listed::default()
            },
        );
        assert!(tools.resources().has("a:b") && tools.resources().len() == 1);
        let flaws: Vec<_> = tools
            .flaws()
            .iter()
            .map(|flaw| (flaw.kind, flaw.index))
            .collect();
        assert_eq!(flaws, [0, 2, 3, 4].map(|index| (Kind::Resource, index)));
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
            assert_eq!(
                before.ino(),
                fs::metadata(&path).unwrap().ino(),
                "the file was written again"
            );
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
        let damaged = cache.load(&key("a")).unwrap();
        assert!(damaged.json_of(&damaged.templates().as_slice()[0]).is_err());
        let tools = cache.store(&key("a"), &listed(&[ODD]));
        assert_eq!(tools.json(&tools.entries()[0]).unwrap().get(), ODD);
        assert!(tools.json_of(&tools.templates().as_slice()[0]).is_ok());
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
            let mut read: Vec<_> = tools
                .entries()
                .iter()
                .map(|entry| tools.json(entry).is_ok())
                .collect();
            for others in [tools.prompts(), tools.resources(), tools.templates()] {
                read.extend(
                    others
                        .as_slice()
                        .iter()
                        .map(|entry| tools.json_of(entry).is_ok()),
                );
            }
            assert!(read.contains(&false), "damage at {offset} went unnoticed");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(
                cache.load(&key("a")).is_none(),
                "cut at {length} went unnoticed"
            );
        }
    }

    #[test]
    fn what_nobody_uses_any_more_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(directory.path()));
        for server in ["a", "b"] {
            drop(cache.store(&key(server), &listed(&[ODD])));
        }
        let old = File::options()
            .append(true)
            .open(cache.path(&key("a")).unwrap())
            .unwrap();
        old.set_modified(SystemTime::now() - KEPT_FOR - Duration::from_secs(60))
            .unwrap();
        // On some systems an open file stays.
        drop(old);
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
