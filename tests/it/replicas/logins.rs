//! Logins at servers, which one replica at a time renews under a lease, and replicas that are killed while they do.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::json;

use super::cluster::Cluster;
use crate::support::Message;
use crate::support::authority::{Authority, Manner, log_in};
use crate::support::until;

/// Replicas with one login at `authority`.
fn logged_in(authority: &Authority) -> Option<Cluster> {
    let entry = authority.web.entry(json!({}));
    let configure = |setup: crate::support::Setup, _| {
        let setup = setup.variable("MCPZIP_BROWSER", "none");
        setup.entry("web", &entry)
    };
    let cluster = Cluster::start(3, &[], configure)?;
    log_in(cluster.setup(0));
    for number in 0..3 {
        let call = cluster.at(number).modern_execute("web__t", "");
        until("the login to be known", || {
            (call.send().message().text() == "fine").then_some(())
        });
    }
    Some(cluster)
}

/// Calls a tool at a replica, which renews the login if it has ended.
fn call(cluster: &Cluster, number: usize) -> JoinHandle<Message> {
    let call = cluster.at(number).modern_execute("web__t", "");
    thread::spawn(move || call.send().message())
}

fn refreshes(authority: &Authority) -> (usize, usize) {
    authority.read(|state| (state.refreshes, state.reuses))
}

/// Ends the lease of the login, as 40 seconds would.
fn end_lease(cluster: &Cluster) {
    let end = "update login set renew_until = now() - interval '1 second' \
        where renew_until is not null returning 1";
    assert_eq!(cluster.database.run(end), "1", "a replica has the lease");
}

/// The holder of the lease dies after the server has issued the new token and before any replica has it.
#[test]
fn a_login_whose_renewer_is_killed_survives_where_the_server_lets_it() {
    for is_strict in [false, true] {
        let authority = Authority::start(Manner {
            is_strict,
            ..Manner::default()
        });
        let Some(mut cluster) = logged_in(&authority) else {
            return;
        };
        // As long as none is killed, one replica renews for all.
        authority.revoke(false);
        let calls = [0, 1, 2].map(|number| call(&cluster, number));
        for call in calls {
            assert_eq!(call.join().unwrap().text(), "fine");
        }
        assert_eq!(refreshes(&authority), (1, 0));

        authority.revoke(false);
        authority.state().manner.late = Duration::from_secs(30);
        let lost = cluster.at(0).modern_execute("web__t", "").begin();
        until("the renewal", || {
            (refreshes(&authority).0 == 2).then_some(())
        });
        authority.state().manner.late = Duration::ZERO;
        let waiting = [1, 2].map(|number| call(&cluster, number));
        cluster.replicas[0].kill();
        drop(lost);
        // The others wait for the lease of the dead one.
        thread::sleep(Duration::from_secs(2));
        assert_eq!(refreshes(&authority), (2, 0));
        end_lease(&cluster);
        let answers = waiting.map(|call| call.join().unwrap());
        if is_strict {
            // No one can know the new token. The old one is tried once, by one replica.
            let answers = answers.map(|answer| answer.tool_error());
            for said in &answers {
                assert!(said.contains("login needed"), "{answers:?}");
            }
            assert_eq!(refreshes(&authority).1, 1);
            for number in [1, 2] {
                let said = call(&cluster, number).join().unwrap().tool_error();
                assert!(said.contains("run `mcpzip login web`"), "{said}");
            }
            assert_eq!(refreshes(&authority).1, 1, "it was tried again");
            log_in(cluster.setup(1));
        } else {
            for answer in &answers {
                assert_eq!(answer.text(), "fine");
            }
            assert_eq!(refreshes(&authority), (3, 0), "one of them has renewed it");
        }
        let renewed = refreshes(&authority);
        cluster.replicas[0].start();
        for number in 0..3 {
            let call = cluster.at(number).modern_execute("web__t", "");
            until("the login to be known", || {
                (call.send().message().text() == "fine").then_some(())
            });
        }
        assert_eq!(refreshes(&authority), renewed);
    }
}

/// The holder of the lease lives, and is too slow: what it writes must not replace what the next holder has written.
#[test]
fn a_renewer_that_is_too_slow_does_not_replace_the_login_of_the_next_one() {
    let authority = Authority::start(Manner {
        is_strict: false,
        ..Manner::default()
    });
    let Some(cluster) = logged_in(&authority) else {
        return;
    };
    authority.revoke(false);
    authority.state().manner.late = Duration::from_secs(4);
    let slow = call(&cluster, 0);
    until("the renewal", || {
        (refreshes(&authority).0 == 1).then_some(())
    });
    authority.state().manner.late = Duration::ZERO;
    end_lease(&cluster);
    assert_eq!(call(&cluster, 1).join().unwrap().text(), "fine");
    let version = "select version from login where body is not null";
    let written = cluster.database.run(version);
    assert_eq!(slow.join().unwrap().text(), "fine");
    assert_eq!(cluster.database.run(version), written);
    assert_eq!(refreshes(&authority), (2, 0));
    for number in 0..3 {
        assert_eq!(call(&cluster, number).join().unwrap().text(), "fine");
    }
    assert_eq!(refreshes(&authority), (2, 0));
}
