//! Configured client credentials go to one authorization server, whichever one the MCP server names later.

use serde_json::{Value, json};

use crate::support::Setup;
use crate::support::authority::{Authority, Login, Manner, log_in};

const SECRET: &str = "hand-made-secret";
const URLS: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;

fn authority() -> Authority {
    Authority::start(Manner {
        method: "client_secret_basic",
        known: Some(("me", SECRET)),
        ..Manner::default()
    })
}

/// A home whose server `web` has these members in its `oauth`, beside the client's id and secret.
fn setup(authority: &Authority, members: Value) -> Setup {
    let mut oauth = json!({ "client_id": "me", "client_secret": SECRET });
    oauth
        .as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    authority.setup(json!({ "oauth": oauth }))
}

/// How often the token endpoint of the issuer at `path` was asked.
fn asked(authority: &Authority, path: &str) -> usize {
    let requests = authority.web.requests();
    let endpoint = format!("{path}/token");
    requests
        .iter()
        .filter(|request| request.path == endpoint)
        .count()
}

#[test]
fn a_machines_secret_goes_to_the_first_issuer_until_a_person_logs_in() {
    let authority = authority();
    let setup = setup(&authority, json!({ "grant": "client_credentials" }));
    let mut client = setup.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    authority.state().manner.issuer = "/two";
    authority.revoke(true);
    let text = client.execute("web__t").tool_error();
    assert!(
        text.contains("`mcpzip login web`") && text.contains(&authority.issuer("/two")),
        "{text}"
    );
    client.finish();
    // A new process, and the command for all servers, know it as well.
    setup.connect().execute("web__t").tool_error();
    // It leaves out servers that have a login, whether that is still good or not.
    assert_eq!(setup.run(&["login", "--all"]).code, Some(0));
    assert_eq!(asked(&authority, "/two"), 0);
    // A person says that it moved; there it is known, too.
    authority.move_clients("/two");
    let moved = setup.run(&["login", "web"]).code(0);
    assert!(
        moved.stderr.contains(&authority.issuer("/one")),
        "what changed is not said: {moved}"
    );
    assert_eq!(asked(&authority, "/two"), 1);
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
}

#[test]
fn an_issuer_that_refuses_the_secret_keeps_it_from_the_next_one() {
    let authority = authority();
    authority.move_clients("/elsewhere");
    let setup = setup(&authority, json!({ "grant": "client_credentials" }));
    setup.connect().execute("web__t").tool_error();
    assert!(asked(&authority, "/one") > 0);
    authority.state().manner.issuer = "/two";
    setup.connect().execute("web__t").tool_error();
    assert_eq!(asked(&authority, "/two"), 0);
}

#[test]
fn a_secret_goes_to_the_configured_issuer_alone() {
    for grant in ["client_credentials", "authorization_code"] {
        let authority = authority();
        authority.state().manner.issuer = "/two";
        let issuer = authority.issuer("/one");
        let setup = setup(&authority, json!({ "grant": grant, "issuer": issuer }));
        setup.connect().execute("web__t").tool_error();
        let refused = setup.run(&["login", "web"]).code(1);
        assert!(
            refused.stderr.contains("`oauth.issuer`")
                && refused.stderr.contains(&authority.issuer("/two")),
            "{grant}: {refused}"
        );
        assert_eq!(asked(&authority, "/two"), 0, "{grant}");
        authority.state().manner.issuer = "/one";
        if grant == "client_credentials" {
            assert_eq!(setup.run(&["login", "web"]).code, Some(0));
        } else {
            log_in(&setup);
        }
        assert_eq!(setup.connect().execute("web__t").text(), "fine", "{grant}");
        let ended = setup.run(&["logout", "web"]).code(0).json();
        assert_eq!(ended["revoked"], true, "{grant}: {ended}");
    }
}

#[test]
fn a_login_at_another_issuer_than_the_configured_one_is_not_renewed() {
    let authority = authority();
    let home = setup(&authority, json!({}));
    log_in(&home);
    let seen = asked(&authority, "/one");
    let oauth = json!({
        "client_id": "me",
        "client_secret": SECRET,
        "issuer": authority.issuer("/two"),
    });
    let home = home.entry("web", &authority.web.entry(json!({ "oauth": oauth })));
    authority.revoke(false);
    let text = home.connect().execute("web__t").tool_error();
    assert!(text.contains("mcpzip login web"), "{text}");
    assert_eq!(asked(&authority, "/one"), seen);
}

#[test]
fn a_logout_sends_a_secret_to_the_configured_issuer_alone() {
    let authority = authority();
    let home = setup(&authority, json!({}));
    log_in(&home);
    let oauth = json!({
        "client_id": "me",
        "client_secret": "another-secret-of-two",
        "issuer": authority.issuer("/two"),
    });
    let home = home.entry("web", &authority.web.entry(json!({ "oauth": oauth })));
    let ended = home.run(&["logout", "web"]).code(1);
    assert_eq!(ended.json()["revoked"], false, "{ended}");
    assert!(
        ended.stderr.contains("with its secret or key"),
        "the reason: {ended}"
    );
    let requests = authority.web.requests();
    let mut paths = requests.iter().map(|request| &*request.path);
    assert!(!paths.any(|path| path.ends_with("/revoke")), "{requests:?}");
}

#[test]
fn a_login_by_way_of_the_client_leads_to_no_other_issuer() {
    let authority = authority();
    let setup = setup(&authority, json!({}));
    log_in(&setup);
    authority.state().manner.issuer = "/two";
    authority.revoke(true);
    let mut client = setup.start();
    client.shake_hands_as("2025-11-25", URLS);
    let text = client.execute("web__t").tool_error();
    assert!(text.contains("mcpzip login web"), "{text}");
    assert_eq!(asked(&authority, "/two"), 0);
    client.finish();
    // A person who asks for it by name is shown where it leads, and gets there.
    authority.move_clients("/two");
    let login = Login::start(&setup, &[]);
    assert!(login.browse().contains("logged in"));
    let outcome = login.end().code(0);
    assert!(
        outcome.stderr.contains(&authority.issuer("/one")),
        "what changed is not said: {outcome}"
    );
    assert_eq!(setup.connect().execute("web__t").text(), "fine");
}

#[test]
fn an_issuer_with_a_query_or_a_fragment_is_none() {
    for issuer in ["/one?tenant=evil", "/one#evil"] {
        let authority = Authority::start(Manner {
            issuer,
            ..Manner::default()
        });
        let refused = authority.setup(json!({})).run(&["login", "web"]).code(1);
        assert!(
            refused.stderr.contains("has a query or a fragment"),
            "{issuer}: {refused}"
        );
        assert_eq!(authority.state().registrations, 0);
    }
}
