//! Who gets in, and what is refused.

use serde_json::json;

use super::{Window, json_of, link, listens, shared};
use crate::daemon::Shared;
use crate::support::command;
use crate::support::script::echo;
use crate::support::{Server, Setup, until};

#[test]
fn a_link_works_once_and_only_a_cookie_opens_the_doors() {
    let setup = shared();
    let (gateway, link) = link(&setup);
    let wrong = gateway
        .call("GET", "/enter?key=AAAAAAAAAAAAAAAAAAAAAA")
        .send();
    assert_eq!(wrong.status, 403);
    assert_eq!(gateway.call("GET", "/enter").send().status, 403);
    let window = Window::enter(gateway, &link);
    let again = window.gateway.call("GET", &link).send();
    assert_eq!(again.status, 403);
    assert!(
        again.body.contains("<code>mcpzip ui</code>"),
        "{}",
        again.body
    );
    assert_eq!(again.header("set-cookie"), "");
    let policy = again.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'"),
        "{policy}"
    );
    assert_eq!(again.header("x-content-type-options"), "nosniff");
    assert_eq!(again.header("referrer-policy"), "no-referrer");
    // Each door with and without the cookie.
    let list = json!({ "method": "servers.list", "params": {} });
    let status = json!({ "action": "list" });
    let doors = [
        window.get("api/actions"),
        window.get("api/events"),
        window.post("api/control", &list),
        window.post("api/command", &status),
    ];
    for door in doors {
        let kept = door.clone().open();
        assert_eq!(kept.status(), 200);
        for cookie in ["", "mcpzip_ui=AAAAAAAAAAAAAAAAAAAAAA", "mcpzip_ui="] {
            let refused = door.clone().header("Cookie", cookie).send();
            assert_eq!(refused.status, 401, "{}", refused.body);
            assert!(refused.body.contains("mcpzip ui"), "{}", refused.body);
        }
    }
    // Nothing is at a path that another page could guess.
    for path in ["/", "/api/actions", "/index.html", "/assets/x.js"] {
        let call = window.gateway.call("GET", path);
        assert_eq!(
            call.header("Cookie", &window.cookie).send().status,
            404,
            "{path}"
        );
    }
    for path in [
        "../Cargo.toml",
        "%2e%2e/Cargo.toml",
        "assets/../../Cargo.toml",
        "nothing.js",
    ] {
        assert_eq!(window.get(path).send().status, 404, "{path}");
    }
    assert_eq!(window.post("api/actions", &list).send().status, 405);
}

#[test]
fn a_request_that_is_too_large_is_refused_in_words() {
    let setup = shared();
    let window = Window::open(&setup);
    let text = "x".repeat(3 * 1024 * 1024);
    let arguments = json!({ "name": "notes__write", "arguments": { "text": text } });
    for (door, body) in [
        (
            "api/command",
            json!({ "action": "call", "arguments": arguments }),
        ),
        (
            "api/control",
            json!({ "method": "servers.list", "params": arguments }),
        ),
    ] {
        let refused = window.post(door, &body).send();
        assert_eq!(refused.status, 413, "{}", refused.body);
        let told: serde_json::Value = serde_json::from_str(&refused.body).unwrap();
        let told = told["error"].to_string();
        assert!(told.contains("the limit of 2097152"), "{told}");
    }
    // One of almost this size is read.
    let text = "x".repeat(2 * 1024 * 1024 - 1000);
    let body = json!({ "method": "servers.list", "params": { "text": text } });
    assert_ne!(window.post("api/control", &body).send().status, 413);
}

#[test]
fn requests_of_other_pages_are_refused() {
    let setup = shared();
    let window = Window::open(&setup);
    let body = json!({ "method": "servers.list" });
    let own = window.post("api/control", &body);
    assert_eq!(own.send().status, 200);
    let port = window.gateway.address().port();
    for host in [
        format!("localhost:{port}"),
        format!("evil.example:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{}", port ^ 1),
    ] {
        let refused = own.clone().header("Host", &host).send();
        assert_eq!(refused.status, 403, "{host}");
    }
    let twice = own.clone().and_header("Host", "evil.example").send();
    assert!([400, 403].contains(&twice.status), "{}", twice.status);
    for (name, value) in [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1:1"),
        ("Sec-Fetch-Site", "cross-site"),
        // A page of another port of this machine.
        ("Sec-Fetch-Site", "same-site"),
        ("Content-Type", "text/plain"),
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("X-Mcpzip", "0"),
    ] {
        let refused = own.clone().header(name, value).send();
        assert_eq!(refused.status, 403, "{name}: {value}");
    }
    for name in ["Content-Type", "X-Mcpzip"] {
        assert_eq!(own.clone().without(name).send().status, 403, "{name}");
    }
    // Events hold nothing back, so another page may not read them either.
    let events = window
        .get("api/events")
        .header("Origin", "http://evil.example");
    assert_eq!(events.send().status, 403);
    // A link that another page opens still needs its key, and gives that page nothing.
    let foreign = window.gateway.call("GET", "/enter?key=x");
    assert_eq!(foreign.header("Host", "evil.example").send().status, 403);
}

#[test]
fn what_the_window_does_not_do_is_refused() {
    let setup = shared();
    let window = Window::open(&setup);
    for method in ["ui.open", "events.subscribe", "nothing"] {
        assert_eq!(
            window.control(method, json!({}))["error"]["code"],
            -32601,
            "{method}"
        );
    }
    let wrong = window.control("servers.stop", json!({ "server": 1 }));
    assert_eq!(wrong["error"]["code"], -32602);
    for body in [
        json!({ "action": "serve" }),
        json!({ "action": "list", "arguments": { "config": "/etc/passwd" } }),
        json!({ "action": "call", "arguments": { "name": "--config=/etc/passwd" } }),
        json!({ "action": "search", "arguments": { "query": 1 } }),
        json!({ "action": "list", "more": 1 }),
        json!([]),
    ] {
        let refused = window.post("api/command", &body).send();
        assert_eq!(refused.status, 400, "{body}: {}", refused.body);
    }
    let large = window.post("api/command", &json!({ "action": "x".repeat(3_000_000) }));
    assert_eq!(large.send().status, 413);
}

#[test]
fn two_windows_work_at_once_and_are_closed_together() {
    let setup = shared();
    let (one, two) = (Window::open(&setup), Window::open(&setup));
    assert_ne!(one.cookie, two.cookie);
    let servers = |window: &Window| window.control("servers.list", json!({}));
    assert_eq!(servers(&one), servers(&two));
    let mut stream = one.listen("");
    let (_, link) = link(&setup);
    let closed = setup.run(&["ui", "--close", "--json"]).code(0).json();
    assert_eq!(closed, json!({ "closed": 2 }));
    while stream.event().is_some() {}
    for window in [&one, &two] {
        assert_eq!(window.get("api/actions").send().status, 401);
    }
    assert_eq!(one.gateway.call("GET", &link).send().status, 403);
    // The page can close it, too.
    let three = Window::open(&setup);
    assert_eq!(three.control("ui.close", json!({}))["result"]["count"], 1);
    assert_eq!(three.get("api/actions").send().status, 401);
}

#[test]
fn a_window_ends_with_its_daemon_and_is_opened_anew() {
    let setup = shared();
    let window = Window::open(&setup);
    let mut stream = window.listen("");
    setup.kill_daemon();
    while stream.event().is_some() {}
    assert!(!listens(&window.gateway));
    let next = Window::open(&setup);
    assert_ne!(next.path, window.path);
    let old = next.get("api/actions").header("Cookie", &window.cookie);
    assert_eq!(old.send().status, 401);
    assert_eq!(
        next.output("list", json!({}))["servers"][0]["name"],
        "notes"
    );
    // An order of the page is answered before it is followed.
    assert_eq!(next.control("daemon.stop", json!({}))["result"], json!({}));
    until("the end of the daemon", || {
        (!listens(&next.gateway)).then_some(())
    });
}

#[test]
fn the_window_starts_a_daemon_and_keeps_it_while_a_page_is_open() {
    let setup = Setup::new().server("notes", Server::new().tool("write", [echo()]));
    let setup = setup
        .setting("daemon", json!({ "mode": "auto", "idle": "1s" }))
        .daemon_as_configured();
    setup.save();
    let setup = Shared::over(setup);
    let window = Window::open(&setup);
    let stream = window.listen("");
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert!(listens(&window.gateway), "a page is open");
    assert_eq!(
        json_of(&window.get("api/actions").send())[0]["action"],
        "status"
    );
    drop(stream);
    until("the end of the unused daemon", || {
        (!listens(&window.gateway)).then_some(())
    });
}

#[test]
fn without_a_daemon_or_a_file_the_window_says_why_it_does_not_open() {
    let setup = Setup::new().alone();
    setup.save();
    let off = setup.run(&["ui"]).code(1).stderr;
    assert!(off.contains("mcpzip daemon run"), "{off}");
    std::fs::remove_file(setup.config_path()).unwrap();
    let missing = command::run(setup.command(&["ui"]), "").stderr;
    assert!(
        missing.contains("there is no configuration at"),
        "{missing}"
    );
    let mut command = setup.command(&["ui"]);
    command
        .env_remove("MCPZIP_CONFIG")
        .env("MCPZIP_CONFIG_JSON", "{}");
    let inline = command::run(command, "").code(1).stderr;
    assert!(inline.contains("MCPZIP_CONFIG_JSON"), "{inline}");
    let closed = setup.run(&["ui", "--close", "--json"]).code(0).json();
    assert_eq!(closed, json!({ "closed": 0 }));
}
