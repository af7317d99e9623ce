//! The chosen servers, connected for a try before anything is written.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::diagnostics::Exit;
use super::super::output::{Output, bad, caution, faint, good, strong};
use super::super::printable::printable;
use super::super::setup::Machine;
use crate::app::App;
use crate::config::{Config, Fault};
use crate::proxy::{Mode, Progress, Start, join_all};
use crate::shutdown;
use crate::tool::ServerName;

/// A package runner may have to install a server first.
const LIMIT: Duration = Duration::from_secs(90);

/// How it went with a server.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) name: String,
    pub(super) outcome: Outcome,
    took: Duration,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// It has so many tools.
    Works(usize),
    /// A person has to log in.
    WantsLogin,
    /// It is switched off, so nobody misses it.
    Disabled,
    /// Why not.
    Fails(String),
}

/// Connects the servers `names` of the configuration `text`, which is nowhere yet, side by side.
pub(super) async fn run(names: &[String], text: &str, machine: &Machine, output: &Output) -> Result<Vec<Trial>, Exit> {
    let environment = &machine.around.environment;
    let config = Config::parse(text, &machine.paths.config_file, environment)?;
    let app = App::with_config(config, machine.paths.clone(), environment.clone(), Start::Nothing, Mode::MetaTools);
    let tried = {
        let progress = output.spinners(names);
        let (app, progress) = (&app, &progress);
        let all = join_all(names.iter().enumerate().map(|(at, name)| async move {
            let trial = one(name, app).await;
            progress.done(at, &trial.line());
            trial
        }));
        tokio::select! {
            biased;
            signal = shutdown::signal() => Err(Exit::interrupted(signal)),
            tried = all => Ok(tried),
        }
    };
    app.finish().await;
    tried
}

async fn one(written: &str, app: &App) -> Trial {
    let (proxy, start) = (app.proxy(), Instant::now());
    let config = proxy.config();
    let outcome = match (config.faults.iter().find(|fault| fault.name == written), ServerName::new(written)) {
        (Some(fault), _) => Outcome::Fails(match &fault.fault {
            Fault::MissingVariable { variable, .. } => format!("the variable {variable} is not set"),
            fault => fault.to_string(),
        }),
        (None, Err(error)) => Outcome::Fails(error.to_string()),
        (None, Ok(name)) => match config.servers.get(&name) {
            None => Outcome::Disabled,
            Some(entry) if entry.disabled => Outcome::Disabled,
            Some(_) => {
                proxy.refresh().list(Some(&name), LIMIT).await;
                match proxy.refresh().progress().get(&name) {
                    Some(Progress::Listed) => {
                        Outcome::Works(proxy.snapshot().server(&name).map_or(0, |known| known.entries().len()))
                    }
                    Some(Progress::Failed(_)) if proxy.wants_login(&name) => Outcome::WantsLogin,
                    Some(Progress::Failed(reason)) => Outcome::Fails(config.masker.mask(reason).into_owned()),
                    _ => Outcome::Fails(format!("no answer within {} s", LIMIT.as_secs())),
                }
            }
        },
    };
    Trial { name: written.to_owned(), outcome, took: start.elapsed() }
}

impl Trial {
    /// Whether it is known not to work.
    pub(super) fn fails(&self) -> bool {
        matches!(self.outcome, Outcome::Fails(_))
    }

    /// For people.
    pub(super) fn line(&self) -> String {
        let name = strong(printable(&self.name));
        match &self.outcome {
            Outcome::Works(tools) => {
                let aside = faint(format!("{tools} tools, {:.1} s", self.took.as_secs_f64()));
                format!("{} {name}  {aside}", good("✓"))
            }
            Outcome::WantsLogin => format!("{} {name}  works after `mcpzip login {}`", caution("✓"), self.name),
            Outcome::Disabled => format!("{} {name}  {}", faint("-"), faint("switched off, so it was not tried")),
            Outcome::Fails(reason) => format!("{} {name}  {}", bad("✗"), printable(reason)),
        }
    }

    /// For programs.
    pub(super) fn to_json(&self) -> Value {
        let (state, tools, reason) = match &self.outcome {
            Outcome::Works(tools) => ("works", Some(tools), None),
            Outcome::WantsLogin => ("login", None, None),
            Outcome::Disabled => ("disabled", None, None),
            Outcome::Fails(reason) => ("fails", None, Some(printable(reason))),
        };
        json!({
            "server": self.name,
            "state": state,
            "tools": tools,
            "seconds": (self.took.as_secs_f64() * 100.0).round() / 100.0,
            "reason": reason,
        })
    }
}
