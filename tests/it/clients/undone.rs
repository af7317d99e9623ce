//! The words of an undo: what was put back, what was not, and where that is.

use std::fs;

use serde_json::{Value, json};

use super::case::{Machine, user_file};

const GH: &str = r#"{"mcpServers": {"gh": {"command": "gh-mcp"}}}"#;
const OTHER: &str = r#"{"mcpServers": {"gh": {"command": "other-mcp"}}}"#;

/// A home in which Cursor's server came over.
fn migrated() -> Machine {
    let machine = Machine::new();
    machine.put(user_file("cursor"), GH);
    machine.migrate(&[]);
    machine
}

/// Undoes the latest run, and gives the report and the notes.
#[track_caller]
fn undo(machine: &Machine) -> (Value, String) {
    let undone = machine.run(&["undo", "--yes"]).code(0);
    (undone.json(), undone.stderr)
}

#[test]
fn a_server_whose_name_another_has_in_its_client_now_stays_in_mcpzip() {
    let machine = migrated();
    machine.put(user_file("cursor"), OTHER);
    let (report, notes) = undo(&machine);
    assert_eq!(machine.servers(), json!({ "gh": { "command": "gh-mcp" } }));
    assert_eq!(machine.read(user_file("cursor")), OTHER);
    let said = "`gh` of Cursor is not put back into ";
    assert!(
        notes.contains(said) && notes.contains("it stays in mcpzip as `gh`"),
        "{notes}"
    );
    assert!(!notes.contains("mcpzip remove"), "{notes}");
    let left = &report["unreturned"][0];
    assert_eq!(
        (&left["server"], &left["name"], &left["in_mcpzip"]),
        (&json!("gh"), &json!("gh"), &json!(true)),
        "{report:#}"
    );
    // A later run that had it as well does not take it away.
    machine.put(user_file("kiro"), GH);
    machine.migrate(&["--client", "kiro"]);
    undo(&machine);
    assert_eq!(machine.servers(), json!({ "gh": { "command": "gh-mcp" } }));
    assert_eq!(machine.read(user_file("kiro")), GH);
}

#[test]
fn namesakes_of_one_file_are_put_back_each_in_its_place() {
    // Records of older versions have no paths of the entries.
    for is_older in [false, true] {
        let machine = Machine::new();
        let [p, q] = ["p", "q"].map(|name| machine.home(name).display().to_string());
        let gh = |command: &str| json!({ "mcpServers": { "gh": { "command": command } } });
        let mut file = gh("user-mcp");
        file["projects"] = json!({ &p: gh("p-mcp"), &q: gh("q-mcp") });
        machine.put(user_file("claude-code"), &file.to_string());
        machine.migrate(&[]);
        assert_eq!(machine.servers().as_object().unwrap().len(), 3);
        if is_older {
            let run = machine.run(&["undo", "--list", "--json"]).code(0).json();
            let path = format!("{}/record.json", run[0]["backups"].as_str().unwrap());
            let mut record: Value =
                serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            for file in record["files"].as_array_mut().unwrap() {
                file.as_object_mut().unwrap().remove("left");
            }
            fs::write(&path, record.to_string()).unwrap();
        }
        let mut edited: Value =
            serde_json::from_str(&machine.read(user_file("claude-code"))).unwrap();
        edited["mcpServers"]["gh"] = json!({ "command": "other-mcp" });
        machine.put(user_file("claude-code"), &edited.to_string());
        let (report, notes) = undo(&machine);
        let now: Value = serde_json::from_str(&machine.read(user_file("claude-code"))).unwrap();
        assert_eq!(now["projects"], file["projects"]);
        assert_eq!(now["mcpServers"]["gh"]["command"], "other-mcp");
        let left = report["unreturned"].as_array().unwrap();
        if is_older {
            assert_eq!(left.len(), 3, "{report:#}");
            continue;
        }
        assert_eq!(left.len(), 1, "{report:#}");
        assert_eq!(notes.matches("is not put back").count(), 1, "{notes}");
        let here = machine.servers();
        assert_eq!(here.as_object().unwrap().len(), 1, "{here:#}");
        let stays = &here[left[0]["name"].as_str().unwrap()];
        assert_eq!(stays["command"], "user-mcp", "{here:#}");
    }
}

#[test]
fn a_server_in_whose_place_is_no_entry_is_not_said_to_be_replaced_by_one() {
    let machine = migrated();
    machine.put(user_file("cursor"), r#"{"mcpServers": {"gh": null}}"#);
    let (_, notes) = undo(&machine);
    let said = "`gh` of Cursor is not put back into ";
    assert!(
        notes.contains(said) && notes.contains("which has another value under that name now"),
        "{notes}"
    );
}

#[test]
fn a_server_that_is_kept_for_a_run_that_cannot_be_read_is_not_said_to_go_with_its_undo() {
    let machine = migrated();
    machine.put(user_file("kiro"), GH);
    machine.migrate(&["--client", "kiro"]);
    let runs = machine.run(&["undo", "--list", "--json"]).code(0).json();
    let record = format!("{}/record.json", runs[0]["backups"].as_str().unwrap());
    fs::write(record, "{").unwrap();
    let first = runs[1]["id"].as_str().unwrap();
    let undone = machine.run(&["undo", first]).code(0);
    let said = "`gh` stays in mcpzip, as a later run, which cannot be read, may rely on it";
    assert!(undone.stderr.contains(said), "{undone}");
    assert_eq!(
        undone.json()["kept"],
        json!([{ "server": "gh", "reason": "unread run" }])
    );
    assert_eq!(machine.servers(), json!({ "gh": { "command": "gh-mcp" } }));
}

#[test]
fn a_server_that_is_in_neither_file_is_named_with_its_backup() {
    for (commands, why) in [
        (&[&["remove", "gh"][..]][..], "does not have it any more"),
        (
            &[
                &["remove", "gh"],
                &["add", "gh", "--no-check", "./another-mcp"],
            ],
            "mcpzip has another `gh`, too",
        ),
    ] {
        let machine = migrated();
        for command in commands {
            let _ = machine.run(command).code(0);
        }
        machine.put(user_file("cursor"), OTHER);
        let (report, notes) = undo(&machine);
        assert!(notes.contains(why), "{notes}");
        let left = &report["unreturned"][0];
        assert_eq!(left["in_mcpzip"], false, "{report:#}");
        let backup = fs::read_to_string(left["backup"].as_str().unwrap()).unwrap();
        assert_eq!(backup, GH);
    }
}

#[test]
fn a_server_that_was_removed_is_not_said_to_stay() {
    let machine = migrated();
    let add = ["add", "--force", "gh", "--no-check", "./another-mcp"];
    let _ = machine.run(&add).code(0);
    let _ = machine.run(&["remove", "gh"]).code(0);
    let (report, notes) = undo(&machine);
    assert!(!notes.contains("stays in mcpzip"), "{notes}");
    assert!(
        notes.contains("`gh` was removed from mcpzip since"),
        "{notes}"
    );
    assert_eq!(
        report["kept"],
        json!([{ "server": "gh", "reason": "removed" }])
    );
    let (report, notes) = undo(&machine);
    assert!(!notes.contains("`gh`"), "{notes}");
    assert_eq!(report["kept"], json!([]));
    assert_eq!(machine.read(user_file("cursor")), GH);
    assert_eq!(machine.servers(), json!({}));
}

#[test]
fn the_servers_that_an_undo_keeps_are_named_with_the_reason() {
    let machine = migrated();
    machine.put(user_file("kiro"), GH);
    machine.migrate(&["--client", "kiro"]);
    let runs = machine.run(&["undo", "--list", "--json"]).code(0).json();
    let first = runs[1]["id"].as_str().unwrap();
    let undone = machine.run(&["undo", first]).code(0);
    let said = "`gh` stays in mcpzip, as a later run relies on it";
    assert!(undone.stderr.contains(said), "{undone}");
    assert_eq!(
        undone.json()["kept"],
        json!([{ "server": "gh", "reason": "relied on" }])
    );
}

#[cfg(unix)]
#[test]
fn an_undo_that_stops_says_what_it_has_done_and_what_comes_next() {
    // The temporary file next to a file of this name cannot be made.
    let long = "n".repeat(250);
    for (client, is_first) in [("kiro", true), ("cursor", false)] {
        let machine = Machine::new();
        for client in ["cursor", "kiro"] {
            machine.put(user_file(client), GH);
        }
        machine.migrate(&[]);
        let path = machine.home(user_file(client));
        let far = path.with_file_name(&long);
        fs::rename(&path, &far).unwrap();
        std::os::unix::fs::symlink(&long, &path).unwrap();
        let runs = machine.run(&["undo", "--list", "--json"]).code(0).json();
        let id = runs[0]["id"].as_str().unwrap();
        let failed = machine.run(&["undo"]).code(1);
        let next = format!("`mcpzip undo {id}`");
        let [cursor, kiro] = ["cursor", "kiro"].map(|client| machine.home(user_file(client)));
        let said = match is_first {
            true => vec!["nothing was changed".to_owned(), kiro.display().to_string()],
            false => vec![
                format!("Put back: `{}`.", kiro.display()),
                format!("Not put back: `{}`, `", cursor.display()),
                "config.json".to_owned(),
            ],
        };
        for part in said.iter().chain([&next]) {
            assert!(failed.stderr.contains(part), "{part}: {failed}");
        }
        let reason = failed.stderr.matches("cannot be read or written");
        assert!(reason.count() <= 1, "{failed}");
        fs::remove_file(&path).unwrap();
        fs::rename(&far, &path).unwrap();
        undo(&machine);
        for path in [cursor, kiro] {
            assert_eq!(fs::read_to_string(path).unwrap(), GH);
        }
        assert_eq!(machine.servers(), json!({}));
    }
}

#[cfg(unix)]
#[test]
fn runs_behind_a_link_that_leads_nowhere_are_not_said_to_be_none() {
    let machine = migrated();
    let state = machine.setup().home().path("state");
    let away = machine.setup().home().path("away");
    fs::rename(&state, &away).unwrap();
    std::os::unix::fs::symlink("/nonexistent/state", &state).unwrap();
    for arguments in [
        &["undo"][..],
        &["undo", "--dry-run"],
        &["undo", "--list"],
        &["undo", "20260101-000000-000000"],
    ] {
        let refused = machine.run(arguments).code(1);
        for part in ["cannot be read", "is a link to `/nonexistent/state`"] {
            assert!(refused.stderr.contains(part), "{arguments:?}: {refused}");
        }
    }
    let report = machine.run(&["doctor", "--json"]).stdout;
    assert!(report.contains("run-damaged"), "{report}");
    fs::remove_file(&state).unwrap();
    fs::rename(&away, &state).unwrap();
    undo(&machine);
    assert_eq!(machine.read(user_file("cursor")), GH);
}
