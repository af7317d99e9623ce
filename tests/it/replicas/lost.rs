//! Notifications and letters that do not arrive.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::cluster::Cluster;
use super::sessions::configure;
use crate::support::gateway::{Gateway, HttpSession, initialize};
use crate::support::until;

/// Ends a session in the store, without a word to the replicas.
fn end(cluster: &Cluster, session: &HttpSession) {
    cluster.database.run(&format!(
        "insert into session (hash, body, ended, expires) \
        values (substr(sha256('{}'), 1, 16), '', true, now() + interval '1 day')",
        session.id()
    ));
}

#[test]
fn a_session_that_has_ended_ends_everywhere_without_a_notification() {
    let Some(mut cluster) = Cluster::start_alone(2, configure) else {
        return;
    };
    let session = cluster.at(0).session();
    let (here, there) = (cluster.at(0).address(), cluster.at(1).address());
    let status = |address| {
        session
            .at(address)
            .execute(1, "fake__who", "")
            .send()
            .status
    };
    assert_eq!(status(here), 200);
    end(&cluster, &session);
    // One that was not there asks the store.
    assert_eq!(status(there), 404);
    // One that was there reads again after a restart, also if PostgreSQL was away for long.
    assert_eq!(status(here), 200);
    cluster.stop_database();
    thread::sleep(Duration::from_secs(4));
    cluster.start_database();
    until("the session to end", || (status(here) == 404).then_some(()));
}

#[test]
fn a_letter_for_a_replica_whose_address_another_has_is_not_taken() {
    let Some(mut cluster) = Cluster::start(2, &[], configure) else {
        return;
    };
    let session = cluster.at(1).session();
    let address = cluster.at(0).address();
    let mut call = session.execute(7, "fake__slow", "").open();
    let id = call.priming_event();
    let port = cluster.at(1).address().port();
    let old = cluster.database.run(&format!(
        "select id, peer_url, build from replica where peer_url like '%:{port}'"
    ));
    let mut old = old.split('|');
    let (old, url, build) = (
        old.next().unwrap().to_owned(),
        old.next().unwrap().to_owned(),
        old.next().unwrap().to_owned(),
    );
    cluster.replicas[1].kill();
    drop(call);
    cluster.replicas[1].start();
    // The row of the old one may still be there, as if it had not ended.
    cluster.database.run(&format!(
        "insert into replica (id, peer_url, build) values ('{old}', '{url}', '{build}') on conflict (id) do update set heartbeat = now() + interval '1 minute'"
    ));
    thread::sleep(Duration::from_secs(3));
    let mut resumed = session.at(address).resume(&id).open();
    let lost = resumed.message();
    assert!(
        lost.error().to_string().contains("may have acted"),
        "{lost:?}"
    );
}

#[test]
fn a_replica_that_hangs_is_not_waited_for_without_end() {
    let Some(mut cluster) = Cluster::start(2, &[], configure) else {
        return;
    };
    let session = cluster.at(1).session();
    let address = cluster.at(0).address();
    let mut call = session.execute(7, "fake__slow", "").open();
    let id = call.priming_event();
    let hanging = cluster.replicas[1].gateway.as_mut().unwrap().process();
    hanging.signal(Signal::STOP);
    let begun = Instant::now();
    let lost = session.at(address).resume(&id).open().message();
    assert!(
        lost.error().to_string().contains("may have acted"),
        "{lost:?}"
    );
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(25), "{took:?}");
    hanging.signal(Signal::CONT);
}

#[test]
fn a_replica_that_others_do_not_reach_at_its_url_says_so() {
    let Some(cluster) = Cluster::start(2, &[], |setup, number| match number {
        // No program listens there.
        1 => configure(setup, number)
            .setting("http", serde_json::json!({ "peer": "http://127.0.0.1:9" })),
        _ => configure(setup, number),
    }) else {
        return;
    };
    let checked = || cluster.setup(0).run(&["store", "check", "--json"]).json();
    until("both to have tried", || {
        let replicas = checked()["replicas"].as_array().unwrap().clone();
        let mut reached: Vec<_> = replicas
            .iter()
            .map(|one| one["reaches_itself"].as_bool())
            .collect();
        reached.sort();
        (reached == [Some(false), Some(true)]).then_some(())
    });
    let doctor = cluster.setup(0).run(&["doctor", "--json"]).json();
    let findings = doctor["findings"].as_array().unwrap();
    let found = findings
        .iter()
        .filter(|finding| finding["code"] == "gateway-unreached");
    let found: Vec<_> = found.map(|finding| finding["what"].to_string()).collect();
    assert_eq!(found.len(), 1, "{doctor}");
    assert!(found[0].contains("http://127.0.0.1:9"), "{found:?}");
}

#[test]
fn what_one_person_can_leave_in_the_store_is_bounded() {
    let Some(cluster) = Cluster::start(2, &[], configure) else {
        return;
    };
    let gateway = cluster.at(0);
    let name = "n".repeat(100_000);
    let hello = |gateway: &Gateway| {
        let body = initialize("2025-11-25", &serde_json::json!({}));
        let body = body.replace(r#""name":"test""#, &format!(r#""name":"{name}""#));
        assert_eq!(gateway.post(&body).send().status, 200);
    };
    hello(gateway);
    let size = "select max(octet_length(body)) < 1024 from session";
    assert_eq!(cluster.database.run(size), "t");
    cluster.database.run(
        "insert into session (hash, body, expires, owner) select decode(md5(number::text), 'hex'), body, now() + interval '1 day', owner \
        from session, generate_series(1, 5000) as number",
    );
    until("the oldest to go", || {
        hello(gateway);
        let count: u64 = cluster
            .database
            .run("select count(*) from session")
            .parse()
            .unwrap();
        (count <= 4096 + 100).then_some(())
    });
}

#[test]
fn two_ids_of_sessions_are_refused() {
    let Some(cluster) = Cluster::start(2, &[], configure) else {
        return;
    };
    let session = cluster.at(0).session();
    let twice = session.execute(1, "fake__who", "");
    let twice = twice.and_header("Mcp-Session-Id", session.id());
    assert_eq!(twice.send().status, 400);
}

#[test]
fn a_new_replica_is_known_at_once() {
    let Some(mut cluster) = Cluster::start(2, &[], configure) else {
        return;
    };
    cluster.replicas[1].kill();
    cluster.replicas[1].start();
    let session = cluster
        .at(1)
        .session_of("2025-11-25", &serde_json::json!({ "elicitation": {} }));
    let mut call = session.execute(1, "fake__ask", "").open();
    let question: serde_json::Value = serde_json::from_str(call.message().as_str()).unwrap();
    let id = question["id"].as_str().unwrap();
    let answer = serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept", "content": { "name": "x" } } });
    let elsewhere = session.at(cluster.at(0).address());
    assert_eq!(elsewhere.post(&answer.to_string()).send().status, 202);
    assert_eq!(call.message().text(), "asked at 1");
}
