//! A web page on the loopback interface, for the server that fetches pages.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

const PAGE: &str = "<html><head><title>Moons</title></head><body><article><h1>Moons</h1>\
    <p>The planet Mars has <b>two</b> moons, Phobos and Deimos.</p></article></body></html>";

/// Serves the page until the test program ends, and returns its address.
pub(super) fn serve() -> String {
    let listener =
        TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away early has seen enough.
            let _ = answer(stream);
        }
    });
    format!("http://{address}/moons.html")
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for header in lines {
        if header?.is_empty() {
            break;
        }
    }
    let (status, body) = if request.starts_with("GET /moons.html ") {
        ("200 OK", PAGE)
    } else {
        ("404 Not Found", "")
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
