//! An entry for a server, complete and typed.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use super::secrets::{origin_of, shown_arguments, shown_url};
use super::transport::Transport;
use super::{
    ConfigHash, Era, IdleTimeout, Origin, OwnExposure, OwnIdleBounds, Policy, Projects, Trust,
};
use crate::secret::MASK;

/// A server to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// How it is reached.
    pub transport: Transport,
    /// Kept in the file and not used.
    pub disabled: bool,
    /// How long a call may take.
    pub timeout: Option<Duration>,
    /// When its unused connection is closed.
    pub idle_timeout: Option<IdleTimeout>,
    /// The bounds of an adaptive one.
    pub idle_bounds: OwnIdleBounds,
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

impl Server {
    /// How it is reached, in a line for a person: of variables and headers the names alone, arguments and URLs without the
    /// secrets that are found in them. The configuration's masker may know more.
    #[must_use]
    pub(crate) fn way(&self) -> String {
        let names = |what: &str, names: Vec<&String>| match names.is_empty() {
            true => String::new(),
            false => {
                let masked = names.into_iter().map(|name| format!("{name}={MASK}"));
                format!("; {what} {}", masked.collect::<Vec<_>>().join(" "))
            }
        };
        match &self.transport {
            Transport::Stdio(stdio) => {
                let command = std::iter::once(stdio.command.clone())
                    .chain(shown_arguments(&stdio.command, &stdio.args));
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
    pub(crate) fn outline(&self) -> String {
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
