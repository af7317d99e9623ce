//! Measures what `mcpzip` adds to a call of a server over HTTP: `cargo run --release -p mcpzip-bench --example
//! http_latency [CALLS]`.
//!
//! A server answers with 100 bytes. It is called directly and through `mcpzip`, alternating, so that a busy machine
//! slows all ways alike:
//! - by a client with a connection pool, which is the HTTP client that `mcpzip` uses;
//! - by a bare socket with minimal HTTP, also through a plain relay of bytes;
//! - through `mcpzip` over pipes, as clients start it, and through `mcpzip serve --http` with both clients.
//!
//! - also through a `mcpzip serve --http` that asks for a token, gives the person a profile by a role, judges rules for people and writes
//!   the audit log.
//!
//! Then 256 clients call at once. The binary `mcpzip` is taken from the directory above this program's: build it first,
//! in the same profile.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const TOOL: &str =
    r#"{"name":"hundred","description":"Gives 100 bytes.","inputSchema":{"type":"object"}}"#;
const INITIALIZE: &str = r#""method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"latency","version":"1"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const DIRECTLY: &str = r#""method":"tools/call","params":{"name":"hundred","arguments":{}}"#;
const THROUGH: &str = r#""method":"tools/call","params":{"name":"execute_tool","arguments":{"name":"web__hundred","arguments":{}}}"#;

/// The settings of a team: a token for each person, a role, rules for people, and the audit log.
const TEAM: &str = r#","http":{"auth":"tokens"},"audit":{},"profiles":{"code":{"servers":["web"],"tools":{"deny":["drop_*"]}}},"roles":{"dev":{"profiles":["code"]}},"tools":{"deny":["@user:bob *","!@role:dev web__*"]}"#;

/// Calls that are not counted, because caches are cold.
const WARM_UP: usize = 200;

/// Number of clients that call at once at the end.
const AT_ONCE: usize = 256;

/// A client with one socket.
struct Client {
    reader: BufReader<TcpStream>,
    session: String,
    token: Option<String>,
}

/// `mcpzip serve --http`, ended on drop.
struct Gateway {
    child: Child,
    address: SocketAddr,
    token: Option<String>,
    _home: tempfile::TempDir,
}

/// A client with a connection pool.
struct Pooled {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    url: String,
    session: Option<reqwest::header::HeaderValue>,
}

/// `mcpzip serve` over pipes.
struct Piped {
    child: Child,
    reader: BufReader<ChildStdout>,
    _home: tempfile::TempDir,
}

/// Sends a message and returns the answer, which is empty for a notification.
trait Peer {
    fn post(&mut self, body: &str) -> Outcome<String>;

    fn open(mut self) -> Outcome<Self>
    where
        Self: Sized,
    {
        self.post(&format!(r#"{{"jsonrpc":"2.0","id":"open",{INITIALIZE}}}"#))?;
        self.post(INITIALIZED)?;
        Ok(self)
    }
}

/// One way to the server, with the times of its calls.
struct Way {
    name: &'static str,
    peer: Box<dyn Peer>,
    call: &'static str,
    times: Vec<Duration>,
}

fn main() -> Outcome<()> {
    // rustls needs a provider, although nothing here uses TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let calls: usize = std::env::args()
        .nth(1)
        .map_or(Ok(10_000), |count| count.parse())?;
    let server = listen(|stream| drop(serve(stream)))?;
    let relay = listen(move |stream| drop(relay(stream, server)))?;
    let gateway = Gateway::start(server, false)?;
    let team = Gateway::start(server, true)?;
    let way = |name, peer, call| Way {
        name,
        peer,
        call,
        times: Vec::with_capacity(calls),
    };
    let mut ways = [
        way("pooled, direct", Box::new(Pooled::to(server)?), DIRECTLY),
        way("pipe, mcpzip", Box::new(Piped::to(server)?), THROUGH),
        way(
            "pooled, mcpzip",
            Box::new(Pooled::to(gateway.address)?),
            THROUGH,
        ),
        way("socket, direct", Box::new(Client::to(server)?), DIRECTLY),
        way("socket, relay", Box::new(Client::to(relay)?), DIRECTLY),
        way(
            "socket, mcpzip",
            Box::new(Client::to(gateway.address)?),
            THROUGH,
        ),
        way(
            "socket, team",
            Box::new(Client::by(team.address, team.token.clone())?),
            THROUGH,
        ),
    ];
    for number in 0..calls + WARM_UP {
        for way in &mut ways {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{number},{}}}"#, way.call);
            let start = Instant::now();
            let answer = way.peer.post(&body)?;
            let time = start.elapsed();
            if !answer.contains("xxxxx") {
                return Err(format!("{} answered: {answer}", way.name).into());
            }
            if number >= WARM_UP {
                way.times.push(time);
            }
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{calls} calls of 100 bytes over HTTP, microseconds; added: to the same client's direct calls\n"
    )?;
    writeln!(
        out,
        "{:<16} {:>8} {:>8} {:>8} {:>12}",
        "way", "min", "p50", "p99", "added p50"
    )?;
    let direct = [0, 0, 0, 3, 3, 3, 3].map(|way: usize| percentile(&mut ways[way].times, 50));
    for (way, direct) in ways.iter_mut().zip(direct) {
        let [min, p50, p99] = [0, 50, 99].map(|percent| percentile(&mut way.times, percent));
        writeln!(
            out,
            "{:<16} {min:>8.0} {p50:>8.0} {p99:>8.0} {:>12.0}",
            way.name,
            p50 - direct
        )?;
    }
    let rate = at_once(gateway.address, calls / 10)?;
    writeln!(
        out,
        "\n{AT_ONCE} clients at once through mcpzip: {rate:.0} calls/s, all answered"
    )?;
    Ok(())
}

fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e6
}

/// Calls per second of many clients, each with its own connection.
fn at_once(address: SocketAddr, calls: usize) -> Outcome<f64> {
    let each = calls / AT_ONCE + 1;
    let clients = (0..AT_ONCE)
        .map(|_| Client::to(address))
        .collect::<Outcome<Vec<_>>>()?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let running: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                scope.spawn(move || -> Outcome<()> {
                    for number in 0..each {
                        let answer = client
                            .post(&format!(r#"{{"jsonrpc":"2.0","id":{number},{THROUGH}}}"#))?;
                        if !answer.contains("xxxxx") {
                            return Err(answer.into());
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        running
            .into_iter()
            .try_for_each(|client| client.join().expect("a client does not panic"))
    })?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok((AT_ONCE * each) as f64 / start.elapsed().as_secs_f64())
}

impl Client {
    fn to(address: SocketAddr) -> Outcome<Self> {
        Self::by(address, None)
    }

    fn by(address: SocketAddr, token: Option<String>) -> Outcome<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Self {
            reader: BufReader::new(stream),
            session: String::new(),
            token,
        }
        .open()
    }
}

impl Peer for Client {
    fn post(&mut self, body: &str) -> Outcome<String> {
        let session = if self.session.is_empty() {
            String::new()
        } else {
            format!("Mcp-Session-Id: {}\r\n", self.session)
        };
        let token = self.token.as_ref();
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
        let token = token.unwrap_or_default();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\n{session}{token}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.reader.get_mut().write_all(request.as_bytes())?;
        let mut length = 0;
        read_head(&mut self.reader, |name, value| match name {
            "content-length" => length = value.parse().unwrap_or(0),
            "mcp-session-id" => value.clone_into(&mut self.session),
            _ => {}
        })?;
        let mut answer = vec![0; length];
        self.reader.read_exact(&mut answer)?;
        Ok(String::from_utf8(answer)?)
    }
}

impl Pooled {
    fn to(address: SocketAddr) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let client = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .build()?;
        Self {
            runtime,
            client,
            url: format!("http://{address}/mcp"),
            session: None,
        }
        .open()
    }
}

impl Peer for Pooled {
    fn post(&mut self, body: &str) -> Outcome<String> {
        let mut request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let sent = request.body(body.to_owned()).send();
        self.runtime.block_on(async {
            let response = sent.await?;
            if let Some(session) = response.headers().get("mcp-session-id") {
                self.session = Some(session.clone());
            }
            Ok(response.text().await?)
        })
    }
}

impl Piped {
    fn to(server: SocketAddr) -> Outcome<Self> {
        let (mut command, home) = mcpzip(server, "", &[])?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let reader = BufReader::new(child.stdout.take().ok_or("stdout is piped")?);
        Self {
            child,
            reader,
            _home: home,
        }
        .open()
    }
}

impl Peer for Piped {
    fn post(&mut self, body: &str) -> Outcome<String> {
        let stdin = self.child.stdin.as_mut().ok_or("stdin is piped")?;
        stdin.write_all(format!("{body}\n").as_bytes())?;
        let mut answer = String::new();
        // A notification has no answer, and the server sends no requests.
        while body.contains(r#""id":"#) && !answer.contains(r#""result":"#) {
            answer.clear();
            if self.reader.read_line(&mut answer)? == 0 {
                return Err("mcpzip ended".into());
            }
        }
        Ok(answer)
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

impl Gateway {
    fn start(server: SocketAddr, is_team: bool) -> Outcome<Self> {
        let more = if is_team { TEAM } else { "" };
        let (mut command, home) = mcpzip(server, more, &["--http", "127.0.0.1:0"])?;
        let token = match is_team {
            true => Some(token(&command)?),
            false => None,
        };
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut said = BufReader::new(child.stderr.take().ok_or("stderr is piped")?);
        let mut line = String::new();
        while said.read_line(&mut line)? > 0 {
            if let Some(address) = line
                .split("http://")
                .nth(1)
                .and_then(|url| url.split('/').next())
            {
                let address = address.parse()?;
                std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
                return Ok(Self {
                    child,
                    address,
                    token,
                    _home: home,
                });
            }
            line.clear();
        }
        Err("mcpzip ended before it served".into())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // The process may have ended already.
    let _ = child.kill();
    let _ = child.wait();
}

/// Makes a token in the home of a server that will be started by `serve`.
fn token(serve: &Command) -> Outcome<String> {
    let mut create = Command::new(serve.get_program());
    create.args(["token", "create", "anna", "--role", "dev"]);
    let variables = serve.get_envs();
    create.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    let made = create.stderr(Stdio::null()).output()?;
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

/// The command `mcpzip serve` with a separate home; `more` follows the servers in the configuration.
fn mcpzip(
    server: SocketAddr,
    more: &str,
    arguments: &[&str],
) -> Outcome<(Command, tempfile::TempDir)> {
    let home = tempfile::tempdir()?;
    let config = home.path().join("config.json");
    std::fs::write(
        &config,
        format!(r#"{{"mcpServers":{{"web":{{"url":"http://{server}/mcp"}}}}{more}}}"#),
    )?;
    let program = std::env::current_exe()?;
    let program = program
        .parent()
        .and_then(|examples| examples.parent())
        .ok_or("no directory")?
        .join("mcpzip");
    if !program.exists() {
        return Err(format!(
            "{} is not there: build it first, in the same profile",
            program.display()
        )
        .into());
    }
    let mut command = Command::new(program);
    command
        .arg("serve")
        .args(arguments)
        .env("MCPZIP_CONFIG", &config)
        .env("MCPZIP_CACHE_DIR", home.path().join("cache"))
        .env("MCPZIP_STATE_DIR", home.path().join("state"));
    Ok((command, home))
}

/// Handles each connection on its own thread.
fn listen(handle: impl Fn(TcpStream) + Copy + Send + 'static) -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || handle(stream));
        }
    });
    Ok(address)
}

/// A small MCP server for the revisions with a handshake.
fn serve(stream: TcpStream) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        let is_post = read_head(&mut reader, |name, value| {
            if name == "content-length" {
                length = value.parse().unwrap_or(0);
            }
        })?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body = String::from_utf8(body)?;
        let id = body
            .split(r#""id":"#)
            .nth(1)
            .and_then(|rest| rest.split([',', '}']).next());
        let answer = match id {
            _ if !is_post => {
                "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n".to_owned()
            }
            None => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned(),
            Some(id) => {
                let result = if body.contains(r#""initialize""#) {
                    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"latency","version":"1"}}"#
                        .to_owned()
                } else if body.contains(r#""tools/list""#) {
                    format!(r#"{{"tools":[{TOOL}]}}"#)
                } else {
                    format!(
                        r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#,
                        "x".repeat(100)
                    )
                };
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
            }
        };
        reader.get_mut().write_all(answer.as_bytes())?;
    }
}

/// Relays bytes in both directions.
fn relay(client: TcpStream, to: SocketAddr) -> Outcome<()> {
    let server = TcpStream::connect(to)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
    std::io::copy(&mut { server }, &mut { client })?;
    Ok(())
}

/// Reads the head of a message. Returns whether it is a POST.
fn read_head(reader: &mut impl BufRead, mut header: impl FnMut(&str, &str)) -> Outcome<bool> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Err("the connection was closed".into());
    }
    let mut line = String::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            return Ok(first.starts_with("POST"));
        };
        header(&name.to_ascii_lowercase(), value.trim());
    }
}
