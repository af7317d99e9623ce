//! TLS of the server: its certificate, HTTP/2, and certificates as identities.

use std::time::Duration;

use reqwest::{Client, Version};
use serde_json::json;

use super::{roles, setup, token};
use crate::support::tls::{Authority, Identity};
use crate::support::{Setup, until};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"name":"git__log"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// A server with a certificate.
struct Secure {
    setup: Setup,
    process: crate::support::Client,
    url: String,
}

fn with_tls(authority: &Authority, more: &serde_json::Value) -> Setup {
    let setup = setup();
    let identity = authority.identity("localhost", |_| {});
    identity.save(setup.home(), "server");
    let path = |name: &str| setup.home().path(name);
    let mut tls = json!({ "cert": path("server.pem"), "key": path("server.key") });
    let mut auth = json!({ "tokens": true });
    if more["certificates"] == true {
        tls["client_ca"] = json!(authority.save(setup.home()));
        auth["certificates"] = json!(true);
    }
    let mut roles = roles();
    roles["dev"]["groups"] = json!(["developers"]);
    let http = json!({ "auth": auth, "tls": tls });
    setup.setting("http", http).setting("roles", roles)
}

impl Secure {
    fn start(setup: Setup) -> Self {
        let process = setup.start_with(&["serve", "--http", "127.0.0.1:0"]);
        process.wait_for_stderr("serving MCP on https://");
        process.wait_for_stderr("/mcp\n");
        let stderr = process.stderr();
        let url = stderr
            .lines()
            .find_map(|line| line.strip_prefix("serving MCP on "));
        let url = url.unwrap().replace("127.0.0.1", "localhost");
        Self {
            setup,
            process,
            url,
        }
    }

    /// The version and status of an answer, or why there is none.
    fn ask(
        &self,
        authority: &Authority,
        token: Option<&str>,
        identity: Option<&Identity>,
    ) -> Result<(Version, u16, String), String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let _ = rustls::crypto::ring::default_provider().install_default();
            let root = reqwest::Certificate::from_pem(authority.pem().as_bytes()).unwrap();
            let mut builder = Client::builder()
                .no_proxy()
                .timeout(Duration::from_secs(20))
                .tls_certs_only([root]);
            if let Some(identity) = identity {
                let identity = reqwest::Identity::from_pem(identity.pem().as_bytes()).unwrap();
                builder = builder.identity(identity);
            }
            let mut request = builder
                .build()
                .unwrap()
                .post(&self.url)
                .header("accept", "application/json, text/event-stream")
                .header("content-type", "application/json")
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", "tools/call")
                .header("mcp-name", "execute_tool")
                .body(PING);
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            let answer = request.send().await.map_err(|error| format!("{error:?}"))?;
            let (version, status) = (answer.version(), answer.status().as_u16());
            let body = answer.text().await.map_err(|error| format!("{error:?}"))?;
            Ok((version, status, body))
        })
    }
}

#[test]
fn with_a_certificate_the_server_speaks_https_and_http_2() {
    let authority = Authority::new();
    let setup = with_tls(&authority, &json!({}));
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let server = Secure::start(setup);
    let (version, status, body) = server.ask(&authority, Some(&anna), None).unwrap();
    assert_eq!((version, status), (Version::HTTP_2, 200), "{body}");
    assert!(body.contains("the log"), "{body}");
    assert_eq!(server.ask(&authority, None, None).unwrap().1, 401);
    let refused = server.ask(&Authority::new(), Some(&anna), None);
    assert!(refused.is_err(), "{refused:?}");
    // Without TLS there is no answer.
    let plain = crate::support::gateway::Gateway::at(
        &server.url.replace("https://localhost", "http://127.0.0.1"),
    );
    let mut stream = plain.call("GET", "/healthz").begin();
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1 200"));
}

#[test]
fn a_changed_certificate_is_used_without_a_restart_and_a_wrong_one_is_not() {
    let (first, second) = (Authority::new(), Authority::new());
    let setup = with_tls(&first, &json!({}));
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let server = Secure::start(setup);
    assert_eq!(server.ask(&first, Some(&anna), None).unwrap().1, 200);
    std::fs::write(server.setup.home().path("server.pem"), "nothing").unwrap();
    server
        .process
        .wait_for_stderr("the certificate in use stays");
    assert_eq!(server.ask(&first, Some(&anna), None).unwrap().1, 200);
    let identity = second.identity("localhost", |_| {});
    identity.save(server.setup.home(), "server");
    until("the new certificate to be used", || {
        server.ask(&second, Some(&anna), None).ok()
    });
    assert!(server.ask(&first, Some(&anna), None).is_err());
}

#[test]
fn a_certificate_of_the_configured_authority_is_an_identity() {
    let authority = Authority::new();
    let server = Secure::start(with_tls(&authority, &json!({ "certificates": true })));
    let person = |authority: &Authority, name: &str, group: &str| {
        authority.identity("client", |params| {
            use rcgen::{DnType, ExtendedKeyUsagePurpose};
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, name);
            params
                .distinguished_name
                .push(DnType::OrganizationalUnitName, group);
        })
    };
    let anna = person(&authority, "anna", "developers");
    let (_, status, body) = server.ask(&authority, None, Some(&anna)).unwrap();
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("the log"), "{body}");
    let zoe = person(&authority, "zoe", "none");
    assert_eq!(server.ask(&authority, None, Some(&zoe)).unwrap().1, 200);
    let bo = person(&authority, "bo", "none");
    assert_eq!(server.ask(&authority, None, Some(&bo)).unwrap().1, 403);
    let odd = person(&authority, "an na", "developers");
    assert_eq!(server.ask(&authority, None, Some(&odd)).unwrap().1, 401);
    // A header that does not count is not made good by the certificate.
    assert_eq!(
        server.ask(&authority, Some("x"), Some(&anna)).unwrap().1,
        401
    );
    let foreign = person(&Authority::new(), "anna", "developers");
    assert!(server.ask(&authority, None, Some(&foreign)).is_err());
    assert_eq!(server.ask(&authority, None, None).unwrap().1, 401);
    let audit = server
        .setup
        .run(&["audit", "--user", "anna", "--json"])
        .code(0)
        .stdout;
    assert!(audit.contains("cert:anna"), "{audit}");
}

#[test]
fn tls_that_cannot_be_used_keeps_the_server_from_starting() {
    let authority = Authority::new();
    for tls in [
        json!({}),
        json!({ "cert": "server.pem" }),
        json!({ "cert": "server.pem", "key": "server.key", "no_such": 1 }),
        json!("server.pem"),
        json!({ "cert": "missing.pem", "key": "server.key" }),
        json!({ "cert": "server.key", "key": "server.key" }),
        json!({ "cert": "server.pem", "key": "server.pem" }),
        json!({ "cert": "server.pem", "key": "other.key" }),
    ] {
        let setup = with_tls(&authority, &json!({}));
        let other = authority.identity("localhost", |_| {});
        other.save(setup.home(), "other");
        let mut tls = tls;
        for key in ["cert", "key"] {
            if let Some(name) = tls[key].as_str() {
                tls[key] = json!(setup.home().path(name));
            }
        }
        let http = json!({ "auth": { "tokens": true }, "tls": tls });
        let setup = setup.setting("http", http);
        setup.save();
        let outcome = setup.run(&["serve", "--http", "127.0.0.1:0"]);
        assert_ne!(outcome.code, Some(0), "{tls}");
        assert!(
            outcome.stderr.contains("http.tls") || outcome.stderr.contains("client_ca"),
            "{tls}: {}",
            outcome.stderr
        );
    }
    let setup = with_tls(&authority, &json!({}));
    let http = json!({ "auth": { "certificates": true } });
    let setup = setup.setting("http", http);
    setup.save();
    let outcome = setup.run(&["serve", "--http", "127.0.0.1:0"]);
    assert!(outcome.stderr.contains("client_ca"), "{}", outcome.stderr);
}

#[test]
fn a_replaced_authority_of_clients_ends_open_connections() {
    let authority = Authority::new();
    let server = Secure::start(with_tls(&authority, &json!({ "certificates": true })));
    let anna = authority.identity("client", |params| {
        use rcgen::{DnType, ExtendedKeyUsagePurpose};
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "anna");
        let unit = DnType::OrganizationalUnitName;
        params.distinguished_name.push(unit, "developers");
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let root = reqwest::Certificate::from_pem(authority.pem().as_bytes()).unwrap();
        let identity = reqwest::Identity::from_pem(anna.pem().as_bytes()).unwrap();
        let client = Client::builder()
            .no_proxy()
            .tls_certs_only([root])
            .identity(identity)
            .build()
            .unwrap();
        let url = server.url.replace("/mcp", "/sse");
        let request = client.get(url).header("accept", "text/event-stream");
        let mut stream = request.send().await.unwrap();
        assert_eq!(stream.status(), 200);
        assert!(stream.chunk().await.unwrap().is_some());
        let path = server.setup.home().path("authority.pem");
        std::fs::write(path, Authority::new().pem()).unwrap();
        let end = async { while let Ok(Some(_)) = stream.chunk().await {} };
        let ended = tokio::time::timeout(Duration::from_secs(10), end).await;
        assert!(ended.is_ok(), "the stream goes on");
    });
    assert!(server.ask(&authority, None, Some(&anna)).is_err());
}
