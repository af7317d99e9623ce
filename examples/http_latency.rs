//! What `mcpzip` adds to a call over HTTP: `cargo run --release --example http_latency [CALLS]`.
//!
//! A server answers 100 bytes. A client calls it directly, through a plain relay of bytes, and through `mcpzip serve
//! --http`, each over one kept connection, in turn, so that a busy machine slows all of them. Then 256 clients call at once.
//! `mcpzip` itself is taken from beside this program: build it before, in the same profile.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const TOOL: &str = r#"{"name":"hundred","description":"Gives 100 bytes.","inputSchema":{"type":"object"}}"#;
const INITIALIZE: &str = r#""method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"latency","version":"1"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const DIRECTLY: &str = r#""method":"tools/call","params":{"name":"hundred","arguments":{}}"#;
const THROUGH: &str =
    r#""method":"tools/call","params":{"name":"execute_tool","arguments":{"name":"web__hundred","arguments":{}}}"#;

/// Clients that call at once in the end.
const AT_ONCE: usize = 256;

/// A kept connection to an MCP server.
struct Client {
    reader: BufReader<TcpStream>,
    session: String,
}

/// `mcpzip serve --http`, ended with this.
struct Gateway {
    child: Child,
    address: SocketAddr,
    _home: tempfile::TempDir,
}

/// One way to the server, and how long calls over it took.
struct Way {
    name: &'static str,
    client: Client,
    call: &'static str,
    times: Vec<Duration>,
}

fn main() -> Outcome<()> {
    let calls: usize = std::env::args().nth(1).map_or(Ok(10_000), |count| count.parse())?;
    let server = listen(|stream| drop(serve(stream)))?;
    let relay = listen(move |stream| drop(relay(stream, server)))?;
    let gateway = Gateway::start(server)?;
    let way = |name, address, call| -> Outcome<Way> {
        Ok(Way { name, client: Client::open(address)?, call, times: Vec::with_capacity(calls) })
    };
    let mut ways = [
        way("direct", server, DIRECTLY)?,
        way("relay of bytes", relay, DIRECTLY)?,
        way("mcpzip", gateway.address, THROUGH)?,
    ];
    for number in 0..calls + 200 {
        for way in &mut ways {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{number},{}}}"#, way.call);
            let start = Instant::now();
            let answer = way.client.post(&body)?;
            let time = start.elapsed();
            if !answer.contains("xxxxx") {
                return Err(format!("{} answered: {answer}", way.name).into());
            }
            // The first calls find cold caches.
            if number >= 200 {
                way.times.push(time);
            }
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{calls} calls of 100 bytes over HTTP, microseconds\n")?;
    writeln!(out, "{:<16} {:>8} {:>8} {:>8} {:>12}", "way", "min", "p50", "p99", "added p50")?;
    let direct = percentile(&mut ways[0].times, 50);
    for way in &mut ways {
        let [min, p50, p99] = [0, 50, 99].map(|percent| percentile(&mut way.times, percent));
        writeln!(out, "{:<16} {min:>8.0} {p50:>8.0} {p99:>8.0} {:>12.0}", way.name, p50 - direct)?;
    }
    let rate = at_once(gateway.address, calls / 10)?;
    writeln!(out, "\n{AT_ONCE} clients at once through mcpzip: {rate:.0} calls/s, all answered")?;
    Ok(())
}

fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e6
}

/// Calls per second of many clients, each with a connection of its own.
fn at_once(address: SocketAddr, calls: usize) -> Outcome<f64> {
    let each = calls / AT_ONCE + 1;
    let clients = (0..AT_ONCE).map(|_| Client::open(address)).collect::<Outcome<Vec<_>>>()?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let running: Vec<_> = clients
            .into_iter()
            .map(|mut client| {
                scope.spawn(move || -> Outcome<()> {
                    for number in 0..each {
                        let answer = client.post(&format!(r#"{{"jsonrpc":"2.0","id":{number},{THROUGH}}}"#))?;
                        if !answer.contains("xxxxx") {
                            return Err(answer.into());
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        running.into_iter().try_for_each(|client| client.join().expect("a client does not panic"))
    })?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok((AT_ONCE * each) as f64 / start.elapsed().as_secs_f64())
}

impl Client {
    fn open(address: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut client = Self { reader: BufReader::new(stream), session: String::new() };
        client.post(&format!(r#"{{"jsonrpc":"2.0","id":"open",{INITIALIZE}}}"#))?;
        client.post(INITIALIZED)?;
        Ok(client)
    }

    /// Posts a message and gives the body of the answer.
    fn post(&mut self, body: &str) -> Outcome<String> {
        let session =
            if self.session.is_empty() { String::new() } else { format!("Mcp-Session-Id: {}\r\n", self.session) };
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
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

impl Gateway {
    fn start(server: SocketAddr) -> Outcome<Self> {
        let home = tempfile::tempdir()?;
        let config = home.path().join("config.json");
        std::fs::write(&config, format!(r#"{{"mcpServers":{{"web":{{"url":"http://{server}/mcp"}}}}}}"#))?;
        let program = std::env::current_exe()?;
        let program = program.parent().and_then(|examples| examples.parent()).ok_or("no directory")?.join("mcpzip");
        let mut child = Command::new(&program)
            .args(["serve", "--http", "127.0.0.1:0"])
            .env("MCPZIP_CONFIG", &config)
            .env("MCPZIP_CACHE_DIR", home.path().join("cache"))
            .env("MCPZIP_STATE_DIR", home.path().join("state"))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} cannot be run, build it first: {error}", program.display()))?;
        let mut said = BufReader::new(child.stderr.take().ok_or("stderr is piped")?);
        let mut line = String::new();
        while said.read_line(&mut line)? > 0 {
            if let Some(address) = line.split("http://").nth(1).and_then(|url| url.split('/').next()) {
                let address = address.parse()?;
                std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
                return Ok(Self { child, address, _home: home });
            }
            line.clear();
        }
        Err("mcpzip ended before it served".into())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gives each connection to a thread of its own.
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

/// A small MCP server of the handshake era.
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
        let id = body.split(r#""id":"#).nth(1).and_then(|rest| rest.split([',', '}']).next());
        let answer = match id {
            _ if !is_post => "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n".to_owned(),
            None => "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".to_owned(),
            Some(id) => {
                let result = if body.contains(r#""initialize""#) {
                    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"latency","version":"1"}}"#
                        .to_owned()
                } else if body.contains(r#""tools/list""#) {
                    format!(r#"{{"tools":[{TOOL}]}}"#)
                } else {
                    format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(100))
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

/// Passes bytes on, both ways.
fn relay(client: TcpStream, to: SocketAddr) -> Outcome<()> {
    let server = TcpStream::connect(to)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
    std::io::copy(&mut { server }, &mut { client })?;
    Ok(())
}

/// Reads a head; says whether it is that of a POST.
fn read_head(reader: &mut impl BufRead, mut header: impl FnMut(&str, &str)) -> Outcome<bool> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Err("the connection was closed".into());
    }
    let mut line = String::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { return Ok(first.starts_with("POST")) };
        header(&name.to_ascii_lowercase(), value.trim());
    }
}
