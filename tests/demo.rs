//! `mcpzip demo`, as somebody runs it who has configured nothing.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const STEPS: &[&str] = &[
    "tools",
    "search",
    "search_again",
    "describe",
    "execute",
    "results",
    "mistakes",
];

/// A demo whose temporary files go to `directory`. The settings are such that a demo which took them over would fail.
fn demo(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpzip"));
    command
        .arg("demo")
        .env("TMPDIR", directory)
        .env("MCPZIP_CONFIG", "/nonexistent/config.json")
        .env("MCPZIP_CACHE_DIR", "/dev/null/cache")
        .env_remove("HOME")
        .stdin(Stdio::null());
    command
}

#[track_caller]
fn stdout_of(output: Output) -> String {
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert_eq!(output.status.code(), Some(0), "{stdout}\n{stderr}");
    assert_eq!(stderr, "", "{stdout}");
    stdout
}

/// Neither a file nor a process of the demo is left; a killed guard or server may need a moment to be gone.
#[track_caller]
fn assert_nothing_is_left(directory: &TempDir) {
    let left: Vec<_> = std::fs::read_dir(directory)
        .expect("the directory is the test's own")
        .collect();
    assert!(left.is_empty(), "{left:?}");
    let deadline = Instant::now() + Duration::from_secs(5);
    while let Some(process) = process_with(&directory.path().to_string_lossy()) {
        assert!(Instant::now() < deadline, "still running: {process}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process whose command line names `text`; only Linux shows them as files.
fn process_with(text: &str) -> Option<String> {
    let processes = std::fs::read_dir("/proc").ok()?;
    processes
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .find(|line| line.contains(text))
}

#[test]
fn the_demo_shows_every_step_as_text_and_leaves_nothing_behind() {
    let directory = TempDir::new().unwrap();
    let text = stdout_of(demo(directory.path()).output().unwrap());
    for expected in [
        "1. ",
        "search_tools   Find tools",
        "→ search_tools {\"query\":",
        "← units__convert_units(value: number, from: string, to: string)",
        "→ describe_tool {\"name\":\"calendar__find_free_slots\"}",
        "→ execute_tool {\"name\":\"units__convert_units\"",
        "42.1648128",
        "did you mean units__convert_units",
        "Call it as units__convert_units(",
        "with mcpzip",
        "a call, median of",
        "o200k_base",
        "from start to first answer",
        " init\n",
    ] {
        assert!(text.contains(expected), "no `{expected}` in\n{text}");
    }
    assert!(
        !text.contains('\u{1b}'),
        "colour where there is no terminal"
    );
    let steps = STEPS.len() + usize::from(cfg!(unix));
    assert!(text.contains(&format!("\n{steps}. ")), "{text}");
    // The last lines name this machine's own paths, which have their own length.
    let shown = text.split("\nNext\n").next().unwrap();
    let widest = shown
        .lines()
        .max_by_key(|line| line.chars().count())
        .unwrap();
    assert!(widest.chars().count() <= 80, "{widest}");
    assert_nothing_is_left(&directory);
}

#[test]
fn the_demo_reports_what_it_saw_as_json() {
    let directory = TempDir::new().unwrap();
    let text = stdout_of(demo(directory.path()).arg("--json").output().unwrap());
    let report: Value = serde_json::from_str(&text).unwrap();
    let steps = report["steps"].as_array().unwrap();
    let names: Vec<_> = steps
        .iter()
        .map(|step| step["name"].as_str().unwrap())
        .collect();
    let crash: &[&str] = if cfg!(unix) { &["crash"] } else { &[] };
    assert_eq!(names, [STEPS, crash].concat());

    let shown = steps[0]["exchanges"][0]["answer"].as_str().unwrap();
    let tools: Vec<_> = shown
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(tools, ["search_tools", "describe_tool", "execute_tool"]);
    for (step, exchange) in steps.iter().flat_map(|step| {
        step["exchanges"]
            .as_array()
            .unwrap()
            .iter()
            .map(move |exchange| (&step["name"], exchange))
    }) {
        assert!(exchange["tokens"].as_u64() > Some(10), "{exchange}");
        assert!(exchange["milliseconds"].as_f64() > Some(0.0), "{exchange}");
        assert!(
            exchange["is_error"] == false || step == "mistakes",
            "{exchange}"
        );
    }

    let totals = &report["totals"];
    let count = |pointer: &str| {
        totals
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("{pointer}"))
    };
    assert!(count("/tools") >= 44 && count("/servers") == 4, "{totals}");
    assert!(count("/with/definitions") <= 450, "{totals}");
    assert!(
        count("/with/definitions") * 10 < count("/without/definitions"),
        "{totals}"
    );
    assert!(
        count("/without/definitions") < count("/without/listing"),
        "{totals}"
    );
    assert!(
        count("/with/exchanges") > count("/without/exchanges"),
        "searching costs something: {totals}"
    );
    assert!(totals["call_milliseconds"].as_f64() > Some(0.0), "{totals}");
    assert_nothing_is_left(&directory);
}

#[cfg(unix)]
#[test]
fn a_demo_that_is_interrupted_cleans_up() {
    use std::io::{BufRead as _, BufReader};

    let directory = TempDir::new().unwrap();
    let mut child = demo(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    assert_eq!(
        std::fs::read_dir(&directory).unwrap().count(),
        1,
        "it is under way"
    );
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: interrupted\n"
    );
    assert_nothing_is_left(&directory);
}
