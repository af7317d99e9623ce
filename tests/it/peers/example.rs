//! `config.example.json` as it stands.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::install::Peers;
use super::{peers, process};
use crate::support::Setup;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config.example.json");

/// `npx` takes its time to find what is before it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client that writes all it wants and closes the pipe, as `printf` does.
const LINES: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"printf","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"search_tools","arguments":{"query":"convert a time to another timezone"}}}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"execute_tool","arguments":{"name":"everything__echo","arguments":{"message":"hello"}}}}
{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"execute_tool","arguments":{"name":"time__convert_time","arguments":{"source_timezone":"Europe/Berlin","time":"12:00","target_timezone":"Asia/Tokyo"}}}}
"#;

#[test]
fn the_example_has_the_versions_that_are_tested() {
    let pins = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers");
    let npm = std::fs::read_to_string(format!("{pins}/package.json")).unwrap();
    let python = std::fs::read_to_string(format!("{pins}/python-2.txt")).unwrap();
    let example = std::fs::read_to_string(EXAMPLE).unwrap();
    let packages: Vec<(&str, &str)> = example
        .split('"')
        .filter_map(|text| text.rsplit_once('@').or_else(|| text.split_once("==")))
        .filter(|(name, version)| {
            name.contains("server") && version.starts_with(|c: char| c.is_ascii_digit())
        })
        .collect();
    assert!(packages.len() >= 7, "{packages:?}");
    for (name, version) in packages {
        let is_pinned = npm.contains(&format!(r#""{name}": "{version}""#))
            || python
                .lines()
                .any(|line| line == format!("{name}=={version}"));
        assert!(is_pinned, "{name} {version} is not what tests/peers pins");
    }
}

#[test]
fn the_example_answers_lines_from_a_pipe() {
    let Some(peers) = peers() else { return };
    let setup = Setup::new().log_level("error");
    let programs = setup.home().path("programs");
    write_uvx(&programs, peers);
    // `npx` looks into the directory it is started in before it asks a registry.
    let run = |arguments: &[&str], input: &str| {
        let mut command = setup.command(arguments);
        command
            .current_dir(peers.node_directory())
            .env("MCPZIP_CONFIG", EXAMPLE)
            .env("PATH", path_with(&programs));
        process::run(&mut command, input, PATIENCE).unwrap_or_else(|problem| panic!("{problem}"))
    };

    let ended = run(&["servers", "--json"], "");
    let status: Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended}"));
    let servers = status["servers"]
        .as_array()
        .expect("the servers are listed");
    assert_eq!(servers.len(), 7, "{status}");
    assert!(
        servers.iter().all(|server| server["state"] == "ready"),
        "{status:#}"
    );
    assert_eq!(
        status["warnings"].as_array().map(Vec::len),
        Some(0),
        "{status:#}"
    );

    let ended = run(&["serve"], LINES);
    assert_eq!(ended.code, Some(0), "{ended}");
    let answers: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 5, "{ended}");
    let result = |id: u64| {
        &answers
            .iter()
            .find(|answer| answer["id"] == id)
            .expect("each id is answered")["result"]
    };
    let text = |id| {
        result(id)["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("no text for {id}: {ended}"))
    };
    assert_eq!(result(1)["serverInfo"]["name"], "mcpzip");
    assert_eq!(result(2)["tools"].as_array().map(Vec::len), Some(3));
    assert!(text(3).starts_with("time__convert_time("), "{}", text(3));
    assert_eq!(text(4), "Echo: hello");
    let converted = result(5)["structuredContent"]["time_difference"]
        .as_str()
        .unwrap_or_else(|| panic!("{ended}"));
    assert!(converted.starts_with('+'), "{converted}");
}

/// Stands for uv, whose `uvx` would fetch what is installed already: it runs that.
fn write_uvx(directory: &Path, peers: &Peers) {
    std::fs::create_dir_all(directory).unwrap();
    let uvx = directory.join("uvx");
    let installed = peers.python(2, "");
    let script = format!(
        "#!/bin/sh\nname=${{1%@*}}\nshift\nexec \"{}/$name\" \"$@\"\n",
        installed.display()
    );
    std::fs::write(&uvx, script).unwrap();
    std::fs::set_permissions(&uvx, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn path_with(first: &Path) -> std::ffi::OsString {
    let command = Command::new("sh")
        .args(["-c", "printf %s \"$PATH\""])
        .output()
        .expect("there is a shell");
    let rest = String::from_utf8(command.stdout).expect("the path is text");
    format!("{}:{rest}", first.display()).into()
}
