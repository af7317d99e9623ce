//! Streams of events that a client of an older revision resumes by `Last-Event-ID` after its connection broke.

use std::time::Duration;

use serde_json::json;

use crate::support::gateway::{Call, Gateway, HttpSession, Incoming};
use crate::support::script::{Step, answer, ask, fill, line, sleep};
use crate::support::{Server, Setup};

const PROGRESS: &str = r#","_meta":{"progressToken":"p"}"#;

/// A progress notification of the call that is answered.
fn progress(number: usize) -> Step {
    line(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$token,"progress":{number}}}}}"#
    ))
}

/// A log message that belongs to no call.
fn unasked(text: &str) -> Step {
    line(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{text}"}}}}"#
    ))
}

/// A gateway in front of one server `a` with a tool `t` that does these steps, and a tool `hello` that logs `hello`.
fn gateway(steps: impl IntoIterator<Item = Step>) -> Gateway {
    let server = Server::new()
        .tool("t", steps)
        .tool("hello", [answer("done"), sleep(300), unasked("hello")]);
    Setup::new().server("a", server).serve(&[])
}

/// A call of `t` that takes events only, and so is answered by a stream at once.
fn call(session: &HttpSession) -> Call {
    session
        .execute(1, "a__t", PROGRESS)
        .header("Accept", "text/event-stream")
}

/// Makes the server log something, which comes on the stream of unasked messages.
#[track_caller]
fn say_hello(session: &HttpSession) {
    let answer = session.execute(9, "a__hello", "").send();
    assert_eq!(answer.message().text(), "done");
}

/// Resumes the stream of unasked messages behind an event that cannot be found, and checks that nothing old comes.
#[track_caller]
fn check_fresh(session: &HttpSession, id: &str) {
    let mut stream = session.resume(id).open();
    assert_eq!(
        (stream.status(), stream.header("content-type")),
        (200, "text/event-stream"),
        "{id:?}"
    );
    let fresh = stream.priming_event();
    assert_ne!(fresh, id);
    say_hello(session);
    assert!(stream.message().params().contains("hello"), "{id:?}");
    assert_eq!(stream.last_id(), following(&fresh), "{id:?}");
}

/// The id behind `id` in its stream.
fn following(id: &str) -> String {
    let (stream, number) = id.split_once('-').unwrap();
    format!("{stream}-{}", number.parse::<u64>().unwrap() + 1)
}

#[track_caller]
fn check_progress(stream: &mut Incoming, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        let message = stream.message();
        let expected = format!(r#""progress":{number}}}"#);
        assert!(message.as_str().contains(&expected), "{message:?}");
    }
}

#[test]
fn a_response_whose_connection_broke_is_fetched_by_resuming() {
    let gateway = gateway([progress(1), sleep(300), progress(2), answer("done")]);
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = gateway.session_of(version, &json!({}));
        let mut stream = session.execute(1, "a__t", PROGRESS).open();
        check_progress(&mut stream, [1]);
        let seen = stream.last_id().to_owned();
        drop(stream);
        // Once while the call may go on, once when it has ended.
        for _ in 0..2 {
            let mut resumed = session.resume(&seen).open();
            check_progress(&mut resumed, [2]);
            assert_eq!(resumed.message().text(), "done");
            assert_eq!(resumed.event(), None);
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

#[test]
fn a_stream_is_resumed_from_its_start_before_any_message_came() {
    let gateway = gateway([sleep(500), answer("done")]);
    let session = gateway.session();
    let mut stream = call(&session).open();
    let start = stream.priming_event();
    drop(stream);
    std::thread::sleep(Duration::from_secs(1));
    let mut resumed = session.resume(&start).open();
    assert_eq!(resumed.message().text(), "done");
    assert_eq!(resumed.last_id(), following(&start));
    assert_eq!(resumed.event(), None);
}

#[test]
fn revisions_without_priming_events_get_none() {
    let gateway = gateway([answer("done")]);
    let answer = call(&gateway.session_of("2025-06-18", &json!({}))).send();
    assert_eq!(answer.body.matches("data:").count(), 1, "{answer:?}");
    assert_eq!(answer.message().text(), "done");
}

#[test]
fn a_stream_of_the_modern_era_has_no_ids() {
    let gateway = gateway([answer("done")]);
    let answer = gateway
        .modern_execute("a__t", "")
        .header("Accept", "text/event-stream")
        .send();
    assert_eq!(answer.message().text(), "done");
    assert!(!answer.body.contains("id: "), "{answer:?}");
    let resumed = gateway
        .call("GET", "/mcp")
        .header("Accept", "text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Last-Event-ID", "1-0");
    assert_eq!(resumed.send().status, 405);
}

#[test]
fn a_question_that_its_client_missed_is_answered_after_resuming() {
    let question = r#"{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}"#;
    let gateway = gateway([
        progress(1),
        sleep(300),
        ask("q", "elicitation/create", question),
        answer("done"),
    ]);
    let session = gateway.session_of("2025-11-25", &json!({ "elicitation": {} }));
    let mut stream = call(&session).open();
    check_progress(&mut stream, [1]);
    let seen = stream.last_id().to_owned();
    drop(stream);
    std::thread::sleep(Duration::from_millis(700));
    let mut resumed = session.resume(&seen).open();
    let asked = resumed.message();
    assert!(asked.as_str().contains("elicitation/create"), "{asked:?}");
    let reply = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#,
        asked.id()
    );
    assert_eq!(session.post(&reply).send().status, 202);
    assert_eq!(resumed.message().text(), "done");
    assert_eq!(resumed.event(), None);
}

#[test]
fn the_stream_of_unasked_messages_is_resumed_and_goes_on() {
    let gateway = gateway([progress(1), answer("done")]);
    let session = gateway.session();
    let mut stream = session.listen();
    let start = stream.priming_event();
    drop(stream);
    // The events of another stream of the session, which are not replayed here.
    assert_eq!(call(&session).send().message().text(), "done");
    say_hello(&session);
    std::thread::sleep(Duration::from_millis(300));
    let mut resumed = session.resume(&start).open();
    assert!(resumed.message().params().contains("hello"));
    assert_eq!(resumed.last_id(), following(&start));
    say_hello(&session);
    assert!(resumed.message().params().contains("hello"));
    // Of two connections of one stream, the newer one is read.
    let seen = resumed.last_id().to_owned();
    let mut newer = session.resume(&seen).open();
    assert_eq!(resumed.event(), None);
    say_hello(&session);
    assert!(newer.message().params().contains("hello"));
    assert_eq!(newer.last_id(), following(&seen));
}

#[test]
fn an_id_that_is_unknown_or_of_another_session_replays_nothing() {
    let gateway = gateway([progress(1), answer("of another session")]);
    let other = gateway.session();
    let mut stream = call(&other).open();
    let start = stream.priming_event();
    check_progress(&mut stream, [1]);
    assert_eq!(stream.message().text(), "of another session");
    let last = stream.last_id().to_owned();
    let mut listening = other.listen();
    let of_listening = listening.priming_event();

    let session = gateway.session();
    for id in [
        &*start,
        &last,
        &of_listening,
        "",
        "nonsense",
        "-",
        "999999-0",
        "1-1-1",
    ] {
        check_fresh(&session, id);
    }
    // What has not been sent in its own session, and a stream that another one replaced.
    check_fresh(&other, &following(&last));
    check_fresh(&other, &of_listening);
    // The other session still finds what is its own.
    let mut resumed = other.resume(&start).open();
    check_progress(&mut resumed, [1]);
    assert_eq!(resumed.message().text(), "of another session");
    assert_eq!(other.delete().status, 200);
    assert_eq!(other.resume(&start).send().status, 404);
}

#[test]
fn a_flood_displaces_the_oldest_events_and_the_newest_are_replayed() {
    let gateway = gateway((0..400).map(progress).chain([answer("done")]));
    let session = gateway.session();
    let mut stream = call(&session).open();
    let start = stream.priming_event();
    let mut ids = vec![start.clone()];
    for number in 0..400 {
        check_progress(&mut stream, [number]);
        ids.push(stream.last_id().to_owned());
    }
    assert_eq!(stream.message().text(), "done");
    assert_eq!(stream.event(), None);
    // With the answer, 256 events are kept: those behind number 145 of 401.
    let mut resumed = session.resume(&ids[145]).open();
    check_progress(&mut resumed, 145..400);
    assert_eq!(resumed.message().text(), "done");
    assert_eq!(resumed.event(), None);
    for id in [&start, &ids[1], &ids[144]] {
        check_fresh(&session, id);
    }
}

/// A progress notification with so many bytes of text.
fn large_progress(size: usize) -> Step {
    let before = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1,"message":""#;
    fill(before, size, r#""}}"#)
}

#[test]
fn a_large_event_is_sent_and_not_kept() {
    let gateway = gateway([progress(1), large_progress(1_100_000), answer("done")]);
    let session = gateway.session();
    let mut stream = call(&session).open();
    check_progress(&mut stream, [1]);
    let before = stream.last_id().to_owned();
    assert!(stream.message().as_str().len() > 1_100_000);
    let behind = stream.last_id().to_owned();
    assert_eq!(stream.message().text(), "done");
    assert_eq!(stream.event(), None);
    check_fresh(&session, &before);
    // Behind it, nothing is missing.
    let mut resumed = session.resume(&behind).open();
    assert_eq!(resumed.message().text(), "done");
    assert_eq!(resumed.event(), None);
}

#[test]
fn what_is_kept_for_a_session_has_a_limit_in_bytes() {
    let gateway = gateway(
        (0..5)
            .map(|_| large_progress(300_000))
            .chain([answer("done")]),
    );
    let session = gateway.session();
    let mut stream = call(&session).open();
    let mut ids = vec![stream.priming_event()];
    for _ in 0..5 {
        assert!(stream.message().as_str().len() > 300_000);
        ids.push(stream.last_id().to_owned());
    }
    assert_eq!(stream.message().text(), "done");
    let mut resumed = session.resume(&ids[2]).open();
    for _ in 3..=5 {
        assert!(resumed.message().as_str().len() > 300_000);
    }
    assert_eq!(resumed.message().text(), "done");
    check_fresh(&session, &ids[1]);
}
