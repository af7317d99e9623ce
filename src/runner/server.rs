//! A server that the program names itself.

use std::time::Duration;

use serde_json::{Value, json};

/// A server for [`Builder::server`](crate::Builder::server).
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
}

impl Server {
    /// A server that is a program, spoken to on its stdin and stdout. A name without a directory is looked up in the `PATH`
    /// of [`Builder::environment`](crate::Builder::environment).
    #[must_use]
    pub fn stdio(command: impl Into<String>) -> Self {
        let command: String = command.into();
        Self {
            entry: json!({ "command": command }),
        }
    }

    /// A server at a URL, over Streamable HTTP; with `.setting("type", "sse")` over the older HTTP+SSE.
    #[must_use]
    pub fn http(url: impl Into<String>) -> Self {
        let url: String = url.into();
        Self {
            entry: json!({ "url": url }),
        }
    }

    /// The arguments of the program.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        let arguments: Vec<String> = arguments.into_iter().map(Into::into).collect();
        self.entry["args"] = arguments.into();
        self
    }

    /// A variable of the program.
    #[must_use]
    pub fn env(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.member("env", name.into(), value.into())
    }

    /// A header of requests to the URL.
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.member("headers", name.into(), value.into())
    }

    /// The working directory of the program.
    #[must_use]
    pub fn directory(self, directory: impl Into<String>) -> Self {
        let directory: String = directory.into();
        self.setting("cwd", directory)
    }

    /// The time limit of a call.
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Self {
        self.setting("timeout", limit.as_secs_f64())
    }

    /// Any other member of an entry of the configuration file, such as `("maxConcurrent", 4)`.
    #[must_use]
    pub fn setting(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.entry[key] = value.into();
        self
    }

    fn member(mut self, key: &str, name: String, value: String) -> Self {
        self.entry[key][name] = value.into();
        self
    }

    pub(super) fn into_entry(self) -> Value {
        self.entry
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
