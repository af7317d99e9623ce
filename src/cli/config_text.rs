//! `mcpzip config show`, `check` and `write`: the text of the configuration, its faults, and a new text, for pages and editors.
//!
//! Literal secrets are not shown. The shown text has a number for each, and a new text gets them back by these numbers.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::diagnostics::Exit;
use super::output::{Output, bad, caution, good};
use super::printable::printable;
use crate::config::{
    Config, Document, EditError, Environment, Error, Hidden, LARGEST_FILE, Paths, Position,
    Warning, edit, is_inline,
};
use crate::files;
use crate::proxy::counted;
use crate::secret::Masker;
use crate::text::{chain, hex};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip config show
  mcpzip config show --json | jq .faults

A literal secret is shown as `\"<hidden 1>\"`, with a number for each. `check` and `write` put the secrets back in.")]
pub(super) struct ShowArguments {}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip config check
  mcpzip config check new.json
  mcpzip config check - < new.json

It ends with 3 if the configuration or one of its entries cannot be used.")]
pub(super) struct CheckArguments {
    /// File to check in place of the configuration; `-` is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip config write --before 3f0c91a2… new.json
  mcpzip config write --before 3f0c91a2… - < new.json

A text that cannot be read as a configuration is not written. Faults of single entries are shown, and the others work.")]
pub(super) struct WriteArguments {
    /// Digest of the configuration that the new text was made from, as `mcpzip config show` prints it
    #[arg(long, value_name = "DIGEST")]
    before: String,
    /// File with the new text; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Something about the text at a position.
#[derive(Debug, Serialize)]
struct Remark {
    line: usize,
    column: usize,
    message: String,
}

/// The faults and warnings of a text.
#[derive(Debug, Default, Serialize)]
struct Checked {
    faults: Vec<Remark>,
    warnings: Vec<Remark>,
}

pub(super) fn show(paths: &Paths, environment: &Environment, output: &Output) -> Result<(), Exit> {
    let file = &paths.config_file;
    let text = current(file)?;
    let hidden = hidden(&text, file, environment);
    let checked = Checked::of(&text, hidden.as_ref(), file, environment);
    let digest = digest(&text);
    if output.is_json() {
        let shown = hidden.as_ref().map(|hidden| &hidden.text);
        let Checked { faults, warnings } = &checked;
        output.json(&json!({
            "path": file.display().to_string(), "text": shown, "digest": digest, "faults": faults, "warnings": warnings,
        }));
        return Ok(());
    }
    if !file.exists() {
        return Err(Error::absent(file).into());
    }
    match &hidden {
        Some(hidden) => output.verbatim(hidden.text.trim_end()),
        None => {
            output
                .note("it is not JSON, so the secrets in it cannot be found, and it is not shown");
        }
    }
    checked.show(file, output);
    output.note(&format!(
        "digest of this text, for `mcpzip config write --before`: {digest}"
    ));
    Ok(())
}

pub(super) fn check(
    arguments: &CheckArguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let file = &paths.config_file;
    let own = current(file)?;
    if arguments.file.is_none() && !file.exists() {
        return Err(Error::absent(file).into());
    }
    let hidden = hidden(&own, file, environment);
    let (text, place) = match &arguments.file {
        None => (own, file),
        Some(other) => (restored(&read(other)?, hidden.as_ref())?, other),
    };
    let mut checked = Checked::of(&text, hidden.as_ref(), file, environment);
    if text.trim().is_empty() {
        checked.warnings.push(Remark {
            line: 1,
            column: 1,
            message: "the text is empty: it has no servers".to_owned(),
        });
    }
    if output.is_json() {
        output.json(&checked);
    } else {
        checked.show(place, output);
        if checked.faults.is_empty() {
            output.line(verdict(&place.display(), checked.warnings.len()));
        }
    }
    match checked.faults.is_empty() {
        true => Ok(()),
        false => Err(Exit::of_setting(&"the configuration has faults")),
    }
}

pub(super) fn write(
    arguments: &WriteArguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let file = &paths.config_file;
    let new = read(&arguments.file)?;
    // A text that is not JSON now can be replaced, but has no secrets to come back.
    let before = current(file)?;
    if digest(&before) != arguments.before {
        return Err(changed());
    }
    let hidden = hidden(&before, file, environment);
    let whole = restored(&new, hidden.as_ref())?;
    Config::parse(&whole, file, environment)?;
    if Document::parse(&before).is_err() {
        return Err(Exit::failed(
            "the configuration is not JSON at the moment: correct it with `mcpzip config edit`",
        ));
    }
    edit(file, |document| -> Result<(), Refused> {
        if digest(&document.text()) != arguments.before {
            return Err(Refused(changed()));
        }
        *document =
            Document::parse(&whole).map_err(|error| Refused(Exit::failed(error.to_string())))?;
        Ok(())
    })
    .map_err(|Refused(exit)| exit)?;
    let checked = Checked::of(&whole, hidden.as_ref(), file, environment);
    if output.is_json() {
        let Checked { faults, warnings } = &checked;
        output.json(&json!({
            "path": file.display().to_string(), "digest": digest(&current(file)?), "faults": faults, "warnings": warnings,
        }));
    } else {
        checked.show(file, output);
        output.line(format!("{} {} is replaced", good("✓"), file.display()));
    }
    Ok(())
}

/// Why the file was not replaced.
struct Refused(Exit);

impl From<EditError> for Refused {
    fn from(error: EditError) -> Self {
        Self(anyhow::Error::from(error).into())
    }
}

/// The last line of a check without faults.
pub(super) fn verdict(file: &impl std::fmt::Display, warnings: usize) -> String {
    match warnings {
        0 => format!("{} {file} is valid", good("✓")),
        _ => format!(
            "{} {file} can be used, with {}",
            caution("!"),
            counted(warnings, "warning")
        ),
    }
}

/// A sentence about each profile whose sessions are refused.
pub(super) fn refusing_profiles(config: &Config) -> Vec<String> {
    let names = config.profiles.iter().flat_map(|profiles| profiles.keys());
    let refused = names.filter_map(|name| {
        let refusal = config.narrowed(std::slice::from_ref(name)).err()?;
        Some(format!(
            "the profile `{name}` cannot be used, and its sessions are refused: {refusal}"
        ))
    });
    refused.collect()
}

impl Checked {
    /// Checks `text`. Positions are those of the text without secrets.
    fn of(text: &str, hidden: Option<&Hidden>, file: &Path, environment: &Environment) -> Self {
        let position = |position: Position| match hidden {
            Some(hidden) => hidden.position(text, position),
            None => position,
        };
        let known = hidden.map_or_else(Masker::default, Hidden::masker);
        let remark = |at: Position, message: String, masker: &Masker| {
            let Position { line, column } = position(at);
            let message = masker.mask(&known.mask(&message)).into_owned();
            Remark {
                line,
                column,
                message,
            }
        };
        let start = Position { line: 1, column: 1 };
        let none = Masker::default();
        match Config::parse(text, file, environment) {
            Ok(config) => {
                let masker = &config.masker;
                let faults = config.faults.iter().map(|fault| {
                    let what = format!("server `{}`: {}", fault.name, fault.fault);
                    remark(fault.position, what, masker)
                });
                let profiles = refusing_profiles(&config).into_iter();
                let faults = faults.chain(profiles.map(|what| remark(start, what, masker)));
                let of =
                    |warning: &Warning| remark(warning.position, warning.kind.to_string(), masker);
                let warnings = config.warnings.iter();
                let (refused, warnings): (Vec<_>, Vec<_>) =
                    warnings.partition(|warning| warning.kind.is_refusal());
                let faults = faults.chain(refused.into_iter().map(of));
                let warnings = warnings.into_iter().map(of);
                Self {
                    faults: faults.collect(),
                    warnings: warnings.collect(),
                }
            }
            // An empty file has no servers, and that is not a fault.
            Err(Error::Empty { .. }) => Self::default(),
            Err(error) => {
                let remark = match error {
                    Error::Syntax {
                        position, problem, ..
                    } => remark(position, problem, &none),
                    Error::Shape {
                        position, fault, ..
                    } => remark(position, chain(&*fault), &none),
                    error => remark(start, chain(&error), &none),
                };
                Self {
                    faults: vec![remark],
                    warnings: Vec::new(),
                }
            }
        }
    }

    fn show(&self, file: &Path, output: &Output) {
        let all = self.faults.iter().map(|one| (bad("✗"), one));
        let all = all.chain(self.warnings.iter().map(|one| (caution("!"), one)));
        for (sign, remark) in all {
            let Remark {
                line,
                column,
                message,
            } = remark;
            let message = printable(message);
            output.notable(&format!(
                "{sign} {}:{line}:{column}: {message}",
                file.display()
            ));
        }
    }
}

/// The text of the configuration; empty if there is no file.
fn current(file: &Path) -> Result<String, Exit> {
    if is_inline(file) {
        return Err(anyhow::Error::from(EditError::Inline).into());
    }
    match Config::text_of(file.to_owned()) {
        Err(Error::Missing { .. }) => Ok(String::new()),
        read => Ok(read?),
    }
}

fn read(file: &Path) -> Result<String, Exit> {
    let unread = |why: String| Exit::failed(format!("`{}` cannot be read: {why}", file.display()));
    let bytes = match file.as_os_str() == "-" {
        false => {
            files::read_regular(file, LARGEST_FILE).map_err(|error| unread(error.to_string()))?
        }
        true => {
            let mut bytes = Vec::new();
            let mut stdin = std::io::stdin().lock().take(LARGEST_FILE);
            stdin
                .read_to_end(&mut bytes)
                .map_err(|error| unread(error.to_string()))?;
            bytes
        }
    };
    String::from_utf8(bytes).map_err(|_| unread("it is not UTF-8".to_owned()))
}

/// The text without its secrets. `None` if it is not JSON.
fn hidden(text: &str, file: &Path, environment: &Environment) -> Option<Hidden> {
    let config = Config::parse(text, file, environment);
    let masker = config.map_or_else(|_| Masker::default(), |config| config.masker);
    Hidden::of(text, &masker)
}

fn restored(text: &str, hidden: Option<&Hidden>) -> Result<String, Exit> {
    match hidden {
        Some(hidden) => Ok(hidden.restored(text).map_err(anyhow::Error::from)?),
        None => Ok(text.to_owned()),
    }
}

fn changed() -> Exit {
    Exit::failed("the configuration was changed meanwhile, and was not replaced: look at it again")
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text))
}
