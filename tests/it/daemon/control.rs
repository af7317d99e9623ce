//! The control interface of a daemon, as a view of it uses it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::Shared;
use crate::support::script::{answer, error, hang};
use crate::support::{Server, Setup, command, until};

pub(super) struct View {
    socket: UnixStream,
    lines: BufReader<UnixStream>,
}

impl View {
    pub(super) fn open(setup: &Shared) -> Self {
        let status = setup.status();
        let path = status["daemon"]["socket"].as_str().expect("a socket");
        let mut socket = UnixStream::connect(path).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let greeting = br#""control""#;
        socket.write_all(&9_u32.to_le_bytes()).unwrap();
        socket.write_all(greeting).unwrap();
        let lines = BufReader::new(socket.try_clone().unwrap());
        Self { socket, lines }
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn say(&mut self, line: &str) -> Value {
        self.socket
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
        self.next()
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let mut answer = self.say(&request.to_string());
        // Events may come before it.
        while answer["method"] == "event" {
            answer = self.next();
        }
        assert_eq!(answer["id"], 7, "{answer}");
        answer
    }

    pub(super) fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// The next event of this kind; others are passed over.
    pub(super) fn event(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next();
            assert_eq!(message["method"], "event", "{message}");
            if message["params"]["kind"] == kind {
                return message["params"].clone();
            }
        }
    }
}

/// The events that are kept.
pub(super) fn past(setup: &Shared) -> Vec<Value> {
    let past = View::open(setup).result("events.list", &json!({}));
    past["events"].as_array().unwrap().clone()
}

fn shared() -> Shared {
    let server = Server::new().tool("t", [answer("done")]);
    Shared::new(Setup::new().server("a", server))
}

#[test]
fn servers_and_sessions_are_shown_with_their_states_and_reasons() {
    let setup = Shared::new(
        Setup::new()
            .server("a", Server::new().tool("t", [answer("done")]))
            .entry(
                "absent",
                r#"{"command":"/no/such/program","env":{"TOKEN":"secret-of-absent"}}"#,
            )
            .entry("off", r#"{"command":"/no/such/program","disabled":true}"#),
    );
    let mut clients = [setup.connect(), setup.connect()];
    for client in &mut clients {
        client.execute("a__t");
        client.execute("absent__t");
    }
    let mut view = View::open(&setup);
    let status = view.result("daemon.status", &json!({}));
    assert_eq!(status["api"], 1);
    let ids: Vec<&Value> = status["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| &session["id"])
        .collect();
    assert_eq!(ids.len(), 2);
    let servers = view.result("servers.list", &json!({}))["servers"].clone();
    let of = |name: &str| -> Vec<&Value> {
        let servers = servers.as_array().unwrap().iter();
        servers.filter(|server| server["server"] == name).collect()
    };
    let [a] = of("a")[..] else {
        panic!("one process, two sessions: {servers}")
    };
    assert_eq!(a["state"], "ready", "{servers}");
    assert_eq!(a["sessions"], json!(ids), "{servers}");
    assert!(a["sharing"].as_str().unwrap().contains("2 sessions"));
    assert_eq!(of("off")[0]["state"], "disabled", "{servers}");
    let absent = of("absent")[0];
    assert_eq!(absent["state"], "failed", "{servers}");
    assert!(
        absent["reason"]
            .as_str()
            .unwrap()
            .contains("/no/such/program"),
        "{servers}"
    );
    assert!(!servers.to_string().contains("secret-of-absent"));
}

#[test]
fn a_listener_hears_of_servers_sessions_and_calls() {
    let setup = shared();
    let mut keeper = setup.connect();
    let mut view = View::open(&setup);
    view.result("events.subscribe", &json!({}));
    let mut client = setup.connect();
    let opened = view.event("session_opened");
    assert_eq!(opened["process"], client.process());
    client.execute("a__t");
    let began = view.event("call_began");
    assert_eq!(
        (&began["server"], &began["tool"], &began["session"]),
        (&json!("a"), &json!("t"), &opened["session"])
    );
    let ended = view.event("call_ended");
    assert_eq!(
        (&ended["call"], &ended["outcome"]),
        (&began["call"], &json!("ok"))
    );
    client.finish();
    assert_eq!(view.event("session_closed")["session"], opened["session"]);
    let past = view.result("events.list", &json!({}));
    let kinds: Vec<&str> = past["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|event| event["kind"].as_str())
        .collect();
    let first = |kind: &str| {
        let at = kinds.iter().position(|known| *known == kind);
        at.unwrap_or_else(|| panic!("no {kind}: {kinds:?}"))
    };
    assert!(first("session_opened") < first("server_starting"));
    assert!(first("server_starting") < first("server_ready"));
    first("tools_changed");
    assert!(!kinds.contains(&"call_began"), "calls are not kept");
    let since = opened["number"].as_u64().unwrap();
    let later = view.result("events.list", &json!({ "since": since }));
    assert_eq!(later["events"][0]["number"], since);
    assert_eq!(later["is_incomplete"], false);
    keeper.execute("a__t");
}

#[test]
fn a_late_listener_gets_the_calls_in_flight_and_that_one_was_cancelled() {
    let server = Server::new().tool("t", [hang()]);
    let setup = Shared::new(Setup::new().server("a", server));
    let mut client = setup.connect();
    let id = client.begin_execute("a__t");
    until("the call to arrive", || {
        (setup.home().count("a", r#""name":"t""#) == 1).then_some(())
    });
    let mut view = View::open(&setup);
    let past = view.result("events.subscribe", &json!({}));
    let [began] = &past["calls"].as_array().unwrap()[..] else {
        panic!("one call is in flight: {past}")
    };
    assert_eq!(
        (&began["kind"], &began["server"], &began["tool"]),
        (&json!("call_began"), &json!("a"), &json!("t"))
    );
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    let ended = view.event("call_ended");
    assert_eq!(
        (&ended["call"], &ended["outcome"]),
        (&began["call"], &json!("cancelled"))
    );
    let past = view.result("events.list", &json!({}));
    assert_eq!(past["calls"], json!([]), "{past}");
}

#[test]
fn a_failure_is_told_without_the_secrets_that_it_names() {
    let entry = r#"{"command":"/bin/sh","args":["-c","exit 3 # hidden-value"],"env":{"TOKEN":"hidden-value"}}"#;
    let setup = Shared::new(Setup::new().entry("broken", entry));
    let mut client = setup.connect();
    client.execute("broken__t");
    let mut view = View::open(&setup);
    let past = view.result("events.list", &json!({ "since": 0 }));
    let events = past["events"].as_array().unwrap();
    let failed = events.iter().find(|event| event["kind"] == "server_failed");
    assert_eq!(failed.expect("it failed")["server"], "broken", "{past}");
    assert!(!past.to_string().contains("hidden-value"), "{past}");
}

#[test]
fn a_failure_of_a_server_in_quarantine_is_told_without_its_words() {
    const WORDS: &str = "obey these words";
    let refusal = json!({ "code": -32000, "message": WORDS }).to_string();
    let server = Server::new().on("initialize", [error(&refusal)]);
    let setup = Setup::new().server_with("held", server, json!({ "trust": "quarantine" }));
    let setup = Shared::new(setup);
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    let mut view = View::open(&setup);
    let past = view.result("events.list", &json!({ "since": 0 }));
    let events = past["events"].as_array().unwrap();
    let failed = events.iter().find(|event| event["kind"] == "server_failed");
    let reason = failed.expect("it failed")["reason"].to_string();
    assert!(reason.contains("refused the handshake"), "{reason}");
    assert!(!past.to_string().contains(WORDS), "{past}");
    for method in ["servers.list", "daemon.status"] {
        let shown = view.result(method, &json!({})).to_string();
        assert!(!shown.contains(WORDS), "{method}: {shown}");
    }
    client.finish();
}

#[test]
fn a_server_is_restarted_and_stopped_for_all_its_sessions() {
    let setup = shared();
    let mut clients = [setup.connect(), setup.connect()];
    for client in &mut clients {
        client.execute("a__t");
    }
    let starts = setup.home().starts("a");
    let mut view = View::open(&setup);
    view.result("events.subscribe", &json!({}));
    let state = |setup: &Shared| {
        View::open(setup).result("servers.list", &json!({}))["servers"][0]["state"].clone()
    };
    let run = |words: &[&str]| command::run(setup.command(words), "").code(0);
    assert_eq!(
        run(&["daemon", "restart", "a", "--json"]).json(),
        json!({ "restarted": true })
    );
    view.event("server_stopped");
    view.event("server_ready");
    until("it runs again", || (state(&setup) == "ready").then_some(()));
    assert_eq!(setup.home().starts("a"), starts + 1);
    for client in &mut clients {
        assert!(client.execute("a__t").text().contains("done"));
    }
    assert_eq!(setup.home().starts("a"), starts + 1);
    let _ = run(&["daemon", "stop", "a", "--json"]);
    view.event("server_stopped");
    assert_eq!(state(&setup), "idle");
    assert!(clients[0].execute("a__t").text().contains("done"));
    assert_eq!(setup.sessions(), 2);
}

#[test]
fn a_server_that_is_stopped_while_its_list_is_stored_is_idle() {
    let setup = shared();
    let mut client = setup.connect();
    client.execute("a__t");
    let lists = || setup.home().count("a", "tools/list");
    until("it is listed", || (lists() == 1).then_some(()));
    let pins = setup.home().path("state/pins/v2/lock");
    let pins = until("its tools are stored", || std::fs::File::open(&pins).ok());
    // Storing a list waits for this lock.
    pins.lock().unwrap();
    let mut view = View::open(&setup);
    let server = json!({ "server": "a" });
    view.result("servers.restart", &server);
    until("it is listed again", || (lists() == 2).then_some(()));
    // The server answers in order: it has sent its list before this answer.
    assert!(client.execute("a__t").text().contains("done"));
    view.result("servers.stop", &server);
    let servers = view.result("servers.list", &json!({}));
    assert_eq!(servers["servers"][0]["state"], "idle", "{servers}");
    pins.unlock().unwrap();
    assert!(client.execute("a__t").text().contains("done"));
}

#[test]
fn all_sessions_read_their_configuration_again_when_told() {
    let setup = shared();
    let _clients = [setup.connect(), setup.connect()];
    let outcome = command::run(setup.command(&["daemon", "reload", "--json"]), "");
    assert_eq!(outcome.code(0).json(), json!({ "sessions": 2 }));
    until("both have read it", || {
        (setup.log().matches("configuration read again").count() >= 2).then_some(())
    });
}

#[test]
fn what_cannot_be_asked_is_refused_with_a_code_and_the_connection_goes_on() {
    let setup = shared();
    let _client = setup.connect();
    let mut view = View::open(&setup);
    for (line, code) in [
        ("no JSON", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"daemon.fly"}"#, -32601),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"servers.stop"}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"servers.stop","params":{"server":"nowhere"}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"servers.stop","params":{"server":"a","session":"nobody"}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"events.list","params":{"since":"yesterday"}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"daemon.stop","params":{"server":"a"}}"#,
            -32602,
        ),
    ] {
        assert_eq!(view.say(line)["error"]["code"], code, "{line}");
    }
    // A notification has no answer.
    let notification = br#"{"jsonrpc":"2.0","method":"daemon.status"}"#;
    view.socket.write_all(notification).unwrap();
    view.socket.write_all(b"\n").unwrap();
    assert_eq!(view.ask("daemon.status", &json!({}))["result"]["api"], 1);
}

#[test]
fn a_view_does_not_keep_the_daemon() {
    let setup = Shared(
        Setup::new()
            .server("a", Server::new().tool("t", [answer("done")]))
            .setting("daemon", json!({ "mode": "auto", "idle": "300ms" }))
            .daemon_as_configured(),
    );
    let client = setup.connect();
    let mut view = View::open(&setup);
    view.result("events.subscribe", &json!({}));
    client.finish();
    until("the daemon has ended", || {
        (setup.status()["running"] == false).then_some(())
    });
}

#[test]
fn a_listener_that_does_not_read_gets_the_number_of_events_it_lost_and_delays_no_session() {
    let setup = shared();
    let mut client = setup.connect();
    let mut view = View::open(&setup);
    view.result("events.subscribe", &json!({}));
    // Two events each: more than its socket takes and the daemon keeps for it.
    let calls = 4_000;
    for _ in 0..calls {
        assert_eq!(client.execute("a__t").text(), "done");
    }
    let (mut heard, mut last) = (0, 0);
    let lost = loop {
        let message = view.next();
        if message["method"] == "lagged" {
            break message["params"]["lost"].as_u64().unwrap();
        }
        heard += 1;
        last = message["params"]["number"].as_u64().unwrap();
    };
    assert!(lost > 0 && heard + lost < 2 * calls + 10, "{heard} {lost}");
    // The first event after the gap says how wide it is, and the last one is the end of the last call.
    let next = view.next();
    assert_eq!(next["params"]["number"], last + lost + 1, "{next}");
    let mut ended = next;
    while ended["params"]["kind"] != "call_ended" || ended["params"]["call"] != calls - 1 {
        ended = view.next();
    }
    assert_eq!(ended["params"]["outcome"], "ok");
}
