//! Measures how well the help of real programs is read, against their manuals (`tests/peers/commands`), for `docs/command-help.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{announce, table};
use crate::support::Setup;

/// What the manuals say, a file for each program or subcommand.
const MANUALS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/commands");

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/command-help.md");

/// Subcommands that no tool is made of without the user's word.
const HELD_BACK: [&str; 7] = [
    "help",
    "completion",
    "alias",
    "shell",
    "exec",
    "console",
    "version-check",
];

/// Options that print something else than an answer.
const NO_ARGUMENTS: [&str; 7] = ["help", "h", "version", "V", "?", "help-all", "usage"];

/// What a manual says of a program or a subcommand.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manual {
    program: String,
    subcommand: Vec<String>,
    /// The Debian package. Other programs come with the tests' own tools.
    package: Option<String>,
    version: String,
    /// The manual that was read.
    #[serde(rename = "manual")]
    _manual: String,
    /// The round of programs that the reader of help was written without; 0 for the others.
    #[serde(default)]
    independent: usize,
    flags: Vec<Row>,
    commands: Vec<String>,
    /// Options that the program takes, though its manual does not name them.
    #[serde(default)]
    unnamed: Vec<Row>,
    #[serde(default)]
    unnamed_commands: BTreeSet<String>,
}

/// An option: long spelling, short spelling, value, further spellings.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Row {
    Usual(Option<String>, Option<String>, String),
    Many(Option<String>, Option<String>, String, Vec<String>),
}

/// Hits among what is there and what was found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    hits: usize,
    there: usize,
    found: usize,
}

/// The quality of one reading.
#[derive(Debug, Default)]
struct Quality {
    flags: Count,
    types: Count,
    commands: Count,
    wrong: Vec<String>,
}

impl Row {
    fn value(&self) -> &str {
        let (Self::Usual(_, _, value) | Self::Many(_, _, value, _)) = self;
        value
    }

    /// The names that the argument may have.
    fn names(&self) -> Vec<String> {
        let (Self::Usual(long, short, _) | Self::Many(long, short, _, _)) = self;
        let more = match self {
            Self::Usual(..) => &[][..],
            Self::Many(_, _, _, more) => more,
        };
        let spellings = long.iter().chain(short).chain(more);
        spellings.map(|spelling| argument(spelling)).collect()
    }

    fn is_argument(&self) -> bool {
        let (Self::Usual(long, short, _) | Self::Many(long, short, _, _)) = self;
        let main = long.as_ref().or(short.as_ref()).expect("a spelling");
        !NO_ARGUMENTS.contains(&main.trim_start_matches('-'))
    }
}

impl Count {
    fn share(hits: usize, of: usize) -> String {
        match of {
            0 => "–".to_owned(),
            of => format!("{} %", hits * 100 / of),
        }
    }

    fn recall(self) -> String {
        Self::share(self.hits, self.there)
    }

    fn precision(self) -> String {
        Self::share(self.hits, self.found)
    }

    fn add(&mut self, other: Self) {
        self.hits += other.hits;
        self.there += other.there;
        self.found += other.found;
    }

    /// Whether recall and precision are at least these percentages.
    fn reaches(self, recall: usize, precision: usize) -> bool {
        self.hits * 100 >= recall * self.there && self.hits * 100 >= precision * self.found
    }
}

impl Manual {
    fn all() -> Vec<Self> {
        let files = fs::read_dir(MANUALS).expect("the manuals");
        let mut files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
        files.retain(|file| {
            file.extension()
                .is_some_and(|extension| extension == "json")
        });
        files.sort();
        let read = |file: &PathBuf| {
            let text = fs::read_to_string(file).expect("a readable file");
            serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        };
        files.iter().map(read).collect()
    }

    fn line(&self) -> String {
        let mut words = vec![self.program.as_str()];
        words.extend(self.subcommand.iter().map(String::as_str));
        words.join(" ")
    }

    /// The program, if the manual's version is installed.
    fn program(&self) -> Result<PathBuf, String> {
        // The real program of the toolchain, not rustup's.
        if self.program == "cargo" {
            return Ok(PathBuf::from(env!("CARGO")));
        }
        let installed = match &self.package {
            Some(package) => output(Command::new("dpkg-query").args([
                "--show",
                "--showformat=${Version}",
                package,
            ]))?,
            None => version_line(&self.program)?,
        };
        if !installed.contains(upstream_version(&self.version)) {
            let (program, version) = (&self.program, &self.version);
            return Err(format!(
                "{program} is {installed:?}, the manual is of {version}"
            ));
        }
        // Its help is its manual.
        if self.program == "git" {
            output(Command::new("man").args(["--where", "git-commit"]))?;
        }
        Ok(PathBuf::from(&self.program))
    }
}

/// The output of a program.
fn output(command: &mut Command) -> Result<String, String> {
    let ended = command.output();
    let ended = ended.map_err(|error| format!("{command:?}: {error}"))?;
    match ended.status.success() {
        true => Ok(String::from_utf8_lossy(&ended.stdout).into_owned()),
        false => Err(format!("{command:?} failed")),
    }
}

/// A Debian version without its epoch and its revision.
fn upstream_version(version: &str) -> &str {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    version.rsplit_once('-').map_or(version, |(first, _)| first)
}

/// The first line of `PROGRAM --version`.
fn version_line(program: &str) -> Result<String, String> {
    let flag = if program == "go" {
        "version"
    } else {
        "--version"
    };
    let text = output(Command::new(program).arg(flag))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// The name of a flag's argument.
fn argument(spelling: &str) -> String {
    let bare = spelling.trim_start_matches('-');
    let of_character = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = bare.chars().map(of_character).collect();
    // These have a meaning of their own as arguments.
    match name.as_str() {
        "args" | "stdin" => name + "_",
        _ => name,
    }
}

/// The value of an argument, in the words of the manuals' files.
fn value_of(schema: &Value) -> String {
    if let Some(one) = schema["anyOf"].get(0) {
        return format!("optional {}", value_of(one));
    }
    if let Some(choices) = schema["enum"].as_array() {
        let mut choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
        choices.sort_unstable();
        return choices.join("|");
    }
    match schema["type"].as_str() {
        Some("boolean") => "none".to_owned(),
        Some("array") => value_of(&schema["items"]),
        Some("string") => "text".to_owned(),
        Some(kind) => kind.to_owned(),
        None => String::new(),
    }
}

/// A value whose choices are in order.
fn ordered(value: &str) -> String {
    let (optional, value) = match value.strip_prefix("optional ") {
        Some(value) => ("optional ", value),
        None => ("", value),
    };
    let mut choices: Vec<&str> = value.split('|').collect();
    choices.sort_unstable();
    format!("{optional}{}", choices.join("|"))
}

/// The tools of a program, or the definition of the one that its subcommand is.
fn run(program: &Path, more: Value, command: &[&str]) -> Result<Value, String> {
    let mut entry = json!({ "command": program, "cli": true });
    for (key, value) in more.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    let setup = Setup::new().entry("it", &entry.to_string());
    let ended = setup.run(command);
    match ended.code {
        Some(0) => Ok(ended.json()),
        _ => Err(ended.stderr),
    }
}

fn names_of_tools(tools: &Value) -> BTreeSet<String> {
    let tools = tools.as_array().into_iter().flatten();
    let names = tools.filter_map(|tool| tool["name"].as_str()?.split_once("__"));
    names.map(|(_, name)| name.to_owned()).collect()
}

fn measure(manual: &Manual, program: &Path) -> Quality {
    let mut quality = Quality::default();
    if !manual.commands.is_empty() {
        measure_commands(manual, program, &mut quality);
    }
    let path = manual.subcommand.join(" ");
    let mut more = json!({ "cli_depth": manual.subcommand.len() + 1 });
    if !path.is_empty() {
        more["cli_only"] = json!([path]);
    }
    let tool = match path.is_empty() {
        true => Path::new(&manual.program)
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned(),
        false => manual.subcommand.join("_"),
    };
    if path.is_empty() && !manual.commands.is_empty() {
        return quality;
    }
    let name = format!("it__{tool}");
    match run(program, more, &["describe", &name, "--json"]) {
        Ok(definition) => {
            let usage = definition["description"].as_str().unwrap_or_default();
            let properties = definition["inputSchema"]["properties"].as_object();
            measure_flags(
                manual,
                properties.unwrap_or(&Map::new()),
                usage,
                &mut quality,
            );
        }
        Err(error) => {
            quality.flags.there = manual.flags.len();
            quality.wrong.push(error);
        }
    }
    quality
}

fn measure_commands(manual: &Manual, program: &Path, quality: &mut Quality) {
    let depth = json!({ "cli_depth": manual.subcommand.len() + 1 });
    let found = run(program, depth, &["tools", "it", "--json"]).map(|tools| names_of_tools(&tools));
    let mut found = found.unwrap_or_default();
    found.retain(|name| !manual.unnamed_commands.contains(name));
    let there = manual
        .commands
        .iter()
        .filter(|name| !HELD_BACK.contains(&name.as_str()));
    let there: BTreeSet<String> = there.cloned().collect();
    quality.commands = Count {
        hits: there.intersection(&found).count(),
        there: there.len(),
        found: found.len(),
    };
    let note = |sign: &str, name: &String| format!("{sign}{name}");
    quality
        .wrong
        .extend(there.difference(&found).map(|name| note("missing ", name)));
    quality
        .wrong
        .extend(found.difference(&there).map(|name| note("invented ", name)));
}

fn measure_flags(manual: &Manual, found: &Map<String, Value>, usage: &str, quality: &mut Quality) {
    let rows: Vec<&Row> = manual
        .flags
        .iter()
        .filter(|row| row.is_argument())
        .collect();
    let mut matched = BTreeSet::new();
    for row in &rows {
        quality.flags.there += 1;
        let names = row.names();
        let Some(name) = names.iter().find(|name| found.contains_key(*name)) else {
            quality.wrong.push(format!("missing {names:?}"));
            continue;
        };
        quality.flags.hits += 1;
        quality.types.there += 1;
        matched.extend(names.iter().cloned());
        let (said, read) = (ordered(row.value()), value_of(&found[name]));
        if said == read {
            quality.types.hits += 1;
        } else {
            quality
                .wrong
                .push(format!("{name}: `{read}`, by the manual `{said}`"));
        }
    }
    quality.flags.found = quality.flags.hits;
    let unnamed: BTreeSet<String> = manual.unnamed.iter().flat_map(Row::names).collect();
    let usage = usage.to_lowercase();
    let words: BTreeSet<String> = usage
        .split(|c: char| c.is_whitespace() || "[]<>{}().|…".contains(c))
        .filter(|word| !word.starts_with('-'))
        .map(argument)
        .collect();
    for name in found.keys() {
        // A positional argument with the name of a flag ends with `_`.
        let is_positional = ["args", "stdin"].contains(&name.as_str())
            || words.contains(name.trim_end_matches('_'));
        if matched.contains(name) || unnamed.contains(name) || is_positional {
            continue;
        }
        quality.flags.found += 1;
        quality.wrong.push(format!("invented {name}"));
    }
    // A type is read, or not: there is nothing that is found too much.
    quality.types.found = quality.types.hits;
}

#[test]
fn the_help_of_real_programs_is_read_as_their_manuals_have_it() {
    let mut parts = [Part::new(), Part::new(), Part::new()];
    let (mut missed, mut left_out) = (Vec::new(), Vec::new());
    for manual in Manual::all() {
        let program = match manual.program() {
            Ok(program) => program,
            Err(reason) => {
                left_out.push(format!("{}: {reason}", manual.line()));
                continue;
            }
        };
        let quality = measure(&manual, &program);
        let is_good = quality.flags.reaches(90, 95)
            && quality.types.reaches(80, 0)
            && quality.commands.reaches(90, 95);
        if !is_good {
            missed.push(manual.line());
        }
        announce(&format!(
            "{}:\n  {}",
            manual.line(),
            quality.wrong.join("\n  ")
        ));
        parts[manual.independent].add(&manual, quality);
    }
    let table = parts.map(Part::table).join("\n\n");
    if !left_out.is_empty() {
        announce(&format!(
            "LEFT OUT of the measure of commands' help: {}",
            left_out.join("; ")
        ));
    }
    announce(&format!("{table}\nbelow a bar: {}", missed.join(", ")));
    let page = plain(&fs::read_to_string(PAGE).unwrap_or_default());
    for line in plain(&table)
        .lines()
        .filter(|line| !line.contains("**all**"))
    {
        assert!(
            page.contains(line),
            "docs/command-help.md has another line than this:\n{line}\nall:\n{table}"
        );
    }
}

/// The table of some programs.
struct Part {
    rows: Vec<Vec<String>>,
    sum: Quality,
}

impl Part {
    fn new() -> Self {
        let titles = [
            "",
            "Program",
            "Version",
            "Flags",
            "Recall",
            "Precision",
            "Types",
            "Subcommands",
            "Recall",
            "Precision",
            "",
        ];
        Self {
            rows: vec![titles.map(str::to_owned).into()],
            sum: Quality::default(),
        }
    }

    fn add(&mut self, manual: &Manual, quality: Quality) {
        self.rows
            .push(row(&manual.line(), &manual.version, &quality));
        self.sum.flags.add(quality.flags);
        self.sum.types.add(quality.types);
        self.sum.commands.add(quality.commands);
    }

    fn table(mut self) -> String {
        self.rows.push(row("**all**", "", &self.sum));
        table(&self.rows)
    }
}

/// Lines with single blanks.
fn plain(text: &str) -> String {
    let lines = text.lines();
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

fn row(line: &str, version: &str, quality: &Quality) -> Vec<String> {
    let cells = [
        String::new(),
        line.to_owned(),
        version.to_owned(),
        quality.flags.there.to_string(),
        quality.flags.recall(),
        quality.flags.precision(),
        quality.types.recall(),
        quality.commands.there.to_string(),
        quality.commands.recall(),
        quality.commands.precision(),
        String::new(),
    ];
    cells.into()
}
