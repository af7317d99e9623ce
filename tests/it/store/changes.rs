//! Changes that come late, at the same time, or from a database that is another one than before.

use std::fs;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{replica, wait_for};
use crate::identities::authorization::{
    Browser, call, exchange, invite, refresh, registered, tokens, with_server,
};
use crate::identities::{execute, token};
use crate::support::postgres::{Database, Postgres};
use crate::support::until;

/// Holds the lock of a kind, as a replica does that was stopped while it changed records.
fn hold(database: &Database, kind: &str, seconds: u32) -> JoinHandle<String> {
    let (holder, name) = (database.clone(), format!("mcpzip record {kind}"));
    let held = thread::spawn(move || {
        holder.run(&format!(
            "select pg_advisory_xact_lock(hashtextextended('{name}', 0)); select pg_sleep({seconds})"
        ))
    });
    let is_held = "select count(*) from pg_locks where locktype = 'advisory' and granted \
        and database = (select oid from pg_database where datname = current_database())";
    until("the lock is held", || {
        (database.run(is_held) != "0").then_some(())
    });
    held
}

#[test]
fn a_revocation_counts_also_if_its_notification_is_lost() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = replica(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    // Without a word to anyone.
    database.run(
        "update record set body = null, number = nextval('change_number') where key like 'token/%'",
    );
    wait_for(&gateway, "git__log", &anna, "401");
}

#[test]
fn a_database_that_was_restored_is_read_with_its_own_numbers() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = replica(&database);
    let gateway = setup.serve(&[]);
    database.run("select setval('change_number', 5000)");
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    database.run("update record set number = 1; select setval('change_number', 100)");
    database.run("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()");
    // It listens again.
    let listens = "select count(*) from pg_stat_activity where datname = current_database() and query like 'listen%'";
    until("the gateway listens again", || {
        (database.run(listens) != "0").then_some(())
    });
    thread::sleep(Duration::from_secs(1));
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    let bo = token(&setup, &["bo", "--role", "dev"]);
    wait_for(&gateway, "git__log", &bo, "200 the log");
    let _ = setup.run(&["token", "revoke", "anna"]).code(0);
    wait_for(&gateway, "git__log", &anna, "401");
}

/// Connections stay, and numbers are lower than before.
#[test]
fn records_that_were_restored_are_read_whole() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = replica(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    database.run("create table copy as select * from record");
    let bo = token(&setup, &["bo", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &bo), "200 the log");
    database.run("truncate record; insert into record select * from copy");
    wait_for(&gateway, "git__log", &bo, "401");
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
}

/// Each row takes its time, so that one statement for all of them would take longer than statements may.
#[test]
fn much_that_has_ended_is_removed_in_parts() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = replica(&database);
    let _ = setup.run(&["store", "migrate"]).code(0);
    database.run(
        "insert into shelf (kind, scope, key, body, expires) \
        select 'result', 's', n::text, 'body', now() - interval '1 hour' from generate_series(1, 300) as n; \
        insert into shelf (kind, scope, key, body, created, expires) \
        select 'result', 'anna.session' || n, 'k', convert_to(repeat('x', 8000000), 'UTF8'), \
        now() + n * interval '1 second', now() + interval '1 hour' from generate_series(1, 40) as n; \
        create function slowly() returns trigger language plpgsql as \
        'begin perform pg_sleep(0.015); return old; end'; \
        create trigger slowly before delete on shelf for each row execute function slowly()",
    );
    let _gateway = setup.serve(&[]);
    until("all to be removed", || {
        (database.run("select count(*) from shelf where scope = 's'") == "0").then_some(())
    });
    // The results of one person in all sessions are bounded, too: 256 MB.
    let theirs = "select count(*), min(substr(scope, 13)::int) from shelf where kind = 'result'";
    until("the oldest to be removed", || {
        (database.run(theirs) == "33|8").then_some(())
    });
}

#[test]
fn a_schema_that_was_made_again_is_read_whole() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = replica(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    // Connections stay.
    let _ = setup.run(&["store", "migrate", "--to", "0"]).code(0);
    let _ = setup.run(&["store", "migrate"]).code(0);
    wait_for(&gateway, "git__log", &anna, "401");
    let bo = token(&setup, &["bo", "--role", "dev"]);
    wait_for(&gateway, "git__log", &bo, "200 the log");
    let _ = setup.run(&["token", "revoke", "bo"]).code(0);
    wait_for(&gateway, "git__log", &bo, "401");
}

#[test]
fn many_unknown_tokens_share_the_reads_of_the_store() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = replica(&database);
    let gateway = setup.serve(&[]);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    // Each read takes its time.
    database.run(
        "alter table record rename to kept; create view record as \
        select * from kept where (select count(*) from (select pg_sleep(0.5)) as nap) = 1",
    );
    let begun = Instant::now();
    thread::scope(|scope| {
        for number in 0..40 {
            let gateway = &gateway;
            scope.spawn(move || {
                let said = execute(gateway, "git__log", &format!("mcpzip_unknown{number}"));
                assert!(said.starts_with("401"), "{said}");
            });
        }
    });
    // One after the other, they would take 20 seconds.
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn a_wait_for_another_replica_is_no_outage() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = with_server(&json!({})).store(&database);
    let gateway = setup.serve(&[]);
    let client = registered(&gateway);
    let mut browser = Browser::default();
    browser.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let page = browser.authorize(&gateway, &[("client_id", client.as_str())]);
    let back = browser.consent(&gateway, &page, "allow");
    let (_, of_anna) = tokens(&exchange(&gateway, &client, &back["code"]));
    let held = hold(&database, "identity", 12);
    let refused = thread::scope(|scope| {
        let refreshed = || refresh(&gateway, &client, &of_anna).status;
        let all: Vec<_> = (0..12).map(|_| scope.spawn(refreshed)).collect();
        let all = all.into_iter().map(|one| one.join().unwrap());
        all.filter(|status| *status == 503).count()
    });
    assert!(refused >= 3, "{refused}");
    let ready = gateway.call("GET", "/readyz").send();
    assert_eq!(ready.body, r#"{"status":"ready"}"#);
    // A command says it in words.
    let refused = setup.run(&["token", "create", "bo", "--role", "dev"]);
    assert!(refused.stderr.contains("try again"), "{refused:?}");
    held.join().unwrap();
    tokens(&refresh(&gateway, &client, &of_anna));
}

#[test]
fn an_import_waits_for_changes_and_they_for_it() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = replica(&database);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let copy = setup.home().path("copy.jsonl");
    let copy = copy.to_str().unwrap();
    let _ = setup.run(&["store", "export", copy]).code(0);
    let held = hold(&database, "identity", 4);
    let refused = setup.run(&["store", "import", "--replace", copy]).code(1);
    assert!(refused.stderr.contains("try again"), "{refused:?}");
    held.join().unwrap();
    let gateway = setup.serve(&[]);
    let bo = token(&setup, &["bo", "--role", "dev"]);
    assert_eq!(execute(&gateway, "git__log", &bo), "200 the log");
    let _ = setup.run(&["store", "import", "--replace", copy]).code(0);
    wait_for(&gateway, "git__log", &bo, "401");
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
}

#[test]
fn old_keys_go_on_while_they_cannot_be_renewed() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = with_server(&json!({}));
    let public = |setup: &crate::support::Setup| {
        let gateway = setup.serve(&[]);
        call(&gateway, "GET", "/oauth/jwks").send()
    };
    let before = public(&setup);
    assert_eq!(before.status, 200);
    // They are old enough for a successor.
    let path = setup.home().path("state/identity/keys.json");
    let mut keys: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let created = &mut keys["pairs"][0]["created"];
    *created = (created.as_u64().unwrap() - 31 * 24 * 60 * 60).into();
    fs::write(&path, keys.to_string()).unwrap();
    let shared = setup.store(&database);
    let _ = shared.run(&["store", "import", "--from-files"]).code(0);
    let held = hold(&database, "identity-keys", 8);
    let during = public(&shared);
    assert_eq!((during.status, &during.body), (200, &before.body));
    held.join().unwrap();
    let after = public(&shared);
    assert_ne!(after.body, before.body);
    assert!(
        after
            .body
            .contains(keys["pairs"][0]["id"].as_str().unwrap())
    );
}

#[test]
fn assertions_about_people_are_signed_with_one_key() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let published = || {
        let setup = replica(&database);
        let gateway = setup.serve(&[]);
        let keys = gateway.call("GET", "/.well-known/mcpzip-keys.json").send();
        serde_json::from_str::<Value>(&keys.body).unwrap()
    };
    let keys = published();
    assert_eq!(keys["keys"].as_array().map(Vec::len), Some(1), "{keys}");
    assert_eq!(published(), keys);
}
