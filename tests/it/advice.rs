//! Messages of commands that say what happened and what to do next.

use std::time::{Duration, Instant};

use serde_json::json;

#[cfg(unix)]
use crate::clients::case::{Machine, user_file};
use crate::support::script::{echo, exit, hang, say};
#[cfg(unix)]
use crate::support::terminal::Terminal;
use crate::support::{Server, Setup};

fn hub() -> Setup {
    Setup::new()
        .server("hub", Server::new().tool("read", [echo()]))
        .log_level("error")
}

#[test]
fn add_names_the_keychain_for_a_literal_secret_and_the_ways_to_set_a_variable() {
    let setup = hub();
    let add = |name: &str, pair: &str| {
        let words = ["add", name, "--no-check", "-e", pair, "--", "x-mcp"];
        setup.run(&words).code(0)
    };
    let literal = add("a", "TOK=literal-secret");
    assert!(
        literal
            .stderr
            .contains("run `mcpzip secret set TOK`, and use --env 'TOK=${keyring:TOK}'"),
        "{literal}"
    );
    let unset = add("b", "X=${NO_SUCH_VARIABLE}");
    assert!(
        unset.stderr.contains(
            "`env.X` needs the variable `NO_SUCH_VARIABLE`, which is not set; set it where mcpzip is started, store a value with \
             `mcpzip secret set NO_SUCH_VARIABLE` and write `${keyring:NO_SUCH_VARIABLE}`"
        ),
        "{unset}"
    );
    let plain = add("c", "MODE=fast");
    assert!(!plain.stderr.contains("hint"), "{plain}");
}

#[cfg(unix)]
#[test]
fn a_move_of_secrets_says_one_thing_about_what_may_be_a_secret() {
    let entry = json!({ "command": "x", "env": { "MOOD": "cheerful-and-long" } }).to_string();
    let setup = Setup::new().log_level("error").entry("a", &entry);
    setup.save();
    let Some(terminal) = Terminal::run(&setup.command(&["config", "extract-secrets"])) else {
        return;
    };
    let screen = terminal.shows("[exit 0]");
    assert!(
        screen.contains("nothing moves, as no value is surely a secret; these may be secrets"),
        "{screen}"
    );
    assert!(screen.contains("mcpServers.a.env.MOOD"), "{screen}");
}

#[test]
fn an_error_about_one_of_several_servers_says_that_nothing_was_done_to_the_others() {
    let setup = hub().entry("other", r#"{"command": "x"}"#);
    for (command, done) in [("remove", "removed"), ("disable", "disabled")] {
        let refused = setup.run(&[command, "hub", "other", "huh"]).code(1);
        let text =
            format!("nothing was {done}: no server `huh` is configured; did you mean `hub`?");
        assert!(refused.stderr.contains(&text), "{refused}");
    }
    let listed = setup.run(&["list"]).code(0).stdout;
    assert!(
        listed.contains("hub") && listed.contains("other"),
        "{listed}"
    );
}

#[test]
fn a_server_where_a_command_of_rules_belongs_gets_the_command_that_was_meant() {
    let refused = hub().run(&["rules", "hub"]).code(2);
    assert!(
        refused.stderr.contains("`mcpzip rules check hub TOOL`"),
        "{refused}"
    );
}

#[test]
fn a_log_that_has_nothing_yet_is_no_error() {
    let setup = hub();
    for arguments in [&["logs"][..], &["logs", "hub"]] {
        let shown = setup.run(arguments).code(0);
        assert_eq!(shown.stdout, "", "{shown}");
        assert!(shown.stderr.contains("yet"), "{shown}");
    }
    let json = setup.run(&["logs", "hub", "--json"]).code(0).json();
    assert_eq!(json["lines"], json!([]), "{json}");
}

#[test]
fn an_entry_in_json_that_is_broken_is_refused_in_words() {
    let setup = hub();
    let refused = setup.run(&["add", "x", "--json", "{broken"]).code(1);
    assert!(
        refused.stderr.starts_with("error: the entry is not JSON"),
        "{refused}"
    );
    let refused = setup.run(&["--json", "remove", "nosuch"]).code(1);
    assert!(refused.stderr.starts_with(r#"{"error""#), "{refused}");
}

#[test]
fn a_call_whose_server_ends_names_the_log_with_its_last_words() {
    let server = Server::new().tool("t", [say("no luck today"), exit(7)]);
    let setup = Setup::new().server("a", server).log_level("error");
    let lost = setup.run(&["call", "a__t", "{}"]).code(4);
    assert!(
        lost.stderr.contains("`mcpzip logs a` shows its last words"),
        "{lost}"
    );
    let shown = setup.run(&["logs", "a"]).code(0);
    assert!(shown.stdout.contains("no luck today"), "{shown}");
}

#[test]
fn a_search_waits_for_a_server_that_never_answers_once() {
    let setup = hub().server("mute", Server::new().at_start([hang()]));
    let search = || {
        let start = Instant::now();
        let found = setup.run(&["search", "read"]).code(0);
        let missing = found.json()["missing"].to_string();
        assert!(missing.contains("mute"), "{missing}");
        start.elapsed()
    };
    let (first, second) = (search(), search());
    assert!(
        second + Duration::from_secs(5) < first,
        "{first:?} {second:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_plan_shows_a_rule_about_a_server_in_two_places_once() {
    let machine = Machine::new();
    let project = machine.home("work").display().to_string();
    let server = json!({ "mcpServers": { "github": { "command": "gh-mcp" } } });
    let mut file = server.clone();
    file["projects"] = json!({ project: server });
    machine.put(user_file("claude-code"), &file.to_string());
    machine.put(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__github__rm"]}}"#,
    );
    let command = machine.setup().command(&["migrate", "--dry-run"]);
    let Some(terminal) = Terminal::run(&command) else {
        return;
    };
    let screen = terminal.shows("[exit 0]");
    assert!(screen.contains("\"github-work\""), "{screen}");
    let rule = "deny mcp__github__rm becomes tools.deny rm";
    assert_eq!(screen.matches(rule).count(), 1, "{screen}");
}
