//! mcpzip: one MCP server in front of all the others.
//!
//! To the agent's client it is a server with three tools; to every configured server it is a client. The modules in
//! reading order, from the edge inwards:
//!
//! [`cli`] reads the command line. [`app`] builds a run and ends it. [`downstream`] is how clients reach us, [`proxy`]
//! what they see. Behind it stand [`catalog`] (which tools exist), [`search`] (from a need to tools), [`upstream`]
//! (live links to servers), [`results`] and [`statistics`], [`clients`] (the files of the programs that use us) and [`registry`] (servers to be had). At the
//! bottom are [`mcp`] (raw messages), [`config`], [`tool`] and small things all share. Each layer uses only lower ones; a test sees to it.

pub mod cli;

pub mod app;
pub mod downstream;

pub mod proxy;

pub mod catalog;
pub mod clients;
pub mod registry;
pub mod results;
pub mod search;
pub mod statistics;
pub mod upstream;

pub mod config;
pub mod executable;
pub mod files;
pub mod keychain;
pub mod mcp;
pub mod secret;
pub mod shutdown;
pub mod telemetry;
pub mod tool;

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
