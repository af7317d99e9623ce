//! The worker process that runs one filter.

use std::io::{self, Read as _, Write as _};

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};

/// The hidden command that runs one filter.
pub(crate) const COMMAND: &str = "__select";

/// The exit code for a failed filter, in contrast to a failed worker; the message is on stderr.
pub(super) const FILTER_FAILED: i32 = 3;

/// Definitions for texts and tables, in addition to those of jq.
const HELPERS: &str = include_str!("helpers.jq");

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
        .chain(jaq_json::defs())
        .chain(helpers());
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

fn helpers() -> impl Iterator<Item = jaq_core::load::parse::Def<&'static str>> {
    jaq_core::load::parse(HELPERS, |parser| parser.defs())
        .expect("a test parses the definitions")
        .into_iter()
}

/// Runs the filter on `input` and writes the output.
pub(super) fn passed(
    filter: &Filter,
    input: &[u8],
    output: &mut impl io::Write,
) -> Result<(), Stopped> {
    let failed = |message: String| Stopped::Filter(message);
    let value = read::parse_single(input)
        .or_else(|_| read::parse_single(&without_lone_surrogates(input)))
        .map_err(|error| failed(format!("the data cannot be read: {error}")))?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    for value in filter.id.run((context, value)).map(unwrap_valr) {
        let value = value.map_err(|error| {
            failed(format!(
                "the filter failed: {}",
                abridged(&error.to_string())
            ))
        })?;
        match &value {
            Val::TStr(text) => output.write_all(text),
            other => write!(output, "{other}"),
        }
        .and_then(|()| output.write_all(b"\n"))
        .map_err(Stopped::Output)?;
    }
    output.flush().map_err(Stopped::Output)
}

/// JSON with `U+FFFD` for each half of a character beyond 16 bits that stands alone: it is valid JSON, but not a string.
fn without_lone_surrogates(json: &[u8]) -> Vec<u8> {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let (mut clean, mut at) = (Vec::with_capacity(json.len()), 0);
    while let Some(byte) = json.get(at) {
        let length = match (unit(at), unit(at + 6)) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => 12,
            (Some(0xD800..0xE000), _) => {
                clean.extend(b"\\ufffd");
                at += 6;
                continue;
            }
            (Some(_), _) => 6,
            (None, _) if *byte == b'\\' => 2,
            (None, _) => 1,
        };
        clean.extend(&json[at..json.len().min(at + length)]);
        at += length;
    }
    clean
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

/// A message without the middle of the long value that it may quote.
fn abridged(message: &str) -> String {
    const START: usize = 160;
    const END: usize = 40;
    let length = message.chars().count();
    if length <= START + END {
        return message.to_owned();
    }
    let start = message.chars().take(START);
    let end = message.chars().skip(length - END);
    start.chain(['…']).chain(end).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(filter: &str, input: &str, expected: &str) {
        let mut output = Vec::new();
        let ended = filtered(filter, input.as_bytes(), &mut output);
        let said = match ended {
            Ok(()) => String::from_utf8(output).unwrap(),
            Err(Stopped::Filter(message)) => message,
            Err(Stopped::Output(error)) => panic!("{error}"),
        };
        assert_eq!(said.trim_end_matches('\n'), expected, "{filter}");
    }

    #[test]
    fn lines_of_a_text_are_taken_by_number_and_by_pattern() {
        let text = r#""One error\ntwo\nthree ERRORS\n""#;
        check("lines", text, r#"["One error","two","three ERRORS"]"#);
        check("lines | length", text, "3");
        check(r#"grep("error")"#, text, "One error\nthree ERRORS");
        check(r#"grep("^t") | head(1)"#, text, "two");
        check("head(2)", text, "One error\ntwo");
        check("tail(1)", text, "three ERRORS");
        check("head(0), tail(0), head(99)", "\"a\\nb\"", "\n\na\nb");
        check(r#"grep("nothing")"#, text, "");
        check("head(3)", r#""""#, "");
    }

    #[test]
    fn elements_of_an_array_are_taken_as_lines_are() {
        check("head(2)", "[1,2,3]", "[1,2]");
        check("tail(2)", "[1,2,3]", "[2,3]");
        check("tail(0)", "[1,2,3]", "[]");
        check(
            r#"grep("milk")"#,
            r#"[{"name":"Milk"},{"name":"bread"},"milk"]"#,
            r#"[{"name":"Milk"},"milk"]"#,
        );
    }

    #[test]
    fn objects_become_a_table_with_all_columns() {
        check(
            "table",
            r#"[{"id":1,"name":"a\tb"},{"name":null,"tags":["x"],"id":1.50}]"#,
            "id\tname\ttags\n1\ta\\tb\t\n1.50\t\t[\"x\"]",
        );
        check("table", r#"{"a":true}"#, "a\ntrue");
        let rows = r#"[{"id":1},{"id":21},{"id":31}]"#;
        check("table | head(3)", rows, "id\n1\n21");
        check(r#"table | grep("1") | lines | length"#, rows, "3");
        check("[table] | length", rows, "1");
        check("table", "[]", "");
        check(
            "table",
            "[1]",
            "the filter failed: \"table takes an object or an array of objects\"",
        );
    }

    #[test]
    fn data_with_half_a_character_are_read() {
        check(".[0]", r#"["a\ud83d","\ud83d\ude00"]"#, "a\u{fffd}");
        check(
            ".[0], .[1]",
            r#"["\\\ude00b","\ud83d\ude00\u0041"]"#,
            "\\\u{fffd}b\n\u{1F600}A",
        );
    }

    #[test]
    fn rows_are_formatted_as_jq_formats_them() {
        check("@csv", r#"["a\"b",1.0,null,true]"#, r#""a""b",1.0,,true"#);
        check("@tsv", r#"["a\\b\nc",1,null]"#, "a\\\\b\\nc\t1\t");
        check(
            "@csv",
            "[[1]]",
            "the filter failed: \"array cannot be a cell\"",
        );
    }

    #[test]
    fn a_message_quotes_a_part_of_a_long_value() {
        let long = format!("\"{}\"", "x".repeat(9000));
        let quoted = format!("\"{}…{}\" with \"a\"", "x".repeat(146), "x".repeat(30));
        check(
            ".a",
            &long,
            &format!("the filter failed: cannot index {quoted}"),
        );
    }

    #[test]
    fn a_filter_may_define_its_own_names() {
        check("def head(n): \"own\"; head(1)", "[1]", "own");
        check(".head", r#"{"head":1}"#, "1");
    }
}
