//! Notifications and letters that do not arrive.

use std::thread;
use std::time::Duration;

use super::cluster::Cluster;
use super::sessions::configure;
use crate::support::gateway::HttpSession;
use crate::support::until;

/// Ends a session in the store, without a word to the replicas.
fn end(cluster: &Cluster, session: &HttpSession) {
    cluster.database.run(&format!(
        "insert into session (hash, body, ended, expires) \
        values (substr(sha256('{}'), 1, 16), '', true, now() + interval '1 day')",
        session.id()
    ));
}

#[test]
fn a_session_that_has_ended_ends_everywhere_without_a_notification() {
    let Some(mut cluster) = Cluster::start_alone(2, configure) else {
        return;
    };
    let session = cluster.at(0).session();
    let (here, there) = (cluster.at(0).address(), cluster.at(1).address());
    let status = |address| {
        session
            .at(address)
            .execute(1, "fake__who", "")
            .send()
            .status
    };
    assert_eq!(status(here), 200);
    end(&cluster, &session);
    // One that was not there asks the store.
    assert_eq!(status(there), 404);
    // One that was there reads again after a restart, also if PostgreSQL was away for long.
    assert_eq!(status(here), 200);
    cluster.stop_database();
    thread::sleep(Duration::from_secs(4));
    cluster.start_database();
    until("the session to end", || (status(here) == 404).then_some(()));
}

#[test]
fn a_letter_for_a_replica_whose_address_another_has_is_not_taken() {
    let Some(mut cluster) = Cluster::start(2, &[], configure) else {
        return;
    };
    let session = cluster.at(1).session();
    let address = cluster.at(0).address();
    let mut call = session.execute(7, "fake__slow", "").open();
    let id = call.priming_event();
    let port = cluster.at(1).address().port();
    let old = cluster.database.run(&format!(
        "select id, peer_url, build from replica where peer_url like '%:{port}'"
    ));
    let mut old = old.split('|');
    let (old, url, build) = (
        old.next().unwrap().to_owned(),
        old.next().unwrap().to_owned(),
        old.next().unwrap().to_owned(),
    );
    cluster.replicas[1].kill();
    drop(call);
    cluster.replicas[1].start();
    // The row of the old one may still be there, as if it had not ended.
    cluster.database.run(&format!(
        "insert into replica (id, peer_url, build) values ('{old}', '{url}', '{build}') on conflict (id) do update set heartbeat = now() + interval '1 minute'"
    ));
    thread::sleep(Duration::from_secs(3));
    let mut resumed = session.at(address).resume(&id).open();
    let lost = resumed.message();
    assert!(
        lost.error().to_string().contains("may have acted"),
        "{lost:?}"
    );
}
