//! A server that the application configures in code.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::inside::{Inside, ToolSource};
use super::transport::{Outside, Transport};
use crate::text::hex;
use crate::upstream::OwnServer;

/// The command in the entry of a server of the program. It is never run.
const OWN: &str = "(the program itself)";

/// A server for [`Builder::server`](crate::Builder::server). Its texts may refer to variables of
/// [`Builder::environment`](crate::Builder::environment), as in a configuration file: `${NAME}`.
///
/// ```
/// use mcpzip::Server;
///
/// let github = Server::http("https://api.githubcopilot.com/mcp/").header("Authorization", "Bearer …");
/// let files = Server::stdio("npx")
///     .args(["-y", "@modelcontextprotocol/server-filesystem", "/tmp"])
///     .env("LOG_LEVEL", "warn");
/// # let _ = (github, files);
/// ```
#[derive(Clone)]
pub struct Server {
    entry: Value,
    own: Option<OwnServer>,
}

impl Server {
    /// A server that is a program, spoken to on its stdin and stdout. A name without a directory is looked up in the `PATH`
    /// of [`Builder::environment`](crate::Builder::environment), or without one where the system looks by default.
    ///
    /// ```
    /// let server = mcpzip::Server::stdio("uvx").args(["mcp-server-time"]);
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn stdio(command: impl Into<String>) -> Self {
        let command: String = command.into();
        Self {
            entry: json!({ "command": command }),
            own: None,
        }
    }

    /// A server at a URL, over Streamable HTTP; with `.setting("type", "sse")` over the older HTTP+SSE.
    ///
    /// ```
    /// let server = mcpzip::Server::http("https://example.com/mcp");
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn http(url: impl Into<String>) -> Self {
        let url: String = url.into();
        Self {
            entry: json!({ "url": url }),
            own: None,
        }
    }

    /// A server inside the program: [`Tools`](crate::Tools) from closures, or another [`ToolSource`].
    ///
    /// ```
    /// let server = mcpzip::Server::inside(mcpzip::Tools::new());
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn inside(source: impl ToolSource) -> Self {
        let source = Inside(Arc::new(source));
        // With other tools it is another entry, for which no older list is kept.
        let tools = source.definitions().unwrap_or_default().join("\n");
        let hash = hex(&Sha256::digest(tools));
        Self {
            entry: json!({ "command": OWN, "args": [hash] }),
            own: Some(OwnServer::Source(Arc::new(source))),
        }
    }

    /// A server that the program connects with a [`Transport`] of its own.
    #[must_use]
    pub fn over(transport: impl Transport) -> Self {
        Self {
            entry: json!({ "command": OWN, "args": [] }),
            own: Some(OwnServer::Streams(Arc::new(Outside(Arc::new(transport))))),
        }
    }

    /// The arguments of the program.
    ///
    /// ```
    /// let server = mcpzip::Server::stdio("npx").args(["-y", "@modelcontextprotocol/server-memory"]);
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn args<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        let arguments: Vec<String> = arguments.into_iter().map(Into::into).collect();
        self.entry["args"] = arguments.into();
        self
    }

    /// A variable of the program.
    ///
    /// ```
    /// let server = mcpzip::Server::stdio("my-server").env("LOG_LEVEL", "warn").env("API_KEY", "${API_KEY}");
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn env(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.member("env", name.into(), value.into())
    }

    /// A header of requests to the URL.
    ///
    /// ```
    /// let server = mcpzip::Server::http("https://example.com/mcp").header("Authorization", "Bearer ${TOKEN}");
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.member("headers", name.into(), value.into())
    }

    /// The working directory of the program.
    ///
    /// ```
    /// let server = mcpzip::Server::stdio("my-server").directory(std::env::temp_dir());
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn directory(self, directory: impl AsRef<Path>) -> Self {
        self.setting("cwd", directory.as_ref().to_string_lossy())
    }

    /// The time limit of a call.
    ///
    /// ```
    /// let server = mcpzip::Server::stdio("my-server").timeout(std::time::Duration::from_secs(5));
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Self {
        self.setting("timeout", limit.as_secs_f64())
    }

    /// Any other member of an entry of the configuration file, such as `("maxConcurrent", 4)`.
    ///
    /// ```
    /// use mcpzip::Server;
    ///
    /// let one_at_a_time = Server::stdio("uvx").args(["my-server"]).setting("maxConcurrent", 1);
    /// let older = Server::http("https://example.com/sse").setting("type", "sse");
    /// # let _ = (one_at_a_time, older);
    /// ```
    #[must_use]
    pub fn setting(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.entry[key] = value.into();
        self
    }

    fn member(mut self, key: &str, name: String, value: String) -> Self {
        let members = &mut self.entry[key];
        if members.is_null() {
            *members = json!({});
        }
        // Something else there is a mistake that the builder reports.
        if let Some(members) = members.as_object_mut() {
            members.insert(name, value.into());
        }
        self
    }

    /// The entry for a configuration file, and the part of the program that it stands for.
    pub(super) fn into_parts(mut self, name: &str) -> (Value, Option<OwnServer>) {
        if self.own.is_some()
            && let Some(arguments) = self.entry["args"].as_array_mut()
        {
            // Lists are kept by the entry, so two servers of the program must not have the same.
            arguments.push(name.into());
        }
        (self.entry, self.own)
    }
}

/// Without values, which may be secrets.
impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let way = self.entry.get("command").or_else(|| self.entry.get("url"));
        f.debug_struct("Server")
            .field(
                "kind",
                &way.map(|_| {
                    if self.entry.get("url").is_some() {
                        "http"
                    } else {
                        "stdio"
                    }
                }),
            )
            .finish_non_exhaustive()
    }
}
