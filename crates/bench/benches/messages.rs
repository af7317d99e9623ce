//! The cost of relaying a message: reading its envelope and splicing the answer, compared with parsing all of it. Also
//! the cost of finding a tool by its name among ten thousand.
//!
//! `cargo bench -p mcpzip-bench --bench messages`

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mcpzip::internals::catalog::{Cache, Catalog, Key, Listed};
use mcpzip::internals::mcp::{Envelope, Frame, Message, Outcome, RequestId};
use mcpzip::internals::tool::ServerName;
use serde_json::value::RawValue;

/// An answer of about `size` bytes, partly structured and partly text.
fn answer(size: usize) -> Bytes {
    let item = r#"{"id":18446744073709551617,"name":"caf\u00e9","tags":["a","b"],"score":1.0,"text":"some words"}"#;
    let items = vec![item; (size / (item.len() + 1)).max(1)].join(",");
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"type":"text","text":"ok"}}],"structuredContent":[{items}]}}}}"#
    );
    Bytes::from(text)
}

fn relay(line: &Bytes, id: &RequestId) -> Frame {
    let Ok(Envelope::Single(Message::Response {
        outcome: Outcome::Result(result),
        ..
    })) = Envelope::parse(line)
    else {
        panic!("the bench's own message is an answer");
    };
    Frame::result(id, "", line.slice_ref(result.get().as_bytes()))
}

fn messages(criterion: &mut Criterion) {
    let id: Box<RawValue> = RawValue::from_string("42".to_owned()).expect("a number is JSON");
    let id = RequestId::parse(&id).expect("a number is an id");
    let mut group = criterion.benchmark_group("answer");
    for size in [100, 100_000, 1_000_000, 10_000_000] {
        let line = answer(size);
        group.throughput(Throughput::Bytes(line.len() as u64));
        group.bench_with_input(BenchmarkId::new("relayed", size), &line, |bencher, line| {
            bencher.iter(|| relay(black_box(line), &id));
        });
        group.sample_size(10).bench_with_input(
            BenchmarkId::new("as values", size),
            &line,
            |bencher, line| {
                bencher.iter(|| {
                    let value: serde_json::Value =
                        serde_json::from_slice(black_box(line)).expect("it is JSON");
                    serde_json::to_vec(&value["result"]).expect("it is JSON")
                });
            },
        );
    }
    group.finish();
}

/// A catalog of ten thousand tools on twenty servers.
fn catalog() -> Catalog {
    let catalog = Catalog::new();
    catalog.update(|servers| {
        for server in 0..20 {
            let name =
                ServerName::new(&format!("server{server}")).expect("letters and digits are a name");
            let key = Key {
                server: name.clone(),
                configuration: String::new(),
            };
            let tools = (0..500)
                .map(|tool| Bytes::from(format!(r#"{{"name":"tool_{tool}"}}"#)))
                .collect();
            let listed = Listed {
                tools,
                ..Listed::default()
            };
            servers.insert(name, Arc::new(Cache::new(None).store(&key, &listed)));
        }
    });
    catalog
}

fn names(criterion: &mut Criterion) {
    let snapshot = catalog().snapshot();
    let mut group = criterion.benchmark_group("tool of 10,000");
    for (kind, name) in [
        ("exact", "server7__tool_321"),
        ("in other letters", "Server7.Tool-321"),
        ("unknown", "nothing"),
    ] {
        group.bench_function(kind, |bencher| {
            bencher.iter(|| black_box(snapshot.resolve(black_box(name))));
        });
    }
    group.finish();
}

criterion_group!(benches, messages, names);
criterion_main!(benches);
