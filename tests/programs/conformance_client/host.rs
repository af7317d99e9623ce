//! A host of either era with one `mcpzip` on stdio, and one server behind that.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::input;

pub(crate) type Failure = Box<dyn Error>;

/// The name of the suite's server.
pub(crate) const UPSTREAM: &str = "suite";

/// The suite waits half a minute.
const PATIENCE: Duration = Duration::from_secs(20);

const MODERN: &str = "2026-07-28";

#[derive(Debug)]
pub(crate) struct Host {
    revision: String,
    home: PathBuf,
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<String>,
    answers: HashMap<u64, Value>,
    next_id: u64,
}

impl Host {
    /// Starts `mcpzip` with the server at `url`, and greets it as a host of `revision` does.
    pub(crate) fn start(url: &str, revision: &str) -> Result<Self, Failure> {
        let home = std::env::temp_dir().join(format!("mcpzip-conformance-{}", std::process::id()));
        fs::create_dir_all(&home)?;
        let era = if revision == MODERN {
            "modern"
        } else {
            "legacy"
        };
        let config = home.join("config.json");
        fs::write(
            &config,
            json!({ "mcpServers": { UPSTREAM: { "url": url, "era": era } } }).to_string(),
        )?;
        let mut command = Command::new(mcpzip()?);
        command
            .arg("serve")
            .arg("--config")
            .arg(config)
            .arg("--cache-dir")
            .arg(home.join("cache"));
        command
            .arg("--state-dir")
            .arg(home.join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or("stdout is piped")?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            // Ends with `mcpzip`, or when nobody asks any more.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut host = Self {
            revision: revision.to_owned(),
            home,
            child,
            stdin,
            messages,
            answers: HashMap::new(),
            next_id: 1,
        };
        host.greet()?;
        Ok(host)
    }

    fn greet(&mut self) -> Result<(), Failure> {
        if self.is_modern() {
            let id = self.begin("server/discover", Map::new())?;
            return self.answer(id).map(drop);
        }
        let params = json!({
            "protocolVersion": self.revision,
            "capabilities": capabilities(),
            "clientInfo": { "name": "conformance-client", "version": "1" },
        });
        let id = self.begin("initialize", object(params))?;
        let hello = self.answer(id)?;
        if hello["protocolVersion"] != self.revision.as_str() {
            return Err(format!("not {}: {hello}", self.revision).into());
        }
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision == MODERN
    }

    /// Waits until the server is listed, with `count` tools.
    pub(crate) fn listed(&mut self, count: usize) -> Result<(), Failure> {
        let listed = self.listed_any()?;
        if listed == count {
            Ok(())
        } else {
            Err(format!("{listed} tools are listed, not {count}").into())
        }
    }

    /// Waits until the server is listed, and returns how many tools it has.
    pub(crate) fn listed_any(&mut self) -> Result<usize, Failure> {
        let start = Instant::now();
        loop {
            let status = text(&self.call("proxy_status", &json!({}))?);
            let state = format!("{UPSTREAM}: ready, ");
            let count = status.lines().find_map(|line| {
                line.trim()
                    .strip_prefix(&state)?
                    .split(' ')
                    .next()?
                    .parse()
                    .ok()
            });
            match count {
                Some(count) => return Ok(count),
                None if start.elapsed() > PATIENCE => {
                    return Err(format!("it is not ready: {status}").into());
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The names of the tools that fit `query`, as an agent sees them.
    pub(crate) fn search(&mut self, query: &str) -> Result<Vec<String>, Failure> {
        let arguments = json!({ "query": query, "server": UPSTREAM, "limit": 50 });
        let hits = text(&self.call("search_tools", &arguments)?);
        let prefix = format!("{UPSTREAM}__");
        Ok(hits
            .lines()
            .filter_map(|line| line.strip_prefix(&prefix)?.split('(').next())
            .map(str::to_owned)
            .collect())
    }

    /// The server's own definition of a tool.
    pub(crate) fn describe(&mut self, tool: &str) -> Result<Value, Failure> {
        let name = format!("{UPSTREAM}__{tool}");
        let result = self.call("describe_tool", &json!({ "name": name }))?;
        let described = text(&result);
        let definition = described
            .strip_prefix(&format!("{name}\n"))
            .ok_or_else(|| format!("no {tool}: {result}"))?;
        let mut values = serde_json::Deserializer::from_str(definition).into_iter();
        Ok(values.next().ok_or("there is a definition")??)
    }

    /// Calls a tool, and answers what it asks until it has its result.
    pub(crate) fn execute(&mut self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        let mut members = Map::new();
        for _round in 0..10 {
            let id = self.begin_execute(tool, arguments, members)?;
            let answer = self.answer(id)?;
            match self.inputs(&answer)? {
                Some(inputs) => members = inputs,
                None => return Ok(answer),
            }
        }
        Err(format!("{tool} asks without end").into())
    }

    /// Begins to call a tool; `members` are those of a further round.
    pub(crate) fn begin_execute(
        &mut self,
        tool: &str,
        arguments: &Value,
        members: Map<String, Value>,
    ) -> Result<u64, Failure> {
        let call = json!({ "name": format!("{UPSTREAM}__{tool}"), "arguments": arguments });
        let mut params = object(json!({ "name": "execute_tool", "arguments": call }));
        params.extend(members);
        self.begin("tools/call", params)
    }

    /// The members of the next round, when `answer` asks for one (2026-07-28, basic/patterns/mrtr).
    pub(crate) fn inputs(&self, answer: &Value) -> Result<Option<Map<String, Value>>, Failure> {
        if answer["resultType"] != "input_required" {
            let problem = || format!("the call failed: {answer}");
            return if answer["isError"] == true {
                Err(problem().into())
            } else {
                Ok(None)
            };
        }
        let mut responses = Map::new();
        for (name, request) in answer["inputRequests"].as_object().into_iter().flatten() {
            let response =
                input::answer(request).ok_or_else(|| format!("not for a host: {request}"))?;
            responses.insert(name.clone(), response);
        }
        let mut members = object(json!({ "inputResponses": responses }));
        if let Some(state) = answer.get("requestState") {
            members.insert("requestState".to_owned(), state.clone());
        }
        Ok(Some(members))
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        let id = self.begin(
            "tools/call",
            object(json!({ "name": tool, "arguments": arguments })),
        )?;
        self.answer(id)
    }

    fn begin(&mut self, method: &str, mut params: Map<String, Value>) -> Result<u64, Failure> {
        let id = self.next_id;
        self.next_id += 1;
        if self.is_modern() {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": { "name": "conformance-client", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": capabilities(),
            });
            params.insert("_meta".to_owned(), meta);
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        Ok(id)
    }

    /// Waits for the result of a request; requests that come from `mcpzip` meanwhile are answered.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Failure> {
        loop {
            if let Some(mut answer) = self.answers.remove(&id) {
                let result = answer["result"].take();
                return if result.is_null() {
                    Err(format!("refused: {answer}").into())
                } else {
                    Ok(result)
                };
            }
            let line = self
                .messages
                .recv_timeout(PATIENCE)
                .map_err(|_| format!("no answer to request {id}"))?;
            let message: Value = serde_json::from_str(&line)?;
            match (message["method"].as_str(), message.get("id")) {
                (Some(_), Some(asked)) => {
                    let mut answer = json!({ "jsonrpc": "2.0", "id": asked });
                    match (input::answer(&message), message["method"] == "ping") {
                        (Some(result), _) => answer["result"] = result,
                        (None, true) => answer["result"] = json!({}),
                        (None, false) => {
                            answer["error"] =
                                json!({ "code": -32601, "message": "unknown method" });
                        }
                    }
                    self.send(&answer)?;
                }
                (None, Some(answered)) => {
                    let answered = answered
                        .as_u64()
                        .ok_or_else(|| format!("an answer to nothing: {message}"))?;
                    self.answers.insert(answered, message);
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let stdin = self.stdin.as_mut().ok_or("stdin is closed")?;
        Ok(stdin.write_all(format!("{message}\n").as_bytes())?)
    }

    /// Closes `mcpzip`'s stdin and waits for its end, so that the server sees how it says goodbye.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        drop(self.stdin.take());
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return if status.success() {
                    Ok(())
                } else {
                    Err(format!("mcpzip ended with {status}").into())
                };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err("mcpzip does not end".into())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // After a good end there is nothing left to do here.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// What this host can do for a server.
fn capabilities() -> Value {
    json!({ "elicitation": { "form": { "applyDefaults": true } }, "sampling": {}, "roots": {} })
}

/// Cargo builds examples into a directory below that of the program.
pub(crate) fn mcpzip() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let directory = own
        .parent()
        .and_then(Path::parent)
        .ok_or("an example is in a directory")?;
    Ok(directory
        .join("mcpzip")
        .with_extension(std::env::consts::EXE_EXTENSION))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => unreachable!("{other} is written as an object"),
    }
}

/// The text of a result's first block.
fn text(result: &Value) -> String {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
