//! Logins at remote servers: the flow, what is kept of it, and what happens when it ends.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqwest::Url;
use serde_json::json;

use crate::faults::Outcome;
use crate::support::authority::{
    Authority, ClientIdInForm, Login, Manner, browse, get, location, log_in, status_after_kill,
};
use crate::support::http::HttpServer;
use crate::support::proxy::Proxy;
use crate::support::script::answer;
use crate::support::{SOON, Server, Setup, until};

const RENEWED: Outcome = Outcome {
    fault: "401, and the stored login can be renewed",
    gets: "the answer",
    after: "at once",
    then: "the token was renewed once",
};
const OVER: Outcome = Outcome {
    fault: "401, and the stored login is no longer valid",
    gets: "login needed: run `mcpzip login web`",
    after: "at once",
    then: "it is tried once, not with each call; after the login, the next call works",
};
const STALLING: Outcome = Outcome {
    fault: "401, and the renewal of the login takes three seconds",
    gets: "the answer",
    after: "three seconds",
    then: "other servers answer meanwhile",
};

/// What becomes of a login that is refused.
pub(crate) const OUTCOMES: &[Outcome] = &[RENEWED, OVER, STALLING];

#[test]
fn a_login_is_made_once_and_serves_every_process_after() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    let mut client = setup
        .clone()
        .server("b", Server::new().tool("v", [answer("too")]))
        .connect();
    let text = client.execute("web__t").tool_error();
    assert!(
        text.contains("login needed: run `mcpzip login web`"),
        "{text}"
    );
    assert_eq!(client.execute("b__v").text(), "too");
    // Nothing is asked of the authorization server before a person wants it.
    assert_eq!(
        authority.read(|state| (state.registrations, state.token_requests)),
        (0, 0)
    );
    let status = log_in(&setup);
    assert_eq!(status["issuer"], authority.issuer("/one"));
    assert_eq!(
        (&status["scopes"], &status["refreshable"]),
        (&json!(["basic"]), &json!(true))
    );
    // The process that runs notices it, and so does a new one.
    until("the login to be noticed", || {
        (client.execute("web__t").text() == "fine").then_some(())
    });
    client.finish();
    setup.connect().execute("web__t").text();
    assert_eq!(
        authority.read(|state| (state.registrations, state.token_requests)),
        (1, 1)
    );
}

#[test]
fn a_login_is_tried_once_and_one_that_the_server_refuses_is_told_and_kept() {
    let authority = Authority::start(Manner {
        has_no_access: true,
        ..Manner::default()
    });
    let setup = authority.setup(json!({}));
    let login = Login::start(&setup, &[]);
    login.browse();
    let refused = login.end().code(1);
    for said in [
        "server `web` refuses the token of this login",
        "the account has no access",
        "the login is kept",
        "`mcpzip logout web`",
    ] {
        assert!(refused.stderr.contains(said), "{refused}");
    }
    let kept = setup.run(&["--json", "auth", "status"]).code(0);
    assert!(kept.stdout.contains(&authority.issuer("/one")), "{kept}");
    authority.state().manner.has_no_access = false;
    let before = authority.web.requests().len();
    log_in(&setup);
    let requests = authority.web.requests();
    let tried = requests[before..]
        .iter()
        .filter(|request| request.path == "/mcp" && !request.header("authorization").is_empty());
    let tried: Vec<&str> = tried.map(|request| request.rpc()).collect();
    assert_eq!(tried, ["initialize", "DELETE"]);
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
}

#[test]
fn what_is_kept_is_for_its_user_alone() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    log_in(&setup);
    let logins = setup.home().path("state/logins");
    let files: Vec<_> = std::fs::read_dir(&logins)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(
        files
            .iter()
            .any(|path| path.extension().is_some_and(|end| end == "json")),
        "{files:?}"
    );
    #[cfg(unix)]
    for path in files.iter().chain([&logins]) {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            path.metadata().unwrap().permissions().mode() & 0o077,
            0,
            "{}",
            path.display()
        );
    }
}

#[test]
fn configured_headers_go_before_every_login() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    log_in(&setup);
    let setup = authority.setup(json!({ "headers": { "authorization": "Bearer of-my-own" } }));
    let mut client = setup.connect();
    let text = client.execute("web__t").tool_error();
    assert!(
        text.contains("refused the `Authorization` of its `headers` (HTTP 401)")
            && text.contains("renew the token there, or remove it and run `mcpzip login web`"),
        "{text}"
    );
    client.finish();
    assert_eq!(
        authority
            .web
            .requests()
            .last()
            .unwrap()
            .header("authorization"),
        "Bearer of-my-own"
    );
    let refused = setup.run(&["login", "web"]).code(1);
    assert!(refused.stderr.contains("needs no login"), "{refused}");
}

#[test]
fn a_token_is_renewed_before_it_ends_and_when_it_is_refused() {
    // It lives for longer than it says, so whoever renews it did so ahead of its end.
    let authority = Authority::start(Manner {
        expires_in: Some(1),
        ..Manner::default()
    });
    let setup = authority.setup(json!({}));
    log_in(&setup);
    authority.state().manner.expires_in = None;
    std::thread::sleep(Duration::from_millis(1100));
    let mut client = setup.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    assert_eq!(
        authority.read(|state| (state.refreshes, state.reuses)),
        (1, 0)
    );
    authority.revoke(false);
    assert_eq!(client.execute("web__t").text(), "fine");
    assert_eq!(client.execute("web__u").text(), "fine");
    assert_eq!(
        authority.read(|state| (state.refreshes, state.reuses)),
        (2, 0)
    );
}

#[test]
fn ten_processes_renew_a_token_once() {
    let authority = Authority::start(Manner {
        pause: Duration::from_millis(200),
        ..Manner::default()
    });
    let setup = authority.setup(json!({}));
    log_in(&setup);
    authority.renews_once(&setup, 10);
}

#[test]
fn a_login_that_is_over_is_told_and_tried_once() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    log_in(&setup);
    let mut client = setup.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    authority.revoke(true);
    for _ in 0..3 {
        let text = client.execute("web__t").tool_error();
        assert!(text.contains(OVER.gets), "{text}");
    }
    assert_eq!(authority.state().reuses, 1);
    // The client is known yet, so that the way back is short.
    log_in(&setup);
    assert_eq!(client.execute("web__t").text(), "fine");
    assert_eq!(authority.state().registrations, 1);
}

#[test]
fn a_confidential_client_renews_after_a_restart() {
    for method in ["client_secret_basic", "client_secret_post"] {
        let authority = Authority::start(Manner {
            method,
            ..Manner::default()
        });
        let setup = authority.setup(json!({}));
        log_in(&setup);
        authority.revoke(false);
        assert_eq!(setup.connect().execute("web__t").text(), "fine", "{method}");
        assert_eq!(
            authority.read(|state| (state.refreshes, state.registrations)),
            (1, 1),
            "{method}"
        );
    }
}

#[test]
fn a_client_id_is_in_the_form_next_to_the_header_only_where_the_server_wants_it() {
    for (form, requests) in [
        (ClientIdInForm::MayBe, 1),
        (ClientIdInForm::MustNot, 1),
        (ClientIdInForm::Must, 2),
    ] {
        let authority = Authority::start(Manner {
            method: "client_secret_basic",
            form,
            ..Manner::default()
        });
        let setup = authority.setup(json!({}));
        log_in(&setup);
        assert_eq!(authority.state().token_requests, requests, "{form:?}");
        authority.revoke(false);
        assert_eq!(setup.connect().execute("web__t").text(), "fine", "{form:?}");
        assert_eq!(
            authority.read(|state| (state.token_requests, state.refreshes, state.reuses)),
            (2 * requests, 1, 0),
            "{form:?}"
        );
    }
    // A wrong secret is named as the reason, also where the server first missed the id.
    let authority = Authority::start(Manner {
        method: "client_secret_basic",
        form: ClientIdInForm::Must,
        known: Some(("me", "hand-made-secret")),
        ..Manner::default()
    });
    let oauth = json!({ "grant": "client_credentials", "client_id": "me", "client_secret": "not-this-secret" });
    let mut client = authority.setup(json!({ "oauth": oauth })).connect();
    let text = client.execute("web__t").tool_error();
    assert!(text.contains("who are you"), "{text}");
}

#[test]
fn a_client_registered_by_hand_is_used_and_one_that_is_missing_is_explained() {
    let manner = || Manner {
        method: "client_secret_post",
        registers: false,
        ..Manner::default()
    };
    let authority = Authority::start(Manner {
        known: Some(("me", "hand-made-secret")),
        ..manner()
    });
    let oauth = json!({ "oauth": { "client_id": "me", "client_secret": "${SECRET}", "scopes": ["extra"] } });
    let setup = authority
        .setup(oauth)
        .variable("SECRET", "hand-made-secret");
    let status = log_in(&setup);
    assert_eq!(status["scopes"], json!(["basic", "extra"]));
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
    let authority = Authority::start(manner());
    let refused = authority.setup(json!({})).run(&["login", "web"]).code(1);
    for word in [
        "does not let clients register themselves",
        "http://127.0.0.1:",
        "client_id",
    ] {
        assert!(refused.stderr.contains(word), "{refused}");
    }
}

#[test]
fn a_broken_off_login_costs_nothing_whatever_its_step() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    // It is killed when it waits, and when its code is under way.
    Login::start(&setup, &[]).kill();
    authority.state().manner.pause = Duration::from_millis(500);
    let login = Login::start(&setup, &[]);
    let to = location(&get(&login.url)).unwrap();
    let browser = std::thread::spawn(move || drop(std::panic::catch_unwind(|| get(&to))));
    std::thread::sleep(Duration::from_millis(200));
    login.kill();
    browser.join().unwrap();
    authority.state().manner.pause = Duration::ZERO;
    log_in(&setup);
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
    assert_eq!(
        authority.state().registrations,
        1,
        "each login left a client behind"
    );
}

#[test]
fn a_kill_in_the_middle_of_writing_loses_nothing() {
    // What was given out and never arrived may be asked for again here, so that only the writing is tried.
    let authority = Authority::start(Manner {
        expires_in: Some(0),
        is_strict: false,
        ..Manner::default()
    });
    let setup = authority.setup(json!({}));
    log_in(&setup);
    for delay in [0, 3, 10, 20, 40, 80] {
        // Every request renews the token, so it is written all the time.
        let known = status_after_kill(&setup, delay);
        assert_eq!(known[0]["server"], "web", "after {delay} ms: {known}");
    }
    assert!(
        !setup.home().listing().contains("damaged"),
        "{}",
        setup.home().listing()
    );
}

#[test]
fn a_login_that_lacks_scopes_is_told_so_and_the_next_one_asks_for_them() {
    let authority = Authority::start(Manner {
        has_no_access: true,
        needed: &["write"],
        ..Manner::default()
    });
    let setup = authority.setup(json!({}));
    let login = Login::start(&setup, &[]);
    login.browse();
    let refused = login.end().code(1).stderr;
    assert!(
        refused.contains("because it needs the scopes write")
            && refused.contains("`mcpzip login web` asks for them, too"),
        "{refused}"
    );
    assert_eq!(log_in(&setup)["scopes"], json!(["basic", "write"]));
}

#[test]
fn missing_scopes_are_told_and_asked_for_with_the_earlier_ones() {
    let authority = Authority::start(Manner {
        needed: &["write"],
        ..Manner::default()
    });
    let setup = authority.setup(json!({}));
    log_in(&setup);
    let mut client = setup.connect();
    let text = client.execute("web__t").tool_error();
    assert!(
        text.contains("run `mcpzip login web`") && text.contains("lacks the scopes write"),
        "{text}"
    );
    assert_eq!(client.execute("web__u").text(), "fine");
    let known = setup.run(&["auth", "status"]).code(0).json();
    assert_eq!(known[0]["missing_scopes"], json!(["write"]));
    let status = log_in(&setup);
    assert_eq!(status["scopes"], json!(["basic", "write"]));
    assert_eq!(client.execute("web__t").text(), "fine");
    // A server that wants what there is already is not logged in to for ever.
    authority.state().manner.needed = &["write", "basic", "nobody-has-this"];
    let text = client.execute("web__t").tool_error();
    assert!(text.contains("lacks the scopes nobody-has-this"), "{text}");
}

#[test]
fn a_machine_logs_in_by_itself_and_takes_the_scopes_it_needs() {
    let known = Some(("me", "hand-made-secret"));
    let authority = Authority::start(Manner {
        method: "client_secret_basic",
        known,
        needed: &["write"],
        ..Manner::default()
    });
    let oauth = json!({ "grant": "client_credentials", "client_id": "me", "client_secret": "hand-made-secret" });
    let setup = authority.setup(json!({ "oauth": oauth }));
    let mut client = setup.connect();
    assert_eq!(client.execute("web__u").text(), "fine");
    assert_eq!(client.execute("web__t").text(), "fine");
    authority.revoke(true);
    assert_eq!(client.execute("web__t").text(), "fine");
    let first = authority
        .web
        .requests()
        .into_iter()
        .find(|request| request.path == "/one/token")
        .unwrap();
    assert_eq!(
        first.header("authorization"),
        "Basic bWU6aGFuZC1tYWRlLXNlY3JldA=="
    );
    let scopes = |text: &str| text.contains("scope=basic+write");
    assert!(
        authority
            .web
            .requests()
            .iter()
            .any(|request| scopes(&request.text))
    );
}

#[test]
fn a_machine_signs_with_its_key_in_place_of_a_secret() {
    let key = rcgen::KeyPair::generate().unwrap();
    let (method, known) = ("private_key_jwt", Some(("me", "")));
    let authority = Authority::start(Manner {
        method,
        known,
        key: key.public_key_raw().to_vec(),
        ..Manner::default()
    });
    authority.state().secrets.clear();
    let oauth =
        json!({ "grant": "client_credentials", "client_id": "me", "private_key_file": "key.pem" });
    let setup = authority
        .setup(json!({ "oauth": oauth }))
        .log_level("trace");
    let pem = key.serialize_pem();
    std::fs::write(setup.home().path("key.pem"), &pem).unwrap();
    let mut client = setup.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    authority.revoke(true);
    assert_eq!(client.execute("web__t").text(), "fine");
    client.close_stdin();
    client.wait();
    let said = client.stderr();
    authority.is_silent("stderr", &said);
    assert!(
        !pem.lines()
            .filter(|line| !line.starts_with('-'))
            .any(|line| said.contains(line)),
        "{said}"
    );
    let assertions = authority.web.requests();
    let assertions: Vec<_> = assertions
        .iter()
        .filter(|request| request.text.contains("client_assertion="))
        .collect();
    assert_eq!(assertions.len(), 2);
    assert_ne!(
        assertions[0].text, assertions[1].text,
        "an assertion is good once"
    );
    // Another key is nobody's.
    std::fs::write(
        setup.home().path("key.pem"),
        rcgen::KeyPair::generate().unwrap().serialize_pem(),
    )
    .unwrap();
    authority.revoke(true);
    let refused = setup.run(&["login", "web"]).code(1);
    assert!(refused.stderr.contains("invalid_client"), "{refused}");
}

#[test]
fn all_servers_that_want_a_login_are_logged_in_to_and_no_others() {
    let (one, two) = (
        Authority::start(Manner::default()),
        Authority::start(Manner::default()),
    );
    let open = HttpServer::with_tool(|request, reply| reply.json(&request.result("fine")));
    let setup = one
        .setup(json!({}))
        .entry("done", &two.web.entry(json!({})))
        .entry("open", &open.entry(json!({})))
        .entry(
            "helped",
            &two.web.entry(json!({ "headers_command": "echo '{}'" })),
        )
        .entry("off", &two.web.entry(json!({ "disabled": true })))
        .server("local", Server::new());
    let done = Login::start_with(&setup, &["login", "done"]);
    done.browse();
    assert_eq!(done.end().code, Some(0));
    let all = Login::start_with(&setup, &["login", "--all"]);
    assert!(all.url.starts_with(&one.issuer("/one")), "{}", all.url);
    all.browse();
    let outcome = all.end().code(0);
    assert_eq!(outcome.json()["server"], "web");
    let known = setup.run(&["auth", "status"]).code(0).json();
    let known: Vec<&str> = known
        .as_array()
        .unwrap()
        .iter()
        .map(|login| login["server"].as_str().unwrap())
        .collect();
    assert_eq!(known, ["done", "web"]);
    assert_eq!(two.state().registrations, 1);
    // Once more there is nothing to do.
    let again = setup.run(&["login", "--all"]).code(0);
    assert!(!again.stderr.contains("http"), "{again}");
}

#[test]
fn an_authorization_server_that_never_answers_ends_the_login_in_time() {
    let authority = Authority::start(Manner {
        stall: Some("/register"),
        ..Manner::default()
    });
    let start = Instant::now();
    let refused = authority.setup(json!({})).run(&["login", "web"]).code(4);
    assert!(
        refused.stderr.contains("did not answer within 10s"),
        "{refused}"
    );
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[test]
fn another_issuer_gets_nothing_of_the_first() {
    let authority = Authority::start(Manner {
        method: "client_secret_post",
        ..Manner::default()
    });
    let setup = authority.setup(json!({}));
    log_in(&setup);
    let first = authority.state().secrets.clone();
    authority.state().manner.issuer = "/two";
    authority.revoke(true);
    let seen = authority.web.requests().len();
    let status = log_in(&setup);
    assert_eq!(status["issuer"], authority.issuer("/two"));
    assert_eq!(authority.state().registrations, 2);
    for request in &authority.web.requests()[seen..] {
        let is_two = request.path.starts_with("/two");
        assert!(
            !is_two || !first.iter().any(|secret| request.text.contains(secret)),
            "{request:?}"
        );
    }
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
}

#[test]
fn an_answer_that_is_not_of_this_login_is_not_taken() {
    // From another issuer.
    let authority = Authority::start(Manner {
        iss: Some("https://evil.example"),
        ..Manner::default()
    });
    let login = Login::start(&authority.setup(json!({})), &[]);
    let page = login.browse();
    let refused = login.end().code(1);
    assert!(
        refused
            .stderr
            .contains("comes from another authorization server"),
        "{refused}"
    );
    assert!(page.contains("failed") && !page.contains("evil"), "{page}");
    assert_eq!(authority.state().token_requests, 0);
    // With another state, from a page that wants us to log in as somebody else; nor does it end the login.
    authority.state().manner.iss = None;
    let login = Login::start(&authority.setup(json!({})), &[]);
    let to = location(&get(&login.url)).unwrap();
    let forged = to.replace("state=", "state=x");
    assert!(get(&forged).starts_with("HTTP/1.1 400"));
    assert!(get(&to.replace("/callback", "/other")).starts_with("HTTP/1.1 404"));
    assert_eq!(authority.state().token_requests, 0);
    assert!(browse(&to).contains("logged in"));
    assert_eq!(login.end().code, Some(0));
}

#[test]
fn a_refusal_of_the_user_is_told() {
    let authority = Authority::start(Manner::default());
    let login = Login::start(&authority.setup(json!({})), &[]);
    let to = location(&get(&login.url)).unwrap();
    let code = to.find("code=").unwrap()..to.find("&state").unwrap();
    let denied = to.replace(
        &to[code],
        "error=access_denied&error_description=not%20today",
    );
    assert!(get(&denied).contains("failed"));
    let refused = login.end().code(1);
    assert!(
        refused.stderr.contains("access_denied: not today"),
        "{refused}"
    );
}

#[test]
fn metadata_that_lies_ends_the_login_before_it_begins() {
    #[track_caller]
    fn check(metadata: serde_json::Value, words: &str) {
        let authority = Authority::start(Manner {
            metadata,
            ..Manner::default()
        });
        let refused = authority.setup(json!({})).run(&["login", "web"]);
        assert!(
            refused.code.is_some_and(|code| code != 0) && refused.stderr.contains(words),
            "{words}: {refused}"
        );
        assert_eq!(authority.state().registrations, 0);
    }
    check(
        json!({ "issuer": "https://other.example/one" }),
        "says that it is `https://other.example/one`",
    );
    check(
        json!({ "code_challenge_methods_supported": ["plain"] }),
        "does not support PKCE with S256",
    );
    check(
        json!({ "authorization_endpoint": "http://example.com/authorize" }),
        "only https, or",
    );
    check(
        json!({ "registration_endpoint": "file:///etc/passwd" }),
        "only https, or",
    );
    check(
        json!({ "registration_endpoint": "http://10.0.0.1/register" }),
        "only https, or",
    );
    let endless = json!({ "filler": "x".repeat(300 * 1024) });
    check(endless, "more than 262144 bytes");
}

#[test]
fn a_server_of_the_internet_leads_nobody_into_a_private_network() {
    #[track_caller]
    fn check(issuer: &'static str, words: &str) {
        let web = HttpServer::start(move |request, reply| match request.path.as_str() {
            "/mcp" => reply.whole("401 Unauthorized", "www-authenticate: Bearer\r\n", ""),
            path if path.starts_with("/.well-known/oauth-protected-resource") => {
                let document = json!({ "resource": "http://mcp.example/mcp", "authorization_servers": [issuer] });
                reply.json(&document.to_string());
            }
            _ => reply.whole("404 Not Found", "", ""),
        });
        // Behind the proxy is the internet, as far as anybody here can tell.
        let proxy = Proxy::to(web.address());
        let entry = json!({ "url": "http://mcp.example/mcp", "proxy": proxy.url("socks5h") });
        let refused = Setup::new()
            .entry("web", &entry.to_string())
            .run(&["login", "web"]);
        assert!(
            refused.code != Some(0) && refused.stderr.contains(words),
            "{issuer}: {refused}"
        );
        let asked = proxy.asked();
        assert!(
            !asked.is_empty() && asked.iter().all(|host| host.starts_with("mcp.example")),
            "{issuer}: {asked:?}"
        );
        assert!(
            web.requests()
                .iter()
                .all(|request| request.path.contains("mcp")),
            "{issuer}"
        );
    }
    for issuer in [
        "https://10.0.0.1",
        "https://169.254.169.254/latest",
        "https://[::1]:8443",
        "http://127.0.0.1:1",
    ] {
        check(
            issuer,
            "an internet server must not refer to a private address",
        );
    }
    check("http://login.example", "only https, or");
    check("file:///etc", "only https, or");
}

#[test]
fn silent_visitors_of_a_logins_page_hold_up_nobody() {
    let authority = Authority::start(Manner::default());
    let login = Login::start(&authority.setup(json!({})), &[]);
    let to = location(&get(&login.url)).unwrap();
    let page = Url::parse(&to).unwrap();
    let address = (page.host_str().unwrap(), page.port().unwrap());
    // More than are heard at a time.
    let silent: Vec<_> = (0..80)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    // Of another login, and never reading what it is answered.
    for mut visitor in silent.iter().rev().take(2) {
        visitor
            .write_all(b"GET /callback?state=x HTTP/1.1\r\n\r\n")
            .unwrap();
    }
    let start = Instant::now();
    assert!(browse(&to).contains("logged in"));
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(login.end().code, Some(0));
    drop(silent);
}

#[test]
fn a_pasted_url_is_as_good_as_a_browser_here() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    let mut login = Login::start(&setup, &[]);
    let to = location(&get(&login.url)).unwrap();
    login.paste("");
    login.paste("what now");
    login.paste(&to);
    let outcome = login.end().code(0);
    assert!(outcome.stderr.contains("paste the whole URL"), "{outcome}");
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
}

#[cfg(unix)]
#[test]
fn the_browser_is_a_command() {
    use std::os::unix::fs::PermissionsExt as _;
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    let (script, page) = (setup.home().path("browser"), setup.home().path("opened"));
    std::fs::write(
        &script,
        format!("#!/bin/sh\nprintf '%s' \"$2\" > {}\n", page.display()),
    )
    .unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    let setup = setup.variable("MCPZIP_BROWSER", &format!("{} --new-tab", script.display()));
    let login = Login::start(&setup, &[]);
    let opened = until("the browser", || {
        std::fs::read_to_string(&page)
            .ok()
            .filter(|url| !url.is_empty())
    });
    assert_eq!(opened, login.url);
    browse(&opened);
    assert_eq!(login.end().code, Some(0));
    std::fs::remove_file(&page).unwrap();
    let login = Login::start(&setup, &["--no-browser", "--scopes", "a,b"]);
    assert!(login.url.contains("scope=a+b"), "{}", login.url);
    browse(&login.url);
    assert_eq!(login.end().code, Some(0));
    assert!(!page.exists());
}

/// The stored logins, and the place of the one at a server.
fn records(setup: &Setup) -> Vec<(std::path::PathBuf, String)> {
    let files = std::fs::read_dir(setup.home().path("state/logins")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    paths
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect()
}

#[test]
fn a_configured_secret_is_in_no_record_of_a_login() {
    let authority = Authority::start(Manner {
        method: "client_secret_basic",
        known: Some(("me", "hand-made-secret")),
        ..Manner::default()
    });
    for grant in ["authorization_code", "client_credentials"] {
        let oauth = json!({ "grant": grant, "client_id": "me", "client_secret": "${SECRET}" });
        let setup = authority
            .setup(json!({ "oauth": oauth }))
            .variable("SECRET", "hand-made-secret");
        match grant {
            "client_credentials" => drop(setup.run(&["login", "web"]).code(0)),
            _ => drop(log_in(&setup)),
        }
        let (path, text) = records(&setup).pop().unwrap();
        assert!(!text.contains("hand-made-secret"), "{grant}: {text}");
        // Older versions stored the secret. It is ignored, and removed at the next change.
        let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let logins = record["logins"].as_object_mut().unwrap();
        logins
            .values_mut()
            .for_each(|login| login["client"]["secret"] = "an-old-secret".into());
        std::fs::write(path, record.to_string()).unwrap();
        authority.revoke(false);
        assert_eq!(setup.connect().execute("web__t").text(), "fine", "{grant}");
        let (_, text) = records(&setup).pop().unwrap();
        assert!(!text.contains("-secret\""), "{grant}: {text}");
        let ended = setup.run(&["logout", "web"]).code(0).json();
        assert_eq!(ended["revoked"], true, "{grant}: {ended}");
    }
}

#[test]
fn a_logout_needs_no_variable_of_the_entry() {
    let authority = Authority::start(Manner {
        method: "client_secret_basic",
        known: Some(("me", "hand-made-secret")),
        ..Manner::default()
    });
    let oauth = json!({ "client_id": "me", "client_secret": "${SECRET}" });
    let without = authority.setup(json!({ "oauth": oauth }));
    let setup = without.clone().variable("SECRET", "hand-made-secret");
    log_in(&setup);
    assert_eq!(records(&setup).len(), 1);
    let ended = without.run(&["logout", "web"]).code(1);
    let json = ended.json();
    assert_eq!(
        (&json["logged_out"], &json["revoked"]),
        (&json!(true), &json!(false)),
        "{ended}"
    );
    assert!(
        ended
            .stderr
            .contains("were not revoked: `oauth.client_secret` needs the variable `SECRET`"),
        "{ended}"
    );
    assert_eq!(records(&setup).len(), 0);
    assert_eq!(
        without.run(&["logout", "web"]).code(0).json()["logged_out"],
        false
    );
    // Nor does it need a record that can be read.
    log_in(&setup);
    let (path, _) = records(&setup).pop().unwrap();
    std::fs::write(path, "{\"version\": 1").unwrap();
    let ended = without.run(&["logout", "web"]).code(1).json();
    assert_eq!(ended["logged_out"], true, "{ended}");
    assert_eq!(records(&setup).len(), 0);
}

#[test]
fn a_logout_takes_either_name_of_a_server() {
    let authority = Authority::start(Manner {
        method: "client_secret_basic",
        known: Some(("me", "hand-made-secret")),
        ..Manner::default()
    });
    let oauth = json!({ "client_id": "me", "client_secret": "${SECRET}" });
    let without = Setup::new()
        .entry("my server", &authority.web.entry(json!({ "oauth": oauth })))
        .variable("MCPZIP_BROWSER", "none");
    let setup = without.clone().variable("SECRET", "hand-made-secret");
    for (home, name, code) in [
        (&without, "my server", 1),
        (&without, "my-server", 1),
        (&setup, "my server", 0),
    ] {
        let login = Login::start_with(&setup, &["login", "my-server"]);
        login.browse();
        let _ = login.end().code(0);
        let ended = home.run(&["logout", name]).code(code);
        assert_eq!(ended.json()["logged_out"], true, "{name}: {ended}");
        assert_eq!(
            ended.stderr.contains("needs the variable `SECRET`"),
            code == 1,
            "{name}: {ended}"
        );
        assert_eq!(records(&setup).len(), 0, "{name}");
    }
}

#[test]
fn a_logout_needs_no_entry_with_a_login() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    let headers = json!({ "headers": { "Authorization": "Bearer sesame-open" } });
    let with_header = setup.clone().entry("web", &authority.web.entry(headers));
    let without = setup.clone().without("web").server("b", Server::new());
    for (setup_without, reason) in [(&with_header, "`Authorization`"), (&without, "`web`")] {
        log_in(&setup);
        let ended = setup_without.run(&["logout", "web"]).code(1);
        assert_eq!(ended.json()["logged_out"], true, "{ended}");
        assert!(
            ended.stderr.contains("were not revoked: ") && ended.stderr.contains(reason),
            "{ended}"
        );
        assert_eq!(records(&setup).len(), 0);
        let ended = setup_without.run(&["logout", "web"]).code(1);
        assert!(ended.stdout.is_empty(), "{ended}");
    }
}

#[test]
fn a_logout_says_which_tokens_stay_valid() {
    for (endpoint, code, words) in [
        (
            json!("http://127.0.0.1:9/revoke"),
            4,
            "`http://127.0.0.1:9/revoke`",
        ),
        (json!("/one/nowhere"), 1, "/one` refused: HTTP 404"),
        (json!(null), 0, "revokes no tokens of this login"),
    ] {
        let authority = Authority::start(Manner::default());
        let endpoint = match endpoint.as_str() {
            Some(path) if path.starts_with('/') => json!(authority.issuer(path)),
            _ => endpoint,
        };
        authority.state().manner.metadata = json!({ "revocation_endpoint": endpoint });
        let setup = authority.setup(json!({}));
        log_in(&setup);
        let ended = setup.run(&["logout", "web"]).code(code);
        let json = ended.json();
        assert_eq!(
            (&json["logged_out"], &json["revoked"]),
            (&json!(true), &json!(false)),
            "{ended}"
        );
        assert!(
            ended.stderr.contains("stay valid until they end") && ended.stderr.contains(words),
            "{ended}"
        );
        assert_eq!(records(&setup).len(), 0);
    }
}

#[test]
fn a_new_token_that_the_server_refuses_is_told_as_such() {
    let authority = Authority::start(Manner {
        life: Duration::ZERO,
        method: "client_secret_basic",
        known: Some(("me", "hand-made-secret")),
        ..Manner::default()
    });
    // A machine's login has one account.
    let oauth = json!({ "grant": "client_credentials", "client_id": "me", "client_secret": "hand-made-secret" });
    let setup = authority.setup(json!({ "oauth": oauth }));
    let text = setup.connect().execute("web__t").tool_error();
    assert!(
        text.contains("perhaps its client or account has no access there")
            && !text.contains("mcpzip login"),
        "{text}"
    );
    let setup = authority.setup(json!({}));
    let login = Login::start(&setup, &[]);
    login.browse();
    let refused = login.end().code(1).stderr;
    assert!(refused.contains("refuses the token"), "{refused}");
    let text = setup.connect().execute("web__t").tool_error();
    assert!(
        text.contains("refused the token of its login (HTTP 401)")
            && text.contains("`mcpzip login web` logs in with another one"),
        "{text}"
    );
}

#[test]
fn a_logout_ends_the_login_here_and_there() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    log_in(&setup);
    let mut client = setup.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    assert_eq!(
        setup.run(&["logout", "web"]).code(0).json()["logged_out"],
        true
    );
    let revoked = authority
        .web
        .requests()
        .into_iter()
        .find(|request| request.path == "/one/revoke")
        .unwrap();
    assert!(
        revoked.text.contains("token_type_hint=refresh_token"),
        "{}",
        revoked.text
    );
    assert!(
        client
            .execute("web__t")
            .tool_error()
            .contains("login needed")
    );
    assert_eq!(setup.run(&["auth", "status"]).code(0).json(), json!([]));
    assert_eq!(
        setup.run(&["logout", "web"]).code(0).json()["logged_out"],
        false
    );
}

#[test]
fn no_secret_is_in_any_output() {
    let authority = Authority::start(Manner {
        method: "client_secret_post",
        needed: &["write"],
        ..Manner::default()
    });
    let setup = authority.setup(json!({})).log_level("trace");
    let check = |what: &str, text: &str| authority.is_silent(what, text);
    let login = Login::start(&setup, &[]);
    login.browse();
    check("the login", &login.end().code(0).to_string());
    let mut client = setup.connect();
    // The server repeats the token that it refuses, and so does the authorization server.
    check("a refusal", &client.execute("web__t").tool_error());
    client.execute("web__u").text();
    authority.revoke(true);
    check(
        "a login that is over",
        &client.execute("web__u").tool_error(),
    );
    check("a search", &client.search("anything"));
    check(
        "the status",
        &client
            .call("execute_tool", r#"{"name":"mcpzip__status"}"#)
            .text(),
    );
    client.close_stdin();
    client.wait();
    check("stdout", &client.stdout());
    check("stderr", &client.stderr());
    log_in(&setup);
    for command in [
        &["auth", "status"][..],
        &["servers"],
        &["call", "web__t"],
        &["tools"],
        &["logout", "web"],
    ] {
        check(&command.join(" "), &setup.run(command).to_string());
    }
    for request in authority
        .web
        .requests()
        .iter()
        .filter(|request| !request.path.contains("/callback"))
    {
        check("a URL", &request.path);
    }
}

#[test]
fn a_token_goes_to_its_own_origin_only() {
    let other = HttpServer::with_tool(|_, reply| reply.whole("200 OK", "", ""));
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({}));
    log_in(&setup);
    // The same name with another URL is another server.
    let moved = setup.entry("web", &other.entry(json!({})));
    let mut client = moved.connect();
    client.execute("web__u").text();
    client.finish();
    assert!(
        other
            .requests()
            .iter()
            .all(|request| request.header("authorization").is_empty())
    );
}

#[test]
fn a_stalling_authorization_server_holds_up_nobody_else() {
    let authority = Authority::start(Manner::default());
    let setup = authority
        .setup(json!({}))
        .server("b", Server::new().tool("v", [answer("too")]));
    log_in(&setup);
    let mut client = setup.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    assert_eq!(client.execute("b__v").text(), "too");
    authority.state().manner.pause = Duration::from_secs(3);
    authority.revoke(false);
    let call = client.begin_execute("web__t");
    let beside = client.begin_execute("b__v");
    assert_eq!(client.answer(beside).text(), "too");
    assert_eq!(client.answer(call).text(), "fine");
    client.check_order(beside, call);
}

#[test]
fn a_server_that_wants_no_login_of_this_kind_says_so() {
    let web = HttpServer::start(|request, reply| match request.path.as_str() {
        "/mcp" => reply.whole("401 Unauthorized", "", "an API key, please"),
        _ => reply.whole("404 Not Found", "", ""),
    });
    let setup = Setup::new().entry("web", &web.entry(json!({})));
    let refused = setup.run(&["login", "web"]).code(1);
    assert!(
        refused
            .stderr
            .contains("offers no login by OAuth; it needs a token or a key"),
        "{refused}"
    );
    let open = HttpServer::with_tool(|request, reply| reply.json(&request.result("fine")));
    let refused = Setup::new()
        .entry("web", &open.entry(json!({})))
        .run(&["login", "web"])
        .code(1);
    assert!(refused.stderr.contains("requires no login"), "{refused}");
    let refused = setup.run(&["login", "nobody"]).code(1);
    assert!(
        refused.stderr.contains("no server `nobody` is configured"),
        "{refused}"
    );
}
