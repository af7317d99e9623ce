//! Logins that survive: clocks that are wrong, processes that are killed at any step, and logins of another program.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::authority::{Authority, Login, Manner, log_in};
use crate::support::{Setup, command, until};

/// The file of the only login, plain.
fn path(setup: &Setup) -> PathBuf {
    let files = std::fs::read_dir(setup.home().path("state/logins"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    files
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "json"))
        .expect("a login is kept")
}

/// Edits the kept token, as a clock that was wrong when it was written would have.
fn edit(setup: &Setup, change: impl FnOnce(&mut Value)) {
    let path = path(setup);
    let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let login = record["logins"]
        .as_object_mut()
        .unwrap()
        .values_mut()
        .next()
        .unwrap();
    change(&mut login["token"]);
    std::fs::write(path, record.to_string()).unwrap();
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

#[test]
fn a_clock_that_is_wrong_costs_a_renewal_and_never_a_login() {
    const DAY: u64 = 24 * 3600;
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({})).alone();
    log_in(&setup);
    // It was a day ahead when the token came: the token looks good, and the server says that it is not.
    edit(&setup, |token| {
        (token["given"], token["ends"]) = ((now() + DAY).into(), (now() + DAY + 60).into());
    });
    authority.revoke(false);
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
    assert_eq!(
        authority.read(|state| (state.refreshes, state.reuses)),
        (1, 0)
    );
    // It was a day behind: the token looks old, and is renewed ahead of its time.
    edit(&setup, |token| {
        (token["given"], token["ends"]) = ((now() - DAY).into(), (now() - DAY + 60).into());
    });
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
    assert_eq!(
        authority.read(|state| (state.refreshes, state.reuses)),
        (2, 0)
    );
    // The same without anything to renew it with: the server's clock is what counts.
    edit(&setup, |token| {
        (token["given"], token["ends"]) = ((now() - DAY).into(), (now() - DAY + 60).into());
        token["refresh"] = Value::Null;
    });
    let mut client = setup.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    assert_eq!(client.execute("web__t").text(), "fine");
    authority.revoke(false);
    let said = client.execute("web__t").tool_error();
    assert!(
        said.contains("login needed: run `mcpzip login web`, because the previous login has ended"),
        "{said}"
    );
    assert_eq!(
        authority.read(|state| (state.refreshes, state.reuses)),
        (2, 0)
    );
}

#[test]
fn a_login_that_is_killed_at_any_step_can_be_made_again() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    for step in [
        "/mcp",
        "oauth-protected-resource",
        "oauth-authorization-server",
        "/register",
    ] {
        let before = authority.web.requests().len();
        authority.state().manner.stall = Some(step);
        let mut login = Login::spawn(&setup);
        until("the step to be reached", || {
            authority.web.requests()[before..]
                .iter()
                .any(|request| request.path.contains(step))
                .then_some(())
        });
        login.kill().unwrap();
        login.wait().unwrap();
        authority.state().manner.stall = None;
        let status = setup.run(&["auth", "status"]).code(0).json();
        assert_eq!(status, json!([]), "after {step}");
        // A server that runs says what is needed, at each step.
        let said = setup.connect().execute("web__t").tool_error();
        assert!(
            said.contains("login needed: run `mcpzip login web`"),
            "after {step}: {said}"
        );
    }
    // While it waits for its browser, and when the token is on its way.
    Login::start(&setup, &[]).kill();
    authority.state().manner.late = Duration::from_millis(700);
    let login = Login::start(&setup, &[]);
    let (url, asked) = (login.url.clone(), authority.state().token_requests);
    let browser = std::thread::spawn(move || {
        drop(std::panic::catch_unwind(|| {
            crate::support::authority::browse(&url)
        }));
    });
    until("the token to be given", || {
        (authority.state().token_requests > asked).then_some(())
    });
    login.kill();
    browser.join().unwrap();
    authority.state().manner.late = Duration::ZERO;
    log_in(&setup);
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
    // One was registered and killed before it knew.
    assert_eq!(authority.state().registrations, 2);
}

#[test]
fn a_kill_while_a_token_is_renewed_is_survived_where_the_server_lets_it() {
    for is_strict in [false, true] {
        let authority = Authority::start(Manner {
            is_strict,
            ..Manner::default()
        });
        let setup = authority.setup(json!({})).alone();
        log_in(&setup);
        authority.state().manner.stall = Some("/token");
        authority.revoke(false);
        let mut client = setup.connect();
        client.begin_execute("web__t");
        let renewing = || {
            authority
                .web
                .requests()
                .iter()
                .filter(|request| request.text.contains("refresh_token="))
                .count()
        };
        until("the renewal to begin", || (renewing() > 0).then_some(()));
        drop(client);
        // The server goes on with what it was asked, and nobody hears of the new token.
        authority.state().manner.stall = None;
        until("the first renewal", || {
            (authority.state().refreshes > 0).then_some(())
        });

        let mut client = setup.connect();
        let answer = client.execute("web__t");
        if is_strict {
            // No client can know the new one. It is told, and the old one is tried once.
            let said = answer.tool_error();
            assert!(
                said.contains("login needed: run `mcpzip login web`"),
                "{said}"
            );
            client.execute("web__t").tool_error();
            assert_eq!(authority.state().reuses, 1);
            log_in(&setup);
            until("the login to be noticed", || {
                (client.execute("web__t").text() == "fine").then_some(())
            });
        } else {
            assert_eq!(answer.text(), "fine");
        }
    }
}

#[cfg(unix)]
#[test]
fn the_end_of_a_run_waits_for_the_token_that_is_on_its_way() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    log_in(&setup);
    authority.revoke(false);
    authority.state().manner.late = Duration::from_millis(250);
    let mut client = setup.connect();
    client.begin_execute("web__t");
    until("the renewal", || {
        (authority.state().refreshes > 0).then_some(())
    });
    client.signal(rustix::process::Signal::TERM);
    client.wait();
    authority.state().manner.late = Duration::ZERO;
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
    assert_eq!(
        authority.read(|state| (state.refreshes, state.reuses)),
        (1, 0)
    );
}

/// A home of mcp-remote with a login at `url`.
fn of_mcp_remote(setup: &Setup, url: &str, tokens: &Value, client: Option<&Value>) {
    use md5::Digest as _;
    let hash: String = md5::Md5::digest(url)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let directory = setup.home().path("home/.mcp-auth/mcp-remote-v1");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(
        directory.join(format!("{hash}_tokens.json")),
        tokens.to_string(),
    )
    .unwrap();
    if let Some(client) = client {
        std::fs::write(
            directory.join(format!("{hash}_client_info.json")),
            client.to_string(),
        )
        .unwrap();
    }
}

#[test]
fn a_login_of_mcp_remote_is_taken_over_on_request_only() {
    let authority = Authority::start(Manner::default());
    // It is made by one home, and found in another.
    let donor = authority.setup(json!({}));
    log_in(&donor);
    let record: Value = serde_json::from_slice(&std::fs::read(path(&donor)).unwrap()).unwrap();
    let login = record["logins"]
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap();
    let (token, client) = (&login["token"], &login["client"]);
    let ends = token["ends"].as_u64().unwrap() * 1000;
    let tokens = json!({
        "access_token": token["access"], "refresh_token": token["refresh"], "token_type": "bearer",
        "expires_in": 3600, "expires_at": ends, "scope": "basic",
    });
    let info = json!({ "client_id": client["id"], "redirect_uris": ["http://localhost:3334/oauth/callback"] });

    let setup = authority.setup(json!({}));
    let none = setup.run(&["login", "web", "--from", "mcp-remote"]).code(1);
    assert!(
        none.stderr
            .contains("no login of mcp-remote was found for the URL of `web`"),
        "{none}"
    );
    // One for another URL is none for this.
    of_mcp_remote(
        &setup,
        &format!("{}/", authority.web.url("/mcp")),
        &tokens,
        Some(&info),
    );
    let none = setup.run(&["login", "web", "--from", "mcp-remote"]).code(1);
    assert!(none.stderr.contains("no login of mcp-remote"), "{none}");
    of_mcp_remote(&setup, &authority.web.url("/mcp"), &tokens, Some(&info));
    let said = setup.connect().execute("web__t").tool_error();
    assert!(
        said.contains("login needed"),
        "it was taken over silently: {said}"
    );
    let setup = setup.log_level("trace");
    let taken = setup.run(&["login", "web", "--from", "mcp-remote"]).code(0);
    authority.is_silent("the command", &taken.to_string());
    assert_eq!(
        (&taken.json()["scopes"], &taken.json()["refreshable"]),
        (&json!(["basic"]), &json!(true))
    );
    let mut client = setup.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    authority.revoke(false);
    assert_eq!(client.execute("web__t").text(), "fine");
    assert_eq!(
        authority.read(|state| (state.registrations, state.refreshes, state.reuses)),
        (1, 1, 0)
    );
    // Its redirect is not ours, so that a new login registers anew.
    log_in(&setup);
    assert_eq!(authority.state().registrations, 2);

    // One that is over takes nothing away.
    authority.revoke(false);
    let stale = setup.run(&["login", "web", "--from", "mcp-remote"]).code(1);
    assert!(stale.stderr.contains("invalid_grant"), "{stale}");
    authority.is_silent("the command", &stale.to_string());
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
    // Nor does one of another authorization server.
    let foreign =
        json!({ "access_token": "a", "token_type": "bearer", "issuer": "https://other.example" });
    of_mcp_remote(&setup, &authority.web.url("/mcp"), &foreign, Some(&info));
    let refused = setup.run(&["login", "web", "--from", "mcp-remote"]).code(1);
    assert!(
        refused
            .stderr
            .contains("names another authorization server"),
        "{refused}"
    );
    // Elsewhere, as its own variable says.
    let elsewhere = setup.variable("MCP_REMOTE_CONFIG_DIR", "/nowhere");
    let none = elsewhere
        .run(&["login", "web", "--from", "mcp-remote"])
        .code(1);
    assert!(none.stderr.contains("no login of mcp-remote"), "{none}");
}

#[test]
fn a_login_of_mcpzip_0_1_comes_along_until_it_ends() {
    use sha2::Digest as _;
    let authority = Authority::start(Manner::default());
    let donor = authority.setup(json!({}));
    log_in(&donor);
    let record: Value = serde_json::from_slice(&std::fs::read(path(&donor)).unwrap()).unwrap();
    let token = &record["logins"]
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap()["token"];
    let url = authority.web.url("/mcp");
    let hash: String = sha2::Sha256::digest(&url)[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let import = |expiry: &str| {
        let setup = Setup::new();
        let older = setup.home().path("home/.config/compressed-mcp-proxy");
        std::fs::create_dir_all(older.join("auth")).unwrap();
        let config = json!({ "mcpServers": { "todo": { "type": "http", "url": url } } });
        std::fs::write(older.join("config.json"), config.to_string()).unwrap();
        let kept = json!({ "access_token": token["access"], "token_type": "Bearer", "refresh_token": "r", "expiry": expiry });
        std::fs::write(older.join(format!("auth/{hash}.json")), kept.to_string()).unwrap();
        let taken = setup
            .run(&["migrate", "--from", "mcpzip-0.1", "--yes", "--json"])
            .code(0);
        authority.is_silent("the command", &taken.to_string());
        (setup, taken.json()["logins"].clone())
    };

    let (_over, logins) = import("2025-01-01T00:00:00Z");
    assert!(
        logins[0]["outcome"]
            .as_str()
            .unwrap()
            .contains("which has ended"),
        "{logins}"
    );
    let (setup, logins) = import("2999-01-01T00:00:00.5+02:00");
    assert_eq!(
        logins,
        json!([{ "server": "todo", "outcome": "taken over" }])
    );
    // As it was imported, and not as the test would write it.
    let call = || command::run(setup.command(&["call", "todo__t"]), "");
    let called = call().code(0);
    assert!(called.stdout.contains("fine"), "{called}");
    // Nobody can renew it.
    authority.revoke(false);
    let said = call();
    assert!(said.to_string().contains("login needed"), "{said}");
    assert_eq!(
        authority.read(|state| (state.registrations, state.refreshes)),
        (1, 0)
    );
}
