//! `mcpzip call`: calls one tool and prints its result.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::call_arguments::{self, Input, OwnOption, Source};
use super::completions;
use super::daemon_option::DaemonOption;
use super::diagnostics::Exit;
use super::output::{Output, faint};
use super::profile_option::ProfileOption;
use super::question::agrees;
use super::recorder::Recorder;
use super::rules;
use crate::app::App;
use crate::mcp::Object;
use crate::proxy::{Agreement, Call, Failure, Progress, Reply};

const POSITIVE: &str = "the timeout must be a positive number of seconds";

#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "Examples:
  mcpzip call notes__create_note '{\"title\": \"milk\"}'
  mcpzip call github__create_issue --title broken --labels bug --labels urgent
  mcpzip call --text time__get_current_time | tail -n 1
  echo '{\"path\": \"/tmp\"}' | mcpzip call filesystem__list_directory

Each parameter of the tool is a flag. Put flags that mcpzip has, too, after `--`. A pipe is read only if the command line has no arguments.")]
pub(super) struct Arguments {
    /// Name of the tool, as `mcpzip search` shows it
    #[arg(add = completions::of_tools())]
    name: String,
    /// Arguments as JSON; `-` reads them from stdin
    #[arg(num_args = 0..)]
    arguments: Vec<String>,
    /// Arguments as flags, such as `--title x --labels a --labels b`
    #[arg(last = true, allow_hyphen_values = true, value_name = "PARAMETERS")]
    parameters: Vec<String>,
    /// Print the content alone, without the JSON around it, also into a pipe
    #[arg(long, conflicts_with = "json")]
    #[serde(default)]
    text: bool,
    /// Time limit for the call in seconds
    #[arg(long, allow_negative_numbers = true)]
    timeout: Option<f64>,
    /// The content of stdin, read for another process that runs the call.
    #[arg(skip)]
    input: Option<Input>,
    /// Whether a person reads the answer, for another process that runs the call.
    #[arg(skip)]
    #[serde(default)]
    is_person: bool,
    /// The options of mcpzip after the tool's name, one of which may be meant for the tool.
    #[arg(skip)]
    #[serde(default)]
    pub(super) own_options: Vec<OwnOption>,
    #[command(flatten)]
    pub(super) daemon: DaemonOption,
    #[command(flatten)]
    pub(super) profile: ProfileOption,
}

impl Arguments {
    /// Reads the arguments from stdin, if they are not on the command line, for a call that another process runs.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) async fn read_input(&mut self) -> Result<(), Exit> {
        self.is_person = has_person();
        self.input = match self.arguments.first().map(String::as_str) {
            Some("-") => Some(Input::wait().await?),
            None if self.parameters.is_empty() => Some(Input::read().await?),
            _ => None,
        };
        Ok(())
    }

    /// Says that a pipe with content was left alone. A loop of a shell may read on from it.
    pub(super) fn remark_on_input(&self, output: &Output) {
        let is_read = match self.arguments.first() {
            Some(word) => word == "-",
            None => self.parameters.is_empty(),
        };
        if !is_read && call_arguments::is_unread() {
            output.note("stdin was not read, because the command line has the arguments");
        }
    }

    /// The advice about the option `flag`, which may be meant for the tool.
    pub(super) fn advice_about(&self, flag: &str) -> Option<String> {
        let own = self.own_options.iter().find(|own| own.flag == flag)?;
        Some(own.advice(&self.name, &[]))
    }

    /// Prepares to run the call in this process, which waits for a silent pipe.
    pub(super) fn read_on(&mut self) {
        self.input.take_if(|input| matches!(input, Input::Silent));
    }
}

pub(super) async fn run(arguments: &Arguments, app: &App, output: &Output) -> Result<(), Exit> {
    let source = Source {
        words: &arguments.arguments,
        flags: &arguments.parameters,
        input: arguments.input.as_ref(),
        own: &arguments.own_options,
    };
    let json = call_arguments::read(&arguments.name, source, app).await?;
    let limit = arguments
        .timeout
        .map(std::time::Duration::try_from_secs_f64)
        .transpose();
    let limit = match limit {
        Ok(limit) if !limit.is_some_and(|limit| limit.is_zero()) => limit,
        _ => return Err(Exit::bad_usage(POSITIVE)),
    };
    let view = app.proxy().unscoped();
    let call = |agreement| Call {
        name: &arguments.name,
        arguments: json.as_deref(),
        line: None,
        limit,
        view: &view,
        context: None,
        agreement,
        is_read_only: false,
        task: None,
    };
    let reply = {
        let _spinner = output.spinner(format!("calling {}", arguments.name));
        let agreement = match output.is_elsewhere() {
            true => Agreement::AskedElsewhere,
            false => Agreement::Missing,
        };
        app.proxy().tools.call_unshaped(call(agreement)).await
    };
    let reply = match reply {
        Err(Failure::Consent {
            name,
            rule,
            question,
            ..
        }) => {
            if output.is_elsewhere() {
                return Err(Exit::needs_own_process());
            }
            if let Err(refusal) = agree(&arguments.name, &question).await {
                let config = app.proxy().unscoped().config();
                let recorder = Recorder::new((*config).clone(), app.paths());
                let rule = rule.as_deref();
                recorder.note_refused_call(&name, rule, output).await;
                return Err(refusal);
            }
            let _spinner = output.spinner(format!("calling {}", arguments.name));
            app.proxy()
                .tools
                .call_unshaped(call(Agreement::Given))
                .await
        }
        reply => reply,
    };
    if !output.is_elsewhere() {
        arguments.remark_on_input(output);
    }
    if let Err(Failure::Arguments { .. }) = &reply {
        let own = &arguments.own_options;
        let advice = call_arguments::advice(&arguments.name, own, app).await;
        advice.iter().for_each(|advice| output.note(advice));
    }
    let is_person = arguments.is_person || !output.is_elsewhere() && has_person();
    let reply = reply.map_err(|failure| {
        let whole = whole_reason(&failure, app).filter(|_| is_person);
        whole
            .or_else(|| of_disabled(&failure, app))
            .unwrap_or_else(|| Exit::of_call(&failure, &view))
    })?;
    let (Reply::Result(result) | Reply::Relayed(result)) = reply else {
        return Err(Exit::failed("the call was refused"));
    };
    let raw: &RawValue = serde_json::from_slice(&result).context("the result is not JSON")?;
    let object = Object::parse(raw).context("the result is not an object")?;
    if output.is_json() && !arguments.text {
        output.raw_json(raw.get());
    } else {
        print(&object, output);
    }
    let failed = object.get("isError").is_some_and(|raw| raw.get() == "true");
    if failed {
        Err(Exit::tool_error())
    } else {
        Ok(())
    }
}

/// Whether a person has both ends of the command. The shell of an agent has pipes.
fn has_person() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// The reason for which a server in quarantine could not be listed, in its own words, which no agent may read.
fn whole_reason(failure: &Failure, app: &App) -> Option<Exit> {
    let Failure::Unlisted { server, .. } = failure else {
        return None;
    };
    let inventory = &app.proxy().inventory;
    let is_quarantined = inventory.pending(server).is_quarantined;
    match inventory.progress().remove(server) {
        Some(Progress::Failed(reason)) if is_quarantined => {
            let text = format!("server `{server}` has not listed its tools: {reason}");
            let config = app.proxy().unscoped().config();
            Some(Exit::unavailable(config.masker.mask(&text)))
        }
        _ => None,
    }
}

/// The failure of a call whose name is that of a tool of a disabled server, as it was last listed.
fn of_disabled(failure: &Failure, app: &App) -> Option<Exit> {
    let Failure::Unknown { name, .. } = failure else {
        return None;
    };
    let config = app.proxy().unscoped().config();
    let mut disabled = config.servers.iter().filter(|(_, entry)| entry.disabled);
    let (server, _) = disabled.find(|(server, entry)| {
        let list = rules::listed(server, &entry.hash.to_string(), app.paths());
        list.is_some_and(|list| {
            let mut tools = list.entries().iter();
            tools.any(|tool| tool.name.as_str() == name)
        })
    })?;
    Some(Exit::failed(format!(
        "`{name}` is a tool of `{server}`, which is disabled; `mcpzip enable {server}` uses it again"
    )))
}

/// Asks the person at the terminal to permit a call that the rules require consent for.
async fn agree(name: &str, question: &str) -> Result<(), Exit> {
    let refused = |why: &str| {
        Exit::failed(format!(
            "`{name}` was not called: by your rules (`tools.ask`) {why}"
        ))
    };
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(refused(
            "a person must agree, and there is no terminal to ask at",
        ));
    }
    let question = format!("{}\n", super::printable::on_terminal(question));
    if agrees(&question).await? {
        Ok(())
    } else {
        Err(refused("a person must agree, and did not"))
    }
}

/// Prints text blocks as they are, and the type and size of others.
fn print(result: &Object<'_>, output: &Output) {
    let blocks: Vec<&RawValue> = result
        .get("content")
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    for block in &blocks {
        let block = Object::parse(block).unwrap_or_default();
        match block.text("text") {
            Some(text) => output.answer(&text),
            None => {
                let kind = block.text("type").unwrap_or_else(|| "unknown".to_owned());
                let uri = block.text("uri").map(|uri| format!("{uri}, "));
                let size = block.get("data").map_or(0, |data| data.get().len());
                output.line(faint(format!(
                    "[{kind} content, {}{size} characters; --json shows it]",
                    uri.unwrap_or_default()
                )));
            }
        }
    }
    if let Some(structured) = result
        .get("structuredContent")
        .filter(|_| blocks.is_empty())
    {
        output.answer(structured.get());
    }
}
