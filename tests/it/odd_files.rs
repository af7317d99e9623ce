//! Pipes and directories in the place of files that mcpzip keeps: nothing hangs, and nothing crashes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::script::echo;
use crate::support::{Server, Setup};

const NAME: &str = "files__write";
const ASKED: &str = "files__asked";

/// Far above the time of a session or a command here.
const LIMIT: Duration = Duration::from_secs(20);

fn home() -> Setup {
    let files = Server::new()
        .tool("write", [echo()])
        .tool("asked", [echo()]);
    Setup::new()
        .alone()
        .server("files", files)
        .setting("tools", json!({ "ask": [ASKED] }))
        .setting("surface", json!({ "mode": "auto", "small": 1 }))
        .setting("approvals", json!({ "wait": "50ms" }))
        .setting("audit", json!({}))
}

/// A session with a call of each kind, on either surface. Their answers may be refusals.
fn session(setup: &Setup) {
    let mut client = setup.connect();
    client.ask("tools/list", "{}");
    for name in [NAME, ASKED] {
        client.execute(name);
        client.call(name, "{}");
    }
    client.finish();
}

/// The regular files below the state and the cache directory.
fn files(setup: &Setup) -> Vec<PathBuf> {
    fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => walk(&path, found),
                false => found.push(path),
            }
        }
    }
    let mut found = Vec::new();
    for directory in ["state", "cache"] {
        walk(&setup.home().path(directory), &mut found);
    }
    found.sort();
    found
}

#[test]
fn a_pipe_or_a_directory_in_the_place_of_any_file_hangs_and_crashes_nothing() {
    let setup = home();
    session(&setup);
    session(&setup);
    // A question that outlives its session.
    let question = setup.home().path("state/approvals/aaaaaaaa.json");
    std::fs::write(question, "{}").unwrap();
    let known = files(&setup);
    let is_kept = |part: &str| {
        known
            .iter()
            .any(|path| path.to_string_lossy().contains(part))
    };
    for part in [
        "/audit/1/",
        "/audit-heads/1",
        "topics.json",
        "/statistics/",
        "/approvals/",
        "/surfaces/",
        "/pins/",
    ] {
        assert!(is_kept(part), "{part}: {known:?}");
    }
    for path in known {
        let Ok(before) = std::fs::read(&path) else {
            continue;
        };
        for is_pipe in [true, false] {
            // An earlier session may have put a file of its own there.
            let _ = std::fs::remove_file(&path);
            let _ = std::fs::remove_dir_all(&path);
            match is_pipe {
                true => {
                    let made = Command::new("mkfifo").arg(&path).status().unwrap();
                    assert!(made.success());
                }
                false => std::fs::create_dir(&path).unwrap(),
            }
            let started = Instant::now();
            session(&setup);
            let commands = [
                &["status", "--json"][..],
                &["stats", "--json"],
                &["audit", "--json"],
                &["audit", "verify"],
                &["approvals", "list", "--json"],
            ];
            for command in commands.into_iter().filter(|_| is_pipe) {
                let told = setup.run(command);
                let name = path.display();
                assert!(!told.stderr.contains("panicked"), "{name}: {}", told.stderr);
            }
            let time = started.elapsed();
            assert!(time < LIMIT, "{}: {time:?}", path.display());
        }
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::write(&path, before).unwrap();
    }
    session(&setup);
}
