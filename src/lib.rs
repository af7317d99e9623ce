//! A library for programs that use many MCP servers: it starts servers from a configuration, searches and calls
//! their tools, and serves them to other clients as one server. It is the engine of the program `mcpzip`.
//!
//! ```no_run
//! use mcpzip::{Runner, Server};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mcpzip::Error> {
//! let runner = Runner::builder()
//!     .config_file("mcp.json")
//!     .server("time", Server::stdio("uvx").args(["mcp-server-time"]))
//!     .environment(std::env::vars())
//!     .build()
//!     .await?;
//! let found = runner.search("what time is it in Tokyo", 5).await?.found;
//! println!("{}", found[0].signature);
//! let result = runner.execute(&found[0].name, json!({ "timezone": "Asia/Tokyo" })).await?;
//! println!("{}", result.text());
//! # Ok(())
//! # }
//! ```
//!
//! # Guide
//!
//! **Configuration.** [`Builder`] takes a file with `mcpServers`, as other MCP clients have it, or the content of
//! one as a string, and single servers ([`Server`]). Rules for tools, time limits and search have the form of
//! mcpzip's own configuration file. Nothing is read from the environment of the process: pass the variables that
//! servers may have, such as `PATH`, to [`Builder::environment`]. Nothing is written to disk without
//! [`Builder::directories`]. A process may have any number of runners, on any tokio runtime.
//!
//! **Lifecycle.** A server starts at its first use, and ends after the idle time of the configuration.
//! [`Runner::start`], [`Runner::stop`] and [`Runner::restart`] start and end one at once; [`Runner::statuses`] and
//! [`Runner::events`] report states and changes. Dropping the runner ends everything that it started;
//! [`Runner::shutdown`] also waits for the end.
//!
//! **Calls.** [`Runner::search`], [`Runner::describe`] and [`Runner::execute`] work on the tools of all servers, as
//! an agent needs them. [`Runner::client`] is the client of one server: tools with typed arguments and results,
//! prompts, resources and completions. If the future of a request is dropped, the request is cancelled at its server.
//!
//! **Questions.** Servers may send elicitation, sampling and roots requests, progress and log messages. A
//! [`Handler`] receives and answers them. A call of the program that a rule of the configuration (`tools.ask`) names is a question of
//! mcpzip, never of a server: [`Handler::consent`] decides, and without it the call is refused at once. A client of
//! [`Runner::serve_http`] is asked itself, and its call refused at once if it cannot ask.
//!
//! **Parts of your own.** [`Server::inside`] makes a server from closures ([`Tools`]) or a [`ToolSource`].
//! [`Server::over`] reaches a server by your own [`Transport`], [`Builder::embedder`] searches with your own model,
//! and [`Builder::login_store`] keeps the tokens of logins in your own store.
//!
//! **Serving.** [`Runner::serve_stdio`] and [`Runner::serve_http`] serve all servers as one MCP server, and
//! [`Runner::router`] is a part of your own web service. A filter of an agent (`select`) needs a process of the
//! program `mcpzip`: in other programs it is not offered, and a call with one is refused before it is made. Results over
//! `results.budget` are stored in [`Builder::directories`]; without those, an agent gets the first characters, as many
//! as the budget has, and the words that the rest is not stored. [`Execute::select`] filters in your process.
//!
//! **Errors.** There is one [`Error`], with an [`ErrorKind`] to act on. Its texts and sources contain no secrets of
//! the configuration.
//!
//! **Features.** `cli` is the program and `semantic` the model for search by meaning; both are on by default.
//! Without these defaults the library has no TLS, which servers at `https` URLs need: turn it on by the feature `tls`.
//!
//! **Logs.** The library uses `tracing`, with the target `mcpzip`. Install your subscriber before
//! [`Builder::build`]. The runner masks its secrets in the lines that it sends there.

// The engine has parts that only commands use. A lean build leaves those out when it links, not by conditions all over the code.
#![cfg_attr(
    not(feature = "cli"),
    expect(dead_code, unused_imports, reason = "used by the feature `cli`")
)]

#[cfg(feature = "cli")]
mod cli;

#[cfg(feature = "cli")]
mod daemon;

#[cfg(feature = "cli")]
mod app;
mod runner;
#[cfg(feature = "cli")]
mod ui;

mod downstream;

mod proxy;

mod homes;
mod identity;
mod sources;

mod approvals;
mod audit;
mod catalog;
#[cfg(feature = "cli")]
mod clients;
mod limits;
#[cfg(feature = "cli")]
mod registry;
#[cfg_attr(not(feature = "postgres"), allow(dead_code))]
mod replicas;
mod results;
mod sandbox;
mod scan;
mod scripts;
mod search;
mod statistics;
mod upstream;

mod config;
mod day;
#[cfg(all(unix, not(target_os = "macos")))]
mod dbus;
mod events;
mod executable;
mod files;
mod keychain;
#[cfg(feature = "cli")]
mod keyring;
mod mcp;
mod notify;
mod pause;
mod sealing;
mod secret;
mod shutdown;
mod store;
mod telemetry;
mod text;
mod tls;
mod tool;

#[cfg(any(all(test, feature = "cli"), feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;

pub use runner::{
    BoxFuture, Builder, Capabilities, Client, Consent, Embedder, Error, ErrorKind, Event, Events,
    Execute, Found, Handler, HttpOptions, HttpServer, LogMessage, LoginStore, Progress, Prompt,
    Resource, Runner, SearchResult, Server, State, Status, Streams, Tool, ToolResult, ToolSource,
    Tools, Transport,
};

/// Runs the program. `arguments` begin with the program's name.
#[cfg(feature = "cli")]
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> std::process::ExitCode {
    // Descriptors that the client left open are for no program that this one starts: a directory among them would be a way out of a
    // sandbox, and a daemon would keep them open.
    #[cfg(unix)]
    close_fds::set_fds_cloexec(3, &[]);
    executable::remember();
    cli::run(arguments)
}

/// Parts that this workspace's benchmarks, examples, fuzzers and tests use directly. They are outside of semver and may
/// change with any version.
#[doc(hidden)]
pub mod internals {
    /// Runs an example of the documentation with a runner whose one server, `notes`, has the tool `add`.
    pub fn with_notes(example: impl AsyncFnOnce(&crate::Runner) -> Result<(), crate::Error>) {
        use serde_json::{Value, json};
        let add = crate::Tool::new("add", "Adds a note", json!({ "type": "object" }));
        let tools = crate::Tools::new().tool(add, async |note: Value| Ok::<_, String>(note));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let run = async {
            let notes = crate::Server::inside(tools);
            let runner = crate::Runner::builder().server("notes", notes).build();
            example(&runner.await?).await
        };
        let done: Result<(), crate::Error> = runtime.expect("the system has room").block_on(run);
        done.expect("the example works");
    }

    pub mod catalog {
        pub use crate::catalog::{Cache, Catalog, Key, Listed};
    }
    pub mod mcp {
        pub use crate::mcp::{Envelope, Frame, Message, Outcome, RequestId};
    }
    pub mod search {
        #[cfg(feature = "semantic")]
        pub use crate::search::Bundled;
        pub use crate::search::{
            Document, Explained, Fingerprint, Habits, Hit, Request, Search, VectorKey,
        };
    }
    pub mod statistics {
        pub use crate::statistics::{CallOutcome, CallPath, Statistics};
    }
    pub mod tool {
        pub use crate::tool::{
            Definition, Effect, Parameter, ServerName, ToolHash, ToolName, render_hit, render_hits,
            shown_to_models, tokens_of,
        };
    }
}
