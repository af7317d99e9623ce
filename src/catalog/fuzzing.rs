//! The properties of cache files and of names that hold for every input.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bytes::Bytes;

use super::header::Header;
use super::server_tools::Body;
use super::{Cache, Catalog, Key, Listed, Resolution, Snapshot};
use crate::tool::{Definition, QualifiedName, ServerName, ToolName};

/// A list file. With an even first byte the rest is a header, and the file's content, which loads or is set aside. Otherwise each
/// line is an entry that a server listed, and the stored list must come back; then one byte of the file is changed,
/// which must be detected.
pub(crate) fn cache(data: &[u8]) {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let name = format!(
        "mcpzip-fuzz-{}-{}",
        std::process::id(),
        RUNS.fetch_add(1, Ordering::Relaxed)
    );
    // Each file is synced, which dominates a run unless the directory is in memory.
    let in_memory = Path::new("/dev/shm");
    let directory = if in_memory.is_dir() {
        in_memory.to_owned()
    } else {
        std::env::temp_dir()
    }
    .join(name);
    check_cache(&directory, *first, rest);
    // A directory that is left behind is removed by the system.
    let _ = std::fs::remove_dir_all(&directory);
}

fn check_cache(directory: &Path, first: u8, rest: &[u8]) {
    let cache = Cache::new(Some(directory));
    let server = ServerName::new("s").expect("it is a name");
    let key = Key {
        server,
        configuration: "0123".to_owned(),
    };
    let path = cache.fuzzing_path(&key);
    std::fs::create_dir_all(path.parent().expect("it is in a directory")).expect("there is room");
    if first.is_multiple_of(2) {
        if let Ok(header) = Header::read(rest) {
            let body = Body::Memory(Bytes::new());
            let _ = header.to_tools(key.server.clone(), body, SystemTime::now());
            let _ = header.body_length();
        }
        std::fs::write(&path, rest).expect("there is room");
        if let Some(tools) = cache.load(&key) {
            // Each definition is there, or known to be damaged.
            let _ = tools
                .entries()
                .iter()
                .filter(|entry| tools.json(entry).is_ok())
                .count();
        } else {
            assert!(!path.exists(), "what cannot be used is set aside");
        }
        return;
    }
    let lines = || {
        rest.split(|byte| *byte == b'\n')
            .map(Bytes::copy_from_slice)
            .collect::<Vec<_>>()
    };
    let listed = Listed {
        tools: lines(),
        prompts: lines(),
        resources: lines(),
        ..Listed::default()
    };
    let stored = cache.store(&key, &listed);
    let read = |tools: &super::ServerTools| -> Vec<Option<String>> {
        let own = tools
            .entries()
            .iter()
            .map(|entry| tools.json(entry).ok().map(|json| json.get().to_owned()));
        let others = tools
            .prompts()
            .as_slice()
            .iter()
            .chain(tools.resources().as_slice());
        own.chain(others.map(|entry| tools.json_of(entry).ok().map(|json| json.get().to_owned())))
            .collect()
    };
    let before = read(&stored);
    assert!(
        before.iter().all(Option::is_some),
        "what was just stored is whole"
    );
    let loaded = cache.load(&key).expect("what was stored is there");
    assert_eq!(read(&loaded), before);
    let mut bytes = std::fs::read(&path).expect("it is there");
    let at = usize::from(first) * 37 % bytes.len();
    bytes[at] ^= 1 << (first % 7);
    std::fs::write(&path, bytes).expect("there is room");
    if let Some(damaged) = cache.load(&key) {
        let after = read(&damaged);
        assert!(
            after
                .iter()
                .zip(&before)
                .all(|(after, before)| after.is_none() || after == before)
        );
    }
}

/// Names. The first line is the name an agent writes, the others are tools of two servers.
pub(crate) fn names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut lines = text.lines();
    let wanted = lines.next().unwrap_or_default();
    for reading in QualifiedName::readings(wanted) {
        assert_eq!(
            reading.to_string(),
            wanted,
            "a reading prints as what was read"
        );
    }
    if let Ok(server) = ServerName::new(wanted) {
        assert_eq!(server.as_str(), wanted);
        assert!(
            wanted.len() <= 64
                && !wanted.contains(['/', '\\', ':', '\0', ' '])
                && !wanted.contains("__")
        );
    }
    let snapshot = snapshot(&["a", "b_", "c.d"], lines.collect::<Vec<_>>().as_slice());
    for tool in snapshot.tools() {
        let name = tool.qualified_name();
        let joined = name.to_string();
        assert!(
            QualifiedName::readings(&joined).any(|reading| reading == name),
            "`{joined}` does not read as itself"
        );
        // Another server's tool may have this spelling. White space around a name is ignored.
        let is_trimmed = joined.trim() == joined;
        let Resolution::Tool(found) = snapshot.resolve(&joined) else {
            assert!(!is_trimmed, "`{joined}` is not found");
            continue;
        };
        assert!(!is_trimmed || found.qualified_name().to_string() == joined);
    }
    match snapshot.resolve(wanted) {
        Resolution::Tool(tool) => assert!(
            snapshot
                .tool(tool.server().name(), &tool.entry().name)
                .is_some()
        ),
        Resolution::Ambiguous(several) => assert!(!several.is_empty()),
        Resolution::Unknown => {}
    }
}

/// Servers that all have `tools`, as far as these are valid names.
fn snapshot(servers: &[&str], tools: &[&str]) -> Arc<Snapshot> {
    let catalog = Catalog::new();
    let listed: Vec<Bytes> = tools
        .iter()
        .map(|tool| serde_json::json!({ "name": tool }).to_string().into())
        .collect();
    for server in servers {
        let server = ServerName::new(server).expect("it is a name");
        let key = Key {
            server: server.clone(),
            configuration: String::new(),
        };
        let stored = Cache::new(None).store(
            &key,
            &Listed {
                tools: listed.clone(),
                ..Listed::default()
            },
        );
        for tool in tools.iter().filter_map(|tool| ToolName::new(tool).ok()) {
            let at = stored.position(&tool).expect("a tool with a name is there");
            let json = stored.json(&stored.entries()[at]).expect("it is in memory");
            assert_eq!(Definition::parse(&json).expect("it was listed").name, tool);
        }
        catalog.update(|servers| drop(servers.insert(server, Arc::new(stored))));
    }
    catalog.snapshot()
}
