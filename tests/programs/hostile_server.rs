//! A server that tries to reach what a sandbox must keep from it, for tests.
//!
//! Its tool `attempt` gets targets by kind, tries each, and answers with an object of what has worked: `{"read /path": true, …}`.
//! Nothing it does is harmful: it reads files that the test wrote, and talks to sockets that the test listens at.

use std::error::Error;
use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};

const PATIENCE: Duration = Duration::from_secs(3);

fn main() -> Result<(), Box<dyn Error>> {
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else {
            continue;
        };
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "hostile", "version": "1" },
            }),
            "tools/list" => {
                json!({ "tools": [{ "name": "attempt", "inputSchema": { "type": "object" } }] })
            }
            "tools/call" => {
                let done = attempt(&message["params"]["arguments"]);
                json!({ "content": [{ "type": "text", "text": Value::Object(done).to_string() }] })
            }
            _ => json!({}),
        };
        let mut out = io::stdout().lock();
        writeln!(
            out,
            "{}",
            json!({ "jsonrpc": "2.0", "id": id, "result": result })
        )?;
        out.flush()?;
    }
    Ok(())
}

/// Tries each target of each kind.
fn attempt(targets: &Value) -> Map<String, Value> {
    let mut done = Map::new();
    for (kind, targets) in targets.as_object().into_iter().flatten() {
        for target in targets.as_array().into_iter().flatten() {
            let target = target.as_str().unwrap_or_default();
            let worked = one(kind, target).is_ok_and(|worked| worked);
            done.insert(format!("{kind} {target}"), json!(worked));
        }
    }
    done
}

fn one(kind: &str, target: &str) -> io::Result<bool> {
    match kind {
        "read" => fs::read(target).map(|bytes| !bytes.is_empty()),
        "list" => fs::read_dir(target).map(|entries| entries.count() > 0),
        "write" => fs::write(target, "hostile").map(|()| true),
        // The variables of another process, found by a text in them.
        "variables" => {
            let found = fs::read_dir("/proc")?.flatten().any(|entry| {
                let own = entry.file_name().to_string_lossy() == std::process::id().to_string();
                let variables = fs::read(entry.path().join("environ")).unwrap_or_default();
                !own && String::from_utf8_lossy(&variables).contains(target)
            });
            Ok(found)
        }
        "variable" => Ok(std::env::vars_os().any(|(name, _)| name == target)),
        "process" => Ok(fs::metadata(format!("/proc/{target}")).is_ok()),
        "tcp" => {
            let address = target.parse().map_err(io::Error::other)?;
            TcpStream::connect_timeout(&address, PATIENCE).map(|_| true)
        }
        // The test looks whether it arrives: sending alone says nothing.
        "udp" => {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.send_to(b"hostile", target).map(|_| true)
        }
        "run" => {
            let status = Command::new("sh")
                .args(["-c", target])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            Ok(status.success())
        }
        // A process in a session of its own, without the variables by which it could be found.
        "leave" => Command::new("setsid")
            .args(["sleep", target])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(|_| true),
        #[cfg(unix)]
        "link" => {
            let (link, to) = target.split_once(" to ").unwrap_or_default();
            std::os::unix::fs::symlink(to, link).map(|()| true)
        }
        #[cfg(target_os = "linux")]
        _ => socket(kind, target),
        #[cfg(not(target_os = "linux"))]
        _ => Ok(false),
    }
}

/// Unix sockets: by path and abstract, as streams and as datagrams of a connected pair.
#[cfg(target_os = "linux")]
fn socket(kind: &str, target: &str) -> io::Result<bool> {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
    match kind {
        "unix" => UnixStream::connect(target).map(|_| true),
        "abstract" => {
            let address = SocketAddr::from_abstract_name(target)?;
            UnixStream::connect_addr(&address).map(|_| true)
        }
        "pair" => {
            let (one, _other) = UnixDatagram::pair()?;
            let address = SocketAddr::from_abstract_name(target)?;
            one.send_to_addr(b"hostile", &address).map(|_| true)
        }
        // A server needs these for its own processes.
        "own pair" => {
            let (mut one, mut other) = UnixStream::pair()?;
            one.write_all(b"x")?;
            io::Read::read_exact(&mut other, &mut [0]).map(|()| true)
        }
        _ => Ok(false),
    }
}
