//! The library, used as another program uses it: through its public names only.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests"
)]

mod api;
mod calls;
mod examples;
mod handlers;
mod isolation;
mod lifecycle;
mod logins;
mod mcp_runner;
mod own;
mod serving;
mod support;
mod wrong_input;
