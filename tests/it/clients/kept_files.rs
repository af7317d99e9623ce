//! Undo looks at the copies of a run before it writes anything, and says all that it changes.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::case::{Machine, user_file};

const CLAUDE: &str = r#"{
  "numStartups": 7,
  "mcpServers": {"db": {"command": "db-mcp"}, "cc": {"command": "cc-mcp"}}
}
"#;
const CURSOR: &str = r#"{"mcpServers": {"cu": {"command": "cu-mcp"}}}"#;

/// A home of which two clients came over, and the directory of the run.
fn migrated() -> (Machine, PathBuf) {
    let machine = Machine::new();
    machine.put(user_file("claude-code"), CLAUDE);
    machine.put(user_file("cursor"), CURSOR);
    machine.migrate(&[]);
    let runs = machine.run(&["undo", "--list", "--json"]).code(0).json();
    let directory = PathBuf::from(runs[0]["backups"].as_str().unwrap());
    (machine, directory)
}

fn file(directory: &std::path::Path, end: &str) -> PathBuf {
    let files = fs::read_dir(directory).unwrap().flatten();
    let mut paths = files.map(|entry| entry.path());
    paths
        .find(|path| path.to_string_lossy().ends_with(end))
        .unwrap()
}

/// Takes the digests away, as in the records of older versions.
fn age(directory: &std::path::Path) {
    let path = directory.join("record.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for file in record["files"].as_array_mut().unwrap() {
        file.as_object_mut().unwrap().remove("digest");
    }
    fs::write(&path, record.to_string()).unwrap();
}

fn damage(path: &std::path::Path, how: &str) {
    fs::remove_file(path).unwrap();
    match how {
        "gone" => {}
        "directory" => fs::create_dir(path).unwrap(),
        #[cfg(unix)]
        "link" => std::os::unix::fs::symlink("/gone/file", path).unwrap(),
        text => fs::write(path, text).unwrap(),
    }
}

#[test]
fn a_damaged_copy_is_not_restored() {
    let mut ways = vec!["", "{", "null", "{}", "gone", "directory"];
    if cfg!(unix) {
        ways.push("link");
    }
    for how in ways {
        for is_old in [false, true] {
            let (machine, directory) = migrated();
            if is_old {
                age(&directory);
            }
            let copy = file(&directory, "claude.json.before");
            damage(&copy, how);
            let report = machine.run(&["doctor", "--json"]).stdout;
            let name = copy.file_name().unwrap().to_str().unwrap();
            assert!(
                report.contains("run-damaged") && report.contains(name),
                "{how}: {report}"
            );
            // Without the client's file there is nothing in which the values could be put back.
            let now = machine.read(user_file("claude-code"));
            fs::remove_file(machine.home(user_file("claude-code"))).unwrap();
            let before = machine.everything();
            let refused = machine.run(&["undo"]).code(1);
            for part in ["nothing was changed", name, "mcp.json.before"] {
                assert!(refused.stderr.contains(part), "{how}: {part}: {refused}");
            }
            assert_eq!(machine.everything(), before, "{how}: {refused}");

            machine.put(user_file("claude-code"), &now);
            let undone = machine.undo();
            let restored: Value =
                serde_json::from_str(&machine.read(user_file("claude-code"))).unwrap();
            let expected: Value = serde_json::from_str(CLAUDE).unwrap();
            assert_eq!(restored, expected, "{how}: {undone:#}");
            let outcomes = undone["files"].as_array().unwrap();
            let is_said = outcomes.iter().any(|it| it["outcome"] == "values");
            assert!(is_said, "{how}: {undone:#}");
            assert_eq!(machine.read(user_file("cursor")), CURSOR);
            assert_eq!(machine.servers(), json!({}), "{how}: {undone:#}");
        }
    }
}

#[test]
fn a_copy_of_what_the_run_made_is_not_needed() {
    let (machine, directory) = migrated();
    for end in ["config.json.after", "claude.json.after"] {
        fs::remove_file(file(&directory, end)).unwrap();
    }
    let undone = machine.undo();
    assert_eq!(machine.read(user_file("claude-code")), CLAUDE, "{undone:#}");
    assert_eq!(machine.read(user_file("cursor")), CURSOR);
    assert!(!machine.setup().config_path().exists(), "{undone:#}");
}

#[test]
fn a_run_without_its_record_is_named() {
    let (machine, directory) = migrated();
    fs::remove_file(directory.join("record.json")).unwrap();
    let run = directory.file_name().unwrap().to_str().unwrap();
    let report = machine.run(&["doctor", "--json"]).stdout;
    assert!(
        report.contains("run-damaged") && report.contains(run),
        "{report}"
    );
    let refused = machine.run(&["undo"]).code(1);
    for part in [run, "record.json", "claude.json.before"] {
        assert!(refused.stderr.contains(part), "{part}: {refused}");
    }
    let enabled = machine.run(&["disable", "db"]).code(0);
    let enabled = format!("{enabled}{}", machine.run(&["enable", "db"]));
    assert!(enabled.contains("record.json"), "{enabled}");
}

#[test]
fn an_undo_names_all_that_it_removes_in_any_order() {
    for is_from_the_oldest in [true, false] {
        let machine = Machine::new();
        let db = r#""db": {"command": "db-mcp"}"#;
        let with = |other: &str| match other {
            "" => format!(r#"{{"mcpServers": {{{db}}}}}"#),
            other => {
                format!(r#"{{"mcpServers": {{{db}, "{other}": {{"command": "{other}-mcp"}}}}}}"#)
            }
        };
        let opencode = r#"{"mcp": {"oc": {"type": "local", "command": ["oc-mcp"]}}, "permission": {"*_drop_table": "ask"}}"#;
        let files = [
            (user_file("claude-code"), with("cc")),
            (user_file("cursor"), with("cu")),
            (
                ".cursor/cli-config.json",
                r#"{"permissions": {"deny": ["Mcp(cu:rm)", "Mcp(*:wipe)"], "allow": []}}"#
                    .to_owned(),
            ),
            (user_file("opencode"), opencode.to_owned()),
            (user_file("kiro"), with("")),
        ];
        for (file, text) in &files {
            machine.put(file, text);
        }
        for client in ["claude-code", "cursor", "opencode", "kiro"] {
            machine.migrate(&["--client", client]);
        }
        let list = machine.run(&["undo", "--list", "--json"]).code(0).json();
        let runs = list.as_array().unwrap().iter();
        let mut runs: Vec<String> = runs
            .map(|run| run["id"].as_str().unwrap().to_owned())
            .collect();
        if is_from_the_oldest {
            runs.reverse();
        }
        for run in &runs {
            let before = machine.servers();
            let preview = machine.run(&["undo", run, "--dry-run"]).code(0).json();
            let undone = machine.run(&["undo", run]).code(0).json();
            let after = machine.servers();
            let gone = before.as_object().unwrap().keys();
            for name in gone.filter(|name| after[name.as_str()].is_null()) {
                let value = format!("mcpServers.{name}");
                let shown = preview["effects"].to_string();
                assert!(shown.contains(&value), "{value}: {preview:#}");
                for files in [&preview["files"], &undone["files"]] {
                    assert!(files.to_string().contains("config.json"), "{undone:#}");
                }
            }
        }
        for (file, text) in &files {
            assert_eq!(machine.read(file), *text, "{file}");
        }
        let left = machine.servers();
        assert_eq!(left, json!({}), "{is_from_the_oldest}");
    }
}

#[test]
fn servers_that_stay_after_the_last_undo_are_named() {
    let machine = Machine::new();
    let db = r#"{"mcpServers": {"db": {"command": "db-mcp"}}}"#;
    machine.put(user_file("claude-code"), db);
    machine.migrate(&[]);
    let list = machine.run(&["undo", "--list", "--json"]).code(0).json();
    let first = list[0]["id"].as_str().unwrap();
    machine.put(user_file("cursor"), db);
    machine.migrate(&[]);
    // The second run relies on the server, and then the user's own change keeps it.
    let _ = machine.run(&["undo", first]).code(0);
    let config = machine.setup().config_path();
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"db-mcp\"", "\"my-own\"")).unwrap();
    let undone = machine.run(&["undo"]).code(0);
    assert_eq!(machine.servers(), json!({ "db": { "command": "my-own" } }));
    assert!(undone.stderr.contains("`mcpzip remove db`"), "{undone}");
}

#[test]
fn a_later_run_whose_record_cannot_be_read_relies_on_every_server() {
    let machine = Machine::new();
    let gh = r#"{"mcpServers": {"gh": {"command": "gh-mcp"}}}"#;
    machine.put(user_file("claude-code"), gh);
    machine.migrate(&[]);
    machine.put(user_file("cursor"), gh);
    machine.migrate(&[]);
    let list = machine.run(&["undo", "--list", "--json"]).code(0).json();
    let [second, first] = [0, 1].map(|at| PathBuf::from(list[at]["backups"].as_str().unwrap()));
    fs::write(second.join("record.json"), "{").unwrap();
    let first = first.file_name().unwrap().to_str().unwrap();
    let preview = machine.run(&["undo", first, "--dry-run"]).code(0).json();
    let is_removed = |it: &Value| it["removed"].to_string().contains("mcpServers.gh");
    let effects = preview["effects"].as_array().unwrap();
    assert!(!effects.iter().any(is_removed), "{preview:#}");
    let undone = machine.run(&["undo", first]).code(0);
    assert!(undone.stdout.contains("mcpServers.gh"), "{undone}");
    assert_eq!(machine.read(user_file("claude-code")), gh);
    assert_eq!(machine.servers(), json!({ "gh": { "command": "gh-mcp" } }));
}

/// Refused with the file's name and without a change, in the preview as well; the run can be undone afterwards.
fn refuses(machine: &Machine, parts: &[&str]) {
    let before = machine.everything();
    for arguments in [&["undo"][..], &["undo", "--dry-run"]] {
        let refused = machine.run(arguments).code(1);
        for part in ["nothing was changed"].iter().chain(parts) {
            assert!(refused.stderr.contains(part), "{part}: {refused}");
        }
        assert_eq!(machine.everything(), before, "{refused}");
    }
}

#[cfg(unix)]
#[test]
fn an_undo_makes_nothing_behind_a_link_that_leads_nowhere() {
    use std::os::unix::fs::symlink;
    for (link, name) in [
        (user_file("claude-code"), "claude.json"),
        (".cursor", "mcp.json"),
        ("", "config.json"),
    ] {
        let (machine, _) = migrated();
        let path = match link {
            "" => machine.setup().config_path(),
            link => machine.home(link),
        };
        let (disk, off) = (machine.home("disk"), machine.home("disk.off"));
        fs::create_dir(&disk).unwrap();
        fs::rename(&path, disk.join("it")).unwrap();
        symlink(disk.join("it"), &path).unwrap();
        fs::rename(&disk, &off).unwrap();
        refuses(&machine, &["is a link to", "remove the link", name]);
        assert!(!disk.exists());
        fs::rename(&off, &disk).unwrap();
        let undone = machine.undo();
        assert_eq!(machine.read(user_file("claude-code")), CLAUDE, "{undone:#}");
        assert_eq!(machine.read(user_file("cursor")), CURSOR);
        assert_eq!(machine.servers(), json!({}), "{undone:#}");
    }
}

#[test]
fn an_undo_waits_for_a_client_file_that_can_be_edited() {
    for text in [
        &br#"{"mcpServers":{"mcpzip": {"#[..],
        b"[]",
        br#"{"mcpServers":"x"}"#,
        b"\xff",
    ] {
        let (machine, _) = migrated();
        let path = machine.home(user_file("cursor"));
        let good = fs::read(&path).unwrap();
        fs::write(&path, text).unwrap();
        refuses(&machine, &["mcp.json"]);
        fs::write(&path, good).unwrap();
        let undone = machine.undo();
        assert_eq!(machine.read(user_file("cursor")), CURSOR, "{undone:#}");
        assert_eq!(machine.servers(), json!({}), "{undone:#}");
    }
}

#[test]
fn a_preview_names_what_an_undo_keeps() {
    let (machine, _) = migrated();
    let config = machine.setup().config_path();
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"db-mcp\"", "\"my-own\"")).unwrap();
    let preview = machine.run(&["undo", "--dry-run"]).code(0).json();
    let effects = preview["effects"].as_array().unwrap();
    let kept = json!(["mcpServers.db"]);
    let config = effects.iter().find(|it| it["kept"] == kept);
    let removed = config.unwrap()["removed"].to_string();
    assert!(!removed.contains("mcpServers.db"), "{preview:#}");
}
