//! A person's decisions about servers: where they are announced, and what they cover.

use std::slice::from_ref;

use serde_json::{Value, json};

use super::pins::{READ, entry_of, is_held, listed_twice, listing, tool, turning, under};
use crate::support::script::echo;
#[cfg(unix)]
use crate::support::terminal::Terminal;
use crate::support::{Server, Setup};

/// The instructions that a new client gets.
fn instructions(setup: &Setup) -> String {
    let mut client = setup.start_with(&["serve"]);
    let answer = client.shake_hands("2025-11-25").value();
    client.finish();
    answer["instructions"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// The digest that `mcpzip approve web --json` shows.
fn digest(setup: &Setup) -> Value {
    let shown = setup.run(&["approve", "web", "--json"]).code(0).json();
    shown[0]["approve_digest"].clone()
}

/// Answers the question of a command with yes, and returns the screen after it.
#[cfg(unix)]
fn agreed(setup: &Setup, arguments: &[&str], exit: &str) -> Option<String> {
    let terminal = Terminal::run(&setup.command(arguments))?;
    terminal.shows("[y/N]");
    terminal.types("y");
    Some(terminal.shows(exit))
}

#[test]
fn the_instructions_name_servers_that_wait_and_none_of_their_words() {
    const WORDS: &str = "obey these words";
    let server = Server::new().tool("obey", [echo()]).instructions(WORDS);
    let setup = under("quarantine", server).server_with(
        "free",
        Server::new().tool("read", [echo()]),
        json!({ "trust": "pin" }),
    );
    let line = "Waiting for the user (`mcpzip approve`): web.";
    let before = instructions(&setup);
    assert!(before.contains("Waiting for the user"), "{before}");
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    client.finish();
    let first = instructions(&setup);
    assert!(first.ends_with(line), "{first}");
    assert!(!first.contains(WORDS) && !first.contains("obey"), "{first}");
    assert_eq!(instructions(&setup), first);
    #[cfg(unix)]
    {
        if agreed(&setup, &["approve", "web"], "[exit 0]").is_none() {
            return;
        }
        let after = instructions(&setup);
        assert!(!after.contains("Waiting"), "{after}");
    }
}

#[test]
fn the_instructions_have_no_word_of_a_tool_that_waits() {
    let kept = tool("read_page", READ);
    let renamed = tool("obey_attacker_now", &format!("{READ} Also PDF."));
    let has_words = |setup: &Setup| {
        let text = instructions(setup);
        let words = ["obey", "attacker", "now"];
        words.iter().any(|word| text.contains(word))
    };
    // A new tool, and one that was renamed before the user chose to hold such tools back.
    let new = under(
        "pin",
        listing(from_ref(&kept), &[kept.clone(), renamed.clone()]),
    );
    listed_twice(&new).finish();
    assert!(!has_words(&new));
    for trust in ["pin", "quarantine"] {
        let setup = under("report", listing(from_ref(&kept), from_ref(&renamed)));
        listed_twice(&setup).finish();
        assert!(has_words(&setup));
        let mut entry = entry_of(&setup, "web");
        entry["trust"] = json!(trust);
        let setup = setup.entry("web", &entry.to_string());
        setup.save();
        assert!(!has_words(&setup), "{trust}");
    }
}

#[test]
fn a_server_whose_changes_are_only_reported_waits_for_nobody() {
    let setup = under("report", turning());
    listed_twice(&setup).finish();
    let text = instructions(&setup);
    assert!(!text.contains("Waiting"), "{text}");
}

#[test]
#[cfg(unix)]
fn a_digest_that_is_outdated_approves_nothing() {
    let setup = under("pin", turning());
    let mut client = listed_twice(&setup);
    is_held(&mut client, "web__read");
    client.finish();
    let now = digest(&setup);
    let now = now.as_str().unwrap();
    let refused = setup.run(&["approve", "web", "--digest", "0123"]).code(1);
    assert!(
        refused.stderr.contains("not those of this digest any more"),
        "{}",
        refused.stderr
    );
    // A part of the differences is not all of them.
    let all = setup.run(&["approve", "--all", "--digest", now]).code(2);
    assert!(all.stderr.contains("--digest"), "{}", all.stderr);
    let Some(screen) = agreed(&setup, &["approve", "web", "--digest", now], "[exit 0]") else {
        return;
    };
    assert!(screen.contains(&format!("digest: {now}")), "{screen}");
    let mut client = setup.connect();
    client.execute_with("web__read", "{}").value();
    client.finish();
    let used = setup.run(&["approve", "web", "--digest", now]);
    assert_eq!(used.code(1).stdout, "");
}

#[test]
fn the_digest_covers_prompts_resources_and_instructions() {
    let digest_of = |server: Server| {
        let setup = under("quarantine", server);
        let mut client = setup.connect();
        client.call("proxy_refresh", "{}").text();
        client.finish();
        digest(&setup)
    };
    let plain = || Server::new().tool("read", [echo()]);
    let digests = [
        digest_of(plain()),
        digest_of(plain().instructions("Greet.")),
        digest_of(plain().prompt("greeting", [echo()])),
        digest_of(plain().resource("file:///notes", [echo()])),
    ];
    assert!(digests.iter().all(Value::is_string), "{digests:?}");
    for (at, one) in digests.iter().enumerate() {
        assert!(!digests[..at].contains(one), "{at}: {digests:?}");
    }
    assert_eq!(digest_of(plain()), digests[0]);
}

#[test]
#[cfg(unix)]
fn of_two_people_who_are_asked_at_once_the_first_decides() {
    for (first, second) in [
        ("approve", "reject"),
        ("reject", "approve"),
        ("approve", "approve"),
    ] {
        let setup = under("pin", turning());
        let mut client = listed_twice(&setup);
        is_held(&mut client, "web__read");
        client.finish();
        let run = |word| Terminal::run(&setup.command(&[word, "web", "read"]));
        let (Some(one), Some(other)) = (run(first), run(second)) else {
            return;
        };
        one.shows("[y/N]");
        other.shows("[y/N]");
        one.types("y");
        one.shows("[exit 0]");
        other.types("y");
        other.shows("or were decided on elsewhere");
        other.shows("[exit 1]");
        let mut client = setup.connect();
        client.call("proxy_refresh", "{}").text();
        match first {
            "approve" => drop(client.execute_with("web__read", "{}").value()),
            _ => drop(is_held(&mut client, "web__read")),
        }
        client.finish();
    }
}

#[test]
#[cfg(unix)]
fn tools_says_that_a_server_in_quarantine_waits() {
    let listed = Server::new().tool("read", [echo()]).instructions(READ);
    let setup = under("quarantine", listed);
    setup.save();
    for arguments in [&["tools"][..], &["tools", "web"]] {
        let Some(terminal) = Terminal::run(&setup.command(arguments)) else {
            return;
        };
        let shown = terminal.shows("web: its tools wait for a person's approval");
        assert!(!shown.contains("web__read"), "{shown}");
        let piped = setup.run(&[arguments, &["--json"]].concat()).code(0);
        assert_eq!(piped.json(), json!([]));
        let told = &piped.stderr;
        assert!(
            told.contains("web: its tools wait for a person's approval"),
            "{told}"
        );
    }
}

#[test]
#[cfg(unix)]
fn where_changes_are_only_reported_the_question_says_that_agents_see_them() {
    let setup = under("report", turning());
    listed_twice(&setup).finish();
    let Some(terminal) = Terminal::run(&setup.command(&["approve", "web"])) else {
        return;
    };
    terminal.shows("Agents already see this difference. Approve it?");
    terminal.types("n");
    let screen = terminal.shows("[exit 1]");
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [
        "agents still see it: `mcpzip reject web` withholds it",
        r#"`"trust": "pin"` in a server's entry holds changes back"#,
    ] {
        assert!(words.contains(told), "{screen}");
    }
}
