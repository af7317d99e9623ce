//! Headers that a command gives: when it is run, for how long what it gave is good, and what is seen of it.
#![cfg(unix)]

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::http::{HttpServer, Reply, Request, legacy};
use crate::support::script::answer;
use crate::support::{Server, Setup};

/// A server that lets in whoever sends the token `good-token-N`, N from what `is_good` takes.
fn guarded(is_good: impl Fn(u32) -> bool + Send + Sync + 'static) -> HttpServer {
    HttpServer::start(move |request: &Request, reply: &mut Reply| {
        let token = request
            .header("authorization")
            .strip_prefix("Bearer good-token-")
            .map(str::to_owned);
        if token
            .as_ref()
            .and_then(|number| number.parse().ok())
            .is_some_and(&is_good)
        {
            return legacy(request, reply);
        }
        // It repeats what it was shown, as a careless server does.
        reply.whole(
            "401 Unauthorized",
            "",
            &format!("not good: {}", request.header("authorization")),
        );
    })
}

/// A command that counts its runs in `runs` of the home, and prints this, `$n` the number of the run.
fn counting(printed: &str) -> String {
    format!(
        "n=$(($(cat \"$HOME/runs\" 2>/dev/null || echo 0) + 1)); echo $n > \"$HOME/runs\"; {printed}"
    )
}

fn token(rest: &str) -> String {
    counting(&format!(
        r#"echo '{{"headers": {{"Authorization": "Bearer good-token-'$n'"}}{rest}}}'"#
    ))
}

fn runs(setup: &Setup) -> u32 {
    let text = std::fs::read_to_string(setup.home().path("home/runs")).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

fn setup(server: &HttpServer, members: Value) -> Setup {
    Setup::new().entry("web", &server.entry(members))
}

#[test]
fn a_command_is_run_once_and_what_it_gave_goes_with_each_request() {
    let server = guarded(|_| true);
    let setup = setup(&server, json!({ "headers_command": token("") }));
    let mut client = setup.connect();
    let calls: Vec<u64> = (0..4).map(|_| client.begin_execute("web__t")).collect();
    for call in calls {
        assert_eq!(client.answer(call).text(), "fine");
    }
    assert_eq!(runs(&setup), 1);
    client.finish();
    // The name that Claude Code has for it, and the plain object that it takes.
    let plain = counting(
        r#"echo '{"Authorization": "Bearer good-token-'$n'", "X-Server": "'$CLAUDE_CODE_MCP_SERVER_NAME'"}'"#,
    );
    let setup = setup.entry(
        "web",
        &server.entry(json!({ "headersHelper": plain, "headers": { "X-Own": "mine" } })),
    );
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
    let last = server.requests().pop().unwrap();
    assert_eq!(
        (last.header("x-server"), last.header("x-own")),
        ("web", "mine")
    );
}

#[test]
fn a_command_is_run_again_before_its_headers_end_and_when_they_are_refused() {
    let server = guarded(|_| true);
    let setup_short = setup(
        &server,
        json!({ "headers_command": token(r#", "expires_in": 1"#) }),
    );
    let mut client = setup_short.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    let before = runs(&setup_short);
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(client.execute("web__t").text(), "fine");
    assert!(runs(&setup_short) > before);
    client.finish();
    // The second token is the first that is good, and stays so.
    let server = guarded(|number| number >= 2);
    let setup = setup(&server, json!({ "headers_command": token("") }));
    let mut client = setup.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    assert_eq!(client.execute("web__u").text(), "fine");
    assert_eq!(runs(&setup), 2);
}

#[test]
fn what_is_never_accepted_is_told_without_a_secret_and_without_a_loop() {
    let server = guarded(|_| false);
    let setup = setup(&server, json!({ "headers_command": token("") })).log_level("trace");
    let mut client = setup.connect();
    let said = client.execute("web__t").tool_error();
    assert!(
        said.contains("it does not accept the headers of its `headers_command`")
            && !said.contains("good-token"),
        "{said}"
    );
    assert!(!said.contains("mcpzip login"), "{said}");
    assert!(runs(&setup) <= 8, "{} runs", runs(&setup));
    client.close_stdin();
    client.wait();
    assert!(
        !client.stderr().contains("good-token"),
        "{}",
        client.stderr()
    );
}

#[test]
fn a_command_tells_its_own_log_no_value_that_it_prints() {
    let server = guarded(|_| true);
    for (end, members) in [
        ("", r#"{"Authorization":"Bearer good-token-1"}"#),
        ("exit 3", r#"{"Authorization":"Bearer good-token-1"}"#),
        ("", r#"{"Authorization":"Bearer good-token-1" "#),
        ("sleep 100", r#"{"Authorization":"Bearer good-token-1"}"#),
    ] {
        let command = format!("echo 'got good-token-1, done' >&2; echo '{members}'; {end}");
        let setup = setup(&server, json!({ "headers_command": command }));
        let mut client = setup.connect();
        client.execute("web__t");
        client.finish();
        let log = std::fs::read_to_string(setup.home().path("state/logs/web.log")).unwrap();
        assert!(
            log.contains("got ***") && !log.contains("good-token"),
            "{command}: {log}"
        );
    }
}

#[test]
fn a_command_that_fails_costs_its_server_alone() {
    let server = guarded(|_| true);
    for (command, words) in [
        (
            json!("echo to the log >&2; exit 3"),
            "`headers_command` failed (exit status: 3)",
        ),
        (json!("echo no json"), "did not print a JSON object"),
        (
            json!(["no-such-program", "x"]),
            "`no-such-program` cannot be run",
        ),
        (
            json!("head -c 100000 /dev/zero"),
            "printed more than 65536 bytes",
        ),
        (json!("yes; exit 3"), "printed more than 65536 bytes"),
    ] {
        let setup = setup(&server, json!({ "headers_command": command }))
            .server("b", Server::new().tool("v", [answer("too")]));
        let mut client = setup.connect();
        let said = client.execute("web__t").tool_error();
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(client.execute("b__v").text(), "too");
        if words.contains("exit status") {
            let log = std::fs::read_to_string(setup.home().path("state/logs/web.log")).unwrap();
            assert!(log.contains("to the log"), "{log}");
        }
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_command_that_never_ends_is_ended_with_all_that_it_started() {
    let server = guarded(|_| true);
    let setup = setup(
        &server,
        json!({ "headers_command": "sleep 300 & sleep 300" }),
    )
    .server("b", Server::new().tool("v", [answer("too")]))
    .alone();
    let mut client = setup.connect();
    let call = client.begin_execute("web__t");
    let beside = client.begin_execute("b__v");
    assert_eq!(client.answer(beside).text(), "too");
    let said = client.answer(call).tool_error();
    client.check_order(beside, call);
    assert!(
        said.contains("`headers_command` took longer than 10s") || said.contains("being listed"),
        "{said}"
    );
    client.finish();
    #[cfg(target_os = "linux")]
    crate::support::until("what it started to be gone", || {
        setup.home().mark.processes().is_empty().then_some(())
    });
}

#[test]
fn a_list_is_run_without_a_shell_and_configured_headers_go_first() {
    let server = guarded(|_| true);
    let printed = r#"{"Authorization": "Bearer good-token-1", "X-Own": "of the command; $(exit)"}"#;
    let members = json!({ "headers_command": ["printf", "%s", printed], "headers": { "x-own": "configured" } });
    let setup = setup(&server, members);
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
    assert_eq!(
        server.requests().pop().unwrap().header("x-own"),
        "configured"
    );
}
