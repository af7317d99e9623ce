//! What other processes of the user ask the daemon about itself: JSON-RPC, a message per line.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

/// The longest line, in bytes.
const LONGEST: u64 = 1024 * 1024;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: String,
}

/// The answer to `daemon.status`.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    pub(super) protocol: u32,
    pub(super) version: &'static str,
    pub(super) process: u32,
    pub(super) configuration: PathBuf,
    /// How long it has run, in seconds.
    pub(super) uptime: u64,
    /// How long it stays without sessions, in seconds.
    pub(super) idle: f64,
    pub(super) sessions: Vec<Shown>,
}

/// A session as it is shown.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Shown {
    pub(super) process: u32,
    pub(super) directory: PathBuf,
    pub(super) generation: u32,
    /// Since when it is served here, in seconds since 1970.
    pub(super) since: u64,
}

/// How a daemon ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    GoOn,
    /// Its sessions go on in another.
    Restart,
    /// Its sessions go on by themselves.
    Stop,
}

/// What can be asked of a daemon.
pub(super) trait Daemon {
    /// How it stands.
    fn status(&self) -> Status;

    /// Tells it to end.
    fn order(&self, order: Order);
}

/// Answers until the other end has no more questions.
pub(super) async fn serve(daemon: &impl Daemon, socket: UnixStream) -> io::Result<()> {
    let (reader, mut writer) = socket.into_split();
    let mut lines = BufReader::new(reader.take(LONGEST)).lines();
    while let Some(line) = lines.next_line().await? {
        lines.get_mut().get_mut().set_limit(LONGEST);
        let (answer, order) = answer(daemon, &line);
        writer.write_all(answer.as_bytes()).await?;
        if let Some(order) = order {
            daemon.order(order);
        }
    }
    Ok(())
}

/// The answer to a line, with its end, and how the daemon is to end after it, if at all.
fn answer(daemon: &impl Daemon, line: &str) -> (String, Option<Order>) {
    let Ok(request) = serde_json::from_str::<Request<'_>>(line) else {
        let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this is no JSON-RPC request"}}"#;
        return (format!("{error}\n"), None);
    };
    let id = request.id.map_or("null", RawValue::get);
    let result =
        |result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
    match request.method.as_str() {
        "daemon.status" => (result(&json(&daemon.status())), None),
        "daemon.stop" => (result("{}"), Some(Order::Stop)),
        "daemon.restart" => (result("{}"), Some(Order::Restart)),
        _ => {
            let error = r#"{"code":-32601,"message":"unknown method: `daemon.status`, `daemon.stop` and `daemon.restart` are known"}"#;
            (
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n"),
                None,
            )
        }
    }
}

fn json(status: &Status) -> String {
    serde_json::to_string(status).unwrap_or_else(|_| "{}".to_owned())
}
