//! Whether the log and the targets of its copies can be reached, for `mcpzip doctor`. Nothing is written.

use std::io;
use std::path::Path;

use super::syslog::Connection;
use super::{Audit, Directories};
use crate::config::AuditCopies;
use crate::telemetry::collector::{Sender, Sent};
use crate::text::chain;

/// A request for logs without any.
const NO_LOGS: &str = r#"{"resourceLogs":[]}"#;

impl Audit {
    /// Checks that the log in `directories` can be written.
    ///
    /// # Errors
    /// When one of them is not a directory, or a line could not be written there.
    pub(crate) fn check(directories: &Directories) -> io::Result<()> {
        let found = [&directories.chains, &directories.heads];
        found.into_iter().try_for_each(|directory| check(directory))
    }

    /// The targets of copies that take none, each with the reason. A server that takes UDP is only looked up. Blocks on the socket.
    pub(crate) async fn unreachable(copies: &AuditCopies) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        if let Some(address) = copies.syslog.clone() {
            let connected = Connection::new(address).open();
            found.extend(connected.err().map(|error| ("syslog", chain(&error))));
        }
        if let Some(collector) = &copies.otlp {
            let mut sender = Sender::default();
            let sent = sender.post(collector, NO_LOGS.to_owned()).await;
            if let Sent::Later(reason, _) | Sent::Refused(reason) = sent {
                found.push(("otlp", reason));
            }
        }
        found
    }
}

/// Checks the directory, or the nearest one above it that exists.
fn check(directory: &Path) -> io::Result<()> {
    for at in directory.ancestors() {
        match at.metadata() {
            Ok(found) if found.is_dir() => return is_writable(at),
            Ok(_) => {
                let path = at.display();
                return Err(io::Error::other(format!("`{path}` is not a directory")));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(unix)]
fn is_writable(directory: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    access(directory, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| io::Error::other(format!("`{}`: {error}", directory.display())))
}

/// On other systems, only the first line shows it.
#[cfg(not(unix))]
fn is_writable(_: &Path) -> io::Result<()> {
    Ok(())
}
