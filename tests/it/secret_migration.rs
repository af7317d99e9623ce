//! `mcpzip secret migrate`: secrets leave files, and come back byte for byte.

use serde_json::{Value, json};

use crate::clients::case::{CLIENTS, user_file};
use crate::support::Setup;
use crate::support::command::{self, Outcome};

const KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";
const TOKEN: &str = "ghp_0123456789abcdefABCDEF";
const SECRET: &str = "hunter2-client-secret";

fn machine() -> Setup {
    Setup::new()
        .log_level("error")
        .variable("MCPZIP_SECRET_KEY", KEY)
}

#[track_caller]
fn run(setup: &Setup, arguments: &[&str]) -> Outcome {
    let outcome = command::run(setup.command(arguments), "");
    let said = outcome.to_string();
    assert!(!said.contains(TOKEN) && !said.contains(SECRET), "{said}");
    outcome
}

#[track_caller]
fn read(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn secrets_of_the_configuration_and_of_the_file_next_to_it_move_and_come_back() {
    let setup = machine();
    let config = format!(
        "\u{feff}{{\r\n  // mine\r\n  \"mcpServers\": {{\r\n    \"a\": {{\"command\": \"x\", \"env\": {{\"A_TOKEN\": \"{TOKEN}\"}}}}, /* kept */\r\n    \
         \"b\": {{\"url\": \"https://b.example/mcp\", \"oauth\": {{\"client_id\": \"me\", \"client_secret\": \"{SECRET}\"}},\r\n      \
         \"headers\": {{\"X\": \"Bearer ${{STORED}}\", \"Y\": \"${{STORED:-none}} $${{STORED}} ${{OTHER}}\"}}}},\r\n  }},\r\n}}\r\n"
    );
    let stored = "{\r\n  // next to it\r\n  \"STORED\": \"hunter2-client-secret\",\r\n}\r\n";
    let secrets = setup.config_path().with_extension("secrets.json");
    std::fs::write(setup.config_path(), &config).unwrap();
    std::fs::write(&secrets, stored).unwrap();
    let looked = run(&setup, &["secret", "migrate", "--dry-run"]).code(0);
    assert_eq!(looked.json()["changed"], false);
    let refused = run(&setup, &["secret", "migrate"]).code(1);
    assert!(refused.stderr.contains("`--yes`"), "{refused}");
    assert_eq!(read(&setup.config_path()), config);
    let moved = run(&setup, &["secret", "migrate", "--yes"]).code(0).json();
    let after = read(&setup.config_path());
    assert!(!after.contains(TOKEN) && !after.contains(SECRET), "{after}");
    for part in [
        "\u{feff}{\r\n  // mine",
        "/* kept */\r\n",
        "\"A_TOKEN\": \"${keyring:A_TOKEN}\"",
        "\"client_secret\": \"${keyring:",
        "Bearer ${keyring:",
        " $${STORED} ${OTHER}",
    ] {
        assert!(after.contains(part), "{part}: {after}");
    }
    let rest = read(&secrets);
    assert!(
        !rest.contains("hunter2") && rest.contains("// next to it"),
        "{rest}"
    );
    let names = moved["stored"].as_array().unwrap();
    assert!(names.contains(&json!("A_TOKEN")), "{moved}");
    let listed = run(&setup, &["secret", "list", "--json"]).code(0).json();
    let is_used = |secret: &Value| !secret["used_by"].as_array().unwrap().is_empty();
    assert!(listed.as_array().unwrap().iter().all(is_used), "{listed}");
    let again = run(&setup, &["secret", "migrate", "--yes"]).code(0).json();
    assert_eq!(again["changed"], false, "{again}");
    let _ = run(&setup, &["secret", "migrate", "--undo", "--yes"]).code(0);
    assert_eq!(read(&setup.config_path()), config);
    assert_eq!(read(&secrets), stored);
    let none = run(&setup, &["secret", "migrate", "--undo", "--yes"]).code(1);
    assert!(none.stderr.contains("no run"), "{none}");
}

#[test]
fn a_preview_fails_where_the_secrets_could_not_be_stored() {
    let setup = Setup::new().log_level("error");
    let entry = json!({ "command": "x", "env": { "A_TOKEN": TOKEN } });
    setup.save_text(&json!({ "mcpServers": { "a": entry } }).to_string());
    for flag in ["--yes", "--dry-run"] {
        let refused = run(&setup, &["secret", "migrate", flag]).code(1);
        assert!(refused.stderr.contains("needs a key"), "{flag}: {refused}");
    }
}

#[test]
fn every_backup_that_has_a_moved_secret_is_named_also_those_of_earlier_runs() {
    let setup = machine();
    let written = format!(
        "{{\"mcpServers\": {{\"a\": {{\"command\": \"x\", \"env\": {{\"A_TOKEN\": \"{TOKEN}\", \"B_TOKEN\": \"quote\\\"{SECRET}\"}}}}}}}}"
    );
    std::fs::write(setup.config_path(), written).unwrap();
    let backups = |moved: &Value| -> Vec<String> {
        let all = moved["backups"].as_array().unwrap().iter();
        all.map(|path| path.as_str().unwrap().to_owned()).collect()
    };
    let first = run(&setup, &["secret", "migrate", "--yes"]).code(0).json();
    assert_eq!(first["moved"], first["stored"], "{first}");
    let of_first = backups(&first);
    assert_eq!(of_first.len(), 1, "{first}");
    assert!(
        of_first[0].ends_with(first["undo"].as_str().unwrap()),
        "{first}"
    );
    let _ = run(&setup, &["secret", "migrate", "--undo", "--yes"]).code(0);
    // Nothing is stored anew, and yet both secrets leave the file.
    let looked = run(&setup, &["secret", "migrate", "--dry-run"])
        .code(0)
        .json();
    assert_eq!(looked["stored"], json!([]), "{looked}");
    assert_eq!(looked["moved"], json!(["A_TOKEN", "B_TOKEN"]), "{looked}");
    assert_eq!(backups(&looked), of_first);
    let again = run(&setup, &["secret", "migrate", "--yes"]).code(0).json();
    let both = backups(&again);
    assert_eq!(both.len(), 2, "{again}");
    assert!(both.starts_with(&of_first), "{again}");
    std::fs::remove_dir_all(&both[0]).unwrap();
    let _ = run(&setup, &["secret", "migrate", "--undo", "--yes"]).code(0);
    let last = run(&setup, &["secret", "migrate", "--dry-run"])
        .code(0)
        .json();
    assert_eq!(backups(&last), both[1..]);
}

#[test]
fn one_program_under_two_names_is_named() {
    let setup = machine();
    for (client, name) in [("cursor", "gh"), ("claude-code", "github")] {
        let path = setup.home().path("home").join(user_file(client));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let entry = json!({ "command": "gh-server", "env": { "GITHUB_TOKEN": TOKEN } });
        std::fs::write(path, json!({ "mcpServers": { name: entry } }).to_string()).unwrap();
    }
    std::fs::write(setup.config_path(), "{}").unwrap();
    let words = ["secret", "migrate", "--clients", "--dry-run"];
    let remarks = run(&setup, &words).code(0).json()["remarks"].to_string();
    assert!(
        remarks.contains("`gh` is `github` under another name"),
        "{remarks}"
    );
}

#[test]
fn passwords_of_urls_and_escaped_texts_move_and_what_stays_is_named() {
    let setup = machine();
    let config = json!({
        "url": "postgres://user:pa55@host/user:pa55", "long": "postgres://user:long-pa55-word@host/db?x=1",
        "escaped": "pa$${x}ss", "dollar": "pa$x-word",
    });
    let text = |key: &str| config[key].as_str().unwrap();
    let written = format!(
        "{{\n  // an old one: sk-proj-0123456789abcdefABCDEF\n  \"mcpServers\": {{\n    \"a\": {{\"command\": \"x\", \"args\": [\"{0}\"], \
         \"env\": {{\"DATABASE_URL\": \"{0}\", \"OTHER_URL\": \"{1}\", \"PASSWORD\": \"{2}\", \"PIN_CODE_KEY\": \"{3}\", \
         \"API_KEY\": \"first-of-two-1\", \"API_KEY\": \"second-of-two-2\", \"TOKEN\": \"${{NAME:-fallback-word}}\"}}}}\n  }}\n}}\n",
        text("url"),
        text("long"),
        text("escaped"),
        text("dollar"),
    );
    std::fs::write(setup.config_path(), &written).unwrap();
    let shown = run(&setup, &["secret", "migrate", "--dry-run"]).code(0);
    let moved = run(&setup, &["secret", "migrate", "--yes"]).code(0);
    let again = run(&setup, &["secret", "migrate", "--yes"]).code(0);
    for said in [&shown, &moved, &again] {
        let remarks = said.json()["remarks"].to_string();
        for path in [
            "mcpServers.a.env.API_KEY (not the last of this name)",
            "mcpServers.a.env.TOKEN",
        ] {
            assert!(remarks.contains(path), "{path}: {said}");
        }
        for path in ["URL", "PASSWORD", "args", "PIN_CODE_KEY"] {
            assert!(!remarks.contains(path), "{path}: {said}");
        }
        for hidden in [
            "sk-proj",
            ":pa55@",
            "long-pa55",
            "pa$$",
            "pa$x",
            "-of-two-",
            "fallback",
        ] {
            assert!(!said.to_string().contains(hidden), "{hidden}: {said}");
        }
    }
    let after = std::fs::read_to_string(setup.config_path()).unwrap();
    for gone in [":pa55@", "long-pa55-word", "pa$$", "pa$x", "second-of-two"] {
        assert!(!after.contains(gone), "{gone}: {after}");
    }
    for kept in ["/user:pa55\"", "@host/db?x=1\"", "first-of-two-1"] {
        assert!(after.contains(kept), "{kept}: {after}");
    }
    // What the server gets is what it had.
    let names = moved.json()["stored"].to_string();
    for name in ["DATABASE_URL", "OTHER_URL", "PASSWORD", "PIN_CODE_KEY"] {
        assert!(names.contains(name), "{names}");
    }
}

/// A file of a client with a server that has a secret, and with comments where its syntax has them.
fn file_of(client: &str) -> String {
    let env = format!("{{\"GITHUB_TOKEN\": \"{TOKEN}\"}}");
    let entry = format!("{{\"command\": \"gh-server\", \"args\": [\"x\"], \"env\": {env}}}");
    match client {
        "codex" => format!(
            "# mine\nmodel = \"o3\"\n\n[mcp_servers.gh] # here\ncommand = \"gh-server\"\nargs = [\"x\"]\nenv = {{ GITHUB_TOKEN = \"{TOKEN}\" }}\n"
        ),
        "continue" => format!(
            "# mine\nname: me\nversion: 1.0.0\nmcpServers:\n  - name: gh # here\n    command: gh-server\n    args: [x]\n    env:\n      GITHUB_TOKEN: {TOKEN}\n"
        ),
        "goose" => format!(
            "# mine\nGOOSE_MODEL: x\nextensions:\n  gh: # here\n    enabled: true\n    type: stdio\n    name: gh\n    cmd: gh-server\n    args: [x]\n    timeout: 300\n    envs:\n      GITHUB_TOKEN: {TOKEN}\n"
        ),
        "opencode" => format!(
            "{{\n  // mine\n  \"mcp\": {{\n    \"gh\": {{\"type\": \"local\", \"command\": [\"gh-server\", \"x\"], \"environment\": {env}}}\n  }}\n}}\n"
        ),
        "zed" => {
            format!("{{\n  // mine\n  \"context_servers\": {{\n    \"gh\": {entry}\n  }}\n}}\n")
        }
        "vscode" => format!("{{\n  // mine\n  \"servers\": {{\n    \"gh\": {entry}\n  }}\n}}\n"),
        "claude-code" | "claude-desktop" | "copilot-cli" => {
            format!("{{\n  \"other\": 1,\n  \"mcpServers\": {{\n    \"gh\": {entry}\n  }}\n}}\n")
        }
        _ => format!("{{\n  // mine\n  \"mcpServers\": {{\n    \"gh\": {entry}\n  }}\n}}\n"),
    }
}

#[test]
fn secrets_in_the_files_of_each_client_move_and_come_back_byte_for_byte() {
    for client in CLIENTS {
        for (start, line_end) in [("", "\n"), ("", "\r\n"), ("\u{feff}", "\n")] {
            // YAML and TOML with a mark are rare, and some parsers refuse them.
            let is_json = !matches!(client, "codex" | "continue" | "goose");
            if !start.is_empty() && !is_json {
                continue;
            }
            let setup = machine();
            let path = setup.home().path("home").join(user_file(client));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let before = format!("{start}{}", file_of(client).replace('\n', line_end));
            std::fs::write(&path, &before).unwrap();
            std::fs::write(setup.config_path(), "{} // mine\r\n").unwrap();
            let found = run(&setup, &["secret", "migrate", "--dry-run"])
                .code(0)
                .json();
            assert_eq!(
                found["in_clients"][0]["secrets"][0], "GITHUB_TOKEN",
                "{client}: {found}"
            );
            let doctor = run(&setup, &["doctor", "--json"]).to_string();
            assert!(doctor.contains("secret-in-client"), "{client}: {doctor}");
            let moved = run(&setup, &["secret", "migrate", "--clients", "--yes"])
                .code(0)
                .json();
            assert_eq!(moved["changed"], true, "{client}: {moved}");
            let after = read(&path);
            assert!(!after.contains(TOKEN), "{client}: {after}");
            let ours = read(&setup.config_path());
            assert!(
                ours.contains("${keyring:GITHUB_TOKEN}") && !ours.contains(TOKEN),
                "{client}: {ours}"
            );
            let _ = run(&setup, &["secret", "migrate", "--undo", "--yes"]).code(0);
            assert_eq!(read(&path), before, "{client}");
            assert_eq!(read(&setup.config_path()), "{} // mine\r\n", "{client}");
        }
    }
}

#[test]
fn the_question_of_codex_can_be_answered_where_its_servers_move() {
    let setup = machine();
    let file = setup.home().path("home").join(user_file("codex"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, file_of("codex")).unwrap();
    let moving = ["secret", "migrate", "--clients", "--yes"];
    let approve = [&moving[..], &["--codex-approval", "approve"]].concat();
    let _ = run(&setup, &approve).code(0);
    let after = read(&file);
    assert!(
        after.contains(r#"default_tools_approval_mode = "approve""#),
        "{after}"
    );
}
