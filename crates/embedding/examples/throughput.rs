//! Measures how long the tools of a corpus take to embed, in processor time of one thread.
//!
//! `cargo run --release -p mcpzip-embedding --features asset --example throughput -- BENCH/dev/corpus.json [ROUNDS]`
//!
//! With `--names` instead of ROUNDS, it embeds the names of tools, which are as long as queries, one after another for ten seconds, and prints
//! the time of each that passed: run it alone, and next to `nice -n 19` of the first command, which works as the background does.
//!
//! The text of a tool is nearly that of the program: server, name and description, of which 48 pieces are embedded, eight tools together.
#![allow(clippy::print_stdout, reason = "a report")]

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use mcpzip_embedding::Model;
use serde_json::Value;

const PIECES: usize = 48;
const BATCH: usize = 8;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let corpus = arguments.next().expect("the first argument is a corpus");
    let rounds = arguments.next();
    let is_by_name = rounds.as_deref() == Some("--names");
    let rounds = rounds.filter(|_| !is_by_name);
    let rounds: usize = rounds.map_or(3, |rounds| rounds.parse().expect("ROUNDS is a number"));
    let servers = fs::read(&corpus).expect("the corpus can be read");
    let servers: Vec<Value> = serde_json::from_slice(&servers).expect("the corpus is JSON");
    let texts: Vec<String> = servers.iter().flat_map(texts).collect();
    let model = Model::bundled().expect("the model is that of this program");
    if is_by_name {
        return by_name(&model, &texts);
    }
    let pieces: usize = texts
        .iter()
        .map(|text| model.pieces(text, PIECES).len())
        .sum();
    println!("{} tools, {pieces} pieces", texts.len());
    for _ in 0..rounds {
        let (start, before) = (Instant::now(), processor_time());
        let mut hasher = DefaultHasher::new();
        for some in texts.chunks(BATCH) {
            let some: Vec<&str> = some.iter().map(String::as_str).collect();
            for number in model.embed(&some, PIECES).concat() {
                number.to_bits().hash(&mut hasher);
            }
        }
        let used = processor_time().saturating_sub(before);
        println!(
            "{:.2} s of processor time ({:.2} s elapsed), {:.0} s for 10,000 tools; vectors {:016x}",
            used.as_secs_f64(),
            start.elapsed().as_secs_f64(),
            used.as_secs_f64() * 10_000.0 / texts.len() as f64,
            hasher.finish(),
        );
    }
}

/// Prints the times of short texts, one at a time.
fn by_name(model: &Model, texts: &[String]) {
    let names = texts.iter().filter_map(|text| text.split_once(':'));
    let (begun, mut times) = (Instant::now(), Vec::new());
    for (name, _) in names.cycle() {
        if begun.elapsed() > Duration::from_secs(10) {
            break;
        }
        let start = Instant::now();
        assert_eq!(model.embed(&[name], PIECES).len(), 1);
        times.push(start.elapsed());
        // As searches come, not one upon the other.
        std::thread::sleep(Duration::from_millis(20));
    }
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1_000.0;
    println!(
        "{} names: median {:.2} ms, of ten the slowest {:.2} ms, mean {:.2} ms",
        times.len(),
        at(50),
        at(90),
        times.iter().sum::<Duration>().as_secs_f64() * 1_000.0 / times.len() as f64
    );
}

fn texts(server: &Value) -> Vec<String> {
    let name = server["server"].as_str().unwrap_or_default();
    let tools = server["tools"].as_array().into_iter().flatten();
    let text = |tool: &Value| {
        let own = tool["name"].as_str().unwrap_or_default();
        let words = format!("{name} {own}").replace(['_', '-', '.', '/'], " ");
        format!(
            "{words}: {}",
            tool["description"].as_str().unwrap_or_default()
        )
    };
    tools.map(text).collect()
}

/// The processor time of this thread: on Linux by its counter, elsewhere the time that passed.
fn processor_time() -> Duration {
    let counter = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let spent = counter.and_then(|line| line.split(' ').next()?.parse().ok());
    spent.map_or_else(
        || {
            std::time::UNIX_EPOCH
                .elapsed()
                .expect("it is later than 1970")
        },
        Duration::from_nanos,
    )
}
