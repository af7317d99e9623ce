//! mcpzip: one MCP server in front of all the others.
//!
//! To an agent's client, mcpzip is a server with three tools. To every configured server, it is a client. The modules,
//! from the edge inwards:
//!
//! [`cli`] is the command line. [`app`] builds a run and ends it. [`downstream`] serves clients, and [`proxy`] decides
//! what they see. Below are [`catalog`] (the known tools), [`search`] (finding tools), [`upstream`] (connections to
//! servers), [`results`] and [`statistics`], [`clients`] (the configuration files of clients) and [`registry`] (servers
//! that can be installed). At the bottom are [`mcp`] (messages), [`config`], [`tool`] and small shared modules. A layer
//! uses only lower ones, which a test checks.

mod cli;

mod daemon;

mod app;
mod downstream;

mod proxy;

mod sources;

mod approvals;
mod audit;
mod catalog;
mod clients;
mod registry;
mod results;
mod scan;
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
mod mcp;
mod notify;
mod secret;
mod shutdown;
mod telemetry;
mod text;
mod tool;

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program. `arguments` begin with the program's name.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    executable::remember();
    cli::run(arguments)
}

/// Parts that this workspace's benchmarks, examples, fuzzers and tests use directly. They are outside of semver and may
/// change with any version.
#[doc(hidden)]
pub mod internals {
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
