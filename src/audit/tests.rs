use std::fs;
use std::path::PathBuf;

use super::*;

struct Log {
    directories: Directories,
    _home: tempfile::TempDir,
}

impl Log {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self {
            directories: Directories::below(home.path()),
            _home: home,
        }
    }

    fn open(&self) -> Arc<Audit> {
        Audit::new(self.directories.clone(), AuditOptions::default())
    }

    /// Writes calls of these tools, and syncs them.
    fn write(&self, tools: &[&str]) {
        let audit = self.open();
        for tool in tools {
            let mut event = Event::new(Kind::Call, Outcome::Ok);
            event.tool = Some(tool);
            audit.record(&event).unwrap();
        }
        audit.sync();
    }

    /// The file of today in a chain.
    fn file(&self, chain: &str) -> PathBuf {
        let days = chain::segments(&self.directories.chains.join(chain)).unwrap();
        days.last().unwrap().1.clone()
    }

    fn faults(&self) -> Vec<String> {
        let reports = verify(&self.directories).unwrap();
        reports
            .into_iter()
            .flat_map(|report| report.faults)
            .collect()
    }

    fn tools(&self) -> Vec<String> {
        let mut reader = Reader::new(&self.directories.chains, Filter::default());
        let lines = reader.lines().unwrap();
        lines.into_iter().map(|line| line.tool).collect()
    }
}

#[test]
fn a_chain_stays_whole_when_the_clock_is_set_back() {
    let log = Log::new();
    log.write(&["a"]);
    let chain = log.directories.chains.join("1");
    let later = chain::Segment::first(Day::parse("2999-01-01").unwrap()).file(&chain);
    fs::rename(log.file("1"), later).unwrap();
    log.write(&["b"]);
    assert_eq!(log.faults(), Vec::<String>::new());
    assert_eq!(log.tools(), ["a", "b"]);
}

#[test]
fn a_chain_is_continued_by_the_next_process_and_shared_with_none() {
    let log = Log::new();
    log.write(&["a", "b"]);
    let (one, other) = (log.open(), log.open());
    for (audit, tool) in [(&one, "c"), (&other, "d"), (&one, "e")] {
        let mut event = Event::new(Kind::Call, Outcome::Ok);
        event.tool = Some(tool);
        audit.record(&event).unwrap();
    }
    assert_eq!(log.tools(), ["a", "b", "c", "d", "e"]);
    let reports = verify(&log.directories).unwrap();
    let lines: Vec<_> = reports.iter().map(|report| report.lines).collect();
    assert_eq!(lines, [4, 1]);
    assert_eq!(log.faults(), [""; 0]);
}

#[test]
fn a_changed_a_removed_and_a_cut_off_line_are_found() {
    let change = |edit: &dyn Fn(&str) -> String| {
        let log = Log::new();
        log.write(&["a", "b", "c"]);
        let text = fs::read_to_string(log.file("1")).unwrap();
        fs::write(log.file("1"), edit(&text)).unwrap();
        log.faults().join("; ")
    };
    let lines = |text: &str| {
        text.lines()
            .map(|line| format!("{line}\n"))
            .collect::<Vec<_>>()
    };
    let changed = change(&|text| text.replace("\"b\"", "\"x\""));
    assert!(
        changed.contains("the line before it was changed"),
        "{changed}"
    );
    let last = change(&|text| text.replace("\"c\"", "\"x\""));
    assert!(last.contains("not the line that the head names"), "{last}");
    let removed = change(&|text| lines(text).remove(0) + &lines(text)[2]);
    assert!(removed.contains("line 3 follows line 1"), "{removed}");
    let first = change(&|text| lines(text)[1..].concat());
    assert!(first.contains("line 2 follows line 0"), "{first}");
    let cut = change(&|text| lines(text)[..2].concat());
    assert!(cut.contains("1 lines are missing at its end"), "{cut}");
}

#[test]
fn a_chain_that_was_removed_is_missed() {
    let log = Log::new();
    log.write(&["a"]);
    fs::remove_dir_all(log.directories.chains.join("1")).unwrap();
    assert_eq!(log.faults(), ["1 lines are missing at its end"]);
}

#[test]
fn half_a_line_of_a_killed_process_is_removed_and_said() {
    let log = Log::new();
    log.write(&["a"]);
    let mut text = fs::read_to_string(log.file("1")).unwrap();
    text.push_str("{\"time\":\"2026");
    fs::write(log.file("1"), text).unwrap();
    log.write(&["b"]);
    assert_eq!(log.tools(), ["a", "", "b"]);
    assert_eq!(log.faults(), [""; 0]);
}

#[test]
fn days_beyond_the_limit_go_and_the_rest_stays_whole() {
    let log = Log::new();
    log.write(&["a", "b"]);
    let old = chain::Segment::first(Day::today().minus(40)).file(&log.directories.chains.join("1"));
    fs::rename(log.file("1"), &old).unwrap();
    log.write(&["c"]);
    assert!(!old.exists(), "the old day is still there");
    assert_eq!(log.tools(), ["c"]);
    assert_eq!(log.faults(), [""; 0]);
    fs::remove_file(log.file("1")).unwrap();
    assert_eq!(log.faults(), ["1 lines are missing at its end"]);
}

#[test]
fn what_could_not_be_written_is_counted_and_stops_what_comes_next() {
    let log = Log::new();
    fs::write(&log.directories.chains, "in the way").unwrap();
    let audit = log.open();
    let event = Event::new(Kind::Call, Outcome::Ok);
    let error = audit.ready().unwrap_err();
    assert!(error.to_string().contains("cannot be written"), "{error}");
    audit.record(&event).unwrap_err();
    audit.ready().unwrap_err();
    fs::remove_file(&log.directories.chains).unwrap();
    audit.ready().unwrap();
    audit.record(&event).unwrap();
    let mut reader = Reader::new(&log.directories.chains, Filter::default());
    let lines = reader.lines().unwrap();
    assert_eq!(
        lines[0].detail,
        "3 events could not be written before this one"
    );
    assert_eq!(lines.len(), 2);
}

#[test]
fn no_call_makes_a_line_that_the_next_process_cannot_find_the_beginning_of() {
    let log = Log::new();
    let long = "x".repeat(3_000_000);
    log.write(&["a", &long]);
    let text = fs::read_to_string(log.file("1")).unwrap();
    assert!(text.len() < 10_000, "{}", text.len());
    // A long line of another version is not a reason to cut it off either.
    let many = format!("[{}1]", "1,".repeat(2_000_000));
    let last = text.lines().last().unwrap();
    let number: serde_json::Value = serde_json::from_str(last).unwrap();
    let before = chain::Link {
        number: number["n"].as_u64().unwrap(),
        hash: chain::hash(last.as_bytes()),
    };
    let line = before.follow(format!(
        "{{\"time\":\"2026\",\"tool\":\"long\",\"x\":{many}"
    ));
    let whole = text + &line;
    fs::write(log.file("1"), &whole).unwrap();
    log.write(&["b"]);
    let after = fs::read_to_string(log.file("1")).unwrap();
    assert!(after.starts_with(&whole), "a line was cut off");
    assert_eq!(log.faults(), [""; 0]);
}
