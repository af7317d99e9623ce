//! Browsers, whose visits are at one replica, while the balancer sends them to any.

use serde_json::json;

use super::cluster::Cluster;
use crate::identities::token;
use crate::support::gateway::{Answer, Call, Gateway};
use crate::support::{Server, Setup, until};

fn configure(setup: Setup, _: usize) -> Setup {
    setup
        .server("fake", Server::new())
        .setting("http", json!({ "auth": "tokens" }))
        .setting("roles", json!({ "all": { "profiles": ["*"] } }))
}

/// A form of the page, as its browser sends it.
fn submit(gateway: &Gateway, path: &str, fields: &str) -> Call {
    gateway
        .call("POST", path)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Origin", &format!("http://{}", gateway.address()))
        .body(fields)
}

fn cookie(answer: &Answer) -> String {
    let cookie = answer.header("set-cookie").split(';').next();
    cookie.unwrap_or_default().to_owned()
}

#[test]
fn a_browser_stays_with_the_replica_that_knows_it() {
    let Some(mut cluster) = Cluster::start(2, &[], configure) else {
        return;
    };
    let anna = token(cluster.setup(0), &["anna", "--role", "all"]);
    let first = cluster.at(0).call("GET", "/logins").send();
    assert_eq!(first.status, 401);
    let own = cookie(&first);
    assert!(own.starts_with("mcpzip-replica="), "{own}");
    let fields = format!("token={anna}");
    let entered = submit(cluster.at(1), "/logins/enter", &fields);
    let entered = entered.header("Cookie", &own).send();
    assert_eq!(entered.status, 303, "{entered:?}");
    let session = cookie(&entered);
    assert!(session.starts_with("mcpzip-logins="), "{session}");
    let cookies = format!("{own}; {session}");
    let list = |number: usize| {
        let page = cluster.at(number).call("GET", "/logins");
        page.header("Cookie", &cookies).send()
    };
    for number in [0, 1, 0, 1] {
        let page = list(number);
        assert_eq!(page.status, 200, "{number}: {page:?}");
        assert!(page.body.contains("anna"), "{page:?}");
    }
    // A form of one page counts at the other replica, and ends the visit for both.
    let page = list(0).body;
    let mark = page.split("name=mark value=\"").nth(1).unwrap();
    let mark = format!("mark={}", mark.split('"').next().unwrap());
    let left = submit(cluster.at(1), "/logins/leave", &mark);
    let left = left.header("Cookie", &cookies).send();
    assert!(left.status < 400, "{left:?}");
    assert_eq!((list(0).status, list(1).status), (401, 401));
    // A replica that has gone takes its visits with it; the browser begins again at another one.
    cluster.replicas[0].kill();
    let again = until("the other replica to answer itself", || {
        let page = cluster.at(1).call("GET", "/logins");
        let page = page.header("Cookie", &cookies).send();
        (page.status == 401 && cookie(&page).starts_with("mcpzip-replica=")).then_some(page)
    });
    let entered = submit(cluster.at(1), "/logins/enter", &fields);
    let entered = entered.header("Cookie", &cookie(&again)).send();
    assert_eq!(entered.status, 303, "{entered:?}");
}
