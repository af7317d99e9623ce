//! An entry for a server, complete and typed.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::secrets::{origin_of, shown_arguments, shown_url};
use super::{
    Certificates, ConfigHash, HeadersCommand, IdleTimeout, OAuth, OwnExposure, Policy, Projects,
};
use crate::secret::{MASK, Secret};

/// A server to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// How it is reached.
    pub transport: Transport,
    /// Kept in the file and not used.
    pub disabled: bool,
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// When its unused connection is closed.
    pub idle_timeout: Option<IdleTimeout>,
    /// Which era of the protocol is spoken with it.
    pub era: Era,
    /// How many calls it may have at once.
    pub max_concurrent: Option<NonZeroUsize>,
    /// What the user says it is for.
    pub description: Option<String>,
    /// What clients see of it beside its tools.
    pub expose: OwnExposure,
    /// The rules for its tools, beside those for all.
    pub tools: Policy,
    /// What becomes of a tool that is not what it was when it was first seen.
    pub trust: Trust,
    /// Where clients see it.
    pub projects: Projects,
    /// Which server of a registry the entry was made for, where it was.
    pub registry: Option<Origin>,
    /// The hash of the transport.
    pub hash: ConfigHash,
}

/// A server of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its name there.
    pub name: String,
    /// The version that was taken.
    pub version: String,
}

/// How a server is reached. Arguments and URLs print as they are: mask them with [`Config::masker`](super::Config::masker).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A process of our own, spoken to over its standard input and output.
    Stdio(Stdio),
    /// Streamable HTTP.
    Http(Remote),
    /// The older HTTP+SSE.
    Sse(Remote),
}

/// A server that is a process of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stdio {
    /// The program: an absolute path, or a bare name to look for in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables beside the inherited ones.
    pub env: BTreeMap<String, Secret<String>>,
    /// Its working directory, absolute; ours where there is none.
    pub cwd: Option<PathBuf>,
}

/// A server that is reached by a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    /// The endpoint; of the event stream, for HTTP+SSE.
    pub url: String,
    /// Sent with each request.
    pub headers: BTreeMap<String, Secret<String>>,
    /// Gives more of them, for a time.
    pub headers_command: Option<HeadersCommand>,
    /// By which way it is reached.
    pub proxy: Proxy,
    /// Trusted beside the system's certificates.
    pub certificates: Option<Certificates>,
    /// How we log in, where the server wants it and `headers` has no `Authorization`.
    pub oauth: OAuth,
}

/// By which way a server elsewhere is reached; one on this machine is always reached directly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Proxy {
    /// As `HTTPS_PROXY` and its like say, or directly.
    #[default]
    Environment,
    /// Directly.
    None,
    /// By the proxy with this URL, which may have a password in it.
    Url(String),
}

/// What becomes of a tool whose text or schema is not what it was when it was first seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// The user is told.
    #[default]
    Report,
    /// It is held back until a person approves it.
    Pin,
}

/// Which era of the protocol is spoken with a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Era {
    /// Found out when connecting.
    #[default]
    Auto,
    /// With a handshake, up to 2025-11-25.
    Legacy,
    /// Without, since 2026-07-28.
    Modern,
}

impl Server {
    /// How it is reached, in a line for a person: of variables and headers the names alone, arguments and URLs without the
    /// secrets that are found in them. The configuration's masker may know more.
    #[must_use]
    pub fn way(&self) -> String {
        let names = |what: &str, names: Vec<&String>| match names.is_empty() {
            true => String::new(),
            false => {
                let masked = names.into_iter().map(|name| format!("{name}={MASK}"));
                format!("; {what} {}", masked.collect::<Vec<_>>().join(" "))
            }
        };
        match &self.transport {
            Transport::Stdio(stdio) => {
                let command =
                    std::iter::once(stdio.command.clone()).chain(shown_arguments(&stdio.args));
                format!(
                    "{}{}",
                    command.collect::<Vec<_>>().join(" "),
                    names("env", stdio.env.keys().collect())
                )
            }
            Transport::Http(remote) => format!(
                "{}{}",
                shown_url(&remote.url),
                names("headers", remote.headers.keys().collect())
            ),
            Transport::Sse(remote) => {
                format!(
                    "{} (sse){}",
                    shown_url(&remote.url),
                    names("headers", remote.headers.keys().collect())
                )
            }
        }
    }

    /// How it is reached, in a line for an agent: the program's name and how many arguments it has, or a URL's scheme and
    /// host. Nothing else of an entry is free of secrets for certain.
    #[must_use]
    pub fn outline(&self) -> String {
        match &self.transport {
            Transport::Stdio(stdio) => {
                let program = Path::new(&stdio.command).file_name();
                let program = program.unwrap_or_default().to_string_lossy();
                match stdio.args.len() {
                    0 => program.into_owned(),
                    1 => format!("{program} with 1 argument"),
                    count => format!("{program} with {count} arguments"),
                }
            }
            Transport::Http(remote) | Transport::Sse(remote) => origin_of(&remote.url),
        }
    }
}
