//! The store that gateways share, in `mcpzip status`, and where servers run that one of the gateways has for all.

use serde::Serialize;

use super::output::Output;
use super::printable::printable;
use super::store::{Look, look};
use crate::config::{self, Config, Environment, Paths};

/// The store of the configuration.
#[derive(Debug, Serialize)]
pub(super) struct StoreState {
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// The servers with `"placement": "one"`, and the gateways at which they run now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    placement: Vec<Placement>,
}

/// A server that runs at one gateway for all.
#[derive(Debug, Serialize)]
struct Placement {
    server: String,
    at: Vec<PlacedAt>,
}

/// A gateway at which such a server runs.
#[derive(Debug, Serialize)]
struct PlacedAt {
    peer_url: String,
    /// One for each person, or one for all.
    processes: i64,
}

impl StoreState {
    /// `None` without a store.
    pub(super) async fn of(paths: &Paths, environment: &Environment) -> Option<Self> {
        let (fault, look) = match look(paths, environment).await? {
            Ok(look) => (None, look),
            Err(fault) => (Some(fault), Look::default()),
        };
        let config = Config::load_or_default(paths, environment).ok()?;
        let servers = config.servers.iter();
        let servers = servers.filter(|(_, entry)| entry.placement == config::Placement::One);
        let placement = servers.map(|(server, _)| Placement {
            server: server.to_string(),
            at: (look.placed.iter())
                .filter(|(name, ..)| name == server.as_str())
                .map(|(_, url, processes)| PlacedAt {
                    peer_url: url.clone(),
                    processes: *processes,
                })
                .collect(),
        });
        Some(Self {
            // Without the store, nothing is known of it.
            placement: match fault {
                None => placement.collect(),
                Some(_) => Vec::new(),
            },
            fault,
        })
    }

    pub(super) fn show(&self, output: &Output) {
        output.line(match &self.fault {
            None => {
                "the store of the gateways can be used: `mcpzip store check` shows it".to_owned()
            }
            Some(fault) => format!("the store of the gateways cannot be used: {fault}"),
        });
        for Placement { server, at } in &self.placement {
            let at = at.iter().map(|at| match at.processes {
                1 => at.peer_url.clone(),
                count => format!("{} ({count} processes)", at.peer_url),
            });
            let at = printable(&at.collect::<Vec<_>>().join(", "));
            output.line(match at.is_empty() {
                true => format!("{server} runs at one gateway for all, and at none now"),
                false => format!("{server} runs at one gateway for all: {at}"),
            });
        }
    }
}
