//! HTTP clients of a daemon, beside its sessions.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::{Shared, is_gone};
use crate::support::gateway::Gateway;
use crate::support::script::{answer, surroundings};
use crate::support::terminal::Terminal;
use crate::support::{Server, Setup, command, process, until};

/// A home whose daemon serves HTTP, and whose server `a` is for all sessions.
fn shared(http: Value) -> Shared {
    let server = Server::new().tool("t", [answer("done")]);
    let setup = Setup::new().server_with("a", server, json!({ "share": "all" }));
    Shared::new(setup.setting("http", http))
}

impl Shared {
    fn http(&self) -> Value {
        self.status()["daemon"]["http"].clone()
    }

    /// The server of the daemon, once it listens.
    fn gateway(&self) -> Gateway {
        let url = until("the daemon listens", || {
            self.http()["url"].as_str().map(str::to_owned)
        });
        Gateway::at(&url)
    }

    /// Why the daemon does not listen, once it says so.
    fn reason(&self) -> String {
        until("the daemon says why it does not listen", || {
            self.http()["reason"].as_str().map(str::to_owned)
        })
    }

    fn edit(&mut self, http: Option<Value>) {
        let setup = std::mem::replace(&mut self.0, Setup::new());
        self.0 = setup.setting("http", http.unwrap_or(json!({})));
        self.0.save();
    }

    fn run(&self, words: &[&str]) -> crate::support::command::Outcome {
        command::run(self.command(words), "").code(0)
    }
}

fn call(gateway: &Gateway) -> String {
    gateway.modern_execute("a__t", "").send().body
}

#[test]
fn two_sessions_and_an_http_client_share_one_process_of_a_server() {
    let setup = shared(json!({ "address": "127.0.0.1:0" }));
    let mut clients = [setup.connect(), setup.connect()];
    let gateway = setup.gateway();
    for client in &mut clients {
        assert!(client.execute("a__t").text().contains("done"));
    }
    assert!(call(&gateway).contains("done"));
    let session = gateway.session();
    assert!(session.execute(5, "a__t", "").send().body.contains("done"));
    assert_eq!(setup.home().starts("a"), 1);
    let status = setup.run(&["status", "--json"]).json();
    let url = format!("http://{}/mcp", gateway.address());
    assert_eq!(status["daemon"]["running"]["http"]["url"], url, "{status}");
}

#[test]
fn an_http_client_gets_no_directory_of_a_session() {
    let server = Server::new().tool("t", [surroundings()]);
    let setup = Setup::new().server_with("a", server, json!({ "share": "project" }));
    let setup = Shared::new(setup.setting("http", json!({ "address": "127.0.0.1:0" })));
    let mut command = setup.0.command(&["serve"]);
    let home = std::fs::canonicalize(setup.home().path("")).unwrap();
    let directory = home.join("project");
    std::fs::create_dir(&directory).unwrap();
    command
        .current_dir(&directory)
        .env("HOME", &home)
        .env("CLAUDE_PROJECT_DIR", &directory);
    let mut client = setup.0.start_command(command);
    client.shake_hands("2025-11-25");
    let own = client.execute("a__t").text();
    assert!(own.contains(directory.to_str().unwrap()), "{own}");
    let seen = call(&setup.gateway());
    assert!(seen.contains(home.to_str().unwrap()), "{seen}");
    assert!(!seen.contains(directory.to_str().unwrap()), "{seen}");
}

#[test]
fn the_token_of_the_configuration_is_demanded_by_the_daemon() {
    let server = Server::new().tool("t", [answer("done")]);
    let setup = Setup::new().server("a", server);
    let file = setup.home().path("token");
    std::fs::write(&file, "open-sesame\n").unwrap();
    let http = json!({ "address": "127.0.0.1:0", "token_file": file });
    let setup = Shared::new(setup.setting("http", http));
    let _client = setup.connect();
    let gateway = setup.gateway();
    let discover = gateway.modern("server/discover", "");
    assert_eq!(discover.send().status, 401);
    for (shown, status) in [("Bearer open", 401), ("Bearer open-sesame", 200)] {
        let call = discover.clone().header("Authorization", shown);
        assert_eq!(call.send().status, status, "{shown}");
    }
    let status = setup.status().to_string();
    assert!(!status.contains("open-sesame"), "{status}");
    assert_eq!(setup.http()["has_token"], true);
}

#[test]
fn without_a_token_the_daemon_listens_on_the_loopback_interface_only() {
    let setup = shared(json!({ "address": "0.0.0.0:0" }));
    let mut client = setup.connect();
    let reason = setup.reason();
    assert!(reason.contains("clients must show a token"), "{reason}");
    assert!(client.execute("a__t").text().contains("done"));
}

#[test]
fn a_taken_port_is_said_in_status_and_used_once_it_is_free() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let setup = shared(json!({ "address": address }));
    let mut client = setup.connect();
    let reason = setup.reason();
    assert!(reason.contains(&address), "{reason}");
    assert!(client.execute("a__t").text().contains("done"));
    if let Some(terminal) = Terminal::run(&setup.command(&["status"])) {
        let screen = terminal.shows("[exit 0]");
        assert!(screen.contains("HTTP clients are not served"), "{screen}");
    }
    drop(taken);
    assert_eq!(setup.gateway().address().to_string(), address);
    let warned = "HTTP clients are served without a token";
    assert!(setup.log().contains(warned), "{}", setup.log());
    assert!(setup.log().matches("HTTP clients are not served").count() <= 1);
}

#[test]
fn an_edit_of_the_configuration_starts_changes_and_stops_the_http_server() {
    let mut setup = shared(json!({}));
    let mut client = setup.connect();
    assert_eq!(setup.http(), Value::Null);
    setup.edit(Some(json!({ "address": "127.0.0.1:0" })));
    let first = setup.gateway();
    assert!(call(&first).contains("done"));
    let file = setup.home().path("token");
    std::fs::write(&file, "word").unwrap();
    setup.edit(Some(
        json!({ "address": "127.0.0.1:0", "token_file": file, "direct": true }),
    ));
    until("a token is demanded", || {
        (setup.http()["has_token"] == true && setup.http()["url"].is_string()).then_some(())
    });
    let second = setup.gateway();
    let list = second
        .modern("tools/list", "")
        .header("Authorization", "Bearer word")
        .send();
    assert!(list.body.contains("a__t"), "{}", list.body);
    setup.edit(None);
    until("HTTP has ended", || setup.http().is_null().then_some(()));
    assert!(std::net::TcpStream::connect(second.address()).is_err());
    assert!(client.execute("a__t").text().contains("done"));
}

#[test]
fn after_the_death_of_the_daemon_the_next_one_listens_again() {
    let setup = shared(json!({ "address": "127.0.0.1:0" }));
    let mut client = setup.connect();
    assert!(call(&setup.gateway()).contains("done"));
    let dead = setup.process();
    setup.kill_daemon();
    until("another daemon has taken over", || {
        let status = setup.status();
        let process = status["daemon"]["process"].as_u64();
        process.filter(|process| *process != u64::from(dead))
    });
    assert!(call(&setup.gateway()).contains("done"));
    assert!(client.execute("a__t").text().contains("done"));
}

#[test]
fn a_configured_address_keeps_the_daemon_without_sessions() {
    let server = Server::new().tool("t", [answer("done")]);
    let setup = Setup::new()
        .server("a", server)
        .setting("daemon", json!({ "mode": "auto", "idle": "100ms" }))
        .setting("http", json!({ "address": "127.0.0.1:0" }))
        .daemon_as_configured();
    setup.save();
    let mut setup = Shared(setup);
    let client = setup.connect();
    let gateway = setup.gateway();
    let daemon = setup.process();
    client.finish();
    until("the session has ended", || {
        (setup.sessions() == 0).then_some(())
    });
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(call(&gateway).contains("done"));
    assert_eq!(setup.process(), daemon);
    setup.edit(None);
    until("the daemon ends without the address", || {
        is_gone(daemon).then_some(())
    });
}

#[test]
fn a_restart_without_sessions_keeps_serving_http_with_the_same_variables() {
    let setup = shared(json!({ "address": "127.0.0.1:0" }));
    let client = setup.connect();
    assert!(call(&setup.gateway()).contains("done"));
    let (before, variables_of) = (setup.process(), setup.http()["variables_of"].clone());
    client.finish();
    until("the session has ended", || {
        (setup.sessions() == 0).then_some(())
    });
    let restarted = setup.run(&["daemon", "restart", "--json"]).json();
    assert_eq!(restarted, json!({ "restarted": true }));
    assert!(call(&setup.gateway()).contains("done"));
    assert_ne!(setup.process(), before);
    assert_eq!(setup.http()["variables_of"], variables_of);
}

#[test]
fn a_daemon_in_the_foreground_serves_http_without_a_session() {
    let setup = shared(json!({ "address": "127.0.0.1:0" }));
    let run = setup.0.start_with(&["daemon", "run"]);
    until("the daemon runs", || {
        (setup.status()["running"] == true).then_some(())
    });
    assert!(call(&setup.gateway()).contains("done"));
    assert_eq!(setup.http()["variables_of"], run.process());
    let _ = setup.run(&["daemon", "stop"]);
    until("the daemon has ended", || {
        is_gone(run.process()).then_some(())
    });
}

#[test]
fn a_server_over_http_beside_the_daemon_says_who_has_its_address() {
    let setup = shared(json!({ "address": "127.0.0.1:0" }));
    let _client = setup.connect();
    let gateway = setup.gateway();
    let address = gateway.address().to_string();
    let outcome = command::run(setup.command(&["serve", "--http", &address]), "");
    assert_ne!(outcome.code, Some(0));
    assert!(
        outcome.stderr.contains("the daemon serves this address"),
        "{}",
        outcome.stderr
    );
    assert!(call(&gateway).contains("done"));
    // With another address it is a process of its own.
    let own = setup.0.serve(&[]);
    assert_ne!(own.address(), gateway.address());
    assert!(process::Process::read(setup.process()).is_some());
}

#[test]
fn the_metrics_show_the_sessions_of_the_daemon_and_the_servers_that_they_share() {
    let setup = shared(json!({ "address": "127.0.0.1:0", "metrics": true }));
    let mut clients = [setup.connect(), setup.connect()];
    for client in &mut clients {
        client.execute("a__t");
    }
    let metrics = |gateway: &Gateway| gateway.call("GET", "/metrics").send().body;
    let text = metrics(&setup.gateway());
    for line in [
        "mcpzip_daemon_sessions 2\n",
        "mcpzip_daemon_windows 0\n",
        "mcpzip_daemon_paused 0\n",
        "mcpzip_daemon_shared_servers 1\n",
        "mcpzip_daemon_taken_over_sessions_total 0\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    setup.kill_daemon();
    until("both sessions have another daemon", || {
        (setup.sessions() == 2).then_some(())
    });
    let text = metrics(&setup.gateway());
    assert!(
        text.contains("mcpzip_daemon_taken_over_sessions_total 2\n"),
        "{text}"
    );
}
