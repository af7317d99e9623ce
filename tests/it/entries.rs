//! Servers added to the configuration, taken out of it, switched off and on, and listed, by command.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::command::{self, Outcome};
use crate::support::http::HttpServer;
use crate::support::script::{answer, echo, exit};
use crate::support::{Server, Setup, until};

const FILE: &str = "// my servers
{
  \"mcpServers\": {
    // the first
    \"zeta\": { \"command\": \"zeta-mcp\", \"args\": [\"a\", \"b\"] }, // keep
    /* the second */
    \"alpha\": {
      \"url\": \"https://alpha.example/mcp\",
    },
  },
  \"call_timeout\": \"7s\", // mine
}
";

/// Runs a command on the configuration as it stands.
#[track_caller]
fn run(setup: &Setup, arguments: &[&str]) -> Outcome {
    command::run(setup.command(arguments), "")
}

fn text(setup: &Setup) -> String {
    std::fs::read_to_string(setup.config_path()).unwrap()
}

fn home(text: &str) -> Setup {
    let setup = Setup::new().log_level("error");
    setup.save_text(text);
    setup
}

/// A fake server, and the words that start it.
fn fake(name: &str, script: Server) -> (Setup, Vec<String>) {
    let setup = Setup::new().log_level("error").server(name, script);
    setup.save();
    let config: Value = serde_json::from_str(&text(&setup)).unwrap();
    let entry = &config["mcpServers"][name];
    let mut words = vec![entry["command"].as_str().unwrap().to_owned()];
    words.extend(
        entry["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap().to_owned()),
    );
    std::fs::remove_file(setup.config_path()).unwrap();
    (setup, words)
}

/// Checks that adding with `arguments` writes `entry` behind the others, and nothing else.
#[track_caller]
fn adds(arguments: &[&str], entry: &str) {
    let setup = home(FILE);
    let arguments: Vec<&str> = ["add", "new", "--no-check"]
        .iter()
        .chain(arguments)
        .copied()
        .collect();
    let added = run(&setup, &arguments).code(0).json();
    assert_eq!(
        (&added["server"], &added["change"]),
        (&json!("new"), &json!("added")),
        "{added}"
    );
    let end = "    },\n  },\n  \"call_timeout\"";
    let expected = FILE.replace(
        end,
        &format!("    }},\n    \"new\": {entry},\n  }},\n  \"call_timeout\""),
    );
    assert_eq!(text(&setup), expected, "{arguments:?}");
}

#[test]
fn an_entry_is_written_and_every_other_byte_stays() {
    adds(
        &["--", "npx", "-y", "pkg@1", "--flag", "a b"],
        "{\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"pkg@1\", \"--flag\", \"a b\"]\n    }",
    );
    adds(
        &[
            "-e",
            "A=1",
            "--env",
            "B=x=${Y}",
            "--cwd",
            "~/w",
            "--timeout",
            "90s",
            "--",
            "run",
        ],
        "{\n      \"command\": \"run\",\n      \"env\": {\n        \"A\": \"1\",\n        \"B\": \"x=${Y}\"\n      },\n      \"cwd\": \"~/w\",\n      \"timeout\": \"90s\"\n    }",
    );
    adds(
        &["https://a.example/mcp"],
        "{\n      \"url\": \"https://a.example/mcp\"\n    }",
    );
    adds(
        &[
            "--type",
            "sse",
            "https://a.example/sse",
            "-H",
            "X-Region: eu",
            "--description",
            "A \"b\"",
            "--timeout",
            "5",
        ],
        "{\n      \"type\": \"sse\",\n      \"url\": \"https://a.example/sse\",\n      \"headers\": {\n        \"X-Region\": \"eu\"\n      },\n      \"description\": \"A \\\"b\\\"\",\n      \"timeout\": 5\n    }",
    );
    adds(
        &["--transport", "http", "https://a.example/mcp"],
        "{\n      \"type\": \"http\",\n      \"url\": \"https://a.example/mcp\"\n    }",
    );
    let json = "{\n      \"command\": \"x\",\n      \"disabled\": true\n    }";
    adds(&["--json", r#"{"command":"x","disabled":true}"#], json);
    adds(&[r#"{"command":"x","disabled":true}"#], json);
    adds(
        &[r#"{"mcpServers":{"theirs":{"command":"x", "disabled":true}}}"#],
        json,
    );
    // What the user sees in their directory is not what the file would find in its own.
    let setup = home("{}");
    let here = setup.home().path("home").join("bin").join("server");
    let _ = run(&setup, &["add", "new", "--no-check", "./bin/server"]).code(0);
    let written: Value = serde_json::from_str(&text(&setup)).unwrap();
    assert_eq!(
        written["mcpServers"]["new"]["command"]
            .as_str()
            .map(PathBuf::from),
        Some(here)
    );
}

#[test]
fn a_host_with_a_port_is_not_taken_for_a_program() {
    let setup = home(FILE);
    for (host, url) in [
        ("localhost:8080", "`http://localhost:8080`"),
        ("127.0.0.1:8080/mcp", "`http://127.0.0.1:8080/mcp`"),
        ("db.internal:443", "`https://db.internal:443`"),
        ("tools:9000", "`https://tools:9000`"),
    ] {
        let refused = run(&setup, &["add", "new", host]).code(2);
        assert!(refused.stderr.contains(url), "{host}: {refused}");
    }
    assert_eq!(text(&setup), FILE);
}

#[test]
fn what_cannot_be_an_entry_changes_nothing_and_says_why() {
    for (arguments, code, reason) in [
        (
            &["zeta", "--", "x"][..],
            1,
            "`zeta`: there is a server of this name already; `--force`",
        ),
        (&["a__b", "--", "x"], 1, "`a__b`"),
        (&["mcpzip", "--", "x"], 1, "reserved"),
        (
            &["new", "https://a.example", "more"],
            2,
            "a URL takes no arguments",
        ),
        (
            &["new", "https://a.example", "-e", "A=1"],
            2,
            "for commands",
        ),
        (&["new", "-H", "A: 1", "--", "x"], 2, "for URLs"),
        (&["new", "-e", "A", "--", "x"], 2, "--env NAME=VALUE"),
        (&["new", "-H", "A=1", "https://a.example"], 2, "NAME: VALUE"),
        (&["new", "ftp://a.example"], 2, "`url` must begin with"),
        (
            &["new", "--timeout", "soon", "--", "x"],
            1,
            "`timeout` must be a time",
        ),
        (&["new", r#"{"command": }"#], 1, "1:"),
        (&["new", r#"{"args": ["x"]}"#], 1, "has neither"),
        (
            &["new", r#"{"command":"x"}"#, "--timeout", "5"],
            2,
            "remove the other options",
        ),
        (
            &[
                "new",
                r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}"#,
            ],
            1,
            "several servers",
        ),
        (&["new"], 2, "TARGET"),
        (&[], 2, "NAME"),
    ] {
        let setup = home(FILE);
        let arguments: Vec<&str> = std::iter::once(&"add").chain(arguments).copied().collect();
        let refused = run(&setup, &arguments).code(code);
        assert!(refused.stderr.contains(reason), "{reason}: {refused}");
        assert_eq!(text(&setup), FILE, "{refused}");
    }
}

#[test]
fn a_server_of_the_same_name_is_replaced_in_its_place_when_told_so() {
    for flag in ["--force", "--replace"] {
        let setup = home(FILE);
        let replaced = run(&setup, &["add", "zeta", flag, "--no-check", "--", "other"])
            .code(0)
            .json();
        assert_eq!(replaced["change"], "replaced");
        let new = "{\n      \"command\": \"other\"\n    }";
        let expected = FILE.replace(
            "{ \"command\": \"zeta-mcp\", \"args\": [\"a\", \"b\"] }",
            new,
        );
        assert_eq!(text(&setup), expected);
        let new = run(&setup, &["add", "new", flag, "--no-check", "--", "x"]).code(0);
        assert!(new.json()["undo"].is_null(), "{new}");
        // It can be put back, and what was added since stays.
        let undone = run(&setup, &["undo", "--yes"]).code(0).json();
        assert_eq!(undone["run"], replaced["undo"], "{undone}");
        let now = text(&setup);
        assert!(now.contains("zeta-mcp") && now.contains("\"new\""), "{now}");
    }
}

#[test]
fn an_entry_that_replaces_another_one_keeps_its_restrictions() {
    let before = r#"{"mcpServers": {"a": {"command": "x", "tools": {"deny": ["rm"]}, "trust": "pin", "sandbox": "strict",
        "projects": ["/work"], "disabled": true, "timeout": 5}}}"#;
    let entry = |setup: &Setup| {
        let config: Value = serde_json::from_str(&text(setup)).unwrap();
        config["mcpServers"]["a"].clone()
    };
    let setup = home(before);
    let told = run(&setup, &["add", "a", "--force", "--no-check", "--", "y"]).code(0);
    let mut kept = json!({
        "command": "y", "tools": { "deny": ["rm"] }, "trust": "pin", "sandbox": "strict", "projects": ["/work"], "disabled": true,
    });
    assert_eq!(entry(&setup), kept, "{told}");
    let hints = told.json()["hints"].to_string();
    for key in ["disabled", "projects", "sandbox", "tools", "trust"] {
        assert!(hints.contains(&format!("`{key}`")), "{key}: {hints}");
    }
    // A key of the new entry is the user's decision.
    let new = r#"{"command": "z", "tools": {"ask": ["rm"]}, "disabled": false}"#;
    let told = run(
        &setup,
        &["add", "a", "--force", "--no-check", "--json", new],
    );
    let hints = told.code(0).json()["hints"].to_string();
    assert!(hints.contains("`disabled` (true)"), "{hints}");
    assert!(hints.contains("`tools` ({"), "{hints}");
    assert!(hints.contains("of the replaced one"), "{hints}");
    (kept["command"], kept["tools"]) = (json!("z"), json!({ "ask": ["rm"] }));
    kept["disabled"] = json!(false);
    assert_eq!(entry(&setup), kept);
    // Nothing of a URL runs in a sandbox.
    let url = "https://a.example/mcp";
    let told = run(&setup, &["add", "a", "--force", "--no-check", url]).code(0);
    assert_eq!(entry(&setup)["sandbox"], Value::Null);
    assert_eq!(entry(&setup)["trust"], "pin");
    let gone = "`sandbox` of the replaced entry is gone";
    assert!(told.json()["hints"].to_string().contains(gone), "{told}");
}

#[test]
fn what_restricts_a_remote_entry_stays_where_it_can_apply() {
    let restrictions = json!({
        "identity": { "exchange": { "token_url": "https://t.example/token", "client_id": "i", "client_secret": "s3cr3t-of-i" } },
        "oauth": { "issuer": "https://i.example", "scopes": ["read"] }, "share": "session", "proxy": "none",
    });
    let url = "https://a.example/mcp";
    let mut before = restrictions.clone();
    before["url"] = json!(url);
    let stays = |target: &[&str], gone: &[&str]| {
        let setup = home(&json!({ "mcpServers": { "a": before } }).to_string());
        let add = ["add", "a", "--force", "--no-check"];
        let told = run(&setup, &[&add[..], target].concat()).code(0);
        let config: Value = serde_json::from_str(&text(&setup)).unwrap();
        let hints = told.json()["hints"].to_string();
        assert!(!hints.contains("s3cr3t"), "{hints}");
        for (key, value) in restrictions.as_object().unwrap() {
            let is_gone = gone.contains(&key.as_str());
            let now = &config["mcpServers"]["a"][key];
            let expected = if is_gone { &Value::Null } else { value };
            assert_eq!(now, expected, "{target:?} {key}");
            assert!(hints.contains(&format!("`{key}`")), "{key}: {hints}");
        }
        assert_eq!(hints.contains("gone"), !gone.is_empty(), "{hints}");
    };
    stays(&[url], &[]);
    // A secret is for one server.
    stays(&["https://b.example/mcp"], &["oauth"]);
    stays(&["--", "y"], &["identity", "oauth", "proxy"]);
    // The new entry is the person's.
    let setup = home(r#"{"mcpServers": {"a": {"command": "y", "added_by": "agent"}}}"#);
    let _ = run(&setup, &["add", "a", "--force", "--no-check", "--", "y"]).code(0);
    assert!(!text(&setup).contains("added_by"), "{}", text(&setup));
    let operations = r#"{"mcpServers": {"a": {"openapi": "https://a.example/1.json", "exclude": ["DELETE *"]}}}"#;
    let setup = home(operations);
    let next = "https://a.example/2.json";
    let add = ["add", "a", "--force", "--no-check", "--openapi", next];
    let _ = run(&setup, &add).code(0);
    let config: Value = serde_json::from_str(&text(&setup)).unwrap();
    assert_eq!(config["mcpServers"]["a"]["exclude"], json!(["DELETE *"]));
}

#[test]
fn a_removed_entry_names_the_restrictions_that_go_with_it() {
    let setup = home(
        r#"{"mcpServers": {"a": {"command": "x", "tools": {"deny": [
            "rm"]}, "trust": "pin", "disabled": true}, "b": {"command": "x", "disabled": true}}}"#,
    );
    let removed = run(&setup, &["remove", "a"]).code(0);
    let gone = r#"`tools` ({"deny": ["rm"]}) and `trust` ("pin") went with `a`"#;
    assert!(removed.stderr.contains(gone), "{removed}");
    let removed = run(&setup, &["remove", "b"]).code(0);
    assert!(!removed.stderr.contains("went with"), "{removed}");
}

#[test]
fn where_there_is_no_configuration_one_is_made_for_the_user_alone() {
    let setup = Setup::new().log_level("error");
    let _ = run(&setup, &["add", "a", "--no-check", "--", "x"]).code(0);
    assert_eq!(
        text(&setup),
        "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}\n"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(setup.config_path())
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
    }
    std::fs::remove_file(setup.config_path()).unwrap();
    for command in [
        &["remove", "a"][..],
        &["enable", "a"],
        &["disable", "a"],
        &["list"],
    ] {
        let refused = run(&setup, command).code(3);
        assert!(
            refused.stderr.contains("there is no configuration"),
            "{refused}"
        );
        assert!(!setup.config_path().exists(), "{refused}");
    }
}

#[test]
fn an_added_server_is_tried_and_its_tools_are_counted() {
    let (setup, words) = fake(
        "a",
        Server::new()
            .tool("t", [echo()])
            .tool("u", [answer("done")]),
    );
    let mut arguments = vec!["add", "a", "--"];
    arguments.extend(words.iter().map(String::as_str));
    let added = run(&setup, &arguments).code(0).json();
    assert_eq!(
        (&added["check"]["state"], &added["check"]["tools"]),
        (&json!("ready"), &json!(2)),
        "{added}"
    );
    assert_eq!(setup.home().starts("a"), 1);
    // What it listed is known from then on.
    let tools = run(&setup, &["tools", "a"]).code(0).json();
    assert_eq!(
        (tools.as_array().map(Vec::len), setup.home().starts("a")),
        (Some(2), 1)
    );
}

#[test]
fn a_server_that_does_not_work_stays_and_the_user_is_told_what_to_do() {
    let (setup, words) = fake("a", Server::new().at_start([exit(3)]));
    let mut arguments = vec!["add", "a", "--"];
    arguments.extend(words.iter().map(String::as_str));
    let added = run(&setup, &arguments).code(4);
    assert!(added.stderr.contains("does not work yet"), "{added}");
    assert_eq!(added.json()["check"]["state"], "failed");
    assert!(
        added.json()["check"]["reason"]
            .as_str()
            .unwrap()
            .contains("exit status: 3"),
        "{added}"
    );
    assert!(text(&setup).contains("\"a\": {"));

    let unset = run(&setup, &["add", "b", "-e", "T=${NOT_SET_HERE}", "--", "x"])
        .code(0)
        .json();
    assert_eq!(
        unset["check"],
        json!({ "state": "unset", "variable": "NOT_SET_HERE" })
    );
    let off = run(&setup, &["add", "c", r#"{"command":"x","disabled":true}"#])
        .code(0)
        .json();
    assert_eq!(off["check"], json!({ "state": "disabled" }));
}

#[test]
fn a_server_that_wants_a_login_is_no_failure() {
    let web = HttpServer::start(|_, reply| {
        reply.whole("401 Unauthorized", "www-authenticate: Bearer\r\n", "");
    });
    let setup = Setup::new().log_level("off");
    let added = run(&setup, &["add", "a", &web.url("/mcp")]).code(0).json();
    assert_eq!(added["check"], json!({ "state": "login" }), "{added}");
}

#[test]
fn a_secret_on_the_command_line_is_remarked_upon_and_never_repeated() {
    for (arguments, hint) in [
        (
            &["-e", "API_KEY=hunter2-secret", "--", "x"][..],
            "--env 'API_KEY=${keyring:API_KEY}'",
        ),
        (
            &["-e", "X=ghp_hunter2-secret", "--", "x"],
            "--env 'X=${keyring:X}'",
        ),
        (
            &[
                "https://a.example/mcp",
                "-H",
                "Authorization: Bearer hunter2-secret",
            ],
            "`mcpzip secret set NEW_AUTHORIZATION` with what follows `Bearer`, and use --header 'Authorization: Bearer ${keyring:NEW_AUTHORIZATION}'",
        ),
        (
            &["https://a.example/mcp?token=hunter2-secret"],
            "the URL contains a secret",
        ),
        (
            &["--", "x", "--api-key", "hunter2-secret"],
            "the arguments contain a secret",
        ),
    ] {
        let setup = home("{}");
        let added = run(&setup, &[&["add", "new", "--no-check"], arguments].concat()).code(0);
        assert!(added.stderr.contains(hint), "{added}");
        assert!(
            !added.stderr.contains("hunter2") && !added.stdout.contains("hunter2"),
            "{added}"
        );
    }
    for arguments in [
        &[
            "-e",
            "API_KEY=${API_KEY:-}",
            "-e",
            "REGION=eu",
            "--",
            "x",
            "--verbose",
        ][..],
        &["https://a.example/?page=2"],
    ] {
        let setup = home("{}");
        let added = run(&setup, &[&["add", "new", "--no-check"], arguments].concat()).code(0);
        assert_eq!(
            (added.stderr.as_str(), &added.json()["hints"]),
            ("", &json!([])),
            "{added}"
        );
    }
}

#[test]
fn servers_are_removed_and_switched_and_all_else_stays() {
    let setup = home(FILE);
    let _ = run(&setup, &["disable", "zeta", "alpha"]).code(0);
    let off = FILE
        .replace("[\"a\", \"b\"] }", "[\"a\", \"b\"], \"disabled\": true }")
        .replace("/mcp\",\n", "/mcp\",\n      \"disabled\": true,\n");
    assert_eq!(text(&setup), off);
    let _ = run(&setup, &["disable", "zeta"]).code(0);
    assert_eq!(text(&setup), off);
    let _ = run(&setup, &["enable", "alpha", "zeta", "alpha"]).code(0);
    assert_eq!(text(&setup), FILE);
    for arguments in [
        &["remove", "zeta", "nobody"][..],
        &["enable", "nobody", "zeta"],
        &["disable", "nobody"],
    ] {
        let refused = run(&setup, arguments).code(1);
        assert!(
            refused.stderr.contains("no server `nobody` is configured"),
            "{refused}"
        );
        assert_eq!(text(&setup), FILE);
    }
    let _ = run(&setup, &["remove", "zeta"]).code(0);
    let gone = FILE.replace(
        "    \"zeta\": { \"command\": \"zeta-mcp\", \"args\": [\"a\", \"b\"] }, // keep\n",
        "",
    );
    assert_eq!(text(&setup), gone);
}

#[test]
fn a_list_shows_each_entry_without_connecting_and_without_secrets() {
    let (setup, words) = fake("a", Server::new().tool("t", [echo()]));
    let entry = json!({ "command": words[0], "args": words[1..], "env": { "API_TOKEN": "hunter2-secret" } });
    setup.save_text(&format!(
        r#"{{"mcpServers": {{ "a": {entry}, "off": {{"command": "x", "args": ["--token=hunter2-secret"], "disabled": true}},
        "remote": {{"type": "sse", "url": "https://r.example/sse", "headers": {{"X-Key": "hunter2-secret"}}}}, "bad": {{}} }}}}"#
    ));
    let listed = run(&setup, &["list"]).code(0);
    assert!(!listed.stdout.contains("hunter2"), "{listed}");
    let servers = listed.json()["servers"].as_array().unwrap().clone();
    let of = |name: &str| {
        servers
            .iter()
            .find(|server| server["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&of("a")["state"], &of("a")["type"]),
        (&json!("enabled"), &json!("stdio"))
    );
    assert!(
        of("a")["target"]
            .as_str()
            .unwrap()
            .ends_with("; env API_TOKEN=***"),
        "{listed}"
    );
    assert_eq!(
        (&of("off")["state"], &of("off")["target"]),
        (&json!("disabled"), &json!("x --token=***"))
    );
    assert_eq!(
        of("remote")["target"],
        "https://r.example/sse (sse); headers X-Key=***"
    );
    assert_eq!(of("bad")["state"], "faulty");
    assert!(
        of("bad")["reason"].as_str().unwrap().contains("neither"),
        "{listed}"
    );
    assert_eq!(setup.home().starts("a"), 0);
}

#[test]
fn a_broken_file_is_refused_with_its_place_and_left_alone() {
    for (broken, place) in [
        (
            "{\n  \"mcpServers\": {\n    \"a\": {,}\n  }\n}\n",
            "config.json:3:",
        ),
        ("[1]", "config.json:1:1"),
        ("{\"mcpServers\": 5}", "config.json:1:16"),
    ] {
        let setup = home(broken);
        for arguments in [
            &["add", "b", "--no-check", "--", "x"][..],
            &["remove", "a"],
            &["enable", "a"],
            &["disable", "a"],
            &["list"],
        ] {
            let refused = run(&setup, arguments).code(3);
            assert!(refused.stderr.contains(place), "{refused}");
            assert_eq!(text(&setup), broken);
        }
    }
}

#[test]
fn commands_at_the_same_time_lose_nothing() {
    let setup = home(FILE);
    std::thread::scope(|scope| {
        for number in 0..6 {
            let setup = &setup;
            scope.spawn(move || {
                let name = format!("n{number}");
                let _ = run(setup, &["add", &name, "--no-check", "--", "x"]).code(0);
                let _ = run(setup, &["disable", &name]).code(0);
                if number % 2 == 0 {
                    let _ = run(setup, &["remove", &name]).code(0);
                }
            });
        }
    });
    let listed = run(&setup, &["list"]).code(0).json();
    let names: Vec<&str> = listed["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["alpha", "n1", "n3", "n5", "zeta"]);
    assert!(text(&setup).starts_with("// my servers\n") && text(&setup).ends_with("// mine\n}\n"));
}

#[test]
fn a_running_server_takes_over_what_the_commands_write() {
    let (setup, words) = fake("late", Server::new().tool("greet", [answer("hello")]));
    let mut client = setup.clone().without("late").connect();
    let mut arguments = vec!["add", "late", "--no-check", "--"];
    arguments.extend(words.iter().map(String::as_str));
    let _ = run(&setup, &arguments).code(0);
    let said = until("the new server's tool", || {
        let told = client.execute("late__greet");
        (told.value()["isError"] != json!(true)).then(|| told.text())
    });
    assert_eq!(said, "hello");
    let _ = run(&setup, &["disable", "late"]).code(0);
    until("the server to be disabled", || {
        let told = client.execute("late__greet");
        (told.value()["isError"] == json!(true)).then_some(())
    });
    client.finish();
}

#[test]
fn an_edit_removes_what_a_killed_edit_of_the_file_left_and_nothing_of_others() {
    let setup = home(FILE);
    let path = setup.config_path();
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let beside = |name: &str| path.with_file_name(name);
    let hour = std::time::Duration::from_secs(3600);
    let put = |name: &str, is_old: bool| {
        let file = std::fs::File::create(beside(name)).unwrap();
        let age = if is_old { hour } else { hour / 60 };
        file.set_modified(std::time::SystemTime::now() - age)
            .unwrap();
    };
    let left = format!(".{name}.4711.0.tmp");
    put(&left, true);
    let others = [
        (format!(".{name}.4712.0.tmp"), false),
        (format!(".{name}.backup.tmp"), true),
        (format!(".{name}.tmp"), true),
        (".other.json.4711.0.tmp".to_owned(), true),
        (format!("{name}.4711.0.tmp"), true),
    ];
    for (name, is_old) in &others {
        put(name, *is_old);
    }
    let _ = run(&setup, &["disable", "zeta"]).code(0);
    assert!(!beside(&left).exists());
    for (name, _) in &others {
        assert!(beside(name).exists(), "{name}");
    }
}

#[test]
fn a_restriction_under_a_key_that_is_not_ours_is_refused() {
    let setup = home(FILE);
    for key in [
        r#""tools": {"denied": ["write_file"]}"#,
        r#""tools": {"enabled": ["read_file"]}"#,
        r#""deny": ["write_file"]"#,
        r#""allow": ["read_file"]"#,
        r#""ask": ["*"]"#,
        r#""denied_tools": ["write_file"]"#,
        r#""deniedTools": ["write_file"]"#,
        r#""blockedTools": ["write_file"]"#,
        r#""allowed-tools": ["read_file"]"#,
        r#""allowedTools": ["read_file"]"#,
        r#""permissions": {"deny": ["write_file"]}"#,
        r#""readOnly": true"#,
        r#""read_only": true"#,
    ] {
        let entry = format!(r#"{{"command": "x", {key}}}"#);
        let refused = run(&setup, &["add", "new", "--no-check", "--json", &entry]).code(1);
        let name = key
            .split('"')
            .nth(if key.contains("tools\": {") { 3 } else { 1 });
        assert!(refused.stderr.contains(name.unwrap()), "{key}: {refused}");
        assert_eq!(text(&setup), FILE, "{key}");
    }
    let entry = r#"{"command": "x", "readOnly": false, "colour": "red"}"#;
    let added = run(&setup, &["add", "new", "--no-check", "--json", entry]).code(0);
    let hints = added.json()["hints"].to_string();
    assert!(
        hints.contains("unknown key `mcpServers.new.colour`") && added.stderr.contains("colour"),
        "{added}"
    );
}

#[test]
fn a_restriction_of_all_servers_under_such_a_key_stops_everything() {
    for (key, found) in [
        (r#""deny": ["*__write_file"]"#, "`deny`"),
        (r#""rules": []"#, "`rules`"),
        (r#""permissions": {}"#, "`permissions`"),
        (r#""tools": {"denied": []}"#, "`tools.denied`"),
    ] {
        let setup = home(&format!(r#"{{"mcpServers": {{}}, {key}}}"#));
        let refused = run(&setup, &["rules"]).code(3);
        assert!(refused.stderr.contains(found), "{key}: {refused}");
    }
    for key in [r#""tokens": true"#, r#""allowed_ips": ["10.0.0.1"]"#] {
        let setup = home(&format!(r#"{{"mcpServers": {{}}, "http": {{{key}}}}}"#));
        let warnings = run(&setup, &["status", "--json"]).code(0).stdout;
        assert!(
            warnings.contains("`serve --http` does not start"),
            "{key}: {warnings}"
        );
    }
}

#[test]
fn mcpzip_is_no_server_of_itself() {
    let setup = home(FILE);
    for target in [
        &["--", "mcpzip", "serve"][..],
        &["--json", r#"{"command": "/opt/mcpzip", "args": ["serve"]}"#],
    ] {
        let arguments = [&["add", "me", "--no-check"], target].concat();
        let refused = run(&setup, &arguments).code(1);
        assert!(refused.stderr.contains("mcpzip itself"), "{refused}");
        assert_eq!(text(&setup), FILE);
    }
}

#[test]
fn a_tool_of_a_disabled_server_and_a_slip_in_a_name_are_explained() {
    let server = |tool: &'static str| Server::new().tool(tool, [echo()]);
    let setup = Setup::new()
        .log_level("error")
        .server("files", server("list_directory"))
        .server("notes", server("write_note"));
    setup.save();
    let _ = run(&setup, &["tools"]).code(0);
    let slip = run(&setup, &["call", "files__lst_directory", "{}"]).code(1);
    assert!(slip.stderr.contains("files__list_directory"), "{slip}");
    let _ = run(&setup, &["disable", "files"]).code(0);
    let disabled = run(&setup, &["call", "list_directory", "{}"]).code(1);
    assert!(
        disabled.stderr.contains("`files`, which is disabled"),
        "{disabled}"
    );
}
