//! Stored results, which every replica can read for the one who made the call, and no other.

use serde_json::json;

use super::replica;
use crate::identities::{As, said, token};
use crate::support::gateway::{Gateway, HttpSession};
use crate::support::postgres::{Database, Postgres};
use crate::support::script::answer;
use crate::support::{Server, Setup, until};

/// A gateway with a tool whose answer is longer than the budget of results.
fn with_long_answers(setup: Setup) -> Setup {
    let lines: Vec<String> = (0..3000).map(|line| format!("line {line}")).collect();
    let server = Server::new().tool("long", [answer(&lines.join("\n"))]);
    setup
        .server("git", server)
        .setting("results", json!({ "budget": 1000 }))
}

/// The parameters of a call that reads a stored result.
fn reading(id: &str) -> String {
    format!(
        r#""name":"execute_tool","arguments":{{"name":"mcpzip__read_result","arguments":{{"id":"{id}","grep":"line 2999"}}}}"#
    )
}

fn gateway_of(database: &Database) -> Setup {
    with_long_answers(replica(database))
}

/// The id in an answer that was stored.
#[track_caller]
fn id(answer: &str) -> String {
    let (_, rest) = answer.split_once(r#""id":""#).expect(answer);
    rest.split_once('"').unwrap().0.to_owned()
}

fn read(gateway: &Gateway, id: &str, token: &str) -> String {
    said(gateway.modern("tools/call", &reading(id)).by(token))
}

#[test]
fn a_result_is_read_at_another_replica_by_its_own_identity_only() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let (here, there) = (gateway_of(&database), gateway_of(&database));
    let (first, second) = (here.serve(&[]), there.serve(&[]));
    let anna = token(&here, &["anna", "--role", "dev"]);
    let bo = token(&here, &["bo", "--role", "dev"]);
    let long = said(first.modern_execute("git__long", "").by(&anna));
    let id = id(&long);
    assert!(id.starts_with('s'), "{id}");
    for gateway in [&first, &second] {
        assert_eq!(read(gateway, &id, &anna), "200 3000: line 2999");
        let other = read(gateway, &id, &bo);
        assert!(other.contains("there is no stored result"), "{other}");
    }
    // In the database it is encrypted.
    let stored = database.run("select convert_from(body, 'UTF8') from shelf where kind = 'result'");
    assert!(!stored.is_empty() && !stored.contains("line"), "{stored}");
    // It ends.
    let ends = "select expires between now() + interval '23 hours' and now() + interval '25 hours' from shelf";
    assert_eq!(database.run(ends), "t");
    drop(first);
    assert_eq!(read(&second, &id, &anna), "200 3000: line 2999");
    database.run("update shelf set expires = now() - interval '1 second'");
    let ended = read(&second, &id, &anna);
    assert!(ended.contains("there is no stored result"), "{ended}");
}

#[test]
fn a_result_of_a_session_is_for_that_session_at_any_replica() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let open = || with_long_answers(Setup::new().alone().store(&database));
    let (here, there) = (open(), open());
    let (first, second) = (here.serve(&[]), there.serve(&[]));
    let session = first.session();
    let long = session.execute(1, "git__long", "").send().message().text();
    let id = id(&long);
    let read = |session: &HttpSession| {
        let parameters = format!("{{{}}}", reading(&id));
        let read = session.request(2, "tools/call", &parameters);
        read.send().message().text()
    };
    assert_eq!(read(&session.at(second.address())), "3000: line 2999");
    let other = read(&second.session());
    assert!(other.contains("there is no stored result"), "{other}");
}

#[test]
fn what_cannot_be_written_stays_at_its_replica_and_says_so() {
    let Some(mut postgres) = Postgres::start() else {
        return;
    };
    let database = postgres.create();
    let (here, there) = (gateway_of(&database), gateway_of(&database));
    let (first, second) = (here.serve(&[]), there.serve(&[]));
    let anna = token(&here, &["anna", "--role", "dev"]);
    let long = |gateway: &Gateway| said(gateway.modern_execute("git__long", "").by(&anna));
    let shared = id(&long(&first));
    let _ = long(&second);
    postgres.stop();
    // The call is answered all the same.
    let alone = id(&long(&first));
    assert!(alone.starts_with('r'), "{alone}");
    assert_eq!(read(&first, &alone, &anna), "200 3000: line 2999");
    assert_eq!(read(&first, &shared, &anna), "200 3000: line 2999");
    let elsewhere = read(&second, &alone, &anna);
    assert!(
        elsewhere.contains("only at the replica of the gateway that made the call"),
        "{elsewhere}"
    );
    let unread = read(&second, &shared, &anna);
    assert!(unread.contains("cannot be read now"), "{unread}");
    postgres.go_on();
    until("the store is read again", || {
        (read(&second, &shared, &anna) == "200 3000: line 2999").then_some(())
    });
}
