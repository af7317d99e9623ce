//! The time that identities, roles, limits and the audit log add to a call over HTTP, in one run with the same calls without them.

use std::io::BufReader;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{As as _, roles, setup, token};
use crate::support::gateway::Call;
use crate::support::script::answer;
use crate::support::{Server, Setup};

/// The pairs of calls that are measured, after some that are not.
const PAIRS: usize = 600;
const UNMEASURED: usize = 100;

/// The most that they may add: an unoptimised program on a busy machine is far from the figures of a release.
const MOST: Duration = Duration::from_millis(2);

#[test]
fn identities_roles_limits_and_the_audit_log_add_little_to_a_call() {
    let plain = Setup::new()
        .alone()
        .server("git", Server::new().tool("log", [answer("the log")]))
        .setting("search", json!({ "semantic": false }));
    let full = setup().setting("roles", roles()).setting(
        "limits",
        json!([{ "requests_per_minute": 1_000_000 }, { "for": "@role:dev git__*", "calls_per_minute": 1_000_000, "calls_in_flight": 100 }]),
    );
    let of_anna = token(&full, &["anna", "--role", "dev"]);
    let (open, guarded) = (plain.serve(&[]), full.serve(&[]));
    let calls = [
        open.modern_execute("git__log", ""),
        guarded.modern_execute("git__log", "").by(&of_anna),
    ];
    let mut connections = calls.each_ref().map(|call| Some(connect(call)));
    let mut times = [Vec::new(), Vec::new()];
    for pair in 0..UNMEASURED + PAIRS {
        for (at, call) in calls.iter().enumerate() {
            let connection = connections[at].take().unwrap();
            let start = Instant::now();
            let (answer, connection) = call.send_on(connection);
            let time = start.elapsed();
            connections[at] = Some(connection);
            assert!(answer.body.contains("the log"), "{answer:?}");
            if pair >= UNMEASURED {
                times[at].push(time);
            }
        }
    }
    let [open, guarded] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    let added = guarded.saturating_sub(open);
    println!(
        "a call over HTTP, p50 of {PAIRS}: {open:?}; with identities, roles, limits and audit: {guarded:?}; added: {added:?}"
    );
    assert!(added < MOST, "{open:?} and {guarded:?}");
}

fn connect(call: &Call) -> BufReader<std::net::TcpStream> {
    // The first answer is the head of the connection.
    let (_, connection) = call.open().whole();
    connection
}
