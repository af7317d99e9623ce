//! Replicas are replaced one after another while the schema of the store changes.

use serde_json::json;

use super::cluster::{Cluster, settle};
use super::sessions::configure;
use crate::support::postgres::Database;

/// A schema as a later version would make it, which only adds to the tables. `oldest` is what a program must know to use it.
fn migrate(database: &Database, oldest: &str) {
    for table in [
        "session",
        "answer",
        "home",
        "replica",
        "record",
        "login",
        "audit",
        "ticket",
        "allowance",
    ] {
        let added =
            format!("alter table {table} add column if not exists added text default 'new'");
        database.run(&added);
    }
    database.run("create table if not exists later (key text primary key)");
    database.run(&format!(
        "insert into migration (version, oldest, program) select max(version) + 1, {oldest}, 'next' from migration"
    ));
}

#[test]
fn replicas_go_on_while_a_newer_version_adds_to_the_schema() {
    let Some(mut cluster) = Cluster::start(3, &[], configure) else {
        return;
    };
    let session = cluster
        .at(0)
        .session_of("2025-11-25", &json!({ "elicitation": {} }));
    // The first replica of the new version would do this at its start, while the others run.
    migrate(&cluster.database, "max(version)");
    let subscribed = |number: usize, method: &str| {
        let at = session.at(cluster.at(number).address());
        let answer = at.request(1, method, r#"{"uri":"test:a"}"#).send();
        assert_eq!(answer.message().result(), "{}");
    };
    subscribed(1, "resources/subscribe");
    settle();
    for number in 0..3 {
        let at = session.at(cluster.at(number).address());
        let said = at.execute(2, "fake__who", "").send().message();
        assert_eq!(said.text(), format!("replica {number}"));
    }
    subscribed(2, "resources/unsubscribe");
    // One of the version before starts again with the new schema, and knows the session.
    cluster.replicas[1].kill();
    cluster.replicas[1].start();
    let at = session.at(cluster.at(1).address());
    let said = at.execute(3, "fake__who", "").send().message();
    assert_eq!(said.text(), "replica 1");
    let stderr = cluster.replicas[1]
        .gateway
        .as_mut()
        .unwrap()
        .process()
        .stderr();
    assert!(
        stderr.contains("for a newer mcpzip, and this one can use it"),
        "{stderr}"
    );
    assert_eq!(session.at(cluster.at(2).address()).delete().status, 200);

    // A schema that this version must not use: what runs goes on, and no other one starts.
    migrate(&cluster.database, "max(version) + 1");
    let session = cluster.at(0).session();
    let said = session.execute(4, "fake__who", "").send().message();
    assert_eq!(said.text(), "replica 0");
    let refused = cluster
        .setup(2)
        .run(&["serve", "--http", "127.0.0.1:0"])
        .code(1);
    assert!(refused.stderr.contains("Update this mcpzip"), "{refused:?}");
}

/// A replica that begins with an older schema brings it up to date, and says so.
#[test]
fn a_replica_brings_an_older_schema_up_to_date() {
    let Some(mut cluster) = Cluster::start(1, &[], configure) else {
        return;
    };
    cluster.replicas[0].kill();
    let back = cluster
        .setup(0)
        .run(&["store", "migrate", "--to", "0", "--json"]);
    assert_eq!(back.code(0).json()["after"], 0);
    cluster.replicas[0].start();
    let stderr = cluster.replicas[0]
        .gateway
        .as_mut()
        .unwrap()
        .process()
        .stderr();
    assert!(
        stderr.contains("the schema of the store was brought up to date"),
        "{stderr}"
    );
    let session = cluster.at(0).session();
    let said = session.execute(1, "fake__who", "").send().message();
    assert_eq!(said.text(), "replica 0");
}
