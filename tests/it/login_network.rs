//! Servers whose names stand for addresses inside and outside of a private network. The names are those of a file, and the
//! addresses those of a loopback device, in namespaces of Linux that this process starts itself in once more.

use std::process::Command;

use serde_json::json;

use crate::support::Setup;
use crate::support::http::{HttpServer, Reply, Request};

/// Says to the process within the namespaces that it is there.
const WITHIN: &str = "MCPZIP_TEST_NAMESPACE";

/// A public address that the namespace has.
const PUBLIC: &str = "93.184.216.34";

/// Whether this process is in namespaces with the names of `hosts`. Where it is not, the test runs there.
#[track_caller]
fn is_within(test: &str, hosts: &str) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration of their own"
    )]
    let is_within = std::env::var_os(WITHIN).is_some();
    if is_within {
        return true;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hosts");
    std::fs::write(&file, hosts).unwrap();
    let script = format!(
        "ip link set lo up && ip address add {PUBLIC}/32 dev lo && mount --bind \"$1\" /etc/hosts || exit 77; \
         exec \"$2\" --exact \"$3\" --nocapture"
    );
    let run = Command::new("unshare")
        .args(["-Urmn", "sh", "-c", &script, "sh"])
        .arg(&file)
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(WITHIN, "1")
        .output();
    match run {
        Ok(run) if run.status.success() => {
            let said = String::from_utf8_lossy(&run.stdout);
            assert!(said.contains("1 passed"), "{said}");
        }
        Ok(run) if run.status.code() == Some(101) => panic!(
            "{}{}",
            String::from_utf8_lossy(&run.stdout),
            String::from_utf8_lossy(&run.stderr)
        ),
        other => eprintln!("no namespaces here: {other:?}"),
    }
    false
}

/// What a login at the server `host` says where its metadata leads to this machine, and what the machine was asked.
fn led_to_this_machine(host: &'static str) -> (String, usize) {
    let inner = HttpServer::start(|_, reply| reply.json("{}"));
    let issuer = inner.url("/one");
    let web = HttpServer::start(move |request: &Request, reply: &mut Reply| {
        let own = format!("http://{}/mcp", request.header("host"));
        match request.path.as_str() {
            "/mcp" => reply.whole("401 Unauthorized", "www-authenticate: Bearer\r\n", ""),
            path if path.starts_with("/.well-known/oauth-protected-resource") => {
                let document = json!({ "resource": own, "authorization_servers": [issuer] });
                reply.json(&document.to_string());
            }
            _ => reply.whole("404 Not Found", "", ""),
        }
    });
    let url = format!("http://{host}:{}/mcp", web.address().port());
    let refused = Setup::new()
        .entry("web", &json!({ "url": url, "proxy": "none" }).to_string())
        .run(&["login", "web"]);
    assert_ne!(refused.code, Some(0), "{refused}");
    (refused.stderr, inner.requests().len())
}

#[test]
fn a_name_with_a_private_address_beside_a_public_one_leads_to_nothing_private() {
    let test =
        "login_network::a_name_with_a_private_address_beside_a_public_one_leads_to_nothing_private";
    let hosts = format!("127.0.0.1 mcp.example localhost\n{PUBLIC} mcp.example\n");
    if is_within(test, &hosts) {
        let (said, asked) = led_to_this_machine("mcp.example");
        assert!(
            said.contains("an internet server must not refer to a private address"),
            "{said}"
        );
        assert_eq!(asked, 0);
    }
}

#[test]
fn a_server_of_a_private_network_leads_to_what_is_there() {
    let test = "login_network::a_server_of_a_private_network_leads_to_what_is_there";
    if is_within(test, "127.0.0.1 mcp.example localhost\n") {
        let (said, asked) = led_to_this_machine("mcp.example");
        assert!(asked > 0, "{said}");
    }
}
