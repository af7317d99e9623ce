//! A server at a TCP port, reached by a transport of the program: `cargo run --example own_transport -- ADDRESS`. For a server to try
//! it with: `socat TCP-LISTEN:7000,reuseaddr,fork EXEC:"uvx mcp-server-time"`.

use mcpzip::{BoxFuture, Error, ErrorKind, Runner, Server, Streams, Transport};
use tokio::net::TcpStream;

/// MCP over TCP, a message per line.
struct Tcp {
    address: String,
}

impl Transport for Tcp {
    fn connect(&self) -> BoxFuture<'_, Result<Streams, Error>> {
        Box::pin(async {
            let stream = TcpStream::connect(&self.address).await;
            let stream = stream.map_err(|error| {
                Error::new(ErrorKind::Unavailable, &self.address).with_source(error)
            })?;
            let (reader, writer) = stream.into_split();
            Ok(Streams::new(reader, writer))
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:7000".to_owned());
    let runner = Runner::builder()
        .server("remote", Server::over(Tcp { address }))
        .build()
        .await?;
    for tool in runner.client("remote")?.list_tools().await? {
        show(&format!("{}: {}", tool.qualified_name(), tool.description));
    }
    runner.shutdown().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints what it gets")]
fn show(text: &str) {
    println!("{text}");
}
