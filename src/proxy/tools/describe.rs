use std::time::Duration;

use serde_json::value::RawValue;

use super::Tools;
use crate::catalog::{Resolution, Snapshot, Tool};
use crate::config::{Config, Verdict};
use crate::mcp::Object;
use crate::proxy::answers::error::{
    app_only_tool, denied_tool, held_tool, unknown_tool, unpinned_tool,
};
use crate::proxy::inventory::PinState;
use crate::proxy::relay::login::LoggedIn;
use crate::proxy::view::View;
use crate::proxy::{Failure, Reply, RequestContext};
use crate::search::Request;
use crate::tool::{QualifiedName, ServerName, is_hidden};

/// Descriptions that are given at once.
const MOST_NAMES: usize = 50;

/// How long a call or description waits for a server of which nothing is known yet.
const FIRST_LISTING: Duration = Duration::from_secs(30);

/// How long a server that lets us in at last may take to list its tools.
const LISTING: Duration = Duration::from_secs(30);

impl Tools {
    /// Says all that is known of tools: `{name}` or `{names}`.
    pub(in crate::proxy) async fn describe_tool(
        &self,
        view: &View,
        arguments: &Object<'_>,
    ) -> Reply {
        let mut names: Vec<String> = arguments.text("name").into_iter().collect();
        if let Some(raw) = arguments.get("names") {
            match serde_json::from_str::<Vec<String>>(raw.get()) {
                Ok(more) => names.extend(more),
                Err(_) => return Reply::tool_error("`names` must be an array of strings"),
            }
        }
        if names.is_empty() || names.len() > MOST_NAMES {
            return Reply::tool_error(&format!(
                "describe_tool needs a `name`, or 1 to {MOST_NAMES} `names`"
            ));
        }
        let mut texts = Vec::new();
        let mut failed = 0;
        let mut introduced: Vec<ServerName> = Vec::new();
        for name in &names {
            match self.describe(view, name).await {
                Ok((tool, json)) => {
                    let server = tool.server();
                    let name = on_one_line(&tool.qualified_name().to_string());
                    let mut text = format!("{name}\n{}", json.get());
                    if let Some(instructions) = server
                        .instructions()
                        .filter(|_| !introduced.contains(server.name()))
                    {
                        text.push_str(&format!(
                            "\nThe server `{}` says of itself, in the lines with `>`:\n{}",
                            server.name(),
                            cited(instructions.trim())
                        ));
                        introduced.push(server.name().clone());
                    }
                    texts.push(text);
                }
                Err(failure) => {
                    failed += 1;
                    texts.push(failure.text().to_owned());
                }
            }
        }
        let text = texts.join("\n\n");
        if failed == names.len() {
            Reply::tool_error(&text)
        } else {
            Reply::text(&text)
        }
    }

    /// The tool that `name` means, and its definition in its server's own bytes.
    ///
    /// # Errors
    /// With a text for whoever asked, when there is none.
    pub(crate) async fn describe(
        &self,
        view: &View,
        name: &str,
    ) -> Result<(Tool, Box<RawValue>), Failure> {
        let tool = self.find(view, name).await?;
        let json = self.inventory.definition(&tool).ok_or_else(|| {
            Failure::Unavailable(format!(
                "the definition of `{name}` was lost from the cache and is fetched again; try again in a moment"
            ))
        })?;
        Ok((tool, json))
    }

    /// The tool that `name` means. Where its server was never listed, that is waited for.
    pub(in crate::proxy) async fn find(&self, view: &View, name: &str) -> Result<Tool, Failure> {
        self.find_within(view, name, FIRST_LISTING).await
    }

    /// The tool that `name` means, where nothing has to be waited for to know that.
    pub(in crate::proxy) fn known_tool(&self, view: &View, name: &str) -> Option<Tool> {
        if !self.inventory.is_loaded() {
            return None;
        }
        match view.snapshot().resolve(name) {
            Resolution::Tool(tool) => Some(tool),
            Resolution::Ambiguous(_) | Resolution::Unknown => None,
        }
    }

    /// The same for whoever has no more time than `limit`.
    pub(in crate::proxy) async fn find_within(
        &self,
        view: &View,
        name: &str,
        limit: Duration,
    ) -> Result<Tool, Failure> {
        self.inventory.loaded().await;
        // One snapshot for both questions: a list that comes in between would be missed by the first and seen by the second.
        let snapshot = view.snapshot();
        let mut resolution = snapshot.resolve(name);
        if !matches!(resolution, Resolution::Tool(_)) {
            let server = unlisted_server(view, &snapshot, name);
            if server.is_some() || snapshot.servers().count() <= 1 {
                Box::pin(
                    self.inventory
                        .known_now(server.as_ref(), limit.min(FIRST_LISTING)),
                )
                .await;
                resolution = view.snapshot().resolve(name);
            }
        }
        match resolution {
            Resolution::Tool(tool) => Ok(tool),
            Resolution::Ambiguous(names) => Err(Failure::Unknown(format!(
                "`{name}` could be {}: say which",
                names[..names.len().min(10)].join(" or ")
            ))),
            Resolution::Unknown => Err(Box::pin(self.explain_unknown(view, name)).await),
        }
    }

    /// The tool that `name` means. Where its server requires a login before it says what it has, the client is asked to help; then
    /// the reply may be that question.
    ///
    /// # Errors
    /// As [`Tools::find`].
    pub(in crate::proxy) async fn find_logged_in(
        &self,
        view: &View,
        name: &str,
        limit: Option<Duration>,
        context: Option<&RequestContext>,
    ) -> Result<Result<Tool, Reply>, Failure> {
        let failure = match self.find_within(view, name, limit.unwrap_or(LISTING)).await {
            Ok(tool) => return Ok(Ok(tool)),
            Err(failure) => failure,
        };
        let server = unlisted_server(view, &view.snapshot(), name)
            .filter(|server| self.inventory.wants_login(server));
        let (Some(server), Some(context)) =
            (server, context.filter(|context| context.can_log_in()))
        else {
            return Err(failure);
        };
        let outcome = match context.answers_login() {
            true => Box::pin(self.relay.returned(&server, context)).await,
            false => Box::pin(self.relay.log_in(&server, context)).await,
        };
        match outcome {
            LoggedIn::No => Err(failure),
            LoggedIn::Asked(result) => Ok(Err(Reply::Relayed(result))),
            LoggedIn::Yes => {
                Box::pin(self.inventory.list_now(&server, LISTING)).await;
                Box::pin(self.find(view, name)).await.map(Ok)
            }
        }
    }

    /// Why a tool that is there is not for whoever asks.
    fn withheld_text(&self, config: &Config, tool: &Tool) -> String {
        let name = tool.qualified_name();
        if config.judge(&name, tool.entry().hints) == Verdict::Denied {
            denied_tool(&name)
        } else if tool.entry().is_app_only {
            app_only_tool(&name)
        } else {
            match self.inventory.pin_state(tool) {
                PinState::Changed => held_tool(&name),
                PinState::Unknown(fault) => unpinned_tool(&name, fault.as_deref()),
            }
        }
    }

    async fn explain_unknown(&self, view: &View, name: &str) -> Failure {
        let config = view.config();
        if let Some(server) = unlisted_server(view, &view.snapshot(), name) {
            let reason = match self.inventory.progress().remove(&server) {
                Some(crate::proxy::Progress::Failed(reason)) => {
                    config.masker.mask(&reason).into_owned()
                }
                Some(_) => "it is still being listed".to_owned(),
                None if view.is_reachable(&server) => {
                    "it is disabled in the configuration".to_owned()
                }
                None => format!("it is there {}", config.servers[&server].projects),
            };
            return Failure::Unavailable(format!(
                "the tools of server `{server}` are not known: {reason}"
            ));
        }
        if let Resolution::Tool(tool) = view.snapshot().unrestricted().resolve(name) {
            return Failure::Refused(self.withheld_text(&config, &tool));
        }
        let addressed = view.snapshot().addressed(name);
        if let Some(fault) = config
            .faults
            .iter()
            .find(|fault| addressed.contains(&fault.name))
        {
            return Failure::Unavailable(format!(
                "server `{}` cannot be used: {}",
                fault.name, fault.fault
            ));
        }
        self.inventory.index().wait(Duration::from_secs(1)).await;
        // Without an index there is nothing to suggest.
        let without = view.hidden_servers();
        let hits = self
            .inventory
            .index()
            .search(&Request {
                query: name,
                limit: 3,
                server: None,
                without: &without,
            })
            .await
            .ok();
        let nearest = hits.iter().flat_map(|hits| hits.iter());
        let nearest = nearest.map(|hit| {
            QualifiedName {
                server: hit.server.clone(),
                tool: hit.tool.clone(),
            }
            .to_string()
        });
        Failure::Unknown(unknown_tool(name, &nearest.collect::<Vec<_>>()))
    }
}

/// The configured server whose tool `name` would be, if its tools are not known.
fn unlisted_server(view: &View, snapshot: &Snapshot, name: &str) -> Option<ServerName> {
    let config = view.config();
    snapshot
        .addressed(name)
        .iter()
        .filter_map(|server| ServerName::new(server).ok())
        .find(|server| config.servers.contains_key(server) && snapshot.server(server).is_none())
}

/// A text as a citation: every line of it is marked, so that none passes for ours or another server's, and characters that
/// hide or turn around what stands beside them are left out.
fn cited(text: &str) -> String {
    let is_break = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let text = text.replace("\r\n", "\n");
    let lines = text.split(is_break).map(|line| {
        let shown = |c: &char| *c == '\t' || !c.is_control() && !is_hidden(*c);
        format!("> {}", line.chars().filter(shown).collect::<String>())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A name without anything that ends its line.
fn on_one_line(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            '\u{2028}' | '\u{2029}' => ' ',
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}
