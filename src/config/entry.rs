//! A server's entry, complete and typed.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::secrets::{origin_of, shown_arguments, shown_command, shown_url};
use super::transport::{Remote, Transport};
use super::{
    ConfigHash, Era, Holds, IdleTimeout, KnownPackage, Origin, Overrides, OwnExposure,
    OwnIdleBounds, Placement, Policy, Projects, Share, Trust,
};
use crate::secret::MASK;

/// A configured server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// The way to reach it.
    pub transport: Transport,
    /// Whether it is switched off.
    pub disabled: bool,
    /// The time limit of a call.
    pub timeout: Option<Duration>,
    /// When an unused connection is closed.
    pub idle_timeout: Option<IdleTimeout>,
    /// The bounds of an adaptive one.
    pub idle_bounds: OwnIdleBounds,
    /// The era of the protocol to use.
    pub era: Era,
    /// The number of concurrent calls.
    pub max_concurrent: Option<NonZeroUsize>,
    /// The user's description.
    pub description: Option<String>,
    /// Which of its prompts and resources clients see.
    pub expose: OwnExposure,
    /// The rules for its tools, in addition to those for all servers.
    pub tools: Policy,
    /// The user's overrides of its tools.
    pub overrides: Arc<Overrides>,
    /// The treatment of tools that have changed since they were first seen.
    pub trust: Trust,
    /// The sessions that may share its process.
    pub share: Share,
    /// The replicas that run it, if the gateway has several.
    pub placement: Placement,
    /// Whether the server learns what its clients can be asked; `None` if the entry does not say.
    pub client_capabilities: Option<bool>,
    /// The projects in which clients see it.
    pub projects: Projects,
    /// The registry server it was made from, if any.
    pub registry: Option<Origin>,
    /// The rows of its package in the table of known ones.
    pub package: KnownPackage,
    /// The hash of the transport.
    pub hash: ConfigHash,
}

impl Server {
    /// The way to reach it, in one line for a person: only the names of variables and headers, and arguments and URLs
    /// without the secrets found in them. The configuration's masker may know more secrets.
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
                let command = std::iter::once(shown_command(&stdio.command))
                    .chain(shown_arguments(&stdio.command, &stdio.args));
                let kind = if stdio.command_line.is_some() {
                    " (cli)"
                } else {
                    ""
                };
                let sandbox = stdio.sandbox.as_ref();
                let sandbox = sandbox.map(|sandbox| format!("; sandbox {}", sandbox.summary()));
                format!(
                    "{}{kind}{}{}",
                    command.collect::<Vec<_>>().join(" "),
                    names("env", stdio.env.keys().collect()),
                    sandbox.unwrap_or_default()
                )
            }
            Transport::Http(remote) => format!(
                "{}{}{}",
                shown_url(&remote.url),
                if remote.openapi.is_some() {
                    " (openapi)"
                } else {
                    ""
                },
                names("headers", remote.headers.keys().collect())
            ),
            Transport::Sse(remote) => {
                format!(
                    "{} (sse){}",
                    shown_url(&remote.url),
                    names("headers", remote.headers.keys().collect())
                )
            }
            Transport::Folder(folder) => {
                format!("{} ({})", folder.path.display(), folder.holds.word())
            }
        }
    }

    /// The server behind a URL, if it is one.
    #[must_use]
    pub(crate) fn remote(&self) -> Option<&Remote> {
        match &self.transport {
            Transport::Http(remote) | Transport::Sse(remote) => Some(remote),
            Transport::Stdio(_) | Transport::Folder(_) => None,
        }
    }

    /// Whether it serves people, each in their own name.
    #[must_use]
    pub(crate) fn is_for_people(&self) -> bool {
        let identity = self.remote().map(|remote| &remote.identity);
        identity.is_some_and(|identity| !identity.is_shared())
    }

    /// The files of its folder, if it is one.
    #[must_use]
    pub(crate) fn holds(&self) -> Option<Holds> {
        match &self.transport {
            Transport::Folder(folder) => Some(folder.holds),
            _ => None,
        }
    }

    /// Whether it is an HTTP interface with a description, inside the program.
    #[must_use]
    pub(crate) fn is_interface(&self) -> bool {
        matches!(&self.transport, Transport::Http(remote) if remote.openapi.is_some())
    }

    /// The way to reach it, in one line for an agent: the program's name and the number of arguments, or a URL's
    /// scheme and host. No other part of an entry is certain to be free of secrets.
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
            Transport::Folder(folder) => format!("a folder of {}", folder.holds.word()),
        }
    }
}
