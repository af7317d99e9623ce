//! PostgreSQL down, slow and back: what goes on, what fails in words, and what is not lost.

use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{replica, wait_for};
use crate::identities::{execute, token};
use crate::support::postgres::{Database, Postgres};
use crate::support::until;

/// The lines of calls of the tool in the store.
pub(super) fn lines(database: &Database) -> usize {
    let count = r#"select count(*) from audit where line like '%"tool":"log"%'"#;
    database.run(count).parse().unwrap()
}

#[test]
fn known_people_go_on_while_postgresql_is_down_and_no_line_is_lost() {
    let Some(mut postgres) = Postgres::start() else {
        return;
    };
    let database = postgres.create();
    let setup = replica(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    postgres.stop();
    for _ in 0..20 {
        assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    }
    until("the part that fails is named", || {
        // Something has to ask for it.
        let _ = execute(&gateway, "git__log", "mcpzip_unknown");
        let ready = gateway.call("GET", "/readyz").send();
        assert_eq!(ready.status, 200);
        ready.body.contains(r#""failed":["store"]"#).then_some(())
    });
    let refused = setup
        .run(&["token", "create", "bo", "--role", "dev"])
        .code(4);
    assert!(
        refused.stderr.contains("PostgreSQL cannot be reached"),
        "{refused:?}"
    );
    postgres.go_on();
    let bo = token(&setup, &["bo", "--role", "dev"]);
    wait_for(&gateway, "git__log", &bo, "200 the log");
    until("all is well again", || {
        let ready = gateway.call("GET", "/readyz").send();
        (ready.body == r#"{"status":"ready"}"#).then_some(())
    });
    until("the lines arrive", || {
        (lines(&database) >= 22).then_some(())
    });
    // Each once: a line that is sent again is the same row.
    assert_eq!(
        database.run("select count(*) - count(distinct line) from audit"),
        "0"
    );
}

#[test]
fn lines_of_a_killed_gateway_are_sent_by_the_next_one() {
    let Some(mut postgres) = Postgres::start() else {
        return;
    };
    let database = postgres.create();
    let setup = replica(&database);
    let mut gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    postgres.stop();
    for _ in 0..10 {
        assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    }
    gateway.process().signal(Signal::KILL);
    gateway.process().wait();
    drop(gateway);
    postgres.go_on();
    let _gateway = setup.serve(&[]);
    until("the lines arrive", || {
        (lines(&database) >= 11).then_some(())
    });
}

/// A volume that was cloned, or an image with a state: both gateways have the name and the numbers of one log.
#[test]
fn a_copied_state_directory_loses_no_line() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let first = replica(&database);
    let mut gateway = first.serve(&[]);
    let anna = token(&first, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    until("the line arrives", || (lines(&database) == 1).then_some(()));
    gateway.process().signal(Signal::TERM);
    gateway.process().wait();
    drop(gateway);
    let second = replica(&database);
    let (from, to) = (first.home().path("state"), second.home().path("state"));
    std::fs::create_dir_all(&to).unwrap();
    let mut copy = Command::new("cp");
    let copied = copy.arg("-a").arg(from.join(".")).arg(&to).status();
    assert!(copied.unwrap().success());
    let gateways = [first.serve(&[]), second.serve(&[])];
    for _ in 0..5 {
        for gateway in &gateways {
            assert_eq!(execute(gateway, "git__log", &anna), "200 the log");
        }
    }
    let count = r#"select count(distinct line) from audit where line like '%"tool":"log"%'"#;
    until("all lines to arrive", || {
        (database.run(count) == "11").then_some(())
    });
}

#[test]
fn lines_that_a_restored_database_does_not_have_are_sent_again() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = replica(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let call = || assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    call();
    until("the line arrives", || (lines(&database) == 1).then_some(()));
    database.run("create table copy as select * from audit");
    (0..4).for_each(|_| call());
    until("all lines arrive", || (lines(&database) == 5).then_some(()));
    database.run("truncate audit; insert into audit select * from copy");
    call();
    until("the missing lines arrive, too", || {
        (lines(&database) == 6).then_some(())
    });
}

#[test]
fn a_call_waits_for_no_store() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let database = postgres.create();
    let setup = replica(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    // It takes connections and answers nothing.
    postgres.signal(Signal::STOP);
    let begun = Instant::now();
    for _ in 0..50 {
        assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    }
    let took = begun.elapsed();
    // Each wait for the store would take two seconds.
    assert!(took < Duration::from_secs(50), "{took:?}");
    // One who is not known has an answer, too, in the end.
    let begun = Instant::now();
    let said = execute(&gateway, "git__log", "mcpzip_unknown");
    assert!(said.starts_with("401"), "{said}");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    postgres.signal(Signal::CONT);
    let bo = token(&setup, &["bo", "--role", "dev"]);
    wait_for(&gateway, "git__log", &bo, "200 the log");
}
