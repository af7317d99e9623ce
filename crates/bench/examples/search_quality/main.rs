//! Measures how well and how fast search finds tools, with the labelled queries of `search-bench` and its corpora.
//!
//! `cargo run --release -p mcpzip-bench --example search_quality -- BENCH [--runs DIRECTORY]`
//!
//! With `--runs`, the hits of each set are written in the format of the bench's `score.py`, for a second computation of
//! the measures.
//!
//! With `--with FILE`, a second table has the same queries over each set and up to a thousand other tools, for example the
//! operations of an interface: `mcpzip tools NAME --json --schemas > FILE`. A third one leaves those out of the hits: it shows
//! whether the set's own tools are still ranked as well, since no label knows the others. `--others N` takes up to that many instead.
//!
//! How often a search says that nothing fits is measured over each set, and with `--with` over each set and the others.
//! `--quality-only` leaves that out, and the times; `--no-speed` the times alone. `--habits` measures only what learning from calls
//! changes (`habits.rs`).
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a report")]

mod corpus;
mod habits;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use corpus::{Label, Query, fingerprint, names, open, read_corpus, read_listed, read_queries};
use mcpzip::internals::search::{Document, Explained, Hit, Request, Search};
use mcpzip::internals::tool::ToolHash;

const LIMIT: usize = 20;
const ROUNDS: usize = 10;
const MOST_OTHERS: usize = 1_000;

/// The measures of one query, or the means of many: S@1, S@5, R@5, MRR@10 and nDCG@10. AllI@5 exists only for queries
/// with several needs.
#[derive(Clone, Copy, Default)]
struct Measures {
    success_1: f64,
    success_5: f64,
    recall_5: f64,
    reciprocal: f64,
    gain: f64,
    all_5: Option<f64>,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(bench) = arguments.first().map(PathBuf::from) else {
        anyhow::bail!(
            "usage: search_quality BENCH [--runs DIRECTORY] [--cache DIRECTORY] [--with FILE] [--others N] \
             [--quality-only] [--no-speed] [--habits]"
        );
    };
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let runs = option("--runs").map(PathBuf::from);
    let cache = option("--cache").map(PathBuf::from);
    let most_others = option("--others").map_or(Ok(MOST_OTHERS), |number| number.parse())?;
    let others = option("--with")
        .map(|file| read_listed(Path::new(file), most_others))
        .transpose()?
        .unwrap_or_default();
    let dev = bench.join("dev/queries.jsonl");
    let sets = [
        ("dev", bench.join("dev/corpus.json"), dev.clone()),
        ("live", bench.join("corpus/live.json"), dev.clone()),
        (
            "azure",
            bench.join("dev/public/azure/corpus.json"),
            bench.join("dev/public/azure/queries.jsonl"),
        ),
        (
            "mcpproxy",
            bench.join("dev/public/mcpproxy/corpus.json"),
            bench.join("dev/public/mcpproxy/queries.jsonl"),
        ),
    ];
    if arguments.iter().any(|argument| argument == "--habits") {
        for (name, corpus, queries) in &sets {
            let (corpus, queries) = (read_corpus(corpus)?, read_queries(queries)?);
            habits::report(name, &corpus, &queries, cache.as_deref())?;
        }
        return Ok(());
    }
    println!(
        "{:24} {:>5} {:>6} {:>6} {:>6} {:>6} {:>7}  95 % of nDCG  AllI@5",
        "set", "n", "S@1", "S@5", "R@5", "MRR", "nDCG@10"
    );
    for (name, corpus, queries) in &sets {
        quality(
            name,
            &read_corpus(corpus)?,
            &read_queries(queries)?,
            None,
            runs.as_deref(),
            cache.as_deref(),
        )?;
    }
    if !others.is_empty() {
        println!("\nwith {} other tools", others.len());
        for is_own_only in [false, true] {
            if is_own_only {
                println!("\nthe same, without the others among the hits");
            }
            for (name, corpus, queries) in &sets {
                let own = read_corpus(corpus)?;
                let corpus: Vec<Document> = own.iter().chain(&others).cloned().collect();
                let kept: HashSet<(&str, &str)> = own.iter().map(names).collect();
                quality(
                    name,
                    &corpus,
                    &read_queries(queries)?,
                    is_own_only.then_some(&kept),
                    runs.as_deref()
                        .filter(|_| !is_own_only)
                        .map(|runs| runs.join("with"))
                        .as_deref(),
                    cache.as_deref(),
                )?;
            }
        }
    }
    if arguments
        .iter()
        .any(|argument| argument == "--quality-only")
    {
        return Ok(());
    }
    for (name, corpus, queries) in &sets {
        let own = read_corpus(corpus)?;
        let queries = read_queries(queries)?;
        let others = (!others.is_empty()).then_some(&others[..]);
        for others in [Some(&[][..]), others].into_iter().flatten() {
            let corpus: Vec<Document> = own.iter().chain(others).cloned().collect();
            println!(
                "\n{name}, {} tools, {} of them others",
                corpus.len(),
                others.len()
            );
            nothing_fits(&corpus, &queries, cache.as_deref())?;
        }
    }
    if arguments.iter().any(|argument| argument == "--no-speed") {
        return Ok(());
    }
    println!();
    speed(
        &read_corpus(&bench.join("dev/scale/toolgym.json"))?,
        &read_corpus(&sets[0].1)?,
        &read_queries(&dev)?,
    )
}

/// Prints the measures of a set. Of the hits, only those in `kept` count, if it is given.
fn quality(
    name: &str,
    corpus: &[Document],
    queries: &[Query],
    kept: Option<&HashSet<(&str, &str)>>,
    runs: Option<&Path>,
    cache: Option<&Path>,
) -> anyhow::Result<()> {
    let search = open(corpus, cache)?;
    let tools: HashSet<(&str, &str)> = corpus.iter().map(names).collect();
    let mut kinds: BTreeMap<&str, Vec<Measures>> = BTreeMap::new();
    let mut all = Vec::new();
    let mut run = String::new();
    for query in queries {
        let mut hits = search
            .search(&Request {
                query: &query.query,
                limit: if kept.is_some() { corpus.len() } else { LIMIT },
                server: None,
                without: &[],
            })?
            .to_vec();
        if let Some(kept) = kept {
            hits.retain(|hit| kept.contains(&(hit.server.as_str(), hit.tool.as_str())));
            hits.truncate(LIMIT);
        }
        let results: Vec<_> = hits
            .iter()
            .map(|h| serde_json::json!({"server": h.server.as_str(), "tool": h.tool.as_str()}))
            .collect();
        writeln!(
            run,
            "{}",
            serde_json::json!({"id": query.id, "results": results})
        )?;
        let mut query = query.clone();
        query
            .relevant
            .retain(|label| tools.contains(&(label.server.as_str(), label.tool.as_str())));
        if query.relevant.iter().any(|label| label.grade >= 2) {
            let measures = measure(&query, &hits);
            all.push(measures);
            kinds
                .entry(
                    queries
                        .iter()
                        .find(|q| q.id == query.id)
                        .map_or("", |q| q.kind.as_str()),
                )
                .or_default()
                .push(measures);
        }
    }
    row(name, &all);
    if kinds.len() > 1 {
        for (kind, measures) in &kinds {
            row(&format!("  {kind}"), measures);
        }
    }
    if let Some(directory) = runs {
        fs::create_dir_all(directory)?;
        fs::write(directory.join(format!("{name}.jsonl")), run)?;
    }
    Ok(())
}

/// Queries that no tool of the benchmark serves: those that the threshold was chosen with, and others.
const HOPELESS: [(&str, &str); 2] = [
    ("chosen with", include_str!("../nothing_fits.txt")),
    ("held out", include_str!("../nothing_fits_held_out.txt")),
];

/// How often a search says that nothing fits, for queries that no tool serves and for queries that one does.
fn nothing_fits(
    corpus: &[Document],
    queries: &[Query],
    cache: Option<&Path>,
) -> anyhow::Result<()> {
    let search = open(corpus, cache)?;
    let is_verbose = std::env::args().any(|argument| argument == "--verbose");
    let explained = |query| {
        search.explain(&Request {
            query,
            limit: 5,
            server: None,
            without: &[],
        })
    };
    let told = |query: &str, fits: bool, hits: &[Explained]| {
        let first = hits.first().map_or(String::new(), |best| {
            format!("{:.3} {}/{}", best.fused, best.hit.server, best.hit.tool)
        });
        println!(
            "  {:7} {query:45} {first}",
            if fits { "fits" } else { "refused" }
        );
    };
    for (name, hopeless) in HOPELESS {
        let mut refused = 0;
        for query in hopeless.lines() {
            let explanation = explained(query)?;
            refused += usize::from(!explanation.fits);
            if is_verbose {
                told(query, explanation.fits, &explanation.hits);
            }
        }
        let all = hopeless.lines().count();
        println!("nothing fits: said of {refused} of {all} queries that no tool serves ({name})");
    }
    let tools: HashSet<(&str, &str)> = corpus.iter().map(names).collect();
    let (mut served, mut lost) = (0, 0);
    for query in queries {
        let right: HashSet<(&str, &str)> = query
            .relevant
            .iter()
            .map(|label| (label.server.as_str(), label.tool.as_str()))
            .collect();
        let is_there = |label: &Label| {
            label.grade >= 2 && tools.contains(&(label.server.as_str(), label.tool.as_str()))
        };
        if !query.relevant.iter().any(is_there) {
            continue;
        }
        let explanation = explained(&query.query)?;
        let is_good = |explained: &Explained| {
            let Hit { server, tool, .. } = &explained.hit;
            right.contains(&(server.as_str(), tool.as_str()))
        };
        if explanation.hits.iter().any(is_good) {
            served += 1;
            lost += usize::from(!explanation.fits);
            if is_verbose && !explanation.fits {
                told(&query.query, false, &explanation.hits);
            }
        }
    }
    println!(
        "nothing fits: said of {lost} of {served} queries that one of the first five hits serves"
    );
    Ok(())
}

fn measure(query: &Query, hits: &[Hit]) -> Measures {
    let grades: HashMap<(&str, &str), u32> = query
        .relevant
        .iter()
        .map(|l| ((l.server.as_str(), l.tool.as_str()), l.grade))
        .collect();
    let grade = |hit: &Hit| {
        grades
            .get(&(hit.server.as_str(), hit.tool.as_str()))
            .copied()
            .unwrap_or(0)
    };
    let gain = |grade: u32| f64::from((1u32 << grade) - 1);
    let discounted = |gains: &[f64]| -> f64 {
        gains
            .iter()
            .take(10)
            .enumerate()
            .map(|(at, gain)| gain / ((at + 2) as f64).log2())
            .sum()
    };
    let found: Vec<u32> = hits.iter().map(grade).collect();
    let is_in = |k: usize| found.iter().take(k).any(|grade| *grade > 0);
    let mut ideal: Vec<f64> = grades.values().map(|grade| gain(*grade)).collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    let intents: HashSet<usize> = query
        .relevant
        .iter()
        .filter(|l| l.grade >= 2)
        .flat_map(|l| l.intents.iter().copied())
        .collect();
    let is_served = |intent: &usize| {
        hits.iter().take(5).any(|hit| {
            query.relevant.iter().any(|l| {
                l.server == hit.server.as_str()
                    && l.tool == hit.tool.as_str()
                    && l.intents.contains(intent)
            })
        })
    };
    let has_several = query.n_intents > 1 && intents.len() > 1;
    Measures {
        success_1: f64::from(u8::from(is_in(1))),
        success_5: f64::from(u8::from(is_in(5))),
        recall_5: found.iter().take(5).filter(|grade| **grade > 0).count() as f64
            / grades.len().clamp(1, 5) as f64,
        reciprocal: found
            .iter()
            .take(10)
            .position(|grade| *grade > 0)
            .map_or(0.0, |at| 1.0 / (at + 1) as f64),
        gain: discounted(&found.iter().map(|grade| gain(*grade)).collect::<Vec<_>>())
            / discounted(&ideal),
        all_5: has_several.then(|| f64::from(u8::from(intents.iter().all(is_served)))),
    }
}

fn row(name: &str, measures: &[Measures]) {
    let mean = |of: fn(&Measures) -> f64| mean(&measures.iter().map(of).collect::<Vec<_>>());
    let gains: Vec<f64> = measures.iter().map(|m| m.gain).collect();
    let (low, high) = interval(&gains);
    let several: Vec<f64> = measures.iter().filter_map(|m| m.all_5).collect();
    let all = if several.is_empty() {
        String::new()
    } else {
        format!("  {:.3}", self::mean(&several))
    };
    println!(
        "{name:24} {:5} {:6.3} {:6.3} {:6.3} {:6.3} {:7.3}  {low:.3}-{high:.3}{all}",
        measures.len(),
        mean(|m| m.success_1),
        mean(|m| m.success_5),
        mean(|m| m.recall_5),
        mean(|m| m.reciprocal),
        mean(|m| m.gain),
    );
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The 95 % percentile bootstrap interval of the mean, with 2,000 resamples from a fixed seed.
fn interval(values: &[f64]) -> (f64, f64) {
    let mut state = 7u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % values.len()
    };
    let mut means: Vec<f64> = (0..2_000)
        .map(|_| (0..values.len()).map(|_| values[next()]).sum::<f64>() / values.len() as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    (means[50], means[1_949])
}

/// Measures times with about ten thousand tools: the scale corpus and the corpus of the queries.
fn speed(scale: &[Document], fill: &[Document], queries: &[Query]) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let mut corpus: Vec<Document> = scale.iter().chain(fill).cloned().collect();
    let fingerprint = fingerprint(&corpus);
    let start = Instant::now();
    Search::new(Some(directory.path().to_owned())).rebuild(&fingerprint, &corpus)?;
    println!(
        "{} tools: index built in {:.0} ms, {} kB",
        corpus.len(),
        ms(start.elapsed()),
        size(directory.path())? / 1_000
    );
    // The best of several rounds is reported as well, because it excludes other load on the machine.
    let mut first = Vec::new();
    let mut first_best = Vec::new();
    for query in queries.iter().step_by(4) {
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let search = Search::new(Some(directory.path().to_owned()));
            anyhow::ensure!(
                search.open(&fingerprint)?,
                "the index that was built is there"
            );
            search.search(&Request {
                query: &query.query,
                limit: 5,
                server: None,
                without: &[],
            })?;
            first.push(start.elapsed());
            best = best.min(start.elapsed());
        }
        first_best.push(best);
    }
    report("open + first query", &mut first);
    report("  best of each", &mut first_best);
    let search = Search::new(Some(directory.path().to_owned()));
    search.open(&fingerprint)?;
    let (mut fresh, mut fresh_best, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for query in queries {
        let mut best = Duration::MAX;
        // The limit is part of the cache's key, so each round is new to the cache.
        for limit in 5..5 + ROUNDS {
            let request = Request {
                query: &query.query,
                limit,
                server: None,
                without: &[],
            };
            let start = Instant::now();
            search.search(&request)?;
            fresh.push(start.elapsed());
            best = best.min(start.elapsed());
            let start = Instant::now();
            search.search(&request)?;
            again.push(start.elapsed());
        }
        fresh_best.push(best);
    }
    report("query", &mut fresh);
    report("  best of each", &mut fresh_best);
    report("repeated query", &mut again);
    corpus[0].hash = ToolHash::of(b"changed");
    corpus[0].description.push_str(" Changed.");
    let start = Instant::now();
    search.rebuild(&corpus::fingerprint(&corpus), &corpus)?;
    println!("{:24} {:8.1} ms", "one tool changed", ms(start.elapsed()));
    Ok(())
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| ms(times[((times.len() - 1) as f64 * share) as usize]);
    println!(
        "{what:24} p50 {:7.3} ms   p99 {:7.3} ms   max {:7.3} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn size(directory: &Path) -> anyhow::Result<u64> {
    fs::read_dir(directory)?.try_fold(0, |sum, entry| {
        let entry = entry?;
        let metadata = entry.metadata()?;
        Ok(sum
            + if metadata.is_dir() {
                size(&entry.path())?
            } else {
                metadata.len()
            })
    })
}
