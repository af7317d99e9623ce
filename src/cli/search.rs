//! `mcpzip search`: searches tools as an agent does.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::completions;
use super::daemon_option::DaemonOption;
use super::diagnostics::Exit;
use super::explanation;
use super::output::{Output, faint, strong};
use super::printable::{printable, printable_lines};
use super::profile_option::ProfileOption;
use super::unknown::NO_SERVER;
use crate::app::App;
use crate::config::BUILT_IN_SERVER;
use crate::proxy::{SearchError, View};
use crate::tool::ServerName;

/// How long unlisted servers are waited for before the others are searched.
const LIST_LIMIT: Duration = Duration::from_secs(10);
/// How long missing vectors are waited for.
const MEANING_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "Examples:
  mcpzip search \"create an issue\"
  mcpzip search --server notes --limit 10 find by tag
  mcpzip search --explain \"notify the team\"")]
pub(super) struct Arguments {
    /// What you need done
    #[arg(required = true)]
    query: Vec<String>,
    /// Maximum number of tools to show
    #[arg(long, short = 'n', allow_negative_numbers = true, value_parser = clap::value_parser!(u8).range(1..=50))]
    limit: Option<u8>,
    /// Only tools of this server
    #[arg(long, short, add = completions::of_servers())]
    server: Option<String>,
    /// Show why each tool was found: its scores by words, by field and by meaning, and the combined one
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    pub(super) daemon: DaemonOption,
    #[command(flatten)]
    pub(super) profile: ProfileOption,
}

impl Arguments {
    /// Whether all servers are searched.
    pub(super) fn is_about_all(&self) -> bool {
        self.server.is_none()
    }
}

/// Whether a server of this name is configured, ignoring letter case and dashes as a search does.
fn is_known(name: &str, app: &App) -> bool {
    let fold = |name: &str| name.replace(['-', '_', '.', ' '], "").to_lowercase();
    let config = app.proxy().unscoped().config();
    name == BUILT_IN_SERVER || config.names.iter().any(|known| fold(known) == fold(name))
}

pub(super) async fn run(arguments: &Arguments, app: &App, output: &Output) -> Result<(), Exit> {
    let limit = arguments.limit.map_or(
        app.proxy().unscoped().config().search.default_limit,
        usize::from,
    );
    let query = arguments.query.join(" ");
    if query.trim().is_empty() {
        return Err(Exit::bad_usage(
            "the query is empty: say what you need done",
        ));
    }
    let server = arguments.server.as_deref();
    let answer = {
        let _spinner =
            output.spinner("searching, and asking servers whose tools are not known yet");
        // A server whose name is written differently in the configuration is searched together with all others.
        let named = server
            .and_then(|server| ServerName::new(server).ok())
            .filter(|server| app.proxy().unscoped().config().servers.contains_key(server));
        app.proxy()
            .inventory
            .known(named.as_ref(), LIST_LIMIT)
            .await;
        if !app.proxy().inventory.vectors_made(MEANING_LIMIT).await {
            output.note(
                "some tools are found by their words alone: search by meaning is not ready for them yet; search again in a moment",
            );
        }
        if arguments.explain {
            let explanation = app
                .proxy()
                .tools
                .explain(&app.proxy().unscoped(), &query, limit, server)
                .await
                .map_err(|error| Exit::failed(error.to_string()))?;
            explanation::show(&explanation, output);
            return Ok(());
        }
        app.proxy()
            .tools
            .search(&app.proxy().unscoped(), &query, limit, server)
            .await
    };
    let elsewhere = elsewhere(&app.proxy().unscoped(), server);
    let answer = answer.map_err(|error| match error {
        SearchError::UnknownServer { name, .. } if !is_known(&name, app) => {
            Exit::unknown_server(&name, &app.proxy().unscoped().config())
        }
        error => Exit::failed(error.to_string()),
    })?;
    let is_empty = app.proxy().unscoped().config().names.is_empty();
    if output.is_json() {
        if is_empty {
            output.note(NO_SERVER);
        }
        let hits: Vec<_> = answer
            .found
            .iter()
            .map(|found| json!({ "name": found.name, "score": found.score, "text": found.text }))
            .collect();
        output.json(&json!({ "hits": hits, "missing": answer.missing, "elsewhere": elsewhere }));
        return Ok(());
    }
    if answer.found.is_empty() && is_empty {
        output.line(NO_SERVER);
    } else if answer.found.is_empty() {
        output.line(answer.to_string());
    } else {
        for found in &answer.found {
            let rest = found
                .text
                .strip_prefix(found.name.as_str())
                .unwrap_or(&found.text);
            output.line(format!("{}{}", strong(&found.name), printable_lines(rest)));
        }
        for missing in &answer.missing {
            output.line(faint(format!("not searched: {missing}")));
        }
    }
    if !elsewhere.is_empty() {
        output.line(faint(format!(
            "not searched, as they are for other directories: {}",
            printable(&elsewhere.join(", "))
        )));
    }
    Ok(())
}

/// The servers that a search leaves out, because their projects are other directories. `server` limits the search to one.
fn elsewhere(view: &View, server: Option<&str>) -> Vec<String> {
    let config = view.config();
    let servers = config.servers.iter();
    servers
        .filter(|(name, entry)| {
            !entry.disabled
                && !view.is_reachable(name)
                && server.is_none_or(|server| name.as_str().eq_ignore_ascii_case(server))
        })
        .map(|(name, _)| name.to_string())
        .collect()
}
