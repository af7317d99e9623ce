//! The control interface: other processes of the user query and control the daemon in JSON-RPC, one message per line
//! (`docs/control.md`).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::endpoint::{self, Stream};
use super::http::HttpState;
use crate::approvals::{self, Approvals, Question};
use crate::events::{Events, Heard, Listener, Numbered, Past};
use crate::pause::Paused;
use crate::ui::servers::ServerState;
use crate::ui::{API, Offered, Opening, WindowLink};

/// Maximum length of a request, in bytes.
const LONGEST: u64 = 1024 * 1024;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// The result of `daemon.status`: the daemon and its sessions.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Status {
    /// The version of this interface.
    pub(super) api: u32,
    /// The version of the messages between sessions and the daemon.
    pub(super) protocol: u32,
    /// The version of mcpzip.
    pub(super) version: &'static str,
    /// The process id of the daemon.
    pub(super) process: u32,
    /// The path of the daemon's socket.
    pub(super) socket: PathBuf,
    /// The path of the configuration file.
    pub(super) configuration: PathBuf,
    /// How long the daemon has run, in seconds.
    pub(super) uptime: u64,
    /// How long the daemon stays without sessions, in seconds.
    pub(super) idle: f64,
    /// How it serves HTTP clients; absent if no address is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) http: Option<HttpState>,
    /// The pause, while the user has paused mcpzip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) paused: Option<Paused>,
    /// The number of open windows.
    pub(super) windows: usize,
    pub(super) sessions: Vec<Shown>,
}

/// A session that the daemon serves.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Shown {
    /// The session's id. It stays when another daemon takes over.
    pub(super) id: String,
    /// The process that the client started.
    pub(super) process: u32,
    /// The session's working directory.
    pub(super) directory: PathBuf,
    /// The number of earlier daemons that served the session.
    pub(super) generation: u32,
    /// The time at which this daemon began to serve the session, in seconds since 1970.
    pub(super) since: u64,
    /// The name and version of the client, at a gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<String>,
    /// The identity of the client, at a gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) identity: Option<String>,
}

/// The result of `servers.list`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Servers {
    pub(super) servers: Vec<ServerState>,
}

/// The parameters of `servers.stop` and `servers.restart`: a server of one session or of all.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// The server's name in the configuration.
    pub(super) server: String,
    /// The id of a session. Without it, the server of every session is meant.
    pub(super) session: Option<String>,
}

/// The result of `daemon.pause` and `daemon.resume`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Switched {
    /// The pause that there is now.
    pub(super) paused: Option<Paused>,
    /// The pause that there was before.
    pub(super) before: Option<Paused>,
}

/// The result of `approvals.list`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Pending {
    pub(super) approvals: Vec<Question>,
}

/// The parameters of `approvals.allow` and `approvals.deny`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WhichApproval {
    /// The id of the question.
    pub(super) id: String,
}

/// The number of connections that were ended, of sessions that read their configuration again, or of windows that were closed.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Count {
    pub(super) count: usize,
}

/// The parameters of `events.list` and `events.subscribe`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Since {
    /// The number of the first event to return. Without it, `events.list` begins with the oldest event that is kept, and
    /// `events.subscribe` with the next new one.
    pub(super) since: Option<u64>,
}

/// The result of `events.list` and `events.subscribe`: the events that are kept.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Kept {
    /// The events from `since` on, oldest first.
    pub(super) events: Vec<Arc<Numbered>>,
    /// Whether some of the requested events are no longer kept.
    pub(super) is_incomplete: bool,
    /// The events `call_began` of the calls that are in flight, oldest first. They are not among `events`.
    pub(super) calls: Vec<Arc<Numbered>>,
    /// The number that the next event gets.
    pub(super) next: u64,
}

/// An object without members.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// The parameters of the notification `lagged`, for a subscriber that reads too slowly.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Lagged {
    /// The number of events that the subscriber lost.
    pub(super) lost: u64,
}

/// An order to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Keep running.
    GoOn,
    /// End. Another daemon takes the sessions over.
    Restart,
    /// End. Each session continues with its own servers.
    Stop,
}

/// An order of a connection that was followed: to stop, restart, reload, pause or resume.
#[derive(Debug)]
pub(super) struct Ordered {
    /// The method.
    pub(super) order: String,
    pub(super) server: Option<String>,
    /// The session that the order is limited to.
    pub(super) session: Option<String>,
    /// The process of the connection.
    pub(super) process: Option<i32>,
}

/// The parts of a daemon that the interface uses.
pub(super) trait Daemon {
    /// The state of the daemon and its sessions.
    fn status(&self) -> Status;

    /// The servers of all sessions.
    fn servers(&self) -> Vec<ServerState>;

    /// Ends the connections of a server, and starts it again if `is_restart`. Returns the number of connections, or `None`
    /// if no session has the server.
    fn stop_server(&self, which: &Which, is_restart: bool) -> Option<usize>;

    /// Makes all sessions read their configuration again. Returns the number of sessions.
    fn reload(&self) -> usize;

    /// Pauses mcpzip, or resumes it: for all processes with this state directory.
    ///
    /// # Errors
    /// When that cannot be written down.
    fn switch(&self, is_pause: bool) -> io::Result<Switched>;

    /// The questions about calls of all sessions.
    fn approvals(&self) -> Approvals;

    /// Makes a link to the window.
    ///
    /// # Errors
    /// When it cannot listen.
    fn open_window(&self, opening: Opening) -> io::Result<WindowLink>;

    /// Ends all sessions of the window. Returns their number.
    fn close_window(&self) -> usize;

    /// The source of events.
    fn events(&self) -> &Arc<Events>;

    /// Writes an order to the events and to the audit log.
    fn record(&self, ordered: Ordered);

    /// Makes the daemon follow `order`.
    fn order(&self, order: Order);
}

/// A JSON-RPC error.
struct Refusal {
    code: i32,
    message: String,
}

/// A connection to the control interface.
struct Connection<'a, D> {
    daemon: &'a D,
    /// The process at the other end.
    process: Option<i32>,
    /// The subscription to events, if there is one.
    listener: Option<Listener>,
    /// An order to carry out after the response is written.
    order: Option<Order>,
}

/// Serves requests on `socket` until the other side closes it.
///
/// # Errors
/// When the socket fails or a line is not UTF-8. A line over [`LONGEST`] ends the connection without an error.
pub(super) async fn serve(daemon: &impl Daemon, socket: Stream) -> io::Result<()> {
    let process = endpoint::peer_process(&socket);
    let (reader, mut writer) = tokio::io::split(socket);
    let mut lines = BufReader::new(reader.take(LONGEST)).lines();
    let mut connection = Connection {
        daemon,
        process,
        listener: None,
        order: None,
    };
    loop {
        let text = tokio::select! {
            line = lines.next_line() => match line? {
                None => return Ok(()),
                Some(line) => {
                    lines.get_mut().get_mut().set_limit(LONGEST);
                    connection.answer(&line)
                }
            },
            heard = next(&mut connection.listener) => notification(&heard),
        };
        writer.write_all(text.as_bytes()).await?;
        if let Some(order) = connection.order.take() {
            daemon.order(order);
        }
    }
}

/// Answers one request that does not come over a connection, and returns the order to carry out afterwards.
pub(super) fn answer(
    daemon: &impl Daemon,
    process: Option<i32>,
    method: &str,
    params: Option<&RawValue>,
) -> (Result<String, (i32, String)>, Option<Order>) {
    let mut connection = Connection {
        daemon,
        process,
        listener: None,
        order: None,
    };
    let request = Request {
        id: None,
        method: method.to_owned(),
        params,
    };
    let outcome = connection.outcome(&request);
    let outcome = outcome.map_err(|Refusal { code, message }| (code, message));
    (outcome, connection.order)
}

/// Waits for the next event; without a subscription, forever.
async fn next(listener: &mut Option<Listener>) -> Heard {
    match listener {
        Some(listener) => listener.next().await,
        None => std::future::pending().await,
    }
}

fn notification(heard: &Heard) -> String {
    let (method, params) = match heard {
        Heard::Event(event) => ("event", json(event)),
        Heard::Lagged(lost) => ("lagged", json(&Lagged { lost: *lost })),
    };
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}\n")
}

impl<D: Daemon> Connection<'_, D> {
    /// The response to a line, with a line break. Empty for a notification.
    fn answer(&mut self, line: &str) -> String {
        let (id, outcome) = match serde_json::from_str::<Request<'_>>(line) {
            Err(_) => (
                "null",
                Err(refusal(-32700, "this is not a JSON-RPC request".to_owned())),
            ),
            Ok(request) => {
                let outcome = self.outcome(&request);
                match request.id {
                    None => return String::new(),
                    Some(id) => (id.get(), outcome),
                }
            }
        };
        match outcome {
            Ok(result) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n"),
            Err(Refusal { code, message }) => {
                let message = json(&message);
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}}}}}\n"
                )
            }
        }
    }

    fn outcome(&mut self, request: &Request<'_>) -> Result<String, Refusal> {
        let params = request.params;
        match request.method.as_str() {
            "daemon.status" => none(params).map(|()| json(&self.daemon.status())),
            "daemon.stop" => self.end(params, Order::Stop),
            "daemon.restart" => self.end(params, Order::Restart),
            "daemon.reload" => none(params).map(|()| {
                self.record("daemon.reload", None);
                let count = self.daemon.reload();
                json(&Count { count })
            }),
            "daemon.pause" => self.switch(params, true),
            "daemon.resume" => self.switch(params, false),
            "servers.list" => none(params).map(|()| {
                let servers = self.daemon.servers();
                json(&Servers { servers })
            }),
            "servers.stop" => self.stop_server(params, false),
            "servers.restart" => self.stop_server(params, true),
            "approvals.list" => {
                none(params)?;
                let approvals = self
                    .daemon
                    .approvals()
                    .pending()
                    .map_err(|error| undecided(&error))?;
                Ok(json(&Pending { approvals }))
            }
            "approvals.allow" => self.decide(params, true),
            "approvals.deny" => self.decide(params, false),
            "ui.open" => {
                let opening: Opening = of(params)?;
                let opened = self.daemon.open_window(opening);
                let opened = opened.map_err(|error| {
                    refusal(-32603, format!("the window cannot listen: {error}"))
                })?;
                self.record("ui.open", None);
                Ok(json(&opened))
            }
            "ui.close" => none(params).map(|()| {
                self.record("ui.close", None);
                let count = self.daemon.close_window();
                json(&Count { count })
            }),
            "ui.offered" => none(params).map(|()| json(&Offered::everything())),
            "events.list" => {
                let Since { since } = of(params)?;
                Ok(kept(self.daemon.events().since(since.unwrap_or(0))))
            }
            "events.subscribe" => {
                let Since { since } = of(params)?;
                let (past, listener) = self.daemon.events().listen(since);
                self.listener = Some(listener);
                Ok(kept(past))
            }
            method => Err(refusal(
                -32601,
                format!("unknown method `{method}`; docs/control.md lists those of version {API}"),
            )),
        }
    }

    fn end(&mut self, params: Option<&RawValue>, order: Order) -> Result<String, Refusal> {
        none(params)?;
        let method = match order {
            Order::Restart => "daemon.restart",
            _ => "daemon.stop",
        };
        self.record(method, None);
        self.order = Some(order);
        Ok("{}".to_owned())
    }

    fn switch(&self, params: Option<&RawValue>, is_pause: bool) -> Result<String, Refusal> {
        none(params)?;
        let (method, done) = match is_pause {
            true => ("daemon.pause", "paused"),
            false => ("daemon.resume", "resumed"),
        };
        let switched = self.daemon.switch(is_pause);
        let switched = switched
            .map_err(|error| refusal(-32603, format!("mcpzip cannot be {done}: {error}")))?;
        self.record(method, None);
        Ok(json(&switched))
    }

    fn record(&self, method: &str, which: Option<Which>) {
        let (server, session) = which.map_or((None, None), |Which { server, session }| {
            (Some(server), session)
        });
        self.daemon.record(Ordered {
            order: method.to_owned(),
            server,
            session,
            process: self.process,
        });
    }

    /// Decides on a call that waits for approval.
    fn decide(&self, params: Option<&RawValue>, is_allowed: bool) -> Result<String, Refusal> {
        let WhichApproval { id } = of(params)?;
        let decided = self.daemon.approvals().decide(&id, is_allowed);
        let question = decided.map_err(|error| undecided(&error))?;
        self.daemon.record(Ordered {
            order: if is_allowed {
                "approvals.allow"
            } else {
                "approvals.deny"
            }
            .to_owned(),
            server: Some(question.server.clone()),
            session: None,
            process: self.process,
        });
        Ok(json(&question))
    }

    fn stop_server(&self, params: Option<&RawValue>, is_restart: bool) -> Result<String, Refusal> {
        let params = params.ok_or_else(|| refusal(-32602, "`server` is missing".to_owned()))?;
        let which: Which = of(Some(params))?;
        match self.daemon.stop_server(&which, is_restart) {
            Some(count) => {
                let method = if is_restart {
                    "servers.restart"
                } else {
                    "servers.stop"
                };
                self.record(method, Some(which));
                Ok(json(&Count { count }))
            }
            None => Err(refusal(
                -32602,
                format!("no session has a server `{}`", which.server),
            )),
        }
    }
}

fn kept(past: Past) -> String {
    let Past {
        events,
        is_incomplete,
        calls,
        next,
    } = past;
    json(&Kept {
        events,
        is_incomplete,
        calls,
        next,
    })
}

fn none(params: Option<&RawValue>) -> Result<(), Refusal> {
    params.map_or(Ok(()), |params| of(Some(params)).map(|Nothing {}| ()))
}

fn of<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Refusal> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|error| refusal(-32602, format!("`params`: {error}")))
}

fn undecided(error: &approvals::Error) -> Refusal {
    refusal(-32602, error.to_string())
}

fn refusal(code: i32, message: String) -> Refusal {
    Refusal { code, message }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned())
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;

    use super::*;

    /// The parameters and the result of a method.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Method<P, R> {
        params: P,
        result: R,
    }

    /// All methods, and the parameters of all notifications, by name.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Control {
        #[schemars(rename = "daemon.status")]
        status: Method<Nothing, Status>,
        #[schemars(rename = "daemon.stop")]
        stop: Method<Nothing, Nothing>,
        #[schemars(rename = "daemon.restart")]
        restart: Method<Nothing, Nothing>,
        #[schemars(rename = "daemon.reload")]
        reload: Method<Nothing, Count>,
        #[schemars(rename = "daemon.pause")]
        pause: Method<Nothing, Switched>,
        #[schemars(rename = "daemon.resume")]
        resume: Method<Nothing, Switched>,
        #[schemars(rename = "servers.list")]
        servers: Method<Nothing, Servers>,
        #[schemars(rename = "servers.stop")]
        stop_server: Method<Which, Count>,
        #[schemars(rename = "servers.restart")]
        restart_server: Method<Which, Count>,
        #[schemars(rename = "approvals.list")]
        approvals: Method<Nothing, Pending>,
        #[schemars(rename = "approvals.allow")]
        allow: Method<WhichApproval, Question>,
        #[schemars(rename = "approvals.deny")]
        deny: Method<WhichApproval, Question>,
        #[schemars(rename = "ui.open")]
        open: Method<Opening, WindowLink>,
        #[schemars(rename = "ui.close")]
        close: Method<Nothing, Count>,
        #[schemars(rename = "ui.offered")]
        offered: Method<Nothing, Offered>,
        #[schemars(rename = "events.list")]
        events: Method<Since, Kept>,
        #[schemars(rename = "events.subscribe")]
        subscribe: Method<Since, Kept>,
        event: Numbered,
        lagged: Lagged,
    }

    #[test]
    fn the_schema_and_the_page_describe_every_method() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");
        let schema = schemars::schema_for!(Control);
        let made = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let committed = std::fs::read_to_string(format!("{docs}/control.schema.json"));
        if committed.unwrap_or_default() != made {
            let new = std::env::temp_dir().join("control.schema.json");
            std::fs::write(&new, made).unwrap();
            panic!(
                "docs/control.schema.json is not that of the types, which is in {}",
                new.display()
            );
        }
        let page = std::fs::read_to_string(format!("{docs}/control.md")).unwrap();
        let names = schema.get("properties").unwrap().as_object().unwrap();
        for name in names.keys() {
            assert!(
                page.contains(&format!("`{name}`")),
                "docs/control.md lacks `{name}`"
            );
        }
        // Each method has its right at a gateway.
        let with_right = crate::ui::METHODS.iter().map(|(name, _)| *name);
        let methods = names.keys().map(String::as_str);
        let methods = methods.filter(|name| !matches!(*name, "event" | "lagged"));
        assert_eq!(
            with_right.collect::<std::collections::BTreeSet<_>>(),
            methods.collect()
        );
    }
}
