//! A program whose subcommands are tools (`"cli": true`).
//!
//! The tools come from the program's own help: `help.rs` runs the program for it, `manual.rs` finds the manual page,
//! `page/` reads both, and `tools.rs` makes definitions. A call starts the program with a list of arguments
//! (`arguments.rs`), without a shell.

mod arguments;
mod help;
mod kept;
mod manual;
mod page;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use crate::config::{CommandLine, Stdio, find_program};
use crate::tool::ServerName;
use crate::upstream::{
    ConnectError, Finished, Introduction, Run, Source, SourceError, UpstreamContext,
};
use help::Help;
use kept::Program;
use tools::Toolset;

/// The size limit of a program's stdout, and of its stderr, in bytes.
const LARGEST: usize = 16 * 1024 * 1024;

/// A program, opened as a server.
#[derive(Debug)]
pub(super) struct CommandSource {
    program: Stdio,
    command_line: CommandLine,
    /// The program's file.
    file: PathBuf,
    /// The directory of kept help; `None` keeps none.
    kept: Option<PathBuf>,
    context: Arc<UpstreamContext>,
    /// The tools, once they are known, and the state of the program's file at that time.
    known: Mutex<Option<(Program, Arc<Toolset>)>>,
}

impl CommandSource {
    /// Opens a program. Nothing is started before its tools are needed.
    ///
    /// # Errors
    /// When there is no such program.
    pub(super) fn open(
        server: &ServerName,
        program: &Stdio,
        command_line: &CommandLine,
        kept: Option<&Path>,
        context: &Arc<UpstreamContext>,
    ) -> Result<Self, ConnectError> {
        let own = program.env.get("PATH").map(|path| path.expose().as_str());
        let path = own.or_else(|| context.variables.get("PATH"));
        let found = find_program(
            &program.command,
            path.unwrap_or_default(),
            &context.variables,
        );
        let file = found.ok_or_else(|| ConnectError::Spawn {
            server: server.clone(),
            command: program.command.clone(),
            source: std::io::ErrorKind::NotFound.into(),
        })?;
        Ok(Self {
            program: program.clone(),
            command_line: command_line.clone(),
            file,
            kept: kept.map(Path::to_owned),
            context: context.clone(),
            known: Mutex::default(),
        })
    }

    /// The tools. The help is read again if the program's file has changed.
    async fn toolset(&self) -> Result<Arc<Toolset>, String> {
        let program = Program::of(&self.file, &self.program, &self.command_line);
        let mut known = self.known.lock().await;
        if let Some((state, tools)) = &*known
            && *state == program
        {
            return Ok(tools.clone());
        }
        let tools = if self.command_line.tools.is_empty() {
            let help = Help {
                program: &self.program,
                file: &self.file,
                command_line: &self.command_line,
                context: &self.context,
            };
            let pages = help.pages(&program, self.kept.as_deref()).await?;
            Toolset::of_pages(&pages, &self.program, &self.command_line)
        } else {
            Toolset::of_entry(&self.command_line)
        };
        let tools = Arc::new(tools);
        *known = Some((program, tools.clone()));
        Ok(tools)
    }
}

impl Source for CommandSource {
    fn introduction(&self) -> Introduction {
        Introduction::of_source(r#"{"tools":{}}"#)
    }

    fn tools(&self) -> BoxFuture<'_, Result<Vec<String>, SourceError>> {
        Box::pin(async move {
            let tools = self.toolset().await.map_err(SourceError::Arguments)?;
            Ok(tools.definitions())
        })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a RawValue,
    ) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(async move {
            let tools = self.toolset().await.map_err(SourceError::Arguments)?;
            let tool = tools.get(tool).ok_or(SourceError::UnknownTool)?;
            let given: Map<String, Value> =
                serde_json::from_str(arguments.get()).map_err(|_| {
                    SourceError::Arguments("the arguments must be an object".to_owned())
                })?;
            let (arguments, input) = tool.arguments(&given).map_err(SourceError::Arguments)?;
            let run = Run {
                program: &self.program,
                arguments: &arguments,
                variables: &help::PLAIN,
                directory: None,
                input: input.as_deref(),
                limit: LARGEST,
            };
            Ok(match self.context.run(run).await {
                Ok(finished) => answer(&finished),
                Err(error) => failure(&format!(
                    "`{}` cannot be run: {error}",
                    self.program.command
                )),
            })
        })
    }
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn failure(reason: &str) -> String {
    json!({ "content": [text(reason)], "isError": true }).to_string()
}

/// The result of a call: stdout, then stderr and the exit code if there is something to say.
fn answer(finished: &Finished) -> String {
    let stdout = String::from_utf8_lossy(&finished.stdout);
    let stderr = String::from_utf8_lossy(&finished.stderr);
    let is_error = !finished.status.is_some_and(|status| status.success());
    let mut content = Vec::new();
    if !stdout.is_empty() {
        content.push(text(&stdout));
    }
    if !stderr.trim().is_empty() {
        content.push(text(&format!("[stderr]\n{}", stderr.trim_end())));
    }
    match finished.status {
        None => content.push(text(&format!(
            "[the program was ended: its output exceeds {LARGEST} bytes]"
        ))),
        Some(status) if is_error || content.is_empty() => {
            content.push(text(&format!("[{status}]")));
        }
        Some(_) => {}
    }
    let mut result = json!({ "content": content, "isError": is_error });
    let object = Some(stdout.trim()).filter(|text| text.starts_with('{') && !is_error);
    if let Some(Ok(object @ Value::Object(_))) = object.map(serde_json::from_str::<Value>) {
        result["structuredContent"] = object;
    }
    result.to_string()
}
