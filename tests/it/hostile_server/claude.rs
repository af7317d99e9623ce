//! Claude Code whose model is a stand-in on loopback that follows a script. After each step it waits for the test.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{Answer, Call, Model};
use crate::support::{Setup, program, until};

/// The client in a home of its own, and the server that is its model.
pub(super) struct Claude {
    directory: PathBuf,
    model: Child,
    client: Child,
    /// The answers of the steps before.
    seen: usize,
}

impl Claude {
    /// Starts it with a script of these steps. `None`, with a line on stderr, where it or its model is not installed.
    pub(super) fn start(setup: &Setup, steps: &[Vec<Call>]) -> Option<Self> {
        let (program, stand_in) = match (claude(), stand_in()) {
            (Some(program), Some(stand_in)) => (program, stand_in),
            missing => {
                let text = "SKIPPED: no real client before the hostile server; MCPZIP_TEST_CLAUDE names Claude Code, and MCPZIP_TEST_MODEL its stand-in model";
                // Nothing is lost for the test when nobody listens.
                let _ = writeln!(std::io::stderr().lock(), "\n{text}: {missing:?}\n");
                return None;
            }
        };
        let directory = setup.home().path("claude");
        for inner in ["home", "project", "api"] {
            fs::create_dir_all(directory.join(inner)).unwrap();
        }
        write(&directory, "script.json", &script(&directory, steps));
        setup.save();
        write(&directory, "mcp.json", &entry(setup));
        let model = Command::new("python3")
            .arg(stand_in)
            .args([
                "--script",
                "script.json",
                "--log",
                "api",
                "--port-file",
                "port",
            ])
            .current_dir(&directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is a Python");
        let port = until("the stand-in listens", || {
            let port = fs::read_to_string(directory.join("port")).ok()?;
            port.trim().parse::<u16>().ok()
        });
        let output = fs::File::create(directory.join("output")).unwrap();
        let path = setup.command(&[]).get_envs().find_map(|(name, value)| {
            (name == "PATH").then(|| value.unwrap_or_default().to_owned())
        });
        let client = Command::new(program)
            .args([
                "-p",
                "go",
                "--mcp-config",
                "../mcp.json",
                "--strict-mcp-config",
            ])
            .args(["--allowedTools", "mcp__mcpzip__*,Bash", "--verbose"])
            .current_dir(directory.join("project"))
            .env_clear()
            .env("PATH", path.unwrap_or_default())
            .env("HOME", directory.join("home"))
            .env("LANG", "C.UTF-8")
            .env("DISABLE_AUTOUPDATER", "1")
            .env("ENABLE_TOOL_SEARCH", "false")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"))
            .env("ANTHROPIC_API_KEY", "sk-ant-dummy-for-the-stand-in")
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Some(Self {
            directory,
            model,
            client,
            seen: 0,
        })
    }

    /// Lets the client end.
    pub(super) fn finish(mut self) {
        self.go_on();
        let status = self.client.wait().unwrap();
        assert!(status.success(), "{}", self.output());
    }

    /// The person has looked.
    fn go_on(&self) {
        write(&self.directory, "seen", &json!(self.seen));
    }

    fn output(&self) -> String {
        fs::read_to_string(self.directory.join("output")).unwrap_or_default()
    }

    /// The results that the client has sent to its model.
    fn results(&self) -> Vec<Answer> {
        let requests = fs::read_dir(self.directory.join("api")).unwrap();
        let mut requests: Vec<PathBuf> = requests.map(|entry| entry.unwrap().path()).collect();
        requests.retain(|path| path.to_string_lossy().ends_with("-turn.json"));
        let last = requests.iter().max().expect("there was a request");
        let request: Value = serde_json::from_slice(&fs::read(last).unwrap()).unwrap();
        let messages = request["body"]["messages"].as_array().unwrap().iter();
        let blocks =
            messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
        let results = blocks.filter(|block| block["type"] == "tool_result");
        results.map(answer).collect()
    }
}

impl Model for Claude {
    fn play(&mut self, step: usize, calls: &[Call]) -> Vec<Answer> {
        if step > 0 {
            self.go_on();
        }
        let done = self.directory.join(format!("done-{step}"));
        until("the model has made its calls", || {
            if let Ok(Some(status)) = self.client.try_wait() {
                panic!("the client ended with {status}: {}", self.output());
            }
            done.exists().then_some(())
        });
        let mut results = self.results();
        let answers: Vec<Answer> = results.drain(self.seen..).collect();
        assert_eq!(answers.len(), calls.len(), "{}", self.output());
        // The command with which it waits has a result too.
        self.seen += answers.len() + 1;
        answers
    }
}

impl Drop for Claude {
    fn drop(&mut self) {
        for process in [&mut self.client, &mut self.model] {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn write(directory: &Path, name: &str, json: &Value) {
    fs::write(directory.join(name), json.to_string()).unwrap();
}

/// The turns of the model: its calls, and after each step a command that ends when the test has looked.
fn script(directory: &Path, steps: &[Vec<Call>]) -> Value {
    let (mut turns, mut seen) = (Vec::new(), 0);
    for (step, calls) in steps.iter().enumerate() {
        turns.extend(calls.iter().map(|(tool, arguments)| {
            json!({ "tool": format!("mcp__mcpzip__{tool}"), "input": arguments })
        }));
        seen += calls.len() + 1;
        let directory = directory.display();
        let wait = format!(
            "cd '{directory}' && touch done-{step} && until [ \"$(cat seen 2>/dev/null)\" = {seen} ]; do sleep 0.05; done"
        );
        turns.push(json!({ "tool": "Bash", "input": { "command": wait, "description": "Wait" } }));
    }
    turns.push(json!({ "text": "done" }));
    Value::Array(turns)
}

/// The configuration of the client.
fn entry(setup: &Setup) -> Value {
    let command = setup.command(&["serve"]);
    let variables = command.get_envs().filter_map(|(name, value)| {
        let value = value?.to_string_lossy().into_owned();
        Some((name.to_string_lossy().into_owned(), json!(value)))
    });
    let variables: serde_json::Map<String, Value> = variables.collect();
    json!({ "mcpServers": { "mcpzip": {
        "command": program::mcpzip(), "args": ["serve"], "env": variables,
    } } })
}

fn answer(result: &Value) -> Answer {
    let text = match &result["content"] {
        Value::String(text) => text.clone(),
        blocks => {
            let texts = blocks.as_array().into_iter().flatten();
            let texts = texts.filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
    };
    Answer {
        is_error: result["is_error"] == true,
        text,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests have no configuration of their own"
)]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// The file that a variable names; an empty variable asks for a skip.
fn named_file(path: PathBuf) -> Option<PathBuf> {
    (!path.as_os_str().is_empty()).then_some(path)
}

fn claude() -> Option<PathBuf> {
    if let Some(named) = variable("MCPZIP_TEST_CLAUDE") {
        return named_file(named);
    }
    let paths = variable("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&paths).map(|path| path.join("claude"));
    found.find(|path| path.exists())
}

fn stand_in() -> Option<PathBuf> {
    let shared = "../shared/clients/mock_anthropic.py";
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join(shared);
    match variable("MCPZIP_TEST_MODEL") {
        Some(named) => named_file(named),
        None => shared.exists().then_some(shared),
    }
}
