//! `audit.durable` `"store"`: a line is committed in the store before its call is answered.

use serde_json::json;

use super::failures::lines;
use super::{replica, wait_for};
use crate::identities::{execute, token};
use crate::support::Setup;
use crate::support::postgres::{Database, Postgres};

fn durable(database: &Database) -> Setup {
    replica(database).setting("audit", json!({ "durable": "store" }))
}

#[test]
fn a_line_is_in_the_store_before_its_call_is_answered() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = durable(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    for count in 1..=10 {
        assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
        assert_eq!(lines(&database), count);
    }
    // Calls at the same time wait for one statement together.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(execute(&gateway, "git__log", &anna), "200 the log"));
        }
    });
    assert_eq!(lines(&database), 18);
}

#[test]
fn no_call_is_answered_whose_line_is_not_in_the_store() {
    let Some(mut postgres) = Postgres::start() else {
        return;
    };
    let database = postgres.create();
    let setup = durable(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    postgres.stop();
    for _ in 0..6 {
        let refused = execute(&gateway, "git__log", &anna);
        assert!(
            refused.contains("the audit log of this gateway cannot be written"),
            "{refused}"
        );
    }
    // Once the failure is known, no call is made.
    let made = setup.home().count("git", "tools/call");
    let _ = execute(&gateway, "git__log", &anna);
    assert_eq!(setup.home().count("git", "tools/call"), made);
    // The state of the store is looked at each second.
    std::thread::sleep(std::time::Duration::from_secs(3));
    postgres.go_on();
    wait_for(&gateway, "git__log", &anna, "200 the log");
    // The lines of calls that were made and not answered are there, too.
    assert!(lines(&database) > made, "{made}");
    // The log says when the store was away.
    let events = r#"select count(*) from audit where line like '%"kind":"store"%'"#;
    crate::support::until("both events", || {
        (database.run(events).parse::<usize>().unwrap() >= 2).then_some(())
    });
}

/// PostgreSQL answers, and takes no lines: its disk is full, or a table is locked or gone.
#[test]
fn once_the_store_has_refused_a_line_no_call_is_made() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = durable(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    database.run("alter table audit rename to away");
    let refused = execute(&gateway, "git__log", &anna);
    assert!(
        refused.contains("the audit log of this gateway cannot be written"),
        "{refused}"
    );
    let made = setup.home().count("git", "tools/call");
    for _ in 0..3 {
        let refused = execute(&gateway, "git__log", &anna);
        assert!(
            refused.contains("the audit log of this gateway cannot be written"),
            "{refused}"
        );
    }
    assert_eq!(setup.home().count("git", "tools/call"), made);
    let ready = gateway.call("GET", "/readyz").send();
    assert_eq!(ready.status, 200);
    assert!(ready.body.contains(r#""failed":["audit"]"#), "{ready:?}");
    database.run("alter table away rename to audit");
    wait_for(&gateway, "git__log", &anna, "200 the log");
    assert!(lines(&database) > made);
    let ready = gateway.call("GET", "/readyz").send();
    assert_eq!(ready.body, r#"{"status":"ready"}"#);
}

#[test]
fn without_a_store_a_log_that_must_be_in_one_refuses_calls() {
    let setup = crate::identities::setup().setting("audit", json!({ "durable": "store" }));
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let refused = execute(&gateway, "git__log", &anna);
    assert!(
        refused.contains("the audit log of this gateway cannot be written"),
        "{refused}"
    );
    assert_eq!(setup.home().count("git", "tools/call"), 0);
    let doctor = setup.run(&["doctor", "--json"]);
    assert!(doctor.stdout.contains("audit-not-durable"), "{doctor:?}");
}
