//! Seven real servers behind one `mcpzip`: everything they say of their tools and answer to calls arrives in their own bytes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::direct::Direct;
use super::servers::{self, Real, Scratch};
use super::{announce, peers, table};
use crate::support::{Client, Setup, until};

/// Seven interpreters start at once, perhaps on a busy machine.
const ALL_STARTED: Duration = Duration::from_secs(90);

#[test]
fn real_servers_are_found_described_and_called_as_if_directly() {
    let Some(peers) = peers() else { return };
    let scratch = Scratch::new();
    let real = servers::all(peers, &scratch, &scratch.path().join("memory.jsonl"));
    let alone = servers::all(peers, &scratch, &scratch.path().join("memory-alone.jsonl"));
    let setup = real.iter().fold(Setup::new(), |setup, real| {
        setup.entry(real.name, &real.entry.to_json())
    });
    let mut client = setup.connect();
    wait_until_ready(&mut client, &real);

    let mut rows = vec![
        ["server", "tools", "found for", "definitions", "results"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (real, alone) in real.iter().zip(&alone) {
        is_found(&mut client, real);
        let mut direct = Direct::connect(&alone.entry, scratch.path());
        is_described_verbatim(&mut client, real, &mut direct);
        answers_as_directly(&mut client, real, &mut direct);
        rows.push(vec![
            real.name.to_owned(),
            real.tools.to_string(),
            format!("\"{}\": {}", real.need, real.fitting),
            "verbatim".to_owned(),
            format!("{} calls, byte for byte", real.calls.len()),
        ]);
    }
    announce(&format!("Real servers behind mcpzip\n{}", table(&rows)));
    client.finish();
}

/// Until the status shows each server with all its tools; one that has just started is ready before it has listed them.
fn wait_until_ready(client: &mut Client, real: &[Real]) {
    let start = Instant::now();
    loop {
        let status = client.call("proxy_status", "{}").text();
        let is_ready = |real: &Real| {
            let noun = if real.tools == 1 { "tool" } else { "tools" };
            let state = format!("{}: ready, {} {noun},", real.name, real.tools);
            status.lines().any(|line| line.starts_with(&state))
        };
        if real.iter().all(is_ready) {
            return;
        }
        assert!(
            start.elapsed() < ALL_STARTED,
            "not all servers are ready with all their tools: {status}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Among the first five hits, once the index has caught up with the listing.
fn is_found(client: &mut Client, real: &Real) {
    let wanted = format!("{}__{}(", real.name, real.fitting);
    until(&format!("{wanted} for \"{}\"", real.need), || {
        client
            .search(real.need)
            .lines()
            .any(|line| line.starts_with(&wanted))
            .then_some(())
    });
}

fn is_described_verbatim(client: &mut Client, real: &Real, direct: &mut Direct) {
    let definitions = direct.tools();
    assert_eq!(definitions.len(), real.tools, "tools of {}", real.name);
    let names: Vec<String> = definitions
        .iter()
        .map(|raw| {
            let definition: Value = serde_json::from_str(raw.get()).unwrap();
            format!(
                "{}__{}",
                real.name,
                definition["name"].as_str().expect("a tool has a name")
            )
        })
        .collect();
    let described = client
        .call("describe_tool", &json!({ "names": names }).to_string())
        .text();
    for (name, definition) in names.iter().zip(&definitions) {
        let verbatim = format!("{name}\n{}", definition.get());
        assert!(
            described.contains(&verbatim),
            "not verbatim.\nwanted: {verbatim}\ngot: {described}"
        );
    }
}

fn answers_as_directly(client: &mut Client, real: &Real, direct: &mut Direct) {
    for (tool, arguments) in &real.calls {
        let arguments = arguments.to_string();
        let through = client.execute_with(&format!("{}__{tool}", real.name), &arguments);
        let directly = direct.call(tool, &arguments);
        assert_eq!(
            through.result(),
            directly.result(),
            "{} {tool} {arguments}",
            real.name
        );
    }
}
