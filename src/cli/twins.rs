//! Choices about the secrets of servers that are taken over: whether two servers that differ only in
//! them are merged, and whether literal ones move to the file of secrets.

use std::path::Path;

use clap::Args;
use serde_json::{Value, json};

use super::output::Output;
use super::setup::{Machine, below_home};
use crate::clients::{Choice, SecretsPlan, Twin};
use crate::config::{command_with_options, secrets_file};
use crate::proxy::counted;
use crate::text::shell_word;

/// The command that moves literal secrets of the configuration.
const LATER: &str = "mcpzip config extract-secrets";

#[derive(Debug, Args)]
pub(super) struct SecretFlags {
    /// Merge the servers of this name that differ only in a secret; may be given several times
    #[arg(long, value_name = "NAME")]
    merge: Vec<String>,
    /// Move literal secrets of new servers to the file of secrets, and write `${NAME}` instead
    #[arg(long)]
    extract_secrets: bool,
}

impl SecretFlags {
    /// Adds the flags to a choice.
    pub(super) fn choose(&self, choice: &mut Choice) {
        choice.merged.extend(self.merge.iter().cloned());
        choice.extracts_secrets |= self.extract_secrets;
    }
}

/// Asks which servers of `plan` are one. Returns whether `choice` has changed.
///
/// # Errors
/// When an answer cannot be read.
pub(super) fn ask_to_merge(
    plan: &SecretsPlan,
    choice: &mut Choice,
    output: &Output,
) -> std::io::Result<bool> {
    let before = choice.merged.len();
    for twin in &plan.twins {
        if output.ask(&format!("{}. Make them one server?", sentence(twin)))? {
            choice.merged.insert(twin.server.clone());
        }
    }
    Ok(choice.merged.len() > before)
}

/// Asks whether the literal secrets of `plan` move. Returns whether `choice` has changed.
///
/// # Errors
/// When the answer cannot be read.
pub(super) fn ask_to_extract(
    plan: &SecretsPlan,
    choice: &mut Choice,
    machine: &Machine,
    output: &Output,
) -> std::io::Result<bool> {
    if let Some(question) = question(plan, machine) {
        output.notable(&format!(
            "literal secrets in new servers: {}",
            listed(&plan.literals)
        ));
        choice.extracts_secrets = output.ask(&question)?;
    }
    Ok(choice.extracts_secrets)
}

/// The question about the literal secrets of a plan, if it has any.
pub(super) fn question(plan: &SecretsPlan, machine: &Machine) -> Option<String> {
    let secrets = literal_count(plan)?;
    let file = file(machine);
    Some(format!(
        "Move {secrets} to {file}, and write `${{NAME}}` instead?"
    ))
}

/// The difference of two servers.
pub(super) fn sentence(twin: &Twin) -> String {
    let Twin {
        server,
        client,
        known,
        secrets,
        is_complement,
        is_unread,
    } = twin;
    let secrets = secrets.join(", ");
    let why = match (is_unread, is_complement) {
        (true, _) => {
            ", of which a stored secret cannot be read now, so that they are two servers with the rules of both"
        }
        (false, true) => ", which one of them takes from a variable that is not set",
        (false, false) => "",
    };
    format!("`{server}` of {client} differs from `{known}` in {secrets} alone{why}")
}

/// The difference of two servers, for a line of a dialog.
pub(super) fn in_short(twin: &Twin) -> String {
    let Twin {
        server,
        client,
        known,
        secrets,
        ..
    } = twin;
    format!(
        "{server} ({client}) is {known} but for {}",
        secrets.join(", ")
    )
}

/// Sentences for the user about choices that were not made.
pub(super) fn notes(plan: &SecretsPlan, machine: &Machine) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for twin in &plan.twins {
        let loss = match twin.is_complement {
            true => "",
            false => ", which keeps the secret of the latter",
        };
        notes.push(format!(
            "{}: `--merge {}` makes them one server{loss}",
            sentence(twin),
            shell_word(&twin.server)
        ));
    }
    if literal_count(plan).is_some() {
        notes.push(format!(
            "literal secrets in new servers: {}. `--extract-secrets` moves them to {} and writes `${{NAME}}` instead; so does \
             `{}` later. `mcpzip secret migrate` moves them to the keychain or an encrypted file",
            listed(&plan.literals),
            file(machine),
            LATER
        ));
    }
    if !plan.stored.is_empty() {
        let names: Vec<&str> = plan.stored.iter().map(|(name, _)| name.as_str()).collect();
        notes.push(format!(
            "{} has the values of {}; they take precedence over variables of the environment",
            file(machine),
            names.join(", ")
        ));
    }
    notes.extend(about_staying(&plan.staying));
    notes
}

/// A remark about the texts at these paths, which are hidden as secrets and stay.
pub(super) fn about_staying(paths: &[String]) -> Option<String> {
    (!paths.is_empty()).then(|| {
        format!(
            "these may be secrets and stay in the file: {}; `mcpzip secret set NAME` stores one, and `${{keyring:NAME}}` stands for it",
            paths.join(", ")
        )
    })
}

/// The next step after an import that left literal secrets, with the command that moves them.
pub(super) fn next_step(plan: &SecretsPlan, machine: &Machine) -> Option<(String, String)> {
    let secrets = literal_count(plan)?;
    let text = format!("moves {secrets} to {}", file(machine));
    Some((command_with_options(LATER), text))
}

/// The servers with their literal secrets, for a sentence.
pub(super) fn listed(literals: &[(String, Vec<String>)]) -> String {
    let servers: Vec<String> = literals
        .iter()
        .map(|(server, keys)| format!("{server} ({})", keys.join(", ")))
        .collect();
    servers.join(", ")
}

/// The choices as JSON, without any secret.
pub(super) fn to_json(plan: &SecretsPlan, config_file: &Path) -> Value {
    let twins = plan.twins.iter().map(|twin| {
        json!({ "server": twin.server, "client": twin.client, "same_as": twin.known, "secrets": twin.secrets })
    });
    let literals = plan
        .literals
        .iter()
        .map(|(server, keys)| json!({ "server": server, "secrets": keys }));
    let stored = plan.stored.iter().map(|(name, _)| name);
    json!({
        "twins": twins.collect::<Vec<_>>(),
        "literal": literals.collect::<Vec<_>>(),
        "stored": stored.collect::<Vec<_>>(),
        "file": secrets_file(config_file).display().to_string(),
    })
}

fn literal_count(plan: &SecretsPlan) -> Option<String> {
    let count = plan.literals.iter().map(|(_, keys)| keys.len()).sum();
    (count > 0).then(|| counted(count, "literal secret"))
}

fn file(machine: &Machine) -> String {
    below_home(
        &secrets_file(&machine.paths.config_file),
        &machine.around.home,
    )
}
