//! Calls one tool of one server: `cargo run --example call_one_tool -- PROGRAM ARGUMENTS…`, for example `uvx mcp-server-time`.

use mcpzip::{Error, Runner, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().unwrap_or_else(|| "uvx".to_owned());
    let runner = Runner::builder()
        .server("server", Server::stdio(program).args(arguments))
        .environment(std::env::vars())
        .build()
        .await?;
    let client = runner.client("server")?;
    let tools = client.list_tools().await?;
    let mut out = String::new();
    for tool in &tools {
        out.push_str(&format!("{}: {}\n", tool.name, tool.description));
    }
    // Most servers have a tool that needs no arguments; any other says what it lacks.
    if let Some(tool) = tools.first() {
        match client.call_raw(&tool.name, &serde_json::json!({})).await {
            Ok(result) => out.push_str(&result.text()),
            Err(error) => out.push_str(&format!("{:?}: {error}", error.kind())),
        }
    }
    show(&out);
    runner.shutdown().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints what it gets")]
fn show(text: &str) {
    println!("{text}");
}
