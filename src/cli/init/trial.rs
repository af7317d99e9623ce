//! Tries the chosen servers before anything is written.

use futures_util::future::join_all;
use serde_json::Value;

use super::super::diagnostics::Exit;
use super::super::output::{Output, bad, caution, faint, good, strong};
use super::super::printable::printable;
use super::super::setup::Machine;
use super::super::trial::{self, Trial};
use super::Draft;
use crate::app::App;
use crate::config::{Config, SessionEnv};
use crate::proxy::{Request, Start, counted};
use crate::shutdown;

/// The result of trying a server.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) name: String,
    pub(super) trial: Trial,
}

/// Connects to the new servers of `draft` in the configuration `text`, which is not written yet, all at once.
pub(super) async fn run(
    draft: &Draft,
    text: &str,
    machine: &Machine,
    output: &Output,
) -> Result<Vec<Tried>, Exit> {
    let names = &draft.new;
    let environment = &machine.around.environment;
    let stored = draft.plan.secrets.stored.iter();
    let stored = stored.map(|(name, value)| (name.clone(), value.expose().clone()));
    let with_stored = environment.with(stored);
    let config = Config::parse(text, &machine.paths.config_file, &with_stored)?;
    let app = App::with_config(
        config,
        machine.paths.clone(),
        SessionEnv::here(environment.clone()),
        Start::Nothing,
        Request::default(),
    );
    let tried = {
        let progress = output.spinners(names);
        let (app, progress) = (&app, &progress);
        let all = join_all(names.iter().enumerate().map(|(at, name)| async move {
            let tried = Tried {
                name: name.clone(),
                trial: trial::of(name, app).await,
            };
            progress.done(at, &tried.line());
            tried
        }));
        tokio::select! {
            biased;
            signal = shutdown::signal() => Err(Exit::interrupted(signal)),
            tried = all => Ok(tried),
        }
    };
    app.finish().await;
    forget_typed();
    tried
}

/// Forgets the keys that were typed while servers were tried: they answer no question that was seen.
#[cfg(unix)]
fn forget_typed() {
    use rustix::termios::{QueueSelector, tcflush};
    // This fails if stdin is not a terminal.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
}

/// The console of Windows offers this by unsafe calls only, so such keys answer the next question.
#[cfg(not(unix))]
fn forget_typed() {}

impl Tried {
    /// Whether the server is known not to work here.
    pub(super) fn fails(&self) -> bool {
        self.fault().is_some()
    }

    /// Why the server does not work here.
    pub(super) fn fault(&self) -> Option<String> {
        match &self.trial {
            Trial::Unset { reason, .. } | Trial::Failed { reason } => Some(reason.clone()),
            Trial::Ready { .. } | Trial::Login | Trial::Disabled => None,
        }
    }

    /// Whether the server requires a login.
    pub(super) fn needs_login(&self) -> bool {
        matches!(self.trial, Trial::Login)
    }

    /// The result as a line of text.
    pub(super) fn line(&self) -> String {
        let name = strong(printable(&self.name));
        match &self.trial {
            Trial::Ready { tools, took, .. } => {
                let aside = faint(format!(
                    "{}, {:.1} s",
                    counted(*tools, "tool"),
                    took.as_secs_f64()
                ));
                format!("{} {name}  {aside}", good("✓"))
            }
            Trial::Login => format!(
                "{} {name}  works after `mcpzip login {}`",
                caution("✓"),
                self.name
            ),
            Trial::Disabled => format!(
                "{} {name}  {}",
                faint("-"),
                faint("switched off, so it was not tried")
            ),
            Trial::Unset { .. } | Trial::Failed { .. } => {
                let reason = self.fault().unwrap_or_default();
                format!("{} {name}  {}", bad("✗"), printable(&reason))
            }
        }
    }

    /// The result as JSON.
    pub(super) fn to_json(&self) -> Value {
        let mut json = self.trial.to_json();
        json["server"] = self.name.as_str().into();
        json
    }
}
