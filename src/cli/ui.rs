//! `mcpzip ui`: opens the window in the browser.

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::PathFlags;
use super::browser::Browser;
use super::diagnostics::Exit;
use super::output::{Output, good};
use crate::config::{
    Config, DaemonMode, DaemonOptions, Environment, Paths, SessionEnv, env, is_inline,
};
use crate::daemon::{self, Answer};
use crate::proxy::counted;

/// The largest request that the daemon reads.
const LARGEST: usize = 1_000_000;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip ui
  mcpzip ui --no-browser
  mcpzip ui --close

The link works once, within a minute. The window has the variables and the directory of this command. It ends after a day, with the daemon, or by `--close`.")]
pub(super) struct Arguments {
    /// Print the link without opening a browser
    #[arg(long, conflicts_with = "close")]
    no_browser: bool,
    /// Close all windows of this configuration
    #[arg(long)]
    close: bool,
}

pub(super) async fn run(
    arguments: &Arguments,
    flags: &PathFlags,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    if arguments.close {
        return close(paths, environment, output);
    }
    let opened = opened(flags, paths, environment).await?;
    let browser = match arguments.no_browser {
        true => Browser::None,
        false => Browser::of(environment),
    };
    let is_open = browser.open(&opened.url);
    if output.is_json_asked() {
        output.json(&json!({ "url": opened.url, "seconds": opened.seconds, "opened": is_open }));
        return Ok(());
    }
    output.note(&match is_open {
        true => "opening the browser; if no page opens, open this link:".to_owned(),
        false => format!(
            "open this link in a browser on this machine; it works once, within {} seconds:",
            opened.seconds
        ),
    });
    output.verbatim(&opened.url);
    Ok(())
}

/// Has the daemon make a link, which is started if there is none.
pub(super) async fn opened(
    flags: &PathFlags,
    paths: &Paths,
    environment: &Environment,
) -> Result<Opened, Exit> {
    if is_inline(&paths.config_file) {
        return Err(Exit::failed(format!(
            "the window needs a configuration file: the configuration is in the variable {}",
            env::CONFIG_JSON.name
        )));
    }
    let Some(directory) = SessionEnv::here(environment.clone()).directory else {
        return Err(Exit::failed(
            "this directory is gone: open the window from another",
        ));
    };
    let variables: serde_json::Map<_, _> = environment
        .iter()
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let params = json!({
        "process": std::process::id(),
        "directory": directory,
        "variables": variables,
        "options": options(flags),
    })
    .to_string();
    if params.len() > LARGEST {
        return Err(Exit::failed(
            "the variables of this process are too large for the window: unset the largest",
        ));
    }
    let is_off = DaemonOptions::load(paths, environment).mode == DaemonMode::Off;
    // A configuration that cannot be read switches the daemon off, too.
    if is_off && let Err(error) = Config::load_or_default(paths, environment) {
        return Err(error.into());
    }
    if is_off && !daemon::is_there(paths, environment) {
        // Without a configuration, the daemon is not started either.
        Config::load(paths, environment)?;
        return Err(Exit::failed(
            "the window is served by the daemon, which is switched off here: run `mcpzip daemon run` in another terminal",
        ));
    }
    let asked = daemon::ask_started(paths, environment, "ui.open", &params);
    let asked = asked.await.map_err(anyhow::Error::from)?;
    Ok(serde_json::from_str(&asked).map_err(anyhow::Error::from)?)
}

/// The link.
#[derive(Deserialize)]
pub(super) struct Opened {
    pub(super) url: String,
    seconds: u64,
}

/// The options with which each command of the window finds the same files.
pub(super) fn options(flags: &PathFlags) -> Vec<String> {
    let all = [
        ("--config", &flags.config_file),
        ("--cache-dir", &flags.cache_dir),
        ("--state-dir", &flags.state_dir),
    ];
    let given = all.into_iter().filter_map(|(name, path)| {
        let path = std::path::absolute(path.as_ref()?).ok()?;
        Some([name.to_owned(), path.display().to_string()])
    });
    given.flatten().collect()
}

fn close(paths: &Paths, environment: &Environment, output: &Output) -> Result<(), Exit> {
    #[derive(Deserialize)]
    struct Count {
        count: usize,
    }
    let answer = daemon::ask(paths, environment, "ui.close", "{}").map_err(anyhow::Error::from)?;
    let count = match answer {
        Answer::None => 0,
        Answer::Result(text) => {
            let Count { count } = serde_json::from_str(&text).map_err(anyhow::Error::from)?;
            count
        }
    };
    match output.is_json_asked() {
        true => output.json(&json!({ "closed": count })),
        false => output.line(format!("{} {} closed", good("✓"), counted(count, "window"))),
    }
    Ok(())
}
