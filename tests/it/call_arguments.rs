//! The arguments of `mcpzip call`: from a pipe, and as flags made of the tool's parameters.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::command::Outcome;
use crate::support::script::echo;
use crate::support::{Server, Setup, until};

const CREATE: &str = r#"{"name":"create_issue","inputSchema":{"type":"object","properties":{"title":{"type":"string"},"labels":{"type":"array","items":{"type":"string"}},"count":{"type":"integer"},"draft":{"type":"boolean"},"dueDate":{"type":"string"},"timeout":{"type":"number"},"kind":{"enum":["bug","task"]}},"required":["title"]}}"#;
const SWEEP: &str =
    r#"{"name":"sweep","inputSchema":{"type":"object","properties":{"filter":{"type":"string"}}}}"#;
const PING: &str = r#"{"name":"ping","inputSchema":{"type":"object","properties":{}}}"#;
const OPEN: &str =
    r#"{"name":"open","inputSchema":{"type":"object","additionalProperties":{"type":"string"}}}"#;
const LOOK: &str = r#"{"name":"look","inputSchema":{"type":"object","properties":{"filter":{"type":"string"}}},"annotations":{"readOnlyHint":true}}"#;

fn setup() -> Setup {
    let server = Server::new()
        .tool_as("create_issue", CREATE, [echo()])
        .tool_as("sweep", SWEEP, [echo()])
        .tool_as("look", LOOK, [echo()])
        .tool("plain", [echo()])
        .tool_as("ping", PING, [echo()])
        .tool_as("open", OPEN, [echo()]);
    Setup::new().server("hub", server).log_level("error")
}

/// The arguments that the server got.
fn received(outcome: Outcome) -> Value {
    let outcome = outcome.code(0);
    outcome.json()["structuredContent"]["arguments"].clone()
}

#[test]
fn flags_are_the_parameters_of_the_tool() {
    let setup = setup();
    for (arguments, expected) in [
        (
            &["--title", "x", "--labels", "a", "--labels", "b"][..],
            json!({ "title": "x", "labels": ["a", "b"] }),
        ),
        (
            &["--title=5", "--labels", "a, b", "--count", "-3", "--draft"],
            json!({ "title": "5", "labels": ["a, b"], "count": -3, "draft": true }),
        ),
        (
            &[
                "--title",
                "x",
                "--labels",
                r#"["a","b"]"#,
                "--due-date",
                "now",
                "--draft",
                "false",
            ],
            json!({ "title": "x", "labels": ["a", "b"], "dueDate": "now", "draft": false }),
        ),
        (
            &[
                "--timeout",
                "9",
                "--title",
                "x",
                "--json",
                "--",
                "--timeout",
                "5",
            ],
            json!({ "title": "x", "timeout": 5 }),
        ),
    ] {
        let words = [&["call", "hub__create_issue"], arguments].concat();
        assert_eq!(received(setup.run(&words)), expected, "{arguments:?}");
    }
}

#[test]
fn a_flag_that_is_no_parameter_is_refused_before_anything_is_called() {
    let setup = setup();
    for (arguments, told) in [
        (&["--titel", "x"][..], "did you mean `--title`?"),
        (&["--nonsense", "x"], "--title, --labels"),
        (&["{}", "--title", "x"], "as JSON or as flags"),
        (
            &["--text", "hi", "--title", "x"],
            "`mcpzip call hub__create_issue -- --text hi --title x`",
        ),
        (&["--title", "x", "--", "y"], "`y` belongs to no parameter"),
        (&["--title", "x", "--count", "many"], "count"),
    ] {
        let words = [&["call", "hub__create_issue"], arguments].concat();
        let outcome = setup.run(&words).code(2);
        assert!(outcome.stderr.contains(told), "{told}: {outcome}");
    }
    assert_eq!(setup.home().count("hub", "tools/call"), 0);
}

#[test]
fn a_tool_without_parameters_takes_no_flags() {
    let setup = setup();
    let refused = setup.run(&["call", "hub__ping", "--flag"]).code(2);
    assert!(refused.stderr.contains("takes no parameters"), "{refused}");
    assert_eq!(setup.home().count("hub", "tools/call"), 0);
    assert_eq!(
        received(setup.run(&["call", "hub__ping", r#"{"a":1}"#])),
        json!({ "a": 1 })
    );
    assert_eq!(
        received(setup.run(&["call", "hub__open", "--a", "x"])),
        json!({ "a": "x" })
    );
}

#[test]
fn a_pipe_gives_the_arguments_where_none_are_given() {
    let setup = setup();
    let call = &["call", "hub__create_issue"];
    let piped = setup.run_with_input(call, "{\"title\":\n\"piped\"}\n");
    assert_eq!(received(piped), json!({ "title": "piped" }));
    let both = [&call[..], &["--title", "flag"]].concat();
    let flags = setup.run_with_input(&both, r#"{"title":"piped"}"#);
    assert_eq!(received(flags), json!({ "title": "flag" }));
    let text = [&call[..], &["{\n\"title\":\r\n\"given\"}"]].concat();
    let given = setup.run_with_input(&text, r#"{"title":"piped"}"#);
    assert_eq!(received(given), json!({ "title": "given" }));
    let refused = setup.run_with_input(call, "nonsense").code(2);
    assert!(refused.stderr.contains("not JSON"), "{refused}");
    assert_eq!(
        received(setup.run_with_input(&["call", "hub__sweep"], "")),
        json!({})
    );
}

/// How a call ends whose stdin gives `input` and stays open.
fn with_open_stdin(setup: &Setup, tool: &str, input: &str) -> Option<i32> {
    let mut child = setup.command(&["call", tool]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let status = until("the call to end", || child.try_wait().unwrap());
    drop(stdin);
    status.code()
}

#[test]
fn an_open_pipe_does_not_hold_a_call_up_and_is_no_leave_to_call_without_arguments() {
    let setup = setup();
    setup.save();
    let start = Instant::now();
    assert_eq!(
        with_open_stdin(&setup, "hub__create_issue", r#"{"title":"x"}"#),
        Some(0)
    );
    assert_eq!(with_open_stdin(&setup, "hub__look", ""), Some(0));
    let before = setup.home().count("hub", "tools/call");
    assert_eq!(with_open_stdin(&setup, "hub__sweep", ""), Some(1));
    assert_eq!(setup.home().count("hub", "tools/call"), before);
    assert!(
        start.elapsed() < Duration::from_secs(25),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn arguments_in_another_form_are_answered_with_an_example_of_the_right_one() {
    for (given, example) in [
        ("title=hi", "`--title hi` or `'{\"title\":\"hi\"}'`"),
        ("title=a b", "`--title 'a b'` or `'{\"title\":\"a b\"}'`"),
        ("hi", "`--title x` or `'{\"title\":\"x\"}'`"),
    ] {
        let refused = setup().run(&["call", "hub__create_issue", given]).code(2);
        assert!(refused.stderr.contains(example), "{refused}");
    }
}

#[test]
fn a_call_that_takes_too_long_names_the_option_that_waits_longer() {
    use crate::support::script::hang;
    let setup = Setup::new()
        .server("slow", Server::new().tool("wait", [hang()]))
        .log_level("error");
    setup.save();
    let _ = setup.run(&["servers"]).code(0);
    let late = setup
        .run(&["call", "slow__wait", "{}", "--timeout", "3"])
        .code(4);
    assert!(
        late.stderr.contains("`--timeout SECONDS` waits longer")
            && late.stderr.contains("may have acted")
            && !late.stderr.contains("`timeout` (seconds)"),
        "{late}"
    );
}

#[test]
fn a_parameter_that_is_named_like_an_option_of_mcpzip_goes_after_two_dashes() {
    const NOTE: &str = r#"{"name":"note","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"timeout":{"type":"string"}},"required":["text","timeout"]}}"#;
    let server = Server::new().tool_as("note", NOTE, [echo()]);
    let setup = Setup::new().server("fk", server).log_level("error");
    for (given, code) in [
        (&["--text", "x"][..], 2),
        (&["--json", "x"], 2),
        (&["--profile", "x"], 3),
        (&["--timeout", "soon"], 2),
        // It is an option here, and the tool misses it.
        (&["--timeout", "5"], 2),
    ] {
        let words = [&["call", "fk__note"], given].concat();
        let refused = setup.run(&words).code(code);
        let flag = given[0];
        let told = format!(
            "`{flag}` is an option of mcpzip; put the tool's own after `--`: `mcpzip call fk__note -- {}`",
            given.join(" ")
        );
        assert!(refused.stderr.contains(&told), "{told}: {refused}");
    }
    for (given, told) in [
        (
            &["text=hi"][..],
            "write `-- --text hi` or `'{\"text\":\"hi\"}'`",
        ),
        (&["text=hi", "n=5"], "`-- --text hi --n 5`"),
        (&["--txt", "hi"], "did you mean `-- --text`?"),
    ] {
        let refused = setup.run(&[&["call", "fk__note"], given].concat()).code(2);
        assert!(refused.stderr.contains(told), "{told}: {refused}");
    }
    assert_eq!(setup.home().count("fk", "tools/call"), 0);
    let words = ["call", "fk__note", "--", "--text", "x", "--timeout", "5"];
    assert_eq!(
        received(setup.run(&words)),
        json!({ "text": "x", "timeout": "5" })
    );
    let zero = setup
        .run(&["call", "--timeout", "0", "fk__note", "{}"])
        .code(2);
    assert!(zero.stderr.contains("positive"), "{zero}");
}

#[test]
fn a_tool_named_by_two_words_is_named_by_one() {
    let setup = Setup::new().server("web", Server::new().tool("read", [echo()]));
    for (words, advice) in [
        (&["web", "read"][..], "`mcpzip call web__read`"),
        (
            &["web", "read", r#"{"id":"1"}"#],
            r#"`mcpzip call web__read '{"id":"1"}'`"#,
        ),
    ] {
        let told = setup.run(&[&["call"], words].concat()).code(2).stderr;
        assert!(told.contains(advice), "{told}");
    }
}
