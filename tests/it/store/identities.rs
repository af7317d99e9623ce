//! People and their clients are known to every gateway, and each code and refresh token is used once.

use serde_json::json;

use super::{replica, wait_for};
use crate::identities::authorization::{
    Browser, exchange, invite, refresh, registered, tokens, with_server,
};
use crate::identities::{execute, token};
use crate::support::postgres::Postgres;

#[test]
fn a_token_counts_at_every_replica_at_once_and_until_it_is_revoked_at_one() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let (here, there) = (replica(&database), replica(&database));
    let (first, second) = (here.serve(&[]), there.serve(&[]));
    // The gateways were there before the token.
    let anna = token(&here, &["anna", "--role", "dev"]);
    assert_eq!(execute(&second, "git__log", &anna), "200 the log");
    assert_eq!(execute(&first, "git__log", &anna), "200 the log");
    // No file has it, and the store has its hash alone.
    assert!(!here.home().path("state/identity/tokens.json").exists());
    let dump = database.run("select convert_from(body, 'UTF8') from record");
    assert!(dump.contains("anna") && !dump.contains(&anna), "{dump}");
    let listed = there.run(&["token", "list", "--json"]).code(0).json();
    assert_eq!(listed[0]["name"], "anna");
    let _ = there.run(&["token", "revoke", "anna"]).code(0);
    wait_for(&first, "git__log", &anna, "401");
    wait_for(&second, "git__log", &anna, "401");
}

#[test]
fn a_login_may_use_another_replica_at_each_step() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let with_store = || with_server(&json!({})).store(&database);
    let (here, there) = (with_store(), with_store());
    let (first, second) = (here.serve(&[]), there.serve(&[]));
    let client = registered(&first);
    let link = invite(&here, &["anna", "--role", "dev"]);
    let mut browser = Browser::default();
    browser.accept(&second, &link);
    let page = browser.authorize(&first, &[("client_id", client.as_str())]);
    let back = browser.consent(&second, &page, "allow");
    let (access, first_refresh) = tokens(&exchange(&first, &client, &back["code"]));
    // At once, at the other one.
    assert_eq!(execute(&second, "git__log", &access), "200 the log");
    let (access, second_refresh) = tokens(&refresh(&second, &client, &first_refresh));
    assert_eq!(execute(&first, "git__log", &access), "200 the log");
    tokens(&refresh(&first, &client, &second_refresh));
    // The first one was used two turns ago, so another party has it.
    assert_eq!(refresh(&second, &client, &first_refresh).status, 400);
    wait_for(&first, "git__log", &access, "401");
    wait_for(&second, "git__log", &access, "401");
}

#[test]
fn a_replica_reads_the_store_before_it_calls_anything_of_another_one_unknown() {
    let Some(database) = Postgres::database() else {
        return;
    };
    // Notifications come too late on a busy machine; here they do not come at all.
    database.run("create function pg_notify(text, text) returns void language sql as ''");
    database.run(
        "do $$ begin execute format('alter database %I set search_path = public, pg_catalog', current_database()); end $$",
    );
    let with_store = || with_server(&json!({})).store(&database);
    let (here, there) = (with_store(), with_store());
    let (first, second) = (here.serve(&[]), there.serve(&[]));
    let client = registered(&first);
    // It has just read the store.
    let read = |gateway| {
        let said = execute(gateway, "git__log", "mcpzip_unknown");
        assert!(said.starts_with("401"), "{said}");
    };
    for name in ["anna", "bo", "cleo"] {
        let link = invite(&there, &[name, "--role", "dev"]);
        let mut browser = Browser::default();
        read(&second);
        browser.accept(&first, &link);
        let page = browser.authorize(&first, &[("client_id", client.as_str())]);
        let back = browser.consent(&second, &page, "allow");
        let (access, _) = tokens(&exchange(&first, &client, &back["code"]));
        assert_eq!(execute(&second, "git__log", &access), "200 the log");
        read(&first);
        browser.accept(&second, &invite(&there, &[name, "--role", "dev"]));
        let page = browser.authorize(&first, &[("client_id", client.as_str())]);
        assert_eq!(page.status, 200, "{page:?}");
    }
}

#[test]
fn a_code_and_a_question_count_once_among_all_replicas() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let with_store = || with_server(&json!({})).store(&database);
    let (here, there) = (with_store(), with_store());
    let (first, second) = (here.serve(&[]), there.serve(&[]));
    let client = registered(&second);
    let mut browser = Browser::default();
    browser.accept(&first, &invite(&there, &["anna", "--role", "dev"]));
    for _ in 0..3 {
        let page = browser.authorize(&first, &[("client_id", client.as_str())]);
        let back = browser.consent(&second, &page, "allow");
        let answers: Vec<_> = std::thread::scope(|scope| {
            let gateways = [&first, &second, &first, &second];
            let attempts = gateways.map(|gateway| {
                let (client, code) = (&client, &back["code"]);
                scope.spawn(move || exchange(gateway, client, code))
            });
            attempts
                .into_iter()
                .map(|attempt| attempt.join().unwrap())
                .collect()
        });
        let right = answers.iter().filter(|answer| answer.status == 200);
        assert!(right.clone().count() <= 1, "{answers:?}");
        // Two had the code, so what it gave has ended.
        for answer in right {
            let (access, _) = tokens(answer);
            wait_for(&first, "git__log", &access, "401");
        }
    }
    assert_eq!(database.run("select count(*) from ticket where kind = 'code' and convert_from(body, 'UTF8') like '%anna%'"), "0");
}
