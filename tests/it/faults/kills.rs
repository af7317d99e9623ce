//! `kill -9` at any moment, of three processes at once, while lists, the configuration, tokens and results are written.
//!
//! A run of all five hundred: `MCPZIP_TEST_KILLS=500 cargo test --test it faults::kills`.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::Outcome;
use crate::support::authority::{Authority, Manner, log_in};
use crate::support::process::kills;
use crate::support::script::answer;
use crate::support::{Client, Server, Setup, until};

pub(super) const OUTCOMES: &[Outcome] = &[Outcome {
    fault: "three processes, again and again, while lists are taken, servers are added and removed, tokens are renewed, \
            results are stored",
    gets: "",
    after: "",
    then: "the configuration is whole and has every server that was there; the next start finds and calls; no login is \
           lost; no file is damaged",
}];

/// The default number of kills.
const KILLS: u64 = 20;

#[test]
fn no_kill_damages_anything() {
    let kills = kills().unwrap_or(KILLS);
    let large = "x".repeat(20_000);
    let tools = |round: u64| {
        let server = Server::new()
            .tool("work", [answer("done")])
            .tool("large", [answer(&large)]);
        // Another list each time, so that there is something to write.
        server.tool(&format!("round_{round}"), [])
    };
    // Its tokens are over when they come, so each call writes another. It takes a used one once more: where a server does
    // not, a kill between its answer and our write costs the login (docs/decisions/041).
    let authority = Authority::start(Manner {
        expires_in: Some(0),
        is_strict: false,
        ..Manner::default()
    });
    let setup = authority
        .setup(json!({}))
        .server("a", tools(0))
        .server("b", Server::new().tool("play", [answer("played")]))
        .setting("management", json!("full"))
        .setting("results", json!({ "budget": 100, "kept_for": "1h" }));
    setup.save();
    log_in(&setup);
    let extra = Setup::new().server("c", Server::new().tool("t", [answer("c")]));
    extra.save();
    let entry = config(&extra)["mcpServers"]["c"].clone();
    for round in 0..kills {
        let mut clients = [serve(&setup), serve(&setup), serve(&setup)];
        for (number, client) in clients.iter_mut().enumerate() {
            client.begin("search_tools", r#"{"query":"does play"}"#);
            client.begin_execute("a__large");
            client.begin_execute("web__t");
            let change = match (round + number as u64) % 2 {
                0 => json!({ "operation": "add", "servers": { format!("extra{number}"): entry } }),
                _ => json!({ "operation": "remove", "names": [format!("extra{number}")] }),
            };
            client.begin(
                "execute_tool",
                &json!({ "name": "mcpzip__servers", "arguments": change }).to_string(),
            );
        }
        // Each round at another moment of the work.
        std::thread::sleep(Duration::from_millis(round * 37 % 211));
        for client in &mut clients {
            client.try_signal(Signal::KILL);
            client.wait();
            let stderr = client.stderr();
            assert!(
                !stderr.contains("a fault inside") && !stderr.contains("damaged"),
                "round {round}: {stderr}"
            );
        }
        check_login(&setup, round);
        let config = config(&setup);
        assert!(
            config["mcpServers"]["a"].is_object() && config["mcpServers"]["b"].is_object(),
            "round {round}: {config}"
        );
        assert_eq!(config["management"], "full", "round {round}: {config}");
        // This writes its script alone; the configuration stays as it is.
        let _ = setup.clone().server("a", tools(round + 1));
    }
    let mut client = serve(&setup);
    until("the tools", || {
        client.search("does play").contains("b__play").then_some(())
    });
    assert_eq!(client.execute("a__work").text(), "done");
    assert!(client.execute("a__large").text().contains("read_result"));
    assert_eq!(client.execute("web__t").text(), "fine");
    println!(
        "{kills} kills, {} renewals of a token",
        authority.read(|state| state.refreshes)
    );
    assert!(!client.stderr().contains("damaged"), "{}", client.stderr());
    client.finish();
}

/// The only login is whole; a file that was being written beside it does not count.
#[track_caller]
fn check_login(setup: &Setup, round: u64) {
    let files = std::fs::read_dir(setup.home().path("state/logins"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let mut kept = 0;
    for path in files {
        let end = path
            .extension()
            .and_then(|end| end.to_str())
            .unwrap_or_default()
            .to_owned();
        assert_ne!(end, "damaged", "round {round}: {}", path.display());
        if end == "json" {
            let text = std::fs::read_to_string(&path).unwrap();
            let record: Value = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("round {round}: {error}: {text}"));
            assert!(
                record["logins"]
                    .as_object()
                    .is_some_and(|logins| !logins.is_empty()),
                "round {round}: {text}"
            );
            kept += 1;
        }
    }
    assert_eq!(kept, 1, "round {round}");
}

/// `mcpzip serve` with the configuration as the last one left it.
fn serve(setup: &Setup) -> Client {
    let mut client = setup.start_command(setup.command(&["serve"]));
    client.shake_hands("2025-11-25");
    client
}

#[track_caller]
fn config(setup: &Setup) -> Value {
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("the configuration is damaged ({error}): {text}"))
}
