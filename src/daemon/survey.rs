//! Examines the sockets of a user's daemons, for `doctor`. It changes nothing.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::message::{self, Hello};
use super::socket_location::{self, SocketLocation};
use crate::config::{Environment, Paths};

/// Time limit for the answer of another daemon.
const LIMIT: Duration = Duration::from_secs(1);

/// An orphaned socket is at least this old. A daemon that starts binds its socket a moment before it listens.
const OLD: Duration = Duration::from_secs(5);

/// A fault of the sockets.
#[derive(Debug)]
pub(crate) enum SocketFault {
    /// The directory exists, and may not be used.
    Directory { path: PathBuf, reason: String },
    /// Other users may connect.
    Open { path: PathBuf, mode: u32 },
    /// No process listens any more.
    Orphan { path: PathBuf },
    /// Another daemon serves sessions with the same configuration: another build, or another confinement.
    Other {
        path: PathBuf,
        process: u64,
        version: String,
        sessions: usize,
    },
}

/// The faults of all sockets in the directories that daemons of this user use.
#[must_use]
pub(crate) fn survey(paths: &Paths, environment: &Environment) -> Vec<SocketFault> {
    let own = SocketLocation::find(paths, environment).map(|location| location.address());
    let own = own.ok();
    let mut faults = Vec::new();
    for directory in socket_location::directories(paths, environment) {
        if !directory.exists() {
            continue;
        }
        if let Err(reason) = socket_location::check(&directory) {
            let reason = reason.to_string();
            faults.push(SocketFault::Directory {
                path: directory,
                reason,
            });
            continue;
        }
        let entries = std::fs::read_dir(&directory);
        for entry in entries.into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|name| name == "sock") {
                examine(path, paths, own.as_deref(), &mut faults);
            }
        }
    }
    faults
}

fn examine(path: PathBuf, paths: &Paths, own: Option<&Path>, faults: &mut Vec<SocketFault>) {
    let Ok(metadata) = std::fs::symlink_metadata(&path) else {
        return;
    };
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        let path = path.clone();
        faults.push(SocketFault::Open { path, mode });
    }
    match UnixStream::connect(&path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let age = metadata
                .modified()
                .ok()
                .and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > OLD) {
                faults.push(SocketFault::Orphan { path });
            }
        }
        Ok(socket) if own != Some(&path) => {
            // A daemon that does not answer may speak another protocol.
            if let Ok(status) = status(socket)
                && status["configuration"].as_str().map(Path::new) == Some(&paths.config_file)
            {
                faults.push(SocketFault::Other {
                    path,
                    process: status["process"].as_u64().unwrap_or_default(),
                    version: status["version"].as_str().unwrap_or_default().to_owned(),
                    sessions: status["sessions"].as_array().map_or(0, Vec::len),
                });
            }
        }
        _ => {}
    }
}

fn status(mut socket: UnixStream) -> io::Result<serde_json::Value> {
    socket.set_read_timeout(Some(LIMIT))?;
    socket.set_write_timeout(Some(LIMIT))?;
    message::send(&socket, &Hello::Control)?;
    socket.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.status\"}\n")?;
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line)?;
    let mut answer: serde_json::Value = serde_json::from_str(&line)?;
    Ok(answer["result"].take())
}
