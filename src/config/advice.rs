//! Commands that messages to people and agents name, such as `mcpzip doctor`. They get the files and directories of this process's
//! own command line, so that they act on the same configuration.

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

/// `text` for a person who uses the gateway of others: in place of each command in parentheses, `way`.
pub(crate) fn without_commands(text: &str, way: &str) -> String {
    const START: &str = "(`mcpzip ";
    let mut parts = text.split(START);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((_, rest)) => whole.push_str(&format!("({way}){rest}")),
            None => {
                whole.push_str(START);
                whole.push_str(part);
            }
        }
    }
    whole
}

/// The command `line`, such as `mcpzip status`, with the options.
pub(crate) fn command_with_options(line: &str) -> String {
    let text = format!("`{line}`");
    let quoted = OPTIONS.get().map(|options| options.commands(&text).0);
    quoted.unwrap_or(text).trim_matches('`').to_owned()
}

impl Options {
    fn complete<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.text.is_empty() && !self.is_inline || !text.contains("`mcpzip ") {
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
        let mut parts = text.split("`mcpzip ");
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
