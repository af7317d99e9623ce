//! The five agents: how each is configured and started with a model on the loopback interface.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::http::HttpServer;
use crate::support::{Setup, program};

/// An agent.
pub(super) struct Agent {
    pub(super) name: &'static str,
    /// Its program, in the directory of npm's packages.
    program: &'static str,
    /// Writes its files into its home, and adds arguments and variables.
    prepare: fn(&mut Command, &Place<'_>),
}

pub(super) const AGENTS: [Agent; 5] = [
    Agent {
        name: "claude",
        program: "@anthropic-ai/claude-code-linux-x64/claude",
        prepare: claude,
    },
    Agent {
        name: "codex",
        program: "@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex",
        prepare: codex,
    },
    Agent {
        name: "gemini",
        program: "@google/gemini-cli/bundle/gemini.js",
        prepare: gemini,
    },
    Agent {
        name: "opencode",
        program: "opencode-linux-x64/bin/opencode",
        prepare: opencode,
    },
    Agent {
        name: "copilot",
        program: "@github/copilot-linux-x64/copilot",
        prepare: copilot,
    },
];

/// An agent's home, its model and the server that it starts.
struct Place<'a> {
    home: &'a Path,
    model: String,
    server: Value,
}

impl Place<'_> {
    fn write(&self, path: &str, text: &str) {
        let path = self.home.join(path);
        fs::create_dir_all(path.parent().expect("it is in the home")).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Agent {
    /// The command that solves the task with the servers of `setup` behind mcpzip.
    pub(super) fn command(&self, modules: &Path, setup: &Setup, model: &HttpServer) -> Command {
        let server = json!({ "command": program::mcpzip(), "args": serve(setup) });
        self.command_with(server, modules, setup, model)
    }

    /// The command that solves the task with one server, of this entry: in a home and a repository of the agent's own, with few
    /// variables.
    pub(super) fn command_with(
        &self,
        server: Value,
        modules: &Path,
        setup: &Setup,
        model: &HttpServer,
    ) -> Command {
        let home = setup.home().path("home");
        let project = setup.home().path(&format!("projects/{}", self.name));
        fs::create_dir_all(&project).unwrap();
        let is_made = Command::new("git")
            .args(["init", "--quiet"])
            .arg(&project)
            .status();
        assert!(is_made.unwrap().success());
        let place = Place {
            home: &home,
            model: model.url(""),
            server,
        };
        let program = modules.join(self.program);
        let is_script = program
            .extension()
            .is_some_and(|extension| extension == "js");
        let mut command = match is_script {
            true => Command::new("node"),
            false => Command::new(&program),
        };
        if is_script {
            command.arg(&program);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "tests have no configuration of their own"
        )]
        let path = std::env::var_os("PATH").expect("there is a PATH");
        command
            .current_dir(project)
            .env_clear()
            .envs([("TERM", "xterm"), ("LANG", "C.UTF-8")])
            .env("PATH", path)
            .env("HOME", &home);
        (self.prepare)(&mut command, &place);
        command
    }
}

fn serve(setup: &Setup) -> Vec<String> {
    let paths: [(&str, PathBuf); 3] = [
        ("--config", setup.config_path()),
        ("--cache-dir", setup.cache_path()),
        ("--state-dir", setup.home().path("state")),
    ];
    let paths = paths.into_iter();
    let paths = paths.flat_map(|(flag, path)| [flag.to_owned(), path.display().to_string()]);
    std::iter::once("serve".to_owned()).chain(paths).collect()
}

/// A release of Claude Code that shows interfaces for the program that embeds it, by messages on its pipes.
pub(super) const APPS_HOST: Agent = Agent {
    name: "claude",
    program: "@anthropic-ai/claude-code-linux-x64/claude",
    prepare: |command, place| {
        claude_with(command, place, &["-p", "--input-format", "stream-json"]);
        command
            .args(["--output-format", "stream-json", "--verbose"])
            .env("CLAUDE_CODE_MCP_APPS_HOST", "1");
    },
};

fn claude(command: &mut Command, place: &Place<'_>) {
    claude_with(command, place, &["-p", "go"]);
}

fn claude_with(command: &mut Command, place: &Place<'_>, first: &[&str]) {
    let mut server = place.server.clone();
    // Its first request waits for the server.
    server["alwaysLoad"] = json!(true);
    let servers = json!({ "mcpServers": { "zip": server } });
    place.write("mcp.json", &servers.to_string());
    command
        .args(first)
        .args([
            "--strict-mcp-config",
            "--allowedTools",
            "mcp__zip__*",
            "--mcp-config",
        ])
        .arg(place.home.join("mcp.json"))
        .env("ANTHROPIC_BASE_URL", &place.model)
        .env("ANTHROPIC_API_KEY", "none")
        .env("ENABLE_TOOL_SEARCH", "false")
        .env("MCP_TIMEOUT", "60000")
        .env("MCP_CONNECTION_NONBLOCKING", "false")
        .env("DISABLE_AUTOUPDATER", "1")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
}

fn codex(command: &mut Command, place: &Place<'_>) {
    // Strings and lists of strings are written in TOML as in JSON.
    let settings = format!(
        r#"model = "mock"
model_provider = "mock"
approval_policy = "never"

[model_providers.mock]
name = "mock"
base_url = "{}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"

[mcp_servers.zip]
required = true
default_tools_approval_mode = "approve"
command = {}
args = {}
"#,
        place.model, place.server["command"], place.server["args"]
    );
    place.write(".codex/config.toml", &settings);
    command
        .args(["exec", "--skip-git-repo-check", "--json", "go"])
        .env("MOCK_KEY", "none");
}

fn gemini(command: &mut Command, place: &Place<'_>) {
    let settings = json!({
        "security": { "auth": { "selectedType": "gemini-api-key" } },
        "general": { "disableAutoUpdate": true },
        "privacy": { "usageStatisticsEnabled": false },
        "mcpServers": { "zip": place.server },
    });
    place.write(".gemini/settings.json", &settings.to_string());
    command
        .args([
            "-p",
            "go",
            "--skip-trust",
            "--approval-mode",
            "yolo",
            "--output-format",
            "json",
        ])
        .env("GEMINI_API_KEY", "none")
        .env("GOOGLE_GEMINI_BASE_URL", &place.model);
}

fn opencode(command: &mut Command, place: &Place<'_>) {
    let mut words = vec![place.server["command"].clone()];
    words.extend(
        place.server["args"]
            .as_array()
            .into_iter()
            .flatten()
            .cloned(),
    );
    let options = json!({ "baseURL": format!("{}/v1", place.model), "apiKey": "none" });
    let models = json!({ "mock": { "name": "mock", "tool_call": true } });
    let settings = json!({
        "autoupdate": false,
        "share": "disabled",
        "permission": "allow",
        "mcp": { "zip": { "type": "local", "command": words, "enabled": true } },
        "provider": {
            "mock": { "npm": "@ai-sdk/openai-compatible", "name": "mock", "options": options, "models": models },
        },
    });
    place.write(".config/opencode/opencode.json", &settings.to_string());
    command
        .args(["run", "--model", "mock/mock", "--format", "json", "go"])
        .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
        .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
        .env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1");
}

fn copilot(command: &mut Command, place: &Place<'_>) {
    let mut server = place.server.clone();
    server["type"] = json!("local");
    server["tools"] = json!(["*"]);
    let servers = json!({ "mcpServers": { "zip": server } });
    place.write(".copilot/mcp-config.json", &servers.to_string());
    command
        .args(["-p", "go", "--allow-all-tools", "--no-color"])
        .env("COPILOT_OFFLINE", "true")
        .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", place.model))
        .env("COPILOT_PROVIDER_API_KEY", "none")
        .env("COPILOT_MODEL", "mock")
        .env("COPILOT_AUTO_UPDATE", "false");
}
