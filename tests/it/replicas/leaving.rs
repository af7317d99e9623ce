//! The home of a server with `"placement": "one"` that stops while replicas use it, and how many calls the server gets at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use super::cluster::Cluster;
use super::placement::{Shared, home};
use crate::support::until;

/// There is always a call in progress, and one that was cancelled is not.
#[test]
fn a_home_that_stops_under_load_loses_no_call() {
    let shared = Shared::new();
    let Some(mut cluster) = shared.start() else {
        return;
    };
    let session = cluster.at(0).session();
    let _ = session.execute(1, "fake__count", "").send();
    let stopped = home(&cluster);
    let others = [(stopped + 1) % 3, (stopped + 2) % 3];
    let elsewhere = session.at(cluster.at(others[0]).address());
    let hanging = elsewhere.execute(2, "fake__hang", "").begin();
    shared.wait_for("hanging");
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    assert_eq!(elsewhere.post(cancel).send().status, 202);
    shared.wait_for("was cancelled");
    drop(hanging);

    let mut gateway = cluster.replicas[stopped].gateway.take().unwrap();
    let (is_over, started) = (AtomicBool::new(false), || shared.count("start"));
    let work = |number: usize| {
        let call = cluster.at(number).modern_execute("fake__short", "");
        let mut said = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            said.push(call.send().message().text());
        }
        said
    };
    let (took, said) = thread::scope(|scope| {
        let workers: Vec<_> = [0, 0, 0, 1, 1, 1]
            .map(|one: usize| scope.spawn(move || work(others[one])))
            .into();
        thread::sleep(Duration::from_secs(1));
        let begun = Instant::now();
        gateway.process().signal(Signal::TERM);
        assert_eq!(gateway.process().wait().code(), Some(0));
        let took = begun.elapsed();
        // The server runs at one of the others, for both.
        while started() < 2 && begun.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(100));
        }
        thread::sleep(Duration::from_secs(3));
        is_over.store(true, Ordering::Relaxed);
        let said = workers.into_iter().flat_map(|one| one.join().unwrap());
        (took, said.collect::<Vec<_>>())
    });
    let lost = said.iter().filter(|said| !said.starts_with("short"));
    assert_eq!(lost.collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(
        said.iter()
            .any(|said| said.contains("state in memory is lost"))
    );
    // The three seconds of its notice, and the calls in progress.
    assert!(took < Duration::from_secs(12), "{took:?}");
    assert_eq!(started(), 2);
    assert_eq!(shared.count("short ended"), said.len(), "no call ran twice");
}

#[test]
fn the_limit_on_calls_counts_for_all_replicas_together() {
    let shared = Shared::new().with(json!({ "max_concurrent": 1 }));
    let Some(cluster) = shared.start() else {
        return;
    };
    let calls: Vec<_> = (0..6)
        .map(|number| {
            let call = cluster.at(number % 3).modern_execute("fake__short", "");
            thread::spawn(move || call.send().message().text())
        })
        .collect();
    for call in calls {
        assert_eq!(call.join().unwrap(), "short");
    }
    let steps = shared.lines("short ");
    assert_eq!(steps, ["short began", "short ended"].repeat(6));
    // One that waits and is cancelled does not come to the server, and leaves room for the next one.
    let session = cluster.at(0).session();
    let slow = cluster.at(1).modern_execute("fake__slow", "");
    let slow = thread::spawn(move || slow.send().message().text());
    shared.wait_for("slow began");
    let waiting = session.execute(1, "fake__count", "").begin();
    thread::sleep(Duration::from_millis(300));
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(session.post(cancel).send().status, 202);
    assert_eq!(slow.join().unwrap(), "slow");
    let counted = session
        .execute(2, "fake__count", "")
        .send()
        .message()
        .text();
    assert_eq!(counted, "1");
    drop(waiting);
}

/// Its error is that of the process, and one call starts it once in each era.
#[test]
fn a_server_that_ends_at_its_start_is_not_started_again_and_again() {
    let directory = TempDir::new().unwrap();
    let starts = directory.path().join("starts");
    let script = format!(
        "echo x >> '{}'; echo no such database >&2; exit 3",
        starts.display()
    );
    let entry = json!({ "command": "sh", "args": ["-c", script], "placement": "one" }).to_string();
    let Some(cluster) = Cluster::start(2, &[], |setup, _| setup.entry("fake", &entry)) else {
        return;
    };
    let count = || {
        std::fs::read_to_string(&starts)
            .unwrap_or_default()
            .lines()
            .count()
    };
    // The replicas try to list it.
    until("both to have tried", || (count() >= 2).then_some(()));
    thread::sleep(Duration::from_secs(2));
    for number in 0..2 {
        let (before, begun) = (count(), Instant::now());
        let said = cluster
            .at(number)
            .modern_execute("fake__any", "")
            .send()
            .message();
        let said = said.as_str();
        assert!(said.contains("exit status: 3"), "{said}");
        assert!(count() - before <= 4, "{} starts", count() - before);
        assert!(begun.elapsed() < Duration::from_secs(15), "{begun:?}");
    }
}
