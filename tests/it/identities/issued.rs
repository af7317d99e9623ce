//! Access tokens of an OAuth issuer.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::{As as _, Session, execute, roles, setup};
use crate::support::closed_port::ClosedPort;
use crate::support::http::HttpServer;
use crate::support::{Setup, until};

const AUDIENCE: &str = "https://mcp.example.com/mcp";

/// A key of an issuer.
pub(super) struct Key {
    id: String,
    pair: EcdsaKeyPair,
}

/// An issuer that publishes the keys in `published`.
pub(super) struct Issuer {
    server: HttpServer,
    published: Arc<Mutex<Vec<Value>>>,
}

impl Key {
    pub(super) fn new(id: &str) -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        let id = id.to_owned();
        Self { id, pair }
    }

    pub(super) fn public(&self) -> Value {
        let point = &self.pair.public_key().as_ref()[1..];
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id, "x": part(&point[..32]), "y": part(&point[32..]) })
    }

    /// A token with these members and this header.
    fn sign(&self, header: &Value, members: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(members));
        let signature = self
            .pair
            .sign(&SystemRandom::new(), message.as_bytes())
            .unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }

    pub(super) fn token(&self, members: &Value) -> String {
        let header = json!({ "alg": "ES256", "typ": "at+jwt", "kid": self.id });
        self.sign(&header, members)
    }
}

impl Issuer {
    pub(super) fn start(keys: &[&Key]) -> Self {
        let published: Vec<Value> = keys.iter().map(|key| key.public()).collect();
        let published = Arc::new(Mutex::new(published));
        let keys = published.clone();
        let server = HttpServer::start(move |request, reply| {
            let keys = keys.lock().clone();
            match keys.is_empty() {
                true => reply.whole("500 Internal Server Error", "", ""),
                false if request.path == "/keys" => {
                    reply.json(&json!({ "keys": keys }).to_string());
                }
                false => reply.whole("404 Not Found", "", ""),
            }
        });
        Self { server, published }
    }

    /// The URL of its keys.
    pub(super) fn keys(&self) -> String {
        self.server.url("/keys")
    }

    pub(super) fn url(&self) -> String {
        self.server.url("").trim_end_matches('/').to_owned()
    }

    pub(super) fn setup(&self, more: &Value) -> Setup {
        let mut roles = roles();
        roles["dev"]["groups"] = json!(["developers"]);
        let mut oauth = json!({ "issuer": self.url(), "audience": AUDIENCE, "jwks_url": self.server.url("/keys") });
        oauth
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        setup()
            .setting("http", json!({ "auth": { "oauth": oauth } }))
            .setting("roles", roles)
    }

    pub(super) fn members(&self, name: &str) -> Value {
        json!({ "iss": self.url(), "aud": AUDIENCE, "sub": name, "exp": now() + 600, "groups": ["developers"], "scope": "mcp other" })
    }
}

pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

pub(super) fn with(members: &Value, key: &str, value: Value) -> Value {
    let mut members = members.clone();
    match value {
        Value::Null => drop(members.as_object_mut().unwrap().remove(key)),
        value => members[key] = value,
    }
    members
}

#[test]
fn a_token_counts_only_if_everything_in_it_is_as_configured() {
    let (key, other) = (Key::new("one"), Key::new("one"));
    let issuer = Issuer::start(&[&key]);
    let setup = issuer.setup(&json!({ "scopes": ["mcp"] }));
    let gateway = setup.serve(&[]);
    let good = issuer.members("anna");
    assert_eq!(
        execute(&gateway, "git__log", &key.token(&good)),
        "200 the log"
    );
    let listed = with(&good, "aud", json!(["https://other.example.com", AUDIENCE]));
    assert_eq!(
        execute(&gateway, "git__log", &key.token(&listed)),
        "200 the log"
    );
    let refused = |token: &str, status: &str, why: &str| {
        let said = execute(&gateway, "git__log", token);
        assert!(said.starts_with(status), "{why}: {said}");
    };
    for (member, value) in [
        ("iss", json!("https://other.example.com")),
        ("iss", json!(format!("{}/", issuer.url()))),
        ("iss", Value::Null),
        ("aud", json!("https://mcp.example.com/mcp/")),
        ("aud", json!([])),
        ("aud", Value::Null),
        ("exp", json!(now() - 120)),
        ("exp", json!("never")),
        ("exp", Value::Null),
        ("nbf", json!(now() + 300)),
        ("sub", Value::Null),
        ("sub", json!("an na")),
        (
            "cnf",
            json!({ "jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" }),
        ),
        ("cnf", Value::Bool(false)),
    ] {
        refused(
            &key.token(&with(&good, member, value.clone())),
            "401",
            &format!("{member} {value}"),
        );
    }
    refused(
        &key.token(&with(&good, "scope", json!("other"))),
        "403",
        "no scope",
    );
    refused(
        &key.token(&with(&good, "groups", json!(["staff"]))),
        "403",
        "no role",
    );
    refused(&other.token(&good), "401", "another key of this id");
    let header = |alg: &str| json!({ "alg": alg, "typ": "at+jwt", "kid": "one" });
    for alg in ["none", "HS256", "RS256", "ES384", "EdDSA", "es256"] {
        refused(&key.sign(&header(alg), &good), "401", alg);
    }
    // A public key is no secret of HMAC.
    let unsigned = key.sign(&header("none"), &good);
    let unsigned = format!("{}.", unsigned.rsplit_once('.').unwrap().0);
    refused(&unsigned, "401", "no signature");
    let critical = json!({ "alg": "ES256", "kid": "one", "crit": ["exp"] });
    refused(&key.sign(&critical, &good), "401", "crit");
    let id_token = json!({ "alg": "ES256", "kid": "one", "typ": "logout+jwt" });
    refused(&key.sign(&id_token, &good), "401", "another type");
    let own_key = json!({ "alg": "ES256", "jwk": other.public(), "kid": "two" });
    refused(&other.sign(&own_key, &good), "401", "a key in the header");
    refused("a.b.c", "401", "no JWT");
    refused(
        &format!("{}{}", key.token(&good), "A".repeat(20_000)),
        "4",
        "too long",
    );
    let changed = key.token(&good);
    let (head, rest) = changed.split_once('.').unwrap();
    let (_, signature) = rest.split_once('.').unwrap();
    let body = URL_SAFE_NO_PAD.encode(with(&good, "sub", json!("admin")).to_string());
    refused(
        &format!("{head}.{body}.{signature}"),
        "401",
        "a changed body",
    );
}

#[test]
fn clients_find_the_issuer_by_the_metadata() {
    let key = Key::new("one");
    let issuer = Issuer::start(&[&key]);
    let setup = issuer.setup(&json!({ "scopes": ["mcp"] }));
    let gateway = setup.serve(&[]);
    let answer = gateway.modern_execute("git__log", "").send();
    assert_eq!(answer.status, 401);
    let challenge = answer.header("www-authenticate");
    let expected = r#"Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp", scope="mcp""#;
    assert_eq!(challenge, expected);
    let lacking = key.token(&with(&issuer.members("anna"), "scope", Value::Null));
    let answer = gateway.modern_execute("git__log", "").by(&lacking).send();
    assert_eq!(answer.status, 403);
    let challenge = answer.header("www-authenticate");
    assert!(
        challenge.starts_with(r#"Bearer error="insufficient_scope""#),
        "{challenge}"
    );
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let answer = gateway.call("GET", path).send();
        assert_eq!(answer.status, 200);
        let metadata: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(metadata["resource"], AUDIENCE);
        assert_eq!(metadata["authorization_servers"], json!([issuer.url()]));
    }
    // Nothing of this kind without an issuer.
    let gateway = super::setup().serve(&[]);
    let path = "/.well-known/oauth-protected-resource";
    assert_eq!(gateway.call("GET", path).send().status, 404);
}

#[test]
fn a_new_key_is_fetched_when_a_token_needs_it_and_keys_that_cannot_be_fetched_refuse() {
    let (one, two) = (Key::new("one"), Key::new("two"));
    let issuer = Issuer::start(&[]);
    let setup = issuer.setup(&json!({}));
    let mut gateway = setup.serve(&[]);
    let members = issuer.members("anna");
    let said = execute(&gateway, "git__log", &one.token(&members));
    assert!(
        said.starts_with("503 identities cannot be checked now"),
        "{said}"
    );
    assert!(!said.contains("keys"), "{said}");
    gateway
        .process()
        .wait_for_stderr("the keys of the issuer could not be fetched");
    drop(gateway);
    issuer.published.lock().push(one.public());
    let gateway = setup.serve(&[]);
    assert_eq!(
        execute(&gateway, "git__log", &one.token(&members)),
        "200 the log"
    );
    let before = issuer.server.requests().len();
    assert_eq!(
        execute(&gateway, "git__log", &one.token(&members)),
        "200 the log"
    );
    for _ in 0..20 {
        let _ = execute(&gateway, "git__log", &two.token(&members));
    }
    let asked = issuer.server.requests().len() - before;
    assert!(asked <= 1, "an unknown key is asked for {asked} times");
    issuer.published.lock().push(two.public());
    until("the new key to be fetched", || {
        (execute(&gateway, "git__log", &two.token(&members)) == "200 the log").then_some(())
    });
}

#[test]
fn a_key_that_is_withdrawn_ends_its_tokens_also_those_without_its_id() {
    let (one, two) = (Key::new("one"), Key::new("two"));
    let issuer = Issuer::start(&[&one]);
    let setup = issuer.setup(&json!({}));
    let gateway = setup.serve(&[]);
    let header = json!({ "alg": "ES256", "typ": "at+jwt" });
    let unnamed = one.sign(&header, &issuer.members("anna"));
    let mut stream = Session::open(&gateway, &unnamed).listen(&gateway);
    *issuer.published.lock() = vec![two.public()];
    // A token with an unknown key id has the keys fetched again.
    until("the new key to be fetched", || {
        let token = two.token(&issuer.members("bob"));
        (execute(&gateway, "git__log", &token) == "200 the log").then_some(())
    });
    while stream.event().is_some() {}
    assert!(execute(&gateway, "git__log", &unnamed).starts_with("401"));
}

#[test]
fn names_with_a_slash_make_no_identity_of_another() {
    let key = Key::new("one");
    let issuer = Issuer::start(&[&key]);
    let setup = issuer.setup(&json!({ "user": "login" }));
    let gateway = setup.serve(&[]);
    for (name, subject) in [("a/b", "c"), ("a", "b/c"), ("a%2Fb", "c"), ("bo", "7")] {
        let members = with(&issuer.members(subject), "login", json!(name));
        assert_eq!(
            execute(&gateway, "git__log", &key.token(&members)),
            "200 the log"
        );
    }
    let audit = setup.run(&["audit", "--json"]).code(0).stdout;
    for identity in [
        "oauth:a%2Fb/c",
        "oauth:a/b%2Fc",
        "oauth:a%252Fb/c",
        "oauth:bo/7",
    ] {
        let quoted = format!("\"{identity}\"");
        assert!(audit.contains(&quoted), "{identity}: {audit}");
    }
}

#[test]
fn doctor_says_that_an_issuer_does_not_answer_or_has_no_keys() {
    let key = Key::new("one");
    let issuer = Issuer::start(&[&key]);
    let found = |more: &Value| -> Vec<String> {
        let report = issuer.setup(more).run(&["doctor", "--json"]).json();
        let findings = report["findings"].as_array().unwrap().iter();
        let found = findings.filter(|finding| finding["code"] == "issuer-unusable");
        found.map(|finding| finding["what"].to_string()).collect()
    };
    assert!(found(&json!({})).is_empty());
    let port = ClosedPort::new();
    let [away, elsewhere, one] = [
        format!("http://{}/keys", port.address()),
        issuer.server.url("/elsewhere"),
        issuer.keys(),
    ];
    for (url, said) in [
        (&away, "cannot be reached"),
        (&elsewhere, "answered with HTTP 404"),
        (&one, "it has no key that can be used"),
    ] {
        if *url == one {
            *issuer.published.lock() = vec![json!({ "kty": "unknown" })];
        }
        let found = found(&json!({ "jwks_url": url }));
        assert!(found.len() == 1 && found[0].contains(said), "{found:?}");
    }
}
