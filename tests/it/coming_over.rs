//! Users of mcpzip 0.1 and of other proxies come over with the examples of their own documentation, by one command, and lose nothing
//! that protects.

use serde_json::{Value, json};

use crate::support::command::{self, Outcome};
use crate::support::script::answer;
#[cfg(unix)]
use crate::support::terminal::Terminal;
use crate::support::{Server, Setup};

const AVELINO: &str = ".config/mcp/servers.json";
const MCPPROXY: &str = ".mcpproxy/mcp_config.json";

/// A home with another program's file in it.
struct Home(Setup);

impl Home {
    fn with(file: &str, content: &str) -> Self {
        let home = Self(Setup::new().log_level("error"));
        home.put(file, content);
        home
    }

    fn put(&self, file: &str, content: &str) -> String {
        let path = self.0.home().path("home").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Outcome {
        command::run(self.0.command(arguments), "")
    }

    /// Takes the file over, without a question.
    #[track_caller]
    fn migrate(&self, arguments: &[&str]) -> Value {
        self.run(&[&["migrate", "--yes", "--json", "--from"], arguments].concat())
            .code(0)
            .json()
    }

    /// What is said of a file that cannot be taken over; nothing is written.
    #[track_caller]
    fn refused(&self, arguments: &[&str]) -> String {
        let refused = self
            .run(&[&["migrate", "--yes", "--json", "--from"], arguments].concat())
            .code(1);
        assert!(!self.0.config_path().exists(), "{refused}");
        assert!(refused.stderr.contains("nothing was done"), "{refused}");
        refused.json()["blocking"].to_string()
    }

    fn config(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.0.config_path()).unwrap()).unwrap()
    }

    /// The servers that came over, all of which can be used here.
    #[track_caller]
    fn servers(&self) -> Value {
        let understood = self.run(&["auth", "status"]).code(0);
        assert_eq!(understood.stderr, "", "what was written is understood");
        self.config()["mcpServers"].clone()
    }
}

#[test]
fn a_user_of_mcpzip_0_1_comes_over_with_the_example_of_its_documentation() {
    let home = Home::with(
        ".config/compressed-mcp-proxy/config.json",
        r#"{
  "gemini_api_key": "AIza-secret-example",
  "search": { "default_limit": 5, "model": "gemini-2.0-flash" },
  "idle_timeout_minutes": 5,
  "call_timeout_seconds": 120,
  "mcpServers": {
    "slack": { "command": "npx", "args": ["-y", "@anthropic/slack-mcp"], "env": { "SLACK_TOKEN": "xoxb-secret-example" } },
    "todoist": { "type": "http", "url": "https://todoist.com/mcp" },
    "legacy": { "type": "sse", "url": "https://legacy.example.com/sse", "headers": { "Authorization": "Bearer secret-example" } }
  }
}"#,
    );
    home.migrate(&["mcpzip-0.1"]);
    let servers = home.servers();
    assert_eq!(
        servers["slack"]["env"]["SLACK_TOKEN"],
        "xoxb-secret-example"
    );
    assert_eq!(
        servers["legacy"],
        json!({
            "type": "sse", "url": "https://legacy.example.com/sse", "headers": { "Authorization": "Bearer secret-example" },
        })
    );
    assert_eq!(
        servers["todoist"],
        json!({ "url": "https://todoist.com/mcp" })
    );
    assert_eq!(home.config()["idle_timeout"], "5m");
    assert_eq!(home.config()["call_timeout"], "120s");
    assert_eq!(home.config()["search"]["llm"]["model"], "gemini-2.0-flash");
    let _ = home.run(&["undo"]).code(0);
    let report = home.migrate(&["mcpzip-0.1", "--extract-secrets"]);
    let config = home.config();
    assert_eq!(config["search"]["llm"]["api_key"], "${GEMINI_API_KEY}");
    assert!(!config.to_string().contains("secret-example"), "{config}");
    assert!(!report.to_string().contains("AIza"), "{report}");
    let secrets = home.0.config_path().with_extension("secrets.json");
    let stored: Value = serde_json::from_str(&std::fs::read_to_string(secrets).unwrap()).unwrap();
    assert_eq!(stored["GEMINI_API_KEY"], "AIza-secret-example");
    // Without the flag it stays until a command moves it.
    let _ = home.run(&["undo"]).code(0);
    let report = home.migrate(&["mcpzip-0.1"]);
    assert!(
        report["secrets"]["literal"]
            .to_string()
            .contains("search.llm"),
        "{report}"
    );
    let _ = home.run(&["config", "extract-secrets", "--yes"]).code(0);
    assert_eq!(home.config(), config);
}

#[test]
fn an_import_merges_servers_and_moves_their_secrets_if_asked_to() {
    const TOKEN: &str = "tok-0123456789abcdefABCDEF";
    let server = |token: &str| {
        json!({ "mcpServers": { "notes": { "command": "notes-mcp", "env": { "NOTES_TOKEN": token } } } }).to_string()
    };
    let home = Home::with(AVELINO, &server(TOKEN));
    home.0.save_text(&server("${NOTES_TOKEN}"));
    let before = home.config();
    let looked = home.migrate(&["avelino", "--dry-run"]);
    assert_eq!(looked["secrets"]["twins"][0]["server"], "notes", "{looked}");
    assert!(
        looked["notes"].to_string().contains("--merge notes"),
        "{looked}"
    );
    let merged = home.migrate(&["avelino", "--merge", "notes"]);
    assert!(!merged.to_string().contains(TOKEN), "{merged}");
    assert_eq!(
        home.config()["mcpServers"],
        before["mcpServers"],
        "it is the server that was there"
    );
    let secrets = home.0.config_path().with_extension("secrets.json");
    let stored =
        || -> Value { serde_json::from_str(&std::fs::read_to_string(&secrets).unwrap()).unwrap() };
    assert_eq!(stored(), json!({ "NOTES_TOKEN": TOKEN }));
    let _ = home.run(&["undo"]).code(0);
    assert!(!secrets.exists());
    home.0.save_text("{}");
    home.migrate(&["avelino", "--extract-secrets"]);
    assert_eq!(
        home.config()["mcpServers"]["notes"]["env"]["NOTES_TOKEN"],
        "${NOTES_TOKEN}"
    );
    assert_eq!(stored(), json!({ "NOTES_TOKEN": TOKEN }));
}

#[test]
fn the_file_of_mcpzip_0_1_named_as_the_configuration_is_read_and_says_how_to_take_it_over() {
    let home = Home::with(
        "old.json",
        r#"{"gemini_api_key":"k","search":{"model":"m"},"idle_timeout_minutes":0,"call_timeout_seconds":0,"mcpServers":{}}"#,
    );
    let outcome = home
        .run(&["--config", "old.json", "status", "--json"])
        .code(0);
    let warnings = outcome.json()["warnings"].to_string();
    for key in [
        "gemini_api_key",
        "search.model",
        "idle_timeout_minutes",
        "call_timeout_seconds",
    ] {
        assert!(
            warnings.contains(&format!("`{key}` is a key of mcpzip 0.1")),
            "{warnings}"
        );
    }
    assert!(
        warnings.contains("mcpzip migrate --from mcpzip-0.1"),
        "{warnings}"
    );
    home.migrate(&["mcpzip-0.1", "old.json"]);
    assert_eq!(home.config()["search"]["llm"]["provider"], "gemini");
}

#[test]
fn claude_codes_file_may_be_named_and_is_found_where_an_early_release_had_it() {
    let file = r#"{"mcpServers":{"notes":{"command":"notes-mcp"}}}"#;
    for arguments in [
        &[
            "migrate",
            "--yes",
            "--json",
            "--claude-config",
            "elsewhere.json",
        ][..],
        &["migrate", "--yes", "--json"],
    ] {
        let place = match arguments.len() {
            3 => ".claude/config.json",
            _ => "elsewhere.json",
        };
        let home = Home::with(place, file);
        let _ = home.run(arguments).code(0);
        assert_eq!(
            home.servers(),
            json!({ "notes": { "command": "notes-mcp" } })
        );
        let left = std::fs::read_to_string(home.0.home().path("home").join(place)).unwrap();
        assert!(left.contains("mcpzip") && !left.contains("notes"), "{left}");
    }
    let home = Home::with("x", "");
    let missing = home
        .run(&["migrate", "--claude-config", "nowhere.json"])
        .code(1);
    assert!(missing.stderr.contains("nowhere.json"), "{missing}");
}

#[test]
fn the_log_variable_of_mcpzip_0_1_counts_where_there_is_none_of_ours() {
    for (filter, is_logged) in [
        ("mcpzip=debug", true),
        ("warn,mcpzip=trace", true),
        ("debug", true),
        ("hyper=debug", false),
        ("error", false),
    ] {
        let setup = Setup::new()
            .variable("MCPZIP_LOG", "")
            .variable("RUST_LOG", filter);
        let outcome = setup.run(&["status"]).code(0);
        assert_eq!(!outcome.stderr.is_empty(), is_logged, "{filter}: {outcome}");
    }
    let setup = Setup::new()
        .log_level("error")
        .variable("RUST_LOG", "trace");
    assert_eq!(setup.run(&["status"]).code(0).stderr, "");
}

#[test]
fn a_user_of_avelino_mcp_comes_over_with_the_examples_of_its_documentation() {
    let home = Home::with(
        AVELINO,
        r#"{
  // Comments may stand in it.
  "mcpServers": {
    "filesystem": { "command": "npx", "args": ["-y", "@anthropic/fs-mcp-server", "/home/me/documents"], "env": {} },
    "sentry": { "url": "https://mcp.sentry.dev/sse", "headers": { "Authorization": "Bearer ${SENTRY_TOKEN}" }, "idle_timeout": "never" },
    "grafana": {
      "command": "mcp-grafana",
      "tool_acl": { "read": ["get_*"], "write": ["update_dashboard", "create_*"] }
    },
    "kubectl": { "command": "kubectl", "cli": true, "cli_only": ["get", "describe", "logs"] }
  },
  "serverAuth": { "providers": [] },
  "audit": { "enabled": false }
}"#,
    );
    let report = home.migrate(&["avelino"]);
    assert_eq!(
        home.config()["mcpServers"],
        json!({
            "filesystem": { "command": "npx", "args": ["-y", "@anthropic/fs-mcp-server", "/home/me/documents"] },
            "sentry": { "url": "https://mcp.sentry.dev/sse", "headers": { "Authorization": "Bearer ${SENTRY_TOKEN}" }, "idle_timeout": "never" },
            "grafana": { "command": "mcp-grafana", "tools": { "ask": ["update_dashboard", "create_*"] } },
            "kubectl": { "command": "kubectl", "cli": true, "cli_only": ["get", "describe", "logs"] },
        })
    );
    assert_eq!(report["blocking"], json!([]));
}

#[test]
fn writing_tools_that_avelino_mcp_lists_for_all_servers_ask_first_here() {
    let content = |acl: &str| {
        format!(
            r#"{{"mcpServers": {{"a": {{"command": "a"}}}}, "tool_acl": {acl}, "audit": {{"enabled": false}}}}"#
        )
    };
    let home = Home::with(
        AVELINO,
        &content(r#"{"read": ["get_*"], "write": ["create_*", "a__drop"]}"#),
    );
    let report = home.migrate(&["avelino"]);
    assert_eq!(
        home.config()["tools"],
        json!({ "ask": ["*__create_*", "a__drop", "*__a__drop"] }),
        "{report}"
    );
    let again = home.migrate(&["avelino"]);
    assert_eq!(again["files"], json!([]), "a second time changes nothing");
    home.0.save_text(r#"{"tools": {"ask": ["other"]}}"#);
    let refused = home
        .run(&["migrate", "--yes", "--json", "--from", "avelino"])
        .code(1);
    assert!(
        refused.json()["blocking"]
            .to_string()
            .contains("`tools.ask`"),
        "{refused}"
    );
    let looked = home
        .run(&["migrate", "--dry-run", "--json", "--from", "avelino"])
        .code(1);
    assert!(looked.stderr.contains("nothing was done"), "{looked}");
    for acl in [
        r#"{"rules": [{"tool": "drop", "deny": true}]}"#,
        r#"["drop"]"#,
        r#"{"write": {"a": ["drop"]}}"#,
        r#"{"write": [["drop"]]}"#,
    ] {
        let refused = Home::with(AVELINO, &content(acl)).refused(&["avelino"]);
        assert!(refused.contains("`tool_acl`"), "{acl}: {refused}");
    }
    let silent = Home::with(AVELINO, &content(r#"{"read": ["get_*"], "write": []}"#));
    silent.migrate(&["avelino"]);
    assert!(silent.config()["tools"].is_null());
}

#[test]
fn the_audit_log_of_avelino_mcp_goes_on_in_that_of_mcpzip() {
    for (written, ours) in [
        ("", json!({})),
        (r#", "audit": {"max_age_days": 7}"#, json!({})),
        (
            r#", "audit": {"enabled": true, "log_arguments": true}"#,
            json!({ "arguments": "redacted" }),
        ),
        (r#", "audit": {"enabled": false}"#, Value::Null),
        (r#", "audit": {"output": "none"}"#, Value::Null),
    ] {
        let content = format!(r#"{{"mcpServers": {{"a": {{"command": "a"}}}}{written}}}"#);
        let home = Home::with(AVELINO, &content);
        home.migrate(&["avelino"]);
        assert_eq!(home.config()["audit"], ours, "{written}");
    }
    let kept = Home::with(AVELINO, r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    kept.0.save_text(r#"{"audit": {"days": 90}}"#);
    kept.migrate(&["avelino"]);
    assert_eq!(kept.config()["audit"], json!({ "days": 90 }));
    let switched_off = Home::with(
        AVELINO,
        r#"{"mcpServers": {"a": {"command": "a"}}, "audit": {}}"#,
    );
    switched_off.0.save_text(r#"{"audit": {"enabled": false}}"#);
    let refused = switched_off
        .run(&["migrate", "--yes", "--from", "avelino"])
        .code(1);
    assert!(
        refused.stderr.contains("nothing was done")
            && switched_off.config()["mcpServers"].is_null(),
        "{refused}"
    );
}

#[cfg(unix)]
#[test]
fn an_import_says_that_the_clients_still_start_the_other_proxy() {
    let entry = r#"{ "mcpServers": { "files": { "command": "true" } } }"#;
    let home = Home::with(AVELINO, entry);
    let command = home.0.command(&["migrate", "--yes", "--from", "avelino"]);
    let Some(terminal) = Terminal::run(&command) else {
        return;
    };
    let screen = terminal.shows("[exit 0]");
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("clients that start avelino/mcp still do"),
        "{screen}"
    );
    assert!(words.contains("`mcpzip connect CLIENT`"), "{screen}");
}

/// A file of avelino/mcp with two servers and these rules for people.
fn with_people(auth: &str) -> String {
    let servers = r#""github": {"command": "github-mcp"}, "sentry": {"command": "sentry-mcp"}"#;
    format!(
        r#"{{"mcpServers": {{{servers}}}, "serverAuth": {auth}, "audit": {{"enabled": false}}}}"#
    )
}

#[test]
fn people_and_rules_of_avelino_mcp_are_those_of_mcpzip() {
    // Its own `servers.example.json`.
    let example = r#"{
  "mcpServers": { "example": { "url": "https://mcp.example.com/sse", "headers": { "Authorization": "Bearer ${MCP_EXAMPLE_TOKEN}" } } },
  "serverAuth": {
    "provider": "bearer",
    "bearer": { "tokens": { "change-me-alice": "alice", "change-me-bob": "bob" } },
    "acl": { "default": "allow", "rules": [{ "subjects": ["bob"], "tools": ["example__admin_*"], "policy": "deny" }] }
  }
}"#;
    let home = Home::with(AVELINO, example);
    let home = Home(home.0.variable("MCP_EXAMPLE_TOKEN", "of-the-server"));
    let report = home.migrate(&["avelino"]);
    let config = home.config();
    assert_eq!(config["http"], json!({ "auth": { "tokens": true } }));
    assert_eq!(
        config["tools"],
        json!({ "deny": ["@user:bob example__admin_*"] })
    );
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("mcpzip token create NAME") && notes.contains("alice, bob"),
        "{notes}"
    );
    for carried in [
        "becomes `@user:bob example__admin_*` in `tools.deny`",
        "`serverAuth.bearer` becomes `http.auth.tokens`",
    ] {
        assert!(notes.contains(carried), "{notes}");
    }
    assert!(
        !format!("{report}{config}").contains("change-me"),
        "{report}"
    );
    let verdict = |home: &Home, who: &str, tool: &str, is_allowed: bool| {
        let checked = home.run(&["rules", "check", "--json", "--user", who, tool]);
        let is_denied = checked.json()["verdict"] == "denied";
        assert_eq!(!is_denied, is_allowed, "{who} {tool}: {checked}");
    };
    verdict(&home, "bob", "example__admin_drop", false);
    verdict(&home, "bob", "example__list", true);
    verdict(&home, "alice", "example__admin_drop", true);

    // Its rules of the older form; the last one says what holds anyway.
    let home = Home::with(
        AVELINO,
        &with_people(
            r#"{"providers": ["bearer"], "bearer": {"tokens": {"t": "bob", "u": {"subject": "eve", "roles": ["admin"]}}},
            "acl": {"default": "allow", "rules": [
                {"subjects": ["bob"], "tools": ["sentry__*", "*admin*"], "policy": "deny"},
                {"roles": ["admin"], "tools": ["*"], "policy": "allow"}
            ]}}"#,
        ),
    );
    home.migrate(&["avelino"]);
    verdict(&home, "bob", "sentry__list", false);
    verdict(&home, "bob", "github__an_admin_tool", false);
    verdict(&home, "bob", "github__list", true);
    verdict(&home, "eve", "sentry__admin", true);

    // Roles, as its guide to the proxy has them.
    let home = Home::with(
        AVELINO,
        &with_people(
            r#"{"providers": ["bearer", "forwarded"],
            "bearer": {"tokens": {
                "tok-alice": {"subject": "alice", "roles": ["admin"]},
                "tok-bob": {"subject": "bob", "roles": ["dev"]},
                "tok-charlie": {"subject": "charlie", "roles": ["readonly"]}
            }},
            "acl": {"default": "deny", "strictClassification": false,
                "roles": {
                    "admin": [{"server": "*", "access": "*"}],
                    "dev": [
                        {"server": ["github", "grafana"], "access": "read"},
                        {"server": "github", "access": "write", "tools": ["gh_pr", "gh_issue"]},
                        {"server": "github", "access": "write", "tools": ["gh_repo_delete"], "deny": true}
                    ],
                    "readonly": [{"server": "*", "access": "read"}]
                },
                "subjects": {"charlie": {"roles": ["readonly"], "extra": [{"server": "sentry", "access": "*"}]}}
            }}"#,
        ),
    );
    // Clients over stdio may call nothing there.
    let blocking = home.refused(&["avelino"]);
    assert!(blocking.contains("over stdio"), "{blocking}");
    home.migrate(&["avelino", "--drop-rules"]);
    let config = home.config();
    assert_eq!(
        config["http"]["auth"]["forwarded"]["from"],
        json!(["127.0.0.0/8", "::1"])
    );
    assert_eq!(
        config["roles"]["admin"],
        json!({ "profiles": ["*"], "users": ["alice"], "groups": ["admin"] })
    );
    assert_eq!(
        config["tools"],
        json!({ "deny": ["@role:dev github__gh_repo_delete"] })
    );
    verdict(&home, "alice", "sentry__anything", true);
    verdict(&home, "bob", "github__gh_issue", true);
    verdict(&home, "bob", "github__gh_repo_delete", false);
    verdict(&home, "bob", "github__other", false);
    verdict(&home, "bob", "sentry__list", false);
    verdict(&home, "charlie", "sentry__anything", true);
    verdict(&home, "charlie", "github__anything", false);
    verdict(&home, "nobody", "github__anything", false);
    let again = home.migrate(&["avelino", "--drop-rules"]);
    assert_eq!(again["files"], json!([]), "a second time changes nothing");
}

/// A fake server of the fixture.
fn server_of(tools: &Value) -> Server {
    let tools = tools.as_array().unwrap().iter();
    tools.fold(Server::new(), |server, tool| {
        let name = tool["name"].as_str().unwrap();
        server.tool_as(name, &tool.to_string(), [answer("done")])
    })
}

/// The fixture has the answers of avelino/mcp's own modules, and names the cases in which less is permitted here.
#[test]
fn rules_check_answers_as_avelino_mcp_on_a_table_of_cases() {
    let fixture: Value =
        serde_json::from_str(include_str!("../fixtures/avelino-acl.json")).unwrap();
    let tools = fixture["tools"].as_object().unwrap();
    let files = fixture["files"].as_array().unwrap();
    let cases: usize = std::thread::scope(|scope| {
        let files = files
            .iter()
            .map(|file| scope.spawn(|| same_answers(file, tools)));
        let files: Vec<_> = files.collect();
        files.into_iter().map(|file| file.join().unwrap()).sum()
    });
    assert_eq!(cases, 200);
}

/// Imports a file of the fixture and compares the answers. Returns their number.
fn same_answers(file: &Value, tools: &serde_json::Map<String, Value>) -> usize {
    let about = file["about"].as_str().unwrap();
    let mut setup = Setup::new().log_level("error");
    for (name, tools) in tools {
        setup = setup.server(name, server_of(tools));
    }
    setup.save();
    // Its servers are these, with what the file says of their tools.
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    let mut written: Value = serde_json::from_str(&text).unwrap();
    for (name, entry) in written["mcpServers"].as_object_mut().unwrap() {
        if let Some(acl) = file["tool_acl"].get(name) {
            entry["tool_acl"] = acl.clone();
        }
    }
    written["serverAuth"] = file["serverAuth"].clone();
    written["audit"] = json!({ "enabled": false });
    std::fs::remove_file(setup.config_path()).unwrap();
    let home = Home(setup);
    home.put(AVELINO, &written.to_string());
    home.migrate(&["avelino", "--drop-rules"]);
    // Their lists are read, and what they declare is known.
    for name in tools.keys() {
        let _ = home.run(&["tools", name]).code(0);
    }
    let mut cases = 0;
    for (who, allowed) in file["allowed"].as_object().unwrap() {
        for (name, tools) in tools {
            for tool in tools.as_array().unwrap() {
                let tool = format!("{name}__{}", tool["name"].as_str().unwrap());
                let checked = home.run(&["rules", "check", "--json", "--user", who, &tool]);
                let verdict = checked.json();
                let has = |list: &Value, what: String| {
                    list.as_array()
                        .is_some_and(|list| list.contains(&json!(what)))
                };
                let is_stricter = has(&file["stricter_here"], format!("{who} {tool}"));
                let expected = has(allowed, tool.clone()) && !is_stricter;
                let is_permitted = verdict["verdict"] != "denied";
                assert_eq!(is_permitted, expected, "{about}: {who} {tool}: {verdict}");
                cases += 1;
            }
        }
    }
    cases
}

#[test]
fn names_of_a_command_lines_tools_in_rules_for_people_are_those_here_or_stop_the_import() {
    let file = |acl: &str| {
        format!(
            r#"{{"mcpServers": {{"kube": {{"command": "kubectl", "cli": true}}, "git": {{"command": "git-mcp"}}}}, "audit": {{"enabled": false}},
            "serverAuth": {{"providers": ["bearer"], "bearer": {{"tokens": {{"t": {{"subject": "bob", "roles": ["dev"]}}}}}}, "acl": {acl}}}}}"#
        )
    };
    let rule = |tools: &str| {
        file(&format!(
            r#"{{"rules": [{{"subjects": ["bob"], "tools": ["{tools}"], "policy": "deny"}}]}}"#
        ))
    };
    for (there, here) in [
        ("kube__kubectl_delete", "kube__delete"),
        ("kube__*", "kube__*"),
        ("git__push", "git__push"),
    ] {
        let home = Home::with(AVELINO, &rule(there));
        home.migrate(&["avelino"]);
        let expected = json!([format!("@user:bob {here}")]);
        assert_eq!(home.config()["tools"]["deny"], expected, "{there}");
    }
    let grant = |grant: &str| {
        file(&format!(
            r#"{{"default": "deny", "roles": {{"dev": [{{"server": "*", "access": "*"}}, {grant}]}}}}"#
        ))
    };
    let named =
        grant(r#"{"server": "kube", "access": "*", "tools": ["kubectl_delete"], "deny": true}"#);
    let home = Home::with(AVELINO, &named);
    home.migrate(&["avelino", "--drop-rules"]);
    assert_eq!(
        home.config()["tools"]["deny"],
        json!(["@role:dev kube__delete"])
    );
    for without_counterpart in [
        rule("kube__delete"),
        rule("*_delete"),
        rule("kub*"),
        grant(r#"{"server": "*", "access": "*", "tools": ["kubectl_delete"], "deny": true}"#),
        grant(
            r#"{"server": ["git", "kube"], "access": "*", "tools": ["kubectl_delete"], "deny": true}"#,
        ),
        grant(r#"{"server": "kube", "access": "*", "tools": ["*_delete"], "deny": true}"#),
    ] {
        let told = Home::with(AVELINO, &without_counterpart).refused(&["avelino"]);
        assert!(
            told.contains("serverAuth.acl"),
            "{without_counterpart}: {told}"
        );
    }
}

#[test]
fn rules_for_people_say_that_a_client_over_stdio_is_none_of_them() {
    let file = with_people(
        r#"{"provider": "bearer", "bearer": {"tokens": {"t": "alice"}},
            "acl": {"default": "deny", "rules": [{"subjects": ["alice"], "tools": ["*"], "policy": "allow"}]}}"#,
    );
    let home = Home::with(AVELINO, &file);
    let notes = home.migrate(&["avelino"])["notes"].to_string();
    assert!(
        notes.contains("a client over stdio does not have"),
        "{notes}"
    );
    let checked = home.run(&["rules", "check", "--json", "github__list"]);
    let told = checked.json().to_string();
    assert!(
        told.contains("for users and roles that this client is not"),
        "{checked}"
    );
    // A rule for everyone narrows the user of this machine, too.
    let file = file.replacen(
        r#""policy": "allow"}]"#,
        r#""policy": "allow"}, {"tools": ["github__read"], "policy": "allow"}]"#,
        1,
    );
    let notes = Home::with(AVELINO, &file).migrate(&["avelino"])["notes"].to_string();
    assert!(
        notes.contains("also holds for clients over stdio"),
        "{notes}"
    );
    assert!(notes.contains("`@local *` permits all tools"), "{notes}");
}

#[test]
fn what_protects_in_avelino_mcp_and_has_no_counterpart_stops_the_import() {
    let bearer = |acl: &str| {
        format!(
            r#"{{"providers": ["bearer"], "bearer": {{"tokens": {{"tok-secret": "bob"}}}}, "acl": {acl}}}"#
        )
    };
    let role = |grant: &str| {
        bearer(&format!(
            r#"{{"default": "deny", "roles": {{"dev": [{grant}]}}}}"#
        ))
    };
    for auth in [
        r#"{"providers": ["oauth_as"], "oauthAs": {"jwtSecret": "tok-secret"}}"#.to_owned(),
        r#"{"acl": {"default": "deny"}}"#.to_owned(),
        r#"{"acl": {"roles": {"dev": [{"server": "a", "access": "read"}]}}}"#.to_owned(),
        r#"{"new_in_2027": true}"#.to_owned(),
        bearer(r#"{"default": "deny"}"#),
        bearer(r#"{"new_in_2027": {"a": 1}}"#),
        bearer(
            r#"{"rules": [{"tools": ["*"], "policy": "allow"}, {"subjects": ["bob"], "tools": ["x__*"], "policy": "deny"}]}"#,
        ),
        bearer(
            r#"{"rules": [{"subjects": ["bob"], "roles": ["dev"], "tools": ["x__*"], "policy": "deny"}]}"#,
        ),
        bearer(r#"{"rules": [{"subjects": ["anonymous"], "tools": ["x__*"], "policy": "deny"}]}"#),
        bearer(r#"{"rules": [{"subjects": ["bob"], "tools": ["x?y"], "policy": "deny"}]}"#),
        bearer(
            r#"{"default": "deny", "strictClassification": true, "roles": {"dev": [{"server": "*", "access": "*"}]}}"#,
        ),
        role(r#"{"server": "git*", "access": "*"}"#),
        role(r#"{"server": "of-no-server", "access": "*"}"#),
        role(r#"{"server": "github", "access": "*", "resources": ["x://*"]}"#),
        role(r#"{"server": "github", "access": "write"}"#),
        role(r#"{"server": "github", "access": "new"}"#),
    ] {
        let home = Home::with(AVELINO, &with_people(&auth));
        let told = home.refused(&["avelino"]);
        assert!(told.contains("serverAuth"), "{auth}: {told}");
        assert!(!told.contains("tok-secret"), "{told}");
    }
    // Without the rules that stop the import, people still need tokens.
    let strict = r#"{"default": "deny", "strictClassification": true, "roles": {"dev": [{"server": "*", "access": "*"}]}}"#;
    let home = Home::with(AVELINO, &with_people(&bearer(strict)));
    let notes = home.migrate(&["avelino", "--drop-rules"])["notes"].to_string();
    assert!(notes.contains("mcpzip token create NAME"), "{notes}");
    // Rules name servers, of which one has another name here.
    let home = Home::with(
        AVELINO,
        &with_people(&bearer(
            r#"{"rules": [{"tools": ["github__drop"], "policy": "deny"}]}"#,
        )),
    );
    home.0
        .save_text(r#"{"mcpServers": {"github": {"command": "another"}}}"#);
    let refused = home
        .run(&["migrate", "--yes", "--json", "--from", "avelino"])
        .code(1);
    assert!(
        refused.json()["blocking"]
            .to_string()
            .contains("another name"),
        "{refused}"
    );
    home.migrate(&["avelino", "--drop-rules"]);
    assert!(home.config()["mcpServers"]["sentry"].is_object());
}

#[test]
fn a_server_that_learns_who_calls_stays() {
    let home = Home::with(
        AVELINO,
        r#"{"mcpServers": {"hub": {"url": "http://127.0.0.1:9/mcp", "forward_identity": {"header": "X-Who"}}, "b": {"command": "b"}}}"#,
    );
    let told = home.refused(&["avelino"]);
    let way = "mcpzip does so by `identity`";
    assert!(
        told.contains("forward_identity") && told.contains(way),
        "{told}"
    );
    home.migrate(&["avelino", "--only", "b"]);
    assert!(home.config()["mcpServers"]["hub"].is_null());
}

#[test]
fn a_rule_for_all_servers_comes_over_with_a_server_that_gets_another_name() {
    let home = Home::with(
        AVELINO,
        r#"{"tool_acl": {"write": ["*delete*"]}, "mcpServers": {"files": {"command": "files-mcp"}}}"#,
    );
    home.0
        .save_text(r#"{"mcpServers": {"files": {"command": "another"}}}"#);
    home.migrate(&["avelino"]);
    assert_eq!(home.config()["tools"]["ask"], json!(["*__*delete*"]));
    assert!(home.config()["mcpServers"]["files-older"].is_object());
    // One that names a server would miss it.
    let home = Home::with(
        AVELINO,
        r#"{"tool_acl": {"write": ["files__delete"]}, "mcpServers": {"files": {"command": "files-mcp"}, "b": {"command": "b"}}}"#,
    );
    home.0
        .save_text(r#"{"mcpServers": {"files": {"command": "another"}}}"#);
    let refused = home.run(&["migrate", "--yes", "--json", "--from", "avelino"]);
    let refused = refused.code(1);
    assert!(
        refused.stdout.contains("`files-older`") && refused.stderr.contains("--only NAME"),
        "{refused}"
    );
    home.migrate(&["avelino", "--only", "b"]);
}

#[test]
fn what_the_file_of_another_program_switches_off_or_restricts_is_not_on_here() {
    let off = r#"{"mcpServers": {
        "a": {"command": "a", "disabled": true}, "b": {"command": "b", "enabled": false},
        "c": {"command": "c", "quarantined": true}, "e": {"command": "e", "disabled": "true"}, "f": {"command": "f", "isActive": false}, "d": {"command": "d", "disabled": false, "disabledTools": [], "enabled_tools": null}
    }}"#;
    let home = Home::with(AVELINO, off);
    home.migrate(&["avelino"]);
    let servers = &home.config()["mcpServers"];
    for (name, is_off) in [
        ("a", true),
        ("b", true),
        ("c", true),
        ("e", true),
        ("f", true),
        ("d", false),
    ] {
        let disabled = servers[name]["disabled"].as_bool().unwrap_or(false);
        assert_eq!(disabled, is_off, "{name}: {servers}");
    }
    for restricting in [
        r#""disabledTools": ["x"]"#,
        r#""allowedTools": ["x"]"#,
        r#""enabled_tools": ["x"]"#,
        r#""isolation": {"enabled": true}"#,
    ] {
        let file = format!(r#"{{"mcpServers": {{"a": {{"command": "a", {restricting}}}}}}}"#);
        let told = Home::with(AVELINO, &file).refused(&["avelino"]);
        assert!(
            told.contains("is the file that of another program?"),
            "{restricting}: {told}"
        );
    }
    let description = r#"{"openapi": "3.0.0", "paths": {}}"#;
    let told = Home::with(AVELINO, description).refused(&["avelino"]);
    assert!(
        told.contains("no server in the form of avelino/mcp"),
        "{told}"
    );
    // A file of mcpproxy-go, whose `read_only_mode` is for all servers.
    let list = r#"{"mcpServers": [{"name": "a", "command": "a"}], "read_only_mode": true}"#;
    let told = Home::with(AVELINO, list).refused(&["avelino"]);
    assert!(
        told.contains("no server in the form of avelino/mcp"),
        "{told}"
    );
    let map = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    let told = Home::with(MCPPROXY, map).refused(&["mcpproxy-go"]);
    assert!(
        told.contains("no server in the form of mcpproxy-go"),
        "{told}"
    );
}

#[test]
fn a_user_of_mcpproxy_go_comes_over_with_the_complete_example_of_its_documentation() {
    let home = Home::with(
        MCPPROXY,
        r#"{
  "listen": "127.0.0.1:8080", "data_dir": "~/.mcpproxy", "enable_socket": true, "api_key": "",
  "tools_limit": 15, "tool_response_limit": 20000, "call_tool_timeout": "1m30s", "debug_search": false,
  "enable_prompts": true, "check_server_repo": true,
  "tokenizer": { "enabled": true, "default_model": "gpt-4", "encoding": "cl100k_base" },
  "tls": { "enabled": false, "require_client_cert": false, "hsts": true },
  "logging": { "level": "info", "enable_file": false },
  "mcpServers": [
    { "name": "everything", "protocol": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"],
      "working_dir": "/path/to/project", "enabled": true, "quarantined": false },
    { "name": "github", "protocol": "http", "url": "https://api.github.com/mcp",
      "oauth": { "scopes": ["repo", "user"], "pkce_enabled": true }, "enabled": true },
    { "name": "held", "command": "held", "enabled": true, "quarantined": true },
    { "name": "off", "command": "off", "enabled": false, "quarantined": false },
    { "name": "trusted", "command": "trusted", "enabled": true, "trust_mode": "auto", "disabled_tools": ["delete_all"] },
    { "name": "keys", "command": "python", "args": ["-m", "my_server"], "quarantined": false,
      "env": { "API_KEY": "${keyring:my-api-key}", "DATABASE_URL": "${env:DATABASE_URL}" } }
  ],
  "docker_isolation": { "enabled": false },
  "environment": { "inherit_system_safe": true, "allowed_system_vars": ["PATH", "HOME", "TMPDIR"] },
  "enable_code_execution": false, "read_only_mode": true, "disable_management": false,
  "allow_server_add": true, "allow_server_remove": true
}"#,
    );
    let report = home.migrate(&["mcpproxy-go"]);
    let config = home.config();
    assert_eq!(
        config["mcpServers"],
        json!({
            "everything": {
                "command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"], "cwd": "/path/to/project", "trust": "pin",
            },
            "github": {
                "url": "https://api.github.com/mcp", "oauth": { "scopes": ["repo", "user"] }, "disabled": true, "trust": "quarantine",
            },
            "held": { "command": "held", "disabled": true, "trust": "quarantine" },
            "off": { "command": "off", "disabled": true, "trust": "pin" },
            "trusted": { "command": "trusted", "tools": { "deny": ["delete_all"] } },
            "keys": {
                "command": "python", "args": ["-m", "my_server"],
                "env": { "API_KEY": "${keyring:my-api-key}", "DATABASE_URL": "${DATABASE_URL}" }, "trust": "pin",
            },
        })
    );
    let _ = home.run(&["enable", "held"]).code(0);
    assert_eq!(
        home.servers()["held"],
        json!({ "command": "held", "trust": "quarantine" }),
        "enabled, it still waits for a review of its tools"
    );
    let _ = home.run(&["disable", "held"]).code(0);
    assert_eq!(config["call_timeout"], "90s");
    assert_eq!(config["management"], "read");
    assert_eq!(config["results"]["budget"], 20000);
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("`mcpzip secret set my-api-key`") && notes.contains("keyring"),
        "{notes}"
    );
    assert!(
        notes.contains("`tls`, which is off, stays behind") && notes.contains("`data_dir`"),
        "{notes}"
    );
    let again = home.migrate(&["mcpproxy-go"]);
    assert_eq!(again["files"], json!([]), "a second time changes nothing");
}

#[test]
fn where_mcpproxy_go_has_decisions_about_tools_they_wait_for_approval_here() {
    let content = r#"{"mcpServers": [
        {"name": "a", "command": "a", "quarantined": false},
        {"name": "b", "command": "b", "trust_mode": "auto", "disabled_tools": ["x"]}]}"#;
    let home = Home::with(MCPPROXY, content);
    home.put(".mcpproxy/config.db", "bbolt");
    let report = home.migrate(&["mcpproxy-go"]);
    assert_eq!(
        home.servers(),
        json!({
            "a": { "command": "a", "trust": "quarantine" },
            "b": { "command": "b", "trust": "quarantine", "tools": { "deny": ["x"] } },
        })
    );
    let text = report.to_string();
    assert!(text.contains(".mcpproxy/config.db` has"), "{text}");
    assert!(text.contains("`mcpzip approve a`"), "{text}");

    let elsewhere = Home::with(
        MCPPROXY,
        &content.replacen('{', r#"{"data_dir": "~/data", "#, 1),
    );
    elsewhere.put("data/config.db", "bbolt");
    elsewhere.migrate(&["mcpproxy-go"]);
    assert_eq!(elsewhere.servers()["a"]["trust"], "quarantine");
}

#[test]
fn the_audit_log_variables_and_stricter_hints_of_mcpproxy_go_come_over() {
    let home = Home::with(
        MCPPROXY,
        r#"{"audit_log": {"enabled": true, "path": "/tmp/a.jsonl"},
        "environment": {"custom_vars": {"MY_KEY": "secret-y", "MODE": "all"}, "allowed_system_vars": ["PATH", "AWS_PROFILE"]},
        "mcpServers": [
            {"name": "a", "command": "a", "quarantined": false, "env": {"MODE": "own"}, "annotation_overrides": {
                "read_note": {"readOnlyHint": false}, "drop": {"destructiveHint": true}, "list": {"readOnlyHint": true}}},
            {"name": "b", "url": "https://b.example/mcp", "quarantined": false}]}"#,
    );
    let report = home.migrate(&["mcpproxy-go"]);
    assert_eq!(
        home.servers(),
        json!({
            "a": { "command": "a", "env": { "MODE": "own", "MY_KEY": "secret-y" }, "trust": "pin",
                "tools": { "ask": ["read_note", "drop"] } },
            "b": { "url": "https://b.example/mcp", "trust": "pin" },
        })
    );
    assert_eq!(home.config()["audit"], json!({}));
    let text = report.to_string();
    assert!(text.contains("`audit_log` becomes `audit`"), "{text}");
    assert!(
        text.contains("gives servers `AWS_PROFILE` from the shell"),
        "{text}"
    );
    assert!(text.contains("`read_note`, `drop`"), "{text}");
    assert!(
        text.contains("these get `\\\"trust\\\": \\\"pin\\\"`")
            && text.contains("`mcpzip approve`: `a`, `b`"),
        "{text}"
    );
    assert!(!text.contains("not known here"), "{text}");
    assert!(!text.contains("secret-y"), "{text}");
}

#[test]
fn what_protects_in_mcpproxy_go_and_has_no_counterpart_stops_the_import() {
    for (server, rest) in [
        (
            r#", "annotation_overrides": {"a b*": {"readOnlyHint": false}}"#,
            "",
        ),
        (r#", "annotation_overrides": ["a"]"#, ""),
        (r#", "isolation": {"enabled": true}"#, ""),
        (r#", "isolation": {"mode": "sandbox"}"#, ""),
        (r#", "auth_broker": {"mode": "x"}"#, ""),
        ("", r#", "docker_isolation": {"enabled": true}"#),
        ("", r#", "tls": {"enabled": true}"#),
        ("", r#", "anonymous_profile": "research""#),
        (
            "",
            r#", "profiles": [{"name": "research", "servers": ["a"], "max_tier": "read"}]"#,
        ),
        (
            "",
            r#", "output_sanitisation": {"response_action": "redact"}"#,
        ),
    ] {
        let content = format!(
            r#"{{"mcpServers": [{{"name": "a", "command": "a", "quarantined": false{server}}}, {{"name": "b", "url": "https://b.example/mcp", "quarantined": false}}]{rest}}}"#
        );
        let home = Home::with(MCPPROXY, &content);
        assert_ne!(home.refused(&["mcpproxy-go"]), "[]", "{content}");
        if rest.is_empty() {
            home.migrate(&["mcpproxy-go", "--only", "b"]);
            assert!(home.servers()["a"].is_null());
        }
    }
}

#[test]
fn profiles_and_tokens_of_mcpproxy_go_narrow_here_too() {
    let home = Home::with(
        MCPPROXY,
        r#"{"api_key": "key-of-the-pages", "require_mcp_auth": true,
        "mcpServers": [
            {"name": "github", "url": "https://api.github.com/mcp", "quarantined": false},
            {"name": "fs", "command": "fs-mcp", "quarantined": false}
        ],
        "profiles": [{"name": "research", "servers": ["fs"]}, {"name": "deploy", "servers": ["github"]}]}"#,
    );
    let report = home.migrate(&["mcpproxy-go"]);
    let config = home.config();
    assert_eq!(config["http"], json!({ "auth": { "tokens": true } }));
    assert_eq!(
        config["profiles"],
        json!({ "research": { "servers": ["fs"] }, "deploy": { "servers": ["github"] } })
    );
    let checked = home.run(&[
        "rules",
        "check",
        "--json",
        "--profile",
        "research",
        "github__x",
    ]);
    assert_eq!(checked.json()["verdict"], "denied", "{checked}");
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("mcpzip token create NAME") && notes.contains("`api_key` is for its REST"),
        "{notes}"
    );
    assert!(!notes.contains("key-of-the-pages"), "{notes}");
}

#[test]
fn a_user_of_mcp_runner_comes_over_with_the_servers_that_its_proxy_allowed() {
    let servers = r#""mcpServers": {
    "fetch": { "command": "uvx", "args": ["mcp-server-fetch"] },
    "filesystem": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/path/to/allowed/files"] }
  }"#;
    let open = format!(
        r#"{{ {servers}, "sseProxy": {{ "address": "127.0.0.1", "port": 3000, "allowedServers": ["fetch"] }} }}"#
    );
    let home = Home::with("config.json", &open);
    let report = home.migrate(&["mcp-runner", "config.json"]);
    assert_eq!(
        home.servers()["fetch"],
        json!({ "command": "uvx", "args": ["mcp-server-fetch"] })
    );
    assert_eq!(home.servers()["filesystem"]["disabled"], true);
    assert_eq!(home.config()["http"]["address"], "127.0.0.1:3000");
    assert!(report["notes"].to_string().contains("mcpzip serve --http"));
    // The example of its README asks for a token.
    let closed = format!(
        r#"{{ {servers}, "sseProxy": {{ "authenticate": {{ "bearer": {{ "token": "your-secure-token" }} }} }} }}"#
    );
    let home = Home::with("config.json", &closed);
    let report = home.migrate(&["mcp-runner", "config.json"]);
    assert_eq!(home.config()["http"]["auth"], json!({ "tokens": true }));
    let told = report.to_string();
    assert!(
        told.contains("mcpzip token create") && !told.contains("your-secure-token"),
        "{told}"
    );
    let unnamed = home.run(&["migrate", "--from", "mcp-runner"]).code(1);
    assert!(
        unnamed.stderr.contains("--from mcp-runner FILE"),
        "{unnamed}"
    );
}

#[test]
fn a_server_that_is_on_here_stays_on_and_the_plan_says_so() {
    let runner = r#"{"mcpServers": {"a": {"command": "a", "args": []}, "new": {"command": "n"}}, "sseProxy": {"allowedServers": []}}"#;
    let proxy = r#"{"mcpServers": [{"name": "a", "command": "a", "enabled": false, "quarantined": false, "auto_approve_tool_changes": true}, {"name": "new", "command": "n", "enabled": false, "quarantined": false, "auto_approve_tool_changes": true}]}"#;
    for (name, title, content) in [
        ("mcp-runner", "mcp-runner", runner),
        ("mcpproxy-go", "mcpproxy-go", proxy),
    ] {
        let home = Home::with("there.json", content);
        let here = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
        std::fs::write(home.0.config_path(), here).unwrap();
        let report = home.migrate(&[name, "there.json"]);
        let known = &report["servers"][0];
        assert_eq!(known["disabled"], false, "{report:#}");
        let notes = known["notes"].to_string();
        assert!(
            notes.contains(&format!("is switched off in {title}, and on here"))
                && notes.contains("`mcpzip disable a`")
                && !notes.contains("comes over disabled"),
            "{notes}"
        );
        assert_eq!(home.servers()["a"], json!({ "command": "a" }));
        assert_eq!(report["servers"][1]["disabled"], true, "{report:#}");
        assert_eq!(home.servers()["new"]["disabled"], true, "{report:#}");
    }
}

#[test]
fn a_server_that_is_here_without_its_protection_is_not_taken_for_protected() {
    let home = Home::with(
        MCPPROXY,
        r#"{"mcpServers": [{"name": "a", "command": "a", "quarantined": false, "disabled_tools": ["delete"]}]}"#,
    );
    std::fs::write(
        home.0.config_path(),
        r#"{"mcpServers": {"a": {"command": "a"}}}"#,
    )
    .unwrap();
    let refused = home
        .run(&["migrate", "--from", "mcpproxy-go", "--yes", "--json"])
        .code(1);
    assert!(
        refused.json()["blocking"].to_string().contains("`tools`"),
        "{refused}"
    );
}

#[test]
fn files_of_other_proxies_named_as_the_configuration_lose_nothing_that_protects() {
    for (content, told) in [
        (
            r#"{"mcpServers": {}, "serverAuth": {"providers": ["bearer"]}}"#,
            "`serverAuth`",
        ),
        (
            r#"{"mcpServers": {}, "tool_acl": {"write": ["x"]}}"#,
            "`tool_acl`",
        ),
        (
            r#"{"mcpServers": {}, "sseProxy": {"port": 1}}"#,
            "`sseProxy`",
        ),
        (
            r#"{"mcpServers": [{"name": "a", "command": "a", "quarantined": true}]}"#,
            "--from mcpproxy-go",
        ),
        (
            r#"{"mcpServers": {}, "docker_isolation": {"mode": "docker"}}"#,
            "`docker_isolation`",
        ),
    ] {
        let home = Home::with("other.json", content);
        let outcome = home.run(&["--config", "other.json", "status"]).code(3);
        assert!(outcome.stderr.contains(told), "{outcome}");
    }
    for (entry, told) in [
        (r#""tool_acl": {"write": ["x"]}"#, "`tool_acl`"),
        (r#""cli_only": ["get"]"#, "`cli_only`"),
        (r#""quarantined": true"#, "`quarantined`"),
        (r#""enabled": false"#, "`enabled`"),
        (r#""isolation": {"enabled": true}"#, "`isolation`"),
        (r#""disabled_tools": ["x"]"#, "`disabled_tools`"),
        (r#""excludeTools": ["x"]"#, "`excludeTools`"),
    ] {
        let content = format!(r#"{{"mcpServers": {{"a": {{"command": "a", {entry}}}}}}}"#);
        let home = Home::with("other.json", &content);
        let status = home
            .run(&["--config", "other.json", "status", "--json"])
            .code(0)
            .json();
        assert_eq!(status["servers"][0]["state"], "faulty", "{status}");
        assert!(
            status["servers"][0]["reason"].to_string().contains(told),
            "{status}"
        );
        let added = home
            .run(&[
                "add",
                "a",
                "--json",
                &format!(r#"{{"command": "a", {entry}}}"#),
                "--no-check",
            ])
            .code(1);
        assert!(added.stderr.contains(told), "{added}");
    }
    let home = Home::with(
        "other.json",
        r#"{"mcpServers": {"a": {"command": "a", "enabled": true, "quarantined": false, "isolation": {"enabled": false}}}}"#,
    );
    let status = home
        .run(&["--config", "other.json", "status", "--json"])
        .code(0)
        .json();
    assert_ne!(status["servers"][0]["state"], "faulty", "{status}");
}

#[test]
fn profiles_of_mcpproxy_go_that_are_of_no_use_here_stay_closed() {
    let home = Home::with(
        MCPPROXY,
        r#"{"mcpServers": [{"name": "fs", "command": "fs-mcp", "quarantined": false}],
        "profiles": [
            {"name": "empty", "servers": []}, {"name": "gone", "servers": ["ghost"]},
            {"name": "half", "servers": ["fs", "ghost"]}, {"name": "My Profile", "servers": ["fs"]}
        ]}"#,
    );
    let report = home.migrate(&["mcpproxy-go"]);
    assert_eq!(
        home.config()["profiles"],
        json!({ "half": { "servers": ["fs"] } })
    );
    let notes = report["notes"].to_string();
    for name in ["empty", "gone", "My Profile"] {
        assert!(notes.contains(&format!("`{name}`")), "{name}: {notes}");
        let refused = home.run(&["tools", "--profile", name]);
        assert!(refused.stderr.contains("there is no profile"), "{refused}");
    }
    assert!(
        notes.contains("`half` names `ghost`, which is not a server here"),
        "{notes}"
    );
    let findings = home.run(&["doctor", "--json"]).json()["findings"].to_string();
    assert!(!findings.contains("profile"), "{findings}");
}

#[test]
fn a_profile_without_servers_is_refused_in_words_that_agree() {
    let home = Home::with("x", "");
    home.0
        .save_text(r#"{"mcpServers": {}, "profiles": {"x": {"servers": []}}}"#);
    let warnings = home.run(&["status", "--json"]).json()["warnings"].to_string();
    assert!(
        warnings.contains("`profiles.x.servers` must be a list with at least one")
            && warnings.contains("found an empty list"),
        "{warnings}"
    );
}

#[test]
fn a_new_configuration_says_that_the_servers_of_mcpzip_0_1_are_not_in_it() {
    let older = ".config/compressed-mcp-proxy/config.json";
    let servers = r#"{"mcpServers": {"old": {"command": "old-mcp"}}}"#;
    let says = |home: &Home, arguments: &[&str]| {
        let told = home.run(arguments);
        let text = format!("{}{}", told.stdout, told.stderr);
        assert!(text.contains("mcpzip migrate --from mcpzip-0.1"), "{told}");
    };
    let home = Home::with(older, servers);
    let missing = home.run(&["doctor", "--json"]).json()["findings"].to_string();
    assert!(
        missing.contains("once there is another") && missing.contains("config-missing"),
        "{missing}"
    );
    says(&home, &["init", "--yes", "--dry-run", "--no-test"]);
    // Without a new server the old ones stay in use.
    says(&home, &["init", "--yes", "--no-test", "--client", "cursor"]);
    assert!(!home.0.config_path().exists());
    says(&home, &["connect", "windsurf"]);
    let edited = Home::with(older, servers);
    says(
        &Home(edited.0.variable("EDITOR", "true")),
        &["config", "edit"],
    );
    says(&home, &["add", "new", "--no-check", "--", "new-mcp"]);
    assert!(home.config()["mcpServers"]["new"].is_object());
    // Once there is a configuration, nothing more is lost.
    let more = home.run(&["add", "more", "--no-check", "--", "more-mcp"]);
    assert!(!more.stderr.contains("mcpzip-0.1"), "{more}");
}

#[test]
fn an_import_names_the_servers_that_get_its_quarantine() {
    let list = r#"{"mcpServers": [{"name": "fs", "command": "files", "quarantined": true}]}"#;
    let home = Home::with(MCPPROXY, list);
    let home = Home(home.0.entry("files", r#"{"command": "files"}"#));
    home.0.save();
    let told = home.run(&["migrate", "--from", "mcpproxy-go", "--dry-run", "--json"]);
    let notes = told.code(0).json()["notes"].to_string();
    assert!(
        notes.contains("`files` of mcpzip is the same program or URL as `fs`")
            && notes.contains("`mcpzip approve files`"),
        "{notes}"
    );
}

#[test]
fn notes_of_an_import_are_about_the_servers_that_move() {
    let file = json!({ "mcpServers": [
        { "name": "iso", "command": "iso-mcp", "enabled": true, "quarantined": false, "isolation": { "enabled": true } },
        { "name": "ever", "command": "ever-mcp", "enabled": true, "quarantined": false },
    ] });
    let home = Home::with(MCPPROXY, &file.to_string());
    let report = home.migrate(&["mcpproxy-go", "--only", "iso", "--drop-rules"]);
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("`iso`") && !notes.contains("`ever`"),
        "{notes}"
    );
    let again = Home::with(MCPPROXY, &file.to_string());
    let report = again.migrate(&["mcpproxy-go", "--drop-rules"]);
    assert!(report["notes"].to_string().contains("`ever`"), "{report:#}");
}
