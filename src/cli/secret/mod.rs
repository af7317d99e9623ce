//! `mcpzip secret`: the secrets that the configuration refers to by `${keyring:NAME}`; `list` also has those of the file of secrets
//! next to it.
//!
//! A value is read from a terminal without echo, or from stdin; no command prints one.

mod input;
mod migrate;

use std::collections::BTreeMap;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::completions;
use super::diagnostics::Exit;
use super::identity_token::date;
use super::output::{Output, bad, caution, faint, good, strong};
use super::recorder::Recorder;
use super::setup::Machine;
use crate::audit::{Kind, Outcome};
use crate::config::{
    self, Config, Credentials, NAME_RULE, SecretName, SecretUse, secret_uses, secrets_file,
    stored_secrets, variable_uses,
};
use crate::keychain::KeychainError;
use crate::keyring::{KeyringError, Listed, Location, Lock, Store};
use crate::sealing::Key;
use crate::secret::Secret;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Set a secret; its value is asked for, or read from stdin
    #[command(after_help = "Examples:
  mcpzip secret set github
  pass show github | mcpzip secret set github
  mcpzip secret set github --store file

The value is never an argument: other programs can read the arguments of a
process, and shells keep them. Of stdin, one line break at the end is left out.
Connections that use the secret restart.")]
    Set {
        /// Name of the secret, as in `${keyring:NAME}`
        #[arg(value_parser = name, add = completions::of_secrets())]
        name: SecretName,
        /// Place of a new secret [default: the keychain if there is one]
        #[arg(long, value_name = "STORE", value_parser = PossibleValuesParser::new(["keychain", "file"]))]
        store: Option<String>,
    },
    /// List names, places and uses of secrets, never values; includes the file next to the configuration
    #[command(after_help = "Examples:
  mcpzip secret list
  mcpzip secret list --json")]
    List,
    /// Remove secrets
    #[command(
        visible_alias = "remove",
        after_help = "Examples:
  mcpzip secret rm github
  mcpzip secret rm github slack"
    )]
    Rm {
        /// Names of the secrets
        #[arg(required = true, value_parser = name, add = completions::of_secrets())]
        names: Vec<SecretName>,
    },
    /// Print a new random key for MCPZIP_SECRET_KEY, which opens the encrypted file of secrets
    #[command(after_help = "Examples:
  mcpzip secret key
  mcpzip secret key --json")]
    Key,
    /// Open the encrypted file of secrets until the session of the user ends
    #[command(after_help = "Examples:
  mcpzip secret unlock
  pass show mcpzip | mcpzip secret unlock")]
    Unlock,
    /// Close the encrypted file of secrets: servers that use it stop
    #[command(after_help = "Examples:
  mcpzip secret lock
  mcpzip secret lock --json")]
    Lock,
    /// Move secrets from the configuration and from clients' files to the keychain or the encrypted file
    Migrate(migrate::Arguments),
}

fn name(text: &str) -> Result<SecretName, String> {
    SecretName::parse(text).ok_or_else(|| format!("the name of a secret has {NAME_RULE}"))
}

pub(super) async fn run(
    arguments: &Arguments,
    machine: &Machine,
    output: &Output,
) -> Result<(), Exit> {
    let store = Store::of(&machine.paths, &machine.around.environment);
    match &arguments.command {
        Command::Set { name, store: at } => {
            let at = at.as_deref().map(|word| match word {
                "file" => Location::File,
                _ => Location::Keychain,
            });
            set(name, at, &store, machine, output).await
        }
        Command::List => list(&store, machine, output),
        Command::Rm { names } => remove(names, &store, machine, output).await,
        Command::Key => {
            let key = Key::random().to_text();
            match output.is_json_asked() {
                true => output.json(&json!({ "key": key.expose() })),
                false => output.verbatim(key.expose()),
            }
            output.note("set MCPZIP_SECRET_KEY to this key where mcpzip is started, and keep a copy: without it the secrets in the file are lost");
            Ok(())
        }
        Command::Unlock => unlock(&store, machine, output).await,
        Command::Lock => {
            let was_open = store.lock().map_err(failed)?;
            match output.is_json() {
                true => output.json(&json!({ "locked": true, "was_open": was_open })),
                false if was_open => output.line(good("the file of secrets is locked")),
                false => output.line("the file of secrets was not open in this session"),
            }
            if store.has_variable() {
                output.note("MCPZIP_SECRET_KEY still opens it");
            }
            Ok(())
        }
        Command::Migrate(arguments) => migrate::run(arguments, &store, machine, output).await,
    }
}

fn failed(error: KeyringError) -> Exit {
    anyhow::Error::from(error).into()
}

async fn set(
    name: &SecretName,
    asked: Option<Location>,
    store: &Store,
    machine: &Machine,
    output: &Output,
) -> Result<(), Exit> {
    let known = store.list().map_err(failed)?;
    let known = known.iter().find(|known| known.name == *name);
    if let (Some(known), Some(asked)) = (known, asked)
        && known.location != asked
    {
        let at = known.location.word();
        return Err(Exit::failed(format!(
            "`{name}` is in the {at}: `mcpzip secret rm {name}` removes it from there"
        )));
    }
    let asked = known.map(|known| known.location).or(asked);
    check_place(name, asked, store, machine)?;
    let value = input::value(&format!("value of {name} (not shown)"), output)?;
    let location = keep(name, &value, asked, store, machine, output)?;
    record(&format!("the secret `{name}` was set"), machine, output).await;
    if output.is_json() {
        output.json(&json!({ "name": name.as_str(), "store": location.word() }));
    } else {
        let place = match location {
            Location::Keychain => "the keychain",
            Location::File => "the encrypted file",
        };
        output.line(good(format!("{place} has the secret {name}")));
        output.line(faint(format!(
            "`${{keyring:{name}}}` stands for it in the configuration"
        )));
    }
    if file_secrets(machine)?.contains_key(name.as_str()) {
        output.note(&format!(
            "`${{{name}}}` is still the value in {}; `${{keyring:{name}}}` stands for this secret",
            file_name(machine)
        ));
    }
    if let Some(note) = as_variable(name, machine)? {
        output.note(&note);
    }
    if value.expose().chars().count() < 6 {
        output.note("logs do not hide a value this short");
    }
    Ok(())
}

/// The advice where the configuration refers to a secret as if it was a variable of the environment; `None` if it does not.
fn as_variable(name: &SecretName, machine: &Machine) -> Result<Option<String>, Exit> {
    let uses = match variable_uses(&machine.paths, &machine.around.environment) {
        Err(config::Error::Missing { .. }) => Vec::new(),
        uses => uses?,
    };
    let uses = uses.iter().filter(|used| used.name == name.as_str());
    let paths: Vec<_> = uses
        .map(|used| format!("`{}`", super::printable::printable(&used.path)))
        .collect();
    if paths.is_empty() || file_secrets(machine)?.contains_key(name.as_str()) {
        return Ok(None);
    }
    Ok(Some(format!(
        "{} refers to the environment variable `${{{name}}}`: write `${{keyring:{name}}}` there to use this secret",
        paths.join(", ")
    )))
}

/// The place that was asked for, or else that of the configuration. `None` is the keychain, or the file if there is no keychain.
fn place_of(asked: Option<Location>, machine: &Machine) -> Result<Option<Location>, Exit> {
    let config = Config::load_or_default(&machine.paths, &machine.around.environment)?;
    Ok(asked.or(match config.credentials {
        Credentials::Auto => None,
        Credentials::Keychain => Some(Location::Keychain),
        Credentials::File => Some(Location::File),
    }))
}

/// Decides that the file is used in place of a keychain that failed with `error`. Returns the reason, unless there is no keychain.
///
/// # Errors
/// When the secret has to be in the keychain, or that is only locked.
fn instead_of_keychain(
    error: KeyringError,
    location: Option<Location>,
) -> Result<Option<KeychainError>, Exit> {
    match error {
        error if location.is_some() => Err(failed(error)),
        KeyringError::NoKeychain => Ok(None),
        KeyringError::Keychain(KeychainError::Locked) => Err(Exit::failed(
            "the keychain is locked: unlock it, or keep the secret in an encrypted file with `--store file`",
        )),
        KeyringError::Keychain(reason) => Ok(Some(reason)),
        error => Err(failed(error)),
    }
}

/// Checks, before a person is asked for anything, that [`keep`] can store a secret.
fn check_place(
    name: &SecretName,
    asked: Option<Location>,
    store: &Store,
    machine: &Machine,
) -> Result<(), Exit> {
    let location = place_of(asked, machine)?;
    if location != Some(Location::File) {
        match store.check_keychain(name) {
            Ok(()) => return Ok(()),
            Err(error) => drop(instead_of_keychain(error, location)?),
        }
    }
    check_file(store)
}

/// Checks that the file has a key, or can get or open one.
fn check_file(store: &Store) -> Result<(), Exit> {
    match store.lock_kind().map_err(failed)? {
        Lock::None if store.has_variable() => Ok(()),
        Lock::None if !store.has_session() => Err(Exit::failed(
            "there is no keychain here, and the encrypted file needs a key: set MCPZIP_SECRET_KEY to one of `mcpzip secret key`. A \
             passphrase would do only where XDG_RUNTIME_DIR names a directory that lasts as long as your session",
        )),
        Lock::None => input::check_new_passphrase(),
        Lock::Key | Lock::Passphrase => match store.key() {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(failed(KeyringError::NoKey)),
            Err(KeyringError::Locked) => input::check_passphrase(),
            Err(error) => Err(failed(error)),
        },
    }
}

/// Stores a secret at the place that was asked for, or else where new ones go.
fn keep(
    name: &SecretName,
    value: &Secret<String>,
    asked: Option<Location>,
    store: &Store,
    machine: &Machine,
    output: &Output,
) -> Result<Location, Exit> {
    let location = place_of(asked, machine)?;
    if location != Some(Location::File) {
        match store.set(name, value, Location::Keychain, None) {
            Ok(()) => return Ok(Location::Keychain),
            Err(error) => {
                let reason = instead_of_keychain(error, location)?;
                reason.iter().for_each(|reason| {
                    output.note(&format!("{reason}: the encrypted file is used"));
                });
            }
        }
    }
    let key = opened(store, output)?;
    let set = store.set(name, value, Location::File, Some(&key));
    set.map(|()| Location::File).map_err(failed)
}

/// The key of the file. A file without one gets one; a locked file is opened by its passphrase.
fn opened(store: &Store, output: &Output) -> Result<Key, Exit> {
    check_file(store)?;
    let lock = store.lock_kind().map_err(failed)?;
    let key = match lock {
        Lock::None if store.has_variable() => return store.make_key(None).map_err(failed),
        Lock::None => store.make_key(Some(&input::new_passphrase(output)?)),
        Lock::Key | Lock::Passphrase => match store.key() {
            Ok(key) => return key.ok_or_else(|| failed(KeyringError::NoKey)),
            Err(KeyringError::Locked) => {
                store.open(&input::passphrase("passphrase of the file of secrets")?)
            }
            Err(error) => Err(error),
        },
    };
    let key = key.map_err(failed)?;
    store.unlock(&key).map_err(failed)?;
    output.note("the file of secrets is open until your session ends, or `mcpzip secret lock`");
    Ok(key)
}

async fn unlock(store: &Store, machine: &Machine, output: &Output) -> Result<(), Exit> {
    if !store.has_session() {
        return Err(Exit::failed(
            "there is no directory that ends with your session (XDG_RUNTIME_DIR): set MCPZIP_SECRET_KEY where mcpzip is started",
        ));
    }
    let question = match store.lock_kind().map_err(failed)? {
        Lock::None => return Err(failed(KeyringError::NoKey)),
        Lock::Passphrase => "passphrase of the file of secrets",
        Lock::Key => "key of the file of secrets",
    };
    let key = store
        .open(&input::value(question, output)?)
        .map_err(failed)?;
    store.unlock(&key).map_err(failed)?;
    record("the file of secrets was unlocked", machine, output).await;
    match output.is_json() {
        true => output.json(&json!({ "locked": false })),
        false => output.line(good(
            "the file of secrets is open until your session ends, or `mcpzip secret lock`",
        )),
    }
    Ok(())
}

async fn remove(
    names: &[SecretName],
    store: &Store,
    machine: &Machine,
    output: &Output,
) -> Result<(), Exit> {
    let known = store.list().map_err(failed)?;
    if let Some(name) = names
        .iter()
        .find(|name| !known.iter().any(|it| it.name == **name))
    {
        return Err(Exit::failed(
            match file_secrets(machine)?.contains_key(name.as_str()) {
                true => format!(
                    "`{name}` is in {}: remove it there, in an editor",
                    secrets_file(&machine.paths.config_file).display()
                ),
                false => format!("there is no secret `{name}`; `mcpzip secret list` shows all"),
            },
        ));
    }
    let uses = uses(machine)?;
    for name in names {
        let was_there = store.remove(name).map_err(failed)?;
        if was_there {
            record(&format!("the secret `{name}` was removed"), machine, output).await;
        }
        let users = users_of(name, &uses);
        if !users.is_empty() {
            output.note(&format!("`{name}` is missing now in {}", users.join(", ")));
        }
    }
    let names: Vec<&str> = names.iter().map(SecretName::as_str).collect();
    match output.is_json() {
        true => output.json(&json!({ "removed": names })),
        false => output.line(good(format!("removed {}", names.join(", ")))),
    }
    Ok(())
}

fn list(store: &Store, machine: &Machine, output: &Output) -> Result<(), Exit> {
    let mut stored = BTreeMap::new();
    for secret in store.list().map_err(failed)? {
        stored.insert(secret.name.clone(), secret);
    }
    let uses = uses(machine)?;
    let mut names: Vec<&SecretName> = stored.keys().collect();
    names.extend(uses.iter().map(|used| &used.name));
    names.sort();
    names.dedup();
    let in_file = in_file(machine)?;
    let file = file_name(machine);
    let mut advice = Vec::new();
    for name in stored
        .keys()
        .filter(|name| users_of(name, &uses).is_empty())
    {
        advice.extend(as_variable(name, machine)?);
    }
    if output.is_json() {
        let shown = names
            .iter()
            .map(|name| to_json(name, stored.get(*name), &uses));
        let in_file = in_file.iter().map(|(name, users)| {
            json!({ "name": name, "store": "plain", "set_at": null, "used_by": users })
        });
        output.json(&shown.chain(in_file).collect::<Vec<Value>>());
        advice.iter().for_each(|note| output.note(note));
        return Ok(());
    }
    if names.is_empty() && in_file.is_empty() {
        output
            .line("there are no secrets; `mcpzip secret set NAME` sets one for `${keyring:NAME}`");
    }
    for name in &names {
        let state = match stored.get(*name) {
            Some(secret) => format!(
                "{}, {}",
                secret.location.word(),
                faint(format!("set {}", date(secret.changed)))
            ),
            None => bad("not set"),
        };
        let users = shown_users(&users_of(name, &uses));
        output.row(format!("{}  ", strong(name)), format!("{state}; {users}"));
    }
    for (name, users) in &in_file {
        let name = super::printable::printable(name);
        let users = shown_users(users);
        output.row(format!("{}  ", strong(name)), format!("{file}; {users}"));
    }
    advice.iter().for_each(|note| output.note(note));
    if !in_file.is_empty() {
        output.line(faint(format!(
            "{file} has its values as text; `mcpzip secret migrate` moves them to the keychain or the encrypted file"
        )));
    }
    Ok(())
}

fn shown_users(users: &[String]) -> String {
    match users {
        [] => caution("not used"),
        users => format!("used by {}", users.join(", ")),
    }
}

/// The secrets of the file next to the configuration.
fn file_secrets(machine: &Machine) -> Result<BTreeMap<String, String>, Exit> {
    Ok(stored_secrets(&machine.paths.config_file)?)
}

fn file_name(machine: &Machine) -> String {
    let path = secrets_file(&machine.paths.config_file);
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The names in the file of secrets, with the paths of the texts that refer to them.
fn in_file(machine: &Machine) -> Result<Vec<(String, Vec<String>)>, Exit> {
    let names = file_secrets(machine)?.into_keys();
    let uses = match variable_uses(&machine.paths, &machine.around.environment) {
        Err(config::Error::Missing { .. }) => Vec::new(),
        uses => uses?,
    };
    Ok(names
        .map(|name| {
            let users = uses.iter().filter(|used| used.name == name);
            let users = users.map(|used| super::printable::printable(&used.path));
            (name.clone(), users.collect())
        })
        .collect())
}

fn to_json(name: &SecretName, stored: Option<&Listed>, uses: &[SecretUse]) -> Value {
    json!({
        "name": name.as_str(),
        "store": stored.map(|secret| secret.location.word()),
        "set_at": stored.map(|secret| date(secret.changed)),
        "used_by": users_of(name, uses),
    })
}

/// The uses in the configuration; none if there is no configuration.
fn uses(machine: &Machine) -> Result<Vec<SecretUse>, Exit> {
    match secret_uses(&machine.paths, &machine.around.environment) {
        Err(config::Error::Missing { .. }) => Ok(Vec::new()),
        uses => Ok(uses?),
    }
}

fn users_of(name: &SecretName, uses: &[SecretUse]) -> Vec<String> {
    let used = uses.iter().filter(|used| used.name == *name);
    used.map(|used| super::printable::printable(&used.path))
        .collect()
}

async fn record(detail: &str, machine: &Machine, output: &Output) {
    let config = Config::load_or_default(&machine.paths, &machine.around.environment);
    // A configuration that cannot be used has no audit log either.
    if let Ok(config) = config {
        let event = (Kind::Configuration, Outcome::Ok);
        let recorder = Recorder::new(config, &machine.paths);
        recorder.note(event, None, detail, output).await;
    }
}
