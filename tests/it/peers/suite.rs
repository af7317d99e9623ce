//! The official conformance suite: running it, reading what it reports, and judging that against what is expected.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::install::Peers;
use super::{announce, process};

/// A scenario has half a minute of its own.
const PATIENCE: Duration = Duration::from_secs(240);

/// What is known to fail, by leg, each with the reason: `SCENARIO`, `START*` for all that begin so, or `SCENARIO:CHECK`.
const EXPECTED: &str = include_str!("../../peers/expected-failures.json");

/// What these scenarios lack is the subject of another issue; they are counted apart.
const NEEDS_OAUTH: &str = "needs OAuth";

/// One way to run the suite.
#[derive(Debug)]
pub(super) struct Leg {
    /// Which side of `mcpzip` is judged.
    pub(super) side: Side,
    /// Its name in `expected-failures.json` and in the report.
    pub(super) name: String,
    /// The protocol revision whose requirements are run.
    pub(super) revision: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// What the suite says of one scenario.
#[derive(Debug, Default)]
struct Outcome {
    passed: usize,
    /// The checks for which there was nothing to check.
    skipped: usize,
    /// The checks that failed, with the suite's words.
    failed: Vec<(String, String)>,
}

/// Of a scenario that was not run.
static NOTHING: Outcome = Outcome {
    passed: 0,
    skipped: 0,
    failed: Vec::new(),
};

/// Which scenarios a revision requires, and which it only reports.
#[derive(Debug, Default)]
struct Requirements {
    required: BTreeSet<String>,
    /// Those that came after the revision or that the suite's own fixture fails; not those of extensions.
    reported: BTreeSet<String>,
}

impl Side {
    /// The suite's word for it.
    fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl Leg {
    pub(super) fn new(side: Side, form: &str, revision: &'static str) -> Self {
        let form = if form.is_empty() {
            String::new()
        } else {
            format!(" ({form})")
        };
        Self {
            side,
            name: format!("{}{form}, {revision}", side.word()),
            revision,
        }
    }

    /// Runs what the revision requires. `target` is what the suite is pointed at: `--command ...` or `--url ...`.
    /// Returns the line for the report; the error says what is not as expected.
    pub(super) fn run(
        &self,
        peers: &Peers,
        target: [&str; 2],
        directory: &Path,
    ) -> Result<String, String> {
        let requirements = Requirements::read(peers, self.side, self.revision)?;
        let outcomes =
            self.outcomes(peers, target, directory, &["--requirements", self.revision])?;
        let expected: BTreeMap<String, BTreeMap<String, String>> =
            serde_json::from_str(EXPECTED).expect("the expected failures are JSON");
        let expected = expected.get(&self.name).cloned().unwrap_or_default();
        let mut judgement = Judgement {
            requirements,
            outcomes,
            expected,
        };
        // Some checks give a server half a second, which it may not get beside other tests.
        for scenario in judgement.surprises() {
            announce(&format!(
                "conformance, {}: {scenario} once more, alone",
                self.name
            ));
            let alone = ["--scenario", &scenario, "--spec-version", self.revision];
            judgement
                .outcomes
                .extend(self.outcomes(peers, target, directory, &alone)?);
        }
        let (line, problems) = (judgement.line(&self.name), judgement.problems());
        if problems.is_empty() {
            Ok(line)
        } else {
            Err(format!("{line}\n{}", problems.join("\n")))
        }
    }

    /// Runs these scenarios, which no revision requires. Returns a line for each.
    pub(super) fn run_each(
        &self,
        peers: &Peers,
        target: [&str; 2],
        directory: &Path,
        scenarios: &[&str],
    ) -> Result<String, String> {
        let mut outcomes = BTreeMap::new();
        for scenario in scenarios {
            // The suite counts extensions to no revision, and forces them to run at this one.
            let selection = [
                "--scenario",
                scenario,
                "--spec-version",
                self.revision,
                "--force",
            ];
            outcomes.extend(self.outcomes(peers, target, directory, &selection)?);
        }
        let requirements = Requirements {
            required: scenarios.iter().copied().map(str::to_owned).collect(),
            reported: BTreeSet::new(),
        };
        let judgement = Judgement {
            requirements,
            outcomes,
            expected: BTreeMap::new(),
        };
        let mut line = judgement.line(&self.name);
        for (scenario, outcome) in &judgement.outcomes {
            let Outcome {
                passed, skipped, ..
            } = outcome;
            let _ = write!(
                line,
                "\n  {scenario}: {passed} checks passed, {skipped} with nothing to check"
            );
        }
        match judgement.problems() {
            problems if problems.is_empty() => Ok(line),
            problems => Err(format!("{line}\n{}", problems.join("\n"))),
        }
    }

    /// Runs the suite on what `selection` says.
    fn outcomes(
        &self,
        peers: &Peers,
        target: [&str; 2],
        directory: &Path,
        selection: &[&str],
    ) -> Result<BTreeMap<String, Outcome>, String> {
        let results = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut command = Command::new(&peers.new_node);
        command
            .arg("--import")
            .arg(peers.script("loopback.mjs"))
            .arg(peers.npm("conformance"))
            .arg(self.side.word());
        command
            .args(target)
            .args(selection)
            .arg("--output-dir")
            .arg(results.path())
            .current_dir(directory);
        // Its exit code says less than its results do.
        let ended = process::run(&mut command, "", PATIENCE)?;
        let outcomes = read_outcomes(results.path(), self.side)?;
        if outcomes.is_empty() {
            Err(format!("{}: the suite left no results: {ended}", self.name))
        } else {
            Ok(outcomes)
        }
    }
}

/// What a leg required, what came of it, and what was expected to fail, with the reasons.
struct Judgement {
    requirements: Requirements,
    outcomes: BTreeMap<String, Outcome>,
    expected: BTreeMap<String, String>,
}

impl Judgement {
    /// The scenarios that did not pass, and not as expected.
    fn surprises(&self) -> BTreeSet<String> {
        let scenarios = self
            .requirements
            .required
            .iter()
            .chain(&self.requirements.reported);
        scenarios
            .filter(|scenario| !self.failures(scenario).is_empty())
            .cloned()
            .collect()
    }

    /// What is not as expected, to the better or the worse.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut used = BTreeSet::new();
        for scenario in self
            .requirements
            .required
            .iter()
            .chain(&self.requirements.reported)
        {
            problems.extend(self.failures(scenario));
            let Outcome { passed, failed, .. } = self.outcomes.get(scenario).unwrap_or(&NOTHING);
            for (entry, _) in self.entries(scenario) {
                used.insert(entry);
                if *passed > 0 && !failed.iter().any(|(check, _)| excuses(entry, check)) {
                    problems.push(format!(
                        "{scenario} passes now: take `{entry}` out of the expected failures"
                    ));
                }
            }
        }
        let stale = self.expected.keys().filter(|entry| !used.contains(entry));
        problems.extend(stale.map(|entry| {
            format!("no scenario is `{entry}`: take it out of the expected failures")
        }));
        problems
    }

    /// The checks of a scenario that failed and that no entry excuses.
    fn failures(&self, scenario: &str) -> Vec<String> {
        let outcome = self.outcomes.get(scenario).unwrap_or(&NOTHING);
        let is_excused = |check: &str| {
            self.entries(scenario)
                .any(|(entry, _)| excuses(entry, check))
        };
        let unchecked = outcome.failed.is_empty()
            && outcome.passed == 0
            && self.entries(scenario).next().is_none();
        let failed = outcome
            .failed
            .iter()
            .filter(|(check, _)| !is_excused(check));
        let failed = failed.map(|(check, words)| format!("{scenario} FAILED: {check}: {words}"));
        failed
            .chain(unchecked.then(|| format!("{scenario} FAILED: nothing was checked")))
            .collect()
    }

    /// The figures, and what is expected to fail.
    fn line(&self, name: &str) -> String {
        let Requirements { required, reported } = &self.requirements;
        let is_passed =
            |scenario: &&String| self.outcomes.get(*scenario).is_some_and(Outcome::is_passed);
        let count = |scenarios: &BTreeSet<String>| scenarios.iter().filter(is_passed).count();
        let mut line = format!(
            "conformance, {name}: {} passed / {} required",
            count(required),
            required.len()
        );
        let needs_oauth = |scenario: &&String| {
            self.entries(scenario)
                .any(|(_, reason)| reason.starts_with(NEEDS_OAUTH))
        };
        let without_oauth = required.iter().filter(needs_oauth).count();
        if without_oauth > 0 {
            let _ = write!(line, " ({without_oauth} need OAuth)");
        }
        let _ = write!(
            line,
            "; of what is only reported: {} / {}",
            count(reported),
            reported.len()
        );
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (entry, reason) in &self.expected {
            by_reason.entry(reason).or_default().push(entry);
        }
        for (reason, entries) in by_reason {
            let _ = write!(
                line,
                "\n  expected to fail: {}: {reason}",
                entries.join(", ")
            );
        }
        line
    }

    /// The entries about a scenario, or about one check of it.
    fn entries<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = (&'a String, &'a String)> {
        self.expected
            .iter()
            .filter(move |(entry, _)| is_about(entry, scenario))
    }
}

/// Whether an entry of the expected failures means `scenario`, or one check of it: `SCENARIO`, `START*` or `SCENARIO:CHECK`.
fn is_about(entry: &str, scenario: &str) -> bool {
    match entry.strip_suffix('*') {
        Some(start) => scenario.starts_with(start),
        None => entry.split(':').next() == Some(scenario),
    }
}

/// Whether an entry about a scenario excuses this check of it.
fn excuses(entry: &str, check: &str) -> bool {
    entry
        .split_once(':')
        .is_none_or(|(_, excused)| excused == check)
}

impl Outcome {
    /// A scenario in which nothing was checked did not pass: the suite forgives a client that never came.
    fn is_passed(&self) -> bool {
        self.passed > 0 && self.failed.is_empty()
    }
}

impl Requirements {
    /// Reads the suite's own list. It is YAML, of which these lines are all that is used.
    fn read(peers: &Peers, side: Side, revision: &str) -> Result<Self, String> {
        let package = peers
            .node_directory()
            .join("node_modules/@modelcontextprotocol/conformance");
        let path = package.join(format!("requirements/{revision}.yaml"));
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut requirements = Self::default();
        let (mut section, mut scenario, mut leg) = ("", "", "");
        for line in text.lines() {
            let entry = line.trim_start().trim_start_matches("- ");
            match line
                .split_once(": ")
                .map(|(key, value)| (key.trim_start_matches([' ', '-']), value))
            {
                Some(("scenario", value)) => scenario = value,
                Some(("leg", value)) => leg = value,
                Some(("reason", value)) if leg == side.word() && value != "extension" => {
                    requirements.reported.insert(scenario.to_owned());
                }
                Some(_) => {}
                None if !line.starts_with([' ', '#']) => section = line.trim_end_matches(':'),
                None if section == side.word() && line.starts_with("  - ") => {
                    requirements.required.insert(entry.to_owned());
                }
                None => {}
            }
        }
        if requirements.required.is_empty() {
            return Err(format!("nothing is required in {}", path.display()));
        }
        Ok(requirements)
    }
}

/// The outcome of each scenario: the suite makes a directory per run, `NAME-TIME` or `server-NAME-TIME`.
fn read_outcomes(results: &Path, side: Side) -> Result<BTreeMap<String, Outcome>, String> {
    let mut outcomes = BTreeMap::new();
    let mut directories = vec![results.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        for path in entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
        {
            match scenario_of(results, &path, side) {
                Some(scenario) => {
                    outcomes.insert(scenario, Outcome::read(&path)?);
                }
                None => directories.push(path),
            }
        }
    }
    Ok(outcomes)
}

/// The scenario that `directory` holds the results of, if it holds results.
fn scenario_of(results: &Path, directory: &Path, side: Side) -> Option<String> {
    if !directory.join("checks.json").is_file() {
        return None;
    }
    let name = directory.strip_prefix(results).ok()?.to_str()?;
    let name = name.get(..name.len().checked_sub("-2026-11-21T15-49-34-620Z".len())?)?;
    let name = if side == Side::Server {
        name.strip_prefix("server-")?
    } else {
        name
    };
    Some(name.to_owned())
}

impl Outcome {
    fn read(directory: &Path) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Check {
            id: String,
            status: String,
            error_message: Option<String>,
        }
        let path: PathBuf = directory.join("checks.json");
        let text =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let checks: Vec<Check> =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut outcome = Self::default();
        for check in checks {
            match check.status.as_str() {
                "SUCCESS" => outcome.passed += 1,
                "SKIPPED" => outcome.skipped += 1,
                "FAILURE" => outcome
                    .failed
                    .push((check.id, check.error_message.unwrap_or_default())),
                _ => {}
            }
        }
        // What our own host did not like, with what `mcpzip` logged; only clients have this file.
        let stderr = fs::read_to_string(directory.join("stderr.txt")).unwrap_or_default();
        if stderr.contains("conformance_client: ") {
            outcome.failed.push(("host".to_owned(), stderr));
        }
        Ok(outcome)
    }
}
