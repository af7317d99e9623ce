//! Several gateways on one PostgreSQL: what they share, and what goes on without it.

mod approvals;
mod caches;
mod changes;
mod commands;
mod durable;
mod failures;
mod identities;
mod limits;
mod pins;
mod results;

use crate::support::gateway::Gateway;
use crate::support::postgres::Database;
use crate::support::{Setup, until};

/// A gateway of its own machine that shares this store.
fn replica(database: &Database) -> Setup {
    crate::identities::setup().store(database)
}

/// Waits for the answer to a call.
#[track_caller]
fn wait_for(gateway: &Gateway, tool: &str, token: &str, expected: &str) {
    until(expected, || {
        let said = crate::identities::execute(gateway, tool, token);
        said.starts_with(expected).then_some(())
    });
}
