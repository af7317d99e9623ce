//! `mcpzip` before the official conformance suite, as a client of servers and as a server, in both revisions it covers.

use std::process::Command;

use serde_json::json;

use super::install::Peers;
use super::served::Served;
use super::servers::Scratch;
use super::suite::{Leg, Side};
use super::{announce, peers, servers};
use crate::support::{Setup, program};

/// The name of the server behind `mcpzip`.
pub(super) const FIXTURE: &str = "fixture";

/// The scenarios of extensions that `mcpzip` has.
const CLIENT_EXTENSIONS: [&str; 5] = [
    "auth/enterprise-managed-authorization",
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-frontmatter",
    "sep-2640-client-verify-size",
];
const SERVER_EXTENSIONS: [&str; 3] = [
    "sep-2640-skills-directory",
    "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest",
];

pub(super) const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

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

/// The extensions, which no revision requires: what a host of skills must do, and logins at an identity provider.
#[test]
fn as_a_client_it_conforms_in_the_extensions() {
    let Some(peers) = peers() else { return };
    let host = program::example("conformance_client", "conformance_client");
    let directory = host.parent().expect("an example is in a directory");
    let mut failed = false;
    for revision in REVISIONS {
        let said = Leg::new(Side::Client, "extensions", revision).run_each(
            peers,
            ["--command", "./conformance_client"],
            directory,
            &CLIENT_EXTENSIONS,
        );
        failed |= said.is_err();
        announce(said.as_ref().unwrap_or_else(|problems| problems));
    }
    assert!(!failed, "the suite is not content; see above");
}

/// Skills of a server and those of a folder of this machine, in one list.
#[test]
fn as_a_server_it_conforms_in_skills() {
    let Some(peers) = peers() else { return };
    let scratch = Scratch::new();
    let write = |path: &str, text: &str| {
        let path = scratch.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for (folder, name) in [("shop", "refunds"), ("team", "invoices")] {
        let front = format!("---\nname: {name}\ndescription: How to make {name}.\n---\n");
        let path = format!("{folder}/{name}");
        write(
            &format!("{path}/SKILL.md"),
            &format!("{front}Read rules/days.md.\n"),
        );
        write(&format!("{path}/rules/days.md"), "At most 30 days.\n");
    }
    let shop = json!({ "command": peers.new_node, "args": [peers.script("skills_server.mjs"), scratch.path().join("shop")] });
    let team = json!({ "skills": scratch.path().join("team") });
    let servers = [
        ("both", vec![("shop", &shop), ("team", &team)]),
        ("folder", vec![("team", &team)]),
    ];
    let mut failed = false;
    for (form, entries) in servers {
        for revision in REVISIONS {
            let setup = entries.iter().fold(Setup::new(), |setup, (name, entry)| {
                setup.entry(name, &entry.to_string())
            });
            let setup = setup.setting("daemon", json!("off"));
            let _ = setup.run(&["tools"]).code(0);
            let mcpzip = Served::start(&mut setup.command(&["serve", "--http", "127.0.0.1:0"]));
            let address = format!("{}/mcp", mcpzip.address);
            let leg = Leg::new(Side::Server, &format!("skills of {form}"), revision);
            let directory = setup.home().path("home");
            let said = leg.run_each(peers, ["--url", &address], &directory, &SERVER_EXTENSIONS);
            failed |= said.is_err();
            announce(said.as_ref().unwrap_or_else(|problems| problems));
        }
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
