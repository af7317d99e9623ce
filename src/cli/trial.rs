//! Connects to one server after its entry was written, and shows what to do if it fails.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good};
use crate::app::App;
use crate::config::{
    ConfigWarning, EntryError, Environment, Paths, SessionEnv, Transport, how_to_set,
};
use crate::proxy::{Progress, counted};
use crate::tool::ServerName;

/// Time limit. A package runner may have to install the server first.
const LIMIT: Duration = Duration::from_secs(60);

/// Time limit of a program whose help is read. Pages read until then are kept.
const HELP_LIMIT: Duration = Duration::from_secs(170);

/// The result of connecting to a server.
#[derive(Debug)]
pub(super) enum Trial {
    /// The server listed its tools.
    Ready {
        tools: usize,
        /// The number of these that wait for a person.
        held: usize,
        took: Duration,
    },
    /// The server requires a login first.
    Login,
    /// A variable or a secret in its entry cannot be read here.
    Unset {
        kind: &'static str,
        name: String,
        reason: String,
    },
    /// The server failed.
    Failed { reason: String },
    /// The entry is disabled, so it was not tried.
    Disabled,
}

impl Trial {
    /// Connects to the server `name` of the configuration, and to no other.
    ///
    /// # Errors
    /// When there is no configuration.
    pub(super) async fn run(
        name: &str,
        paths: &Paths,
        environment: &Environment,
        output: &Output,
    ) -> Result<Self, Exit> {
        let app = App::new(paths.clone(), SessionEnv::here(environment.clone()), None)?;
        let help = program_of(name, &app);
        let trial = {
            let _spinner = output.spinner(match &help {
                Some(program) => format!("reading the help of {program}, page by page"),
                None => format!("connecting to {name}"),
            });
            tokio::select! {
                trial = of(name, &app) => Ok(trial),
                signal = crate::shutdown::signal() => Err(Exit::interrupted(signal)),
            }
        };
        app.finish().await;
        trial
    }

    /// Whether the server failed. A missing login, variable or secret does not count.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    /// The result as JSON.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Ready { tools, held, took } => {
                json!({ "state": "ready", "tools": tools, "held": held, "seconds": took.as_secs_f64() })
            }
            Self::Login => json!({ "state": "login" }),
            Self::Unset { kind, name, .. } => json!({ "state": "unset", *kind: name }),
            Self::Failed { reason } => json!({ "state": "failed", "reason": reason }),
            Self::Disabled => json!({ "state": "disabled" }),
        }
    }

    /// Prints the result.
    pub(super) fn show(&self, name: &str, output: &Output) {
        output.line(match self {
            Self::Ready { tools, held, took } => {
                let tools = counted(*tools, "tool");
                let held = match held {
                    0 => String::new(),
                    held => format!(" ({held} to approve)"),
                };
                format!("  {} {tools}{held}, in {:.1} s", good("works:"), took.as_secs_f64())
            }
            Self::Login => format!("  it requires a login: `mcpzip login {name}`"),
            Self::Unset { reason, .. } => format!("  not tried: {reason}"),
            Self::Failed { reason } => format!(
                "  {} {reason}\n{}",
                bad("does not work yet:"),
                faint(format!(
                    "  the entry stays: correct it, or remove it with `mcpzip remove {name}`; `mcpzip servers` tries again"
                ))
            ),
            Self::Disabled => "  not tried, as it is disabled".to_owned(),
        });
    }
}

/// The program whose help has the tools of the server `name`, if it is such a server.
fn program_of(name: &str, app: &App) -> Option<String> {
    let config = app.proxy().unscoped().config();
    match &config.servers.get(&ServerName::new(name).ok()?)?.transport {
        Transport::Stdio(program) if program.reads_help() => Some(program.command.clone()),
        _ => None,
    }
}

/// Connects to the server `name` of `app`.
pub(super) async fn of(name: &str, app: &App) -> Trial {
    let proxy = app.proxy();
    let config = proxy.unscoped().config();
    if let Some(fault) = config.faults.iter().find(|fault| fault.name == name) {
        return match &fault.fault {
            EntryError::MissingVariable { variable, .. } => Trial::Unset {
                kind: "variable",
                name: variable.clone(),
                reason: format!(
                    "the variable {variable} is not set here; {}",
                    how_to_set(variable)
                ),
            },
            EntryError::Secret { name, fault, .. } => Trial::Unset {
                kind: "secret",
                name: name.to_string(),
                reason: format!("the secret {name} {fault}"),
            },
            fault => Trial::Failed {
                reason: fault.to_string(),
            },
        };
    }
    let server = ServerName::new(name)
        .ok()
        .filter(|server| config.servers.contains_key(server));
    let is_unusable = |warning: &ConfigWarning| matches!(warning, ConfigWarning::Disabled { name: found, .. } if found == name);
    let Some(server) = server else {
        // Nothing that a disabled server lacks matters before it is enabled.
        return match config.warnings.iter().any(|it| is_unusable(&it.kind)) {
            true => Trial::Disabled,
            false => Trial::Failed {
                reason: "it is not in the configuration".to_owned(),
            },
        };
    };
    if config.servers[&server].disabled {
        return Trial::Disabled;
    }
    let projects = &config.servers[&server].projects;
    if !projects.is_everywhere() {
        // Outside of its projects the server is not listed.
        proxy.set_workspace(projects.directories());
    }
    let start = Instant::now();
    let limit = match program_of(name, app) {
        Some(_) => HELP_LIMIT,
        None => LIMIT,
    };
    proxy.inventory.list(Some(&server), limit).await;
    match proxy.inventory.progress().remove(&server) {
        Some(Progress::Listed) => {
            let tools = proxy
                .unscoped()
                .snapshot()
                .server(&server)
                .map_or(0, |known| known.entries().len());
            let pending = proxy.inventory.pending(&server);
            let is_reported = config.servers[&server].trust.is_report();
            let held = match is_reported && !pending.is_quarantined {
                true => 0,
                false => pending.tools.len(),
            };
            Trial::Ready {
                tools,
                held,
                took: start.elapsed(),
            }
        }
        Some(Progress::Failed(_)) if proxy.inventory.wants_login(&server) => Trial::Login,
        Some(Progress::Failed(reason)) => Trial::Failed {
            reason: config.masker.mask(&reason.to_string()).into_owned(),
        },
        _ => Trial::Failed {
            reason: format!(
                "it gave no answer within {limit:?}; the installation of a server may take longer"
            ),
        },
    }
}
