//! Measures stdio proxies as black boxes: `mcpzip`, a minimal relay and a direct connection to one scripted server.
//! They alternate in one run, so that their ratios are valid on a busy machine, too.
//!
//! A figure never fails a test: a missed bar is reported, and the exit code is 0. Each way to the server is a
//! [`profile::Profile`], including the direct one, so that all are measured alike.

#[cfg(target_os = "linux")]
mod daemon;
mod faulty;
mod home;
mod machine;
mod measure;
mod page;
mod peer;
mod profile;
mod relay;
mod soak;
mod stand;
mod table;
mod tools;
mod upstream;
mod usage;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use profile::Profile;
use stand::Stand;
use table::Table;

const USAGE: &str = "\
Measure mcpzip, a direct connection and a minimal relay, and print the figures with their bars.

Usage: mcpzip-bench [OPTIONS] [PART...]
       mcpzip-bench upstream [--tools N] [--server N]   be the scripted server
       mcpzip-bench soak [--minutes N] [--mcpzip FILE] [--real]
                                                        load with faults, and whether anything is left of it
       mcpzip-bench daemon [--mcpzip FILE] [--update DIR]
                                                        sessions that share a daemon and sessions that run alone (Linux)
       mcpzip-bench faulty                              be a server that goes wrong on request
       mcpzip-bench relay COMMAND [ARGUMENT...]         be the minimal relay

Parts: start, overhead, throughput, beside, audit, scripts, sandbox, search, memory, growth, size; all of them when none is named

Options:
  --mcpzip FILE     the program to measure [default: the one next to this program]
  --profile FILE    measure another stdio proxy too; may be given several times
  --program FILE    what `{program}` stands for in the profile before it
  --quick           few rounds and few tools: shows that it works, and nothing else
  --json FILE       write the figures there
  --update DIR      write docs/performance.md and docs/performance.json in this repository; with the part audit alone, its table only
  --verbose         let the measured programs write to stderr

Examples:
  cargo build --release && cargo run --release -p mcpzip-bench
  cargo run --release -p mcpzip-bench -- overhead throughput --profile other-proxy.json
  cargo run --release -p mcpzip-bench -- soak --minutes 60
";

/// The parsed command line.
#[derive(Debug, Default)]
struct Arguments {
    mcpzip: Option<PathBuf>,
    profiles: Vec<(PathBuf, Option<String>)>,
    is_quick: bool,
    is_verbose: bool,
    json: Option<PathBuf>,
    update: Option<PathBuf>,
    parts: Vec<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("upstream") => upstream::run(&arguments[1..]),
        #[cfg(target_os = "linux")]
        Some("daemon") => daemon::run(&arguments[1..]),
        Some("faulty") => faulty::run(),
        Some("soak") => soak::run(&arguments[1..]),
        Some("relay") => relay::run(&arguments[1..]),
        Some("--help" | "-h" | "help") => std::io::stdout()
            .write_all(USAGE.as_bytes())
            .map_err(Into::into),
        _ => Arguments::parse(arguments).and_then(|arguments| run(&arguments)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A failure cannot be reported anywhere.
            let _ = writeln!(std::io::stderr(), "mcpzip-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

impl Arguments {
    fn parse(words: Vec<String>) -> Result<Self> {
        let mut arguments = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .with_context(|| format!("{word} needs a value"))
            };
            match word.as_str() {
                "--mcpzip" => arguments.mcpzip = Some(value()?.into()),
                "--profile" => arguments.profiles.push((value()?.into(), None)),
                "--program" => {
                    let program = value()?;
                    let (_, of) = arguments
                        .profiles
                        .last_mut()
                        .context("--program belongs after a --profile")?;
                    *of = Some(program);
                }
                "--quick" => arguments.is_quick = true,
                "--verbose" => arguments.is_verbose = true,
                "--json" => arguments.json = Some(value()?.into()),
                "--update" => arguments.update = Some(value()?.into()),
                part if measure::PARTS.iter().any(|(name, _)| *name == part) => {
                    arguments.parts.push(word);
                }
                _ => bail!("`{word}` is not understood\n\n{USAGE}"),
            }
        }
        Ok(arguments)
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let own = std::env::current_exe()?;
    let sibling = || {
        own.with_file_name("mcpzip")
            .with_extension(std::env::consts::EXE_EXTENSION)
    };
    let mcpzip = arguments.mcpzip.clone().unwrap_or_else(sibling);
    if !mcpzip.is_file() {
        bail!(
            "{} is not there: build it first, in the same profile, or name it by --mcpzip",
            mcpzip.display()
        );
    }
    let mcpzip = std::path::absolute(mcpzip)?;
    let others: Result<Vec<Profile>> = arguments
        .profiles
        .iter()
        .map(|(path, program)| Profile::read(path, program.as_deref()))
        .collect();
    let stand = Stand::new(
        &own,
        &mcpzip,
        others?,
        arguments.is_quick,
        arguments.is_verbose,
    )?;
    let mut table = Table::new(machine::describe(&mcpzip), stand.names());
    for (name, measure) in measure::PARTS {
        if arguments.parts.is_empty() || arguments.parts.iter().any(|part| part == name) {
            let start = std::time::Instant::now();
            stand.say(&format!("{name} …"));
            measure(&stand, &mut table).with_context(|| format!("measuring {name}"))?;
            stand.say(&format!("{name}: {:.0} s", start.elapsed().as_secs_f64()));
        }
    }
    write!(std::io::stdout(), "{table}")?;
    if let Some(path) = &arguments.json {
        std::fs::write(path, table.to_json()).with_context(|| path.display().to_string())?;
    }
    if let Some(repository) = &arguments.update {
        page::update(repository, &table, &arguments.parts)?;
    }
    Ok(())
}
