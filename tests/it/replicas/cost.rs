//! The figures of `docs/scaling.md`: calls per second of one replica with and without a store, statements of the store per thousand calls, memory per
//! session, and the time that a call at another replica's server takes.
//!
//! `MCPZIP_TEST_SECONDS` is the length of each load. Figures need a release build (`MCPZIP_TEST_PROGRAM`).

use std::io::BufReader;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::placement::{Shared, home};
use crate::support::gateway::{Call, Gateway};
use crate::support::postgres::{Database, Postgres};
use crate::support::process::memory;
use crate::support::script::answer;
use crate::support::{Server, Setup};

/// The clients of a load, each with a connection.
const CLIENTS: usize = 16;

/// The sessions whose memory is measured; a replica keeps 1024.
const SESSIONS: usize = 1000;

fn seconds() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration of their own"
    )]
    let seconds = std::env::var("MCPZIP_TEST_SECONDS");
    let seconds = seconds.ok().and_then(|text| text.parse().ok());
    seconds.unwrap_or(2)
}

fn setup() -> Setup {
    Setup::new()
        .alone()
        .log_level("warn")
        .server("git", Server::new().tool("log", [answer("the log")]))
        .setting("search", json!({ "semantic": false }))
        .setting("audit", json!({}))
}

fn connect(call: &Call) -> BufReader<TcpStream> {
    // The first answer is the head of the connection.
    let (_, connection) = call.open().whole();
    connection
}

/// Calls until the time is over; the times of all calls, in order.
fn load(gateway: &Gateway, clients: usize, time: Duration) -> Vec<Duration> {
    let client = || {
        let call = gateway.modern_execute("git__log", "");
        let mut connection = connect(&call);
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < time {
            let start = Instant::now();
            let (answer, next) = call.send_on(connection);
            times.push(start.elapsed());
            connection = next;
            assert!(answer.body.contains("the log"), "{answer:?}");
        }
        times
    };
    let mut times: Vec<Duration> = thread::scope(|scope| {
        let running: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
        let all = running.into_iter().map(|one| one.join().unwrap());
        all.flatten().collect()
    });
    times.sort_unstable();
    times
}

/// The transactions of the database so far. PostgreSQL counts those of a connection within seconds.
fn transactions(database: &Database) -> f64 {
    thread::sleep(Duration::from_secs(2));
    let count = "select xact_commit from pg_stat_database where datname = current_database()";
    database.run(count).parse().unwrap()
}

#[expect(clippy::cast_precision_loss, reason = "figures are small")]
fn as_number(count: usize) -> f64 {
    count as f64
}

fn shown(what: &str, times: &[Duration], time: Duration) -> f64 {
    let rate = as_number(times.len()) / time.as_secs_f64();
    let (half, most) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    eprintln!("{what}: {rate:.0} calls/s, p50 {half:?}, p99 {most:?}");
    rate
}

#[test]
fn a_call_costs_the_store_next_to_nothing() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let time = Duration::from_secs(seconds());
    let plain = setup();
    let alone = plain.serve(&[]);
    let database = postgres.create();
    let shared = setup().store(&database);
    let mut gateway = shared.serve(&[]);
    for (what, gateway) in [("without a store", &alone), ("with a store", &gateway)] {
        let _ = load(gateway, CLIENTS, Duration::from_secs(1));
        shown(&format!("{what}, 1 client"), &load(gateway, 1, time), time);
    }
    shown(
        &format!("without a store, {CLIENTS} clients"),
        &load(&alone, CLIENTS, time),
        time,
    );
    drop(alone);
    let idle = transactions(&database);
    thread::sleep(time);
    let before = transactions(&database);
    let times = load(&gateway, CLIENTS, time);
    let after = transactions(&database);
    shown(&format!("with a store, {CLIENTS} clients"), &times, time);
    let (at_rest, in_load) = (before - idle, after - before);
    let added = (in_load - at_rest).max(0.0) * 1000.0 / as_number(times.len());
    println!(
        "transactions: {at_rest} at rest and {in_load} in the same time with calls: {added:.2} for 1000 calls, the audit log included"
    );
    let size = "select pg_total_relation_size('audit') / greatest(count(*), 1) from audit";
    println!(
        "a line of the audit log: {} bytes in the store",
        database.run(size)
    );
    // The audit log is sent in batches, which are small if lines come one by one.
    assert!(added < 100.0, "{added} transactions for 1000 calls");

    let process = gateway.process().process();
    let before = memory(process, "VmRSS:");
    let sessions: Vec<_> = (0..SESSIONS).map(|_| gateway.session()).collect();
    let after = memory(process, "VmRSS:");
    let each = after.saturating_sub(before) / sessions.len();
    println!("{SESSIONS} sessions: {each} bytes each ({before} before, {after} after)");
    assert!(each < 100_000, "{each} bytes of memory for a session");
    let rows = database.run("select count(*) from session");
    assert_eq!(rows, "0", "a session needs no row");
}

/// The row of `audit.durable` `"store"`: each call waits for a commit, which waits for the disk.
#[test]
fn a_durable_log_costs_each_call_a_commit() {
    let Some(postgres) = Postgres::start_syncing() else {
        return;
    };
    let time = Duration::from_secs(seconds());
    let database = postgres.create();
    let setup = setup().setting("audit", json!({ "durable": "store" }));
    let setup = setup.store(&database);
    let gateway = setup.serve(&[]);
    let _ = load(&gateway, CLIENTS, Duration::from_secs(1));
    let mut calls = 0;
    for clients in [1, CLIENTS] {
        let before = transactions(&database);
        let times = load(&gateway, clients, time);
        let committed = transactions(&database) - before;
        calls += times.len();
        let rate = shown(
            &format!("with a durable log, {clients} clients"),
            &times,
            time,
        );
        let each = committed * 1000.0 / as_number(times.len());
        println!("{rate:.0} calls/s, {each:.0} transactions for 1000 calls");
    }
    let lines = "select count(*) from audit where line like '%\"tool\":\"log\"%'";
    let lines: usize = database.run(lines).parse().unwrap();
    assert!(lines >= calls, "{lines} lines of {calls} calls");
}

#[test]
fn a_server_at_another_replica_is_as_near_as_the_network() {
    let shared = Shared::new();
    let Some(cluster) = shared.start() else {
        return;
    };
    let session = cluster.at(0).session();
    let _ = session.execute(1, "fake__count", "").send();
    let here = home(&cluster);
    let mut medians = [here, (here + 1) % 3].map(|number| {
        let call = cluster.at(number).modern_execute("fake__count", "");
        let mut connection = connect(&call);
        let mut times = Vec::new();
        for _ in 0..300 {
            let start = Instant::now();
            let (_, next) = call.send_on(connection);
            times.push(start.elapsed());
            connection = next;
        }
        times.sort_unstable();
        times[times.len() / 2]
    });
    println!(
        "a call at the home: p50 {:?}; at another replica: p50 {:?}",
        medians[0], medians[1]
    );
    medians.sort_unstable();
    // An unoptimised program on a busy machine is far from the figures of a release.
    assert!(medians[1] < Duration::from_millis(100), "{medians:?}");
}
