//! Real clients and the conformance suite before three replicas and a balancer.

use serde_json::json;

use super::clients::{PEERS, Peer, uses};
use super::conformance::{FIXTURE, REVISIONS};
use super::suite::{Leg, Side};
use super::{announce, peers, servers};
use crate::replicas::cluster::Cluster;
use crate::support::Setup;

/// Each request of the suite comes to another replica than the one before.
#[test]
fn the_conformance_suite_is_content_with_three_replicas() {
    let Some(peers) = peers() else { return };
    let fixture = servers::fixture(peers);
    let mut failed = false;
    for (revision, era) in REVISIONS.into_iter().zip(["legacy", "modern"]) {
        let entry = json!({ "url": format!("{}/mcp", fixture.address), "era": era }).to_string();
        let configure = |setup: Setup, _| {
            let setup = setup.entry(FIXTURE, &entry);
            setup.save();
            setup
        };
        let Some(cluster) = Cluster::start(3, &["--direct"], configure) else {
            return;
        };
        let leg = Leg::new(Side::Server, "replicas", revision);
        let directory = cluster.setup(0).home().path("home");
        let said = leg.run(peers, ["--url", &cluster.url()], &directory);
        failed |= said.is_err();
        announce(said.as_ref().unwrap_or_else(|problems| problems));
    }
    assert!(!failed, "the suite is not content; see above");
}

/// The clients of both SDKs in both eras.
#[test]
fn real_clients_use_three_replicas_as_one_server() {
    let Some(peers) = peers() else { return };
    let everything = servers::everything(peers).to_json();
    let configure = |setup: Setup, _| {
        let setup = setup.entry("everything", &everything);
        // From now on the server is known, and a search answers at once.
        let listed = setup.run(&["tools"]).code(0);
        assert!(listed.stdout.contains("everything__echo"), "{listed}");
        setup
    };
    let Some(cluster) = Cluster::start(3, &[], configure) else {
        return;
    };
    let server = [cluster.url()];
    for peer in &PEERS {
        let Peer { name, mode, .. } = peer;
        let outcome = uses(peer, peers, cluster.setup(0), &server);
        announce(&format!(
            "{name} ({mode}) before three replicas: {outcome:?}"
        ));
        assert_eq!(outcome, Ok(()), "{name} {mode}");
    }
}
