//! Many MCP servers in one Rust program: start them from a configuration, search their tools, call them, and serve them
//! on. It is the engine of the program `mcpzip`, which is one MCP server in front of all of a user's.
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
//! let found = runner.search("what time is it in Tokyo", 5).await?;
//! println!("{}", found[0].signature);
//! let result = runner.execute(&found[0].name, json!({ "timezone": "Asia/Tokyo" })).await?;
//! println!("{}", result.text());
//! # Ok(())
//! # }
//! ```
//!
//! # Guide
//!
//! **Configuration.** [`Builder`] takes a file with `mcpServers`, as other MCP clients have it, or its content as a string, and single
//! servers ([`Server`]). Rules for tools, time limits and search are those of
//! mcpzip's own configuration file. Nothing is read from the environment of the process: pass what
//! servers may have, such as `PATH`, to [`Builder::environment`]. Nothing is written to disk without
//! [`Builder::directories`]. Any number of runners may exist side by side, on any tokio runtime.
//!
//! **Lifecycle.** A server starts at its first use, and ends when it was idle for as long as the configuration says. [`Runner::start`],
//! [`Runner::stop`] and [`Runner::restart`] do so at once; [`Runner::statuses`] and [`Runner::events`] say what happens. Dropping
//! the runner ends everything that it started; [`Runner::shutdown`] also waits for that.
//!
//! **Calls.** [`Runner::search`], [`Runner::describe`] and [`Runner::execute`] take the tools of all servers together, as an agent
//! needs them. [`Runner::client`] is one server: tools with typed arguments and results, prompts, resources and completions. A
//! request is cancelled at its server when its future is dropped.
//!
//! **Questions.** Servers may ask for a person, a model or directories, and send progress and log messages: a [`Handler`] answers.
//!
//! **Parts of your own.** [`Server::inside`] makes closures ([`Tools`]) or a [`ToolSource`] a server, [`Server::over`] reaches a
//! server by a [`Transport`] of the program, [`Builder::embedder`] searches with a model of it, and [`Builder::login_store`] keeps
//! the tokens of logins in a store of the program.
//!
//! **Serving on.** [`Runner::serve_stdio`] and [`Runner::serve_http`] make one MCP server of all, and [`Runner::router`] a part of the
//! program's own web service. An agent's `select` needs the
//! filter process of the program `mcpzip`, and is refused in other programs; that of [`Execute::select`] runs in the process.
//!
//! **Errors.** There is one [`Error`], with an [`ErrorKind`] to act on. Its texts and causes have no secrets of the configuration.
//!
//! **Features.** `cli` is the program and `semantic` the model for search by meaning; both are defaults. Without them the library has no
//! TLS either, unless `tls` is a feature: servers at `https` URLs need it.
//!
//! **Logs.** The library uses `tracing`, with the target `mcpzip`. Install your subscriber before [`Builder::build`]: the runner
//! sends it its lines with its secrets masked.

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
mod telemetry;
mod text;
mod tls;
mod tool;

#[cfg(any(all(test, feature = "cli"), feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;

pub use runner::{
    BoxFuture, Builder, Capabilities, Client, Embedder, Error, ErrorKind, Event, Events, Execute,
    Found, Handler, HttpOptions, HttpServer, LogMessage, LoginStore, Progress, Prompt, Resource,
    Runner, Server, State, Status, Streams, Tool, ToolResult, ToolSource, Tools, Transport,
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
            Document, Explained, Fingerprint, Hit, Request, Search, VectorKey,
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
