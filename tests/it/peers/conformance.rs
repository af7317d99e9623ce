//! `mcpzip` before the official conformance suite, as a client of servers and as a server, in both revisions it covers.

use super::suite::{Leg, Side};
use super::{announce, peers};
use crate::support::program;

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The suite plays the server; the example `conformance_client` is the host that drives `mcpzip` over stdio.
#[test]
fn as_a_client_it_conforms() {
    let Some(peers) = peers() else { return };
    let host = program::example("conformance_client", "conformance_client");
    let directory = host.parent().expect("an example is in a directory");
    let mut failed = false;
    for revision in REVISIONS {
        // The suite splits the command at spaces.
        let said = Leg::new(Side::Client, "", revision).run(peers, ["--command", "./conformance_client"], directory);
        failed |= said.is_err();
        announce(said.as_ref().unwrap_or_else(|problems| problems));
    }
    assert!(!failed, "the suite is not content; see above");
}
