//! Checks of secrets: where they are kept, and which are still in clients' files.

use super::super::printable::printable;
use super::super::setup::{Machine, below_home, clients_of};
use super::super::twins::listed;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::clients::{Survey, client_literals};
use crate::keyring::{KeyringError, Location, Lock, Store};
use crate::text::chain;

pub(super) fn examine(machine: &Machine, examination: &mut Examination) {
    let survey = Survey::of(&clients_of(&[]), &machine.around);
    for (path, server, keys) in client_literals(&survey) {
        let subject = below_home(&path, &machine.around.home);
        let what = printable(&listed(&[(server, keys)]));
        examination.add(Finding::new(&kinds::SECRET_IN_CLIENT, subject, what));
    }
    let store = Store::of(&machine.paths, &machine.around.environment);
    let path = store.path().display().to_string();
    match state(&store) {
        Ok(None) => {}
        Ok(Some(what)) => examination.add(Finding::new(&kinds::SECRETS_STORE, path, what)),
        Err(error) => {
            examination.add(Finding::new(
                &kinds::SECRETS_UNREADABLE,
                path,
                chain(&error),
            ));
        }
    }
}

/// The places of the secrets, in words. `None` if there are no secrets.
fn state(store: &Store) -> Result<Option<String>, KeyringError> {
    let all = store.list()?;
    let count = |at| all.iter().filter(|secret| secret.location == at).count();
    let mut places = Vec::new();
    match count(Location::Keychain) {
        0 => {}
        count => places.push(format!("{count} in the keychain")),
    }
    match count(Location::File) {
        0 => {}
        count => places.push(format!(
            "{count} in the encrypted file, {}",
            opening(store)?
        )),
    }
    Ok((!places.is_empty()).then(|| places.join(", ")))
}

/// How the encrypted file is opened, and whether it is open.
fn opening(store: &Store) -> Result<String, KeyringError> {
    let by = match store.lock_kind()? {
        Lock::None => return Ok("which has no key".to_owned()),
        Lock::Key => "MCPZIP_SECRET_KEY",
        Lock::Passphrase => "a passphrase",
    };
    Ok(match store.key() {
        Ok(_) => format!("opened by {by}"),
        Err(error) => format!("locked by {by} ({})", chain(&error)),
    })
}
