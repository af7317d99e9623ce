//! A fake server behind HTTP: posted messages go to its stdin, and its output is sent in the form of the transport.
//!
//! One script therefore runs over every transport. A process is a session. A stateless server of the newest revision is
//! started again when its process has ended.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::http::{HttpServer, Reply, Request};
use super::program;

/// The form of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Streamable HTTP with answers in JSON.
    Json,
    /// Streamable HTTP with answers as event streams.
    Events,
    /// HTTP+SSE.
    Old,
}

/// The fake server's script, log and process.
struct Bridge {
    form: Form,
    is_modern: bool,
    script: PathBuf,
    log: PathBuf,
    process: Mutex<Option<Arc<Process>>>,
}

struct Process {
    session: String,
    child: Mutex<Child>,
    stdin: Mutex<ChildStdin>,
    routes: Mutex<Routes>,
}

/// The receivers of the process's output.
#[derive(Default)]
struct Routes {
    ended: bool,
    waiting: Vec<Waiting>,
    /// The stream for messages that belong to no request. With HTTP+SSE, the only stream.
    unasked: Option<Sender<Vec<u8>>>,
}

struct Waiting {
    id: String,
    token: Option<String>,
    lines: Sender<Vec<u8>>,
}

#[derive(Debug, Default, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Debug, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

/// Starts the fake server with this script behind HTTP.
pub(crate) fn start(form: Form, is_modern: bool, script: PathBuf, log: PathBuf) -> HttpServer {
    let bridge = Bridge {
        form,
        is_modern,
        script,
        log,
        process: Mutex::default(),
    };
    HttpServer::start(move |request, reply| match form {
        Form::Json | Form::Events => bridge.streamable(request, reply),
        Form::Old => bridge.old(request, reply),
    })
}

impl Bridge {
    fn streamable(&self, request: &Request, reply: &mut Reply) {
        let is_modern = self.is_modern;
        let process = match request.rpc() {
            "initialize" if !is_modern => Some(self.restart()),
            _ if is_modern => Some(self.running().unwrap_or_else(|| self.restart())),
            _ => self
                .running()
                .filter(|process| process.session == request.header("mcp-session-id")),
        };
        let Some(process) = process else {
            return reply.whole("404 Not Found", "", "");
        };
        let message: Message<'_> = serde_json::from_str(&request.text).unwrap_or_default();
        match (
            request.method.as_str(),
            message.method.as_deref(),
            message.id,
        ) {
            ("POST", Some("subscriptions/listen"), Some(id)) if is_modern => {
                let news = process.hear();
                process.write(&request.text);
                reply.events("");
                relay(&news, Some(id.get()), reply);
            }
            ("POST", Some(_), Some(id)) => {
                let lines = process.expect(id.get(), token_of(message.params));
                process.write(&request.text);
                self.answer(&process, &lines, id.get(), reply);
            }
            ("POST", ..) => {
                process.write(&request.text);
                reply.whole("202 Accepted", "", "");
            }
            ("GET", ..) if !is_modern => {
                reply.events("");
                relay(&process.hear(), None, reply);
            }
            ("DELETE", ..) if !is_modern => {
                process.kill();
                reply.whole("200 OK", "", "");
            }
            _ => reply.whole("405 Method Not Allowed", "", ""),
        }
    }

    /// Relays the messages of a request up to its answer. A modern client cancels by closing the connection.
    fn answer(&self, process: &Process, lines: &Receiver<Vec<u8>>, id: &str, reply: &mut Reply) {
        let session = if self.is_modern {
            String::new()
        } else {
            format!("mcp-session-id: {}\r\n", process.session)
        };
        if self.form == Form::Events {
            reply.events(&session);
        }
        loop {
            match lines.recv_timeout(Duration::from_millis(10)) {
                Ok(line) if self.form == Form::Events => {
                    reply.event(&line);
                }
                Ok(line) if is_progress(&line) => {}
                Ok(line) => {
                    let headers = format!("content-type: application/json\r\n{session}");
                    let is_refusal = line.windows(6).any(|window| window == b"-32022");
                    return reply.whole_bytes(
                        if is_refusal {
                            "400 Bad Request"
                        } else {
                            "200 OK"
                        },
                        &headers,
                        &line,
                    );
                }
                Err(RecvTimeoutError::Disconnected) => return reply.vanish(),
                Err(RecvTimeoutError::Timeout) if reply.is_gone() => {
                    if self.is_modern {
                        let params =
                            format!(r#"{{"requestId":{id},"reason":"the client let go"}}"#);
                        process.write(&format!(
                            r#"{{"method":"notifications/cancelled","params":{params}}}"#
                        ));
                    }
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn old(&self, request: &Request, reply: &mut Reply) {
        match (request.method.as_str(), self.running()) {
            ("GET", _) => {
                let process = self.restart();
                let lines = process.hear();
                reply.events("");
                reply.raw(b"event: endpoint\ndata: /messages\n\n");
                relay(&lines, None, reply);
                process.kill();
            }
            ("POST", Some(process)) if request.path == "/messages" => {
                process.write(&request.text);
                reply.whole("202 Accepted", "", "");
            }
            _ => reply.whole("404 Not Found", "", ""),
        }
    }

    fn running(&self) -> Option<Arc<Process>> {
        let process = self.process.lock().unwrap().clone();
        process.filter(|process| !process.routes.lock().unwrap().ended)
    }

    /// Replaces the process.
    fn restart(&self) -> Arc<Process> {
        let mut current = self.process.lock().unwrap();
        if let Some(old) = current.take() {
            old.kill();
        }
        let mut command = Command::new(program::fake_server());
        let mut child = command
            .args([&self.script, &self.log])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let process = Arc::new(Process {
            session: format!("session-{}", child.id()),
            stdin: Mutex::new(child.stdin.take().unwrap()),
            child: Mutex::new(child),
            routes: Mutex::default(),
        });
        let (reading, has_one_stream) = (process.clone(), self.form == Form::Old);
        std::thread::spawn(move || reading.read(stdout, has_one_stream));
        *current = Some(process.clone());
        process
    }
}

impl Process {
    /// Writes to the process. If it has ended, the requests that wait for it get an error.
    fn write(&self, message: &str) {
        let _ = writeln!(self.stdin.lock().unwrap(), "{message}");
    }

    fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Registers a request. Returns its messages.
    fn expect(&self, id: &str, token: Option<String>) -> Receiver<Vec<u8>> {
        let (lines, receiver) = channel();
        let mut routes = self.routes.lock().unwrap();
        if !routes.ended {
            routes.waiting.push(Waiting {
                id: id.to_owned(),
                token,
                lines,
            });
        }
        receiver
    }

    /// Opens the stream for messages that belong to no request.
    fn hear(&self) -> Receiver<Vec<u8>> {
        let (lines, receiver) = channel();
        let mut routes = self.routes.lock().unwrap();
        routes.unasked = (!routes.ended).then_some(lines);
        receiver
    }

    fn read(&self, stdout: impl Read, has_one_stream: bool) {
        let mut stdout = BufReader::new(stdout);
        loop {
            let mut line = Vec::new();
            if !matches!(stdout.read_until(b'\n', &mut line), Ok(1..)) {
                break;
            }
            line.pop();
            let mut routes = self.routes.lock().unwrap();
            let waiting = if has_one_stream {
                None
            } else {
                routes.receiver_of(&line)
            };
            let lines = waiting.or(routes.unasked.clone());
            // The receiver may be gone.
            let _ = lines.map(|lines| lines.send(line));
        }
        *self.routes.lock().unwrap() = Routes {
            ended: true,
            ..Routes::default()
        };
    }
}

impl Routes {
    /// The receiver of a line: found by its id, even if the rest is damaged, or by its progress token.
    fn receiver_of(&mut self, line: &[u8]) -> Option<Sender<Vec<u8>>> {
        let start = String::from_utf8_lossy(&line[..line.len().min(4096)]).into_owned();
        if is_progress(line) {
            let message: Message<'_> = serde_json::from_slice(line).ok()?;
            let token = token_of(message.params)?;
            return self
                .waiting
                .iter()
                .find(|one| one.token.as_ref() == Some(&token))
                .map(|one| one.lines.clone());
        }
        let is_answer = |waiting: &Waiting| {
            let id = format!("\"id\":{}", waiting.id);
            start
                .split_once(&id)
                .is_some_and(|(_, rest)| !rest.starts_with(|next: char| next.is_ascii_digit()))
        };
        let at = self.waiting.iter().position(is_answer)?;
        Some(self.waiting.swap_remove(at).lines)
    }
}

/// Writes events until there are no more or the client has left. Those of a subscription name it, and the first of them
/// acknowledges it.
fn relay(lines: &Receiver<Vec<u8>>, subscription: Option<&str>, reply: &mut Reply) {
    let notification = |id: &str, method: &str| {
        let params = format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
    };
    if let Some(id) = subscription {
        reply.event(notification(id, "notifications/subscriptions/acknowledged").as_bytes());
    }
    loop {
        match lines.recv_timeout(Duration::from_millis(10)) {
            Ok(line) => match subscription {
                Some(id) => {
                    reply.event(notification(id, "notifications/tools/list_changed").as_bytes());
                }
                None => reply.event(&line),
            },
            Err(RecvTimeoutError::Timeout) if !reply.is_gone() => {}
            Err(_) => return,
        }
    }
}

fn is_progress(line: &[u8]) -> bool {
    line.starts_with(br#"{"jsonrpc":"2.0","method":"notifications/progress""#)
}

/// The token in `_meta` of a request, or in a progress notification.
fn token_of(params: Option<&RawValue>) -> Option<String> {
    let params: Params<'_> = serde_json::from_str(params?.get()).ok()?;
    let token = params.token.or(params.meta.and_then(|meta| meta.token))?;
    Some(token.get().to_owned())
}
