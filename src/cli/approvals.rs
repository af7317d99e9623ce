//! `mcpzip approvals`: shows calls that wait for a person because their client cannot ask, and decides on them.

use std::io::IsTerminal as _;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::completions;
use super::diagnostics::Exit;
use super::output::{Output, faint, good, strong};
use super::printable::printable;
use super::question::agrees;
use super::recorder::Recorder;
use crate::approvals::{Approvals, Question};
use crate::audit::{Kind, Outcome};
use crate::config::{Config, EditError, Environment, LOCAL, Paths, RuleList, edit};
use crate::tool::ServerName;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// `list` if none is given
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the calls that wait for approval, with their whole arguments
    #[command(after_help = "Examples:
  mcpzip approvals list
  mcpzip approvals list --json")]
    List,
    /// Let a call be made, once
    #[command(alias = "approve")]
    Allow(Allow),
    /// Refuse a call
    #[command(alias = "reject")]
    Deny(Deny),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip approvals allow k3f9qaab
  mcpzip approvals allow k3f9qaab --always

The command needs a terminal, at which it shows the call once more and asks.")]
pub(super) struct Allow {
    /// Id of the approval, as `mcpzip approvals list` shows it
    #[arg(add = completions::of_approvals())]
    id: String,
    /// Also write a rule, so that you are not asked about this tool again
    #[arg(long)]
    always: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip approvals deny k3f9qaab
  mcpzip approvals deny k3f9qaab --json")]
pub(super) struct Deny {
    /// Id of the approval, as `mcpzip approvals list` shows it
    #[arg(add = completions::of_approvals())]
    id: String,
}

/// A question as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    question: &'a Question,
    /// The seconds in which it can be decided.
    remaining: u64,
}

pub(super) async fn run(
    arguments: &Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let approvals = Approvals::of(&environment.state(&paths.state_dir));
    match arguments.command.as_ref().unwrap_or(&Command::List) {
        Command::List => list(&approvals, output),
        Command::Allow(allowed) => allow(allowed, &approvals, paths, environment, output).await,
        Command::Deny(denied) => {
            let question = decided(&approvals, &denied.id, false)?;
            record(&question, false, paths, environment, output).await;
            done(&question, "denied", output);
            Ok(())
        }
    }
}

fn list(approvals: &Approvals, output: &Output) -> Result<(), Exit> {
    let questions = approvals.pending().map_err(|error| failed(&error))?;
    if output.is_json() {
        let shown = questions.iter().map(|question| Shown {
            question,
            remaining: question.remaining(),
        });
        output.json(&shown.collect::<Vec<_>>());
        return Ok(());
    }
    for question in &questions {
        show(question, output);
    }
    output.line(match questions.len() {
        0 => "no call waits for approval".to_owned(),
        _ => faint("`mcpzip approvals allow ID` lets a call be made once, `deny ID` refuses it"),
    });
    Ok(())
}

/// Prints everything that is agreed to.
fn show(question: &Question, output: &Output) {
    let tool = format!("{}__{}", question.server, question.tool);
    output.line(format!(
        "{}  {}",
        strong(&question.id),
        strong(printable(&tool))
    ));
    let client = question.client.as_deref().unwrap_or("an unknown client");
    let person = question.person.as_deref();
    let person = person.map_or(String::new(), |person| format!(" of {person}"));
    let directory = question.directory.as_deref();
    let directory = directory.map(|path| format!(" in {}", path.display()));
    let minutes = question.remaining().div_ceil(60);
    output.line(faint(printable(&format!(
        "  from {client}{person}{}; {minutes} minutes remain",
        directory.unwrap_or_default()
    ))));
    if let Some(rule) = &question.rule {
        output.line(faint(printable(&format!("  asked by {rule}"))));
    }
    for line in question.question.lines() {
        output.line(format!("  {}", printable(line)));
    }
}

async fn allow(
    allowed: &Allow,
    approvals: &Approvals,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Exit::failed("only a person at a terminal can allow a call"));
    }
    let pending = approvals.pending().map_err(|error| failed(&error))?;
    let Some(question) = pending.iter().find(|question| question.id == allowed.id) else {
        // It says why it cannot be decided.
        let why = crate::approvals::Error::Unknown(allowed.id.clone());
        return Err(failed(&why));
    };
    let exception = match allowed.always {
        true => Some(Exception::of(question, paths, environment)?),
        false => None,
    };
    show(question, output);
    let asked = match &exception {
        None => "Let this call be made, once?".to_owned(),
        Some(Exception { audience, .. }) => format!(
            "Allow this call, and every later call of {}__{}{} with any arguments, without asking?",
            printable(&question.server),
            printable(&question.tool),
            audience.as_ref().map_or(String::new(), |audience| format!(
                " by {}",
                printable(audience)
            ))
        ),
    };
    if !agrees(&asked).await? {
        return Err(Exit::failed(
            "nothing was allowed; `mcpzip approvals deny` refuses the call",
        ));
    }
    let question = decided(approvals, &allowed.id, true)?;
    record(&question, true, paths, environment, output).await;
    if let Some(exception) = exception {
        exception.write(paths, environment).map_err(|error| {
            Exit::failed(format!(
                "the call was allowed once, but no rule was written: {error}"
            ))
        })?;
    }
    done(&question, "allowed", output);
    Ok(())
}

fn decided(approvals: &Approvals, id: &str, is_allowed: bool) -> Result<Question, Exit> {
    approvals
        .decide(id, is_allowed)
        .map_err(|error| failed(&error))
}

fn failed(error: &crate::approvals::Error) -> Exit {
    Exit::failed(error.to_string())
}

fn done(question: &Question, word: &str, output: &Output) {
    let Question {
        id, server, tool, ..
    } = question;
    if output.is_json_asked() {
        output.json(&json!({ "id": id, "server": server, "tool": tool, "decision": word }));
        return;
    }
    let name = printable(&format!("{server}__{tool}"));
    output.line(format!(
        "{} {word} {} {}",
        good("✓"),
        strong(name),
        faint(id)
    ));
}

/// Writes the decision to the audit log.
async fn record(
    question: &Question,
    is_allowed: bool,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) {
    let Ok(config) = Config::load(paths, environment) else {
        return;
    };
    let (outcome, word) = match is_allowed {
        true => (Outcome::Ok, "allowed"),
        false => (Outcome::Refused, "denied"),
    };
    let detail = format!(
        "{word} call {} of {}: {}",
        question.id, question.tool, question.call
    );
    let event = (Kind::Approval, outcome);
    let recorder = Recorder::new(config, paths);
    recorder
        .note(event, Some(&question.server), &detail, output)
        .await;
}

/// The lists in the file that a tool has to be in so that it is not asked about any more, each with its name there.
struct Exception {
    lists: Vec<(Vec<String>, String)>,
    /// Whom it is for, as rules name callers; everyone without one.
    audience: Option<String>,
}

impl Exception {
    /// # Errors
    /// When the file is not that of the question, nothing in it asks, or the lists would also take the tool out of questions to others.
    fn of(question: &Question, paths: &Paths, environment: &Environment) -> Result<Self, Exit> {
        if question.is_list {
            return Err(Exit::failed(
                "the question is about several calls of a script: allow them once, without --always, or write the rule for each tool yourself",
            ));
        }
        let config = Config::load(paths, environment)?;
        if config.stand_in.is_some() || question.configuration != config.path {
            let path = question
                .configuration
                .as_deref()
                .unwrap_or_else(|| "".as_ref());
            return Err(Exit::failed(format!(
                "the rule that asks is in another configuration: use --config {}",
                path.display()
            )));
        }
        let audience = audience(question, &config)?;
        let mut lists = Vec::new();
        for list in &question.lists {
            if !question.profiles.is_empty()
                && !matches!(list, RuleList::Profile(name) if question.profiles.contains(name))
            {
                return Err(Exit::failed(format!(
                    "the session is under the profile `{}`, and a rule outside of that profile asks: allow the call once, without --always, or add the tool to `without_asking` yourself",
                    printable(&question.profiles.join("`, `"))
                )));
            }
            lists.extend(place(list, question, &config));
        }
        match lists.is_empty() {
            true => Err(Exit::failed(
                "no rule of the configuration asks about this tool any more",
            )),
            false => Ok(Self { lists, audience }),
        }
    }

    /// Adds the tool to the lists. A file that could not be read afterwards is not written.
    fn write(&self, paths: &Paths, environment: &Environment) -> anyhow::Result<()> {
        edit(&paths.config_file, |document| -> Result<(), Fault> {
            for (path, name) in &self.lists {
                let name = match &self.audience {
                    Some(audience) => &format!("{audience} {name}"),
                    None => name,
                };
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                let written = document.get(&path);
                let mut names: Vec<String> = match &written {
                    None => Vec::new(),
                    Some(json) => serde_json::from_str(json).map_err(|_| {
                        Fault(format!("`{}` has to be edited by hand", path.join(".")))
                    })?,
                };
                if !names.contains(name) {
                    names.push(name.clone());
                    let json = serde_json::to_string(&names).unwrap_or_default();
                    document
                        .set(&path, &json)
                        .map_err(|error| Fault(error.to_string()))?;
                }
            }
            let read = Config::parse(&document.text(), &paths.config_file, environment);
            read.map(drop).map_err(|error| Fault(error.to_string()))
        })?;
        Ok(())
    }
}

/// The caller that a rule from this question is for; `None` stands for everyone, where callers have no identities.
fn audience(question: &Question, config: &Config) -> Result<Option<String>, Exit> {
    let has_identities = !config.http.as_ref().is_ok_and(|http| http.auth.is_none());
    match &question.person {
        None => Ok(has_identities.then(|| LOCAL.to_owned())),
        Some(name) if name.is_empty() || name.contains(char::is_whitespace) => {
            Err(Exit::failed(format!(
                "no rule can name the person `{}`: allow the call once, without --always",
                printable(name)
            )))
        }
        Some(name) => Ok(Some(format!("@user:{name}"))),
    }
}

/// The path of `without_asking` next to a list that asks, and the tool's name there; `None` if the file has no such list any more.
fn place(list: &RuleList, question: &Question, config: &Config) -> Option<(Vec<String>, String)> {
    let Question { server, tool, .. } = question;
    let qualified = format!("{server}__{tool}");
    let (scope, name, asks) = match list {
        RuleList::All => (vec![], qualified, config.tools.asks()),
        RuleList::Server => {
            let name = ServerName::new(server).ok()?;
            let entry = config.servers.get(&name)?;
            let written = config.renamed.get(&name).unwrap_or(server);
            let scope = vec!["mcpServers".to_owned(), written.clone()];
            (scope, tool.clone(), entry.tools.asks())
        }
        RuleList::Profile(name) => {
            let profile = config.profiles.as_ref().ok()?.get(name)?.as_ref().ok()?;
            let scope = vec!["profiles".to_owned(), name.clone()];
            (scope, qualified, profile.asks())
        }
    };
    let list = ["tools", "without_asking"].map(str::to_owned);
    asks.then(|| ([scope, list.to_vec()].concat(), name))
}

/// Why no rule was written.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Fault(String);

impl From<EditError> for Fault {
    fn from(error: EditError) -> Self {
        Self(error.to_string())
    }
}
