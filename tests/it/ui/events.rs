//! The live view.

use serde_json::json;

use super::{Window, heard, shared};

#[test]
fn events_arrive_live_and_a_page_goes_on_where_it_was() {
    let setup = shared();
    let window = Window::open(&setup);
    let mut stream = window.listen("");
    assert_eq!(stream.header("content-type"), "text/event-stream");
    let mut client = setup.connect();
    let opened = heard(&mut stream, "session_opened");
    client.execute_with("notes__write", "{}");
    let began = heard(&mut stream, "call_began");
    assert_eq!(began["tool"], "write");
    assert_eq!(heard(&mut stream, "call_ended")["outcome"], "ok");
    drop(stream);
    client.finish();
    // A browser sends the last number that it got.
    let last = opened["number"].to_string();
    let mut stream = window
        .get("api/events")
        .header("Last-Event-ID", &last)
        .open();
    stream.event().unwrap();
    let first: u64 = stream.last_id().parse().unwrap();
    assert!(first > opened["number"].as_u64().unwrap());
    heard(&mut stream, "session_closed");
    let mut stream = window.listen("?since=0");
    assert_eq!(heard(&mut stream, "session_opened"), opened);
}

#[test]
fn the_opening_of_a_window_and_what_it_changes_are_recorded() {
    let setup = shared();
    let window = Window::open(&setup);
    window.output("disable", json!({ "server": "notes" }));
    let mut stream = window.listen("?since=0");
    assert_eq!(heard(&mut stream, "ordered")["order"], "ui.open");
    let disabled = heard(&mut stream, "ordered");
    assert_eq!(disabled["order"], "ui.disable");
    assert_eq!(disabled["server"], "notes");
}
