//! Removes the logins of people who have no token, invitation or grant any more, and those at a server without an entry that can be
//! used. This needs neither a server's entry nor a key, because a record's name identifies its person, its server and its URL.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::lock::lock_file;
use super::store::{is_of_person, is_of_server, name_at_provider};
use crate::files;
use crate::store::Records;

/// Whether the record of a name is that of one of these accounts.
pub(crate) fn of_people(accounts: &BTreeSet<String>) -> impl Fn(&str, &[u8]) -> bool {
    move |name, written| {
        let mut accounts = accounts.iter();
        accounts.any(|account| is_of_person((name, written), account))
    }
}

/// Whether the record of a name is that of everyone at this server, also if it is damaged, or at an identity provider: its issuer, and
/// the id of mcpzip there.
pub(crate) fn at_server(
    server: &str,
    provider: Option<(&str, &str)>,
) -> impl Fn(&str, &[u8]) -> bool {
    let provider = provider.map(|(issuer, client)| name_at_provider(issuer, client));
    move |name, _| is_of_server(name, server) || provider.as_deref() == Some(name)
}

/// Removes the wanted logins, which are files of `directory`. Returns their number.
///
/// # Errors
/// When one of them cannot be read or removed.
pub(crate) async fn forget(
    directory: &Path,
    is_wanted: impl Fn(&str, &[u8]) -> bool,
) -> io::Result<usize> {
    let listing = match std::fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut removed = 0;
    for file in listing {
        let path = file?.path();
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let bytes = match files::read_any(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let name = path.file_stem().and_then(|name| name.to_str());
        if name.is_some_and(|name| is_wanted(name, &bytes)) {
            // A process that renews the login would write it again.
            let _lock = lock_file(&path.with_extension("lock")).await?;
            match std::fs::remove_file(&path) {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(removed)
}

/// Removes the wanted logins from the store. Returns their number.
///
/// # Errors
/// When the store does not answer.
pub(crate) async fn forget_shared(
    store: &dyn Records,
    is_wanted: impl Fn(&str, &[u8]) -> bool,
) -> io::Result<usize> {
    let mut removed = 0;
    for (key, body) in store.logins().await? {
        if is_wanted(&key, &body) {
            // A replica that renews the login would write it again.
            let lease = store.lease_login(&key).await?;
            let saved = store.save_login(&lease, None).await;
            store.release_login(lease);
            saved?;
            removed += 1;
        }
    }
    Ok(removed)
}
