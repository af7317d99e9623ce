//! Sessions behave over the daemon as they do alone: tests of other modules run again, with a daemon for each home.

use std::process::Command;

/// Modules whose tests hold in both modes. Tests of the processes of one session say that it runs alone.
const MODULES: [&str; 9] = [
    "answers::",
    "arguments::",
    "bridging::",
    "call_arguments::",
    "downstream::",
    "fidelity::",
    "meta_tools::",
    "policy::",
    "projects::",
];

#[test]
fn calls_searches_rules_questions_progress_and_cancelling_are_the_same_over_the_daemon() {
    let tests = std::env::current_exe().expect("the tests have a file");
    let outcome = Command::new(tests)
        .args(MODULES)
        .args(["--test-threads", "4"])
        .env("MCPZIP_TEST_DAEMON", "auto")
        .output()
        .expect("the tests can run again");
    let text = String::from_utf8_lossy(&outcome.stdout);
    assert!(outcome.status.success(), "{text}");
    let is_large = text.lines().filter(|line| line.ends_with("... ok")).count() > 100;
    assert!(is_large, "most of the tests were not found: {text}");
}
