//! Running as a service: addresses, a configuration without a file, health checks.

use serde_json::json;

use crate::support::closed_port::ClosedPort;
use crate::support::http::HttpServer;
use crate::support::script::answer;
#[cfg(unix)]
use crate::support::terminal::Terminal;
use crate::support::{Server, Setup, command, until};

fn setup() -> Setup {
    Setup::new().server("a", Server::new().tool("t", [answer("done")]))
}

/// A port that was free a moment ago.
/// A free port below those that the system gives to port 0, so that no other test takes it meanwhile.
fn free_port() -> u16 {
    let start = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    (start..32_000)
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}

#[test]
fn http_needs_no_host_and_no_value() {
    let port = free_port();
    let gateway = setup().serve_by(&["serve", "--http", &format!(":{port}")]);
    assert_eq!(gateway.address().to_string(), format!("127.0.0.1:{port}"));
    let gateway = setup().serve_by(&["serve", "--http", "localhost:0"]);
    assert!(gateway.address().ip().is_loopback());
    assert_eq!(gateway.modern("server/discover", "").send().status, 200);
    let port = free_port();
    let gateway = setup()
        .variable("MCPZIP_HTTP_ADDRESS", &format!("127.0.0.1:{port}"))
        .setting("http", json!({ "address": "127.0.0.1:1" }))
        .serve_by(&["serve", "--http"]);
    assert_eq!(gateway.address().port(), port);
}

#[test]
fn an_address_that_other_machines_reach_needs_a_token_in_each_form() {
    for address in ["0.0.0.0", "0.0.0.0:0", "[::]:0"] {
        let outcome = setup().run(&["serve", "--http", address]).code(1);
        assert!(outcome.stderr.contains("must show a token"), "{outcome}");
    }
    // A slip in the address is one of the command line.
    let outcome = setup().run(&["serve", "--http", "slip.invalid"]).code(2);
    assert!(outcome.stderr.contains("cannot be resolved"), "{outcome}");
    let outcome = setup()
        .variable("MCPZIP_HTTP_ADDRESS", "0.0.0.0:0")
        .run(&["serve", "--http"])
        .code(1);
    assert!(outcome.stderr.contains("must show a token"), "{outcome}");
    let outcome = setup()
        .variable("MCPZIP_HTTP_ADDRESS", "http://0.0.0.0")
        .run(&["serve", "--http"])
        .code(3);
    assert!(
        outcome
            .stderr
            .contains("MCPZIP_HTTP_ADDRESS must be an address and a port"),
        "{outcome}"
    );
}

#[test]
fn the_configuration_says_how_http_is_served() {
    let setup = setup();
    std::fs::write(setup.home().path("token"), "sesame-open\n").unwrap();
    let gateway = setup
        .setting(
            "http",
            json!({ "address": "127.0.0.1:0", "token_file": "token", "origins": ["https://app.example.com"] }),
        )
        .serve_by(&["serve", "--http"]);
    assert_eq!(gateway.modern("server/discover", "").send().status, 401);
    let let_in = gateway
        .modern("server/discover", "")
        .header("Authorization", "Bearer sesame-open")
        .header("Origin", "https://app.example.com");
    assert_eq!(let_in.send().status, 200);
    let foreign = let_in.header("Origin", "https://other.example.com");
    assert_eq!(foreign.send().status, 403);
}

#[test]
fn http_is_not_served_without_what_the_configuration_asks_for() {
    for (http, reason) in [
        (json!({ "token_file": 7 }), "http.token_file"),
        (json!({ "token_file": "no-such-file" }), "no-such-file"),
        (json!({ "address": "0.0.0.0:x" }), "http.address"),
        (json!({ "origins": ["*"] }), "http.origins"),
        (json!([]), "http"),
    ] {
        let outcome = setup().setting("http", http).run(&["serve", "--http"]);
        assert!(matches!(outcome.code, Some(1 | 3)), "{outcome}");
        assert!(outcome.stderr.contains(reason), "{outcome}");
    }
}

#[test]
fn a_whole_configuration_stands_in_a_variable() {
    let setup = setup();
    setup.save();
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    std::fs::remove_file(setup.config_path()).unwrap();
    let setup = setup.variable("MCPZIP_CONFIG_JSON", &text);
    let run = |arguments: &[&str]| command::run(setup.command(arguments), "");
    let called = run(&["call", "a__t"]).code(0);
    assert!(called.stdout.contains("done"), "{called}");
    // A client is served with it, too, where sessions share a daemon otherwise.
    let shared = setup.clone().variable("MCPZIP_DAEMON", "auto");
    let mut client = shared.start_command(shared.command(&["serve"]));
    client.shake_hands("2025-11-25");
    assert_eq!(client.execute("a__t").text(), "done");
    client.finish();
    // No command can change a variable, and none leaves a file of its name behind.
    for arguments in [
        &["add", "b", "--", "x"][..],
        &["remove", "a"],
        &["disable", "a"],
        &["init", "--yes"],
        &["migrate"],
        &["connect", "cursor"],
        &["config", "edit"],
    ] {
        let refused = run(arguments);
        assert!(
            refused
                .stderr
                .contains("in the variable MCPZIP_CONFIG_JSON"),
            "{refused}"
        );
        assert_eq!(refused.code, Some(1), "{refused}");
    }
    assert!(!setup.home().path("home/MCPZIP_CONFIG_JSON").exists());
    let path = run(&["config", "path"]).code(0);
    assert_eq!(path.stdout.trim(), "MCPZIP_CONFIG_JSON");
    // A file that is named goes before it.
    let named = run(&["list", "--config", "/no/such/file"]).code(3);
    assert!(named.stderr.contains("/no/such/file"), "{named}");
}

#[test]
fn a_fault_in_the_variable_names_it_and_hides_its_secrets() {
    let setup = setup().variable(
        "MCPZIP_CONFIG_JSON",
        r#"{"mcpServers": {"a": {"command": "no-such-program", "env": {"API_KEY": "sesame-open"}}, "b": {}}}"#,
    );
    let status = setup.run(&["doctor"]).code(1);
    assert!(status.stdout.contains("MCPZIP_CONFIG_JSON:1:"), "{status}");
    let said = [status.stdout, status.stderr].concat();
    assert!(!said.contains("sesame-open"), "{said}");
}

#[test]
fn healthcheck_tells_whether_http_is_served() {
    let setup = setup();
    let gateway = setup.serve(&[]);
    let address = gateway.address().to_string();
    for arguments in [
        &["healthcheck", &address][..],
        &["healthcheck", "--ready", &address],
    ] {
        let healthy = setup.run(arguments).code(0).json();
        assert_eq!(healthy["status"], 200, "{healthy}");
    }
    let by_variable = setup.clone().variable("MCPZIP_HTTP_ADDRESS", &address);
    let healthy = by_variable.run(&["healthcheck", "--json"]).code(0).json();
    assert_eq!(healthy["status"], 200);
    drop(gateway);
    let unhealthy = by_variable.run(&["healthcheck"]).code(4);
    assert!(unhealthy.stderr.contains("does not answer"), "{unhealthy}");
    let closed = ClosedPort::new();
    let configured = setup.setting("http", json!({ "address": closed.address().to_string() }));
    let unhealthy = configured.run(&["healthcheck"]).code(4);
    assert!(
        unhealthy.stderr.contains(&closed.address().to_string()),
        "{unhealthy}"
    );
}

#[test]
fn health_counts_servers_and_tools_for_those_let_in() {
    let setup = setup().entry("off", r#"{"command": "x", "disabled": true}"#);
    std::fs::write(setup.home().path("token"), "sesame-open\n").unwrap();
    let token = setup.home().path("token");
    let gateway = setup.serve(&["--token-file", token.to_str().unwrap()]);
    assert_eq!(gateway.call("GET", "/health").send().status, 401);
    let counts = || {
        let answer = gateway
            .call("GET", "/health")
            .header("Authorization", "Bearer sesame-open")
            .send();
        assert_eq!(answer.status, 200);
        serde_json::from_str::<serde_json::Value>(&answer.body).unwrap()
    };
    let counts = until("the tools to be listed", || {
        Some(counts()).filter(|counts| counts["tools"] == 1)
    });
    assert_eq!(counts["servers"]["disabled"], 1, "{counts}");
}

#[test]
fn a_server_of_the_command_line_needs_no_configuration() {
    let server = HttpServer::with_tool(|request, reply| reply.json(&request.result("remote")));
    let argument = format!("notes={}", server.url("/mcp"));
    let setup = setup();
    let mut client = setup.start_with(&["serve", "--server", &argument]);
    client.shake_hands("2025-11-25");
    assert_eq!(client.execute("notes__t").text(), "remote");
    assert_eq!(client.execute("a__t").text(), "done");
    // It stays when the file is edited.
    setup.clone().without("a").save();
    client.wait_for_stderr("configuration read again");
    assert_eq!(client.execute("notes__t").text(), "remote");
    std::fs::remove_file(setup.config_path()).unwrap();
    let mut client = setup.start_command(setup.command(&["serve", "--server", &argument]));
    client.shake_hands("2025-11-25");
    assert_eq!(client.execute("notes__t").text(), "remote");
    for (argument, reason) in [
        ("notes", "must be a name and a URL"),
        ("notes=ftp://x", "must begin with"),
        ("mcpzip=http://x", "built-in"),
        ("a b=http://x", "a b"),
    ] {
        let refused = setup.run(&["serve", "--server", argument]).code(2);
        assert!(refused.stderr.contains(reason), "{refused}");
    }
}

#[test]
fn config_path_names_the_file_and_whether_it_is_there() {
    let setup = setup();
    let shown = setup.run(&["config", "path"]).code(0);
    assert_eq!(shown.stdout.trim(), setup.config_path().to_str().unwrap());
    let shown = setup.run(&["config", "path", "--json"]).code(0).json();
    assert_eq!(shown["exists"], true);
    assert_eq!(shown["config"], setup.config_path().to_str().unwrap());
    let missing = setup
        .run(&["config", "path", "--config", "nowhere.json"])
        .code(0);
    assert!(missing.stderr.contains("does not exist"), "{missing}");
}

#[cfg(unix)]
#[test]
fn config_edit_opens_the_editor_and_checks_what_it_left() {
    let setup = setup();
    std::fs::remove_file(setup.config_path()).ok();
    let edit = |editor: &str| {
        let edited = setup.clone().variable("EDITOR", editor);
        command::run(edited.command(&["config", "edit"]), "")
    };
    let made = edit("true").code(0);
    assert!(made.stderr.contains("is valid"), "{made}");
    let faulty = edit(r#"sh -c 'echo "{\"mcpServers\": {\"x\": {}}}" > "$0"'"#).code(3);
    assert!(
        faulty
            .stderr
            .contains("server `x`: has neither a `command`"),
        "{faulty}"
    );
    assert!(
        faulty
            .stderr
            .contains("`mcpzip config edit` opens it again"),
        "{faulty}"
    );
    let misspelt =
        edit(r#"sh -c 'echo "{\"mcpServer\": {\"x\": {\"command\": \"x\"}}}" > "$0"'"#).code(0);
    assert!(
        misspelt
            .stderr
            .contains("unknown key `mcpServer`; did you mean `mcpServers`?")
            && misspelt.stderr.contains("can be used, with 2 warnings")
            && !misspelt.stderr.contains("is valid"),
        "{misspelt}"
    );
    let failed = edit("false").code(1);
    assert!(failed.stderr.contains("`false` failed"), "{failed}");
    let none = command::run(setup.command(&["config", "edit"]), "").code(1);
    assert!(none.stderr.contains("set VISUAL or EDITOR"), "{none}");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_no_missing_configuration() {
    let setup = setup();
    let (path, behind) = (setup.config_path(), setup.home().path("behind.json"));
    std::fs::remove_file(&path).ok();
    std::os::unix::fs::symlink(&behind, &path).unwrap();
    let setup = setup.variable("EDITOR", "true");
    for arguments in [
        &["config", "edit"][..],
        &["config", "show"],
        &["config", "check"],
        &["config", "extract-secrets"],
        &["config", "path"],
    ] {
        let said = command::run(setup.command(arguments), "");
        assert!(
            said.stderr.contains("is a link to") && said.stderr.contains("behind.json"),
            "{arguments:?}: {said}"
        );
        assert!(!said.stderr.contains("there is no configuration"), "{said}");
        assert!(path.is_symlink() && !behind.exists(), "{said}");
    }
    std::fs::write(&behind, "{}").unwrap();
    let edited = command::run(setup.command(&["config", "edit"]), "").code(0);
    assert!(path.is_symlink(), "{edited}");
}

#[cfg(unix)]
#[test]
fn config_edit_at_a_terminal_opens_one_of_the_usual_editors() {
    use std::os::unix::fs::PermissionsExt as _;
    let setup = Setup::new();
    let bin = setup.home().path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let nano = bin.join("nano");
    std::fs::write(
        &nano,
        "#!/bin/sh\necho '{\"mcpServers\": {}}' > \"$1\"\necho opened\n",
    )
    .unwrap();
    std::fs::set_permissions(&nano, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = setup.command(&["config", "edit"]);
    command.env("PATH", &bin);
    let Some(terminal) = Terminal::run(&command) else {
        return;
    };
    terminal.shows("is valid");
}

#[cfg(unix)]
#[test]
fn config_edit_at_a_terminal_offers_to_open_a_broken_file_again() {
    let setup = Setup::new();
    let editor = setup.home().path("editor");
    // It breaks the file, and corrects it the second time.
    let script = "if [ -e \"$0.again\" ]; then echo '{\"mcpServers\": {}}' > \"$1\"; else touch \"$0.again\"; echo '{' > \"$1\"; fi\n";
    std::fs::write(&editor, script).unwrap();
    let setup = setup.variable("EDITOR", &format!("sh {}", editor.display()));
    let Some(terminal) = Terminal::run(&setup.command(&["config", "edit"])) else {
        return;
    };
    terminal.shows("Open the file again? [y/N]");
    terminal.types("y");
    terminal.shows("is valid");
}

#[test]
fn an_adaptive_idle_time_keeps_within_its_bounds() {
    let server = || Server::new().tool("t", [answer("done")]);
    let setup = Setup::new()
        .server_with("short", server(), json!({ "max_idle_timeout": "200ms" }))
        .server("all", server())
        .setting("min_idle_timeout", json!("100ms"))
        .setting("max_idle_timeout", json!("300ms"));
    let mut client = setup.connect();
    for name in ["short__t", "all__t"] {
        assert_eq!(client.execute(name).text(), "done");
    }
    for server in ["short", "all"] {
        setup.home().wait_for(server, "end");
    }
}

#[test]
fn the_configuration_of_a_team_in_containers_is_understood_and_gives_what_its_roles_say() {
    let setup = Setup::new()
        .variable("HOST", "mcp.example.com")
        .variable("LOGIN_SECRET", "the-secret-of-the-provider");
    setup.save_text(include_str!("../../packaging/docker/team/config.json"));
    let run = |arguments: &[&str]| command::run(setup.command(arguments), "");
    let checked = run(&["config", "check", "--json"]).code(0).json();
    assert_eq!(checked, json!({ "faults": [], "warnings": [] }));
    // A tool of which nothing is known may change something, so the second role does not have it.
    for (who, verdict, roles) in [
        ("anna@example.com", "allowed", json!(["lead"])),
        ("bo@example.com", "denied", json!(["staff"])),
        ("stranger@example.com", "denied", json!(null)),
    ] {
        let checked = run(&["rules", "check", "wiki__page", "--user", who, "--json"]).json();
        assert_eq!(
            (&checked["verdict"], &checked["roles"]),
            (&json!(verdict), &roles),
            "{who}: {checked}"
        );
    }
}

/// The outcome of `people.sh` of the team's containers, with a program of this text in place of `htpasswd`.
#[cfg(unix)]
#[track_caller]
fn people(htpasswd: &str, addresses: &[&str]) -> command::Outcome {
    use std::os::unix::fs::PermissionsExt as _;

    let bin = tempfile::TempDir::new().unwrap();
    let program = bin.path().join("htpasswd");
    std::fs::write(&program, format!("#!/bin/sh\n{htpasswd}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/packaging/docker/team/people.sh"
    );
    let mut sh = std::process::Command::new("sh");
    sh.arg(script).args(addresses);
    sh.env("PATH", format!("{}:/usr/bin:/bin", bin.path().display()));
    sh.stdin(std::process::Stdio::piped());
    sh.stdout(std::process::Stdio::piped());
    sh.stderr(std::process::Stdio::piped());
    command::run(sh, "")
}

#[cfg(unix)]
#[test]
fn each_account_of_a_team_has_an_id_and_a_password_of_its_own() {
    const HASHES: &str = "read -r password; echo \"x:hash-of-$password\"";
    let made = people(HASHES, &["anna@example.com", "bo@example.com"]).code(0);
    let passwords: Vec<(&str, &str)> = made
        .stderr
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .collect();
    assert_eq!(passwords.len(), 2, "{made}");
    let ids: std::collections::BTreeSet<_> = made
        .stdout
        .lines()
        .zip(&passwords)
        .map(|(line, (address, password))| {
            let expected = format!(
                "email: \"{address}\", username: \"{}\"",
                &address[..address.find('@').unwrap()]
            );
            assert!(
                line.starts_with("  - { ") && line.contains(&expected),
                "{line}"
            );
            assert!(
                line.ends_with(&format!("hash: \"hash-of-{password}\" }}")),
                "{line}"
            );
            assert!(password.len() >= 20, "{made}");
            line.split("userID: ")
                .nth(1)
                .unwrap()
                .split('"')
                .nth(1)
                .unwrap()
        })
        .collect();
    assert_eq!(ids.len(), 2, "{made}");
    assert_ne!(passwords[0].1, passwords[1].1);
    for (htpasswd, address, code) in [
        (HASHES, "a name@example.com", 2),
        (HASHES, "anna", 2),
        (HASHES, "a\"b@example.com", 2),
        ("exit 1", "anna@example.com", 1),
    ] {
        let refused = people(htpasswd, &[address]).code(code);
        assert_eq!(refused.stdout, "", "{address}");
        assert!(refused.stderr.contains(address), "{refused}");
    }
}
