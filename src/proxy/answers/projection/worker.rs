//! The worker process that runs one filter.

use std::io::{self, Read as _, Write as _};

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};

/// The hidden command that runs one filter.
pub(crate) const COMMAND: &str = "__select";

/// The exit code for a failed filter, in contrast to a failed worker; the message is on stderr.
pub(super) const FILTER_FAILED: i32 = 3;

/// The memory limit of a filter, in bytes.
#[cfg(unix)]
const MEMORY: u64 = 1024 * 1024 * 1024;
/// The processor time of a filter, in seconds.
#[cfg(unix)]
const SECONDS: u64 = 3;

/// Reads a filter as a JSON string from the first line of stdin and its data from the rest; writes the output.
///
/// # Errors
/// When stdin or stdout fails. Otherwise returns the exit code.
pub(crate) fn run() -> io::Result<i32> {
    limit()?;
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input)?;
    let line = input
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(input.len());
    let filter: String = serde_json::from_slice(&input[..line])?;
    match filtered(
        &filter,
        &input[line..],
        &mut io::BufWriter::new(io::stdout().lock()),
    ) {
        Ok(()) => Ok(0),
        Err(Stopped::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(Stopped::Output(error)) => Err(error),
        Err(Stopped::Filter(message)) => {
            io::stderr().lock().write_all(message.as_bytes())?;
            Ok(FILTER_FAILED)
        }
    }
}

#[derive(Debug)]
pub(super) enum Stopped {
    Filter(String),
    Output(io::Error),
}

/// A compiled filter with jq's own definitions.
pub(super) type Filter = jaq_core::Filter<data::JustLut<Val>>;

pub(super) fn filtered(
    code: &str,
    input: &[u8],
    output: &mut impl io::Write,
) -> Result<(), Stopped> {
    passed(&compiled(code)?, input, output)
}

pub(super) fn compiled(code: &str) -> Result<Filter, Stopped> {
    let failed = |message: String| Stopped::Filter(message);
    let definitions = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let functions = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(&arena, File { code, path: () })
        .map_err(|errors| {
            failed(format!(
                "the filter is not valid jq: {}",
                first_load_error(&errors)
            ))
        })?;
    Compiler::default()
        .with_funs(functions)
        .compile(modules)
        .map_err(|errors| {
            let names = errors
                .iter()
                .flat_map(|(_, errors)| errors)
                .map(|(name, what)| format!("no {} `{name}`", what.as_str()));
            failed(format!(
                "the filter is not valid jq: {}",
                names.collect::<Vec<_>>().join(", ")
            ))
        })
}

/// Runs the filter on `input` and writes the output.
pub(super) fn passed(
    filter: &Filter,
    input: &[u8],
    output: &mut impl io::Write,
) -> Result<(), Stopped> {
    let failed = |message: String| Stopped::Filter(message);
    let value = read::parse_single(input)
        .map_err(|error| failed(format!("the data cannot be read: {error}")))?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    for value in filter.id.run((context, value)).map(unwrap_valr) {
        let value = value.map_err(|error| failed(format!("the filter failed: {error}")))?;
        match &value {
            Val::TStr(text) => output.write_all(text),
            other => write!(output, "{other}"),
        }
        .and_then(|()| output.write_all(b"\n"))
        .map_err(Stopped::Output)?;
    }
    output.flush().map_err(Stopped::Output)
}

fn first_load_error(errors: &jaq_core::load::Errors<&str, ()>) -> String {
    use jaq_core::load::Error;
    let Some((_, error)) = errors.first() else {
        return "it cannot be read".to_owned();
    };
    match error {
        Error::Io(_) => "it must not read files".to_owned(),
        Error::Lex(errors) => errors.first().map_or_else(String::new, |(expected, rest)| {
            format!("expected {} at `{}`", expected.as_str(), shortened(rest))
        }),
        Error::Parse(errors) => errors.first().map_or_else(String::new, |(expected, rest)| {
            format!("expected {} at `{}`", expected.as_str(), shortened(rest))
        }),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(unix)]
fn limit() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let to = |limit: u64| Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(Resource::As, to(MEMORY))?;
    setrlimit(Resource::Cpu, to(SECONDS))?;
    setrlimit(Resource::Core, to(0))?;
    Ok(())
}

#[cfg(not(unix))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "as on Unix; here the time limit of the caller has to do"
)]
fn limit() -> io::Result<()> {
    Ok(())
}
