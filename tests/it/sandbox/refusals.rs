//! Sandboxes that cannot be had, and entries that are not understood, refuse the server in words.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{has_bubblewrap, with_hostile};
use crate::support::Setup;

/// Writes a program of the shell.
pub(super) fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The refusal of a server with this sandbox.
#[track_caller]
fn refusal(setup: &Setup, sandbox: &Value) -> String {
    let setup = with_hostile(setup.clone(), Some(sandbox));
    let mut client = setup.connect();
    let said = client.execute_with("h__attempt", "{}").as_str().to_owned();
    client.finish();
    said
}

#[test]
fn a_sandbox_that_cannot_be_made_refuses_the_server_and_is_found_by_the_doctor() {
    let setup = Setup::new().alone();
    let programs = setup.home().path("programs");
    script(&programs.join("podman"), "echo 'no runtime' >&2; exit 1");
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let setup = setup.variable("PATH", &path);
    let sandbox = json!({ "image": "example.com/image:1" });
    let said = refusal(&setup, &sandbox);
    assert!(
        said.contains("cannot be made") && said.contains("did not start"),
        "{said}"
    );
    let doctor = with_hostile(setup, Some(&sandbox))
        .run(&["doctor", "--json"])
        .code(1)
        .json();
    let codes: Vec<&str> = doctor["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["subject"] == "h")
        .filter_map(|finding| finding["code"].as_str())
        .collect();
    assert_eq!(codes, ["sandbox-unavailable"]);
}

#[test]
fn all_of_the_system_can_be_opened_for_reading() {
    if !has_bubblewrap() {
        return;
    }
    for path in ["/etc", "/", "/etc/ssl"] {
        let said = refusal(&Setup::new().alone(), &json!({ "read": [path] }));
        assert!(said.contains(r#""text":"{}""#), "{path}: {said}");
    }
}

#[test]
fn a_name_of_dots_is_no_name_of_a_server() {
    let mut setup = Setup::new().alone();
    for name in [".", "..", "..."] {
        setup = setup.entry(name, r#"{ "command": "x", "sandbox": "strict" }"#);
    }
    let outcome = setup.run(&["status"]);
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(said.matches("has dots only").count(), 3, "{said}");
}

#[test]
fn paths_that_cannot_be_opened_refuse_the_server() {
    if !has_bubblewrap() {
        return;
    }
    let setup = Setup::new().alone();
    let home = setup.home().path("");
    let _listener = std::os::unix::net::UnixListener::bind(home.join("socket")).unwrap();
    for (sandbox, expected) in [
        (json!({ "read": [home.join("missing")] }), "does not exist"),
        (json!({ "read": [home.join("socket")] }), "is a socket"),
        (json!({ "read": ["/proc"] }), "belongs to the system"),
        (json!({ "write": [&home] }), "files of mcpzip"),
        (json!({ "write": ["/"] }), "files of mcpzip"),
    ] {
        let said = refusal(&setup, &sandbox);
        assert!(
            said.contains(expected) && said.contains("did not start"),
            "{sandbox}: {said}"
        );
    }
    let entry = json!({ "command": "/usr/bin/true", "cwd": "/srv", "sandbox": "strict" });
    let setup = setup.entry("h", &entry.to_string());
    let said = setup
        .connect()
        .execute_with("h__attempt", "{}")
        .as_str()
        .to_owned();
    assert!(said.contains("`/srv` is not in its sandbox"), "{said}");
}

#[test]
fn files_of_mcpzip_that_are_links_are_closed_where_they_lead() {
    if !has_bubblewrap() {
        return;
    }
    let setup = Setup::new().alone();
    let home = setup.home().path("");
    let (own, elsewhere) = (home.join("own/mcpzip"), home.join("elsewhere"));
    let said = |linked: &str, access: &str| {
        let setup = with_hostile(setup.clone(), Some(&json!({ access: [&elsewhere] })));
        setup.save();
        for directory in [&own, &elsewhere] {
            let _ = std::fs::remove_dir_all(directory);
            std::fs::create_dir_all(directory).unwrap();
        }
        std::fs::copy(setup.config_path(), own.join("config.json")).unwrap();
        let (from, to) = (own.join(linked), elsewhere.join("settings"));
        match linked {
            "config.json" => std::fs::rename(&from, &to).unwrap(),
            "scripts" => std::fs::create_dir(&to).unwrap(),
            _ => std::fs::write(&to, "{}").unwrap(),
        }
        if !linked.is_empty() {
            std::os::unix::fs::symlink(&to, &from).unwrap();
        }
        let mut command = setup.command(&["serve"]);
        command.env("MCPZIP_CONFIG", own.join("config.json"));
        let mut client = setup.start_command(command);
        client.shake_hands("2025-11-25");
        let said = client.execute_with("h__attempt", "{}").as_str().to_owned();
        client.finish();
        said
    };
    for linked in ["config.json", "config.secrets.json", "scripts"] {
        let said = said(linked, "write");
        assert!(
            said.contains("files of mcpzip") && said.contains("did not start"),
            "{linked}: {said}"
        );
    }
    for linked in ["config.json", "config.secrets.json"] {
        let said = said(linked, "read");
        assert!(said.contains("cannot be hidden there"), "{linked}: {said}");
    }
    for access in ["read", "write"] {
        let said = said("", access);
        assert!(said.contains(r#""text":"{}""#), "{access}: {said}");
    }
}

#[test]
fn what_is_not_understood_in_a_sandbox_denies_the_server() {
    for (entry, expected) in [
        (
            json!({ "command": "x", "sandbox": "loose" }),
            "`sandbox` must be \"strict\", \"project\"",
        ),
        (
            json!({ "command": "x", "sandbox": false }),
            "`sandbox` must be",
        ),
        (
            json!({ "command": "x", "sandbox": [] }),
            "`sandbox` must be",
        ),
        (
            json!({ "command": "x", "sandbox": { "reed": [] } }),
            "`sandbox.reed` is an unknown key",
        ),
        (
            json!({ "command": "x", "sandbox": { "network": "some" } }),
            "single hosts",
        ),
        (
            json!({ "command": "x", "sandbox": { "network": ["a.example"] } }),
            "network",
        ),
        (
            json!({ "command": "x", "sandbox": { "read": "/x" } }),
            "read",
        ),
        (
            json!({ "command": "x", "sandbox": { "read": ["a/../../b"] } }),
            "has `..`",
        ),
        (
            json!({ "command": "x", "sandbox": { "env": ["A=b"] } }),
            "is not a valid name of a variable",
        ),
        (
            json!({ "command": "x", "sandbox": { "env": ["MCPZIP_SECRET_KEY"] } }),
            "which no server gets",
        ),
        (
            json!({ "command": "x", "sandbox": { "env": ["mcpzip_login_key"] } }),
            "which no server gets",
        ),
        (
            json!({ "command": "x", "sandbox": null }),
            "`sandbox` must be",
        ),
        (
            json!({ "command": "x", "sandbox": { "image": "--privileged" } }),
            "is not a valid name of an image",
        ),
        (
            json!({ "command": "x", "sandbox": { "preset": "x" } }),
            "preset",
        ),
        (
            json!({ "command": "x", "sandbox": { "network": null } }),
            "`sandbox.network` is null",
        ),
        (
            json!({ "command": "x", "sandbox": { "preset": null } }),
            "`sandbox.preset` is null",
        ),
        (json!({ "command": "x", "sandbx": "strict" }), "sandbx"),
        (json!({ "command": "x", "sandboxed": true }), "sandboxed"),
        (
            json!({ "command": "x", "sandboxEnabled": true }),
            "sandboxEnabled",
        ),
        (
            json!({ "url": "http://127.0.0.1:1", "sandbox": "strict" }),
            "is for a server with a `command`",
        ),
        (
            json!({ "skills": "x", "sandbox": "strict" }),
            "is for a server with a `command`",
        ),
        (
            json!({ "command": "x", "cli": true, "sandbox": "strict" }),
            "does not go with `cli`",
        ),
    ] {
        let setup = Setup::new().entry("a", &entry.to_string());
        let outcome = setup.run(&["status", "--json"]);
        let status = outcome.json();
        let server = &status["servers"][0];
        assert_eq!(server["state"], "faulty", "{entry}: {outcome}");
        let reason = server["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(expected), "{entry}: {reason}");
    }
    for twice in [
        r#"{"command": "x", "sandbox": {"network": "none", "network": "all"}}"#,
        r#"{"command": "x", "sandbox": "strict", "sandbox": {"network": "all"}}"#,
        r#"{"command": "x", "sandbox": "strict", "sandbox": null}"#,
    ] {
        let setup = Setup::new().entry("a", twice);
        let status = setup.run(&["status", "--json"]).json();
        let reason = status["servers"][0]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("is there twice"), "{twice}: {status}");
    }
}

#[test]
fn an_agent_cannot_take_a_server_out_of_its_sandbox() {
    let setup = with_hostile(
        Setup::new().alone().setting("management", json!("full")),
        Some(&json!("strict")),
    );
    let before = {
        setup.save();
        std::fs::read_to_string(setup.config_path()).unwrap()
    };
    let mut client = setup.connect();
    for operation in [
        json!({ "operation": "update", "servers": { "h": { "sandbox": null } } }),
        json!({ "operation": "update", "servers": { "h": { "sandbox": { "network": "all" } } } }),
        json!({ "operation": "update", "servers": { "h": { "args": ["x"] } } }),
        json!({ "operation": "remove", "names": ["h"] }),
    ] {
        let answer = client.execute_with("mcpzip__servers", &operation.to_string());
        let said = answer.as_str();
        assert!(said.contains("sandbox"), "{operation}: {said}");
        assert_eq!(
            std::fs::read_to_string(setup.config_path()).unwrap(),
            before,
            "{operation}"
        );
    }
    client.finish();
}
