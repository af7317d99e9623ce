//! The transports of servers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::certificates::Certificates;
use super::command_line::CommandLine;
use super::folder::Folder;
use super::oauth::{HeadersCommand, OAuth};
use super::openapi::OpenApi;
use super::sandbox::Sandbox;
use super::upstream_identity::UpstreamIdentity;
use crate::secret::{Masker, Secret};

/// The transport of a server. Arguments and URLs print unmasked: mask them with
/// [`Config::masker`](super::Config::masker).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A process that we start, over its standard input and output.
    Stdio(Stdio),
    /// Streamable HTTP.
    Http(Remote),
    /// The older HTTP+SSE.
    Sse(Remote),
    /// A folder whose files are tools, inside the program.
    Folder(Folder),
}

/// A server that we start as a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stdio {
    /// The program: an absolute path, or a bare name that is searched in `PATH`.
    pub command: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// Its variables, in addition to the inherited ones.
    pub env: BTreeMap<String, Secret<String>>,
    /// Its working directory, absolute. `None` uses ours.
    pub cwd: Option<PathBuf>,
    /// How its subcommands become tools (`"cli": true`). `None`: it is an MCP server.
    pub command_line: Option<CommandLine>,
    /// Its sandbox. `None`: it reaches all that we reach.
    pub sandbox: Option<Box<Sandbox>>,
    /// Whether its package is fetched and then started without the package runner; `None` if the entry does not say.
    pub fetch: Option<bool>,
}

/// A server with a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    /// The endpoint; for HTTP+SSE, that of the event stream.
    pub url: String,
    /// The headers of each request.
    pub headers: BTreeMap<String, Secret<String>>,
    /// A command that prints further headers, which are valid for a time.
    pub headers_command: Option<HeadersCommand>,
    /// The proxy for its connections.
    pub proxy: Proxy,
    /// Certificates trusted in addition to the system's.
    pub certificates: Option<Certificates>,
    /// The OpenAPI description of its operations. `None`: it is an MCP server.
    pub openapi: Option<Box<OpenApi>>,
    /// The OAuth settings, for a server that needs a login and has no `Authorization` in `headers`.
    pub oauth: OAuth,
    /// In whose name requests are sent.
    pub identity: UpstreamIdentity,
    /// Hides the secrets of its entry in what it answers.
    pub masker: Masker,
}

/// The proxy for a remote server; a server on this machine is always reached directly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) enum Proxy {
    /// The proxy of `HTTPS_PROXY` and similar variables, if one is set.
    #[default]
    Environment,
    /// No proxy.
    None,
    /// The proxy with this URL, which may contain a password.
    Url(String),
}
