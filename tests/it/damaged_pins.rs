//! Records of pins that are damaged or lost: nothing that a person rejected is free, and a person learns what to do.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::pins::{entry_of, is_held, under};
use crate::support::script::echo;
use crate::support::{Client, Server, Setup};

/// The record of a server.
fn record(setup: &Setup, server: &str) -> PathBuf {
    let files = std::fs::read_dir(setup.home().path("state/pins/v2")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let is_record = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with(&format!("{server}~")) && !name.contains("pending")
    };
    files.find(is_record).unwrap()
}

/// A server `web` that was listed, and of whose tools `read` was rejected.
fn rejected(trust: &str) -> Setup {
    let setup = under(
        trust,
        Server::new().tool("read", [echo()]).tool("list", [echo()]),
    );
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    client.finish();
    let record = record(&setup, "web");
    let mut text: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    text["rejected"] = json!(["read"]);
    std::fs::write(&record, text.to_string()).unwrap();
    setup
}

#[track_caller]
fn works(client: &mut Client, tool: &str) {
    let answer = client.execute_with(tool, "{}").value();
    assert_ne!(answer["isError"], true, "{answer}");
}

fn forget_lists(setup: &Setup) {
    std::fs::remove_dir_all(setup.home().path("cache/catalog")).unwrap();
}

#[test]
fn a_damaged_record_holds_all_tools_after_a_listing_and_a_person_learns_what_to_do() {
    let setup = rejected("report");
    let record = record(&setup, "web");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, &text[..text.len() - 1]).unwrap();
    forget_lists(&setup);
    let mut client = setup.connect();
    for _ in 0..2 {
        is_held(&mut client, "web__read");
        is_held(&mut client, "web__list");
        assert!(!client.search("read").contains("web__read"));
        client.call("proxy_refresh", "{}").text();
    }
    assert_eq!(setup.home().count("web", r#""method":"tools/call""#), 0);
    client.finish();
    let file = record.file_name().unwrap().to_string_lossy().into_owned();
    let told = |text: &str| {
        assert!(text.contains(&file) && text.contains("remove it"), "{text}");
    };
    told(&setup.run(&["approve"]).code(0).stdout);
    for command in ["approve", "reject"] {
        let refused = setup.run(&[command, "web"]).code(1);
        told(&refused.stderr);
        assert!(!refused.stdout.contains("nothing waits"), "{refused}");
    }
    let report = setup.run(&["doctor", "--json"]).stdout;
    assert!(report.contains("record-damaged"), "{report}");
    told(&report);
    let status = setup.run(&["status", "--json"]).code(0).stdout;
    assert!(
        status.contains(&file) && status.contains("mcpzip doctor web"),
        "{status}"
    );
    // The advice helps.
    std::fs::remove_file(&record).unwrap();
    let mut client = setup.connect();
    works(&mut client, "web__list");
    client.finish();
}

#[test]
fn a_list_without_a_record_is_fetched_again_before_its_tools_are_used() {
    let setup = rejected("report");
    // As after a kill between the list of a server with a new name and its record.
    let entry = entry_of(&setup, "web");
    let setup = setup.without("web").entry("memo", &entry.to_string());
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    is_held(&mut client, "memo__read");
    client.finish();
    std::fs::remove_file(record(&setup, "memo")).unwrap();
    for file in std::fs::read_dir(setup.home().path("state/pins/v2")).unwrap() {
        let path = file.unwrap().path();
        if path.to_string_lossy().contains("pending") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let mut client = setup.connect();
    assert!(!client.search("read").contains("memo__read"));
    is_held(&mut client, "memo__read");
    works(&mut client, "memo__list");
    client.finish();
}

#[test]
fn a_pinned_server_whose_record_is_lost_is_listed_at_the_start() {
    let setup = under("pin", Server::new().tool("list", [echo()]));
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    client.finish();
    std::fs::remove_file(record(&setup, "web")).unwrap();
    let mut client = setup.connect();
    works(&mut client, "web__list");
    client.finish();
}
