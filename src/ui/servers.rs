//! The servers of several proxies, as people see them.

use std::sync::Arc;

use serde::Serialize;

use crate::proxy::Proxy;
use crate::tool::ServerName;

/// A server and the sessions that share its connections.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ServerState {
    /// The server's name in the configuration.
    pub(crate) server: String,
    /// `ready`, `idle`, `connecting`, `failed`, `disabled`, `elsewhere` or `faulty`.
    pub(crate) state: String,
    /// The reason for the state `failed` or `faulty`.
    pub(crate) reason: Option<String>,
    /// The number of the server's tools.
    pub(crate) tools: usize,
    /// Which sessions share the server, and the reason, as text.
    pub(crate) sharing: Option<String>,
    /// The number of the server's open connections. A local server has a process for each; there is more than one if clients differ in what
    /// they can be asked.
    pub(crate) connections: usize,
    /// The ids of the sessions that share the server.
    pub(crate) sessions: Vec<String>,
}

/// The servers of these proxies, each with the id of its session.
pub(crate) fn states(proxies: impl IntoIterator<Item = (String, Arc<Proxy>)>) -> Vec<ServerState> {
    let mut instances: Vec<usize> = Vec::new();
    let mut servers: Vec<ServerState> = Vec::new();
    for (session, proxy) in proxies {
        for report in proxy.inventory.status_for_agents(&proxy.unscoped()).servers {
            let known = instances.iter().position(|one| *one == report.instance);
            match known.filter(|_| report.instance != 0) {
                Some(at) if servers[at].sessions.contains(&session) => {}
                Some(at) => servers[at].sessions.push(session.clone()),
                None => {
                    instances.push(report.instance);
                    servers.push(ServerState {
                        server: report.name,
                        state: report.state.to_owned(),
                        reason: report.reason,
                        tools: report.tools,
                        sharing: report.sharing,
                        connections: report.connections,
                        sessions: vec![session.clone()],
                    });
                }
            }
        }
    }
    servers
}

/// Ends the connections of a server, and starts it again if `is_restart`. Returns the number of connections, or `None` if no proxy has
/// the server.
pub(crate) fn stop(
    proxies: impl IntoIterator<Item = Arc<Proxy>>,
    server: &str,
    is_restart: bool,
) -> Option<usize> {
    let server = ServerName::new(server).ok()?;
    let proxies = proxies.into_iter();
    let with_it: Vec<Arc<Proxy>> = proxies
        .filter(|proxy| proxy.unscoped().config().servers.contains_key(&server))
        .collect();
    let first = with_it.first()?.clone();
    // Of the sessions that share a connection, one ends it.
    let ended: Vec<Arc<Proxy>> = with_it
        .into_iter()
        .filter(|proxy| proxy.inventory.stop(&server))
        .collect();
    if is_restart {
        // One session of each connection starts it again, so that no other does so later.
        let starting = if ended.is_empty() {
            vec![&first]
        } else {
            ended.iter().collect()
        };
        for proxy in starting {
            proxy.inventory.poke(&server);
        }
    }
    Some(ended.len())
}
