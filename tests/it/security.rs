//! What hostile servers, names and texts must not be able to do; SECURITY.md has the whole list, this what stands nowhere else.
#![cfg(unix)]

use crate::support::script::{answer, say};
use crate::support::{Server, Setup, until};

/// Escapes of a terminal, one of eight bits, a title, what turns the direction of writing, what takes no room, and a tag.
const HOSTILE: &str = r"x\u001b[2Jy\u001b]0;title\u0007z\u009b31m\u202eevil\u2066\u061c\u200bgone\u3164\udb40\udc41\r\nend";

#[test]
fn a_server_gets_the_listed_variables_and_those_of_its_entry() {
    let setup = Setup::new()
        .server("plain", Server::new().tool("t", [answer("done")]))
        .variable("SECRET_OF_THE_USER", "not-for-servers")
        .variable("LD_PRELOAD_OF_MINE", "/no/where.so")
        .variable("LC_TIME", "C")
        .variable("SHELL", "() { :; }; echo");
    let seen = setup.home().path("seen");
    let script = format!(
        "env > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 600",
        seen.display()
    );
    let entry = serde_json::json!({ "command": "/bin/sh", "args": ["-c", script], "env": { "OWN": "its-own" } });
    let setup = setup.entry("spy", &entry.to_string());
    let mut client = setup.connect();
    client.begin_execute("spy__t");
    let seen = until("the server to have looked", || {
        std::fs::read_to_string(&seen).ok()
    });
    assert_eq!(client.execute("plain__t").text(), "done");
    let names: Vec<&str> = seen
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    // Those of a shell's own among them.
    let known = [
        "PATH",
        "HOME",
        "OWN",
        "LC_TIME",
        "MCPZIP_PARENT",
        "PWD",
        "SHLVL",
        "_",
        "OLDPWD",
        "TMP",
        "TEMP",
        "USERPROFILE",
    ];
    let foreign: Vec<_> = names.iter().filter(|name| !known.contains(name)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    for needed in ["PATH", "HOME", "OWN", "LC_TIME"] {
        assert!(names.contains(&needed), "{needed} is not in {names:?}");
    }
}

#[test]
fn hostile_texts_of_a_server_reach_no_terminal() {
    let definition = format!(
        r#"{{"name":"do{HOSTILE}","title":"{HOSTILE}","description":"Does {HOSTILE}. Then {HOSTILE}.","inputSchema":{{"type":"object","properties":{{"{HOSTILE}":{{"enum":["{HOSTILE}"],"description":"{HOSTILE}"}}}},"required":["{HOSTILE}"]}}}}"#
    );
    let plain = format!(
        r#"{{"name":"plain","description":"{HOSTILE}","inputSchema":{{"type":"object"}}}}"#
    );
    let instructions: String = serde_json::from_str(&format!(r#""{HOSTILE}""#)).unwrap();
    let hostile = Server::new()
        .entry(&definition)
        .tool_as("plain", &plain, [answer("done")])
        .instructions(&instructions);
    let setup = Setup::new().server("hostile", hostile).server(
        "dead",
        Server::new().at_start([
            say("no\u{1b}[2J luck\u{202e}\u{9b}"),
            crate::support::script::exit(3),
        ]),
    );
    setup.save();
    // What is meant for programs, JSON, has escapes of its own; everything else is looked at by people.
    for command in [
        &["tools"][..],
        &["search", "does plain"],
        &["describe", "hostile__plain"],
        &["servers"],
        &["status"],
        &["list"],
        &["call", "hostile__do"],
        &["call", "dead__t"],
        &["doctor"],
        &["logs", "dead"],
    ] {
        let outcome = setup.run(command);
        for (stream, text) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
            let odd: Vec<char> = text.chars().filter(|c| is_hostile(*c)).collect();
            assert!(
                odd.is_empty(),
                "{command:?} has {odd:?} on its {stream}: {text:?}"
            );
        }
    }
    // An agent's line of a hit is as clean.
    let mut client = setup.connect();
    let hits = until("the tools", || {
        Some(client.search("does plain")).filter(|hits| hits.contains("hostile__"))
    });
    assert!(!hits.contains(is_hostile), "{hits:?}");
}

fn is_hostile(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{3164}' | '\u{e0041}')
}

#[test]
fn no_name_of_a_server_leads_out_of_its_directories() {
    let server = || {
        Server::new()
            .at_start([say("here I am")])
            .tool("t", [answer("done")])
    };
    let mut setup = Setup::new().server("good", server());
    // These are names, if odd ones.
    let odd = ["-rf", "~", "con"];
    for name in odd {
        let entry = serde_json::json!({
            "command": crate::support::program::fake_server(),
            "args": [setup.home().path("odd.json"), setup.home().path("odd.log")],
        });
        setup = setup.entry(name, &entry.to_string());
    }
    std::fs::write(setup.home().path("odd.json"), server().to_json()).unwrap();
    for name in [
        "..",
        ".",
        "...",
        "../evil",
        "..\\evil",
        "/no/evil",
        "a/../../evil",
        "evil\u{0}",
        "evil\n",
        "a__b",
        "é",
        " ",
    ] {
        setup = setup.entry(name, r#"{"command":"/no/such/program"}"#);
    }
    let mut client = setup.connect();
    assert_eq!(client.execute("good__t").text(), "done");
    for name in odd.iter().filter(|name| **name != "~") {
        let answered = until("the odd name's tool", || {
            let message = client.execute(&format!("{name}__t"));
            (!message.is_tool_error()).then(|| message.text())
        });
        assert_eq!(answered, "done", "{name}");
    }
    let status = client.call("proxy_status", "{}").text();
    assert!(
        status.contains("evil"),
        "the name as it is written is shown: {status}"
    );
    client.finish();
    let listing = setup.home().listing();
    let known = ["home", "cache", "state", "config", "odd.", "good."];
    for entry in std::fs::read_dir(setup.home().path("")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        assert!(
            known.iter().any(|known| name.starts_with(known)),
            "{name} was made beside all else: {listing}"
        );
    }
    // Their safe names hold a digest or dashes; `evil` alone would be where one of them points.
    let points_out = |line: &str| line.split('/').any(|part| part.trim() == "evil");
    assert!(!listing.lines().any(points_out), "{listing}");
}

#[test]
fn the_tests_that_the_page_names_are_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let (_, table) = page
        .split_once("## How this is tested")
        .expect("the page says how this is tested");
    for row in table
        .lines()
        .filter(|row| row.starts_with("| ") && !row.starts_with("| claim"))
    {
        let (claim, tests) = row[2..].split_once(" | ").unwrap();
        let party = claim.rsplit_once('(').map_or("", |(_, party)| party);
        let letters = party.strip_suffix(')').unwrap_or_default().split(", ");
        let is_party = |letter: &str| letter.len() == 1 && ("A"..="G").contains(&letter);
        assert!(letters.into_iter().all(is_party), "no party: {row}");
        assert!(tests.contains('`'), "no test: {row}");
    }
    assert_tests_exist(table, 30);
}

#[test]
fn the_tests_that_the_table_of_promises_names_are_there() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference-systems.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (table, _) = page
        .split_once("## Coming over")
        .expect("the page has a section on coming over");
    let rows = table.lines().filter(|row| row.starts_with("| "));
    let promises: Vec<&str> = rows.filter(|row| !row.starts_with("| Promise")).collect();
    assert_eq!(promises.len(), 107);
    for row in promises {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, _, here, _, shown, _] = cells.as_slice() else {
            panic!("not four cells: {row}");
        };
        let is_elsewhere = here.starts_with("issue ") || here.starts_with("= 0");
        assert!(is_elsewhere || *here == "yes" && !shown.is_empty(), "{row}");
    }
    assert_tests_exist(table, 80);
}

/// Checks that each function that `table` names exists.
#[track_caller]
fn assert_tests_exist(table: &str, least: usize) {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let named: Vec<&str> = table
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| name.matches('_').count() > 2 && !name.contains("__"))
        .collect();
    assert!(named.len() > least, "{named:?}");
    let mut sources = String::new();
    let mut directories = vec![
        root.join("src"),
        root.join("tests/it"),
        root.join("tests/library"),
    ];
    while let Some(directory) = directories.pop() {
        for path in std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                directories.push(path);
            } else {
                sources.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap()));
            }
        }
    }
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !sources.contains(&format!("fn {name}(")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
