//! A proxy on loopback for HTTP (`CONNECT`) and SOCKS 5. It connects every host to one server.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A running proxy. Its threads end with the test process.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// A proxy that leads to `target`.
    pub(crate) fn to(target: SocketAddr) -> Self {
        Self::start(move |mut client, asked| {
            let mut first = [0];
            client.peek(&mut first)?;
            if first == [5] {
                asked.lock().unwrap().push(greet_socks(&mut client)?);
            } else {
                asked.lock().unwrap().push(read_head(&mut client)?);
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            }
            relay(client, TcpStream::connect(target)?)
        })
    }

    /// A proxy that sends `answer` to every client.
    pub(crate) fn refusing(answer: &'static str) -> Self {
        Self::start(move |mut client, asked| {
            asked.lock().unwrap().push(read_head(&mut client)?);
            client.write_all(answer.as_bytes())
        })
    }

    fn start(
        serve: impl Fn(TcpStream, &Mutex<Vec<String>>) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
        };
        let (serve, asked) = (Arc::new(serve), proxy.asked.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (serve, asked) = (serve.clone(), asked.clone());
                // Either side may disconnect.
                std::thread::spawn(move || drop(serve(client, &asked)));
            }
        });
        proxy
    }

    /// The URL with this scheme.
    pub(crate) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://me:sesame-open@{}", self.address)
    }

    /// The requests so far: heads of HTTP requests, or hosts with ports.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn read_head(client: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Accepts a client that names a host and a password (RFC 1928, RFC 1929).
fn greet_socks(client: &mut TcpStream) -> io::Result<String> {
    let methods = read(client, 2)?[1];
    read(client, methods.into())?;
    client.write_all(&[5, 2])?;
    let name = read(client, 2)?[1];
    read(client, name.into())?;
    let password = read(client, 1)?[0];
    read(client, password.into())?;
    client.write_all(&[1, 0])?;
    let length = read(client, 5)?[4];
    let host = read(client, length.into())?;
    let port = read(client, 2)?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    Ok(format!(
        "{}:{}",
        String::from_utf8_lossy(&host),
        u16::from_be_bytes([port[0], port[1]])
    ))
}

fn read(client: &mut TcpStream, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    client.read_exact(&mut bytes).map(|()| bytes)
}

fn relay(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || {
        let _ = io::copy(&mut from_server, &mut to_client);
        to_client.shutdown(Shutdown::Both)
    });
    let (mut from_client, mut to_server) = (client, server);
    let _ = io::copy(&mut from_client, &mut to_server);
    to_server.shutdown(Shutdown::Both)
}
