//! A client of `mcpzip serve` that sends one request after the other.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context as _;
use serde_json::{Value, json};

/// A running `mcpzip`, ended on drop.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    /// Starts `mcpzip serve` with a separate home.
    pub(crate) fn start(program: &Path, home: &Path, config: &Value) -> anyhow::Result<Self> {
        Self::start_with(program, home, config, &["serve"])
    }

    /// Starts `mcpzip serve --direct`, which lists every tool.
    pub(crate) fn start_direct(
        program: &Path,
        home: &Path,
        config: &Value,
    ) -> anyhow::Result<Self> {
        Self::start_with(program, home, config, &["serve", "--direct"])
    }

    fn start_with(
        program: &Path,
        home: &Path,
        config: &Value,
        arguments: &[&str],
    ) -> anyhow::Result<Self> {
        std::fs::create_dir_all(home)?;
        let path = home.join("config.json");
        std::fs::write(&path, config.to_string())?;
        let mut child = Command::new(program)
            .args(arguments)
            .arg("--config")
            .arg(&path)
            .arg("--cache-dir")
            .arg(home.join("cache"))
            .arg("--state-dir")
            .arg(home.join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let mut client = Self {
            child,
            stdin,
            stdout,
            next: 0,
        };
        let info = json!({ "name": "answer-tokens", "version": "1" });
        client.ask(
            "initialize",
            &json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info }),
        )?;
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(client)
    }

    /// Calls a tool through `execute_tool` and returns the result.
    pub(crate) fn execute(
        &mut self,
        tool: &str,
        arguments: &Value,
        select: Option<&str>,
    ) -> anyhow::Result<Value> {
        let mut call = json!({ "name": tool, "arguments": arguments, "timeout": 120 });
        if let Some(filter) = select {
            call["select"] = json!(filter);
        }
        self.call("execute_tool", &call)
    }

    /// Calls one of mcpzip's tools and returns the result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )
    }

    /// Lists the servers' tools until all have answered, because servers start slowly on a busy machine.
    pub(crate) fn wait_for_servers(&mut self) -> anyhow::Result<()> {
        let mut status = String::new();
        for _ in 0..12 {
            status = self.call("proxy_refresh", &json!({}))?["content"][0]["text"].to_string();
            if !["failed", "connecting", "faulty", ", 0 tools"]
                .iter()
                .any(|state| status.contains(state))
            {
                return Ok(());
            }
        }
        anyhow::bail!("not all servers list their tools: {status}")
    }

    /// All tools that mcpzip lists.
    pub(crate) fn tools(&mut self) -> anyhow::Result<Vec<Value>> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        loop {
            let params =
                cursor.map_or_else(|| json!({}), |cursor: Value| json!({ "cursor": cursor }));
            let page = self.ask("tools/list", &params)?;
            tools.extend(page["tools"].as_array().cloned().unwrap_or_default());
            match page.get("nextCursor") {
                Some(next) => cursor = Some(next.clone()),
                None => return Ok(tools),
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.next += 1;
        self.write(
            &json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }),
        )?;
        loop {
            let mut line = String::new();
            anyhow::ensure!(self.stdout.read_line(&mut line)? > 0, "mcpzip has ended");
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == self.next && message.get("method").is_none() {
                anyhow::ensure!(
                    message.get("error").is_none(),
                    "{method} was refused: {message}"
                );
                return Ok(message["result"].clone());
            }
        }
    }

    fn write(&mut self, message: &Value) -> anyhow::Result<()> {
        let stdin = self.stdin.as_mut().context("stdin is open")?;
        writeln!(stdin, "{message}")?;
        Ok(stdin.flush()?)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Closing stdin ends the process and its servers.
        self.stdin = None;
        let _ = self.child.wait();
    }
}
