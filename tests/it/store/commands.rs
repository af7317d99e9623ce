//! `mcpzip store`: its schema, its copies and its refusals.

use std::fs;

use serde_json::Value;

use super::replica;
use crate::identities::{execute, token};
use crate::support::postgres::Postgres;
use crate::support::{Setup, command, until};

#[test]
fn the_schema_comes_and_goes_and_a_newer_one_is_refused() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = Setup::new().store(&database);
    let checked = setup.run(&["store", "check", "--json"]).code(0).json();
    assert_eq!(checked["schema"], 0);
    let latest = checked["known"].clone();
    let made = setup.run(&["store", "migrate", "--json"]).code(0).json();
    assert_eq!(
        (&made["before"], &made["after"]),
        (&Value::from(0), &latest)
    );
    // The counts of days and months outlast a crash.
    let kept = "select relpersistence from pg_class where relname = 'allowance'";
    assert_eq!(database.run(kept), "p");
    // Again, and at the same time.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| command::run(setup.command(&["store", "migrate"]), "").code(0));
        }
    });
    let back = setup
        .run(&["store", "migrate", "--to", "0", "--json"])
        .code(0)
        .json();
    assert_eq!(back["after"], 0);
    assert_eq!(database.run("select count(*) from pg_tables where schemaname = 'public' and tablename <> 'migration'"), "0");
    let _ = setup.run(&["store", "migrate"]).code(0);
    let _ = setup.run(&["store", "migrate", "--to", "999"]).code(1);
    // The next schema lets this program work on, the one after it does not.
    database.run("insert into migration (version, oldest, program) select max(version) + 1, max(version), 'next' from migration");
    token(&replica(&database), &["anna", "--role", "dev"]);
    let _ = setup.run(&["store", "check"]).code(0);
    database.run("insert into migration (version, oldest, program) select max(version) + 1, max(version) + 1, 'newest' from migration");
    for command in [
        &["store", "check"][..],
        &["store", "migrate"],
        &["token", "list"],
    ] {
        let refused = setup.run(command).code(1);
        assert!(refused.stderr.contains("Update this mcpzip"), "{refused:?}");
    }
}

#[test]
fn a_store_that_cannot_be_used_is_refused_in_words() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = Setup::new().store(&database);
    let with = |name: &str, value: &str| setup.clone().variable(name, value);
    for (setup, code, expected) in [
        (with("MCPZIP_STORE", "mysql://db/x"), 3, "postgres://"),
        (
            with("MCPZIP_STORE", "postgres://db/x?sslmode=prefer"),
            3,
            "sslmode=prefer",
        ),
        (
            with("MCPZIP_STORE", "postgres://u:s3cr3t@1/s3cr3t@127.0.0.1:9/x"),
            3,
            "percent-encoded",
        ),
        (
            with("MCPZIP_STORE", "postgres://u:s3cr3t?s3cr3t=@127.0.0.1:9/x"),
            3,
            "percent-encoded",
        ),
        (
            with(
                "MCPZIP_STORE",
                "postgres://db/x?sslmode=require&sslmode=disable",
            ),
            3,
            "twice",
        ),
        (
            with("MCPZIP_STORE", "postgres://db/x?sslrootcert=/dev/zero"),
            3,
            "regular file",
        ),
        (with("MCPZIP_STORE_KEY", ""), 3, "MCPZIP_STORE_KEY"),
        (with("MCPZIP_STORE_KEY", "short"), 3, "32 bytes"),
        (
            with("MCPZIP_STORE", "postgres://u:s3cr3t@127.0.0.1:9/x"),
            4,
            "cannot be reached",
        ),
        (Setup::new(), 3, "there is no store"),
    ] {
        let refused = setup.run(&["store", "check"]).code(code);
        assert!(refused.stderr.contains(expected), "{expected}: {refused:?}");
        assert!(!refused.stderr.contains("s3cr3t"), "{refused:?}");
    }
    // A token is neither made in a file nor lost.
    let away = with("MCPZIP_STORE", "postgres://127.0.0.1:9/x");
    let _ = away.run(&["token", "create", "anna"]).code(4);
    assert!(!away.home().path("state/identity/tokens.json").exists());
    let doctor = away.run(&["doctor", "--json"]);
    assert!(doctor.stdout.contains("store-unusable"), "{doctor:?}");
}

#[test]
fn a_copy_comes_back_and_files_are_taken_over() {
    let (Some(old), Some(new)) = (Postgres::database(), Postgres::database()) else {
        return;
    };
    let before = crate::identities::setup();
    // From files.
    let anna = token(&before, &["anna", "--role", "dev"]);
    let with_store = before.clone().store(&old);
    let _ = with_store.run(&["store", "import", "--from-files"]).code(0);
    let gateway = with_store.serve(&[]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    drop(gateway);
    // From one database to another.
    let copy = before.home().path("copy.jsonl");
    let copy = copy.to_str().unwrap();
    let _ = with_store.run(&["store", "export", copy]).code(0);
    let text = fs::read_to_string(copy).unwrap();
    assert!(text.lines().count() >= 2 && !text.contains(&anna), "{text}");
    let moved = before.store(&new);
    let _ = moved.run(&["store", "import", copy]).code(0);
    let refused = moved.run(&["store", "import", copy]).code(1);
    assert!(refused.stderr.contains("--replace"), "{refused:?}");
    let _ = moved.run(&["store", "import", "--replace", copy]).code(0);
    let gateway = moved.serve(&[]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
}

#[test]
fn keys_are_rotated_while_the_one_before_still_opens() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let with_server = || crate::identities::authorization::with_server(&serde_json::json!({}));
    let old = with_server().store(&database);
    let public = |setup: &Setup| {
        let gateway = setup.serve(&[]);
        crate::identities::authorization::call(&gateway, "GET", "/oauth/jwks").send()
    };
    let before = public(&old);
    let new = with_server().store(&database);
    let new = new.variable(
        "MCPZIP_STORE_KEY",
        &"B".repeat(42).chars().chain(['A']).collect::<String>(),
    );
    // Without the one before, it does not join, and replaces nothing.
    for command in [
        &["serve", "--http", "127.0.0.1:0"][..],
        &["store", "check"],
        &["token", "list"],
        &["store", "migrate"],
    ] {
        let refused = new.run(command).code(3);
        assert!(
            refused.stderr.contains("the store has another key"),
            "{refused:?}"
        );
    }
    let doctor = new.run(&["doctor", "--json"]);
    assert!(doctor.stdout.contains("another key"), "{doctor:?}");
    assert_eq!(public(&old).body, before.body);
    let sealed = |setup: &Setup, member: &str| {
        let checked = setup.run(&["store", "check", "--json"]).code(0).json();
        checked["contents"][member].as_i64().unwrap()
    };
    let rotated = new
        .clone()
        .variable("MCPZIP_STORE_KEY_PREVIOUS", &"A".repeat(43));
    assert!(sealed(&rotated, "sealed_with_previous_key") > 0);
    // A gateway seals its keys again, so that the old one can go.
    let gateway = rotated.serve(&[]);
    until("all to be sealed with the new key", || {
        (sealed(&rotated, "sealed_with_previous_key") == 0).then_some(())
    });
    drop(gateway);
    assert_eq!(public(&new).body, before.body);
}

#[test]
fn a_copy_that_cannot_be_used_replaces_nothing() {
    let Some(database) = Postgres::database() else {
        return;
    };
    let setup = replica(&database);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    // A plain name, in the current directory; a device stays one.
    let mut command = setup.command(&["store", "export", "copy.jsonl"]);
    command.current_dir(setup.home().path(""));
    let _ = command::run(command, "").code(0);
    let refused = setup.run(&["store", "export", "/dev/full"]).code(1);
    assert!(refused.stderr.contains("not a regular file"), "{refused:?}");
    let whole = fs::read_to_string(setup.home().path("copy.jsonl")).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    let record = |kind: &str, key: &str| {
        format!(
            "{first}\n{{\"is\":\"record\",\"kind\":\"{kind}\",\"key\":\"{key}\",\"body\":\"e30=\"}}\n{{\"is\":\"end\",\"count\":1}}\n"
        )
    };
    let login = format!(
        "{first}\n{{\"is\":\"login\",\"key\":\"x\",\"body\":\"e30=\"}}\n{{\"is\":\"end\",\"count\":1}}\n"
    );
    let path = setup.home().path("bad.jsonl");
    for (text, expected) in [
        (lines[..lines.len() - 1].join("\n"), "not whole"),
        (format!("{first}\n{last}\n"), "lost lines"),
        (record("identity", "zzz"), "`zzz` is not known"),
        (record("identity", "token/x"), "cannot be read"),
        (record("zzz", "x"), "a kind of records"),
        (record("identity-keys", "keys"), "another key"),
        (login, "another key"),
    ] {
        fs::write(&path, text).unwrap();
        let file = path.to_str().unwrap();
        let refused = setup.run(&["store", "import", "--replace", file]).code(1);
        assert!(refused.stderr.contains(expected), "{expected}: {refused:?}");
    }
    let gateway = setup.serve(&[]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
}
