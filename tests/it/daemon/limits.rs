//! Limits of the system, and descriptors and disks that behave unlike others.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::{Shared, is_gone};
use crate::support::command::through;
use crate::support::notifications::Notifications;
use crate::support::script::{answer, surroundings};
use crate::support::{Client, Server, Setup, tool, until};

/// The command `plain`, started by `program` with `arguments` before it.
fn by(program: &str, arguments: &[&str], plain: &Command) -> Command {
    let mut command = through(program, plain);
    command
        .args(arguments)
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(plain.get_current_dir().unwrap());
    command
}

/// The limits of open files of a process, soft and hard.
fn open_files(process: &Value) -> (String, String) {
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let mut columns = line.unwrap().split_whitespace().skip(3).map(str::to_owned);
    (columns.next().unwrap(), columns.next().unwrap())
}

#[test]
fn a_server_gets_the_soft_limit_of_open_files_of_its_session() {
    if !tool::has("prlimit", "util-linux") {
        return;
    }
    let server = Server::new().tool("t", [surroundings()]);
    let setup = Shared::new(Setup::new().server_with("a", server, json!({ "share": "session" })));
    for soft in ["64", "99"] {
        let limits = format!("--nofile={soft}:4096");
        let mut client =
            setup
                .0
                .start_command(by("prlimit", &[&limits], &setup.command(&["serve"])));
        client.shake_hands("2025-11-25");
        let noticed: Value = serde_json::from_str(&client.execute("a__t").text()).unwrap();
        let expected = (soft.to_owned(), "4096".to_owned());
        until("the server has the limit", || {
            (open_files(&noticed["process"]) == expected).then_some(())
        });
    }
    assert_eq!(open_files(&json!(setup.process())).0, "4096");
}

/// Replaces the file of the only stored result by a pipe, which blocks its reader.
fn block_the_result(setup: &Shared) {
    fn files(directory: PathBuf, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => files(entry.path(), found),
                false => found.push(entry.path()),
            }
        }
    }
    let mut found = Vec::new();
    files(setup.home().path("state/results"), &mut found);
    found.retain(|path| path.extension().is_some_and(|end| end == "json"));
    assert_eq!(found.len(), 1, "{found:?}");
    std::fs::remove_file(&found[0]).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &found[0],
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )
    .unwrap();
}

/// The id of the result that a call stored.
fn stored(client: &mut Client) -> String {
    let text = client.execute("a__long").text();
    let id = text
        .split(r#""id":""#)
        .nth(1)
        .unwrap_or_else(|| panic!("nothing is stored: {text}"));
    id.split('"').next().unwrap().to_owned()
}

#[test]
fn a_daemon_that_waits_for_a_disk_ends_when_it_is_stopped_and_leaves_no_zombie() {
    let server = Server::new()
        .tool("long", [answer(&"word ".repeat(100_000))])
        .tool("t", [answer("done")]);
    let setup = Shared::new(Setup::new().server("a", server));
    let mut blocked = setup.connect();
    let mut other = setup.connect();
    let id = stored(&mut blocked);
    block_the_result(&setup);
    let arguments = json!({ "name": "mcpzip__read_result", "arguments": { "id": id } });
    blocked.begin("execute_tool", &arguments.to_string());
    assert_eq!(other.execute("a__t").text(), "done");
    let daemon = setup.process();
    let _ = setup.run(&["daemon", "restart"]).code(0);
    assert_eq!(other.execute("a__t").text(), "done");
    until("the daemon has ended", || is_gone(daemon).then_some(()));
    let stat = format!("/proc/{daemon}/stat");
    until("it was reaped", || {
        (!std::path::Path::new(&stat).exists()).then_some(())
    });
}

#[test]
fn a_daemon_asks_the_users_systemd_for_a_scope_of_its_own() {
    let Some(systemd) = Notifications::start_as("org.freedesktop.systemd1") else {
        return;
    };
    let setup = Setup::new().server("a", Server::new().tool("t", [answer("done")]));
    let runtime = setup.home().path("runtime");
    std::fs::create_dir(&runtime).unwrap();
    std::os::unix::fs::symlink(systemd.socket(), runtime.join("bus")).unwrap();
    let setup = Shared::new(setup.variable("XDG_RUNTIME_DIR", runtime.to_str().unwrap()));
    let mut client = setup.connect();
    assert_eq!(client.execute("a__t").text(), "done");
    let asked = until("systemd is asked", || systemd.shown().pop());
    let daemon = setup.process();
    let expected = [format!("mcpzip-{daemon}.scope"), "fail true".to_owned()];
    assert_eq!(asked, expected);
}

#[test]
fn datagram_sockets_are_refused_in_words() {
    let setup = Shared::new(Setup::new().server("a", Server::new().tool("t", [answer("done")])));
    for arguments in [&["serve"][..], &["serve", "--alone"]] {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        let mut serve = setup.command(arguments);
        serve.stdin(OwnedFd::from(theirs));
        let ended = serve.output().unwrap();
        drop(ours);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains("use pipes or stream sockets"), "{said}");
    }
}

#[test]
fn a_user_who_may_start_no_thread_gets_errors_in_words() {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || !tool::has("prlimit", "util-linux") || !tool::has("setpriv", "util-linux") {
        return;
    }
    let server = Server::new().tool("t", [answer("done")]);
    let setup = Setup::new().server("a", server).alone();
    setup.save();
    let chown = Command::new("chown")
        .args(["-R", "65534:65534"])
        .arg(setup.home().path(""))
        .status();
    assert!(chown.unwrap().success());
    let limits = [
        "--nproc=1:1",
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let mut client = setup.start_command(by("prlimit", &limits, &setup.command(&["serve"])));
    client.shake_hands("2025-11-25");
    let text = client.execute("a__t").as_str().to_owned();
    assert!(
        text.contains("cannot run") && text.contains("temporarily unavailable"),
        "{text}"
    );
    assert!(!client.stderr().contains("panicked"), "{}", client.stderr());
}

/// A schema of `levels` objects, one in another.
fn nested(levels: usize) -> String {
    format!(
        r#"{}{{"type":"string"}}{}"#,
        r#"{"type":"object","properties":{"a":"#.repeat(levels),
        "}}".repeat(levels)
    )
}

#[test]
fn a_tool_whose_schema_no_parser_takes_is_left_out_of_a_direct_list() {
    let definition =
        |name: &str, levels| format!(r#"{{"name":"{name}","inputSchema":{}}}"#, nested(levels));
    let server = Server::new()
        .tool_as("fine", &definition("fine", 40), [answer("done")])
        .tool_as("deep", &definition("deep", 3000), [answer("done")]);
    let setup = Shared::new(Setup::new().server("a", server));
    let mut client = setup.0.start_with(&["serve", "--direct"]);
    client.shake_hands("2025-11-25");
    let tools = client.ask("tools/list", "{}").as_str().to_owned();
    assert!(
        tools.contains("a__fine") && !tools.contains("a__deep"),
        "{} bytes",
        tools.len()
    );
    // It can be called by the meta-tools all the same.
    let mut other = setup.connect();
    assert_eq!(other.execute("a__deep").text(), "done");
}
