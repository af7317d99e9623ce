//! The cost of a search by words alone and with the embedding, at several numbers of tools. Each query is new to the
//! cache.
//!
//! `cargo bench -p mcpzip-bench --bench search`

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use mcpzip::internals::search::{Bundled, Document, Fingerprint, Request, Search, VectorKey};
use mcpzip::internals::tool::{ServerName, ToolHash, ToolName};

const SIZES: [usize; 4] = [500, 2_000, 10_000, 50_000];
const VERBS: [&str; 12] = [
    "list", "create", "delete", "update", "search", "read", "send", "export", "archive", "copy",
    "merge", "publish",
];
const THINGS: [&str; 16] = [
    "issues",
    "messages",
    "files",
    "invoices",
    "calendar events",
    "contacts",
    "pull requests",
    "dashboards",
    "alerts",
    "customers",
    "orders",
    "photos",
    "playlists",
    "tickets",
    "tables",
    "documents",
];
const QUERIES: [&str; 6] = [
    "open a bug report for the login page",
    "tell the team that the release is out",
    "read the file and post it to the channel",
    "whcih invoices are overdue",
    "remove old photos",
    "list_pull_requests",
];

/// Realistic tools, each slightly different.
fn tools(count: usize) -> Vec<Document> {
    let tool = |at: usize| {
        let (verb, thing) = (VERBS[at % 12], THINGS[at / 12 % 16]);
        let name = format!("{verb}_{}_{}", thing.replace(' ', "_"), at / 192);
        let description = format!(
            "{verb} {thing} of workspace {}. Needs a filter, and takes a page size.",
            at / 192
        );
        Document {
            server: ServerName::new(&format!("server-{}", at % 97)).expect("it is a name"),
            tool: ToolName::new(&name).expect("it is a name"),
            hash: ToolHash::of(name.as_bytes()),
            title: None,
            description,
            parameters: vec![("filter".to_owned(), "What to look at".to_owned())],
        }
    };
    (0..count).map(tool).collect()
}

/// Builds an index of `tools`. Their vectors are made up, because real ones take minutes to compute and the same time
/// to compare.
fn search(tools: &[Document]) -> Search {
    let search = Search::new(None).with_embedder(Arc::new(Bundled::default()));
    let fingerprint = Fingerprint::of(
        tools
            .iter()
            .map(|tool| (&tool.server, &tool.tool, tool.hash)),
    );
    search
        .rebuild(&fingerprint, tools)
        .expect("an index can be built in memory");
    let embedding = search.begin_embedding().expect("nobody else embeds");
    let vector = |at: usize| {
        (0..384)
            .map(|n| ((at * 31 + n * 7) as f32).sin() / 14.0)
            .collect()
    };
    let vectors: HashMap<VectorKey, Vec<f32>> = tools
        .iter()
        .enumerate()
        .map(|(at, tool)| (VectorKey::of(&tool.server, tool.hash), vector(at)))
        .collect();
    embedding.keep(&vectors, &vectors.keys().copied().collect());
    drop(embedding);
    search
}

fn searches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("search");
    for size in SIZES {
        let search = search(&tools(size));
        for (what, is_semantic) in [("by words", false), ("with the embedding", true)] {
            search.set_semantic(is_semantic);
            let mut turn = 0;
            group.bench_function(BenchmarkId::new(what, size), |bencher| {
                bencher.iter(|| {
                    turn += 1;
                    // The number makes the query new. No tool contains it, but it is searched for like any word.
                    let query = format!("{} {turn}", QUERIES[turn % QUERIES.len()]);
                    black_box(search.search(&Request {
                        query: &query,
                        limit: 5,
                        server: None,
                        without: &[],
                    }))
                });
            });
        }
        let request = Request {
            query: QUERIES[0],
            limit: 5,
            server: None,
            without: &[],
        };
        search.search(&request).expect("there is an index");
        group.bench_function(BenchmarkId::new("remembered", size), |bencher| {
            bencher.iter(|| black_box(search.cached(&request)).expect("it was just asked"));
        });
    }
    group.finish();
}

criterion_group!(benches, searches);
criterion_main!(benches);
