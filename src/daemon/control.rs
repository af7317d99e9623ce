//! What other processes of the user ask the daemon about itself: JSON-RPC, a message per line.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use super::message::PROTOCOL;
use super::server::{Daemon, Order, Shown};

/// The longest line, in bytes.
const LONGEST: u64 = 1024 * 1024;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: String,
}

/// The answer to `daemon.status`.
#[derive(Serialize)]
struct Status {
    protocol: u32,
    version: &'static str,
    process: u32,
    configuration: std::path::PathBuf,
    /// How long it has run, in seconds.
    uptime: u64,
    /// How long it stays without sessions, in seconds.
    idle: f64,
    sessions: Vec<Shown>,
}

/// Answers until the other end has no more questions.
pub(super) async fn serve(daemon: &Daemon, socket: UnixStream) -> io::Result<()> {
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
fn answer(daemon: &Daemon, line: &str) -> (String, Option<Order>) {
    let Ok(request) = serde_json::from_str::<Request<'_>>(line) else {
        let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this is no JSON-RPC request"}}"#;
        return (format!("{error}\n"), None);
    };
    let id = request.id.map_or("null", RawValue::get);
    let result =
        |result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
    match request.method.as_str() {
        "daemon.status" => (result(&status(daemon)), None),
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

fn status(daemon: &Daemon) -> String {
    let status = Status {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION"),
        process: std::process::id(),
        configuration: daemon.paths.config_file.clone(),
        uptime: daemon.began.elapsed().as_secs(),
        idle: daemon.idle().as_secs_f64(),
        sessions: daemon.sessions(),
    };
    serde_json::to_string(&status).unwrap_or_else(|_| "{}".to_owned())
}
