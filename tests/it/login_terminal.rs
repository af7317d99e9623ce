//! A login as a person sees it, in a terminal. `-- --nocapture` shows the screens.
#![cfg(unix)]

use serde_json::json;

use crate::support::authority::{Authority, Manner, browse, get, location};
use crate::support::http::{HttpServer, legacy};
use crate::support::terminal::Terminal;
use crate::support::{Setup, until};

fn terminal(setup: &Setup, arguments: &[&str]) -> Option<Terminal> {
    setup.save();
    Terminal::run(&setup.command(arguments))
}

fn show(what: &str, screen: &str) {
    use std::io::Write as _;
    // Nothing is lost for the test when nobody looks.
    let _ = writeln!(std::io::stdout().lock(), "--- {what}\n{screen}\n---");
}

/// The page that a screen names.
#[track_caller]
fn page(screen: &str) -> String {
    let line = screen
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("http"));
    line.unwrap_or_else(|| panic!("no page is named:\n{screen}"))
        .to_owned()
}

#[test]
fn a_person_without_a_browser_pastes_where_it_led() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({})).log_level("error");
    let Some(terminal) = terminal(&setup, &["login", "web"]) else {
        return;
    };
    let screen = terminal.shows("paste");
    show("mcpzip login web, without a browser", &screen);
    // They open it on another machine, where the browser cannot come back.
    let to = location(&get(&page(&screen))).unwrap();
    terminal.types("yes");
    terminal.shows("paste the whole");
    terminal.types(&to);
    let screen = terminal.shows("[exit 0]");
    show("the URL is pasted", &screen);
    assert!(screen.contains("✓ logged in to web"), "{screen}");
    let Some(status) = self::terminal(&setup, &["auth", "status"]) else {
        return;
    };
    let screen = status.shows("[exit 0]");
    show("mcpzip auth status", &screen);
    for words in [
        "web",
        "logged in, renewed automatically within",
        "for basic",
        "in a file",
    ] {
        assert!(screen.contains(words), "{screen}");
    }
    let Some(logout) = self::terminal(&setup, &["logout", "web"]) else {
        return;
    };
    let screen = logout.shows("[exit 0]");
    show("mcpzip logout web", &screen);
    assert!(screen.contains("✓ logged out of web"), "{screen}");
}

#[test]
fn a_person_with_a_browser_only_logs_in() {
    use std::os::unix::fs::PermissionsExt as _;
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({})).log_level("error");
    let (script, opened) = (setup.home().path("browser"), setup.home().path("opened"));
    std::fs::write(
        &script,
        format!("#!/bin/sh\nprintf '%s' \"$1\" > {}\n", opened.display()),
    )
    .unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    let setup = setup.variable("MCPZIP_BROWSER", &script.display().to_string());
    let Some(terminal) = terminal(&setup, &["login", "web"]) else {
        return;
    };
    let url = until("the browser", || {
        std::fs::read_to_string(&opened)
            .ok()
            .filter(|url| !url.is_empty())
    });
    let screen = terminal.shows(&authority.issuer("/one"));
    show("mcpzip login web, with a browser", &screen);
    assert_eq!(page(&terminal.shows("code_challenge")), url);
    assert!(browse(&url).contains("logged in"));
    let screen = terminal.shows("[exit 0]");
    show("the user has logged in", &screen);
    assert!(screen.contains("✓ logged in to web"), "{screen}");
}

#[test]
fn a_person_may_give_up_or_be_refused() {
    let authority = Authority::start(Manner::default());
    let setup = authority.setup(json!({})).log_level("error");
    let Some(given_up) = terminal(&setup, &["login", "web"]) else {
        return;
    };
    given_up.shows("paste");
    given_up.press("C-c");
    let screen = given_up.shows("[exit 1");
    show("Ctrl-C", &screen);
    let Some(refused) = terminal(&setup, &["login", "web"]) else {
        return;
    };
    let to = location(&get(&page(&refused.shows("paste")))).unwrap();
    let code = to.find("code=").unwrap()..to.find("&state").unwrap();
    browse(&to.replace(
        &to[code],
        "error=access_denied&error_description=not%20today",
    ));
    let screen = refused.shows("[exit 1]");
    show("a refusal", &screen);
    assert!(screen.contains("access_denied: not today"), "{screen}");
    let known = setup.run(&["auth", "status"]).code(0);
    assert_eq!(known.json(), json!([]));
}

/// A home with the server `web`.
fn setup_of(server: &HttpServer) -> Setup {
    Setup::new()
        .entry("web", &server.entry(json!({})))
        .log_level("error")
}

/// A server that takes one token, and offers no login.
fn server_with_token(token: &'static str) -> HttpServer {
    HttpServer::start(move |request, reply| {
        if request.path != "/mcp" {
            return reply.whole("404 Not Found", "", "");
        }
        if request.header("authorization") == format!("Bearer {token}") {
            return legacy(request, reply);
        }
        reply.whole("401 Unauthorized", "www-authenticate: Bearer\r\n", "");
    })
}

#[test]
fn a_server_without_a_login_takes_a_token_that_is_typed() {
    let server = server_with_token("sesame-open");
    let setup = setup_of(&server);
    let Some(terminal) = terminal(&setup, &["login", "web"]) else {
        return;
    };
    let screen = terminal.shows("Token for web (not shown):");
    show("mcpzip login web, without OAuth", &screen);
    for words in ["offers no login by OAuth", "access tokens", "127.0.0.1"] {
        assert!(screen.contains(words), "{screen}");
    }
    terminal.types("sesame-open");
    let screen = terminal.shows("[exit 0]");
    show("the token is typed", &screen);
    assert!(!screen.contains("sesame-open"), "{screen}");
    let called = setup.run(&["call", "web__u"]).code(0);
    assert!(called.stdout.contains("fine"), "{called}");
    let _ = setup.run(&["logout", "web"]).code(0);
    let _ = setup.run(&["call", "web__u"]).code(4);
}

#[test]
fn a_person_may_leave_the_question_for_a_token() {
    let server = server_with_token("sesame-open");
    let setup = setup_of(&server);
    let Some(terminal) = terminal(&setup, &["login", "web"]) else {
        return;
    };
    terminal.shows("Token for web (not shown):");
    terminal.press("C-c");
    terminal.shows("[exit 130]");
}

#[test]
fn a_server_that_refuses_registration_in_json_is_asked_for_a_token() {
    let server = HttpServer::start(|request, reply| match request.path.as_str() {
        "/mcp" => reply.whole("401 Unauthorized", "www-authenticate: Bearer\r\n", ""),
        _ => reply.whole(
            "404 Not Found",
            "content-type: application/json\r\n",
            r#"{"error":"not found"}"#,
        ),
    });
    let setup = setup_of(&server);
    let advised = setup.run(&["login", "web"]).code(1);
    assert!(
        advised.stderr.contains("mcpzip login web --with-token"),
        "{advised}"
    );
}

#[test]
fn a_login_to_all_servers_names_those_that_need_a_token_and_goes_on() {
    let server = server_with_token("sesame-open");
    let setup = setup_of(&server).entry("other", &server.entry(json!({})));
    let told = setup.run(&["login", "--all"]).code(0).stderr;
    for name in ["web", "other"] {
        let way = format!("mcpzip login {name} --with-token");
        assert!(told.contains(&way), "{told}");
    }
    assert!(!told.contains("no server needs a login"), "{told}");
}

#[test]
fn a_token_comes_through_a_pipe_and_is_kept_only_when_it_is_accepted() {
    let server = server_with_token("sesame-open");
    let setup = setup_of(&server);
    let advised = setup.run(&["login", "web"]).code(1);
    assert!(
        advised.stderr.contains("mcpzip login web --with-token"),
        "{advised}"
    );
    for (token, reason) in [
        ("sesame-shut\n", "does not accept this token"),
        ("", "one word of printable ASCII"),
        ("two words", "one word of printable ASCII"),
    ] {
        let refused = setup.run_with_input(&["login", "web", "--with-token"], token);
        assert!(refused.stderr.contains(reason), "{refused}");
        assert!(!refused.stderr.contains("sesame-shut"), "{refused}");
        let _ = refused.code(1);
    }
    let _ = setup.run(&["call", "web__u"]).code(4);
    let kept = setup
        .run_with_input(&["login", "web", "--with-token"], "sesame-open\n")
        .code(0);
    assert!(!kept.stdout.contains("sesame-open"), "{kept}");
    let _ = setup.run(&["call", "web__u"]).code(0);
}
