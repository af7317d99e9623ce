//! Secrets of the configuration: what agents and people see of them, and what servers write about them.

use serde_json::json;

use crate::support::script::{answer, echo, exit, result, say};
use crate::support::{Server, Setup, until};

fn log(setup: &Setup, name: &str) -> String {
    std::fs::read_to_string(setup.home().path(&format!("state/logs/{name}.log")))
        .unwrap_or_default()
}

/// Entries whose arguments and URLs hold the secret in many forms.
fn revealing() -> Setup {
    let args = [
        "--header",
        "Authorization: Bearer hunter2-secret",
        "--header=X-Custom: hunter2-secret",
        "-e",
        "DB_TOKEN=hunter2-secret",
        "--env=PLAIN=hunter2-secret",
        "-k",
        "hunter2-secret",
        "--token",
        "hunter2-secret",
        "postgresql://me:hunter2-secret@db.example/x",
        "https://hunter2-secret@git.example/x",
        "https://api.example/mcp?api_key=hunter2-secret&page=2",
        "PASSWORD=hunter2-secret",
        "Server=db;Pwd=hunter2-secret;Timeout=5",
        r#"{"client_id":"me","client_secret":"hunter2-secret"}"#,
        "npx other --api-key hunter2-secret",
        "ghp_hunter2secret0123456789",
        "--verbose",
    ];
    Setup::new()
        .entry(
            "words",
            &json!({ "command": "/opt/tools/run-it", "args": args, "env": { "MODE": "hunter2-secret" }, "disabled": true })
                .to_string(),
        )
        .entry(
            "web",
            &json!({ "url": "https://me:hunter2-secret@web.example/path?sig=hunter2-secret", "headers": { "X-Odd": "hunter2-secret" }, "disabled": true })
                .to_string(),
        )
}

#[test]
fn agents_see_of_a_command_its_name_and_the_number_of_its_arguments() {
    let setup = revealing();
    let mut client = setup.connect();
    let listed = client.execute_with("mcpzip__servers", "{}").text();
    assert_eq!(
        listed,
        "web: https://web.example; disabled\nwords: run-it with 19 arguments; disabled"
    );
    client.finish();
}

#[test]
fn people_see_arguments_and_urls_without_the_secrets_in_them() {
    let setup = revealing();
    for command in [
        &["list"][..],
        &["list", "--json"],
        &["servers"],
        &["status"],
        &["doctor"],
    ] {
        let outcome = setup.run(command);
        for text in [&outcome.stdout, &outcome.stderr] {
            assert!(!text.contains("hunter2"), "{command:?}: {text}");
        }
    }
    let listed = setup.run(&["list"]).code(0).stdout;
    for part in [
        "Authorization: ***",
        "DB_TOKEN=***",
        "-k ***",
        "postgresql://me:***@db.example/x",
        "https://***@git.example/x",
        "?api_key=***&page=2",
        "Server=db;Pwd=***;Timeout=5",
        "--verbose",
        "https://me:***@web.example/path?sig=***",
    ] {
        assert!(listed.contains(part), "`{part}` is not in {listed}");
    }
}

#[test]
fn passwords_behind_short_options_of_known_programs_are_not_shown() {
    let setup = Setup::new()
        .entry(
            "sql",
            r#"{"command":"/usr/bin/mysql","args":["-uroot","-phunter2"],"disabled":true}"#,
        )
        .entry(
            "cache",
            r#"{"command":"redis-cli","args":["-a","hunter2","-n","1"],"disabled":true}"#,
        )
        .entry(
            "other",
            r#"{"command":"run","args":["-a","all","-p8080"],"disabled":true}"#,
        );
    for command in [&["list"][..], &["list", "--json"], &["servers"]] {
        let outcome = setup.run(command);
        assert!(!format!("{outcome}").contains("hunter2"), "{outcome}");
    }
    let listed = setup.run(&["list"]).code(0).stdout;
    for part in ["-uroot -p***", "-a *** -n 1", "-a all -p8080"] {
        assert!(listed.contains(part), "`{part}` is not in {listed}");
    }
}

#[test]
fn literal_variables_are_masked_in_all_that_a_server_writes() {
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n";
    let words = "saw ordinary-words and verbose-flag in /srv/data and --max-old-space-size=4096";
    let mut steps = vec![say(words)];
    steps.extend(key.lines().map(say));
    steps.push(say("uri postgres://u:p4ssw0rd!@db/x then p4ssw0rd! alone"));
    let mut dying = steps.clone();
    dying.push(exit(3));
    steps.push(answer("done"));
    let env = json!({ "env": {
        "MODE": "ordinary-words", "LEVEL": "verbose-flag", "DATA": "/srv/data",
        "NODE_OPTIONS": "--max-old-space-size=4096", "PEM": key, "DATABASE_URL": "postgres://u:p4ssw0rd!@db/x",
    } });
    let setup = Setup::new()
        .server_with("a", Server::new().tool("t", steps), env.clone())
        .server_with("dead", Server::new().at_start(dying), env);
    let mut client = setup.connect();
    client.execute("a__t");
    let failed = client.execute("dead__t").tool_error();
    let shown = until("the line in the log", || {
        let tail = client.execute_with("mcpzip__tail_log", r#"{"server":"a"}"#);
        Some(tail.text()).filter(|text| text.contains("alone"))
    });
    client.finish();
    let people = setup.run(&["servers"]);
    for text in [
        failed,
        shown.clone(),
        log(&setup, "a") + &log(&setup, "dead"),
        people.stdout,
        people.stderr,
    ] {
        for secret in [
            "ordinary-words",
            "verbose-flag",
            "MIIEvQ",
            "hkiG9w",
            "p4ssw0rd",
        ] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
    for plain in ["/srv/data", "--max-old-space-size=4096"] {
        assert!(shown.contains(plain), "{shown}");
    }
}

/// Entries of a server that repeats all it was given at its start, each in another form.
fn telling() -> Setup {
    let lines = [
        "env EnvValue7777 then RefValue5555 then ArgTok-A1b2C3d4E5f6",
        "MIIEvQIBADANBgkq",
        "decoded p@ss/word#1",
        "encoded Env%2fValue%3d8888 or Env%2FValue%3D8888",
        r#"json quo\"ted\\value or Env\/Value=8888"#,
        "basic RW52VmFsdWU3Nzc3",
        "the end",
    ];
    let env = json!({ "env": {
        "PLAIN": "EnvValue7777", "REF": "${GIVEN}", "PEM": "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n-----END KEY-----",
        "URL": "postgres://u:p%40ss%2Fword%231@db/x", "A_TOKEN": "Env/Value=8888", "B_TOKEN": r#"quo"ted\value"#,
        "C": "--token=ArgTok-A1b2C3d4E5f6",
    } });
    let server = Server::new()
        .at_start(lines.map(say))
        .tool("t", [answer("done")]);
    Setup::new()
        .variable("GIVEN", "RefValue5555")
        .server_with("a", server, env)
}

#[test]
fn whatever_starts_a_server_keeps_secrets_of_any_form_out_of_its_log() {
    for command in [&["doctor"][..], &["doctor", "a"], &["servers"], &["tools"]] {
        let setup = telling();
        let _ = setup.run(command);
        let log = log(&setup, "a");
        assert!(log.contains("the end"), "{command:?}: {log}");
        for secret in [
            "EnvValue", "RefValue", "ArgTok", "MIIEvQ", "p@ss", "2fValue", "2FValue", "quo",
            "/Value", "RW52",
        ] {
            assert!(!log.contains(secret), "{command:?}: {secret}: {log}");
        }
    }
}

#[test]
fn a_secret_at_the_edge_of_what_is_kept_shows_no_part_of_itself() {
    let secret = "Zq7".repeat(40);
    // What is kept of stderr for errors ends within the secret, wherever it begins.
    let line = |rest: usize| format!("key {secret} {}", "x".repeat(rest));
    for rest in [1_950, 2_000, 2_040] {
        let setup = Setup::new().server_with(
            "dead",
            Server::new().at_start([say(&line(rest)), exit(3)]),
            json!({ "env": { "API_TOKEN": secret } }),
        );
        let mut client = setup.connect();
        let failed = client.execute("dead__t").tool_error();
        assert!(
            failed.contains("xxxx") && !failed.contains("Zq7"),
            "{failed}"
        );
        client.finish();
    }
    // A line that is written in parts is cut within the secret.
    let long = format!(
        "{}{secret}{}",
        "x".repeat(64 * 1024 - 60),
        "x".repeat(10_000)
    );
    let setup = Setup::new().server_with(
        "a",
        Server::new().tool("t", [say(&long), answer("done"), say("the end")]),
        json!({ "env": { "API_TOKEN": secret } }),
    );
    let mut client = setup.connect();
    client.execute("a__t");
    let logged = until("the end of the log", || {
        Some(log(&setup, "a")).filter(|text| text.contains("the end"))
    });
    assert!(
        logged.contains("***") && !logged.contains("Zq7"),
        "a part of the secret is in the log"
    );
    client.finish();
}

#[test]
fn a_faulty_entry_shows_no_secret() {
    let setup = Setup::new()
        .server("a", Server::new().tool("t", [echo()]))
        .entry("one", r#"{"command":"x","args":"--token hunter2-secret"}"#)
        .entry("two", r#"{"command":"x","env":"TOKEN=hunter2-secret"}"#)
        .entry(
            "three",
            r#"{"url":"https://x/mcp","headers":["Authorization: Bearer hunter2-secret"]}"#,
        )
        .entry("four", r#"{"command":"x","args":["${hunter2-secret}"]}"#)
        .entry("five", r#"{"url":"me:hunter2-secret@x"}"#);
    let mut client = setup.connect();
    let listed = client.execute_with("mcpzip__servers", "{}").text();
    let status = client.call("proxy_status", "{}").text();
    for text in [listed, status, client.stderr()] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    client.finish();
    for command in ["list", "servers", "status", "doctor"] {
        let outcome = setup.run(&[command]);
        assert!(
            !outcome.stdout.contains("hunter2") && !outcome.stderr.contains("hunter2"),
            "{outcome}"
        );
    }
}

#[test]
fn a_secret_in_a_servers_name_of_itself_is_not_shown() {
    let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"it hunter2-secret","version":"hunter2-secret"}}"#;
    let script = Server::new()
        .on("initialize", [result(hello)])
        .tool("t", [answer("fine")]);
    let setup = Setup::new().server_with(
        "a",
        script,
        json!({ "env": { "API_KEY": "hunter2-secret" } }),
    );
    let _ = setup.run(&["call", "a__t"]).code(0);
    let mut named = 0;
    for command in [
        &["servers", "--json"][..],
        &["status", "--json"],
        &["doctor", "--json"],
        &["servers"],
    ] {
        let outcome = setup.run(command);
        let told = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!told.contains("hunter2"), "{command:?}: {told}");
        named += usize::from(told.contains("it ***"));
    }
    assert!(named > 0, "it has a name");
    // Nor is it in the catalog on disk.
    let found = std::process::Command::new("grep")
        .args(["-rl", "hunter2-secret"])
        .arg(setup.cache_path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}
