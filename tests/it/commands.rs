//! Programs whose subcommands are tools (`"cli": true`).
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Client, Setup};

/// A program with help in the manner of cobra. Each run of a subcommand prints its arguments, one per line.
const NOTES: &str = r#"#!/bin/sh
case "$1 $2 $3" in
"--help  ") cat <<'END'
Keeps notes.

Usage:
  notes [command]

Available Commands:
  add         Adds a note
  book        Manages books
  exec        Runs a program
  help        Help about any command
  show        Shows a note

Flags:
  -h, --help   help for notes
END
;;
"add --help ") cat <<'END'
Adds a note to a book.

Usage:
  notes add TITLE [LABEL...] [flags]

Flags:
  -b, --book string       The book
      --color string      The color (one of: (red, green)) (default "red")
  -h, --help              help for add
  -n, --copies int        How many (default 1)
      --pin               Keep it at the top
      --tag stringArray   A tag
END
;;
"show --help ") printf 'Shows a note.\n\nUsage:\n  notes show ID\n\nFlags:\n  -h, --help   help\n' ;;
"book --help ") printf 'Manages books.\n\nUsage:\n  notes book [command]\n\nAvailable Commands:\n  drop   Deletes a book\n  list   Lists the books\n' ;;
"book drop --help") printf 'Deletes a book.\n\nUsage:\n  notes book drop NAME\n' ;;
"book list --help") printf 'Lists the books.\n\nUsage:\n  notes book list\n' ;;
"book list ") echo '{"books": [{"name": "a"}, {"name": "b"}]}' ;;
"show 404 ") echo "no such note" >&2; exit 3 ;;
"show slow ") sleep 60 & echo $! > "$(dirname "$0")/sleeping"; wait ;;
"show input ") cat ;;
"show where ") pwd; echo "$NOTES_MARK" ;;
*) for word in "$@"; do printf '<%s>\n' "$word"; done ;;
esac
"#;

/// Writes a program of this name into the test's home, and returns its path.
fn program(setup: &Setup, name: &str, script: &str) -> String {
    let path = setup.home().path(name);
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn notes_with(more: Value) -> Setup {
    let setup = Setup::new();
    let mut entry = json!({ "command": program(&setup, "notes", NOTES), "cli": true });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    setup.entry("notes", &entry.to_string())
}

fn notes() -> Setup {
    notes_with(json!({}))
}

/// The names of the tools of a server.
fn names(setup: &Setup, server: &str) -> Vec<String> {
    let tools = setup.run(&["tools", server, "--json"]).code(0).json();
    let all = tools.as_array().unwrap().iter();
    let mut names: Vec<String> = all
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// The text of a call's result.
#[track_caller]
fn text(client: &mut Client, tool: &str, arguments: &str) -> String {
    client.execute_with(tool, arguments).text()
}

/// The definition of a tool.
#[track_caller]
fn described(client: &mut Client, name: &str) -> Value {
    let asked = json!({ "name": name }).to_string();
    let text = client.call("describe_tool", &asked).text();
    let (_, definition) = text.split_once('\n').unwrap();
    serde_json::from_str(definition).unwrap()
}

#[test]
fn subcommands_are_found_described_and_called() {
    let setup = notes();
    assert_eq!(
        names(&setup, "notes"),
        [
            "notes__add",
            "notes__book_drop",
            "notes__book_list",
            "notes__show"
        ]
    );
    let mut client = setup.connect();
    let found = client.search("remove a book");
    assert!(found.contains("notes__book_drop"), "{found}");
    let described = described(&mut client, "notes__add");
    let schema = &described["inputSchema"];
    let kinds: Vec<(&str, &Value)> = ["book", "color", "copies", "pin", "tag", "title", "label"]
        .into_iter()
        .map(|name| (name, &schema["properties"][name]["type"]))
        .collect();
    assert_eq!(
        kinds,
        [
            ("book", &json!("string")),
            ("color", &json!("string")),
            ("copies", &json!("integer")),
            ("pin", &json!("boolean")),
            ("tag", &json!("array")),
            ("title", &json!("string")),
            ("label", &json!("array")),
        ]
    );
    assert_eq!(
        schema["properties"]["color"]["enum"],
        json!(["red", "green"])
    );
    assert_eq!(schema["required"], json!(["title"]));
    assert!(described["annotations"].is_null(), "{described}");
    let arguments = r#"{"title": "a b; $(c)", "label": ["x", "y"], "pin": true, "copies": 2, "tag": ["1", "2"]}"#;
    assert_eq!(
        text(&mut client, "notes__add", arguments),
        "<add>\n<--copies>\n<2>\n<--pin>\n<--tag>\n<1>\n<--tag>\n<2>\n<a b; $(c)>\n<x>\n<y>\n"
    );
    client.finish();
}

#[test]
fn a_value_never_becomes_a_flag() {
    let setup = notes();
    let mut client = setup.connect();
    let flag = text(
        &mut client,
        "notes__add",
        r#"{"title": "x", "book": "--pin"}"#,
    );
    assert_eq!(flag, "<add>\n<--book=--pin>\n<x>\n");
    let positional = text(&mut client, "notes__add", r#"{"title": "--pin"}"#);
    assert_eq!(positional, "<add>\n<-->\n<--pin>\n");
    // The usage of `show` does not say that `--` ends its flags.
    let refused = client.execute_with("notes__show", r#"{"id": "-x"}"#);
    assert!(
        refused.as_str().contains("begins with `-`"),
        "{}",
        refused.as_str()
    );
    client.finish();
}

#[test]
fn the_exit_code_stderr_and_stdin_are_passed_on() {
    let setup = notes();
    let mut client = setup.connect();
    let failed = client.execute_with("notes__show", r#"{"id": "404"}"#);
    assert_eq!(failed.value()["isError"], true);
    assert_eq!(failed.text(), "[stderr]\nno such note\n[exit status: 3]");
    let input = text(
        &mut client,
        "notes__show",
        r#"{"id": "input", "stdin": "as given\n"}"#,
    );
    assert_eq!(input, "as given\n");
    let listed = client.call(
        "execute_tool",
        r#"{"name": "notes__book_list", "select": ".books | length"}"#,
    );
    assert_eq!(listed.text(), "2");
    client.finish();
}

#[test]
fn a_call_that_takes_too_long_ends_with_all_its_processes() {
    let setup = notes_with(json!({ "timeout": "1s" }));
    let mut client = setup.connect();
    let late = client.execute_with("notes__show", r#"{"id": "slow"}"#);
    assert!(
        late.as_str().contains("no answer within 1s"),
        "{}",
        late.as_str()
    );
    let sleeping = std::fs::read_to_string(setup.home().path("sleeping")).unwrap();
    let gone = Instant::now() + Duration::from_secs(10);
    let process = std::path::PathBuf::from(format!("/proc/{}", sleeping.trim()));
    while cfg!(target_os = "linux") && process.exists() {
        assert!(Instant::now() < gone, "{} still runs", sleeping.trim());
        std::thread::sleep(Duration::from_millis(20));
    }
    client.finish();
}

#[test]
fn cli_only_and_cli_read_decide_what_is_a_tool_and_what_only_reads() {
    let setup = notes_with(json!({ "cli_only": ["book", "exec"], "cli_read": ["book list"] }));
    assert_eq!(
        names(&setup, "notes"),
        ["notes__book_drop", "notes__book_list"]
    );
    let mut client = setup.connect();
    assert_eq!(
        described(&mut client, "notes__book_list")["annotations"],
        json!({ "readOnlyHint": true })
    );
    assert!(described(&mut client, "notes__book_drop")["annotations"].is_null());
    let hidden = client.execute_with("notes__add", r#"{"title": "x"}"#);
    assert!(hidden.as_str().contains("no tool"), "{}", hidden.as_str());
    client.finish();
}

#[test]
fn tools_of_the_entry_take_the_place_of_the_help() {
    let setup = notes_with(json!({ "cli_tools": [
        { "name": "export", "args": ["export", "--to={file}", "{book}"], "description": "Exports a book." },
        { "name": "join", "args": ["join", "{a}{b}"] },
        { "name": "count", "args": ["count"], "input_schema": { "type": "object", "properties": {} } },
    ] }));
    assert_eq!(
        names(&setup, "notes"),
        ["notes__count", "notes__export", "notes__join"]
    );
    let mut client = setup.connect();
    let exported = text(
        &mut client,
        "notes__export",
        r#"{"file": "-x", "book": "b c"}"#,
    );
    assert_eq!(exported, "<export>\n<--to=-x>\n<b c>\n");
    let refused = client.execute_with("notes__export", r#"{"file": "f", "book": "--all"}"#);
    assert!(
        refused.as_str().contains("begins with `-`"),
        "{}",
        refused.as_str()
    );
    assert_eq!(text(&mut client, "notes__count", "{}"), "<count>\n");
    let joined = text(&mut client, "notes__join", r#"{"a": "{b}", "b": "c"}"#);
    assert_eq!(joined, "<join>\n<{b}c>\n");
    let refused = client.execute_with("notes__join", r#"{"a": "-", "b": "-all"}"#);
    assert!(
        refused.as_str().contains("begins with `-`"),
        "{}",
        refused.as_str()
    );
    client.finish();
}

#[test]
fn a_changed_help_is_a_changed_tool() {
    let setup = notes_with(json!({ "trust": "pin" }));
    assert_eq!(names(&setup, "notes").len(), 4);
    let mut client = setup.connect();
    assert_eq!(
        text(&mut client, "notes__add", r#"{"title": "x"}"#),
        "<add>\n<x>\n"
    );
    client.finish();
    program(
        &setup,
        "notes",
        &NOTES.replace("Adds a note to a book.", "Adds a note and sends it to all."),
    );
    let mut client = setup.connect();
    let held = client.execute_with("notes__add", r#"{"title": "x"}"#);
    assert!(
        held.as_str().contains("mcpzip approve notes"),
        "{}",
        held.as_str()
    );
    assert_eq!(
        text(&mut client, "notes__show", r#"{"id": "1"}"#),
        "<show>\n<1>\n"
    );
    client.finish();
}

#[test]
fn a_program_runs_in_the_directory_and_with_the_variables_of_its_entry() {
    let setup = notes();
    let directory = setup.home().path("elsewhere");
    std::fs::create_dir(&directory).unwrap();
    let entry = json!({
        "command": setup.home().path("notes"),
        "cli": true,
        "cwd": directory,
        "env": { "NOTES_MARK": "marked" },
    });
    let setup = setup.entry("notes", &entry.to_string());
    let mut client = setup.connect();
    let told = text(&mut client, "notes__show", r#"{"id": "where"}"#);
    assert!(told.trim_end().ends_with("elsewhere\nmarked"), "{told}");
    client.finish();
}

#[test]
fn a_program_without_usable_help_costs_its_server_only_and_says_why() {
    let setup = notes();
    let cases = [
        ("silent", "#!/bin/sh\nexit 1\n", "prints no help"),
        ("words", "#!/bin/sh\necho 'hello world'\n", "prints no help"),
        (
            "terminal",
            "#!/bin/sh\n[ -t 0 ] || { echo 'needs a terminal' >&2; exit 1; }\necho 'Usage: terminal [-v]'\n",
            "prints no help",
        ),
        (
            "floods",
            "#!/bin/sh\nyes 'Usage: floods'\n",
            "prints no help",
        ),
    ];
    let mut setup = setup;
    for (name, script, _) in cases {
        let entry = json!({ "command": program(&setup, name, script), "cli": true });
        setup = setup.entry(name, &entry.to_string());
    }
    setup = setup.entry(
        "absent",
        r#"{"command": "no-such-program-here", "cli": true}"#,
    );
    let servers = setup.run(&["servers", "--json"]).code(4).json();
    let state = |name: &str| {
        let all = servers["servers"].as_array().unwrap();
        all.iter()
            .find(|server| server["name"] == name)
            .unwrap()
            .clone()
    };
    for (name, _, reason) in cases {
        assert!(state(name).to_string().contains(reason), "{}", state(name));
    }
    assert!(
        state("absent").to_string().contains("no-such-program-here"),
        "{}",
        state("absent")
    );
    assert_eq!(state("notes")["tools"], 4);
}

#[test]
fn help_on_stderr_and_under_a_pager_is_read() {
    let setup = Setup::new();
    let old = "#!/bin/sh\nif [ \"$1\" = -h ]; then printf 'Usage: old [-v] FILE\\n\\nOptions:\\n  -v   be loud\\n' >&2; exit 129; fi\necho \"unknown option $1\" >&2; exit 2\n";
    let entry = json!({ "command": program(&setup, "old", old), "cli": true });
    let paged = "#!/bin/sh\n[ \"$PAGER\" = cat ] || exec sleep 100\nprintf 'usage: paged [-h] [--level N] name\\n\\noptions:\\n  -h, --help  show this\\n  --level N   how deep\\n'\n";
    let other = json!({ "command": program(&setup, "paged", paged), "cli": true });
    let setup = setup
        .entry("old", &entry.to_string())
        .entry("paged", &other.to_string());
    assert_eq!(names(&setup, "old"), ["old__old"]);
    let mut client = setup.connect();
    let described = described(&mut client, "paged__paged");
    assert_eq!(
        described["inputSchema"]["properties"]["level"]["type"],
        "integer"
    );
    client.finish();
}

#[test]
fn the_help_is_read_once_for_a_programs_file() {
    let setup = notes();
    let counted = NOTES.replace(
        "case \"$1",
        "echo \"$*\" >> \"$(dirname \"$0\")/runs\"\ncase \"$1",
    );
    program(&setup, "notes", &counted);
    let runs = || {
        std::fs::read_to_string(setup.home().path("runs"))
            .unwrap()
            .lines()
            .count()
    };
    let _ = names(&setup, "notes");
    let first = runs();
    assert!(first >= 6, "{first}");
    std::fs::remove_dir_all(setup.cache_path().join("catalog")).unwrap();
    let _ = names(&setup, "notes");
    assert_eq!(runs(), first);
}

#[test]
fn keys_of_a_command_line_are_refused_where_they_would_mean_nothing() {
    for (entry, reason) in [
        (
            json!({ "command": "notes", "cli_only": ["add"] }),
            "only with `\\\"cli\\\": true`",
        ),
        (json!({ "command": "notes", "cli": "yes" }), "true or false"),
        (
            json!({ "command": "notes", "cli": true, "cli_only": "add" }),
            "list of strings",
        ),
        (
            json!({ "command": "notes", "cli": true, "cli_tools": [{ "name": "a b", "args": [] }] }),
            "a name of 1 to 64",
        ),
        (
            json!({ "command": "notes", "cli": true, "cli_tools": [{ "name": "a" }] }),
            "list of tools",
        ),
    ] {
        let setup = Setup::new().entry("notes", &entry.to_string());
        let status = setup.run(&["status", "--json"]).code(0).json();
        let server = status["servers"][0].to_string();
        assert!(
            server.contains("faulty") && server.contains(reason),
            "{server}"
        );
    }
}

#[test]
fn add_writes_a_command_line() {
    let setup = notes();
    let path = setup.home().path("notes");
    let added = setup
        .run(&[
            "add",
            "more",
            "--cli",
            "--json",
            "--",
            path.to_str().unwrap(),
        ])
        .code(0)
        .json();
    assert_eq!(added["check"]["tools"], 4, "{added}");
    let listed = setup.run(&["list", "--json"]).code(0).json();
    assert_eq!(listed["servers"][0]["type"], "cli", "{listed}");
    let refused = setup
        .run(&["add", "x", "--cli", "https://x.example/mcp"])
        .code(2);
    assert!(refused.stderr.contains("--cli"), "{refused}");
}

#[test]
fn doctor_names_a_command_line_whose_help_says_little() {
    let setup = Setup::new();
    let script = "#!/bin/sh\nprintf 'usage: poor COMMAND\\n\\nCommands:\\n  one   Does one thing\\n  two   Does another\\n'\n";
    let poor = program(&setup, "poor", script);
    let rich = program(&setup, "rich", NOTES);
    let entry = |path: String| json!({ "command": path, "cli": true }).to_string();
    let setup = setup
        .entry("poor", &entry(poor))
        .entry("rich", &entry(rich));
    let report = setup.run(&["doctor", "--json"]).json();
    let findings = report["findings"].as_array().unwrap();
    let poor: Vec<&Value> = findings
        .iter()
        .filter(|finding| finding["code"] == "command-help-poor")
        .collect();
    assert_eq!(poor.len(), 1, "{report}");
    assert_eq!(poor[0]["subject"], "poor");
    let text = poor[0].to_string();
    assert!(text.contains("2 of 2 subcommands"), "{text}");
}

#[test]
fn a_variable_of_the_entry_holds_in_calls() {
    let script = "#!/bin/sh\ncase \"$1\" in --help) printf 'Usage: show [flags]\\n\\nFlags:\\n  --all   all\\n' ;; *) echo \"$COLUMNS $PAGER\" ;; esac\n";
    let setup = Setup::new();
    let path = program(&setup, "show", script);
    let entry = json!({ "command": path, "cli": true, "env": { "COLUMNS": "77" } });
    let setup = setup.entry("show", &entry.to_string());
    let mut client = setup.connect();
    assert_eq!(text(&mut client, "show__show", "{}"), "77 cat\n");
    client.finish();
}

#[cfg(target_os = "linux")]
#[test]
fn the_expression_of_find_follows_its_paths() {
    let setup = Setup::new();
    let directory = setup.home().path("books");
    std::fs::create_dir_all(directory.join("old")).unwrap();
    for file in ["a.txt", "b.md", "old/c.txt"] {
        std::fs::write(directory.join(file), "").unwrap();
    }
    let setup = setup.entry("find", r#"{"command": "find", "cli": true}"#);
    let mut client = setup.connect();
    let path = directory.to_str().unwrap();
    let arguments = json!({ "path_": [path], "name": "*.txt", "maxdepth": "1", "L": true });
    let found = text(&mut client, "find__find", &arguments.to_string());
    assert_eq!(found.trim(), format!("{path}/a.txt"));
    client.finish();
}

/// The four ways to ask for help take 34 s, more than another server's list may take.
#[test]
fn a_program_whose_help_comes_slowly_is_added() {
    let setup = Setup::new().log_level("error");
    let slow = program(
        &setup,
        "slow",
        "#!/bin/sh\nsleep 8.5\n[ \"$1\" = -help ] && printf 'Usage: slow [-v] FILE\\n\\nOptions:\\n  -v   be loud\\n'\nexit 0\n",
    );
    let added = setup.run(&["add", "slow", "--cli", "--json", "--", &slow]);
    assert_eq!(added.code(0).json()["check"]["state"], "ready");
}

#[test]
fn help_in_less_usual_styles_is_read() {
    let mut setup = Setup::new();
    // argparse with a name for the subcommands.
    let borg = "#!/bin/sh\ncase \"$1\" in\n--help) printf 'usage: borg [-h] <command> ...\\n\\nrequired arguments:\\n  <command>\\n    break-lock          break repository and cache\\n                        locks\\n    create              create backup\\n' ;;\n*) exit 2 ;;\nesac\n";
    // Headings below the heading of the commands, as Mercurial has them.
    let hg = "#!/bin/sh\ncase \"$1\" in\n--help) printf 'Mercurial SCM\\n\\nlist of commands:\\n\\nRepository creation:\\n\\n clone         make a copy\\n init          create a repository\\n\\nChange creation:\\n\\n commit        commit the files\\n\\nadditional help topics:\\n\\n bundlespec    Bundle File Formats\\n' ;;\n*) exit 2 ;;\nesac\n";
    // Texts after a colon, values with commas, a usage without indentation.
    let scan = "#!/bin/sh\ncase \"$1\" in\n--help) printf 'Usage:\\n\\nscan [options] TARGET\\n\\n-i CODE1,CODE2..  --include=CODE1,CODE2..  Only these codes\\n-iL <file name>: Targets from a file\\n--traceroute: Trace the path\\n-n     Resolve nothing\\n' ;;\n*) exit 2 ;;\nesac\n";
    for (name, script) in [("borg", borg), ("hg", hg), ("scan", scan)] {
        let entry =
            json!({ "command": program(&setup, name, script), "cli": true, "cli_depth": 1 });
        setup = setup.entry(name, &entry.to_string());
    }
    assert_eq!(names(&setup, "borg"), ["borg__break-lock", "borg__create"]);
    assert_eq!(names(&setup, "hg"), ["hg__clone", "hg__commit", "hg__init"]);
    let mut client = setup.connect();
    let flags = described(&mut client, "scan__scan")["inputSchema"]["properties"].clone();
    let kinds: Vec<(&str, &Value)> = ["include", "iL", "traceroute", "n"]
        .into_iter()
        .map(|name| (name, &flags[name]["type"]))
        .collect();
    let (text, switch) = (json!("string"), json!("boolean"));
    assert_eq!(
        kinds,
        [
            ("include", &text),
            ("iL", &text),
            ("traceroute", &switch),
            ("n", &switch)
        ],
        "{flags}"
    );
    assert_eq!(flags["traceroute"]["description"], "Trace the path");
}

/// A program in `usr/bin` of the test's home, whose manuals are in `usr/share/man`.
fn installed(setup: &Setup, name: &str, script: &str, manual: &str) -> String {
    let (bin, man) = ("usr/bin", "usr/share/man/man1");
    for directory in [bin, man] {
        std::fs::create_dir_all(setup.home().path(directory)).unwrap();
    }
    std::fs::write(setup.home().path(&format!("{man}/{name}.1")), manual).unwrap();
    program(setup, &format!("{bin}/{name}"), script)
}

#[test]
fn help_that_names_its_manual_is_completed_by_it() {
    if !crate::support::tool::has("man", "man-db") {
        return;
    }
    let script = |see: &str| {
        format!(
            "#!/bin/sh\nprintf 'Usage: NAME [options] command\\n\\nOptions:\\n  -q   say nothing\\n\\nMost used commands:\\n  list   Lists\\n  show   Shows\\n\\n{see}\\n'\n"
        )
    };
    let manual = ".TH X 1\n.SH NAME\nx \\- keeps notes\n.SH DESCRIPTION\nThese are its commands.\n.TP\nlist\nLists.\n.TP\nshow \\fINAME\\fR\nShows.\n.TP\ndrop \\fINAME\\fR\nDrops.\n.SH OPTIONS\n.TP\n\\fB\\-q\\fR, \\fB\\-\\-quiet\\fR\nSay nothing.\n.TP\n\\fB\\-\\-format\\fR=\\fIFORMAT\\fR\nThe format.\n";
    let mut setup = Setup::new();
    for (name, see) in [("full", "See full(1)."), ("other", "See the web.")] {
        let path = installed(&setup, name, &script(see).replace("NAME", name), manual);
        let entry = json!({ "command": path, "cli": true });
        setup = setup.entry(name, &entry.to_string());
    }
    assert_eq!(
        names(&setup, "full"),
        ["full__drop", "full__list", "full__show"]
    );
    assert_eq!(names(&setup, "other"), ["other__list", "other__show"]);
    let mut client = setup.connect();
    let flags = |client: &mut Client, tool: &str| {
        let properties = described(client, tool)["inputSchema"]["properties"].clone();
        let names: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
        names
    };
    assert_eq!(
        flags(&mut client, "full__list"),
        ["args", "format", "quiet", "stdin"]
    );
    assert_eq!(flags(&mut client, "other__list"), ["args", "q", "stdin"]);
    client.finish();
}

#[test]
fn a_command_takes_from_a_shared_page_what_its_usage_names() {
    // Go's `go build --help` names the fuller `go help build`; git has one page for all commands of `stash`.
    let script = "#!/bin/sh\ncase \"$1 $2 $3\" in\n\"help build \") printf 'usage: kit build [-o output] [packages]\\n\\n\\t-o output\\n\\t\\twhere to\\n\\t-gcflags \\047[pattern=]arg list\\047\\n\\t\\tfor the compiler\\n' ;;\n\"build --help \") printf \"usage: kit build [-o output] [packages]\\nRun 'kit help build' for details.\\n\" ;;\n\"stash --help \") printf 'usage: kit stash <command>\\n\\ncommands:\\n  drop   Drops\\n  push   Pushes\\n' ;;\n\"stash \"*) printf 'usage: kit stash drop [-q | --quiet] [<stash>]\\n   or: kit stash [push [-a | --all] [(-m | --message) <text>]]\\n\\noptions:\\n  -q, --quiet   say nothing\\n  -a, --all   all\\n  -m, --message <text>   the text\\n' ;;\n*) printf 'usage: kit <command>\\n\\ncommands:\\n  build   Builds\\n  stash   Keeps\\n' ;;\nesac\n";
    let setup = Setup::new();
    let entry = json!({ "command": program(&setup, "kit", script), "cli": true });
    let setup = setup.entry("kit", &entry.to_string());
    let mut client = setup.connect();
    let mut flags = |tool: &str| {
        let properties = described(&mut client, tool)["inputSchema"]["properties"].clone();
        let names: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
        names.join(" ")
    };
    assert_eq!(flags("kit__build"), "gcflags o packages stdin");
    assert_eq!(flags("kit__stash_drop"), "quiet stash stdin");
    assert_eq!(flags("kit__stash_push"), "all message stdin");
    client.finish();
}

#[test]
fn tables_of_names_several_spellings_and_several_values_are_read() {
    let setup = Setup::new();
    let ssl = "#!/bin/sh\n[ $# = 1 ] && printf 'Standard commands\\nca  ciphers  cms\\nx509  \\n\\nDigest commands (see dgst)\\nmd5  sha1  sha256\\n'\n";
    let script = "#!/bin/sh\ncase \"$1\" in --help) printf 'Usage: mix [options]\\n  -sS/sT: A scan\\n  --min-rate/max-rate <number>: The rate\\n  --colo[u]r=WHEN     always or never\\n  --arg a v        set a to v\\n  --length <N>     the length, which can have a unit\\n  --workers INTEGER RANGE  how many\\n' ;; *) printf '<%s>' \"$@\" ;; esac\n";
    let mut setup = setup;
    for (name, script) in [("ssl", ssl), ("mix", script)] {
        let entry =
            json!({ "command": program(&setup, name, script), "cli": true, "cli_depth": 1 });
        setup = setup.entry(name, &entry.to_string());
    }
    assert_eq!(
        names(&setup, "ssl"),
        ["ca", "ciphers", "cms", "md5", "sha1", "sha256", "x509"]
            .map(|name| format!("ssl__{name}"))
    );
    let mut client = setup.connect();
    let flags = described(&mut client, "mix__mix")["inputSchema"]["properties"].clone();
    let kinds = [
        ("sS", "boolean"),
        ("sT", "boolean"),
        ("min_rate", "integer"),
        ("max_rate", "integer"),
        ("color", "string"),
        ("colour", "string"),
        ("arg", "array"),
        ("length", "string"),
        ("workers", "integer"),
    ];
    for (name, kind) in kinds {
        assert_eq!(flags[name]["type"], kind, "{name}: {flags}");
    }
    let called = text(&mut client, "mix__mix", r#"{"arg": ["a", "1", "b", "2"]}"#);
    assert_eq!(called, "<--arg><a><1><--arg><b><2>");
    for (values, reason) in [
        (r#"["a"]"#, "2 values at a time"),
        (r#"["a", "-x"]"#, "begins with `-`"),
    ] {
        let refused = client.execute_with("mix__mix", &format!(r#"{{"arg": {values}}}"#));
        let said = refused.as_str();
        assert!(
            said.contains(reason) || said.contains("at least 2"),
            "{said}"
        );
    }
    client.finish();
}

/// The sum of the issue: a program of the system, two others, an interface and three servers, all found by one search.
#[test]
fn programs_interfaces_and_servers_are_found_by_one_search_and_called() {
    use crate::support::http::HttpServer;
    use crate::support::script::{Server, answer};

    let web = HttpServer::start(|request, reply| {
        let opened = json!({ "number": 7, "title": request.body["title"], "path": request.path });
        reply.json(&opened.to_string());
    });
    let body = json!({ "type": "object", "required": ["title"], "properties": { "title": { "type": "string" } } });
    let owner =
        json!({ "name": "repo", "in": "path", "required": true, "schema": { "type": "string" } });
    let description = json!({ "openapi": "3.0.3", "info": { "title": "Forge", "version": "1" }, "paths": {
        "/repos/{repo}/pulls": { "post": { "operationId": "pulls/create", "summary": "Create a pull request", "parameters": [owner],
            "requestBody": { "content": { "application/json": { "schema": body } } }, "responses": {} } },
    } });
    let setup = notes();
    let file = setup.home().path("forge.json");
    std::fs::write(&file, description.to_string()).unwrap();
    let hub = "#!/bin/sh\ncase \"$*\" in\n--help) printf 'Usage: hub <command>\\n\\nCommands:\\n  pr-create   Open a pull request\\n' ;;\n*--help) printf 'Open a pull request.\\n\\nUsage: hub pr-create [flags]\\n\\nFlags:\\n  --title string   Its title\\n' ;;\n*) printf 'opened %s' \"$3\" ;;\nesac\n";
    let tool = |name: &str, about: &str| {
        let definition =
            json!({ "name": name, "description": about, "inputSchema": { "type": "object" } });
        Server::new().tool_as(
            name,
            &definition.to_string(),
            [answer(&format!("did {name}"))],
        )
    };
    let directory = setup.home().path("repository");
    std::fs::create_dir(&directory).unwrap();
    let git = json!({ "command": "git", "cli": true, "cli_only": ["init", "request-pull"], "cwd": directory });
    let hub = json!({ "command": program(&setup, "hub", hub), "cli": true });
    let setup = setup
        .entry("git", &git.to_string())
        .entry("hub", &hub.to_string())
        .entry(
            "forge",
            &json!({ "openapi": file, "base_url": web.url("") }).to_string(),
        )
        .server(
            "reviews",
            tool("create_pull_request", "Opens a pull request."),
        )
        .server("weather", tool("forecast", "The weather of tomorrow."))
        .server("mail", tool("send", "Sends a message."));
    let mut client = setup.connect();
    let found = client.search("open a pull request");
    let kinds = [
        "git__request-pull",
        "hub__pr-create",
        "forge__pulls_create",
        "reviews__create_pull_request",
    ];
    for name in kinds {
        assert!(found.contains(name), "{name}: {found}");
    }
    let made = text(&mut client, "git__init", "{}");
    assert!(made.contains("Git repository"), "{made}");
    assert!(directory.join(".git").is_dir());
    let opened = text(&mut client, "hub__pr-create", r#"{"title": "a b"}"#);
    assert_eq!(opened, "opened a b");
    let opened = text(
        &mut client,
        "forge__pulls_create",
        r#"{"repo": "x", "title": "a b"}"#,
    );
    assert!(
        opened.contains("a b") && opened.contains("/repos/x/pulls"),
        "{opened}"
    );
    for name in [
        "reviews__create_pull_request",
        "weather__forecast",
        "mail__send",
    ] {
        let answer = client.execute_with(name, r#"{"mark": 5}"#);
        assert!(answer.text().contains("did "), "{name}: {}", answer.text());
    }
    assert_eq!(
        text(&mut client, "notes__show", r#"{"id": "1"}"#),
        "<show>\n<1>\n"
    );
    client.finish();
}
