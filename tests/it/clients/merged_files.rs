//! Clients that merge several files of a place: their servers and rules count wherever they are, and so does mcpzip's entry.

use serde_json::json;

use super::case::{Machine, user_file, verdict};

const JSONC: &str = ".config/opencode/opencode.jsonc";
const GH: &str = r#"{"mcp": {"gh": {"type": "local", "command": ["gh-mcp"]}}}"#;

#[test]
fn servers_of_each_of_the_files_that_opencode_merges_move() {
    let machine = Machine::new();
    machine.put(user_file("opencode"), GH);
    machine.put(
        JSONC,
        "{\n  // Notes.\n  \"mcp\": {\"notes\": {\"type\": \"local\", \"command\": [\"notes-mcp\"]}}\n}\n",
    );
    machine.put(
        ".config/opencode/config.json",
        r#"{"mcp": {"old": {"type": "local", "command": ["old-mcp"]}}}"#,
    );
    let before = machine.everything();
    let report = machine.migrate(&[]);
    for name in ["gh", "notes", "old"] {
        assert_eq!(verdict(&report, name).0, "moves", "{report:#}");
    }
    // The file that applies last has mcpzip's entry, and it stays there.
    let jsonc = machine.read(JSONC);
    assert!(
        jsonc.contains("mcpzip") && jsonc.contains("// Notes."),
        "{jsonc}"
    );
    assert!(!machine.read(user_file("opencode")).contains("mcpzip"));
    let again = machine.run(&["connect", "opencode"]).code(0);
    let is_there = ["\"changed\": false", "opencode.jsonc"];
    assert!(
        is_there.iter().all(|it| again.stdout.contains(it)),
        "{again}"
    );
    machine.undo();
    assert_eq!(machine.everything(), before);
}

#[test]
fn an_entry_of_mcpzip_in_the_plain_file_of_opencode_stays_the_one() {
    let machine = Machine::new();
    machine.put(user_file("opencode"), "{}");
    let _ = machine.run(&["connect", "opencode"]).code(0);
    machine.put(JSONC, GH);
    let report = machine.migrate(&[]);
    assert_eq!(verdict(&report, "gh").0, "moves", "{report:#}");
    assert!(machine.read(user_file("opencode")).contains("mcpzip"));
    assert!(!machine.read(JSONC).contains("mcpzip"));
    let again = machine.run(&["connect", "opencode"]).code(0).json();
    let file = machine.home(user_file("opencode"));
    assert_eq!(again["file"], file.display().to_string(), "{again}");
}

#[test]
fn a_part_of_an_entry_in_another_file_of_opencode_counts() {
    for (whole, part) in [
        (user_file("opencode"), JSONC),
        (JSONC, user_file("opencode")),
    ] {
        let machine = Machine::new();
        machine.put(whole, GH);
        machine.put(part, r#"{"mcp": {"gh": {"enabled": false}}}"#);
        let report = machine.migrate(&[]);
        let servers = machine.servers();
        let gh = &servers["gh"];
        let is_off = gh["disabled"] == true && gh["tools"].is_null();
        assert!(is_off, "{report:#} {servers}");
        assert!(
            !report.to_string().contains("in this project"),
            "{report:#}"
        );
    }
}

#[test]
fn rules_in_the_second_file_of_opencode_are_carried() {
    let machine = Machine::new();
    machine.put(user_file("opencode"), GH);
    machine.put(JSONC, r#"{"permission": {"gh_rm": "deny"}}"#);
    let report = machine.migrate(&[]);
    assert_eq!(
        machine.servers()["gh"]["tools"],
        json!({ "deny": ["rm"] }),
        "{report:#}"
    );
    // A pattern in any of the files may be about mcpzip, too, and a later one may permit it.
    for (later, is_refused) in [("{}", true), (r#"{"tools": {"mcpzip_*": true}}"#, false)] {
        let machine = Machine::new();
        machine.put(user_file("opencode"), r#"{"tools": {"mcpzip*": false}}"#);
        machine.put(JSONC, later);
        let outcome = machine.run(&["connect", "opencode"]);
        let outcome = outcome.code(i32::from(is_refused));
        assert_eq!(
            outcome.stderr.contains("`tools: mcpzip*`"),
            is_refused,
            "{outcome}"
        );
    }
}

#[test]
fn the_servers_of_both_files_of_an_opencode_project_move() {
    let machine = Machine::new();
    machine.put("work/opencode.json", GH);
    machine.put(
        "work/opencode.jsonc",
        r#"{"mcp": {"notes": {"type": "local", "command": ["notes-mcp"]}}}"#,
    );
    let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
    command.current_dir(machine.home("work"));
    let report = crate::support::command::run(command, "").code(0).json();
    for name in ["gh", "notes"] {
        assert_eq!(verdict(&report, name).0, "moves", "{report:#}");
    }
}

/// A repository may have such a link.
#[cfg(unix)]
#[test]
fn a_file_of_opencode_without_an_end_is_not_read() {
    let machine = Machine::new();
    for path in ["p/opencode.json", ".config/opencode/config.json"] {
        machine.put(path, "");
        let path = machine.home(path);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    }
    machine.put("p/opencode.jsonc", "{}");
    machine.put(user_file("opencode"), GH);
    let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
    command.current_dir(machine.home("p"));
    let outcome = crate::support::command::run(command, "");
    assert!(outcome.stdout.contains("/p/opencode.json\""), "{outcome}");
}

#[cfg(unix)]
#[test]
fn a_file_of_a_project_that_is_a_link_to_nowhere_is_not_missing() {
    for file in ["opencode.json", "opencode.jsonc", ".opencode/opencode.json"] {
        let machine = Machine::new();
        machine.put(user_file("opencode"), GH);
        machine.put("p/.git/HEAD", "");
        machine.put("p/.opencode/x", "");
        std::os::unix::fs::symlink("/gone/x", machine.home("p").join(file)).unwrap();
        let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
        command.current_dir(machine.home("p"));
        let outcome = crate::support::command::run(command, "");
        let unreadable = outcome.json()["unreadable"].to_string();
        assert!(unreadable.contains(&format!("/p/{file}\"")), "{outcome}");
        let gh = machine.servers()["gh"].to_string();
        assert!(
            gh == "null" || gh.contains("projects"),
            "{file}: {gh} {outcome}"
        );
    }
}

#[test]
fn a_file_with_the_entry_that_cannot_be_read_is_named() {
    const OWN: &str = ".continue/mcpServers/mcpzip.json";
    let machine = Machine::new();
    machine.put(user_file("continue"), "name: x\nversion: 0.0.1\n");
    let broken = machine.put(OWN, r#"{"mcpServers": {"mcpzip": {"command": "mcpzip","#);
    let before = machine.everything();
    for command in ["connect", "disconnect"] {
        let told = machine.run(&[command, "continue"]).code(1);
        assert!(told.stderr.contains(broken.to_str().unwrap()), "{told}");
    }
    assert_eq!(machine.everything(), before);
    // One of other servers is nothing to them. An entry in a file of its own, which goes, has served the other file.
    machine.put(OWN, r#"{"mcpServers": {"other": "#);
    let _ = machine.run(&["connect", "continue"]).code(0);
    let _ = machine.run(&["disconnect", "continue"]).code(0);
    let machine = Machine::new();
    machine.put(
        user_file("continue"),
        "name: x\nversion: 0.0.1\nmcpServers:\n  - name: gh\n    command: gh-mcp\n",
    );
    let _ = machine.run(&["connect", "continue"]).code(0);
    machine.migrate(&[]);
    let told = machine.run(&["disconnect", "continue"]).code(0);
    assert!(told.stderr.contains("gives them back"), "{told}");
}
