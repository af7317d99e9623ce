//! Limits: each person has their own, a shared one is shared fairly, and one that cannot be read lets nothing through.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{As as _, Session, execute, said, setup, token};
use crate::support::gateway::Gateway;
use crate::support::script::{answer, result, sleep};
use crate::support::{Server, Setup, until};

fn with_limits(limits: &Value) -> Setup {
    setup().setting("limits", limits.clone())
}

/// A server with a tool that takes its time.
fn slow(milliseconds: u64, limits: &Value) -> Setup {
    let slow = Server::new().tool("work", [sleep(milliseconds), answer("worked")]);
    with_limits(limits)
        .server("slow", slow)
        .setting("roles", json!({ "all": { "profiles": ["*"] } }))
}

fn metrics(gateway: &Gateway, token: &str) -> String {
    gateway.call("GET", "/metrics").by(token).send().body
}

#[test]
fn each_person_has_the_calls_of_a_minute_for_themselves() {
    let setup = with_limits(&json!([{ "for": "git__*", "calls_per_minute": 2 }]));
    let anna = token(&setup, &["anna", "--role", "lead"]);
    let bo = token(&setup, &["bo", "--role", "lead"]);
    let admin = token(&setup, &["admin", "--role", "admin"]);
    let gateway = setup.serve(&[]);
    for _ in 0..2 {
        assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    }
    let refused = execute(&gateway, "git__push", &anna);
    assert!(
        refused.starts_with("200 `git__push` was not called: the limit of 2 calls a minute is used up. Next: try again in "),
        "{refused}"
    );
    // A tool's error, which an agent reads, and no refusal of the request.
    let session = Session::open(&gateway, &anna);
    let answer = session.execute(&gateway, "git__log", &anna).send();
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(
        (answer.status, &body["result"]["isError"]),
        (200, &json!(true))
    );
    // A resource counts as well, and its error is one of JSON-RPC.
    let read = gateway.modern("resources/read", r#""uri":"git:///head""#);
    let read = read.and_header("Mcp-Name", "git:///head").by(&anna).send();
    assert_eq!(read.message().error_code(), -31001, "{read:?}");
    assert_eq!(execute(&gateway, "git__log", &bo), "200 the log");
    assert_eq!(execute(&gateway, "vault__read", &admin), "200 a secret");
    let figures = metrics(&gateway, &admin);
    let line = r#"mcpzip_limited_total{for="git__*",limit="calls_per_minute"} 3"#;
    assert!(figures.contains(line), "{figures}");
    let audit = setup.run(&["audit", "--user", "anna", "--denied", "--json"]);
    let audit = audit.code(0).stdout;
    assert!(
        audit.contains(r#""rule":"git__*""#) || audit.contains(r#""rule": "git__*""#),
        "{audit}"
    );
    let denied = audit.replace("\": ", "\":");
    assert!(denied.contains(r#""kind":"resource""#), "{denied}");
    // The server has got no more than the two, and bo's.
    assert_eq!(setup.home().count("git", r#""method":"tools/call""#), 3);
}

#[test]
fn a_limit_is_about_users_roles_servers_and_tools() {
    let setup = with_limits(&json!([
        { "for": "@role:lead git__push", "calls_per_minute": 1 },
        { "for": "@user:anna", "calls_per_minute": 4 },
    ]));
    let anna = token(&setup, &["anna", "--role", "lead"]);
    let admin = token(&setup, &["admin", "--role", "admin"]);
    let gateway = setup.serve(&[]);
    assert_eq!(execute(&gateway, "git__push", &anna), "200 pushed");
    assert!(execute(&gateway, "git__push", &anna).contains("1 call a minute"));
    for _ in 0..3 {
        assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    }
    // What one limit refuses counts for no other.
    assert!(execute(&gateway, "git__log", &anna).contains("4 calls a minute"));
    for _ in 0..5 {
        assert_eq!(execute(&gateway, "git__push", &admin), "200 pushed");
    }
}

#[test]
fn too_many_requests_get_429_with_retry_after() {
    let setup = with_limits(&json!([{ "requests_per_minute": 3 }]));
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let bo = token(&setup, &["bo", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    for _ in 0..3 {
        let answer = gateway.modern("tools/list", "").by(&anna).send();
        assert_eq!(answer.status, 200);
    }
    let refused = gateway.modern("tools/list", "").by(&anna).send();
    assert_eq!(refused.fault(), (429, -31001), "{refused:?}");
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=20).contains(&seconds), "{seconds}");
    assert_eq!(gateway.modern("tools/list", "").by(&bo).send().status, 200);
    assert_eq!(gateway.call("GET", "/healthz").send().status, 200);
    // Who shows no identity uses up nobody's limit.
    for _ in 0..5 {
        assert_eq!(gateway.modern("tools/list", "").by("x").send().status, 401);
    }
    assert_eq!(gateway.modern("tools/list", "").by(&bo).send().status, 200);
}

#[test]
fn bytes_are_counted_when_they_are_known() {
    let setup = with_limits(&json!([{ "for": "git__log", "bytes_per_minute": 10 }]));
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    let refused = execute(&gateway, "git__log", &anna);
    assert!(refused.contains("10 bytes a minute"), "{refused}");
}

#[test]
fn who_has_the_fewest_calls_in_flight_goes_first() {
    let setup = slow(
        300,
        &json!([{ "for": "slow__*", "shared": true, "calls_in_flight": 1 }]),
    );
    let anna = token(&setup, &["anna", "--role", "all"]);
    let bo = token(&setup, &["bo", "--role", "all"]);
    let gateway = setup.serve(&[]);
    for person in [&anna, &bo] {
        assert_eq!(execute(&gateway, "slow__work", person), "200 worked");
    }
    let start = Instant::now();
    let call = |person: &str| {
        let call = gateway.modern_execute("slow__work", "").by(person);
        thread::spawn(move || {
            assert_eq!(said(call), "200 worked");
            start.elapsed()
        })
    };
    let annas: Vec<_> = (0..5).map(|_| call(&anna)).collect();
    thread::sleep(Duration::from_millis(150));
    let bo = call(&bo).join().unwrap();
    let annas = annas.into_iter().map(|one| one.join().unwrap());
    let annas: Vec<Duration> = annas.collect();
    let before = annas.iter().filter(|anna| **anna < bo).count();
    assert!(
        before <= 2,
        "bo waited for {before} of anna's: {annas:?} {bo:?}"
    );
    // One at a time.
    assert!(
        annas.iter().max().unwrap() >= &Duration::from_millis(6 * 300),
        "{annas:?}"
    );
}

#[test]
fn a_call_that_is_given_up_frees_its_place() {
    let setup = slow(60_000, &json!([{ "for": "slow__*", "calls_in_flight": 1 }]));
    let setup = setup.setting("limits", json!([{ "calls_in_flight": 1 }]));
    let anna = token(&setup, &["anna", "--role", "all"]);
    let gateway = setup.serve(&[]);
    let stuck = gateway.modern_execute("slow__work", "").by(&anna).begin();
    setup.home().wait_for("slow", r#""method":"tools/call""#);
    drop(stuck);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
}

#[test]
fn limits_hold_for_a_renamed_tool_by_the_servers_own_name() {
    let renamed = json!({ "tools": { "override": { "work": { "name": "toil" } } } });
    let setup = with_limits(&json!([{ "for": "job__work", "calls_per_minute": 1 }]))
        .server_with(
            "job",
            Server::new().tool("work", [answer("worked")]),
            renamed,
        )
        .setting("roles", json!({ "all": { "profiles": ["*"] } }));
    let anna = token(&setup, &["anna", "--role", "all"]);
    let gateway = setup.serve(&[]);
    assert_eq!(execute(&gateway, "job__toil", &anna), "200 worked");
    let refused = execute(&gateway, "job__toil", &anna);
    assert!(refused.contains("limit of 1 call"), "{refused}");
}

#[test]
fn quotas_outlive_the_process() {
    let limits = json!([
        { "for": "git__*", "calls_per_day": 2 },
        { "for": "@role:lead vault__*", "shared": true, "bytes_per_month": 1 },
    ]);
    let setup = with_limits(&limits);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let bo = token(&setup, &["bo", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    let file = setup.home().path("state/limits/used.json");
    until("the count to be written", || file.exists().then_some(()));
    // Dropped, it is killed.
    drop(gateway);
    let gateway = setup.serve(&[]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    let refused = execute(&gateway, "git__log", &anna);
    assert!(
        refused.contains("2 calls a day is used up. Next: try again in"),
        "{refused}"
    );
    assert_eq!(execute(&gateway, "git__log", &bo), "200 the log");
    drop(gateway);
    std::fs::write(&file, "{}").unwrap();
    let mut gateway = setup.serve(&[]);
    let refused = execute(&gateway, "git__log", &bo);
    assert!(refused.contains("cannot be read"), "{refused}");
    gateway
        .process()
        .wait_for_stderr("what was used of the quotas cannot be read");
    std::fs::remove_file(&file).unwrap();
    until("counting to begin again", || {
        (execute(&gateway, "git__log", &bo) == "200 the log").then_some(())
    });
}

#[test]
fn a_limit_that_cannot_be_read_lets_nothing_through() {
    for limits in [
        json!({}),
        json!([{}]),
        json!([{ "for": "git__*" }]),
        json!([{ "calls": 1 }]),
        json!([{ "calls_per_minute": 0 }]),
        json!([{ "calls_per_minute": -1 }]),
        json!([{ "calls_per_minute": "many" }]),
        json!([{ "for": "@write", "calls_per_minute": 1 }]),
        json!([{ "for": "@role:", "calls_per_minute": 1 }]),
        json!([{ "for": "", "calls_per_minute": 1 }]),
        json!([{ "for": "git__*", "requests_per_minute": 1 }]),
        json!([{ "for": "git__push, git__log", "calls_per_minute": 1 }]),
        json!([{ "for": "git__push git__log", "calls_per_minute": 1 }]),
        json!([{ "for": "*", "calls_per_minute": 1 }, { "calls_per_day": 1 }]),
    ] {
        let setup = with_limits(&limits);
        let anna = token(&setup, &["anna", "--role", "dev"]);
        let gateway = setup.serve(&[]);
        let answer = gateway.modern_execute("git__log", "").by(&anna).send();
        assert_eq!(answer.status, 503, "{limits}: {answer:?}");
        assert!(
            answer.body.contains("cannot be read"),
            "{limits}: {answer:?}"
        );
    }
}

#[test]
fn an_edit_of_the_limits_holds_at_once_and_the_user_of_the_machine_has_none() {
    let setup = with_limits(&json!([{ "calls_per_minute": 1, "requests_per_minute": 1 }]));
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    assert!(execute(&gateway, "git__log", &anna).starts_with("429"));
    for _ in 0..2 {
        let _ = setup.run(&["call", "git__log", "{}"]).code(0);
    }
    setup
        .setting("limits", json!([{ "calls_per_minute": 1000 }]))
        .save();
    until("the new limit to hold", || {
        (execute(&gateway, "git__log", &anna) == "200 the log").then_some(())
    });
}

#[test]
fn without_identities_all_clients_share_the_limits() {
    let git = Server::new()
        .tool("log", [answer("the log")])
        .resource("git:///head", [result(r#"{"contents":[]}"#)]);
    let setup = Setup::new().alone().server("git", git).setting(
        "limits",
        json!([{ "for": "@user:anna git__*", "calls_per_minute": 1 }]),
    );
    let gateway = setup.serve(&[]);
    assert_eq!(said(gateway.modern_execute("git__log", "")), "200 the log");
    // A limit for a person counts for a client that could be that person.
    let refused = said(gateway.modern_execute("git__log", ""));
    assert!(refused.contains("1 call a minute"), "{refused}");
}
