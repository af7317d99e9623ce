//! Replicas that are killed under load, while the database is restarted.
//!
//! `MCPZIP_TEST_REPLICAS_MINUTES` is the length of the run, with 200 sessions; without it, it is one of a minute with fewer.

use std::collections::{HashMap, HashSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::cluster::Cluster;
use crate::support::gateway::{Call, Gateway, HttpSession};
use crate::support::script::{echo, sleep};
use crate::support::{Server, Setup, until};

/// The time after a kill in which the balancer may still send requests to the replica.
const NOTICED: Duration = Duration::from_secs(2);

/// A call that failed.
#[derive(Debug)]
struct Failed {
    mark: String,
    begun: Instant,
    ended: Instant,
    reason: String,
}

/// What one client saw.
#[derive(Debug, Default)]
struct Seen {
    answered: Vec<String>,
    failed: Vec<Failed>,
}

fn configure(setup: Setup, _: usize) -> Setup {
    let server = Server::new().tool("work", [sleep(20), echo()]);
    let setup = setup.log_level("warn").setting("audit", json!({}));
    setup.server("fake", server)
}

/// The hashes of the arguments of all calls in the audit logs of the store.
fn audited(cluster: &Cluster) -> HashSet<String> {
    let lines = cluster.database.run("select line from audit");
    let hash = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["arguments"].as_str().map(str::to_owned)
    };
    lines.lines().filter_map(hash).collect()
}

/// The hash of the arguments of the call with this mark.
fn hash_of(mark: &str) -> String {
    let arguments = json!({ "mark": mark }).to_string();
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(arguments)))
}

/// Sends a request on a connection of its own; the whole answer, or why there is none.
fn attempt(address: SocketAddr, call: &Call) -> Result<String, String> {
    let mut stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
    let limit = Some(Duration::from_secs(30));
    stream.set_read_timeout(limit).unwrap();
    let bytes = call.clone().header("Connection", "close").bytes();
    stream
        .write_all(&bytes)
        .map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// One client: a session, or requests of the modern era.
fn client(
    number: usize,
    balanced: &Gateway,
    session: Option<&HttpSession>,
    stop: &AtomicBool,
) -> Seen {
    let mut seen = Seen::default();
    for count in 0.. {
        // The last call is made when everything is well again.
        let is_last = stop.load(Ordering::Relaxed);
        let mark = format!("mark-{number}-{count}-end");
        let arguments = json!({ "name": "execute_tool", "arguments": { "name": "fake__work", "arguments": { "mark": mark } } });
        let call = match session {
            Some(session) => session.request(count, "tools/call", &arguments.to_string()),
            None => {
                let text = arguments.to_string();
                balanced.modern("tools/call", &text[1..text.len() - 1])
            }
        };
        let begun = Instant::now();
        let outcome = attempt(balanced.address(), &call);
        let ended = Instant::now();
        match outcome {
            Ok(answer)
                if answer.contains(" 200 OK")
                    && answer.contains(&mark)
                    && answer.contains(r#""result""#) =>
            {
                seen.answered.push(mark);
            }
            Ok(answer) => seen.failed.push(Failed {
                mark,
                begun,
                ended,
                reason: answer,
            }),
            Err(reason) => seen.failed.push(Failed {
                mark,
                begun,
                ended,
                reason,
            }),
        }
        if is_last {
            break;
        }
        thread::sleep(Duration::from_millis(if seen.failed.is_empty() {
            50
        } else {
            100
        }));
    }
    seen
}

#[test]
fn replicas_are_killed_and_only_calls_in_flight_fail() {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration of their own"
    )]
    let minutes = std::env::var("MCPZIP_TEST_REPLICAS_MINUTES");
    let minutes: Option<u64> = minutes.ok().and_then(|text| text.parse().ok());
    let (time, clients) = match minutes {
        Some(minutes) => (Duration::from_secs(60 * minutes), 200),
        None => (Duration::from_secs(60), 24),
    };
    let Some(mut cluster) = Cluster::start_alone(3, configure) else {
        return;
    };
    let balanced = cluster.balanced();
    // Every third client is one of the modern era.
    let sessions: Vec<Option<HttpSession>> = (0..clients)
        .map(|number| (number % 3 != 2).then(|| balanced.session()))
        .collect();
    let stop = AtomicBool::new(false);
    let mut kills = Vec::new();
    let seen: Vec<Seen> = thread::scope(|scope| {
        let (stop, balanced) = (&stop, &balanced);
        let running: Vec<_> = sessions
            .iter()
            .enumerate()
            .map(|(number, session)| {
                scope.spawn(move || client(number, balanced, session.as_ref(), stop))
            })
            .collect();
        let begun = Instant::now();
        let mut next = 0;
        let mut is_restarted = false;
        while begun.elapsed() < time {
            thread::sleep(Duration::from_secs(3));
            let replica = &mut cluster.replicas[next % 3];
            kills.push(Instant::now());
            replica.kill();
            thread::sleep(Duration::from_millis(500));
            if !is_restarted && begun.elapsed() > time / 3 {
                is_restarted = true;
                cluster.stop_database();
                thread::sleep(Duration::from_secs(2));
                cluster.start_database();
            }
            cluster.replicas[next % 3].start();
            next += 1;
        }
        thread::sleep(Duration::from_secs(2));
        stop.store(true, Ordering::Relaxed);
        running
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    let logs: String = (0..3)
        .map(|at| cluster.setup(at).home().log("fake"))
        .collect();
    let mut runs: HashMap<&str, usize> = HashMap::new();
    for line in logs.lines().filter(|line| line.contains("tools/call")) {
        if let Some(at) = line.find("mark-") {
            let mark = &line[at..];
            let end = mark.find("-end").expect("a mark has an end") + 4;
            *runs.entry(&mark[..end]).or_default() += 1;
        }
    }
    let answered: usize = seen.iter().map(|one| one.answered.len()).sum();
    let failed: Vec<&Failed> = seen.iter().flat_map(|one| &one.failed).collect();
    let said = format!(
        "{clients} clients, {} kills: {answered} calls answered, {} failed in flight",
        kills.len(),
        failed.len()
    );
    // stderr may be closed.
    let _ = writeln!(std::io::stderr(), "{said}");
    for (mark, count) in &runs {
        assert_eq!(*count, 1, "{mark} ran more than once; {said}");
    }
    for failed in &failed {
        let was_in_flight = kills
            .iter()
            .any(|kill| failed.begun < *kill + NOTICED && failed.ended + NOTICED > *kill);
        assert!(was_in_flight, "{failed:?}; {said}");
        assert!(
            !failed.reason.contains(" 404 "),
            "a session has ended: {failed:?}"
        );
    }
    for (number, one) in seen.iter().enumerate() {
        for mark in &one.answered {
            assert!(
                runs.contains_key(mark.as_str()),
                "{mark} was answered and did not run"
            );
        }
        let last = one.failed.last().map(|failed| failed.ended);
        assert!(last.is_none_or(|last| last < Instant::now()), "{number}");
        assert!(
            !one.answered.is_empty(),
            "client {number} got no answer; {said}"
        );
    }
    assert!(failed.iter().all(|failed| !failed.mark.is_empty()));
    // A line that its replica could not send before it was killed is sent after the next start.
    let answered: HashSet<String> = seen
        .iter()
        .flat_map(|one| &one.answered)
        .map(|mark| hash_of(mark))
        .collect();
    until("the lines of all answered calls to be in the store", || {
        let lines = audited(&cluster);
        (answered.is_subset(&lines)).then_some(())
    });
    let sent_twice = "select count(*) - count(distinct line) from audit";
    assert_eq!(cluster.database.run(sent_twice), "0");
}
