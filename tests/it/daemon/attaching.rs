//! Finding the daemon, starting it, and doing without it.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use super::Shared;
use crate::support::script::answer;
use crate::support::{Client, Server, Setup, until};

fn shared() -> Shared {
    Shared::new(Setup::new().server("a", Server::new().tool("t", [answer("done")])))
}

/// Why the session of `client` runs alone, as `status` shows it.
fn reason(setup: &Setup, client: &Client) -> String {
    let status = setup.run(&["status", "--json"]).code(0).json();
    let alone = status["daemon"]["alone"].as_array().unwrap();
    let own = alone.iter().find(|one| one[0] == client.process());
    own.map_or_else(
        || panic!("it does not run alone: {status}"),
        |own| own[1].as_str().unwrap().to_owned(),
    )
}

#[test]
fn twenty_sessions_at_once_elect_one_daemon() {
    let setup = shared();
    let mut clients: Vec<Client> = (0..20).map(|_| setup.start()).collect();
    for client in &mut clients {
        client.shake_hands("2025-11-25");
        assert!(client.execute("a__t").text().contains("done"));
    }
    assert_eq!(setup.sessions(), 20);
    assert_eq!(setup.log().matches("the daemon is there").count(), 1);
    for client in clients {
        client.finish();
    }
    until("no session is left", || {
        (setup.sessions() == 0).then_some(())
    });
}

#[test]
fn a_socket_that_a_dead_daemon_left_is_replaced() {
    let setup = shared();
    setup.connect().finish();
    setup.kill_daemon();
    let mut client = setup.connect();
    client.execute("a__t");
    assert_eq!(setup.sessions(), 1);
}

#[test]
fn a_daemon_ends_some_time_after_its_last_session_and_leaves_no_socket() {
    let setup = Setup::new()
        .server("a", Server::new().tool("t", [answer("done")]))
        .setting(
            "daemon",
            serde_json::json!({ "mode": "auto", "idle": "300ms" }),
        )
        .daemon_as_configured();
    setup.connect().finish();
    until("the daemon has ended", || {
        let status = setup.run(&["daemon", "status", "--json"]).code(0).json();
        (status["running"] == false).then_some(())
    });
    let left: Vec<String> = std::fs::read_dir(setup.home().path("state/run"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(left.iter().all(|name| name.ends_with(".lock")), "{left:?}");
}

#[test]
fn sessions_share_a_daemon_unless_the_configuration_an_argument_or_a_variable_says_otherwise() {
    let setup = Setup::new()
        .server("a", Server::new().tool("t", [answer("done")]))
        .daemon_as_configured();
    let running = |setup: &Setup| {
        let status = setup.run(&["daemon", "status", "--json"]).code(0).json();
        status["running"].clone()
    };
    let off = setup.clone().setting("daemon", serde_json::json!("off"));
    off.connect().execute("a__t");
    assert_eq!(running(&off), false);
    setup.connect().execute("a__t");
    assert_eq!(running(&setup), true);
    let _ = setup.run(&["daemon", "stop"]).code(0);
    let setup = shared();
    let mut client = setup.start_with(&["serve", "--alone"]);
    client.shake_hands("2025-11-25");
    client.execute("a__t");
    assert_eq!(setup.status()["running"], false);
    let by_variable = setup.0.clone().variable("MCPZIP_DAEMON", "off");
    by_variable.connect().execute("a__t");
    assert_eq!(setup.status()["running"], false);
}

#[test]
fn where_no_directory_can_be_used_a_session_runs_alone_and_status_says_why() {
    let setup = shared();
    let home = setup.home();
    // No directory can be made of a file, nor used through a link.
    for name in ["runtime", "temporary"] {
        std::fs::create_dir(home.path(name)).unwrap();
    }
    std::fs::write(home.path("runtime/mcpzip"), "").unwrap();
    std::fs::write(home.path("state/run"), "").unwrap();
    let own = format!("temporary/mcpzip-{}", rustix::process::geteuid().as_raw());
    symlink(home.path("home"), home.path(&own)).unwrap();
    let alone = setup
        .0
        .clone()
        .variable("XDG_RUNTIME_DIR", home.path("runtime").to_str().unwrap())
        .variable("TMPDIR", home.path("temporary").to_str().unwrap());
    let mut client = alone.connect();
    assert!(client.execute("a__t").text().contains("done"));
    let reason = reason(&alone, &client);
    assert!(
        reason.contains("no directory for the socket") && reason.contains("runtime/mcpzip"),
        "{reason}"
    );
}

#[test]
fn a_directory_that_others_may_enter_is_not_used() {
    let setup = shared();
    let home = setup.home();
    std::fs::create_dir(home.path("state/run")).unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path("state/run"), open).unwrap();
    std::fs::create_dir(home.path("temporary")).unwrap();
    let setup = Shared(
        setup
            .0
            .clone()
            .variable("TMPDIR", home.path("temporary").to_str().unwrap()),
    );
    let mut client = setup.connect();
    client.execute("a__t");
    assert_eq!(setup.sessions(), 1);
    assert_eq!(
        std::fs::read_dir(setup.home().path("state/run"))
            .unwrap()
            .count(),
        0
    );
    let own = format!("temporary/mcpzip-{}", rustix::process::geteuid().as_raw());
    let directory = setup.home().path(&own);
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_socket_is_reached_by_a_path_of_any_length() {
    let setup = shared();
    let long = setup.home().path(&"d".repeat(160));
    std::fs::create_dir(&long).unwrap();
    let setup = Shared(
        setup
            .0
            .clone()
            .variable("XDG_RUNTIME_DIR", long.to_str().unwrap()),
    );
    let mut client = setup.connect();
    client.execute("a__t");
    assert_eq!(setup.sessions(), 1);
    assert!(long.join("mcpzip").is_dir());
}

#[test]
fn a_file_as_stdin_is_served_without_a_daemon() {
    let setup = shared();
    let input = setup.home().path("input");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    std::fs::write(&input, format!("{ping}\n")).unwrap();
    let mut command = setup.command(&["serve"]);
    command.stdin(Stdio::from(std::fs::File::open(input).unwrap()));
    let output = command.output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains(r#""id":1,"result""#));
    assert_eq!(setup.status()["running"], false);
}

#[test]
fn a_configuration_that_cannot_be_used_is_reported_as_ever() {
    let setup = shared();
    setup.save_text("{");
    let outcome = crate::support::command::run(setup.command(&["serve"]), "");
    let outcome = outcome.code(3);
    assert!(outcome.stderr.contains("config.json"), "{outcome}");
    setup.save();
}

#[test]
fn each_session_has_its_own_directory_and_variables() {
    let print = r#"{"command":"sh","args":["-c","pwd > $OUT; echo $TOKEN >> $OUT"],"env":{"OUT":"${OUT}","TOKEN":"${TOKEN}"}}"#;
    let setup = shared();
    let setup = Shared(setup.0.clone().entry("p", print));
    let printed = |name: &str| {
        let home = setup.home();
        let directory = home.path(name);
        std::fs::create_dir(&directory).unwrap();
        let out = home.path(&format!("{name}.out"));
        setup.save();
        let mut command = setup.command(&["serve"]);
        command
            .current_dir(&directory)
            .env("OUT", &out)
            .env("TOKEN", format!("token-of-{name}"));
        let mut client = setup.start_command(command);
        client.shake_hands("2025-11-25");
        client.ask(
            "tools/call",
            r#"{"name":"execute_tool","arguments":{"name":"p__x"}}"#,
        );
        let text = until("the server has written", || {
            std::fs::read_to_string(&out)
                .ok()
                .filter(|text| text.lines().count() == 2)
        });
        assert_eq!(text, format!("{}\ntoken-of-{name}\n", directory.display()));
        client
    };
    let one = printed("one");
    let two = printed("two");
    assert_eq!(setup.sessions(), 2);
    drop((one, two));
}

/// The modes keep another user out; where they do not, the daemon does. Only root can be another user.
#[test]
fn a_process_of_another_user_is_refused() {
    use std::io::{Read as _, Write as _};
    use std::os::unix::process::CommandExt as _;
    if !rustix::process::geteuid().is_root() || !crate::support::tool::has("python3", "python3") {
        return;
    }
    let setup = shared();
    setup.connect().finish();
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let run = setup.home().path("state/run");
    let socket = std::fs::read_dir(&run)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "sock"))
        .unwrap();
    for directory in run
        .ancestors()
        .take_while(|path| path.starts_with(setup.home().path("")))
    {
        open(directory, 0o777);
    }
    open(&socket, 0o666);
    let ask = r#"
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
hello = b'"control"'
data = b''
try:
    s.sendall(len(hello).to_bytes(4, 'little') + hello + b'{"jsonrpc":"2.0","id":1,"method":"daemon.status"}\n')
    data = s.recv(9999)
except OSError:
    pass
print(len(data))"#;
    let asked = |user: u32| {
        let mut command = std::process::Command::new("python3");
        command
            .args(["-c", ask])
            .arg(&socket)
            .current_dir("/")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .uid(user);
        let mut child = command
            .stdout(Stdio::piped())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().flush().unwrap();
        let mut text = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        child.wait().unwrap();
        text.trim().parse::<usize>().unwrap()
    };
    assert!(asked(0) > 0, "its own user is not answered");
    assert_eq!(asked(65534), 0, "another user is answered");
    open(&run, 0o700);
}

#[test]
fn eight_sessions_of_two_servers_are_two_server_processes() {
    let setup = Shared::new(
        Setup::new()
            .server("a", Server::new().tool("t", [answer("done")]))
            .server("b", Server::new().tool("t", [answer("done")])),
    );
    let mut clients: Vec<Client> = (0..8).map(|_| setup.connect()).collect();
    for client in &mut clients {
        assert!(client.execute("a__t").text().contains("done"));
        assert!(client.execute("b__t").text().contains("done"));
    }
    let starts = |server| setup.home().starts(server);
    assert_eq!((starts("a"), starts("b")), (1, 1));
    for client in clients {
        client.finish();
    }
}

#[test]
fn the_directory_of_logs_that_the_first_session_makes_is_open_to_the_user_alone() {
    let setup = shared();
    let logs = setup.home().path("state/logs");
    assert!(!logs.exists(), "the session makes it");
    setup.connect().finish();
    let mode = std::fs::metadata(&logs).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
