//! Calls that wait for a person at one replica, and are allowed and made at another.

use serde_json::{Value, json};

use super::replica;
use crate::identities::{execute, token};
use crate::support::postgres::{Database, Postgres};
use crate::support::terminal::Terminal;
use crate::support::{Setup, until};

fn asking(database: &Database) -> Setup {
    replica(database)
        .setting("tools", json!({ "ask": ["git__log"] }))
        .setting("approvals", json!({ "wait": "200ms" }))
}

fn pending(setup: &Setup) -> Vec<Value> {
    let listed = setup.run(&["approvals", "list", "--json"]).code(0).json();
    listed.as_array().unwrap().clone()
}

fn waits(said: &str) -> bool {
    said.contains("waits for approval")
}

#[test]
fn a_call_that_waited_at_one_replica_is_allowed_at_another_and_made_once_at_a_third() {
    let Some(database) = Postgres::database() else {
        return;
    };
    // One configuration, as replicas have, and a state directory for each.
    let here = asking(&database);
    let state = here.home().path("state-of-another");
    let there = here
        .clone()
        .variable("MCPZIP_STATE_DIR", state.to_str().unwrap());
    let (first, second) = (here.serve(&[]), there.serve(&[]));
    let anna = token(&here, &["anna", "--role", "dev"]);
    let bo = token(&here, &["bo", "--role", "dev"]);
    assert!(waits(&execute(&first, "git__log", &anna)));
    let listed = pending(&there);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["person"], "anna");
    // It is sealed, and in no file.
    let body = "select convert_from(body, 'UTF8') from record where kind = 'approvals'";
    assert!(!database.run(body).contains("git"));
    assert!(!here.home().path("state/approvals").exists());
    let id = listed[0]["id"].as_str().unwrap();
    let Some(terminal) = Terminal::run(&there.command(&["approvals", "allow", id])) else {
        return;
    };
    terminal.shows("[y/N]");
    terminal.types("y");
    terminal.shows("allowed git__log");
    // The same call by another person needs an approval of its own.
    assert!(waits(&execute(&second, "git__log", &bo)));
    assert_eq!(execute(&second, "git__log", &anna), "200 the log");
    // The permission is used up everywhere.
    assert!(waits(&execute(&first, "git__log", &anna)));
    assert!(waits(&execute(&second, "git__log", &anna)));
    assert_eq!(here.home().count("git", "tools/call"), 1);
}

#[test]
fn without_the_store_no_call_is_allowed() {
    let Some(mut postgres) = Postgres::start() else {
        return;
    };
    let database = postgres.create();
    let setup = asking(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert!(waits(&execute(&gateway, "git__log", &anna)));
    postgres.stop();
    let refused = execute(&gateway, "git__log", &anna);
    assert!(
        refused.contains("the approvals in the store cannot be read or written"),
        "{refused}"
    );
    assert_eq!(setup.home().count("git", "tools/call"), 0);
    let _ = setup.run(&["approvals", "list"]).code(4);
    postgres.go_on();
    until("the call to wait again", || {
        waits(&execute(&gateway, "git__log", &anna)).then_some(())
    });
}
