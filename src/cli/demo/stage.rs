//! The demo's environment: a temporary directory with a configuration, and a `mcpzip serve` that uses it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, json};
use tokio::process::Command;

use super::SERVER_COMMAND;
use super::client::Client;
use super::directory::TemporaryDirectory;
use crate::config::Environment;
use crate::executable;
use crate::files;
use mcpzip_demo::Server;

/// The temporary directory and the processes in it.
#[derive(Debug)]
pub(super) struct Stage {
    /// `mcpzip serve`, started as a client would start it.
    pub(super) gateway: Client,
    program: PathBuf,
    directory: TemporaryDirectory,
}

impl Stage {
    pub(super) fn build(environment: &Environment) -> anyhow::Result<Self> {
        let program = executable::path().context("cannot tell where this program is")?;
        let directory =
            TemporaryDirectory::create().context("cannot create a temporary directory")?;
        let config_file = directory.path().join("config.json");
        let entries: Map<_, _> = Server::ALL
            .into_iter()
            .map(|server| {
                let entry = json!({ "command": program, "args": arguments(server, directory.path(), true) });
                (server.name().to_owned(), entry)
            })
            .collect();
        let config = serde_json::to_vec_pretty(&json!({ "mcpServers": entries }))?;
        files::replace(&config_file, &[&config])
            .context("cannot write the demo's configuration")?;
        let mut serve = Command::new(&program);
        serve
            .args(["--log", "error", "serve", "--alone", "--config"])
            .arg(&config_file);
        serve.arg("--cache-dir").arg(directory.path().join("cache"));
        serve.arg("--state-dir").arg(directory.path().join("state"));
        // The user's own settings must not affect the demo.
        for (name, _) in environment
            .iter()
            .filter(|(name, _)| name.starts_with("MCPZIP_"))
        {
            serve.env_remove(name);
        }
        Ok(Self {
            gateway: Client::start(serve)?,
            program,
            directory,
        })
    }

    /// Starts a demo server without the gateway.
    pub(super) fn start_directly(&self, server: Server) -> anyhow::Result<Client> {
        let mut command = Command::new(&self.program);
        command.args(arguments(server, self.directory.path(), false));
        Client::start(command)
    }

    /// The process that the gateway started for `server`.
    #[cfg(unix)]
    pub(super) fn process_of(&self, server: Server) -> anyhow::Result<rustix::process::Pid> {
        let text = std::fs::read_to_string(pid_file(self.directory.path(), server))?;
        let number: i32 = text.trim().parse()?;
        rustix::process::Pid::from_raw(number).context("0 is not a process id")
    }

    /// Ends the gateway and its servers, and removes the directory.
    pub(super) async fn close(self) {
        self.gateway.close().await;
    }
}

fn arguments(server: Server, directory: &Path, is_behind_gateway: bool) -> Vec<PathBuf> {
    let mut arguments = vec![
        SERVER_COMMAND.into(),
        server.name().into(),
        directory.join("store"),
    ];
    if is_behind_gateway {
        arguments.extend(["--pid-file".into(), pid_file(directory, server)]);
    }
    arguments
}

fn pid_file(directory: &Path, server: Server) -> PathBuf {
    directory.join(format!("{}.pid", server.name()))
}
