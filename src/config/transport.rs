//! The ways in which a server is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::certificates::Certificates;
use super::oauth::{HeadersCommand, OAuth};
use crate::secret::Secret;

/// How a server is reached. Arguments and URLs print as they are: mask them with [`Config::masker`](super::Config::masker).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A process of our own, spoken to over its standard input and output.
    Stdio(Stdio),
    /// Streamable HTTP.
    Http(Remote),
    /// The older HTTP+SSE.
    Sse(Remote),
}

/// A server that is a process of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stdio {
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
pub(crate) struct Remote {
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
pub(crate) enum Proxy {
    /// As `HTTPS_PROXY` and its like say, or directly.
    #[default]
    Environment,
    /// Directly.
    None,
    /// By the proxy with this URL, which may have a password in it.
    Url(String),
}
