//! `mcpzip` before the official conformance suite, as a client of servers and as a server, in both revisions it covers.

use std::process::Command;

use serde_json::json;

use super::install::Peers;
use super::served::Served;
use super::suite::{Leg, Side};
use super::{announce, peers, servers};
use crate::support::{Setup, program};

/// The name of the server behind `mcpzip`.
const FIXTURE: &str = "fixture";

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The suite plays the server; the example `conformance_client` is the host that drives `mcpzip` over stdio.
#[test]
fn as_a_client_it_conforms() {
    let Some(peers) = peers() else { return };
    let host = program::example("conformance_client", "conformance_client");
    let directory = host.parent().expect("an example is in a directory");
    let mut failed = false;
    for revision in REVISIONS {
        // The suite splits the command at spaces.
        let said = Leg::new(Side::Client, "", revision).run(
            peers,
            ["--command", "./conformance_client"],
            directory,
        );
        failed |= said.is_err();
        announce(said.as_ref().unwrap_or_else(|problems| problems));
    }
    assert!(!failed, "the suite is not content; see above");
}

/// The suite plays the client, of the tools, prompts and resources that `mcpzip serve --direct` relays.
#[test]
fn as_a_server_it_conforms_in_direct_mode() {
    check_server("direct", &["--direct"], |_, address| (None, address));
}

/// The suite plays the client of an adapter that turns calls into `execute_tool`.
#[test]
fn as_a_server_it_conforms_with_three_tools() {
    check_server("three tools", &[], |peers, address| {
        let mut adapter = Command::new(&peers.new_node);
        let adapter = Served::start(
            adapter
                .arg(peers.script("unmeta.mjs"))
                .arg(address)
                .arg(FIXTURE),
        );
        let address = format!("{}/mcp", adapter.address);
        (Some(adapter), address)
    });
}

/// `front` is what the suite speaks with, given the address of `mcpzip`.
fn check_server(
    form: &str,
    options: &[&str],
    front: fn(&Peers, String) -> (Option<Served>, String),
) {
    let Some(peers) = peers() else { return };
    let fixture = servers::fixture(peers);
    let mut failed = false;
    for (revision, era) in REVISIONS.into_iter().zip(["legacy", "modern"]) {
        let entry = json!({ "url": format!("{}/mcp", fixture.address), "era": era });
        let setup = Setup::new()
            .entry(FIXTURE, &entry.to_string())
            .log_level("info");
        setup.save();
        let mcpzip = Served::start(
            setup
                .command(&["serve", "--http", "127.0.0.1:0"])
                .args(options),
        );
        let (_front, address) = front(peers, format!("{}/mcp", mcpzip.address));
        let leg = Leg::new(Side::Server, form, revision);
        let said = leg.run(peers, ["--url", &address], &setup.home().path("home"));
        failed |= said.is_err();
        announce(said.as_ref().unwrap_or_else(|problems| problems));
    }
    assert!(!failed, "the suite is not content; see above");
}
