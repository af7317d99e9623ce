//! `mcpzip serve --http`, and an HTTP/1.1 client for it that writes its requests by hand.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use serde_json::{Value, json};

use super::client::PATIENCE;
use super::{Client, Message, Setup};

/// A running server. It is killed on drop. A test that fails prints all output.
#[derive(Debug)]
pub(crate) struct Gateway {
    process: Option<Client>,
    address: SocketAddr,
}

/// A request before it is sent.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Call {
    address: SocketAddr,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A session with a handshake.
#[derive(Debug, Clone)]
pub(crate) struct HttpSession {
    address: SocketAddr,
    id: String,
}

/// An answer whose head has arrived.
#[derive(Debug)]
pub(crate) struct Incoming {
    reader: BufReader<TcpStream>,
    status: u16,
    headers: BTreeMap<String, String>,
    /// Bytes of the body that were not taken yet.
    pending: Vec<u8>,
    left: Left,
    /// The id of the last event that had one.
    last_id: String,
}

/// The rest of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Bytes(usize),
    Chunks,
}

/// A complete answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) data: String,
}

impl Setup {
    /// Starts `mcpzip serve --http` on a free loopback port, with additional arguments.
    #[track_caller]
    pub(crate) fn serve(&self, arguments: &[&str]) -> Gateway {
        self.serve_at("127.0.0.1:0", arguments)
    }

    /// Starts `mcpzip serve --http` at this address.
    #[track_caller]
    pub(crate) fn serve_at(&self, address: &str, arguments: &[&str]) -> Gateway {
        let gateway = self.serve_by(&[&["serve", "--http", address], arguments].concat());
        let shown = format!("on http://{}", address.trim_end_matches('0'));
        let process = gateway.process.as_ref().expect("it was started here");
        process.wait_for_stderr(&shown);
        gateway
    }

    /// Starts `mcpzip` with arguments that make it serve over HTTP.
    #[track_caller]
    pub(crate) fn serve_by(&self, arguments: &[&str]) -> Gateway {
        let process = self.start_with(arguments);
        let line = "serving MCP on http://";
        process.wait_for_stderr(line);
        process.wait_for_stderr("/mcp\n");
        let stderr = process.stderr();
        let url = stderr
            .lines()
            .find_map(|text| text.strip_prefix(line))
            .expect("the URL stands on a line of its own");
        let address = url
            .strip_suffix("/mcp")
            .and_then(|address| address.parse().ok())
            .expect("it is an address");
        let process = Some(process);
        Gateway { process, address }
    }
}

impl Gateway {
    /// A server of a process that another part of the test started.
    #[track_caller]
    pub(crate) fn at(url: &str) -> Self {
        let address = url.strip_prefix("http://");
        let address = address.and_then(|rest| rest.strip_suffix("/mcp"));
        let address = address.and_then(|address| address.parse().ok());
        Self {
            process: None,
            address: address.unwrap_or_else(|| panic!("no URL of an endpoint: {url}")),
        }
    }

    pub(crate) fn process(&mut self) -> &mut Client {
        self.process.as_mut().expect("it was started here")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A request whose `Host` is the address of the server.
    pub(crate) fn call(&self, method: &str, path: &str) -> Call {
        Call::new(self.address, method, path)
    }

    /// A message to the endpoint, with the headers that every client sends.
    pub(crate) fn post(&self, body: &str) -> Call {
        Call::post(self.address, body)
    }

    /// A request of revision 2026-07-28 with its headers. `members` are the members of its `params`.
    pub(crate) fn modern(&self, method: &str, members: &str) -> Call {
        self.modern_of("test", method, members)
    }

    /// A request of revision 2026-07-28 from a client with this name.
    pub(crate) fn modern_of(&self, client: &str, method: &str, members: &str) -> Call {
        self.modern_with(client, "{}", method, members)
    }

    /// A request of revision 2026-07-28 from a client with this name and these capabilities, a JSON text.
    pub(crate) fn modern_with(
        &self,
        client: &str,
        capabilities: &str,
        method: &str,
        members: &str,
    ) -> Call {
        let meta = format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities},"io.modelcontextprotocol/clientInfo":{{"name":"{client}","version":"1"}}}}"#
        );
        let comma = if members.is_empty() { "" } else { "," };
        let params = format!("{{{members}{comma}{meta}}}");
        let name = serde_json::from_str::<Value>(&params)
            .ok()
            .and_then(|params| params["name"].as_str().map(str::to_owned));
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
        let call = self
            .post(&body)
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", method);
        match name {
            Some(name) => call.header("Mcp-Name", &name),
            None => call,
        }
    }

    /// A modern call of a tool through `execute_tool`.
    pub(crate) fn modern_execute(&self, name: &str, more: &str) -> Call {
        self.modern(
            "tools/call",
            &format!(r#""name":"execute_tool","arguments":{{"name":"{name}"}}{more}"#),
        )
    }

    /// Opens a session as a client of 2025-11-25.
    #[track_caller]
    pub(crate) fn session(&self) -> HttpSession {
        self.session_of("2025-11-25", &json!({}))
    }

    /// Opens a session as a client of `version` with these capabilities.
    #[track_caller]
    pub(crate) fn session_of(&self, version: &str, capabilities: &Value) -> HttpSession {
        let answer = self.post(&initialize(version, capabilities)).send();
        assert_eq!(answer.status, 200, "{answer:?}");
        let session = HttpSession {
            address: self.address,
            id: answer.header("mcp-session-id").to_owned(),
        };
        assert!(!session.id.is_empty(), "{answer:?}");
        let done = session
            .post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .send();
        assert_eq!((done.status, done.body.as_str()), (202, ""));
        session
    }
}

/// The request that opens a session.
pub(crate) fn initialize(version: &str, capabilities: &Value) -> String {
    let params = json!({
        "protocolVersion": version, "capabilities": capabilities, "clientInfo": { "name": "test", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()
}

impl HttpSession {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The session at another address.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        let id = self.id.clone();
        Self { address, id }
    }

    /// A session with another id.
    pub(crate) fn named(&self, id: &str) -> Self {
        let (address, id) = (self.address, id.to_owned());
        Self { address, id }
    }

    /// A message in this session.
    pub(crate) fn post(&self, body: &str) -> Call {
        Call::post(self.address, body).header("Mcp-Session-Id", &self.id)
    }

    /// A request in this session.
    pub(crate) fn request(&self, id: u64, method: &str, params: &str) -> Call {
        self.post(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ))
    }

    /// A call of a tool through `execute_tool`. `more` follows its parameters.
    pub(crate) fn execute(&self, id: u64, name: &str, more: &str) -> Call {
        self.request(
            id,
            "tools/call",
            &format!(r#"{{"name":"execute_tool","arguments":{{"name":"{name}"}}{more}}}"#),
        )
    }

    /// Opens the stream for messages that belong to no request.
    #[track_caller]
    pub(crate) fn listen(&self) -> Incoming {
        let call = Call::new(self.address, "GET", "/mcp").header("Accept", "text/event-stream");
        let stream = call.header("Mcp-Session-Id", &self.id).open();
        assert_eq!(
            (stream.status, stream.header("content-type")),
            (200, "text/event-stream")
        );
        stream
    }

    /// A GET that resumes a stream after the event with this id.
    pub(crate) fn resume(&self, id: &str) -> Call {
        Call::new(self.address, "GET", "/mcp")
            .header("Accept", "text/event-stream")
            .header("Mcp-Session-Id", &self.id)
            .header("Last-Event-ID", id)
    }

    /// Ends the session.
    pub(crate) fn delete(&self) -> Answer {
        Call::new(self.address, "DELETE", "/mcp")
            .header("Mcp-Session-Id", &self.id)
            .send()
    }
}

impl Call {
    fn new(address: SocketAddr, method: &str, path: &str) -> Self {
        let headers = vec![("Host".to_owned(), address.to_string())];
        Self {
            address,
            method: method.to_owned(),
            path: path.to_owned(),
            headers,
            body: Vec::new(),
        }
    }

    fn post(address: SocketAddr, body: &str) -> Self {
        Self::new(address, "POST", "/mcp")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .body(body)
    }

    /// Sets a header and removes others of that name.
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        self.without(name).and_header(name, value)
    }

    /// Adds a header, also if there is one of that name.
    pub(crate) fn and_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Removes a header.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// Sends it to another path.
    pub(crate) fn to(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        self.body = body.as_bytes().to_vec();
        self
    }

    /// The bytes of the request.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        self.headers
            .iter()
            .for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        let has_length = |name: &str| {
            ["content-length", "transfer-encoding"]
                .iter()
                .any(|own| name.eq_ignore_ascii_case(own))
        };
        if !self.headers.iter().any(|(name, _)| has_length(name)) {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }

    /// Writes the request on a new connection without reading the answer.
    #[track_caller]
    pub(crate) fn begin(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the server takes connections");
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&self.bytes()).expect("the server reads");
        stream
    }

    /// Sends the request and waits for the head of the answer.
    #[track_caller]
    pub(crate) fn open(&self) -> Incoming {
        Incoming::read(BufReader::new(self.begin()))
    }

    /// Sends the request and waits for the whole answer.
    #[track_caller]
    pub(crate) fn send(&self) -> Answer {
        self.open().whole().0
    }

    /// Sends the request on an existing connection and waits for the whole answer.
    #[track_caller]
    pub(crate) fn send_on(
        &self,
        connection: BufReader<TcpStream>,
    ) -> (Answer, BufReader<TcpStream>) {
        connection
            .get_ref()
            .write_all(&self.bytes())
            .expect("the server reads");
        Incoming::read(connection).whole()
    }
}

impl Incoming {
    /// Reads the head of an answer.
    #[track_caller]
    pub(crate) fn read(mut reader: BufReader<TcpStream>) -> Self {
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).expect("the server answers");
            line.trim_end().to_owned()
        };
        let start = line();
        let status = start
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {start:?}"));
        let mut headers = BTreeMap::new();
        loop {
            let line = line();
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            let known: &mut String = headers.entry(name.to_ascii_lowercase()).or_default();
            // Cookies are the only header of which there may be several.
            if name.eq_ignore_ascii_case("set-cookie") && !known.is_empty() {
                known.push('\n');
            } else {
                known.clear();
            }
            known.push_str(value);
        }
        let left = match headers.get("content-length") {
            Some(length) => Left::Bytes(length.parse().unwrap()),
            None if headers.contains_key("transfer-encoding") => Left::Chunks,
            None => Left::Bytes(0),
        };
        Self {
            reader,
            status,
            headers,
            pending: Vec::new(),
            left,
            last_id: String::new(),
        }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// A header. Empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Reads more of the body. Returns false at its end.
    #[track_caller]
    fn more(&mut self) -> bool {
        let length = match self.left {
            Left::Bytes(length) => length,
            Left::Chunks => {
                let mut line = String::new();
                self.reader.read_line(&mut line).expect("a chunk comes");
                if line.is_empty() {
                    // The connection was closed.
                    return false;
                }
                usize::from_str_radix(line.trim(), 16)
                    .unwrap_or_else(|_| panic!("no size of a chunk: {line:?}"))
            }
        };
        let start = self.pending.len();
        self.pending.resize(start + length, 0);
        self.reader
            .read_exact(&mut self.pending[start..])
            .expect("the body comes");
        if self.left == Left::Chunks {
            self.reader
                .read_exact(&mut [0; 2])
                .expect("a chunk has an end");
        } else {
            self.left = Left::Bytes(0);
        }
        length > 0
    }

    /// Reads the rest of the body. The connection can then carry another request.
    #[track_caller]
    pub(crate) fn whole(mut self) -> (Answer, BufReader<TcpStream>) {
        while self.more() {}
        let body = String::from_utf8(self.pending).expect("the body is UTF-8");
        (
            Answer {
                status: self.status,
                headers: self.headers,
                body,
            },
            self.reader,
        )
    }

    /// Waits for the next event; `None` at the end of the stream.
    #[track_caller]
    pub(crate) fn event(&mut self) -> Option<Event> {
        let start = Instant::now();
        loop {
            if let Some(event) = Event::parse(&self.block()?) {
                return Some(event);
            }
            // A stream sends comments to stay open, so the timeout of the connection never ends the wait.
            assert!(start.elapsed() < PATIENCE, "no event came");
        }
    }

    /// Waits for the first event of a stream, which has no message. Returns its id.
    #[track_caller]
    pub(crate) fn priming_event(&mut self) -> String {
        let text = self.block().expect("the stream goes on");
        assert_eq!(text, format!("id: {}\ndata: \n\n", self.last_id));
        self.last_id.clone()
    }

    /// The id of the last event that had one. Empty if none had.
    pub(crate) fn last_id(&self) -> &str {
        &self.last_id
    }

    /// Waits for the next event or comment. `None` at the end of the stream.
    #[track_caller]
    fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.pending.windows(2).position(|pair| pair == b"\n\n") {
                let text = self.pending.drain(..end + 2).collect();
                let text = String::from_utf8(text).expect("events are UTF-8");
                if let Some(id) = text.lines().find_map(|line| line.strip_prefix("id: ")) {
                    id.clone_into(&mut self.last_id);
                }
                return Some(text);
            }
            if !self.more() {
                return None;
            }
        }
    }

    /// Waits for the next part of a silent stream, which must be a comment.
    #[track_caller]
    pub(crate) fn comment(&mut self) -> String {
        assert!(self.pending.is_empty() && self.more(), "the stream goes on");
        let text =
            String::from_utf8(std::mem::take(&mut self.pending)).expect("comments are UTF-8");
        assert!(text.starts_with(':'), "{text:?}");
        text
    }

    /// Waits for the next message.
    #[track_caller]
    pub(crate) fn message(&mut self) -> Message {
        let event = self.event().expect("the stream goes on");
        assert_eq!(event.kind, "message");
        Message::new(event.data)
    }
}

impl Event {
    /// Parses an event. `None` for a comment.
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| -> Vec<&str> {
            text.lines()
                .filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                .collect()
        };
        let (kind, data) = (field("event"), field("data"));
        assert!(data.len() <= 1, "more than one line of data: {text:?}");
        Some(Self {
            kind: (*kind.first()?).to_owned(),
            data: (*data.first()?).to_owned(),
        })
    }
}

impl Answer {
    /// A header. Empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The only message of the answer, in either form; of a stream, the last one.
    #[track_caller]
    pub(crate) fn message(&self) -> Message {
        if self.header("content-type") == "application/json" {
            return Message::new(self.body.clone());
        }
        let last = self.body.split("\n\n").filter_map(Event::parse).last();
        Message::new(last.unwrap_or_else(|| panic!("no message: {self:?}")).data)
    }

    /// The status, and the code of the JSON-RPC error.
    #[track_caller]
    pub(crate) fn fault(&self) -> (u16, i64) {
        (self.status, self.message().error_code())
    }
}
