//! mcpzip: one MCP server in front of all the others.
//!
//! To the agent's client it is a server with three tools; to every configured server it is a client. The modules in
//! reading order, from the edge inwards:
//!
//! [`cli`] reads the command line. [`app`] builds a run and ends it. [`downstream`] is how clients reach us, [`proxy`]
//! what they see. Behind it stand [`catalog`] (which tools exist), [`search`] (from a need to tools), [`upstream`]
//! (live links to servers), [`results`] and [`statistics`], [`clients`] (the files of the programs that use us) and [`registry`] (servers to be had). At the
//! bottom are [`mcp`] (raw messages), [`config`], [`tool`] and small things all share. Each layer uses only lower ones; a test sees to it.

mod cli;

mod daemon;

mod app;
mod downstream;

mod proxy;

mod audit;
mod catalog;
mod clients;
mod registry;
mod results;
mod search;
mod statistics;
mod upstream;

mod config;
mod day;
mod executable;
mod files;
mod keychain;
mod mcp;
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

/// Runs the program with `arguments`, its own name first.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    executable::remember();
    cli::run(arguments)
}

/// Parts that this workspace's benchmarks, examples, fuzzers and tests use directly. Outside of semver: anything here may change
/// with any version.
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
        pub use crate::statistics::{CallOutcome, Statistics};
    }
    pub mod tool {
        pub use crate::tool::{
            Definition, Parameter, ServerName, ToolHash, ToolName, render_hit, render_hits,
            shown_to_models, tokens_of,
        };
    }
}
