//! Describes how a program is started and called, so that it can be measured.
//!
//! A profile is a JSON file:
//!
//! - `name`: the title of its column
//! - `command`: the program and its arguments
//! - `environment`: additional variables
//! - `files`: files that are written to its home first, as text or JSON
//! - `call`: the `params` of a `tools/call` that calls a server's tool
//! - `search`, `describe`: the `params` for a search and a description, if the program has them
//! - `listed`, `understood`: `{"request": …, "text": …}`: a call whose answer contains this text once all tools are
//!   known, or can be found by meaning
//!
//! `{program}`, `{home}`, `{server}`, `{tool}`, `{tools}` and `{query}` are replaced by texts. A string that consists
//! of `{servers}`, `{serverList}`, `{arguments}` or `{semantic}` is replaced by JSON: the servers as in clients' files, the
//! same as a list with names, the arguments of a call, and whether search by meaning is on. In `command`, a lone `{upstream}` is the command of the first
//! server. A program without `{servers}` and `{serverList}` serves one server and is started once for each.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::home::Home;
use crate::peer::Request;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    pub(crate) name: String,
    command: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    files: BTreeMap<String, Value>,
    call: Value,
    search: Option<Value>,
    describe: Option<Value>,
    pub(crate) listed: Option<Sign>,
    pub(crate) understood: Option<Sign>,
    #[serde(skip)]
    program: String,
}

/// A request and the text that its answer has when something is done.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sign {
    request: Value,
    text: String,
}

/// The servers behind a program.
#[derive(Debug, Clone)]
pub(crate) struct Servers {
    /// The command of each server. The name of a server is its number.
    pub(crate) commands: Vec<Vec<String>>,
    /// The number of tools of all servers.
    pub(crate) tools: usize,
    pub(crate) is_semantic: bool,
}

impl Profile {
    pub(crate) fn read(path: &Path, program: Option<&str>) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(&text, program.unwrap_or_default()).with_context(|| path.display().to_string())
    }

    pub(crate) fn parse(text: &str, program: &str) -> Result<Self> {
        let mut profile: Self = serde_json::from_str(text)?;
        program.clone_into(&mut profile.program);
        Ok(profile)
    }

    /// Whether one process serves all servers.
    pub(crate) fn is_gateway(&self) -> bool {
        let text = json!([self.command, self.environment, self.files]).to_string();
        text.contains(r#""{servers}""#) || text.contains(r#""{serverList}""#)
    }

    /// Writes the profile's files and returns the command that starts the program.
    pub(crate) fn command(&self, servers: &Servers, home: &Home) -> Result<Command> {
        let entries: serde_json::Map<String, Value> = servers
            .commands
            .iter()
            .enumerate()
            .map(|(at, command)| {
                (
                    server_name(at),
                    json!({ "command": command[0], "args": command[1..] }),
                )
            })
            .collect();
        let list = entries.iter().map(|(name, entry)| {
            json!({ "name": name, "protocol": "stdio", "command": entry["command"], "args": entry["args"], "enabled": true })
        });
        let list: Value = list.collect();
        let home_text = home.path().display().to_string();
        let fill = Filling {
            texts: vec![("{program}", &self.program), ("{home}", &home_text)],
            values: vec![
                ("{servers}", Value::Object(entries)),
                ("{serverList}", list),
                ("{semantic}", servers.is_semantic.into()),
            ],
        };
        for (name, content) in &self.files {
            let text = match fill.value(content) {
                Value::String(text) => text,
                json => json.to_string(),
            };
            let path = home.path().join(name);
            if let Some(directory) = path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            std::fs::write(path, text)?;
        }
        let mut words = Vec::new();
        for word in &self.command {
            if word == "{upstream}" {
                words.extend(servers.commands.first().context("a server")?.clone());
            } else {
                words.push(fill.text(word));
            }
        }
        let (program, arguments) = words.split_first().context("`command` is empty")?;
        let mut command = Command::new(program);
        // Each measured session of mcpzip has servers of its own; `daemon` measures shared ones.
        command.env("MCPZIP_DAEMON", "off");
        command.args(arguments).envs(
            self.environment
                .iter()
                .map(|(name, value)| (name, fill.text(value))),
        );
        Ok(command)
    }

    /// A call of a server's tool.
    pub(crate) fn call(&self, server: usize, tool: &str, arguments: Value) -> Request {
        let name = server_name(server);
        let fill = Filling {
            texts: vec![("{server}", &name), ("{tool}", tool)],
            values: vec![("{arguments}", arguments)],
        };
        Request::call(&fill.value(&self.call))
    }

    /// A search. `None` for programs without one.
    pub(crate) fn search(&self, query: &str) -> Option<Request> {
        let fill = Filling {
            texts: vec![("{query}", query)],
            values: Vec::new(),
        };
        Some(Request::call(&fill.value(self.search.as_ref()?)))
    }

    /// A description of a tool. `None` for programs without one.
    pub(crate) fn describe(&self, server: usize, tool: &str) -> Option<Request> {
        let name = server_name(server);
        let fill = Filling {
            texts: vec![("{server}", &name), ("{tool}", tool)],
            values: Vec::new(),
        };
        Some(Request::call(&fill.value(self.describe.as_ref()?)))
    }
}

impl Sign {
    /// The request, and the text that its answer has in the end.
    pub(crate) fn of(&self, servers: &Servers) -> (Request, String) {
        let tools = servers.tools.to_string();
        let fill = Filling {
            texts: vec![("{tools}", &tools)],
            values: Vec::new(),
        };
        (
            Request::call(&fill.value(&self.request)),
            fill.text(&self.text),
        )
    }
}

pub(crate) fn server_name(at: usize) -> String {
    format!("server{at}")
}

/// The replacements of a profile's placeholders.
struct Filling<'a> {
    texts: Vec<(&'static str, &'a str)>,
    values: Vec<(&'static str, Value)>,
}

impl Filling<'_> {
    fn text(&self, text: &str) -> String {
        self.texts
            .iter()
            .fold(text.to_owned(), |text, (name, value)| {
                text.replace(name, value)
            })
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => match self.values.iter().find(|(name, _)| name == text) {
                Some((_, value)) => value.clone(),
                None => Value::String(self.text(text)),
            },
            Value::Array(values) => values.iter().map(|value| self.value(value)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| (name.clone(), self.value(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_filled_in() {
        let profile =
            Profile::parse(include_str!("../profiles/mcpzip.json"), "/bin/mcpzip").unwrap();
        assert!(profile.is_gateway());
        let home = Home::new().unwrap();
        let command = vec!["server".to_owned(), "--flag".to_owned()];
        let servers = Servers {
            commands: vec![command],
            tools: 1,
            is_semantic: false,
        };
        let command = profile.command(&servers, &home).unwrap();
        assert_eq!(command.get_program(), "/bin/mcpzip");
        let config: Value =
            serde_json::from_slice(&std::fs::read(home.path().join("config.json")).unwrap())
                .unwrap();
        assert_eq!(
            config["mcpServers"]["server0"],
            json!({ "command": "server", "args": ["--flag"] })
        );
        assert_eq!(config["search"]["semantic"], false);
    }

    #[test]
    fn the_profiles_of_other_proxies_are_filled_in() {
        for (text, config, servers_at) in [
            (
                include_str!("../profiles/mcpzip-0.1.0.json"),
                ".config/compressed-mcp-proxy/config.json",
                "/mcpServers/server0/command",
            ),
            (
                include_str!("../profiles/avelino-mcp.json"),
                "servers.json",
                "/mcpServers/server0/command",
            ),
            (
                include_str!("../profiles/mcpproxy.json"),
                "mcp_config.json",
                "/mcpServers/0/command",
            ),
        ] {
            let profile = Profile::parse(text, "/bin/other").unwrap();
            assert!(profile.is_gateway(), "{}", profile.name);
            let home = Home::new().unwrap();
            let servers = Servers {
                commands: vec![vec!["server".to_owned()]],
                tools: 1,
                is_semantic: false,
            };
            let command = profile.command(&servers, &home).unwrap();
            assert_eq!(command.get_program(), "/bin/other");
            let config = std::fs::read(home.path().join(config)).unwrap();
            let config: Value = serde_json::from_slice(&config).unwrap();
            assert_eq!(config.pointer(servers_at).unwrap(), "server", "{config}");
        }
    }

    #[test]
    fn a_relay_stands_before_one_server() {
        let profile =
            Profile::parse(include_str!("../profiles/pass-through.json"), "relay").unwrap();
        assert!(!profile.is_gateway());
        let command = vec!["server".to_owned(), "--flag".to_owned()];
        let servers = Servers {
            commands: vec![command],
            tools: 1,
            is_semantic: false,
        };
        let command = profile.command(&servers, &Home::new().unwrap()).unwrap();
        assert!(
            command.get_args().eq(["relay", "server", "--flag"]),
            "{command:?}"
        );
    }
}
