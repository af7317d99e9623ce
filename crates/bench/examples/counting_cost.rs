//! Measures what counting costs a call when thousands of tools are known.
//!
//! `cargo run --release -p mcpzip-bench --example counting_cost`

use std::io::Write as _;
use std::time::{Duration, Instant};

use mcpzip::internals::statistics::{CallOutcome, CallPath, Statistics};

const SERVERS: usize = 100;
const TOOLS: usize = 50;
const ROUNDS: usize = 200_000;

fn main() -> std::io::Result<()> {
    let statistics = Statistics::new(None);
    let names: Vec<(String, String)> = (0..SERVERS * TOOLS)
        .map(|at| {
            (
                format!("server-{}", at / TOOLS),
                format!("do_something_useful_{}", at % TOOLS),
            )
        })
        .collect();
    let mut times = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let (server, tool) = &names[round * 7919 % names.len()];
        let latency = Duration::from_micros((round % 100_000) as u64);
        let outcome = CallOutcome {
            failed: round % 50 == 0,
            latency,
            sent: 100,
            received: 2_000,
            path: CallPath::MetaTool,
        };
        let start = Instant::now();
        statistics.called(server, tool, &outcome);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 1000];
    writeln!(
        std::io::stdout(),
        "{} tools, {ROUNDS} calls counted: p50 {:?}, p99 {:?}, p99.9 {:?}, the slowest {:?}",
        names.len(),
        at(500),
        at(990),
        at(999),
        at(1000)
    )
}
