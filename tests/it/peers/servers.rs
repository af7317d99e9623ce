//! The seven real servers: how each is started, what it is known to offer, and what is asked of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::install::Peers;
use super::page;
use super::served::Served;

/// A server's entry in a configuration.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) command: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
}

/// A real server.
#[derive(Debug)]
pub(super) struct Real {
    pub(super) name: &'static str,
    pub(super) entry: Entry,
    /// How many tools it offers to a client without capabilities.
    pub(super) tools: usize,
    /// A need in plain words, and the tool for it.
    pub(super) need: &'static str,
    pub(super) fitting: &'static str,
    /// Calls whose results depend on nothing but the arguments and the scratch directory.
    pub(super) calls: Vec<(&'static str, Value)>,
}

impl Entry {
    pub(super) fn new(command: PathBuf, args: &[&str]) -> Self {
        Self {
            command,
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: Vec::new(),
        }
    }

    pub(super) fn variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// As it is written in a configuration.
    pub(super) fn to_json(&self) -> String {
        let env: serde_json::Map<_, _> = self
            .env
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        json!({ "command": self.command, "args": self.args, "env": env }).to_string()
    }
}

/// The server with a bit of everything.
pub(super) fn everything(peers: &Peers) -> Entry {
    Entry::new(peers.npm("mcp-server-everything"), &[])
}

/// The server of the Python SDK that has all that the conformance suite asks for, over Streamable HTTP in both eras.
pub(super) fn fixture(peers: &Peers) -> Served {
    let mut command = Command::new(peers.python(2, "python"));
    command
        .args(["-m", "mcp_everything_server", "--port", "0"])
        .env("PYTHONPATH", peers.fixture());
    Served::start(&mut command)
}

/// All of them. They work on `scratch`, and the one that remembers does so in the file `memory`.
pub(super) fn all(peers: &Peers, scratch: &Scratch, memory: &Path) -> Vec<Real> {
    let python = |program| peers.python(2, program);
    let files = scratch.files();
    let hello = files.join("hello.txt");
    let repository = scratch.repository();
    vec![
        Real {
            name: "everything",
            entry: everything(peers),
            // Of its fourteen, `get-roots-list` is for clients with roots only.
            tools: 13,
            need: "add two numbers together",
            fitting: "get-sum",
            calls: vec![
                ("echo", json!({ "message": "grüße, 世界 🌍" })),
                ("get-sum", json!({ "a": 0.1, "b": 0.2 })),
                ("get-structured-content", json!({ "location": "Chicago" })),
                ("get-tiny-image", json!({})),
                (
                    "get-annotated-message",
                    json!({ "messageType": "error", "includeImage": true }),
                ),
                ("get-resource-links", json!({ "count": 3 })),
            ],
        },
        Real {
            name: "filesystem",
            entry: Entry::new(
                peers.npm("mcp-server-filesystem"),
                &[&files.display().to_string()],
            ),
            tools: 14,
            need: "read what a text file says",
            fitting: "read_text_file",
            calls: vec![
                ("read_text_file", json!({ "path": hello })),
                ("list_directory", json!({ "path": files })),
                (
                    "read_text_file",
                    json!({ "path": files.join("missing.txt") }),
                ),
                (
                    "read_text_file",
                    json!({ "path": scratch.path().join("outside.txt") }),
                ),
            ],
        },
        Real {
            name: "memory",
            entry: Entry::new(peers.npm("mcp-server-memory"), &[])
                .variable("MEMORY_FILE_PATH", memory.display().to_string()),
            tools: 9,
            need: "remember new people and things in the knowledge graph",
            fitting: "create_entities",
            calls: vec![
                (
                    "create_entities",
                    json!({ "entities": [{ "name": "Ada", "entityType": "person", "observations": ["wrote notes"] }] }),
                ),
                ("open_nodes", json!({ "names": ["Ada"] })),
                ("read_graph", json!({})),
            ],
        },
        Real {
            name: "sequential-thinking",
            entry: Entry::new(peers.npm("mcp-server-sequential-thinking"), &[]),
            tools: 1,
            need: "think through a problem step by step",
            fitting: "sequentialthinking",
            calls: vec![(
                "sequentialthinking",
                json!({ "thought": "First.", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": true }),
            )],
        },
        Real {
            name: "git",
            entry: Entry::new(
                python("mcp-server-git"),
                &["--repository", &repository.display().to_string()],
            ),
            tools: 12,
            need: "what is the status of my working tree",
            fitting: "git_status",
            calls: vec![
                ("git_status", json!({ "repo_path": repository })),
                (
                    "git_log",
                    json!({ "repo_path": repository, "max_count": 1 }),
                ),
                ("git_diff_unstaged", json!({ "repo_path": repository })),
                ("git_status", json!({ "repo_path": files })),
            ],
        },
        Real {
            name: "time",
            entry: Entry::new(python("mcp-server-time"), &["--local-timezone", "UTC"]),
            tools: 2,
            need: "what time is it in Tokyo when it is noon in Berlin",
            fitting: "convert_time",
            calls: vec![(
                "convert_time",
                json!({ "source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
            )],
        },
        Real {
            name: "fetch",
            // Without it, it refuses addresses of this machine.
            entry: Entry::new(python("mcp-server-fetch"), &["--allow-private-ips"]),
            tools: 1,
            need: "read a web page",
            fitting: "fetch",
            calls: vec![
                ("fetch", json!({ "url": scratch.page })),
                (
                    "fetch",
                    json!({ "url": scratch.page.replace("moons", "suns") }),
                ),
            ],
        },
    ]
}

/// What the servers work on: some files, a repository and a web page.
#[derive(Debug)]
pub(super) struct Scratch {
    directory: tempfile::TempDir,
    page: String,
}

impl Scratch {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("there is a directory for temporary files");
        let scratch = Self {
            directory,
            page: page::serve(),
        };
        let (files, repository) = (scratch.files(), scratch.repository());
        std::fs::create_dir_all(&files).unwrap();
        std::fs::create_dir_all(&repository).unwrap();
        std::fs::write(files.join("hello.txt"), "hello from a file\n").unwrap();
        std::fs::write(scratch.path().join("outside.txt"), "not for the server\n").unwrap();
        let git = |arguments: &[&str]| {
            let author = [
                "-c",
                "user.name=Ada",
                "-c",
                "user.email=ada@example.invalid",
                "-c",
                "commit.gpgsign=false",
            ];
            let mut command = Command::new("git");
            command
                .args(author)
                .args(arguments)
                .current_dir(&repository)
                .stdout(std::process::Stdio::null());
            assert!(
                command.status().expect("git starts").success(),
                "{command:?}"
            );
        };
        git(&["init", "--quiet", "--initial-branch=main"]);
        std::fs::write(repository.join("a.txt"), "one\n").unwrap();
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message=first light"]);
        std::fs::write(repository.join("a.txt"), "one\ntwo\n").unwrap();
        scratch
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn files(&self) -> PathBuf {
        self.path().join("files")
    }

    fn repository(&self) -> PathBuf {
        self.path().join("repository")
    }
}
