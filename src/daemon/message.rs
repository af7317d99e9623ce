//! The messages between a user's processes and the daemon. A message is JSON after its length (4 bytes, little-endian).

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Request;
use super::journal::{Progress, Step};
use crate::app::SessionId;
use crate::config::{Environment, Paths, SessionEnv, Surface, SurfaceRequest};
use crate::keyring::Store;
use crate::telemetry;

/// The version of these messages and of the journal. Raise it with each change of either. The socket's name contains it.
pub(super) const PROTOCOL: u32 = 7;

/// Maximum length of a message, in bytes. The variables of a session are the largest part.
pub(super) const LONGEST: usize = 16 * 1024 * 1024;

/// The first message of a process. It has no `Debug`, because values of variables may be secrets.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Hello {
    /// Serve this session. Its descriptors follow after the welcome.
    Session(Box<Session>),
    /// The connection for the bytes of the relayed session with this id.
    Bytes(String),
    /// The control interface: JSON-RPC follows, one message per line.
    Control,
    /// Run this command in a session of its own.
    Command(Box<Session>, String),
    /// Serve HTTP clients with the variables of this process: a daemon without sessions that was restarted.
    HttpVariables {
        process: u32,
        variables: BTreeMap<String, String>,
    },
}

/// The description of a session by its process.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Session {
    /// A random id. It stays when another daemon takes over.
    pub(super) id: String,
    /// The number of processes that have served the session before.
    pub(super) generation: u32,
    /// The process that the client started.
    pub(super) process: u32,
    pub(super) config_file: PathBuf,
    pub(super) cache_dir: PathBuf,
    pub(super) state_dir: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) variables: BTreeMap<String, String>,
    /// The surface that the command line asks for.
    pub(super) surface: Option<String>,
    /// The profile that the command line names.
    pub(super) profile: Option<String>,
    /// How long the daemon stays without sessions, in milliseconds.
    pub(super) idle: u64,
    /// The level of the lines on its stderr, if an argument or a variable sets it.
    pub(super) log: Option<String>,
    /// The soft limit of open files of its process, for its servers. The daemon raises its own.
    pub(super) open_files: Option<u64>,
    /// The progress of a session whose process relays the bytes of its client. `None` if it passes its descriptors.
    pub(super) relayed: Option<Progress>,
}

impl Session {
    /// Describes the session of this process. `None` if its directory was removed or has a name that is not Unicode.
    pub(super) fn of(paths: &Paths, request: &Request<'_>) -> Option<Self> {
        let directory = request.env.directory.clone()?;
        directory.to_str()?;
        Some(Self {
            id: SessionId::random().as_str().to_owned(),
            generation: 0,
            process: std::process::id(),
            config_file: paths.config_file.clone(),
            cache_dir: paths.cache_dir.clone(),
            state_dir: paths.state_dir.clone(),
            directory,
            variables: variables(&request.env.environment),
            surface: request.surface.map(|surface| surface.text().to_owned()),
            profile: request.profile.map(str::to_owned),
            idle: u64::try_from(request.idle.as_millis()).unwrap_or(u64::MAX),
            log: telemetry::asked_level().map(|level| level.to_string()),
            open_files: super::open_files::limit(),
            relayed: None,
        })
    }

    /// The session's directory and variables.
    pub(super) fn env(&self) -> SessionEnv {
        SessionEnv {
            directory: Some(self.directory.clone()),
            environment: Store::around(&self.paths(), environment(&self.variables)),
            open_files: self.open_files,
        }
    }

    /// The surface that the session's command line asks for.
    pub(super) fn surface(&self) -> SurfaceRequest {
        SurfaceRequest {
            flag: self.surface.as_deref().and_then(Surface::parse),
            http: None,
        }
    }

    /// The session's configuration file and directories.
    pub(super) fn paths(&self) -> Paths {
        Paths {
            config_file: self.config_file.clone(),
            cache_dir: self.cache_dir.clone(),
            state_dir: self.state_dir.clone(),
        }
    }
}

/// Variables as they are sent.
pub(super) fn variables(environment: &Environment) -> BTreeMap<String, String> {
    let variables = environment.iter();
    variables
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Variables that were sent.
pub(super) fn environment(variables: &BTreeMap<String, String>) -> Environment {
    let variables = variables.iter();
    Environment::from_iter(variables.map(|(name, value)| (name.as_str(), value.as_str())))
}

/// A message from the daemon to the process of a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToSession {
    /// The daemon accepts the session and waits for the descriptors. `process` is the daemon's process id.
    Welcome { process: u32 },
    /// A log line for the process's stderr.
    Log(String),
    /// A step of the journal that the process keeps.
    Step(Step),
    /// The session has ended. With an error, the process fails.
    End { error: Option<String> },
    /// The daemon is restarting. Another one has to serve the session.
    TakeOver,
    /// The daemon was stopped. The process serves its client without one.
    Alone,
}

/// A message from the process of a session to the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromSession {
    /// Carries the descriptors of the session.
    #[cfg(target_os = "linux")]
    Descriptors,
    /// The process got a signal to end.
    End,
}

/// Sends a message. Blocks.
///
/// # Errors
/// When the message is too long, or cannot be sent completely.
pub(super) fn send(mut socket: impl Write, message: &impl Serialize) -> io::Result<()> {
    socket.write_all(&encoded(message)?)
}

/// Receives a message. Blocks.
///
/// # Errors
/// When the other side is gone, or sends something that is not a `T`.
#[cfg(target_os = "linux")]
pub(super) fn receive<T: DeserializeOwned>(mut socket: impl io::Read) -> io::Result<T> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let mut bytes = vec![0; checked(u32::from_le_bytes(length))?];
    socket.read_exact(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Receives a message, like [`receive`]. Not cancel safe: a part of the message may be lost.
pub(super) async fn receive_async<T: DeserializeOwned>(
    socket: &mut (impl tokio::io::AsyncRead + Unpin),
) -> io::Result<T> {
    let length = socket.read_u32_le().await?;
    receive_rest(socket, length).await
}

/// Sends a message without descriptors.
pub(super) async fn send_async(
    socket: &mut (impl tokio::io::AsyncWrite + Unpin),
    message: &impl Serialize,
) -> io::Result<()> {
    socket.write_all(&encoded(message)?).await
}

pub(super) async fn receive_rest<T: DeserializeOwned>(
    socket: &mut (impl tokio::io::AsyncRead + Unpin),
    length: u32,
) -> io::Result<T> {
    let mut bytes = vec![0; checked(length)?];
    socket.read_exact(&mut bytes).await?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// A message with its length before it.
pub(super) fn encoded(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    checked(u32::try_from(length).map_err(io::Error::other)?)?;
    bytes[..4].copy_from_slice(
        &u32::try_from(length)
            .map_err(io::Error::other)?
            .to_le_bytes(),
    );
    Ok(bytes)
}

fn checked(length: u32) -> io::Result<usize> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    if length > LONGEST {
        return Err(io::Error::other(
            "a message over the daemon's socket is too long",
        ));
    }
    Ok(length)
}
