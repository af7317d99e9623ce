//! Tokens: how they are made, kept, shown and revoked, and what a request without a valid one gets.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{As as _, Session, execute, roles, setup, token};
use crate::support::gateway::Incoming;
use crate::support::script::{answer, hang};
use crate::support::{Server, Setup, until};

/// The time within which a change must hold.
const LIMIT: Duration = Duration::from_secs(10);

/// Reads a stream until the server ends it.
fn read_to_end(stream: &mut Incoming) {
    while stream.event().is_some() {}
}

fn file(setup: &Setup) -> std::path::PathBuf {
    setup.home().path("state/identity/tokens.json")
}

#[test]
fn nothing_answers_without_an_identity() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let wrong = format!("{}x", &anna[..anna.len() - 1]);
    for (method, path) in [
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("POST", "/mcp"),
        ("POST", "/mcp/p/code"),
        ("GET", "/mcp/p/code"),
        ("POST", "/mcp/p/nothing"),
        ("GET", "/sse"),
        ("GET", "/mcp/sse"),
        ("POST", "/message?sessionId=1"),
        ("GET", "/metrics"),
        ("GET", "/health"),
    ] {
        let answer = gateway.call(method, path).send();
        assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        for credential in [
            format!("Bearer {wrong}"),
            "Bearer x".to_owned(),
            "Bearer mcpzip_".to_owned(),
            format!("Bearer {anna}{anna}"),
        ] {
            let call = gateway.call(method, path);
            let answer = call.and_header("Authorization", &credential).send();
            assert_eq!(answer.status, 401, "{method} {path}");
            let challenge = answer.header("www-authenticate");
            assert_eq!(challenge, r#"Bearer error="invalid_token""#);
        }
        for credential in [format!("Basic {anna}"), anna.clone(), "Bearer ".to_owned()] {
            let call = gateway.call(method, path);
            let answer = call.and_header("Authorization", &credential).send();
            assert_eq!(answer.status, 401, "{method} {path} {credential}");
        }
    }
    assert_eq!(gateway.call("GET", "/healthz").send().status, 200);
    assert_eq!(gateway.call("GET", "/readyz").send().status, 200);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    assert_eq!(execute(&gateway, "git__log", &wrong).get(..3), Some("401"));
}

#[test]
fn a_token_is_shown_once_and_kept_as_a_hash() {
    let setup = setup();
    let made = setup.run(&[
        "token",
        "create",
        "anna",
        "--role",
        "dev",
        "--expires",
        "30d",
    ]);
    let made = made.code(0);
    let text = made.stdout.trim();
    assert!(text.starts_with("mcpzip_") && text.len() == 50, "{text}");
    assert!(!made.stderr.contains(text), "{}", made.stderr);
    let kept = fs::read_to_string(file(&setup)).unwrap();
    assert!(!kept.contains(text) && !kept.contains(&text[7..]), "{kept}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(file(&setup)), 0o600);
        assert_eq!(mode(file(&setup).parent().unwrap().to_owned()), 0o700);
    }
    let listed = setup.run(&["token", "list", "--json"]).code(0).json();
    assert_eq!(listed[0]["name"], "anna");
    assert_eq!(listed[0]["roles"], json!(["dev"]));
    assert_eq!(listed[0]["valid"], true);
    assert!(listed[0]["expires"].is_string(), "{listed}");
    assert!(!listed.to_string().contains("sha256"), "{listed}");
    let json = setup.run(&["token", "create", "bob", "--role", "ops", "--json"]);
    let json = json.code(0).json();
    assert!(
        json["token"].as_str().unwrap().starts_with("mcpzip_"),
        "{json}"
    );
    let audit = setup.run(&["audit", "--json"]).code(0).stdout;
    assert!(
        audit.contains("a token for anna was made: role dev"),
        "{audit}"
    );
    assert!(!audit.contains(text), "{audit}");
}

#[test]
fn a_token_that_would_give_nothing_or_has_no_usable_name_is_not_made() {
    let setup = setup();
    for (arguments, code, reason) in [
        (vec!["anna"], 1, "no role of the configuration is for it"),
        (vec!["anna", "--role", "nobody"], 2, "no role `nobody`"),
        (
            vec!["anna", "--profile", "nothing"],
            1,
            "no profile `nothing`",
        ),
        (
            vec!["anna", "--role", "dev", "--profile", "secrets"],
            1,
            "no server is left",
        ),
        (vec!["an na", "--role", "dev"], 2, "no spaces"),
        (vec!["", "--role", "dev"], 2, "no spaces"),
        (vec!["anna\u{200b}", "--role", "dev"], 2, "hidden"),
        (
            vec!["anna", "--role", "dev", "--expires", "never"],
            2,
            "number of minutes",
        ),
        (
            vec!["anna", "--role", "dev", "--expires", "0d"],
            2,
            "number of minutes",
        ),
    ] {
        let refused = setup.run(&[vec!["token", "create"], arguments.clone()].concat());
        let refused = refused.code(code);
        assert!(
            refused.stderr.contains(reason),
            "{arguments:?}: {}",
            refused.stderr
        );
        assert_eq!(refused.stdout, "", "{arguments:?}");
    }
    assert!(!file(&setup).exists());
    let refused = setup.run(&["token", "revoke", "nobody"]).code(1);
    assert!(
        refused.stderr.contains("no valid token"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_revoked_token_ends_sessions_streams_and_running_calls() {
    let slow = Server::new()
        .tool("wait", [hang()])
        .tool("log", [answer("the log")]);
    let setup = setup().server("git", slow);
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let other = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let session = Session::open(&gateway, &anna);
    let mut stream = session.listen(&gateway);
    stream.priming_event();
    let call = gateway.modern_execute("git__wait", "").by(&anna);
    let running = std::thread::spawn(move || call.send());
    setup.home().wait_for("git", "wait");
    let ids = setup.run(&["token", "list", "--json"]).code(0).json();
    let id = ids[0]["id"].as_str().unwrap();
    let start = Instant::now();
    let revoked = setup.run(&["token", "revoke", id, "--json"]).code(0).json();
    assert_eq!(revoked.as_array().unwrap().len(), 1, "{revoked}");
    read_to_end(&mut stream);
    let answer = running.join().unwrap();
    assert!(
        answer.status == 401 || !answer.body.contains("result"),
        "{answer:?}"
    );
    until("the token to be refused", || {
        (execute(&gateway, "git__log", &anna).get(..3) == Some("401")).then_some(())
    });
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    let answer = session.execute(&gateway, "git__log", &anna).send();
    assert_eq!(answer.status, 401);
    // Another token of the same person does not continue the ended session, but counts.
    let answer = session.execute(&gateway, "git__log", &other).send();
    assert_eq!(answer.status, 404, "{answer:?}");
    assert_eq!(execute(&gateway, "git__log", &other), "200 the log");
    let _ = setup.run(&["token", "revoke", "anna"]).code(0);
    until("the other token to be refused", || {
        (execute(&gateway, "git__log", &other).get(..3) == Some("401")).then_some(())
    });
}

#[test]
fn a_changed_role_takes_effect_within_seconds() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let session = Session::open(&gateway, &anna);
    let mut stream = session.listen(&gateway);
    stream.priming_event();
    assert!(execute(&gateway, "git__push", &anna).contains("no tool"));
    let mut changed = roles();
    changed["dev"]["profiles"] = json!(["release"]);
    let setup = setup.setting("roles", changed.clone());
    let start = Instant::now();
    setup.save();
    read_to_end(&mut stream);
    until("the new profile", || {
        (execute(&gateway, "git__push", &anna) == "200 pushed").then_some(())
    });
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    assert_eq!(
        session.execute(&gateway, "git__push", &anna).send().status,
        404
    );
    // A role that is gone gives nothing.
    changed.as_object_mut().unwrap().remove("dev");
    let setup = setup.setting("roles", changed);
    setup.save();
    until("the role to be gone", || {
        (execute(&gateway, "git__log", &anna).get(..3) == Some("403")).then_some(())
    });
    // A `roles` that cannot be read refuses everyone.
    setup.setting("roles", json!([])).save();
    let zoe = execute(&gateway, "git__log", &anna);
    assert_eq!(zoe.get(..3), Some("403"), "{zoe}");
    assert!(!zoe.contains("roles"), "{zoe}");
}

#[test]
fn an_expired_token_is_refused_and_its_session_ends() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev", "--expires", "1m"]);
    // The command has no shorter time.
    let text = fs::read_to_string(file(&setup)).unwrap();
    let mut kept: Value = serde_json::from_str(&text).unwrap();
    let created = kept["tokens"][0]["created"].as_u64().unwrap();
    kept["tokens"][0]["expires"] = json!(created + 6);
    fs::write(file(&setup), kept.to_string()).unwrap();
    let gateway = setup.serve(&[]);
    let session = Session::open(&gateway, &anna);
    let mut stream = session.listen(&gateway);
    stream.priming_event();
    read_to_end(&mut stream);
    assert_eq!(execute(&gateway, "git__log", &anna).get(..3), Some("401"));
    let listed = setup.run(&["token", "list", "--json"]).code(0).json();
    assert_eq!(listed[0]["valid"], false);
}

#[test]
fn a_file_of_tokens_that_cannot_be_trusted_refuses_everyone() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let mut gateway = setup.serve(&[]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    let good = fs::read_to_string(file(&setup)).unwrap();
    let newer = good.replace(r#""version": 1"#, r#""version": 99"#);
    let unknown = good.replace(r#""roles""#, r#""rules""#);
    let twice: Value = serde_json::from_str(&good).unwrap();
    let one = &twice["tokens"][0];
    let twice = json!({ "version": 1, "tokens": [one, one] }).to_string();
    for (damage, reason) in [
        ("", "is damaged"),
        ("{}", "is damaged"),
        (&good[..good.len() / 2], "is damaged"),
        (&*newer, "newer version"),
        (&*unknown, "is damaged"),
        (&*twice, "is there twice"),
    ] {
        fs::write(file(&setup), damage).unwrap();
        let said = until("the damage to be noticed", || {
            let said = execute(&gateway, "git__log", &anna);
            said.starts_with("503").then_some(said)
        });
        assert!(
            said.starts_with("503 identities cannot be checked now"),
            "{said}"
        );
        assert!(!said.contains("tokens.json"), "{said}");
        gateway.process().wait_for_stderr(reason);
        let refused = setup
            .run(&["token", "create", "bob", "--role", "dev"])
            .code(1);
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
        fs::write(file(&setup), &good).unwrap();
        until("the file to be good again", || {
            (execute(&gateway, "git__log", &anna) == "200 the log").then_some(())
        });
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(file(&setup), fs::Permissions::from_mode(0o622)).unwrap();
        until("the mode to be noticed", || {
            execute(&gateway, "git__log", &anna)
                .starts_with("503")
                .then_some(())
        });
        gateway.process().wait_for_stderr("other users can change");
        fs::set_permissions(file(&setup), fs::Permissions::from_mode(0o600)).unwrap();
    }
    until("the token to count again", || {
        (execute(&gateway, "git__log", &anna) == "200 the log").then_some(())
    });
    // Without a file there are no tokens.
    fs::remove_file(file(&setup)).unwrap();
    until("the token to be gone", || {
        execute(&gateway, "git__log", &anna)
            .starts_with("401")
            .then_some(())
    });
}
