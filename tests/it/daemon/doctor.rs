//! The findings of `doctor` about the daemon.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::Shared;
use crate::support::command::{self, through};
use crate::support::script::answer;
use crate::support::{Server, Setup, until};

fn shared() -> Shared {
    Shared::new(Setup::new().server("a", Server::new().tool("t", [answer("done")])))
}

/// The findings with this code.
fn findings(setup: &Setup, code: &str, arguments: &[&str]) -> Vec<Value> {
    let words = [&["doctor", "--json"], arguments].concat();
    let outcome = command::run(setup.command(&words), "");
    let findings = outcome.json()["findings"].clone();
    let findings = findings.as_array().unwrap().iter();
    findings
        .filter(|finding| finding["code"] == code)
        .cloned()
        .collect()
}

#[test]
fn doctor_names_a_socket_that_nothing_listens_on_and_removes_it() {
    let setup = shared();
    let _client = setup.connect();
    assert!(findings(&setup, "daemon-orphaned-socket", &[]).is_empty());
    let orphan = setup.home().path("state/run/0123.sock");
    drop(UnixListener::bind(&orphan).unwrap());
    std::fs::set_permissions(&orphan, std::fs::Permissions::from_mode(0o600)).unwrap();
    let old = SystemTime::now() - Duration::from_secs(3600);
    let times = rustix::fs::Timestamps {
        last_access: seconds(old),
        last_modification: seconds(old),
    };
    rustix::fs::utimensat(
        rustix::fs::CWD,
        &orphan,
        &times,
        rustix::fs::AtFlags::empty(),
    )
    .unwrap();
    let found = findings(&setup, "daemon-orphaned-socket", &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0]["subject"].as_str().unwrap().ends_with("0123.sock"));
    let fixed = findings(&setup, "daemon-orphaned-socket", &["--fix"]);
    assert_eq!(fixed[0]["fixed"], true, "{fixed:?}");
    assert!(!orphan.exists());
    assert_eq!(setup.sessions(), 1);
}

fn seconds(time: SystemTime) -> rustix::fs::Timespec {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    rustix::fs::Timespec {
        tv_sec: i64::try_from(since.as_secs()).unwrap(),
        tv_nsec: 0,
    }
}

#[test]
fn doctor_names_wrong_modes_of_the_directory_and_the_socket() {
    let setup = shared();
    let _client = setup.connect();
    let socket = setup.status()["daemon"]["socket"]
        .as_str()
        .unwrap()
        .to_owned();
    let set = |path: &str, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    assert!(findings(&setup, "daemon-socket-open", &[]).is_empty());
    set(&socket, 0o666);
    let found = findings(&setup, "daemon-socket-open", &[]);
    assert!(found[0]["what"].as_str().unwrap().contains("666"));
    set(&socket, 0o600);
    let directory = setup.home().path("state/run");
    let directory = directory.to_str().unwrap();
    set(directory, 0o755);
    let found = findings(&setup, "daemon-directory", &[]);
    assert!(
        found[0]["what"].as_str().unwrap().contains("755"),
        "{found:?}"
    );
    set(directory, 0o700);
    assert!(findings(&setup, "daemon-directory", &[]).is_empty());
}

#[test]
fn doctor_names_a_daemon_of_another_build_with_the_same_configuration() {
    let setup = shared();
    let _client = setup.connect();
    assert!(findings(&setup, "daemon-other", &[]).is_empty());
    // A copy of the program is another build.
    let plain = setup.command(&["serve"]);
    let copy = setup.home().path("mcpzip-copy");
    std::fs::copy(plain.get_program(), &copy).unwrap();
    let mut command = through(&copy, &plain);
    command.args(plain.get_args());
    let mut other = setup.0.start_command(command);
    other.shake_hands("2025-11-25");
    let found = until("the other daemon is found", || {
        findings(&setup, "daemon-other", &[]).pop()
    });
    let what = found["what"].as_str().unwrap();
    assert!(what.contains("serves 1 session"), "{what}");
    let process: u32 = what.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_ne!(process, setup.process());
    crate::support::process::signal(process, rustix::process::Signal::KILL);
}

#[test]
fn doctor_names_an_http_address_that_the_daemon_cannot_use() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let server = Server::new().tool("t", [answer("done")]);
    let setup = Setup::new().server("a", server);
    let setup = Shared::new(setup.setting("http", json!({ "address": address })));
    let _client = setup.connect();
    let found = until("the daemon has tried", || {
        findings(&setup, "daemon-http", &[]).pop()
    });
    assert!(
        found["what"].as_str().unwrap().contains(&address),
        "{found}"
    );
}

#[test]
fn doctor_names_the_servers_that_could_be_shared_and_the_processes_that_it_would_save() {
    let server = || Server::new().tool("t", [answer("done")]);
    let browser = |line: &[&str]| {
        let args = [&line[1..], &["@playwright/mcp"]].concat();
        json!({ "command": line[0], "args": args }).to_string()
    };
    let setup = Setup::new()
        .server("a", server())
        .server("b", server())
        .server_with("own", server(), json!({ "share": "session" }))
        .entry("env", &browser(&["env", "A=1", "/none/npx", "-y"]))
        .entry(
            "shell",
            &browser(&["sh", "-c", "cd / && /none/npx -y @playwright/mcp"]),
        )
        .entry("option", &browser(&["/none/npx", "--unheard-of"]))
        .setting("daemon", json!("off"))
        .daemon_as_configured();
    setup.save();
    let found = findings(&setup, "daemon-share", &[]);
    let what = found[0]["what"].as_str().unwrap();
    assert!(
        what.contains("servers: a, b.") && what.contains("2 fewer"),
        "{what}"
    );
    let setup = setup.setting("daemon", json!("auto"));
    setup.save();
    assert!(findings(&setup, "daemon-share", &[]).is_empty());
}

#[test]
fn doctor_names_a_shared_server_with_a_process_for_each_kind_of_client() {
    let setup = shared();
    let mut clients = ["{}", r#"{"elicitation":{}}"#].map(|capabilities| {
        let mut client = setup.0.start();
        client.shake_hands_as("2025-11-25", capabilities);
        client
    });
    for client in &mut clients {
        assert_eq!(client.execute("a__t").text(), "done");
    }
    let found = findings(&setup, "daemon-capabilities", &[]);
    assert_eq!(found[0]["subject"], "a", "{found:?}");
    let what = found[0]["what"].as_str().unwrap();
    assert!(
        what.contains("2 sessions share `a`, which has 2 processes"),
        "{what}"
    );
}

#[test]
fn doctor_names_a_table_of_processes_that_is_nearly_full() {
    let setup = Setup::new().server("a", Server::new());
    setup.save();
    let plain = setup.command(&["doctor", "--json"]);
    let available = std::process::Command::new("prlimit")
        .arg("--version")
        .output();
    if available.is_err() {
        return;
    }
    let mut limited = through("prlimit", &plain);
    limited
        .arg("--nproc=3:3")
        .arg(plain.get_program())
        .args(plain.get_args());
    let outcome = command::run(limited, "");
    assert!(outcome.stdout.contains("process-limit"), "{outcome:?}");
    assert!(findings(&setup, "process-limit", &[]).is_empty());
}
