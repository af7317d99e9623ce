//! `mcpzip serve` without a configuration: the handshake says what to do, and servers are there as soon as they are configured.

use serde_json::json;

use crate::support::script::echo;
use crate::support::{Client, Server, Setup, until};

const OLDER: &str = "home/.config/compressed-mcp-proxy/config.json";

/// `mcpzip serve` with the configuration at its usual path, where there is none.
fn start(setup: &Setup) -> Client {
    let mut command = setup.command(&["serve"]);
    command.env_remove("MCPZIP_CONFIG");
    setup.start_command(command)
}

fn usual(setup: &Setup) -> std::path::PathBuf {
    match cfg!(target_os = "macos") {
        true => setup
            .home()
            .path("home/Library/Application Support/mcpzip/config.json"),
        false => setup.home().path("home/.config/mcpzip/config.json"),
    }
}

fn put(path: &std::path::Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn faulty_and_disabled_servers_are_not_taken_for_none() {
    for (entry, told) in [
        (json!({ "command": 5 }), "have faults"),
        (json!({ "command": "x", "disabled": true }), "switched off"),
    ] {
        let setup = Setup::new();
        let file = json!({ "mcpServers": { "a": entry } });
        setup.save_text(&file.to_string());
        let mut client = setup.start_command(setup.command(&["serve"]));
        let answer = client.shake_hands("2025-11-25").value();
        let instructions = answer["instructions"].as_str().unwrap_or_default();
        assert!(instructions.contains(told), "{instructions}");
        client.finish();
    }
}

#[cfg(unix)]
#[test]
fn without_a_home_in_the_environment_the_accounts_home_counts() {
    // A command that reads nothing in the home.
    let setup = Setup::new();
    let mut command = setup.command(&["undo"]);
    command.env_remove("HOME");
    let told = crate::support::command::run(command, "").code(1);
    assert!(
        told.stderr.contains("nothing to undo") && told.stderr.contains("are no runs"),
        "{told}"
    );
}

/// The text of a configuration with one scripted server.
fn configuration(setup: &Setup) -> String {
    setup.save();
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    std::fs::remove_file(setup.config_path()).unwrap();
    text
}

#[cfg(not(windows))]
#[test]
fn without_a_configuration_the_handshake_says_what_to_do_and_a_new_file_is_used_at_once() {
    let setup = Setup::new().server("hub", Server::new().tool("greet", [echo()]));
    let text = configuration(&setup);
    let mut client = start(&setup);
    let answer = client.shake_hands("2025-11-25").value();
    let instructions = answer["instructions"].as_str().unwrap();
    let path = usual(&setup);
    for told in ["mcpzip init", &path.display().to_string()] {
        assert!(instructions.contains(told), "{instructions}");
    }
    let status = client.execute("mcpzip__status").text();
    assert!(status.contains("mcpzip init"), "{status}");
    assert!(client.execute("hub__greet").is_tool_error());
    put(&path, &text);
    until("the new configuration to be used", || {
        let answer = client.execute("hub__greet");
        (!answer.is_tool_error()).then_some(())
    });
    let status = client.execute("mcpzip__status").text();
    assert!(!status.contains("mcpzip init"), "{status}");
    client.finish();
}

#[cfg(not(windows))]
#[test]
fn what_an_older_mcpzip_had_is_served_and_not_written_to_until_there_is_a_configuration() {
    let setup = Setup::new().server("hub", Server::new().tool("greet", [echo()]));
    let text = configuration(&setup);
    let mut older: serde_json::Value = serde_json::from_str(&text).unwrap();
    older["call_timeout_seconds"] = json!(60);
    older["gemini_api_key"] = json!("");
    let older = older.to_string();
    put(&setup.home().path(OLDER), &older);
    let mut client = start(&setup);
    let answer = client.shake_hands("2025-11-25").value();
    let instructions = answer["instructions"].as_str().unwrap();
    for told in ["hub", "mcpzip migrate --from mcpzip-0.1"] {
        assert!(instructions.contains(told), "{instructions}");
    }
    client.execute("hub__greet").text();
    let change = json!({ "operation": "disable", "names": ["hub"] }).to_string();
    assert!(
        client
            .execute_with("mcpzip__servers", &change)
            .is_tool_error()
    );
    assert_eq!(
        std::fs::read_to_string(setup.home().path(OLDER)).unwrap(),
        older
    );
    assert!(!usual(&setup).exists());
    put(&usual(&setup), r#"{"mcpServers": {}}"#);
    until("the new configuration to be used", || {
        client.execute("hub__greet").is_tool_error().then_some(())
    });
    client.finish();
}

#[test]
fn a_file_that_is_named_and_missing_is_not_replaced_by_that_of_an_older_mcpzip() {
    let setup = Setup::new().server("hub", Server::new().tool("greet", [echo()]));
    let text = configuration(&setup);
    put(&setup.home().path(OLDER), &text);
    let mut client = setup.start_command(setup.command(&["serve"]));
    let answer = client.shake_hands("2025-11-25").value();
    let instructions = answer["instructions"].as_str().unwrap();
    assert!(instructions.contains("config.json"), "{instructions}");
    assert!(client.execute("hub__greet").is_tool_error());
    client.finish();
    assert_eq!(setup.home().starts("hub"), 0);
}

#[test]
fn over_http_a_missing_configuration_is_an_error_that_whoever_starts_it_sees() {
    let setup = Setup::new();
    let outcome =
        crate::support::command::run(setup.command(&["serve", "--http", "127.0.0.1:0"]), "")
            .code(3);
    assert!(outcome.stderr.contains("config.json"), "{outcome}");
}
