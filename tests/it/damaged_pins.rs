//! Records of pins that are damaged or lost: nothing that a person rejected is free, and a person learns what to do.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::pins::{entry_of, is_held, under};
use crate::support::script::echo;
#[cfg(unix)]
use crate::support::terminal::Terminal;
use crate::support::{Client, Server, Setup, until};

/// The record of a server.
fn record(setup: &Setup, server: &str) -> PathBuf {
    let files = std::fs::read_dir(setup.home().path("state/pins/v2")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let is_record = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with(&format!("{server}~")) && !name.contains("pending")
    };
    files.find(is_record).unwrap()
}

/// A server `web` that was listed, and of whose tools `read` was rejected.
fn rejected(trust: &str) -> Setup {
    let setup = under(
        trust,
        Server::new().tool("read", [echo()]).tool("list", [echo()]),
    );
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    client.finish();
    let record = record(&setup, "web");
    let mut text: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    text["rejected"] = json!(["read"]);
    std::fs::write(&record, text.to_string()).unwrap();
    setup
}

#[track_caller]
fn works(client: &mut Client, tool: &str) {
    let answer = client.execute_with(tool, "{}").value();
    assert_ne!(answer["isError"], true, "{answer}");
}

fn forget_lists(setup: &Setup) {
    std::fs::remove_dir_all(setup.home().path("cache/catalog")).unwrap();
}

#[test]
fn a_damaged_record_holds_all_tools_after_a_listing_and_a_person_learns_what_to_do() {
    let setup = rejected("report");
    let record = record(&setup, "web");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, &text[..text.len() - 1]).unwrap();
    forget_lists(&setup);
    let mut client = setup.connect();
    for _ in 0..2 {
        is_held(&mut client, "web__read");
        is_held(&mut client, "web__list");
        assert!(!client.search("read").contains("web__read"));
        client.call("proxy_refresh", "{}").text();
    }
    assert_eq!(setup.home().count("web", r#""method":"tools/call""#), 0);
    client.finish();
    let file = record.file_name().unwrap().to_string_lossy().into_owned();
    let told = |text: &str| {
        assert!(
            text.contains(&file) && text.contains("`mcpzip approve web` at a terminal"),
            "{text}"
        );
    };
    told(&setup.run(&["approve"]).code(0).stdout);
    for command in ["approve", "reject"] {
        let refused = setup.run(&[command, "web"]).code(1);
        told(&refused.stderr);
        assert!(!refused.stdout.contains("nothing waits"), "{refused}");
    }
    let report = setup.run(&["doctor", "--json"]).stdout;
    assert!(report.contains("record-damaged"), "{report}");
    told(&report);
    let status = setup.run(&["status", "--json"]).code(0).stdout;
    assert!(
        status.contains(&file) && status.contains("mcpzip doctor web"),
        "{status}"
    );
    // One command repairs it, and the person decides on each tool.
    #[cfg(unix)]
    {
        let Some(terminal) = Terminal::run(&setup.command(&["approve", "web", "list"])) else {
            return;
        };
        let asked = terminal.shows("Put a new record in its place?");
        assert!(asked.contains(&file), "{asked}");
        terminal.types("y");
        let asked = terminal.shows("Show this difference to agents");
        assert!(asked.contains("is lost"), "{asked}");
        terminal.types("y");
        terminal.shows("[exit 0]");
        let mut client = setup.connect();
        works(&mut client, "web__list");
        is_held(&mut client, "web__read");
        client.finish();
        assert_eq!(
            std::fs::read_to_string(record.with_extension("json.damaged")).unwrap(),
            text[..text.len() - 1]
        );
        // A rejected tool stays held back, and the others count as under this `trust` again.
        decides(&setup, &["reject", "web", "read"]);
        decides(&setup, &["approve", "web"]);
        let mut client = setup.connect();
        works(&mut client, "web__list");
        is_held(&mut client, "web__read");
        client.finish();
        let waiting = setup.run(&["status", "--json"]).code(0).stdout;
        assert!(!waiting.contains("\"quarantined\": true"), "{waiting}");
        assert!(
            !setup
                .run(&["doctor", "--json"])
                .stdout
                .contains("record-damaged")
        );
    }
}

/// Answers every question of a command: with no where it is about what was rejected before.
#[cfg(unix)]
fn decides(setup: &Setup, arguments: &[&str]) {
    let terminal = Terminal::run(&setup.command(arguments)).unwrap();
    let asked = terminal.shows("[y/N]");
    terminal.types(if asked.contains("You rejected") {
        "n"
    } else {
        "y"
    });
    terminal.shows("[exit ");
}

#[test]
fn a_server_whose_record_is_gone_is_held_until_a_person_decides() {
    for trust in ["report", "pin"] {
        let setup = rejected(trust);
        std::fs::remove_file(record(&setup, "web")).unwrap();
        let mut client = setup.connect();
        for _ in 0..2 {
            is_held(&mut client, "web__read");
            is_held(&mut client, "web__list");
            client.call("proxy_refresh", "{}").text();
        }
        client.finish();
        let report = setup.run(&["doctor", "--json"]).stdout;
        assert!(
            report.contains("record-damaged") && report.contains("is gone"),
            "{report}"
        );
        // A server that was never there is usable at once.
        let setup = setup.server("free", Server::new().tool("read", [echo()]));
        let mut client = setup.connect();
        works(&mut client, "free__read");
        client.finish();
        #[cfg(unix)]
        {
            let Some(terminal) = Terminal::run(&setup.command(&["approve", "web"])) else {
                continue;
            };
            terminal.shows("Put a new record in its place?");
            terminal.types("y");
            terminal.shows("Show these 2 differences to agents");
            terminal.types("y");
            terminal.shows("[exit 0]");
            let mut client = setup.connect();
            works(&mut client, "web__read");
            client.finish();
        }
    }
}

#[test]
fn doctor_names_all_damaged_files_at_once() {
    let setup = rejected("pin");
    let record = record(&setup, "web");
    let directory = record.parent().unwrap();
    let files = std::fs::read_dir(directory).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let is_json = |file: &PathBuf| file.extension().is_some_and(|it| it == "json");
    let files: Vec<PathBuf> = files.filter(is_json).collect();
    assert!(files.len() >= 2, "{files:?}");
    for file in &files {
        std::fs::write(file, "{").unwrap();
    }
    let report = setup.run(&["doctor", "--json"]).stdout;
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        assert!(report.contains(&name), "{name}: {report}");
    }
    assert!(report.contains("mcpzip approve web"), "{report}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_record_that_cannot_be_opened_for_the_moment_is_not_damaged_and_tried_again() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let setup = under("report", Server::new().tool("list", [echo()])).alone();
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    works(&mut client, "web__list");
    let listings = setup.home().count("web", "tools/list");
    let process = Pid::from_raw(client.process().cast_signed());
    let before = rustix::process::getrlimit(Resource::Nofile);
    let limit_of = |current: u64| {
        let limit = Rlimit {
            current: Some(current),
            maximum: before.maximum,
        };
        prlimit(process, Resource::Nofile, limit).unwrap();
    };
    limit_of(3);
    // As after a decision in another process.
    let record = record(&setup, "web");
    let other = record.with_extension("other");
    std::fs::copy(&record, &other).unwrap();
    std::fs::rename(&other, &record).unwrap();
    let held = until("a tool is held back", || {
        let answer = client.execute_with("web__list", "{}").value();
        let text = answer.to_string();
        text.contains("held back").then_some(text)
    });
    assert!(
        held.contains("could not be opened: Too many open files"),
        "{held}"
    );
    assert!(!held.contains("damaged"), "{held}");
    limit_of(before.current.unwrap());
    until("the tool works again", || {
        let answer = client.execute_with("web__list", "{}").value();
        (!answer.to_string().contains("held back")).then_some(())
    });
    assert_eq!(setup.home().count("web", "tools/list"), listings);
    client.finish();
}

#[test]
fn a_list_without_a_record_is_fetched_again_before_its_tools_are_used() {
    let setup = rejected("report");
    // As after a kill between the list of a server with a new name and its record.
    let entry = entry_of(&setup, "web");
    let setup = setup.without("web").entry("memo", &entry.to_string());
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    is_held(&mut client, "memo__read");
    client.finish();
    std::fs::remove_file(record(&setup, "memo")).unwrap();
    for file in std::fs::read_dir(setup.home().path("state/pins/v2")).unwrap() {
        let path = file.unwrap().path();
        if path.to_string_lossy().contains("pending") {
            std::fs::remove_file(path).unwrap();
        }
    }
    // Its name is noted after its record.
    for file in std::fs::read_dir(setup.home().path("state/pins/v2")).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("~memo~") {
            std::fs::remove_file(&path).unwrap();
        } else if name.starts_with('~') && name.ends_with(".json") {
            let mut stems: Vec<String> = serde_json::from_str(&text).unwrap();
            stems.retain(|stem| !stem.starts_with("memo~"));
            std::fs::write(&path, json!(stems).to_string()).unwrap();
        }
    }
    let mut client = setup.connect();
    assert!(!client.search("read").contains("memo__read"));
    is_held(&mut client, "memo__read");
    works(&mut client, "memo__list");
    client.finish();
}

#[cfg(unix)]
#[test]
fn a_server_that_is_held_for_the_lost_record_of_another_name_is_freed_by_a_decision() {
    let mut setup = rejected("report");
    std::fs::remove_file(record(&setup, "web")).unwrap();
    let entry = entry_of(&setup, "web").to_string();
    let mut before = "web";
    for name in ["one", "two"] {
        setup = setup.without(before).entry(name, &entry);
        before = name;
        let mut client = setup.connect();
        client.call("proxy_refresh", "{}").text();
        is_held(&mut client, &format!("{name}__read"));
        client.finish();
        let Some(terminal) = Terminal::run(&setup.command(&["approve", name])) else {
            return;
        };
        let mut asked = terminal.shows("[y/N]");
        if asked.contains("Put a new record in its place?") {
            terminal.types("y");
            asked = terminal.shows("to agents from now on?");
        }
        assert!(asked.contains("Show these 2 differences"), "{asked}");
        terminal.types("y");
        terminal.shows("[exit 0]");
        let mut client = setup.connect();
        works(&mut client, &format!("{name}__list"));
        client.finish();
    }
}

#[test]
fn a_record_of_another_form_is_damaged() {
    let setup = rejected("report");
    let record = record(&setup, "web");
    for text in ["{}", "[]", r#"{"version":2}"#] {
        std::fs::write(&record, text).unwrap();
        let pending = record.with_extension("pending.json");
        let _ = std::fs::remove_file(pending);
        let mut client = setup.connect();
        client.call("proxy_refresh", "{}").text();
        is_held(&mut client, "web__read");
        client.finish();
        let report = setup.run(&["doctor", "--json"]).stdout;
        assert!(report.contains("record-damaged"), "{text}: {report}");
    }
}

/// The files of pins whose names end so.
fn files(setup: &Setup, is_meant: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let files = std::fs::read_dir(setup.home().path("state/pins/v2")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files.filter(|path| is_meant(&name(path))).collect()
}

fn is_list(name: &str) -> bool {
    name.starts_with('~') && name.ends_with(".json")
}

fn is_mark(name: &str) -> bool {
    name.ends_with(".seen")
}

#[test]
fn a_damaged_list_holds_only_servers_of_its_program() {
    let setup = rejected("report");
    for list in files(&setup, is_list) {
        std::fs::write(list, "{").unwrap();
    }
    let other = setup.server("other", Server::new().tool("read", [echo()]));
    let mut client = other.connect();
    client.call("proxy_refresh", "{}").text();
    works(&mut client, "other__read");
    works(&mut client, "web__list");
    is_held(&mut client, "web__read");
    client.finish();
}

#[cfg(unix)]
#[test]
fn the_repair_of_one_server_frees_nothing_of_another() {
    for (is_older, is_other) in [(false, false), (true, false), (true, true)] {
        let setup = rejected("report");
        std::fs::remove_file(record(&setup, "web")).unwrap();
        for pending in files(&setup, |name| name.ends_with(".pending.json")) {
            std::fs::remove_file(pending).unwrap();
        }
        for list in files(&setup, is_list) {
            std::fs::write(list, "{").unwrap();
        }
        if is_older {
            for mark in files(&setup, is_mark) {
                std::fs::remove_file(mark).unwrap();
            }
        }
        let entry = entry_of(&setup, "web").to_string();
        let setup = match is_other {
            true => setup.server("new", Server::new().tool("read", [echo()])),
            false => setup.entry("new", &entry),
        };
        let mut client = setup.connect();
        client.call("proxy_refresh", "{}").text();
        is_held(&mut client, "web__read");
        is_held(&mut client, "new__read");
        client.finish();
        let Some(terminal) = Terminal::run(&setup.command(&["approve", "new"])) else {
            continue;
        };
        terminal.shows("Put a new record in its place?");
        terminal.types("y");
        terminal.shows("[y/N]");
        terminal.types("n");
        terminal.shows("[exit ");
        let mut client = setup.connect();
        client.call("proxy_refresh", "{}").text();
        is_held(&mut client, "web__read");
        is_held(&mut client, "web__list");
        client.finish();
    }
}

#[test]
fn records_of_an_older_version_get_their_marks_and_are_missed_as_before() {
    let setup = rejected("report");
    for mark in files(&setup, is_mark) {
        std::fs::remove_file(mark).unwrap();
    }
    let _ = setup.run(&["status"]);
    assert!(!files(&setup, is_mark).is_empty());
    // From now on, a list is not needed for that.
    for list in files(&setup, is_list) {
        std::fs::remove_file(list).unwrap();
    }
    std::fs::remove_file(record(&setup, "web")).unwrap();
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    is_held(&mut client, "web__read");
    is_held(&mut client, "web__list");
    client.finish();
}

/// The command line of `web`, and the rest of its entry.
fn line_of(setup: &Setup) -> (Vec<String>, Value) {
    let entry = entry_of(setup, "web");
    let args = entry["args"].as_array().into_iter().flatten();
    let words = [&entry["command"]].into_iter().chain(args);
    let line = words.map(|word| word.as_str().unwrap().to_owned());
    (line.collect(), entry)
}

/// The entry of `web` as one whose program a shell makes.
fn unknown_entry(setup: &Setup) -> String {
    let (line, mut entry) = line_of(setup);
    let text = format!("p={}; exec $p \"$@\"", line[0]);
    let args = [&["-c".to_owned(), text, "sh".to_owned()], &line[1..]].concat();
    entry["command"] = json!("sh");
    entry["args"] = json!(args);
    entry.to_string()
}

fn refreshed(setup: &Setup) -> Client {
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    client
}

#[test]
fn what_was_rejected_is_rejected_under_a_program_that_is_not_known() {
    let setup = rejected("report");
    let entry = unknown_entry(&setup);
    let setup = setup.entry("memo", &entry);
    let mut client = refreshed(&setup);
    is_held(&mut client, "memo__read");
    works(&mut client, "memo__list");
    client.finish();
    let report = setup.run(&["doctor", "--json"]).stdout;
    assert!(report.contains("server-program-unknown"), "{report}");
}

#[test]
fn a_program_that_is_not_known_is_held_while_it_is_not_known_what_was_rejected() {
    for is_gone in [false, true] {
        let setup = rejected("report");
        refreshed(&setup).finish();
        let lost = record(&setup, "web");
        match is_gone {
            true => std::fs::remove_file(&lost).unwrap(),
            false => std::fs::write(&lost, "{").unwrap(),
        }
        let entry = unknown_entry(&setup);
        let setup = setup.entry("memo", &entry);
        let setup = setup.server("free", Server::new().tool("read", [echo()]));
        let mut client = refreshed(&setup);
        is_held(&mut client, "memo__read");
        is_held(&mut client, "memo__list");
        // Others are not concerned.
        works(&mut client, "free__read");
        client.finish();
        let report = setup.run(&["doctor", "memo", "--json"]).stdout;
        let file = lost.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            report.contains("record-damaged") && report.contains(&file),
            "{report}"
        );
        #[cfg(unix)]
        {
            let Some(terminal) = Terminal::run(&setup.command(&["approve", "memo", "list"])) else {
                continue;
            };
            terminal.shows("Put a new record in its place?");
            terminal.types("y");
            terminal.shows("Show this difference to agents");
            terminal.types("y");
            terminal.shows("[exit 0]");
            let mut client = refreshed(&setup);
            works(&mut client, "memo__list");
            is_held(&mut client, "memo__read");
            is_held(&mut client, "web__list");
            client.finish();
        }
    }
}

#[test]
fn what_was_rejected_is_rejected_under_a_name_that_was_another_programs() {
    for is_known in [true, false] {
        let setup = rejected("report");
        let setup = setup.server(
            "memo",
            Server::new().tool("read", [echo()]).tool("list", [echo()]),
        );
        let mut client = refreshed(&setup);
        works(&mut client, "memo__read");
        client.finish();
        let entry = match is_known {
            true => line_of(&setup).1.to_string(),
            false => unknown_entry(&setup),
        };
        let setup = setup.entry("memo", &entry);
        let mut client = refreshed(&setup);
        is_held(&mut client, "memo__read");
        works(&mut client, "memo__list");
        client.finish();
    }
}

#[cfg(unix)]
#[test]
fn what_was_rejected_is_rejected_under_a_name_that_became_its_programs_in_two_steps() {
    let setup = rejected("report");
    let list = Server::new().tool("read", [echo()]).tool("list", [echo()]);
    let setup = setup.server("memo", list);
    let mut client = refreshed(&setup);
    works(&mut client, "memo__read");
    client.finish();
    let last = entry_of(&setup, "web");
    // One that starts both of them.
    let mut both = entry_of(&setup, "memo");
    let text = |entry: &Value| {
        let args = entry["args"].as_array().into_iter().flatten();
        let words = [&entry["command"]].into_iter().chain(args);
        let words: Vec<_> = words
            .map(|word| format!("'{}'", word.as_str().unwrap()))
            .collect();
        words.join(" ")
    };
    let text = format!("{}; {}", text(&both), text(&last));
    both["command"] = json!("sh");
    both["args"] = json!(["-c", text]);
    let setup = setup.entry("memo", &both.to_string());
    refreshed(&setup).finish();
    let setup = setup.entry("memo", &last.to_string());
    let mut client = refreshed(&setup);
    is_held(&mut client, "memo__read");
    works(&mut client, "memo__list");
    client.finish();
}

#[cfg(unix)]
#[test]
fn a_program_in_a_directory_is_the_same_by_its_path_and_after_cd() {
    for directory in ["bin", "lib"] {
        let setup = rejected("report");
        let (line, mut entry) = line_of(&setup);
        let directory = setup.home().path(directory);
        std::fs::create_dir(&directory).unwrap();
        std::os::unix::fs::symlink(&line[0], directory.join("srv")).unwrap();
        entry["trust"] = json!("quarantine");
        entry["command"] = json!(directory.join("srv"));
        let setup = setup.entry("q", &entry.to_string());
        let words = line[1..].join(" ");
        entry["trust"] = json!("report");
        entry["command"] = json!("sh");
        entry["args"] = json!(["-c", format!("cd {} && ./srv {words}", directory.display())]);
        let setup = setup.entry("v", &entry.to_string());
        let mut client = setup.connect();
        client.call("proxy_refresh", "{}").text();
        is_held(&mut client, "v__list");
        client.finish();
    }
}
