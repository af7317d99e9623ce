//! Removes the logins of people who have no token, invitation or grant any more. This needs neither a server's entry
//! nor a key, because a record's name identifies its person.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::lock::lock_file;
use super::store::written_name;
use crate::files;
use crate::store::Records;

/// Removes the logins of these accounts, which are files of `directory`. Returns their number.
///
/// # Errors
/// When one of them cannot be read or removed.
pub(crate) async fn forget(directory: &Path, accounts: &BTreeSet<String>) -> io::Result<usize> {
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
        let name = path.file_stem();
        let is_of = |account: &String| {
            let own = written_name(&bytes, account);
            own.is_some_and(|own| name.is_some_and(|name| name == own.as_str()))
        };
        if accounts.iter().any(is_of) {
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

/// Removes the logins of these accounts from the store. Returns their number.
///
/// # Errors
/// When the store does not answer.
pub(crate) async fn forget_shared(
    store: &dyn Records,
    accounts: &BTreeSet<String>,
) -> io::Result<usize> {
    if accounts.is_empty() {
        return Ok(0);
    }
    let mut removed = 0;
    for (key, body) in store.logins().await? {
        let is_of = |account: &String| written_name(&body, account).is_some_and(|own| own == key);
        if accounts.iter().any(is_of) {
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
