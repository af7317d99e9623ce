//! The test harness: a separate home for each test, fake servers in it, and a client of the real program.
//!
//! A test reads as a sentence: `Setup::new().server("a", Server::new().tool("t", [echo()])).connect().execute("a__t")`.

pub(crate) mod authority;
pub(crate) mod bridge;
pub(crate) mod client;
pub(crate) mod closed_port;
pub(crate) mod command;
pub(crate) mod corpus;
pub(crate) mod gateway;
pub(crate) mod http;
pub(crate) mod identity_provider;
#[cfg(target_os = "linux")]
pub(crate) mod keyring;
pub(crate) mod message;
#[cfg(target_os = "linux")]
pub(crate) mod notifications;
#[cfg(all(feature = "postgres", target_os = "linux"))]
pub(crate) mod postgres;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod proxy;
pub(crate) mod random;
pub(crate) mod script;
pub(crate) mod setup;
#[cfg(unix)]
pub(crate) mod terminal;
pub(crate) mod tls;
#[cfg(unix)]
pub(crate) mod tool;

pub(crate) use client::{Client, SOON, until};
pub(crate) use message::Message;
pub(crate) use script::Server;
pub(crate) use setup::Setup;
