//! The daemon is killed again and again under load from eight sessions.
//!
//! Fifty and more times: `MCPZIP_TEST_KILLS=50 cargo test --test it daemon::load`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::{Way, each_way};
use crate::support::process::kills;
use crate::support::script::{echo, sleep};
use crate::support::{Client, Server, Setup};

/// How often, when nobody says; two kills a round, as three within a minute leave a session alone.
const KILLS: u64 = 10;
const SESSIONS: u64 = 8;

fn no_kill_of_the_daemon_ends_a_session_loses_a_call_or_makes_one_twice(shared: Way) {
    let kills = kills().unwrap_or(KILLS);
    let setup = shared(
        Setup::new()
            .server("a", Server::new().tool("t", [sleep(2), echo()]))
            .log_level("warn"),
    );
    let sent = AtomicU64::new(0);
    for round in 0..kills.div_ceil(2) {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for session in 0..SESSIONS {
                let (setup, sent, is_over) = (&setup, &sent, &is_over);
                scope.spawn(move || {
                    let mut client = setup.start_command(setup.command(&["serve"]));
                    client.shake_hands("2025-11-25");
                    load(&mut client, &format!("{round}-{session}"), sent, is_over);
                    client.finish();
                });
            }
            for _ in 0..2 {
                let at = sent.load(Ordering::Relaxed);
                let begun = std::time::Instant::now();
                while sent.load(Ordering::Relaxed) < at + 200
                    && begun.elapsed() < Duration::from_secs(20)
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
                setup.kill_daemon();
            }
            std::thread::sleep(Duration::from_millis(300));
            is_over.store(true, Ordering::Relaxed);
        });
    }
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for line in setup.home().log("a").lines() {
        if let Some((_, rest)) = line.split_once("key-")
            && let Some((key, _)) = rest.split_once('!')
        {
            *seen.entry(key.to_owned()).or_default() += 1;
        }
    }
    let twice: Vec<_> = seen.iter().filter(|(_, count)| **count > 1).collect();
    assert!(
        twice.is_empty(),
        "calls that reached the server twice: {twice:?}"
    );
    assert!(seen.len() > 100, "there was no load: {}", seen.len());
}

/// Calls until it is over, four at a time; every call has to be answered.
fn load(client: &mut Client, name: &str, sent: &AtomicU64, is_over: &AtomicBool) {
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        let calls: Vec<(u64, String)> = (0..4)
            .map(|_| {
                number += 1;
                sent.fetch_add(1, Ordering::Relaxed);
                let key = format!("key-{name}-{number}!");
                let params = format!(
                    r#"{{"name":"execute_tool","arguments":{{"name":"a__t","arguments":{{"k":"{key}"}}}}}}"#
                );
                (client.request("tools/call", &params), key)
            })
            .collect();
        for (id, key) in calls {
            // A line that a kill tore is no message.
            let answer = client.expect("an answer", |message| {
                serde_json::from_str::<serde_json::Value>(message.as_str())
                    .is_ok_and(|message| message["id"] == id && message.get("method").is_none())
            });
            assert!(
                answer.as_str().contains(&key) || answer.as_str().contains("may have acted"),
                "{}",
                answer.as_str()
            );
        }
    }
}

each_way! {
    no_kill_of_the_daemon_ends_a_session_loses_a_call_or_makes_one_twice,
}
