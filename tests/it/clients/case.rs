//! A client's file, what becomes of its servers, and what becomes of the file.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::Setup;
use crate::support::command::{self, Outcome};

/// A home with clients' files in it.
pub(crate) struct Machine {
    setup: Setup,
}

/// One file of one client.
#[must_use]
pub(crate) struct Case {
    client: &'static str,
    file: &'static str,
    before: &'static str,
    moved: Vec<(&'static str, Value)>,
    stay: Vec<(&'static str, &'static str)>,
    after: Option<&'static str>,
    arguments: Vec<&'static str>,
}

/// The files of the clients whose place does not matter to a test.
pub(crate) fn user_file(client: &str) -> &'static str {
    match client {
        "claude-code" => ".claude.json",
        "claude-desktop" => ".config/Claude/claude_desktop_config.json",
        "cursor" => ".cursor/mcp.json",
        "vscode" => ".config/Code/User/mcp.json",
        "windsurf" => ".codeium/windsurf/mcp_config.json",
        "codex" => ".codex/config.toml",
        "gemini-cli" => ".gemini/settings.json",
        "zed" => ".config/zed/settings.json",
        "opencode" => ".config/opencode/opencode.json",
        "cline" => {
            ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
        }
        "roo" => {
            ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"
        }
        "continue" => ".continue/config.yaml",
        "goose" => ".config/goose/config.yaml",
        "kiro" => ".kiro/settings/mcp.json",
        "copilot-cli" => ".copilot/mcp-config.json",
        "lm-studio" => ".lmstudio/mcp.json",
        other => panic!("no client {other}"),
    }
}

/// The file that gets mcpzip's entry if a client has none.
pub(crate) fn new_file(client: &str) -> &'static str {
    match client {
        "continue" => ".continue/mcpServers/mcpzip.json",
        other => user_file(other),
    }
}

/// All clients.
pub(crate) const CLIENTS: [&str; 16] = [
    "claude-code",
    "claude-desktop",
    "cursor",
    "vscode",
    "windsurf",
    "codex",
    "gemini-cli",
    "zed",
    "opencode",
    "cline",
    "roo",
    "continue",
    "goose",
    "kiro",
    "copilot-cli",
    "lm-studio",
];

impl Machine {
    pub(crate) fn new() -> Self {
        Self {
            setup: Setup::new().log_level("error"),
        }
    }

    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    pub(crate) fn home(&self, file: &str) -> PathBuf {
        self.setup.home().path("home").join(file)
    }

    pub(crate) fn put(&self, file: &str, content: &str) -> PathBuf {
        let path = self.home(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.home(file)).unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        command::run(self.setup.command(arguments), "")
    }

    /// Migrates, and gives the report.
    #[track_caller]
    pub(crate) fn migrate(&self, arguments: &[&str]) -> Value {
        self.run(&[&["migrate", "--yes", "--json"], arguments].concat())
            .code(0)
            .json()
    }

    /// Migrates while the files of some client cannot be read.
    #[track_caller]
    pub(crate) fn migrate_readable(&self) -> Value {
        self.run(&["migrate", "--yes", "--json"]).code(6).json()
    }

    #[track_caller]
    pub(crate) fn undo(&self) -> Value {
        self.run(&["undo"]).code(0).json()
    }

    /// The servers that mcpzip is configured with; the configuration has no comments.
    pub(crate) fn servers(&self) -> Value {
        match std::fs::read_to_string(self.setup.config_path()) {
            Ok(text) => serde_json::from_str::<Value>(&text).unwrap()["mcpServers"].clone(),
            Err(_) => json!({}),
        }
    }

    /// All files and what is in them, but for mcpzip's own records and what programs leave in caches.
    pub(crate) fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(directory: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in std::fs::read_dir(directory).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    walk(&path, files);
                } else {
                    // A link may lead nowhere.
                    files.push((path.clone(), std::fs::read(&path).unwrap_or_default()));
                }
            }
        }
        let mut files = Vec::new();
        walk(&self.home(""), &mut files);
        files.sort();
        files.extend(
            std::fs::read(self.setup.config_path())
                .ok()
                .map(|bytes| (self.setup.config_path(), bytes)),
        );
        files
    }
}

/// The verdict on a server in a report, with its new name or the reason.
#[track_caller]
pub(crate) fn verdict(report: &Value, server: &str) -> (String, String) {
    let servers = report["servers"].as_array().unwrap();
    let found = servers.iter().find(|item| item["server"] == server);
    let found = found.unwrap_or_else(|| panic!("no {server} in {report:#}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    let second = if found["reason"].is_null() {
        text("name")
    } else {
        text("reason")
    };
    (text("verdict"), second)
}

impl Case {
    /// The user's file of a client.
    pub(crate) fn new(client: &'static str, before: &'static str) -> Self {
        let (moved, stay) = (Vec::new(), Vec::new());
        let file = user_file(client);
        Self {
            client,
            file,
            before,
            moved,
            stay,
            after: None,
            arguments: Vec::new(),
        }
    }

    /// One more argument.
    pub(crate) fn argument(mut self, argument: &'static str) -> Self {
        self.arguments.push(argument);
        self
    }

    /// A server of the configuration afterwards.
    pub(crate) fn moves(mut self, name: &'static str, entry: Value) -> Self {
        self.moved.push((name, entry));
        self
    }

    /// A server that stays, and a part of the reason.
    pub(crate) fn stays(mut self, name: &'static str, reason: &'static str) -> Self {
        self.stay.push((name, reason));
        self
    }

    /// The file afterwards; `MCPZIP` stands for the program.
    pub(crate) fn after(mut self, after: &'static str) -> Self {
        self.after = Some(after);
        self
    }

    /// Migrates, looks, migrates again, and takes it back.
    #[track_caller]
    pub(crate) fn check(self) {
        let machine = Machine::new();
        let path = machine.put(self.file, self.before);
        let before = machine.everything();
        let mut arguments = vec!["--client", self.client];
        arguments.extend(&self.arguments);
        let looked = machine
            .run(&[&["migrate", "--dry-run"], arguments.as_slice()].concat())
            .code(0);
        assert_eq!(
            machine.everything(),
            before,
            "a look changed something: {looked}"
        );
        let report = machine.migrate(&arguments);

        for (name, entry) in &self.moved {
            assert_eq!(machine.servers()[name], *entry, "`{name}` in {report:#}");
        }
        for (name, reason) in &self.stay {
            let (verdict, why) = verdict(&report, name);
            assert!(
                verdict == "stays" && why.contains(reason),
                "{name} {verdict}: {why}"
            );
        }
        let count = report["servers"].as_array().unwrap().len();
        assert_eq!(count, self.moved.len() + self.stay.len(), "{report:#}");
        let after = std::fs::read_to_string(&path).unwrap();
        if let Some(expected) = self.after {
            let program = json!(crate::support::program::mcpzip()).to_string();
            let plain = program.trim_matches('"');
            assert_eq!(
                after
                    .replace(&program, "\"MCPZIP\"")
                    .replace(plain, "MCPZIP"),
                expected,
                "in {report:#}"
            );
        }
        if self.moved.is_empty() {
            assert_eq!(
                machine.everything(),
                before,
                "nothing moves, so nothing changes: {report:#}"
            );
            return;
        }
        assert!(after.contains("mcpzip"), "no entry of ours:\n{after}");

        let settled = machine.everything();
        let again = machine.migrate(&arguments);
        assert_eq!(
            machine.everything(),
            settled,
            "a second run changed something: {again:#}"
        );
        machine.undo();
        assert_eq!(
            machine.everything(),
            before,
            "not as before, after {report:#}"
        );
    }
}
