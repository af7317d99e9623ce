//! The built-in tool that lists and changes the configured servers.

use std::path::PathBuf;

use futures_util::future::join_all;
use serde_json::value::RawValue;

use super::entries::{marked, permit, update};
use super::{Builtin, REFRESH_LIMIT};
use crate::config::{Change, ChangeError, Config, Management, change_servers};
use crate::mcp::Object;
use crate::proxy::Reply;
use crate::proxy::counted;
use crate::proxy::inventory::Reader;
use crate::proxy::view::View;
use crate::tool::ServerName;

/// The maximum number of servers that are changed at once.
const MOST_SERVERS: usize = 50;

/// Changes of the configuration, each with the server's name as written by the agent.
type Changes = Vec<(String, Change)>;

impl Builtin {
    /// Lists or changes the configured servers: `{operation, servers?, names?}`.
    pub(super) async fn servers(&self, view: &View, arguments: &Object<'_>) -> Reply {
        let operation = arguments
            .text("operation")
            .unwrap_or_else(|| "list".to_owned());
        if operation == "list" {
            return Reply::text(&view.advised(&self.server_list(view)));
        }
        if view.config().management != Management::Full {
            return Reply::tool_error(
                "the configuration lets agents read, not change (`management` is \"read\"; a person may set \"full\")",
            );
        }
        let changes = match changes(&operation, arguments) {
            Ok(changes) => changes,
            Err(refusal) => return refusal,
        };
        let config = view.config();
        let Some(path) = config.path.clone() else {
            return Reply::tool_error("there is no configuration file to change");
        };
        let names: Vec<ServerName> = changes
            .iter()
            .filter_map(|(name, _)| ServerName::new(name).ok())
            .collect();
        if let Err(refusal) = self.change(view, path, changes).await {
            return refusal;
        }
        tracing::info!(operation, ?names, "an agent changed the configuration");
        self.inventory.loaded().await;
        self.inventory.note_unstarted(&view.config(), &names);
        let running = names.iter().filter(|name| {
            view.config()
                .servers
                .get(*name)
                .is_some_and(|entry| !entry.disabled)
        });
        join_all(running.map(|name| self.inventory.list(Some(name), REFRESH_LIMIT))).await;
        self.inventory
            .index()
            .wait_current(std::time::Duration::from_secs(5))
            .await;
        Reply::text(&view.advised(&self.outcome(view, &names)))
    }

    /// Changes the configuration file at `path` and applies it.
    async fn change(&self, view: &View, path: PathBuf, changes: Changes) -> Result<(), Reply> {
        let variables = self.variables.clone();
        let switches = self.switches.clone();
        let changed = self.tasks.spawn_blocking(move || {
            change_servers(
                &path,
                &changes,
                &variables,
                false,
                |change, name, document| {
                    let config = Config::parse(&document.text(), &path, &variables)?;
                    permit(change, name, document, &config, &switches)?;
                    switches.note(change, name, document);
                    Ok(())
                },
            )
        });
        let changed = changed.await;
        if !matches!(changed, Ok(Ok(_))) {
            // An entry that is not disabled in the end must not be remembered as disabled by an agent.
            self.switches.compare(&view.config());
        }
        match changed {
            Ok(Ok(changed)) => {
                // Without a proxy, the run has ended.
                if let Some(proxy) = self.proxy.upgrade() {
                    proxy.configure(changed.config);
                }
            }
            Ok(Err(refused @ ChangeError::Refused(_))) => {
                let text = format!("nothing was changed: {refused}");
                return Err(Reply::tool_error(&text));
            }
            Ok(Err(error @ (ChangeError::Edit(_) | ChangeError::Configuration(_)))) => {
                tracing::error!(%error, "the configuration is not changed");
                return Err(Reply::tool_error(
                    "nothing was changed: the configuration file cannot be edited",
                ));
            }
            Err(_) => {
                return Err(Reply::tool_error(
                    "an internal error of mcpzip interrupted the change, so it may or may not have been made",
                ));
            }
        }
        Ok(())
    }

    /// The status of the changed servers.
    fn outcome(&self, view: &View, names: &[ServerName]) -> String {
        let status = self.inventory.status_for(view, Reader::Agent);
        let lines = names.iter().map(|name| {
            match status
                .servers
                .iter()
                .find(|known| known.name == name.as_str())
            {
                Some(known) => {
                    let reason = known
                        .reason
                        .as_deref()
                        .map(|reason| format!("; {reason}"))
                        .unwrap_or_default();
                    let waits = known.changed_text().filter(|_| known.quarantined);
                    let waits = waits.map(|text| format!("; {text}")).unwrap_or_default();
                    let (state, tools) = (known.state, counted(known.tools, "tool"));
                    format!("{name}: {state}, {tools}{reason}{waits}")
                }
                None => format!("{name}: removed"),
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Every server with its address, as far as an agent may know it.
    fn server_list(&self, view: &View) -> String {
        let config = view.config();
        let usable = config.servers.iter().map(|(name, entry)| {
            let disabled = if entry.disabled { "; disabled" } else { "" };
            format!("{name}: {}{disabled}", entry.outline())
        });
        let faulty = config
            .faults
            .iter()
            .map(|fault| format!("{}: cannot be used: {}", fault.name, fault.fault));
        let lines: Vec<String> = usable.chain(faulty).collect();
        if lines.is_empty() {
            "no server is configured".to_owned()
        } else {
            config.masker.mask(&lines.join("\n")).into_owned()
        }
    }
}

/// The changes that an agent requests.
fn changes(operation: &str, arguments: &Object<'_>) -> Result<Changes, Reply> {
    let refused = |text: &str| Reply::tool_error(text);
    let changes: Changes = match operation {
        "add" | "update" => {
            let entries = arguments
                .get("servers")
                .and_then(|raw| Object::parse(raw).ok());
            let entries = entries.ok_or_else(|| {
                refused(&format!(
                    "{operation} needs `servers`: an entry by each name"
                ))
            })?;
            let change = |entry: &RawValue| match operation {
                "add" => Ok(marked(Change::Add(entry.get().to_owned()))),
                _ => update(entry).map(marked),
            };
            let changes = entries.iter().map(|(name, entry)| match change(entry) {
                Ok(change) => Ok((name.into_owned(), change)),
                Err(reason) => Err(refused(&format!("`{name}`: {reason}"))),
            });
            changes.collect::<Result<_, _>>()?
        }
        "remove" | "enable" | "disable" => {
            let names = arguments
                .get("names")
                .and_then(|raw| serde_json::from_str::<Vec<String>>(raw.get()).ok());
            let names = names.ok_or_else(|| refused(&format!("{operation} needs `names`")))?;
            let change = match operation {
                "remove" => Change::Remove,
                _ => Change::Switch {
                    disabled: operation == "disable",
                },
            };
            names
                .into_iter()
                .map(|name| (name, change.clone()))
                .collect()
        }
        _ => {
            return Err(refused(
                "`operation` is one of list, add, remove, update, enable and disable",
            ));
        }
    };
    if changes.is_empty() || changes.len() > MOST_SERVERS {
        return Err(refused(&format!(
            "{operation} needs 1 to {MOST_SERVERS} servers"
        )));
    }
    Ok(changes)
}
