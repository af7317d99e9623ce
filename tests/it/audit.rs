//! The audit log: a line for each call, written before its answer, in a chain that shows later edits.

use std::path::PathBuf;
use std::time::Duration;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::script::{answer, echo, hang, result};
use crate::support::{Client, Server, Setup, until};

fn setup() -> Setup {
    let server = Server::new()
        .tool("echo", [echo()])
        .tool(
            "fails",
            [result(
                r#"{"content":[{"type":"text","text":"no luck"}],"isError":true}"#,
            )],
        )
        .tool("denied", [answer("never")])
        .tool("hangs", [hang()]);
    Setup::new()
        .alone()
        .server("hub", server)
        .setting("tools", json!({ "deny": ["hub__denied"] }))
        .setting("audit", json!({}))
}

/// The lines of the log, oldest first.
fn lines(setup: &Setup) -> Vec<Value> {
    let shown = setup.run(&["audit", "--json"]).code(0).stdout;
    let lines = shown.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn calls(setup: &Setup) -> Vec<Value> {
    let mut lines = lines(setup);
    lines.retain(|line| line["kind"] != "configuration");
    lines
}

/// The files of all chains.
fn files(setup: &Setup) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for chain in std::fs::read_dir(setup.home().path("state/audit")).unwrap() {
        let days = std::fs::read_dir(chain.unwrap().path()).unwrap();
        let days = days.map(|day| day.unwrap().path());
        files.extend(days.filter(|day| day.extension().is_some()));
    }
    files
}

fn verified(setup: &Setup, code: i32) -> Value {
    setup.run(&["--json", "audit", "verify"]).code(code).json()
}

#[test]
fn each_call_is_a_line_that_says_who_what_and_how_it_ended() {
    let setup = setup();
    let mut client = setup.connect();
    client.execute_with("hub__echo", r#"{"token":"hunter22"}"#);
    client.execute("hub__fails");
    client.execute("hub__denied");
    client.execute("hub__nothing");
    client.finish();
    let calls = calls(&setup);
    let ends: Vec<_> = calls
        .iter()
        .map(|line| {
            let part = |key: &str| line[key].as_str().unwrap_or("").to_owned();
            format!("{} {} {}", part("kind"), part("outcome"), part("tool"))
        })
        .collect();
    assert_eq!(
        ends,
        [
            "call ok echo",
            "call error fails",
            "refusal refused denied",
            "refusal failed hub__nothing"
        ]
    );
    let first = &calls[0];
    assert_eq!(first["server"], "hub");
    assert_eq!(first["sent"], 20);
    assert!(first["received"].as_u64().unwrap() > 20, "{first}");
    assert!(first["ms"].as_f64().unwrap() > 0.0, "{first}");
    assert!(first["session"].as_str().unwrap().len() > 10, "{first}");
    assert!(first["directory"].is_string(), "{first}");
    let hash = first["arguments"].as_str().unwrap();
    assert!(hash.starts_with("sha256:") && hash.len() == 71, "{first}");
    let all = lines(&setup).into_iter().map(|line| line.to_string());
    assert!(!all.collect::<String>().contains("hunter22"));
    assert_eq!(verified(&setup, 0)["whole"], true);
}

#[test]
fn without_the_key_nothing_is_written() {
    let setup = Setup::new().server("hub", Server::new().tool("echo", [echo()]));
    let mut client = setup.connect();
    client.execute("hub__echo");
    client.finish();
    assert!(!setup.home().path("state/audit").exists());
    assert!(lines(&setup).is_empty());
    let turns_on = |setup: &Setup| {
        let (shown, checked) = (setup.run(&["audit"]), setup.run(&["audit", "verify"]));
        [shown.code(0), checked.code(1)].map(|told| told.stderr.contains("turns it on"))
    };
    assert_eq!(turns_on(&setup), [true; 2]);
    let setup = setup.setting("audit", json!({}));
    setup.save();
    assert_eq!(turns_on(&setup), [false; 2]);
}

#[cfg(unix)]
#[test]
fn a_killed_process_has_a_line_of_every_call_that_it_answered() {
    let setup = setup();
    for round in 0..8 {
        let mut client = setup.connect();
        let answered = 3 + round % 3;
        for number in 0..answered {
            client.execute_with("hub__echo", &format!(r#"{{"round":{round},"n":{number}}}"#));
        }
        client.begin_execute("hub__hangs");
        client.signal(rustix::process::Signal::KILL);
        client.wait();
    }
    let expected: usize = (0..8).map(|round| 3 + round % 3).sum();
    assert_eq!(calls(&setup).len(), expected);
    assert_eq!(verified(&setup, 0)["whole"], true);
}

#[cfg(unix)]
#[test]
fn a_process_killed_amid_its_writes_loses_nothing_that_it_answered() {
    let setup = setup();
    let mut answered = Vec::new();
    for round in 0..12_u64 {
        let mut client = setup.connect();
        let ids: Vec<u64> = (0..150)
            .map(|number| {
                let arguments = format!(
                    r#"{{"name":"hub__echo","arguments":{{"round":{round},"n":{number}}}}}"#
                );
                client.begin("execute_tool", &arguments)
            })
            .collect();
        // The first answers are there, and others are being written.
        client.answer(ids[usize::try_from(round).unwrap() * 3]);
        client.signal(rustix::process::Signal::KILL);
        client.wait();
        let received = client.stdout();
        let last = received.rfind('\n').map_or("", |end| &received[..end]);
        for line in last.lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            let at = ids.iter().position(|id| message["id"] == *id);
            answered.extend(at.map(|number| format!(r#"{{"round":{round},"n":{number}}}"#)));
        }
    }
    assert!(answered.len() >= 200, "{}", answered.len());
    let written: std::collections::HashSet<String> = calls(&setup)
        .iter()
        .filter_map(|line| line["arguments"].as_str().map(str::to_owned))
        .collect();
    for arguments in &answered {
        let hash = HEXLOWER.encode(&Sha256::digest(arguments.as_bytes()));
        let is_there = written.contains(&format!("sha256:{hash}"));
        assert!(is_there, "answered and not written: {arguments}");
    }
    assert_eq!(verified(&setup, 0)["whole"], true);
}

#[test]
fn an_edited_line_and_a_removed_chain_are_found() {
    let setup = setup();
    let mut client = setup.connect();
    client.execute("hub__echo");
    client.execute("hub__fails");
    client.finish();
    let file = files(&setup).remove(0);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"fails\"", "\"works\"")).unwrap();
    let found = verified(&setup, 1);
    assert_eq!(found["whole"], false);
    std::fs::write(&file, text).unwrap();
    verified(&setup, 0);
    std::fs::remove_dir_all(setup.home().path("state/audit")).unwrap();
    let found = verified(&setup, 1).to_string();
    assert!(found.contains("lines are missing at its end"), "{found}");
}

#[test]
fn a_chain_without_its_end_is_never_whole_again() {
    let setup = setup();
    let mut client = setup.connect();
    for _ in 0..5 {
        client.execute("hub__echo");
    }
    client.finish();
    verified(&setup, 0);
    let file = files(&setup).remove(0);
    let text = std::fs::read_to_string(&file).unwrap();
    let kept: Vec<&str> = text.lines().take(3).collect();
    for end in [Some(format!("{}\n", kept.join("\n"))), None] {
        match end {
            Some(text) => std::fs::write(&file, text).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        verified(&setup, 1);
        // More lines than were removed.
        let mut client = setup.connect();
        for _ in 0..9 {
            assert!(!client.execute("hub__echo").is_tool_error());
        }
        client.finish();
        let found = verified(&setup, 1).to_string();
        assert!(found.contains("lines are missing at its end"), "{found}");
    }
    let notes = lines(&setup);
    let says = |note: &Value| {
        note["detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("not continued"))
    };
    assert!(notes.iter().any(says), "{notes:?}");
}

#[test]
fn a_call_that_its_client_cancels_or_leaves_has_a_line() {
    let setup = setup();
    let mut client = setup.connect();
    client.execute("hub__echo");
    let hang = |client: &mut Client, count: usize| {
        let id = client.begin("execute_tool", r#"{"name":"hub__hangs"}"#);
        until("the call to arrive", || {
            (setup.home().count("hub", r#""name":"hangs""#) == count).then_some(())
        });
        id
    };
    let cancelled = || {
        let lines = calls(&setup);
        let is_cancelled =
            |line: &&Value| line["outcome"] == "cancelled" && line["tool"] == "hangs";
        lines.iter().filter(is_cancelled).count()
    };
    let id = hang(&mut client, 1);
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    until("the line", || (cancelled() == 1).then_some(()));
    hang(&mut client, 2);
    client.close_stdin();
    client.wait();
    let ends: Vec<_> = calls(&setup)
        .iter()
        .map(|line| line["outcome"].clone())
        .collect();
    assert_eq!(ends.len(), 3, "{ends:?}");
    verified(&setup, 0);
}

#[test]
fn where_it_cannot_be_written_nothing_is_called() {
    let setup = setup();
    std::fs::create_dir_all(setup.home().path("state")).unwrap();
    std::fs::write(setup.home().path("state/audit"), "in the way").unwrap();
    let mut client = setup.connect();
    let first = client.execute("hub__echo").tool_error();
    assert!(first.contains("audit log"), "{first}");
    let second = client.execute("hub__echo").tool_error();
    assert!(second.contains("audit log"), "{second}");
    assert_eq!(setup.home().count("hub", "tools/call"), 0);
    std::fs::remove_file(setup.home().path("state/audit")).unwrap();
    client.execute("hub__echo").text();
    client.finish();
    let details: Vec<_> = lines(&setup)
        .iter()
        .filter_map(|line| line["detail"].as_str().map(str::to_owned))
        .collect();
    assert!(
        details
            .iter()
            .any(|detail| detail.contains("could not be written")),
        "{details:?}"
    );
}

#[test]
fn a_command_that_is_refused_has_a_line_however_its_arguments_are_given() {
    let setup = setup();
    let all = [
        &["{}"][..],
        &["--name", "x"],
        &["--", "--name", "x"],
        &["--alone", "--name", "x"],
        &[],
    ];
    for (made, arguments) in (1..).zip(all) {
        let refused = setup.run(&[&["call", "hub__denied"], arguments].concat());
        assert_ne!(refused.code, Some(0), "{refused}");
        let mut refusals = lines(&setup);
        refusals.retain(|line| line["outcome"] == "refused");
        assert_eq!(refusals.len(), made, "{arguments:?}: {refusals:#?}");
        let last = &refusals[made - 1];
        assert_eq!(
            (&last["server"], &last["tool"]),
            (&json!("hub"), &json!("denied"))
        );
        assert!(last["rule"].is_string(), "{last}");
    }
}

#[test]
fn a_command_whose_arguments_cannot_be_read_has_a_line() {
    let setup = setup();
    for (made, arguments) in (1..).zip([&["{"][..], &["a", "b"], &["{}", "--name", "x"]]) {
        let refused = setup.run(&[&["call", "hub__echo"], arguments].concat());
        assert_ne!(refused.code, Some(0), "{refused}");
        let calls = calls(&setup);
        assert_eq!(calls.len(), made, "{arguments:?}: {calls:#?}");
        let last = &calls[made - 1];
        assert_eq!(
            (&last["kind"], &last["tool"]),
            (&json!("refusal"), &json!("hub__echo"))
        );
    }
    assert_eq!(setup.home().count("hub", "tools/call"), 0);
}

#[test]
fn a_request_that_is_no_call_of_a_tool_is_a_refusal_with_a_line() {
    let setup = setup();
    let mut client = setup.connect();
    for (tool, arguments) in [
        ("execute_tool", r#"{"name":"hub__echo","timeout":0}"#),
        ("execute_tool", r#"{"calls":[]}"#),
        ("hub__echo", "{}"),
    ] {
        client.call(tool, arguments);
    }
    client.finish();
    let calls = calls(&setup);
    let tools: Vec<_> = calls.iter().map(|line| &line["tool"]).collect();
    assert_eq!(
        tools,
        ["hub__echo", "execute_tool", "hub__echo"],
        "{calls:#?}"
    );
    assert!(
        calls.iter().all(|line| line["kind"] == "refusal"),
        "{calls:#?}"
    );
    assert_eq!(setup.home().count("hub", "tools/call"), 0);
}

#[test]
fn it_is_filtered_followed_and_written_for_spreadsheets() {
    let setup = setup();
    let mut client = setup.connect();
    client.execute("hub__echo");
    client.execute("hub__denied");
    client.finish();
    let shown = |arguments: &[&str]| {
        let all = [&["audit"], arguments].concat();
        setup.run(&all).code(0).stdout
    };
    assert_eq!(shown(&["--json", "--denied"]).trim().lines().count(), 1);
    assert_eq!(
        shown(&["--json", "--server", "hub"]).trim().lines().count(),
        2
    );
    assert_eq!(shown(&["--json", "--tool", "no"]).trim(), "");
    let table = shown(&["--csv"]);
    assert!(table.starts_with("time,kind,outcome,"), "{table}");
    assert!(table.contains("\"hub\",\"echo\""), "{table}");
    let _ = setup.run(&["audit", "--since", "yesterday"]).code(2);
    let kept = setup.run(&["audit", "delete", "--before", "2020-01-01"]);
    assert!(kept.code(1).stderr.contains("--yes"));
    let _ = setup
        .run(&["audit", "delete", "--before", "2020-01-01", "--yes"])
        .code(0);
}

#[test]
fn followed_it_shows_what_is_written_from_then_on() {
    let setup = setup();
    let mut client = setup.connect();
    client.execute("hub__echo");
    let mut follower = setup.start_with(&["audit", "--json", "--tool", "fails", "-f"]);
    client.execute("hub__echo");
    client.execute("hub__fails");
    let line: Value = until("the call to be shown", || {
        let shown = follower.stdout();
        let line = shown.lines().next()?;
        serde_json::from_str(line).ok()
    });
    assert_eq!(line["tool"], "fails", "{line}");
    client.execute("hub__fails");
    until("the next one", || {
        (follower.stdout().lines().count() == 2).then_some(())
    });
    client.finish();
    // A shell without job control starts what it puts in the background with SIGINT ignored.
    #[cfg(unix)]
    follower.signal(rustix::process::Signal::TERM);
    #[cfg(windows)]
    follower.kill();
    follower.wait();
}

#[test]
fn direct_mode_and_commands_are_recorded_too() {
    let setup = setup();
    let mut client: Client = setup.start_with(&["serve", "--direct"]);
    client.shake_hands("2025-11-25");
    client.call("hub__echo", "{}");
    client.call("hub__denied", "{}");
    client.finish();
    let _ = setup.run(&["call", "hub__echo"]).code(0);
    let calls = calls(&setup);
    let ends: Vec<_> = calls.iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(ends, ["ok", "refused", "ok"]);
    assert_eq!(calls[2]["session"], "command-line");
}

#[test]
fn arguments_are_kept_as_the_user_says() {
    let setup = setup().setting("audit", json!({ "arguments": "redacted" }));
    let mut client = setup.connect();
    client.execute_with("hub__echo", r#"{"path":"/a","api_key":"hunter22"}"#);
    client.finish();
    assert_eq!(
        calls(&setup)[0]["arguments"],
        json!({ "path": "/a", "api_key": "***" })
    );
}

#[test]
fn a_call_with_both_names_of_its_arguments_is_a_refusal_with_a_line() {
    let setup = setup();
    let mut client = setup.connect();
    let answer = client.call(
        "execute_tool",
        r#"{"name":"hub__echo","arguments":{"a":1},"args":{"a":2}}"#,
    );
    assert!(answer.is_tool_error(), "{}", answer.text());
    client.finish();
    let calls = calls(&setup);
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["kind"], "refusal");
    assert_eq!(calls[0]["tool"], "hub__echo");
}

#[test]
fn a_long_day_stays_within_the_size_and_what_is_left_is_whole() {
    let setup = setup().setting("audit", json!({ "megabytes": 1, "arguments": "redacted" }));
    let mut client = setup.connect();
    let values = vec!["x".repeat(190); 250];
    for number in 0..60 {
        let arguments = json!({ "number": number, "values": values }).to_string();
        client.execute_with("hub__echo", &arguments);
    }
    client.finish();
    let sizes = files(&setup)
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .collect::<Vec<_>>();
    let total: u64 = sizes.iter().sum();
    assert!(total <= 1024 * 1024 + 128 * 1024, "{sizes:?}");
    assert!(total > 512 * 1024, "{sizes:?}");
    assert_eq!(verified(&setup, 0)["whole"], true);
    let mut client = setup.connect();
    client.execute("hub__echo");
    client.finish();
    let last = calls(&setup).pop().unwrap();
    assert_eq!(last["sent"], 2, "{last}");
    assert_eq!(verified(&setup, 0)["whole"], true);
}

#[test]
fn other_settings_close_the_log_and_the_next_one_continues_its_chain() {
    let setup = setup();
    let mut client = setup.connect();
    client.execute("hub__echo");
    let setup = setup.setting("audit", json!({ "arguments": "none" }));
    setup.save();
    until("the new settings apply", || {
        client.execute_with("hub__echo", r#"{"a":1}"#);
        let last = calls(&setup).pop().unwrap();
        last["arguments"].is_null().then_some(())
    });
    // The replaced log has let its chain go, so another session continues that one.
    std::thread::sleep(Duration::from_secs(3));
    let mut other = setup.connect();
    other.execute("hub__echo");
    let chains = std::fs::read_dir(setup.home().path("state/audit")).unwrap();
    assert_eq!(chains.count(), 2);
    other.finish();
    client.finish();
    assert_eq!(verified(&setup, 0)["whole"], true);
}

#[test]
fn a_call_that_the_person_at_the_command_line_did_not_agree_to_is_a_refusal() {
    let setup = Setup::new()
        .server("notes", Server::new().tool("drop", [echo()]))
        .setting("tools", json!({ "ask": ["notes__drop"] }))
        .setting("audit", json!({}));
    let refused = setup.run(&["call", "notes__drop", "{}"]).code(1);
    assert!(refused.stderr.contains("a person must agree"), "{refused}");
    let all = lines(&setup);
    let last = all.last().unwrap();
    assert_eq!(
        (&last["kind"], &last["outcome"]),
        (&json!("refusal"), &json!("refused")),
        "{all:#?}"
    );
    assert_eq!(
        (&last["server"], &last["tool"]),
        (&json!("notes"), &json!("drop")),
        "{last}"
    );
}

#[test]
fn without_a_log_json_has_no_line_and_a_note_says_where_the_log_would_be() {
    let setup = Setup::new();
    let shown = setup.run(&["--json", "audit"]).code(0);
    assert_eq!(shown.stdout, "");
    let directory = setup.home().path("state/audit");
    assert!(
        shown.stderr.contains(directory.to_str().unwrap()),
        "{shown}"
    );
}
