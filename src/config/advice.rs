//! Commands that messages to people and agents name, such as `mcpzip doctor`. They get the files and directories of this process's
//! own command line, so that they act on the same configuration. A message has a command in backticks, in a clause of its own: for a
//! person who uses the gateway of others, the clause is replaced.

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

use super::env::Environment;
use super::paths::{PathFlags, Paths, is_inline};

/// The options of this process. They are global because log lines name commands, too.
static OPTIONS: OnceLock<Options> = OnceLock::new();

/// Commands that use no configuration.
const FREE: [&str; 4] = ["demo", "completions", "man", "help"];

/// Commands that write the configuration, or a client's entry that relies on it.
const WRITING: [&str; 9] = [
    "add", "init", "migrate", "connect", "update", "remove", "enable", "disable", "config",
];

/// Commands with a counterpart in the window of a gateway, for those who manage it.
const IN_WINDOW: [&str; 5] = ["approve", "approvals", "enable", "disable", "logs"];

/// The command that is the gateway itself.
const SERVE: &str = "serve";

const START: &str = "`mcpzip ";

/// The next step of a person in place of a command.
const ASK: &str = "ask who runs this gateway";

/// The remedy in place of a command that writes, if the configuration is a variable.
const INLINE: &str =
    "; while `MCPZIP_CONFIG_JSON` is the configuration, change or unset that instead";

#[derive(Debug)]
struct Options {
    /// The options, each after a space.
    text: String,
    is_inline: bool,
}

/// Remembers the options for all messages from now on: the paths that a command without options would not have. The first call in
/// a process counts.
pub(crate) fn remember_options(paths: &Paths, environment: &Environment) {
    let usual = Paths::resolve(PathFlags::default(), environment).ok();
    let text = usual.map_or_else(String::new, |usual| options(paths, &usual));
    // Sessions of one daemon have the same paths.
    let _ = OPTIONS.set(Options {
        text,
        is_inline: is_inline(&paths.config_file),
    });
}

fn options(paths: &Paths, usual: &Paths) -> String {
    let pairs = [
        ("--config", &paths.config_file, &usual.config_file),
        ("--cache-dir", &paths.cache_dir, &usual.cache_dir),
        ("--state-dir", &paths.state_dir, &usual.state_dir),
    ];
    let differing = pairs.into_iter().filter(|(_, path, usual)| path != usual);
    let options = differing.map(|(flag, path, _)| format!(" {flag} {}", quoted(path)));
    options.collect()
}

/// `text` with the options in each command that it names in backticks.
pub(crate) fn with_options(text: &str) -> Cow<'_, str> {
    match OPTIONS.get() {
        Some(options) => options.complete(text),
        None => Cow::Borrowed(text),
    }
}

/// `text` for a person who uses the gateway of others, without its commands: each clause that names one says whom to ask instead, or
/// names `window`, if the person manages the gateway there and the command has a counterpart in it.
pub(crate) fn without_commands<'t>(text: &'t str, window: Option<&str>) -> Cow<'t, str> {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((at, end, name)) = next_command(rest) {
        let (before, after) = (&rest[..at], &rest[end..]);
        if name == SERVE {
            whole.push_str(before);
            whole.push_str("this gateway");
            rest = after;
            continue;
        }
        let before = &before[..clause_begins(before)];
        whole.push_str(before);
        rest = &after[clause_ends(after)..];
        match window.filter(|_| IN_WINDOW.contains(&name)) {
            Some(window) if before.ends_with('(') => whole.push_str(&format!("in {window}")),
            Some(window) => whole.push_str(&format!("see {window}")),
            None if before.ends_with(". ") => whole.push_str(&format!("A{}", &ASK[1..])),
            None => whole.push_str(ASK),
        }
    }
    if whole.is_empty() {
        return Cow::Borrowed(text);
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// The place of the next command in `text`, its end after the backtick, and the command's name. A command that no backtick closes in its line
/// is text of a server.
fn next_command(text: &str) -> Option<(usize, usize, &str)> {
    let mut places = text.match_indices(START).map(|(at, _)| at);
    places.find_map(|at| {
        let begin = at + START.len();
        let end = begin + text[begin..].find(['`', '\n'])?;
        let command = &text[begin..end];
        let is_command = command.starts_with(|c: char| c.is_ascii_lowercase() || c == '-');
        let is_closed = text[end..].starts_with('`');
        let name = command.split(' ').next().unwrap_or_default();
        (is_command && is_closed).then_some((at, end + 1, name))
    })
}

/// The beginning of the last clause of `text`, after a word that joins it to the one before.
fn clause_begins(text: &str) -> usize {
    let (bytes, mut depth) = (text.as_bytes(), 0);
    let begins = |at: &usize| match bytes[at - 1] {
        b')' => {
            depth += 1;
            false
        }
        b'(' if depth > 0 => {
            depth -= 1;
            false
        }
        b'(' | b'\n' => true,
        b' ' => depth == 0 && *at > 1 && b";:,.".contains(&bytes[at - 2]),
        _ => false,
    };
    let begin = (1..=text.len()).rev().find(begins).unwrap_or(0);
    let mut joints = ["and ", "or ", "so "].iter();
    let joint = joints.find(|joint| text[begin..].starts_with(**joint));
    begin + joint.map_or(0, |joint| joint.len())
}

/// The end of the first clause of `text`.
fn clause_ends(text: &str) -> usize {
    let (bytes, mut depth, mut is_quoted) = (text.as_bytes(), 0, false);
    let ends = |at: &usize| match bytes[*at] {
        b'`' => {
            is_quoted = !is_quoted;
            false
        }
        b'\n' => true,
        _ if is_quoted => false,
        b'(' => {
            depth += 1;
            false
        }
        b')' if depth > 0 => {
            depth -= 1;
            false
        }
        b')' => true,
        b';' | b':' | b',' | b'.' => {
            let next = bytes.get(at + 1);
            depth == 0 && next.is_none_or(u8::is_ascii_whitespace)
        }
        _ => false,
    };
    (0..text.len()).find(ends).unwrap_or(text.len())
}

/// The command `line`, such as `mcpzip status`, with the options.
pub(crate) fn command_with_options(line: &str) -> String {
    let text = format!("`{line}`");
    let quoted = OPTIONS.get().map(|options| options.commands(&text).0);
    quoted.unwrap_or(text).trim_matches('`').to_owned()
}

impl Options {
    fn complete<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.text.is_empty() && !self.is_inline || !text.contains(START) {
            return Cow::Borrowed(text);
        }
        let (mut text, writes) = self.commands(text);
        if writes && self.is_inline {
            let at = text.strip_suffix('.').map_or(text.len(), str::len);
            text.insert_str(at, INLINE);
        }
        Cow::Owned(text)
    }

    /// The text with the options, and whether one of its commands writes.
    fn commands(&self, text: &str) -> (String, bool) {
        let mut parts = text.split(START);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        let mut writes = false;
        for part in parts {
            let mut words = part.split('`').next().unwrap_or_default().split(' ');
            let name = words.next().unwrap_or_default();
            let is_name = name.starts_with(|c: char| c.is_ascii_lowercase());
            let flags = ["--config", "--cache-dir", "--state-dir"];
            // A command with a file of its own is not about this configuration.
            let is_own =
                |word: &str| word == "FILE" || flags.iter().any(|flag| word.starts_with(flag));
            let has_options = words.any(is_own);
            whole.push_str("`mcpzip");
            if is_name && !has_options && !FREE.contains(&name) {
                whole.push_str(&self.text);
                writes |= WRITING.contains(&name);
            }
            whole.push(' ');
            whole.push_str(part);
        }
        (whole, writes)
    }
}

/// A path as one word of a command line.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@%+,\\~".contains(c);
    match text.chars().all(is_plain) && (cfg!(windows) || !text.contains('\\')) {
        true => text,
        false if cfg!(windows) => format!("\"{text}\""),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_at_a_gateway_reads_whom_to_ask_in_place_of_a_command() {
        let window = "the window of this gateway";
        for (text, expected, to_manager) in [
            (
                "login needed: run `mcpzip login web`, because the previous login has ended. Next: call again.",
                "login needed: ask who runs this gateway, because the previous login has ended. Next: call again.",
                "",
            ),
            (
                "web (server `web` requires a login (HTTP 401): run `mcpzip login web`), git",
                "web (server `web` requires a login (HTTP 401): ask who runs this gateway), git",
                "",
            ),
            (
                "renew the token there, or remove it and run `mcpzip login web`",
                "renew the token there, or ask who runs this gateway",
                "",
            ),
            (
                "before a person approves it (`mcpzip approve web`). Next: use another tool.",
                "before a person approves it (ask who runs this gateway). Next: use another tool.",
                "before a person approves it (in the window of this gateway). Next: use another tool.",
            ),
            (
                "so `mcpzip doctor` and `mcpzip logs web` show a person its own words; next attempt now",
                "so ask who runs this gateway; next attempt now",
                "",
            ),
            (
                "it is withheld; `mcpzip logs web` shows it to a person",
                "it is withheld; ask who runs this gateway",
                "it is withheld; see the window of this gateway",
            ),
            (
                "set it there, store a value with `mcpzip secret set A` and write `${keyring:A}`, or write `${A:-default}`",
                "set it there, ask who runs this gateway, or write `${A:-default}`",
                "",
            ),
            (
                "it cannot be applied. `mcpzip --config 'a b' doctor git` shows the reason",
                "it cannot be applied. Ask who runs this gateway",
                "",
            ),
            (
                "on the page `/logins` of `mcpzip serve --http` alone",
                "on the page `/logins` of this gateway alone",
                "",
            ),
            (
                "mcpzip is `mcpzip`, `mcpzip 0.1` is older",
                "mcpzip is `mcpzip`, `mcpzip 0.1` is older",
                "",
            ),
            (
                "it said `mcpzip open, a\nanother `line` stays",
                "it said `mcpzip open, a\nanother `line` stays",
                "",
            ),
        ] {
            assert_eq!(without_commands(text, None), expected);
            let to_manager = if to_manager.is_empty() {
                expected
            } else {
                to_manager
            };
            assert_eq!(without_commands(text, Some(window)), to_manager);
        }
    }

    #[test]
    fn a_command_acts_on_the_same_configuration() {
        let options = Options {
            text: " --config 'my file'".into(),
            is_inline: false,
        };
        for (text, expected) in [
            (
                "see `mcpzip doctor`, or `mcpzip add NAME -- COMMAND`",
                "see `mcpzip --config 'my file' doctor`, or `mcpzip --config 'my file' add NAME -- COMMAND`",
            ),
            (
                "`mcpzip demo` and `mcpzip --help`",
                "`mcpzip demo` and `mcpzip --help`",
            ),
            (
                "`mcpzip serve --config FILE`",
                "`mcpzip serve --config FILE`",
            ),
            (
                "mcpzip is `mcpzip`, `mcpzip 0.1` is older",
                "mcpzip is `mcpzip`, `mcpzip 0.1` is older",
            ),
        ] {
            assert_eq!(options.complete(text), expected);
        }
        let inline = Options {
            text: String::new(),
            is_inline: true,
        };
        for (text, expected) in [
            (
                "Run `mcpzip init`.",
                "Run `mcpzip init`; while `MCPZIP_CONFIG_JSON` is the configuration, change or unset that instead.",
            ),
            ("see `mcpzip doctor`", "see `mcpzip doctor`"),
        ] {
            assert_eq!(inline.complete(text), expected);
        }
    }
}
