//! The tools of a runner as a part of a web service: `cargo run --example embed_in_axum -- CONFIGURATION ADDRESS`, and then
//! `curl http://ADDRESS/` or a client of MCP at `http://ADDRESS/mcp`. The address is 127.0.0.1:8080 unless you name another.

use axum::Router;
use axum::routing::get;
use mcpzip::{HttpOptions, Runner};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "mcp.json".to_owned());
    let address = arguments.next();
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:8080")).await?;
    let address = listener.local_addr()?;
    let runner = Runner::builder()
        .config_file(file)
        .environment(std::env::vars())
        .build()
        .await?;
    let options = HttpOptions::new(address.ip().to_string(), address.port());
    let tools = runner.router(options).await?;
    let servers = runner.servers().join("\n");
    let service = Router::new()
        .route("/", get(async move || servers))
        .merge(tools);
    show(&format!("http://{address}/"));
    axum::serve(listener, service).await?;
    runner.shutdown().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints what it gets")]
fn show(text: &str) {
    println!("{text}");
}
