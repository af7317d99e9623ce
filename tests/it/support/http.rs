//! A scripted HTTP server on loopback. It records requests, and answers, stalls or disconnects as scripted.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::client::{PATIENCE, until};

/// A running server. Its threads end with the test process.
#[derive(Debug, Clone)]
pub(crate) struct HttpServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    /// The body as text and as JSON.
    pub(crate) text: String,
    pub(crate) body: Value,
}

/// The connection for the answer.
#[derive(Debug)]
pub(crate) struct Reply {
    stream: TcpStream,
    /// Whether the connection can carry another request.
    keeps: bool,
    /// The requests of all connections.
    requests: Arc<Mutex<Vec<Request>>>,
}

impl HttpServer {
    /// Starts a server that answers each request with `handler`. Each connection has a thread.
    pub(crate) fn start(handler: impl Fn(&Request, &mut Reply) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
        };
        let (handler, requests) = (Arc::new(handler), server.requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (handler, requests) = (handler.clone(), requests.clone());
                std::thread::spawn(move || serve(stream, &*handler, requests));
            }
        });
        server
    }

    /// A server with a handshake, a session and the tools `t` and `u`. `call` answers the calls of `t`.
    pub(crate) fn with_tool(call: impl Fn(&Request, &mut Reply) + Send + Sync + 'static) -> Self {
        Self::start(move |request, reply| match request.rpc() {
            "tools/call" if request.body["params"]["name"] == "t" => call(request, reply),
            _ => legacy(request, reply),
        })
    }

    /// The entry of this server in a configuration.
    pub(crate) fn entry(&self, members: Value) -> String {
        let mut entry = json!({ "url": self.url("/mcp") });
        entry
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        entry.to_string()
    }

    /// The address of the listener.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL on this server.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The number of requests with this JSON-RPC method, or with this HTTP method and no message.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.requests()
            .iter()
            .filter(|request| request.rpc() == method)
            .count()
    }

    /// The first request of this method.
    #[track_caller]
    pub(crate) fn first(&self, method: &str) -> Request {
        let request = self
            .requests()
            .into_iter()
            .find(|request| request.rpc() == method);
        request.unwrap_or_else(|| panic!("no {method} came"))
    }
}

impl Request {
    /// The JSON-RPC method, or the HTTP method if there is no message.
    pub(crate) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.method)
    }

    /// A header. Empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The answer to this request with a tool result that has this text.
    pub(crate) fn result(&self, text: &str) -> String {
        self.answer(&json!({ "content": [{ "type": "text", "text": text }] }))
    }

    /// The answer to this request.
    pub(crate) fn answer(&self, result: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }).to_string()
    }
}

impl Reply {
    /// Sends a complete answer in JSON.
    pub(crate) fn json(&mut self, body: &str) {
        self.whole("200 OK", "content-type: application/json\r\n", body);
    }

    /// Sends a complete answer. `headers` include their line ends.
    pub(crate) fn whole(&mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        self.raw(
            format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}")
                .as_bytes(),
        );
    }

    /// Sends a complete answer of any bytes.
    pub(crate) fn whole_bytes(&mut self, status: &str, headers: &str, body: &[u8]) {
        self.raw(
            format!(
                "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n",
                body.len()
            )
            .as_bytes(),
        );
        self.raw(body);
    }

    /// Sends the head of an event stream, which lasts until the connection ends.
    pub(crate) fn events(&mut self, headers: &str) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
        self.raw(format!("{head}{headers}\r\n").as_bytes());
        self.keeps = false;
    }

    /// Sends a message in an event stream.
    pub(crate) fn event(&mut self, message: &[u8]) {
        self.raw(&[b"event: message\ndata: ", message, b"\n\n"].concat());
    }

    /// Sends any bytes. Returns false if the client has left.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> bool {
        self.keeps &= self.stream.write_all(bytes).is_ok();
        self.keeps
    }

    /// Closes the connection.
    pub(crate) fn vanish(&mut self) {
        self.keeps = false;
    }

    /// Resets the connection, so that the client gets an error instead of an end.
    pub(crate) fn reset(&mut self) {
        self.keeps = false;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(async {
            let stream = self.stream.try_clone().unwrap();
            stream.set_nonblocking(true).unwrap();
            tokio::net::TcpStream::from_std(stream)
                .unwrap()
                .set_zero_linger()
                .unwrap();
        });
    }

    /// Waits until such a request has arrived on any connection.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, wanted: impl Fn(&Request) -> bool) {
        until(what, || {
            self.requests
                .lock()
                .unwrap()
                .iter()
                .any(&wanted)
                .then_some(())
        });
    }

    /// Sends nothing until the client disconnects. Returns whether it did so in time.
    pub(crate) fn hang(&mut self) -> bool {
        self.keeps = false;
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        matches!(self.stream.read(&mut [0]), Ok(0))
    }

    /// Whether the client has disconnected.
    pub(crate) fn is_gone(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let gone = matches!(self.stream.peek(&mut [0]), Ok(0));
        self.stream.set_nonblocking(false).unwrap();
        self.keeps &= !gone;
        gone
    }
}

/// The answers of a plain server of 2025-11-25.
pub(crate) fn legacy(request: &Request, reply: &mut Reply) {
    match request.rpc() {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "web", "version": "1" },
            });
            let headers = "content-type: application/json\r\nmcp-session-id: session-1\r\n";
            reply.whole("200 OK", headers, &request.answer(&result));
        }
        "tools/list" => {
            let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
            reply.json(&request.answer(&json!({ "tools": [tool("t"), tool("u")] })));
        }
        "tools/call" => reply.json(&request.result("fine")),
        "GET" => reply.whole("405 Method Not Allowed", "", ""),
        "DELETE" => reply.whole("200 OK", "", ""),
        _ => reply.whole("202 Accepted", "", ""),
    }
}

/// The answers of a plain server of 2026-07-28.
pub(crate) fn modern(request: &Request, reply: &mut Reply) {
    let complete = |mut result: Value| {
        result["resultType"] = "complete".into();
        request.answer(&result)
    };
    match request.rpc() {
        "initialize" => {
            let data = json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" });
            let error = json!({ "code": -32022, "message": "no", "data": data });
            let body = json!({ "jsonrpc": "2.0", "id": request.body["id"], "error": error });
            reply.whole(
                "400 Bad Request",
                "content-type: application/json\r\n",
                &body.to_string(),
            );
        }
        "server/discover" => reply.json(&complete(
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} }),
        )),
        "tools/list" => {
            let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
            reply.json(&complete(json!({ "tools": [tool("t"), tool("u")] })));
        }
        "tools/call" => reply.json(&complete(
            json!({ "content": [{ "type": "text", "text": "fine" }] }),
        )),
        _ => reply.whole("405 Method Not Allowed", "", ""),
    }
}

fn serve(
    stream: TcpStream,
    handler: &dyn Fn(&Request, &mut Reply),
    requests: Arc<Mutex<Vec<Request>>>,
) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut reply = Reply {
        stream,
        keeps: true,
        requests: requests.clone(),
    };
    while reply.keeps {
        let Some(request) = read(&mut reader) else {
            return;
        };
        requests.lock().unwrap().push(request.clone());
        handler(&request, &mut reply);
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = || {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .ok()
            .filter(|length| *length > 0)?;
        Some(line.trim_end().to_owned())
    };
    let start = line()?;
    let mut headers = BTreeMap::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length: &String| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = start.split(' ').map(str::to_owned);
    Some(Request {
        method: words.next()?,
        path: words.next()?,
        headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        text: String::from_utf8(body).ok()?,
    })
}
