//! Whatever ends a migration in its midst, each file is the old one or the new one, and can be given back.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::case::{Machine, user_file, verdict};
use crate::support::command::{self, Outcome};
use crate::support::tool;

const CLIENTS: [&str; 6] = [
    "claude-code",
    "cursor",
    "windsurf",
    "kiro",
    "lm-studio",
    "claude-desktop",
];

fn machine() -> Machine {
    let machine = Machine::new();
    for client in CLIENTS {
        machine.put(
            user_file(client),
            &format!(
                "{{\"mcpServers\": {{\"{client}\": {{\"command\": \"x\"}}}}, \"pad\": \"{}\"}}",
                "p".repeat(20_000)
            ),
        );
    }
    machine
}

/// Without what a writer that was killed may leave: a temporary file, and Claude Code's lock.
fn files(machine: &Machine) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = machine.everything();
    files.retain(|(path, _)| path.extension().is_none_or(|ending| ending != "tmp"));
    files
}

#[test]
fn a_kill_leaves_each_file_old_or_new() {
    let before = files(&machine());
    let contents = |files: &[(PathBuf, Vec<u8>)]| {
        files
            .iter()
            .map(|(_, bytes)| bytes.clone())
            .collect::<Vec<_>>()
    };
    let done = machine();
    done.migrate(&[]);
    let after = contents(&files(&done));
    let before = contents(&before);
    let mut stopped = 0;
    for round in 0..40_u64 {
        let machine = machine();
        let mut child = machine
            .setup()
            .command(&["migrate", "--yes"])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(2000 + round * 1200));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = contents(&files(&machine));
        for content in &now {
            assert!(
                before.contains(content) || after.contains(content),
                "neither old nor new: {}",
                String::from_utf8_lossy(&content[..80])
            );
        }
        let runs = machine.run(&["undo", "--list"]).code(0).json();
        if runs.as_array().unwrap().is_empty() {
            assert_eq!(now, before, "a file changed that nothing is known of");
            continue;
        }
        stopped += usize::from(runs[0]["state"] == "begun");
        // Its lock is of no worth any more, but another would wait for ten seconds.
        let _ = std::fs::remove_dir(machine.home(".claude.json.lock"));
        machine.undo();
        assert_eq!(contents(&files(&machine)), before);
        let machine_again = machine.migrate(&[]);
        assert_eq!(
            machine_again["servers"].as_array().unwrap().len(),
            CLIENTS.len()
        );
    }
    println!("{stopped} of 40 were stopped between the first and the last file");
}

/// The command as an ordinary user runs it, who has the home: nothing keeps root from writing. `None` if that cannot be tried here.
fn as_user(machine: &Machine, arguments: &[&str]) -> Option<Outcome> {
    let plain = machine.setup().command(arguments);
    if !rustix::process::geteuid().is_root() {
        return Some(command::run(plain, ""));
    }
    if !tool::has("setpriv", "util-linux") {
        return None;
    }
    let mut chown = Command::new("chown");
    chown.args(["-R", "65534:65534"]);
    let owner = chown.arg(machine.setup().home().path("")).status();
    assert!(owner.unwrap().success());
    let mut command = command::through("setpriv", &plain);
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(machine.home(""));
    Some(command::run(command, ""))
}

#[test]
fn a_file_that_cannot_be_written_costs_its_client_alone() {
    let machine = machine();
    let directory = machine.home(".lmstudio");
    let permit = |mode| {
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    permit(0o555);
    let before = machine.read(user_file("lm-studio"));
    let Some(set_up) = as_user(&machine, &["init", "--yes", "--dry-run", "--no-test"]) else {
        return;
    };
    let set_up = set_up.code(0).to_string();
    assert!(set_up.contains("LM Studio is not connected"), "{set_up}");
    for mode in ["--dry-run", "--yes"] {
        let report = as_user(&machine, &["migrate", mode, "--json"]).unwrap();
        let report = report.code(0).json();
        let (kind, reason) = verdict(&report, "lm-studio");
        assert_eq!(kind, "stays", "{report:#}");
        assert!(reason.contains("cannot be written"), "{reason}");
        assert_eq!(verdict(&report, "cursor").0, "moves", "{report:#}");
        let files = report["files"].as_array().unwrap();
        assert_eq!(files.len(), CLIENTS.len(), "{report:#}");
    }
    permit(0o755);
    assert_eq!(machine.read(user_file("lm-studio")), before);
    assert!(!machine.read(user_file("cursor")).contains("\"x\""));
}

#[test]
fn a_file_that_cannot_be_written_takes_all_back() {
    let machine = machine();
    // The name of a new file next to it would be too long.
    let (list, target) = (machine.home(user_file("lm-studio")), "m".repeat(250));
    std::fs::rename(&list, machine.home(&target)).unwrap();
    std::os::unix::fs::symlink(machine.home(&target), &list).unwrap();
    let before = machine.everything();
    let failed = machine.run(&["migrate", "--yes"]).code(1);
    for told in [
        "lmstudio",
        "nothing was changed",
        "`mcpzip migrate --without lm-studio`",
    ] {
        assert!(failed.stderr.contains(told), "{told}: {failed}");
    }
    let failed = machine.run(&["init", "--yes", "--no-test"]).code(1);
    let told = failed
        .stderr
        .contains("`mcpzip init --client claude-code --client ");
    assert!(
        told && !failed.stderr.contains("--client lm-studio"),
        "{failed}"
    );
    assert_eq!(machine.everything(), before);
    assert_eq!(
        machine.run(&["undo", "--list"]).code(0).json(),
        serde_json::json!([])
    );
}

#[test]
fn a_lock_of_claude_code_is_waited_for_and_an_abandoned_one_is_not() {
    let machine = machine();
    let lock = machine.home(".claude.json.lock");
    std::fs::create_dir(&lock).unwrap();
    let mut child = machine
        .setup()
        .command(&["migrate", "--yes", "--client", "claude-code"])
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(400));
    assert!(child.try_wait().unwrap().is_none(), "it did not wait");
    std::fs::remove_dir(&lock).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!lock.exists());

    std::fs::create_dir(&lock).unwrap();
    let past = std::time::SystemTime::now() - Duration::from_secs(60);
    std::fs::File::open(&lock)
        .unwrap()
        .set_modified(past)
        .unwrap();
    machine.undo();
    assert!(!lock.exists());
}
