//! Logins at the identity provider of an enterprise (`oauth.grant` "id-jag"): once for all servers that name it.

use std::io::Write as _;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::Setup;
use crate::support::authority::{Authority, Login, Manner};
use crate::support::identity_provider::{Conduct, IdentityProvider};

const SECRET: &str = "hand-made-secret";

fn authority(manner: Manner) -> Authority {
    Authority::start(Manner {
        method: "client_secret_basic",
        known: Some(("me", SECRET)),
        ..manner
    })
}

/// A home whose server `web` is used with the provider.
fn one(provider: &IdentityProvider, web: &Authority) -> Setup {
    web.setup(json!({ "oauth": provider.oauth(SECRET) }))
}

/// A home whose servers `web` and `two` are used with the provider.
fn setup(provider: &IdentityProvider, web: &Authority, two: &Authority) -> Setup {
    let members = json!({ "oauth": provider.oauth(SECRET) });
    web.setup(members.clone())
        .entry("two", &two.web.entry(members))
}

/// Fails if a secret is in what was printed or written in the clear.
#[track_caller]
fn is_silent(provider: &IdentityProvider, authority: &Authority, what: &str, text: &str) {
    authority.is_silent(what, text);
    for secret in &provider.known().secrets {
        assert!(
            !text.contains(secret.as_str()),
            "{secret} is in {what}: {text}"
        );
    }
}

#[test]
fn one_login_at_the_provider_is_one_for_all_its_servers() {
    let provider = IdentityProvider::start(Conduct::default());
    let (web, two) = (authority(Manner::default()), authority(Manner::default()));
    let setup = setup(&provider, &web, &two).log_level("debug");
    setup.save();
    // Without a login, nothing is sent to the provider, and the error says what to do.
    let mut client = setup.connect();
    let told = client.execute("web__t").tool_error();
    assert!(told.contains("mcpzip login web"), "{told}");
    client.finish();
    assert_eq!(provider.known().exchanges, 0);

    let login = Login::start(&setup, &[]);
    let page = login.browse();
    let status = login.end().code(0);
    assert!(page.contains("logged in"), "{page}");
    is_silent(
        &provider,
        &web,
        "the command's output",
        &format!("{status:?}"),
    );
    assert_eq!(status.json()["identity_provider"], provider.issuer());
    assert_eq!(status.json()["issuer"], web.issuer("/one"));
    // The other server needs no browser, neither by command nor by a call.
    let mut client = setup.connect();
    assert_eq!(client.execute("two__t").text(), "fine");
    assert_eq!(client.execute("web__t").text(), "fine");
    // A token that has ended is got again, in the same way.
    web.revoke(true);
    assert_eq!(client.execute("web__t").text(), "fine");
    let text = client.stderr();
    client.finish();
    is_silent(&provider, &web, "the log", &text);
    let by_name = setup.run(&["login", "two"]).code(0);
    assert_eq!(by_name.json()["identity_provider"], provider.issuer());
    assert_eq!(provider.known().logins, 1);
    assert!(web.read(|state| state.registrations) == 0);

    // What was sent where: the subject to the provider alone, and the assertion to the server's authority.
    let asked = provider.web.requests();
    let exchange = asked
        .iter()
        .find(|asked| asked.text.contains("id-jag"))
        .unwrap();
    for part in [
        "requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid-jag",
        "subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid_token",
    ] {
        assert!(exchange.text.contains(part), "{}", exchange.text);
    }
    for request in web.web.requests() {
        assert!(!request.text.contains("subject_token"), "{request:?}");
        assert!(!request.text.contains("idp-"), "{request:?}");
    }

    let shown = setup.run(&["auth", "status"]).code(0);
    assert_eq!(shown.json()[0]["refreshable"], true);
    is_silent(&provider, &web, "auth status", &shown.stdout);
    // A logout ends the login at the provider, too, which would log in again at once.
    let out = setup.run(&["logout", "web"]).code(0);
    assert!(out.stderr.contains(&provider.issuer()), "{}", out.stderr);
    two.revoke(true);
    let mut client = setup.connect();
    for server in ["web__t", "two__t"] {
        let told = client.execute(server).tool_error();
        assert!(told.contains("mcpzip login"), "{told}");
    }
    client.finish();
}

/// The files of logins in `setup`'s home whose names begin like this.
fn records(setup: &Setup, start: &str) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(setup.home().path("state/logins")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let is_one = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(start) && name.ends_with(".json")
    };
    paths.filter(is_one).collect()
}

#[test]
fn a_logout_without_a_variable_ends_the_login_at_the_provider_or_says_that_it_does_not() {
    let provider = IdentityProvider::start(Conduct::default());
    let web = authority(Manner::default());
    for issuer in [provider.issuer(), "${IDP}".to_owned()] {
        let mut oauth = provider.oauth("${SECRET}");
        oauth["idp"]["issuer"] = json!(issuer);
        let without = web.setup(json!({ "oauth": oauth }));
        let setup = without
            .clone()
            .variable("SECRET", SECRET)
            .variable("IDP", &provider.issuer());
        let _ = with_token(&setup, &provider.id_token()).code(0);
        assert_eq!(records(&setup, "identity-provider-").len(), 1);
        let ended = without.run(&["logout", "web"]).code(1);
        assert_eq!(ended.json()["logged_out"], true, "{ended}");
        let is_known = issuer != "${IDP}";
        let told = match is_known {
            true => format!("the login at {issuer} is removed, too"),
            false => "a login at its identity provider is kept".to_owned(),
        };
        assert!(ended.stderr.contains(&told), "{ended}");
        let kept = records(&setup, "identity-provider-").len();
        assert_eq!(kept, usize::from(!is_known), "{ended}");
        assert_eq!(records(&setup, "web-").len(), 0);
    }
}

#[test]
fn a_logout_says_that_a_login_at_the_provider_cannot_be_read() {
    let provider = IdentityProvider::start(Conduct::default());
    let web = authority(Manner::default());
    let setup = one(&provider, &web);
    let _ = with_token(&setup, &provider.id_token()).code(0);
    // A login of another server of the provider, with a key that is not here.
    std::fs::remove_file(&records(&setup, "web-")[0]).unwrap();
    let record = &records(&setup, "identity-provider-")[0];
    let text = std::fs::read_to_string(record).unwrap();
    let mut text: Value = serde_json::from_str(&text).unwrap();
    let sealed = json!({ "key": "k", "nonce": "n", "text": "t" });
    text = json!({ "version": 2, "server": text["server"], "url": text["url"], "sealed": sealed });
    std::fs::write(record, text.to_string()).unwrap();
    let ended = setup.run(&["logout", "web"]).code(1);
    assert_eq!(ended.json()["revoked"], false, "{ended}");
    assert!(ended.stderr.contains("cannot be decrypted"), "{ended}");
    assert!(!record.exists());
}

#[test]
fn a_login_that_has_ended_goes_on_by_the_refresh_token_and_else_needs_a_person() {
    for refreshes in [true, false] {
        // The ID token ends before it is used.
        let provider = IdentityProvider::start(Conduct {
            life: 20,
            refreshes,
            ..Conduct::default()
        });
        let web = authority(Manner::default());
        let setup = one(&provider, &web);
        let login = Login::start(&setup, &[]);
        login.browse();
        let ended = login.end();
        assert_eq!(ended.code == Some(0), refreshes, "{ended:?}");
        if !refreshes {
            continue;
        }
        let exchange = provider.web.requests().pop().unwrap();
        assert!(
            exchange.text.contains("subject_token=idp-refresh-1"),
            "{}",
            exchange.text
        );
        // The provider ends the login: once that is known it is not tried again.
        provider.known().subjects.clear();
        web.revoke(true);
        let mut client = setup.connect();
        let told = client.execute("web__t").tool_error();
        assert!(told.contains("mcpzip login web"), "{told}");
        let before = provider.known().exchanges;
        client.execute("web__t").tool_error();
        assert_eq!(provider.known().exchanges, before);
        client.finish();
    }
}

/// Gives an ID token that another program has got.
fn with_token(setup: &Setup, token: &str) -> crate::support::command::Outcome {
    setup.save();
    let mut command = setup.command(&["login", "web", "--with-token"]);
    let mut child = command.spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{token}").unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    crate::support::command::Outcome::of(
        "login --with-token",
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn an_id_token_of_another_program_is_a_login_and_one_that_is_not_ours_is_none() {
    let past = SystemTime::now() - Duration::from_secs(10);
    let past = past
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let good = json!({});
    for (claims, reason) in [
        (&good, ""),
        (&json!({ "iss": "https://evil.example" }), "another issuer"),
        (&json!({ "aud": "another" }), "another client"),
        (
            &json!({ "aud": ["zip-at-idp", "another"], "azp": "another" }),
            "another client",
        ),
        (&json!({ "exp": past }), "has ended"),
        (&json!({ "exp": null }), "has ended"),
    ] {
        let conduct = Conduct {
            id_claims: claims.clone(),
            ..Conduct::default()
        };
        let provider = IdentityProvider::start(conduct);
        let web = authority(Manner::default());
        let setup = one(&provider, &web);
        let token = provider.id_token();
        let outcome = with_token(&setup, &token);
        is_silent(
            &provider,
            &web,
            "the command's output",
            &format!("{outcome:?}"),
        );
        assert_eq!(outcome.code == Some(0), reason.is_empty(), "{outcome:?}");
        assert!(outcome.stderr.contains(reason), "{outcome:?}");
        let used = provider.known().exchanges;
        assert_eq!(used, usize::from(reason.is_empty()), "{claims}");
    }
    let provider = IdentityProvider::start(Conduct::default());
    let web = authority(Manner::default());
    let outcome = with_token(&one(&provider, &web), "no-jwt-of-anyone");
    assert!(
        outcome.code == Some(1) && outcome.stderr.contains("not a JWT"),
        "{outcome:?}"
    );
    assert!(!outcome.stderr.contains("no-jwt-of-anyone"), "{outcome:?}");
}

#[test]
fn an_id_token_of_another_login_makes_none() {
    let conduct = Conduct {
        id_claims: json!({ "nonce": "of-another" }),
        ..Conduct::default()
    };
    let provider = IdentityProvider::start(conduct);
    let web = authority(Manner::default());
    let setup = one(&provider, &web);
    let login = Login::start(&setup, &[]);
    login.browse();
    let ended = login.end();
    assert!(
        ended.code == Some(1) && ended.stderr.contains("another login"),
        "{ended:?}"
    );
    assert_eq!(provider.known().exchanges, 0);
}

/// A provider that answers a valid ID token as `conduct` says, after which nothing was sent to the server's authority.
#[track_caller]
fn check_refused(conduct: Conduct, reason: &str) {
    let provider = IdentityProvider::start(conduct);
    let web = authority(Manner::default());
    let setup = one(&provider, &web);
    let outcome = with_token(&setup, &provider.id_token());
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains(reason), "{reason}: {outcome:?}");
    is_silent(
        &provider,
        &web,
        "the command's output",
        &format!("{outcome:?}"),
    );
    assert_eq!(web.read(|state| state.token_requests), 0, "{reason}");
}

#[test]
fn an_assertion_that_is_not_for_the_server_and_us_is_not_sent() {
    let claims = |claims: Value| Conduct {
        claims,
        ..Conduct::default()
    };
    let other = "for another client, authorization server or resource";
    check_refused(claims(json!({ "aud": "https://evil.example" })), other);
    check_refused(claims(json!({ "aud": null })), other);
    check_refused(claims(json!({ "client_id": "another" })), other);
    check_refused(claims(json!({ "client_id": null })), other);
    check_refused(
        claims(json!({ "resource": "https://evil.example/mcp" })),
        other,
    );
    let head = json!({ "typ": "JWT" });
    check_refused(
        Conduct {
            head,
            ..Conduct::default()
        },
        "another type",
    );
    let kind = "urn:ietf:params:oauth:token-type:access_token";
    check_refused(
        Conduct {
            kind,
            ..Conduct::default()
        },
        "another kind of token",
    );
    // The provider's policy forbids it: the login stays, for other servers.
    let refuses = Some("access_denied");
    check_refused(
        Conduct {
            refuses,
            ..Conduct::default()
        },
        "access_denied",
    );
}

#[test]
fn scopes_that_a_server_misses_are_asked_for_without_a_person() {
    let provider = IdentityProvider::start(Conduct::default());
    let web = authority(Manner {
        needed: &["write"],
        ..Manner::default()
    });
    let setup = one(&provider, &web);
    let _ = with_token(&setup, &provider.id_token()).code(0);
    let mut client = setup.connect();
    assert_eq!(client.execute("web__t").text(), "fine");
    client.finish();
    let exchanges = provider.web.requests();
    let mut scopes = exchanges.iter().map(|request| &request.text);
    assert!(scopes.any(|text| text.contains("scope=basic+write")));
}
