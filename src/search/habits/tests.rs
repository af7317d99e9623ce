use std::fs;
use std::path::Path;

use super::*;
use crate::day::Day;
use crate::tool::{ServerName, ToolName};

const NEED: &str = "show the open tickets";

fn hit(name: &str, score: f32) -> Hit {
    let (server, tool) = name.split_once("__").unwrap();
    Hit {
        server: ServerName::new(server).unwrap(),
        tool: ToolName::new(tool).unwrap(),
        score,
    }
}

fn hits() -> Vec<Hit> {
    vec![
        hit("github__list_issues", 0.7),
        hit("jira__search", 0.6),
        hit("linear__issues", 0.3),
    ]
}

/// A search that showed all hits, and a call after it.
fn learn(habits: &Habits, query: &str, called: &str) -> bool {
    habits.searched(query, &hits());
    call(habits, called)
}

fn call(habits: &Habits, called: &str) -> bool {
    let (server, tool) = called.split_once("__").unwrap();
    habits.called(server, tool, || true)
}

fn order(habits: &Habits, query: &str) -> Vec<String> {
    let mut hits = hits();
    habits.raise(query, &mut hits);
    hits.iter()
        .map(|hit| format!("{}__{}", hit.server, hit.tool))
        .collect()
}

#[track_caller]
fn is_first(habits: &Habits, query: &str, name: &str) {
    assert_eq!(order(habits, query)[0], name, "{query}");
}

fn of(root: &Path, identity: Option<&str>) -> Arc<Habits> {
    HabitsOfAll::new(Some(root.to_owned())).of(identity)
}

#[test]
fn a_tool_that_was_called_after_a_search_is_raised_for_such_needs_only() {
    let habits = Habits::in_memory();
    assert_eq!(habits.considered(5), None);
    is_first(&habits, NEED, "github__list_issues");
    for _ in 0..3 {
        learn(&habits, NEED, "jira__search");
    }
    assert_eq!(habits.considered(5), Some(CONSIDERED));
    is_first(&habits, NEED, "jira__search");
    is_first(&habits, "which tickets are open", "jira__search");
    is_first(
        &habits,
        "send a letter to the tax office",
        "github__list_issues",
    );
    // A tool that scores far less stays behind.
    for _ in 0..9 {
        learn(&habits, "close the window of the shop", "linear__issues");
    }
    is_first(
        &habits,
        "close the window of the shop",
        "github__list_issues",
    );
}

#[test]
fn a_raise_changes_neither_which_tools_are_found_nor_an_exact_name() {
    let habits = Habits::in_memory();
    for _ in 0..9 {
        learn(&habits, NEED, "jira__search");
    }
    let mut none = Vec::new();
    habits.raise(NEED, &mut none);
    assert!(none.is_empty());
    let mut one = vec![hit("github__list_issues", 0.1)];
    habits.raise(NEED, &mut one);
    assert_eq!(one, [hit("github__list_issues", 0.1)]);
    let mut named = vec![hit("github__list_issues", EXACT), hit("jira__search", 2.0)];
    habits.raise(NEED, &mut named);
    assert_eq!(named[0], hit("github__list_issues", EXACT));
    let raise = named[1].score - 2.0;
    assert!(raise > 0.0 && raise <= 2.0 * RAISE, "{raise}");
}

#[test]
fn a_call_teaches_once_and_only_after_a_search_that_showed_the_tool() {
    let habits = Habits::in_memory();
    assert!(!call(&habits, "jira__search"));
    habits.searched(NEED, &hits()[..1]);
    call(&habits, "jira__search");
    assert_eq!(habits.considered(5), None, "it was not shown");
    habits.searched(NEED, &hits());
    habits.called("jira", "search", || false);
    assert_eq!(habits.considered(5), None, "it failed");
    learn(
        &habits,
        "show the tickets, then write a letter",
        "jira__search",
    );
    habits.searched(NEED, &[]);
    assert_eq!(
        habits.considered(5),
        Some(CONSIDERED),
        "the search before is the one that showed it"
    );
    let count = || habits.state.lock().table.clone();
    let before = count();
    call(&habits, "jira__search");
    assert_eq!(count(), before, "each call of a loop would count");
}

#[test]
fn a_query_with_several_needs_teaches_nothing() {
    let habits = Habits::in_memory();
    learn(
        &habits,
        "show the tickets, then write a letter",
        "jira__search",
    );
    assert_eq!(habits.considered(5), None);
    // But each of its needs may be one that was learnt.
    for _ in 0..3 {
        learn(&habits, NEED, "jira__search");
    }
    is_first(
        &habits,
        "write a letter, then show the open tickets",
        "jira__search",
    );
}

#[test]
fn habits_last_and_are_each_persons_own() {
    let directory = tempfile::tempdir().unwrap();
    let anna = of(directory.path(), Some("anna"));
    for _ in 0..3 {
        assert!(learn(&anna, NEED, "jira__search"));
    }
    anna.flush();
    assert!(!anna.is_unwritten());
    let again = of(directory.path(), Some("anna"));
    again.read();
    is_first(&again, NEED, "jira__search");
    for other in [Some("ben"), None] {
        let other = of(directory.path(), other);
        other.read();
        is_first(&other, NEED, "github__list_issues");
        assert_eq!(other.considered(5), None);
    }
    assert_eq!(
        learnt(directory.path()),
        Learnt {
            tools: 1,
            people: 1
        }
    );
    // Neither a word nor the person can be read there.
    for entry in fs::read_dir(directory.path().join("v1")).unwrap().flatten() {
        let text = format!(
            "{:?} {}",
            entry.path(),
            fs::read_to_string(entry.path()).unwrap()
        );
        for word in ["ticket", "open", "show", "anna"] {
            assert!(!text.contains(word), "{text}");
        }
    }
}

#[test]
fn processes_of_one_person_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (of(directory.path(), None), of(directory.path(), None));
    learn(&one, NEED, "jira__search");
    one.flush();
    other.read();
    learn(&other, NEED, "jira__search");
    // Learnt while the file of the other is older.
    learn(&one, NEED, "jira__search");
    other.flush();
    one.flush();
    let third = of(directory.path(), None);
    third.read();
    assert_eq!(third.state.lock().table, one.state.lock().table);
    is_first(&third, NEED, "jira__search");
}

#[test]
fn what_is_forgotten_does_not_come_back_from_a_running_process() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(
        forget(&directory.path().join("nothing")).unwrap(),
        Learnt::default()
    );
    let running = of(directory.path(), None);
    for _ in 0..3 {
        learn(&running, NEED, "jira__search");
    }
    running.flush();
    learn(&running, NEED, "jira__search");
    let newer = directory.path().join("v2");
    fs::create_dir(&newer).unwrap();
    fs::write(newer.join("own.json"), "{}").unwrap();
    assert_eq!(
        forget(directory.path()).unwrap(),
        Learnt {
            tools: 1,
            people: 1
        }
    );
    assert!(!newer.exists());
    running.flush();
    assert!(!running.is_unwritten());
    is_first(&running, NEED, "github__list_issues");
    assert_eq!(learnt(directory.path()), Learnt::default());
    // It learns again.
    for _ in 0..3 {
        learn(&running, NEED, "jira__search");
    }
    running.flush();
    assert_eq!(learnt(directory.path()).tools, 1);
    is_first(&running, NEED, "jira__search");
    // A directory that is removed is forgotten as well.
    fs::remove_dir_all(directory.path().join("v1")).unwrap();
    running.read();
    is_first(&running, NEED, "github__list_issues");
}

#[test]
fn a_damaged_file_is_set_aside_and_a_salt_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("v1");
    let fill = || {
        let habits = of(directory.path(), None);
        habits.read();
        for _ in 0..3 {
            learn(&habits, NEED, "jira__search");
        }
        habits.flush();
        is_first(&habits, NEED, "jira__search");
    };
    fill();
    let sound = fs::read_to_string(files.join("own.json")).unwrap();
    for damage in [
        "",
        "{\"salt\":",
        "[]",
        &sound.replace(":3.0", ":1e30"),
        &sound.replace("20", "x"),
    ] {
        assert_ne!(damage, sound);
        fs::write(files.join("own.json"), damage).unwrap();
        fill();
        assert_eq!(
            fs::read_to_string(files.join("own.damaged")).unwrap(),
            damage
        );
    }
    for damage in ["", "zz"] {
        fs::write(files.join("salt"), damage).unwrap();
        fill();
    }
    forget(directory.path()).unwrap();
    assert!(!files.join("own.damaged").exists());
}

/// A link to itself cannot be opened, also not by root, for whom permissions do not count.
#[cfg(unix)]
#[test]
fn a_file_that_the_system_does_not_open_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("v1");
    let habits = of(directory.path(), None);
    learn(&habits, NEED, "jira__search");
    habits.flush();
    let own = files.join("own.json");
    let sound = fs::read(&own).unwrap();
    fs::remove_file(&own).unwrap();
    std::os::unix::fs::symlink("own.json", &own).unwrap();
    learn(&habits, NEED, "jira__search");
    habits.flush();
    assert!(habits.is_unwritten());
    assert!(!files.join("own.damaged").exists());
    assert!(fs::symlink_metadata(&own).unwrap().is_symlink());
    fs::remove_file(&own).unwrap();
    fs::write(&own, sound).unwrap();
    habits.flush();
    assert!(!habits.is_unwritten());
}

#[test]
fn counts_are_bounded_and_fade() {
    let mut table = Table::default();
    for tool in 0..1_000u16 {
        let lesson = Lesson {
            server: format!("server{}", tool % 7),
            tool: format!("tool{tool}"),
            words: (tool..tool + 12).map(|word| word & 0xfff).collect(),
        };
        table.learn(&lesson);
    }
    for word in 0..500 {
        let (server, tool) = ("server".to_owned(), "tool".to_owned());
        let words = vec![word, word + 1_000];
        table.learn(&Lesson {
            server,
            tool,
            words,
        });
    }
    assert_eq!(table.len(), 400);
    assert!(table.is_sound());
    let size = serde_json::to_string(&table).unwrap().len();
    assert!(size < 200_000, "{size}");
    let (today, mut faded) = (Day::today(), table.clone());
    faded.age(today, today.plus(30));
    assert_eq!(faded.len(), 400);
    faded.age(today, today.plus(60));
    assert!(faded.is_empty());
}

#[test]
fn a_very_long_name_teaches_nothing() {
    let habits = Habits::in_memory();
    let tool = "x".repeat(LONGEST_NAME);
    let shown = [hit(&format!("hub__{tool}"), 0.7)];
    habits.searched(NEED, &shown);
    assert!(!habits.called("hub", &tool, || true));
    assert_eq!(habits.considered(5), None);
}
