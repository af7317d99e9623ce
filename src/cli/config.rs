//! `mcpzip config`: prints the configuration's path, text or schema, checks or replaces it, opens it in an editor, or moves secrets out
//! of it.

use std::path::Path;
use std::process::Command as Process;

use clap::{Args, Subcommand};
use serde_json::json;

use super::config_text;
use super::diagnostics::Exit;
use super::extract_secrets;
use super::migrate::older_note;
use super::output::{Output, caution};
use crate::config::find_program;
use crate::config::{Config, EditError, Environment, Error, Paths, env, is_inline, json_schema};
use crate::files::{self, leads_nowhere};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Print the path of the configuration
    Path(PathArguments),
    /// Open the configuration in your editor, then check it
    Edit(EditArguments),
    /// Print the configuration without its secrets, and its faults
    Show(config_text::ShowArguments),
    /// Check a configuration, and show its faults with their lines
    Check(config_text::CheckArguments),
    /// Replace the configuration by a text, if it is still the one that you saw
    Write(config_text::WriteArguments),
    /// Move literal secrets of servers to a private file, and write `${NAME}` instead
    ExtractSecrets(extract_secrets::Arguments),
    /// Print the JSON Schema of the configuration
    Schema(SchemaArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip config path
  mcpzip config path --json    also the directories of caches and logs")]
pub(super) struct PathArguments {}

#[derive(Debug, Args)]
#[command(
    after_help = "The editor is the command in VISUAL, else the one in EDITOR, else `editor`, `nano` or `vi`.

Examples:
  mcpzip config edit
  mcpzip config edit --config ./team.json"
)]
pub(super) struct EditArguments {}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip config schema
  mcpzip config schema > config.schema.json

With `\"$schema\": \"./config.schema.json\"` in the configuration, editors check it as you type.")]
pub(super) struct SchemaArguments {}

/// The content of a new configuration.
const EMPTY: &[u8] = b"{\n  \"mcpServers\": {}\n}\n";

pub(super) fn run(
    command: &Command,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    match command {
        Command::Schema(SchemaArguments {}) => output.json(&json_schema()),
        Command::Path(PathArguments {}) => show(paths, output),
        Command::Edit(EditArguments {}) => return edit(paths, environment, output),
        Command::Show(_) => return config_text::show(paths, environment, output),
        Command::Check(arguments) => {
            return config_text::check(arguments, paths, environment, output);
        }
        Command::Write(arguments) => {
            return config_text::write(arguments, paths, environment, output);
        }
        Command::ExtractSecrets(arguments) => {
            return extract_secrets::run(arguments, paths, environment, output);
        }
    }
    Ok(())
}

fn show(paths: &Paths, output: &Output) {
    let file = &paths.config_file;
    let nowhere = leads_nowhere(file).filter(|_| !is_inline(file));
    if output.is_json_asked() {
        let config = (!is_inline(file)).then(|| file.display().to_string());
        output.json(&json!({
            "config": config,
            "variable": is_inline(file).then_some(env::CONFIG_JSON.name),
            "exists": is_inline(file) || file.exists(),
            "problem": nowhere.map(|error| error.to_string()),
            "cache": paths.cache_dir.display().to_string(),
            "state": paths.state_dir.display().to_string(),
        }));
        return;
    }
    output.verbatim(file.display().to_string());
    if let Some(error) = nowhere {
        output.note(&format!("it cannot be read: {error}"));
    } else if !is_inline(file) && !file.exists() {
        output.note("it does not exist; `mcpzip init` or `mcpzip config edit` makes one");
    }
}

fn edit(paths: &Paths, environment: &Environment, output: &Output) -> Result<(), Exit> {
    let file = paths.config_file.as_path();
    if is_inline(file) {
        return Err(anyhow::Error::from(EditError::Inline).into());
    }
    if let Some(source) = leads_nowhere(file) {
        let path = file.to_owned();
        return Err(anyhow::Error::from(EditError::Disk { path, source }).into());
    }
    let editor = editor(environment, output.can_ask())?;
    if let Some(note) = older_note(file, environment) {
        output.note(&note);
    }
    if !file.exists() {
        files::create_private_directory(file.parent().unwrap_or(Path::new("")))?;
        files::replace(file, &[EMPTY])?;
    }
    loop {
        let ended = process(&editor, file).status().map_err(|error| {
            Exit::failed(format!(
                "the editor `{editor}` cannot be started: {error}; set VISUAL or EDITOR to another"
            ))
        })?;
        if !ended.success() {
            return Err(Exit::failed(format!(
                "the editor `{editor}` failed: {ended}"
            )));
        }
        let Err(fault) = check(paths, environment, output) else {
            return Ok(());
        };
        if !output.can_ask() || output.is_json_asked() {
            output.note("the file is as you saved it; `mcpzip config edit` opens it again");
            return Err(fault);
        }
        output.error(&fault);
        if !output.ask("Open the file again?")? {
            return Err(fault.printed());
        }
    }
}

/// Checks the edited file and prints its warnings and faults.
fn check(paths: &Paths, environment: &Environment, output: &Output) -> Result<(), Exit> {
    let path = paths.config_file.display();
    let config = Config::load(paths, environment)?;
    let mask = |text: String| config.masker.mask(&text).into_owned();
    for warning in &config.warnings {
        output.note(&mask(format!("{path}:{warning}")));
    }
    for fault in &config.faults {
        output.notable(&format!(
            "{} {}",
            caution("!"),
            mask(format!("{path}:{fault}"))
        ));
    }
    if let Some(fault) = config.faults.first() {
        let (path, position) = (paths.config_file.clone(), fault.position);
        let fault = Box::new(fault.fault.clone());
        return Err(Error::Shape {
            path,
            position,
            fault,
        }
        .into());
    }
    let mut warnings = config.warnings.iter();
    if let Some(refused) = warnings.find(|warning| warning.kind.is_refusal()) {
        return Err(Exit::of_setting(&mask(format!("{path}:{refused}"))));
    }
    if let Some(refused) = config_text::refusing_profiles(&config).first() {
        return Err(Exit::of_setting(&mask(format!("{path}: {refused}"))));
    }
    if output.is_json_asked() {
        output.json(&json!({ "config": paths.config_file.display().to_string(), "servers": config.servers.len() }));
    } else {
        output.notable(&config_text::verdict(&path, config.warnings.len()));
    }
    Ok(())
}

/// The command of the user's editor: `VISUAL`, else `EDITOR`, else the first of the usual ones that is there.
fn editor(environment: &Environment, is_terminal: bool) -> Result<String, Exit> {
    let named = [env::VISUAL, env::EDITOR].into_iter().find_map(|variable| {
        environment
            .get(variable.name)
            .filter(|command| !command.trim().is_empty())
    });
    match named {
        Some(command) => Ok(command.to_owned()),
        None if cfg!(windows) => Ok("notepad".to_owned()),
        None => {
            let path = environment.get("PATH").unwrap_or_default();
            // They need a terminal.
            let mut usual = ["editor", "nano", "vi"].into_iter().filter(|_| is_terminal);
            let found = usual.find(|name| find_program(name, path, environment).is_some());
            found.map(str::to_owned).ok_or_else(|| {
                Exit::failed(
                    "no editor is set: set VISUAL or EDITOR, or open the file that `mcpzip config path` prints",
                )
            })
        }
    }
}

/// Runs the editor's command in a shell, as git does, because it may have arguments and quotes.
#[cfg(unix)]
fn process(editor: &str, file: &Path) -> Process {
    let mut process = Process::new("/bin/sh");
    process
        .args(["-c", &format!("{editor} \"$@\""), editor])
        .arg(file);
    process
}

#[cfg(not(unix))]
fn process(editor: &str, file: &Path) -> Process {
    let mut words = editor.split_whitespace();
    let mut process = Process::new(words.next().unwrap_or_default());
    process.args(words).arg(file);
    process
}
