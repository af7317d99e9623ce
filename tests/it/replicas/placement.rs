//! Servers with `"placement": "one"`: one process for all replicas.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cluster::{Cluster, form};
use crate::identities::{execute, token};
use crate::support::gateway::HttpSession;
use crate::support::script::{answer, ask, await_cancel, count, line, note, result, sleep};
use crate::support::{Message, Server, Setup, program, until};

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1,"message":"half"}}"#;

/// The home of a server, whose entry is the same at all replicas.
pub(super) struct Shared {
    directory: TempDir,
    members: Value,
}

impl Shared {
    pub(super) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let server = Server::new()
            .tool("count", [count()])
            .tool("slow", [note("slow began"), sleep(3000), answer("slow")])
            .tool(
                "short",
                [
                    note("short began"),
                    sleep(400),
                    note("short ended"),
                    answer("short"),
                ],
            )
            .tool(
                "ask",
                [
                    ask("q", "elicitation/create", &form()),
                    note("answered $answer"),
                    answer("asked"),
                ],
            )
            .tool("work", [line(PROGRESS), sleep(100), answer("done")])
            .tool(
                "hang",
                [note("hanging"), await_cancel(), note("was cancelled")],
            );
        std::fs::write(directory.path().join("script"), server.to_json()).unwrap();
        Self {
            directory,
            members: json!({}),
        }
    }

    /// With more members in its entry.
    pub(super) fn with(mut self, members: Value) -> Self {
        self.members = members;
        self
    }

    pub(super) fn start(&self) -> Option<Cluster> {
        Cluster::start(3, &[], |setup, _| self.configure(setup))
    }

    fn configure(&self, setup: Setup) -> Setup {
        let mut entry = json!({
            "command": program::fake_server(),
            "args": [self.directory.path().join("script"), self.directory.path().join("log")],
            "placement": "one",
        });
        let members = self.members.as_object().expect("members of an entry");
        entry.as_object_mut().unwrap().extend(members.clone());
        setup.entry("fake", &entry.to_string())
    }

    /// The lines of the server's log with this text.
    pub(super) fn lines(&self, text: &str) -> Vec<String> {
        let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        let lines = log.lines().filter(|line| line.contains(text));
        lines.map(str::to_owned).collect()
    }

    /// The number of lines in the server's log with this text.
    pub(super) fn count(&self, text: &str) -> usize {
        self.lines(text).len()
    }

    pub(super) fn wait_for(&self, text: &str) {
        until(&format!("`{text}` in the log"), || {
            (self.count(text) > 0).then_some(())
        });
    }
}

/// The number of the replica at which the server runs.
pub(super) fn home(cluster: &Cluster) -> usize {
    let url = cluster.database.run(
        "select replica.peer_url from home join replica on replica.id = home.replica where home.until > now()",
    );
    let lives = |number: &usize| {
        let gateway = cluster.replicas[*number].gateway.as_ref();
        gateway.is_some_and(|gateway| url.ends_with(&format!(":{}", gateway.address().port())))
    };
    let found = (0..3).find(lives);
    found.unwrap_or_else(|| panic!("no replica is the home: {url:?}"))
}

fn counted(session: &HttpSession, id: u64) -> String {
    let answer = session.execute(id, "fake__count", "").send();
    answer.message().text()
}

#[test]
fn one_process_counts_for_all_replicas_until_its_home_is_killed() {
    let shared = Shared::new();
    let Some(mut cluster) = shared.start() else {
        return;
    };
    let session = cluster.at(0).session();
    let balanced = session.at(cluster.balanced().address());
    // Each call comes to another replica than the one before, and so do those of clients without a session.
    for number in 1..=6 {
        assert_eq!(counted(&balanced, number), number.to_string());
    }
    let gateway = cluster.balanced();
    for number in 7..=9 {
        let said = gateway.modern_execute("fake__count", "").send().message();
        assert_eq!(said.text(), number.to_string());
    }
    assert_eq!(shared.count("start"), 1, "one process has started");
    let status = cluster.setup(0).run(&["status", "--json"]).code(0).json();
    let url = format!("http://{}", cluster.at(home(&cluster)).address());
    let at = json!([{ "peer_url": url, "processes": 1 }]);
    assert_eq!(
        status["store"]["placement"],
        json!([{ "server": "fake", "at": at }])
    );

    // The home is killed while it works for another replica.
    let killed = home(&cluster);
    let other = (killed + 1) % 3;
    let elsewhere = session.at(cluster.at(other).address());
    let call = elsewhere.execute(20, "fake__slow", "");
    let call = thread::spawn(move || call.send());
    shared.wait_for("slow began");
    let begun = Instant::now();
    cluster.replicas[killed].kill();
    let lost = call.join().unwrap().message();
    let text = format!("{lost:?}");
    assert!(
        text.contains("may or may not have acted")
            && text.contains("what it had in memory is lost"),
        "{text}"
    );
    // The next call waits until the lease has ended, and starts the server at another replica; the answer says that its state is lost.
    let said = elsewhere.execute(21, "fake__count", "").send().message();
    let text = said.text();
    assert!(
        text.starts_with('1') && text.contains("Its earlier state in memory is lost"),
        "{text}"
    );
    assert!(begun.elapsed() < Duration::from_secs(28), "{begun:?}");
    assert_ne!(home(&cluster), killed);
    // Each session gets to know once.
    assert_eq!(counted(&elsewhere, 22), "2");
    assert_eq!(shared.count("start"), 2);
    assert_eq!(shared.count("slow began"), 1, "no call ran again");
    let third = session.at(cluster.at((killed + 2) % 3).address());
    assert!(counted(&third, 23).starts_with('3'));
}

#[test]
fn progress_cancellation_and_questions_pass_between_replicas() {
    let shared = Shared::new();
    let Some(cluster) = shared.start() else {
        return;
    };
    let first = cluster.at(0).session();
    assert_eq!(counted(&first, 1), "1");
    let other = (home(&cluster) + 1) % 3;
    let session = cluster
        .at(other)
        .session_of("2025-11-25", &json!({ "elicitation": {} }));
    // A question of the server, and the answer at a third replica.
    let mut call = session.execute(1, "fake__ask", "").open();
    let question: Value = serde_json::from_str(call.message().as_str()).unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "name": "x" } } });
    let third = session.at(cluster.at((other + 1) % 3).address());
    assert_eq!(third.post(&reply.to_string()).send().status, 202);
    assert_eq!(call.message().text(), "asked");
    // A client that cannot be asked: the server is refused in words.
    let dumb = cluster.at(other).session();
    let said = dumb.execute(1, "fake__ask", "").send().message();
    assert_eq!(said.text(), "asked");
    assert!(shared.count("no client declares support for") > 0);
    // While clients of two replicas have calls in progress, it is unknown whose question it is.
    let slow = first.at(cluster.at((other + 1) % 3).address());
    let slow = slow.execute(2, "fake__slow", "");
    let slow = thread::spawn(move || slow.send());
    shared.wait_for("slow began");
    let said = session.execute(2, "fake__ask", "").send().message();
    assert_eq!(said.text(), "asked");
    assert!(shared.count("clients of several replicas") > 0);
    assert_eq!(slow.join().unwrap().message().text(), "slow");
    // Progress.
    let mut call = session
        .execute(3, "fake__work", r#","_meta":{"progressToken":"t"}"#)
        .open();
    let told = call.message();
    assert!(told.is_notification("notifications/progress"), "{told:?}");
    assert!(told.params().contains(r#""progressToken":"t""#), "{told:?}");
    assert_eq!(call.message().text(), "done");
    // A cancellation, which comes to a third replica.
    let call = session.execute(4, "fake__hang", "").begin();
    shared.wait_for("hanging");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#;
    assert_eq!(third.post(cancel).send().status, 202);
    shared.wait_for("was cancelled");
    drop(call);
    // The cancelled call is over: a question for a client of another replica is asked.
    let third = cluster
        .at((other + 1) % 3)
        .session_of("2025-11-25", &json!({ "elicitation": {} }));
    let mut call = third.execute(5, "fake__ask", "").open();
    let question: Value = serde_json::from_str(call.message().as_str()).unwrap();
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "cancel" } });
    assert_eq!(third.post(&reply.to_string()).send().status, 202);
    assert_eq!(call.message().text(), "asked");
    assert_eq!(shared.count("start"), 1);
}

#[test]
fn a_home_that_stops_answers_its_calls_and_another_one_takes_over_at_once() {
    let shared = Shared::new();
    let Some(mut cluster) = shared.start() else {
        return;
    };
    let session = cluster.at(0).session();
    assert_eq!(counted(&session, 1), "1");
    let stopped = home(&cluster);
    let elsewhere = session.at(cluster.at((stopped + 1) % 3).address());
    assert_eq!(counted(&elsewhere, 2), "2");
    let call = elsewhere.execute(3, "fake__slow", "");
    let call = thread::spawn(move || call.send());
    shared.wait_for("slow began");
    let mut gateway = cluster.replicas[stopped].gateway.take().unwrap();
    gateway.process().signal(Signal::TERM);
    let answered: Message = call.join().unwrap().message();
    assert_eq!(answered.text(), "slow");
    assert_eq!(gateway.process().wait().code(), Some(0));
    let begun = Instant::now();
    let text = counted(&elsewhere, 4);
    assert!(
        text.starts_with('1') && text.contains("state in memory is lost"),
        "{text}"
    );
    assert!(begun.elapsed() < Duration::from_secs(5));
}

/// A replica that cannot prolong its lease ends the process before another one can start it.
#[test]
fn without_the_store_a_home_ends_its_server_in_time() {
    let shared = Shared::new();
    let Some(mut cluster) = Cluster::start_alone(2, |setup, _| shared.configure(setup)) else {
        return;
    };
    let session = cluster.at(0).session();
    assert_eq!(counted(&session, 1), "1");
    cluster.stop_database();
    // It goes on for a while.
    assert_eq!(counted(&session, 2), "2");
    let begun = Instant::now();
    let refused = loop {
        let said = session.execute(3, "fake__count", "").send().message();
        if said.is_tool_error() {
            break said.text();
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it never ended");
        thread::sleep(Duration::from_millis(500));
    };
    assert!(
        refused.contains("the store, which says at which replica it runs, does not answer"),
        "{refused}"
    );
    cluster.start_database();
    until("the server to run again", || {
        let said = session.execute(4, "fake__count", "").send().message();
        (!said.is_tool_error()).then_some(())
    });
    assert_eq!(shared.count("start"), 2);
}

/// Other servers run at each replica, and are not listed by two at a time.
#[test]
fn replicas_list_a_server_one_after_another() {
    let directory = TempDir::new().unwrap();
    let (script, log) = (
        directory.path().join("script"),
        directory.path().join("log"),
    );
    let listed = r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
    let server = Server::new().capabilities(r#"{"tools":{}}"#).on(
        "tools/list",
        [note("began"), sleep(1500), note("ended"), result(listed)],
    );
    std::fs::write(&script, server.to_json()).unwrap();
    let entry = json!({ "command": program::fake_server(), "args": [script, log] }).to_string();
    let configure = |setup: Setup, _| setup.entry("fake", &entry);
    let Some(_cluster) = Cluster::start(3, &[], configure) else {
        return;
    };
    let steps = || -> Vec<String> {
        let log = std::fs::read_to_string(directory.path().join("log")).unwrap_or_default();
        let steps = log.lines().filter(|line| ["began", "ended"].contains(line));
        steps.map(str::to_owned).collect()
    };
    until("all three to have listed it", || {
        (steps().len() == 6).then_some(())
    });
    assert_eq!(steps(), ["began", "ended"].repeat(3));
}

#[test]
fn people_have_processes_of_their_own() {
    let shared = Shared::new();
    let configure = |setup: Setup, _| {
        let setup = setup.setting("http", json!({ "auth": { "tokens": true } }));
        shared.configure(setup)
    };
    let Some(cluster) = Cluster::start(3, &[], configure) else {
        return;
    };
    let people = ["anna", "bo"].map(|name| token(cluster.setup(0), &[name]));
    for number in 1..=3 {
        for person in &people {
            let said = execute(cluster.at(number % 3), "fake__count", person);
            assert_eq!(said, format!("200 {number}"));
        }
    }
    // A third one has none of theirs either.
    let third = token(cluster.setup(1), &["cleo"]);
    assert_eq!(execute(cluster.at(0), "fake__count", &third), "200 1");
}
