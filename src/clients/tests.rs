//! Tests that no run on one system covers: the locations on all platforms.

use std::path::{Path, PathBuf};

use super::*;

fn around(platform: Platform, variables: &[(&str, &str)]) -> Surroundings {
    let environment = Environment::from_iter(variables.iter().copied());
    Surroundings {
        home: PathBuf::from("/home/me"),
        platform,
        environment,
        directory: None,
        managed: None,
        codex_managed: None,
        claude_config: None,
    }
}

#[test]
fn each_platform_has_its_places() {
    for (client, linux, mac, windows) in [
        (
            Client::ClaudeCode,
            ".claude.json",
            ".claude.json",
            ".claude.json",
        ),
        (
            Client::ClaudeDesktop,
            ".config/Claude/claude_desktop_config.json",
            "Library/Application Support/Claude/claude_desktop_config.json",
            "AppData/Roaming/Claude/claude_desktop_config.json",
        ),
        (
            Client::VsCode,
            ".config/Code/User/mcp.json",
            "Library/Application Support/Code/User/mcp.json",
            "AppData/Roaming/Code/User/mcp.json",
        ),
        (
            Client::Roo,
            ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            "Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            "AppData/Roaming/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        ),
        (
            Client::Zed,
            ".config/zed/settings.json",
            ".config/zed/settings.json",
            "AppData/Roaming/Zed/settings.json",
        ),
        (
            Client::Goose,
            ".config/goose/config.yaml",
            ".config/goose/config.yaml",
            "AppData/Roaming/Block/goose/config/config.yaml",
        ),
        (
            Client::Codex,
            ".codex/config.toml",
            ".codex/config.toml",
            ".codex/config.toml",
        ),
    ] {
        for (platform, expected) in [
            (Platform::Linux, linux),
            (Platform::Mac, mac),
            (Platform::Windows, windows),
        ] {
            let location = client.user_location(&around(platform, &[]));
            assert_eq!(
                location.path,
                Path::new("/home/me").join(expected),
                "{client:?} on {platform:?}"
            );
        }
    }
}

#[test]
fn a_packaged_claude_desktop_on_windows_has_its_own_view_of_the_users_directory() {
    let local = tempfile::tempdir().unwrap();
    let package = local.path().join("Packages/Claude_abc123");
    std::fs::create_dir_all(&package).unwrap();
    let local = local.path().to_str().unwrap().to_owned();
    let around = around(
        Platform::Windows,
        &[("LOCALAPPDATA", &local), ("APPDATA", "/roaming")],
    );
    let expected = package.join("LocalCache/Roaming/Claude/claude_desktop_config.json");
    assert_eq!(Client::ClaudeDesktop.user_location(&around).path, expected);
}

#[test]
fn names_lead_back_to_what_they_name() {
    for client in Client::ALL {
        assert_eq!(Client::named(client.name()), Some(client));
    }
    for scope in [Scope::User, Scope::Local, Scope::Project] {
        assert_eq!(Scope::named(scope.name()), Some(scope));
    }
    for syntax in [Syntax::Json, Syntax::Toml, Syntax::Yaml] {
        assert_eq!(Syntax::named(syntax.name()), Some(syntax));
    }
}

/// After any edit the text has the intended values, or is unchanged.
#[test]
fn any_edit_of_any_syntax_does_what_was_meant_or_nothing() {
    let texts = [
        (
            Syntax::Json,
            "{\n  \"a\": {\"x\": 1}, // one\n  \"b\": [1, {\"name\": \"n\"}],\n}\n",
        ),
        (
            Syntax::Toml,
            "# top\na.x = 1\n[b]\ny = [1, 2] # two\n[b.c]\nz = 'q'\n[[list]]\nname = \"n\"\n",
        ),
        (
            Syntax::Yaml,
            "# top\na:\n  x: 1\nb:\n- name: n\n  y: |\n    text\n    # no comment\n- name: m\nc: {d: e}\nf: \"g\n  h\"\n",
        ),
    ];
    let paths: [&[&str]; 8] = [
        &["a"],
        &["a", "x"],
        &["a", "new"],
        &["b"],
        &["b", "n"],
        &["b", "new"],
        &["new", "deep"],
        &["c", "d"],
    ];
    let values = [
        Node::map([
            ("command", Node::text("x: y")),
            ("args", Node::texts(["1", "true"])),
            ("name", Node::text("new")),
        ]),
        Node::text("\"quoted\"\n"),
        Node::Map(Vec::new()),
    ];
    for (syntax, original) in texts {
        let (mut done, mut refused) = (0, 0);
        for path in paths {
            let path: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
            for value in values.iter().map(Some).chain([None]) {
                let mut text = Text::parse(syntax, original).unwrap();
                let outcome = match value {
                    Some(value) => text.set(&path, value),
                    None => text.remove(&path),
                };
                match outcome {
                    Ok(()) => {
                        done += 1;
                        let there = text.node().at(&path).unwrap_or(&Node::Null);
                        // An item of a list is found by its own name.
                        let is_item = path.len() == 2 && path[0] == "b";
                        assert!(
                            is_item || there.is_same(value.unwrap_or(&Node::Null)),
                            "{path:?}\n{}",
                            text.text()
                        );
                        assert!(
                            text.text().contains("# top") || syntax == Syntax::Json,
                            "{}",
                            text.text()
                        );
                    }
                    Err(_) => {
                        refused += 1;
                        assert_eq!(text.text(), original);
                    }
                }
            }
        }
        assert!(done > refused, "{syntax:?}: {done} done, {refused} refused");
    }
}
