//! Search by meaning, through the program: the vectors that it needs are made, shared, and made again when they are lost.
#![cfg(feature = "semantic")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::script::answer;
use crate::support::{Client, Server, Setup, until};

const FORECAST: &str = r#"{"name":"get_forecast","description":"Weather forecast for a city: rain, temperature and wind of the next days.","inputSchema":{"type":"object"}}"#;
const INVOICE: &str = r#"{"name":"create_invoice","description":"Create an invoice for a customer and send it.","inputSchema":{"type":"object"}}"#;
const PHOTO: &str = r#"{"name":"resize_photo","description":"Change the size of an image file.","inputSchema":{"type":"object"}}"#;

/// No word of it is a tool's.
const UMBRELLA: &str = "do I need an umbrella tomorrow";

fn setup() -> Setup {
    Setup::new()
        .server(
            "sky",
            Server::new().tool_as("get_forecast", FORECAST, [answer("rain")]),
        )
        .server(
            "office",
            Server::new().tool_as("create_invoice", INVOICE, [answer("made")]),
        )
        .server(
            "pictures",
            Server::new().tool_as("resize_photo", PHOTO, [answer("resized")]),
        )
}

fn is_understood(client: &mut Client) -> bool {
    client.search(UMBRELLA).starts_with("sky__get_forecast")
}

/// Waits until every tool was read.
fn finish_reading(mut client: Client) {
    until("every tool's vector", || {
        let status = client.call("proxy_status", "{}").text();
        status
            .contains("search by meaning: every tool is ready")
            .then_some(())
    });
    client.finish();
}

fn vectors(setup: &Setup) -> PathBuf {
    let directory = setup.cache_path().join("search/vectors/v1");
    let files = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .into_iter()
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "vectors")
        })
        .unwrap()
}

#[test]
fn a_need_in_other_words_is_understood_once_tools_were_read() {
    let setup = setup();
    let mut client = setup.connect();
    client.search("forecast");
    until("the tools' vectors", || {
        is_understood(&mut client).then_some(())
    });
    finish_reading(client);
    // The next process has them from the start.
    let before = fs::metadata(vectors(&setup)).unwrap().modified().unwrap();
    let mut client = setup.connect();
    client.search("forecast");
    assert!(is_understood(&mut client), "{}", client.search(UMBRELLA));
    client.finish();
    assert_eq!(
        fs::metadata(vectors(&setup)).unwrap().modified().unwrap(),
        before,
        "made once"
    );
}

#[test]
fn lost_vectors_are_made_again() {
    let setup = setup();
    let mut client = setup.connect();
    until("the tools' vectors", || {
        is_understood(&mut client).then_some(())
    });
    client.finish();
    let file = vectors(&setup);
    for damage in [&b"no vectors"[..], b""] {
        fs::write(&file, damage).unwrap();
        let mut client = setup.connect();
        until("the tools' vectors", || {
            is_understood(&mut client).then_some(())
        });
        assert!(!client.stderr().contains("panicked"), "{}", client.stderr());
        client.finish();
    }
}

#[test]
fn meaning_can_be_switched_off() {
    let setup = setup().setting("search", json!({ "semantic": false }));
    let mut client = setup.connect();
    assert!(client.search("forecast").contains("sky__get_forecast"));
    assert!(
        !client.search(UMBRELLA).contains("__"),
        "{}",
        client.search(UMBRELLA)
    );
    assert!(
        !client
            .call("proxy_status", "{}")
            .text()
            .contains("by meaning")
    );
    client.finish();
    assert!(!setup.cache_path().join("search/vectors").exists());
}

#[test]
fn a_command_does_not_wait_for_vectors_that_are_there() {
    let setup = setup();
    let mut client = setup.connect();
    client.search("forecast");
    finish_reading(client);
    // Work on missing vectors begins after a second.
    let times = (0..5).map(|_| {
        let start = Instant::now();
        let _ = setup.run(&["search", UMBRELLA]).code(0);
        start.elapsed()
    });
    let fastest = times.min().unwrap();
    assert!(fastest < Duration::from_secs(1), "{fastest:?}");
}

#[test]
fn a_search_can_be_explained() {
    let setup = setup();
    let mut client = setup.connect();
    client.search("forecast");
    finish_reading(client);
    let query = "send an invoise to a customer";
    // On a busy machine a search may end before the model has answered.
    let explained = until("a search by meaning", || {
        let found = setup.run(&["search", "--explain", "--json", query]).code(0);
        let found = found.json();
        (!found["hits"][0]["rank_by_meaning"].is_null()).then_some(found)
    });
    let first = &explained["hits"][0];
    assert_eq!(first["name"], "office__create_invoice", "{explained}");
    assert_eq!(
        explained["repairs"],
        json!([{ "written": "invoise", "meant": "invoice" }]),
        "{explained}"
    );
    assert_eq!(
        (&first["rank_by_words"], &first["rank_by_meaning"]),
        (&json!(1), &json!(1)),
        "{explained}"
    );
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let fields: f64 = first["fields"]
        .as_object()
        .unwrap()
        .values()
        .map(number)
        .sum();
    assert!(
        (fields - number(&first["words"])).abs() < 1e-3,
        "{explained}"
    );
    assert!(
        number(&first["meaning"]) > 0.3 && explained["fits"] == true,
        "{explained}"
    );
}
