//! The daemon as a service of systemd, which listens for it.

use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Shared;
use crate::support::script::answer;
use crate::support::{Server, Setup, command, until};

fn shared() -> Shared {
    let server = Server::new().tool("t", [answer("done")]);
    Shared::new(Setup::new().server("a", server))
}

fn run(setup: &Shared, words: &[&str]) -> command::Outcome {
    command::run(setup.command(words), "")
}

fn paths(installed: &Value) -> Vec<PathBuf> {
    let files = installed["files"].as_array().unwrap().iter();
    files
        .map(|file| PathBuf::from(file["path"].as_str().unwrap()))
        .collect()
}

#[test]
fn units_are_written_that_systemd_accepts_and_removed_again() {
    let setup = shared();
    let printed = run(&setup, &["daemon", "install", "--dry-run", "--json"])
        .code(0)
        .json();
    assert!(
        paths(&printed).iter().all(|path| !path.exists()),
        "{printed}"
    );
    let installed = run(&setup, &["daemon", "install", "--json"]).code(0).json();
    assert_eq!(installed["files"], printed["files"]);
    let paths = paths(&installed);
    let home = setup.home().path("home/.config/systemd/user");
    assert!(
        paths
            .iter()
            .all(|path| path.starts_with(&home) && path.exists()),
        "{installed}"
    );
    let verified = Command::new("systemd-analyze")
        .args(["verify", "--user"])
        .args(&paths)
        .env("XDG_RUNTIME_DIR", setup.home().path("home"))
        .output();
    match verified {
        Ok(verified) => {
            let text = String::from_utf8_lossy(&verified.stderr);
            assert!(
                verified.status.success() && !text.contains("mcpzip."),
                "{text}"
            );
        }
        Err(error) => println!("units not verified: {error}"),
    }
    let _ = run(&setup, &["daemon", "install"]).code(0);
    let _ = run(&setup, &["daemon", "uninstall"]).code(0);
    assert!(paths.iter().all(|path| !path.exists()));
}

#[test]
fn the_services_of_other_systems_are_printed_and_never_written() {
    let setup = shared();
    for (system, end, part) in [
        (
            "macos",
            "Library/LaunchAgents/mcpzip.daemon.plist",
            "<string>--http</string>",
        ),
        ("windows", "mcpzip-task.xml", "<UserId>THERE\\ann</UserId>"),
        ("linux", "mcpzip.socket", "ListenStream="),
    ] {
        let words = ["daemon", "install", "--dry-run", "--json", "--for", system];
        let mut command = setup.command(&words);
        command.env("USERNAME", "ann").env("USERDOMAIN", "THERE");
        let printed = command::run(command, "").code(0).json();
        let file = &printed["files"][0];
        assert!(file["path"].as_str().unwrap().ends_with(end), "{printed}");
        assert!(file["text"].as_str().unwrap().contains(part), "{printed}");
        assert!(paths(&printed).iter().all(|path| !path.exists()));
    }
    let refused = run(&setup, &["daemon", "install", "--for", "macos"]).code(2);
    assert!(refused.stderr.contains("--dry-run"), "{refused}");
    let nothing = run(
        &setup,
        &["daemon", "uninstall", "--dry-run", "--for", "windows"],
    )
    .code(0);
    assert_eq!(nothing.json()["removed"], json!([]));
}

#[test]
fn units_of_others_are_left_as_they_are() {
    let setup = shared();
    let directory = setup.home().path("home/.config/systemd/user");
    std::fs::create_dir_all(&directory).unwrap();
    let unit = directory.join("mcpzip.service");
    std::fs::write(&unit, "[Service]\nExecStart=/bin/true\n").unwrap();
    for words in [["daemon", "install"], ["daemon", "uninstall"]] {
        let refused = run(&setup, &words).code(1);
        assert!(
            refused.stderr.contains("was not written by mcpzip"),
            "{refused}"
        );
    }
    assert!(!directory.join("mcpzip.socket").exists());
    assert!(unit.exists());
}

#[test]
fn a_daemon_serves_on_the_socket_of_a_service_manager_and_leaves_it_at_its_end() {
    let setup = shared();
    let printed = run(&setup, &["daemon", "install", "--dry-run", "--json"])
        .code(0)
        .json();
    let path = Path::new(printed["socket"].as_str().unwrap());
    let mut builder = std::fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(path.parent().unwrap())
        .unwrap();
    let listener = UnixListener::bind(path).unwrap();
    let mut command = setup.command(&["daemon", "run"]);
    command
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(
            listener.try_clone().unwrap(),
        )))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut daemon = command.spawn().unwrap();
    let mut client = setup.connect();
    assert!(client.execute("a__t").text().contains("done"));
    assert_eq!(setup.process(), daemon.id());
    let _ = run(&setup, &["daemon", "stop"]).code(0);
    let status = until("the daemon ends", || daemon.try_wait().unwrap());
    assert!(status.success(), "{status}");
    assert!(path.exists(), "the socket of the service manager is gone");
    assert!(client.execute("a__t").text().contains("done"));
    // The next daemon gets it again; without one, the test's end would wait for an answer.
    std::fs::remove_file(path).unwrap();
}
