//! Finds a tool by what is needed and calls it: `cargo run --example search_and_execute -- CONFIGURATION "what you need" '{"json": 1}'`.

use mcpzip::{Error, Runner};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "mcp.json".to_owned());
    let need = arguments
        .next()
        .unwrap_or_else(|| "what time is it".to_owned());
    let json = arguments.next().unwrap_or_else(|| "{}".to_owned());
    let runner = Runner::builder()
        .config_file(file)
        .environment(std::env::vars())
        .build()
        .await?;
    let found = runner.search(&need, 5).await?.found;
    for tool in &found {
        show(&format!("{:.2} {}", tool.score, tool.signature));
    }
    if let Some(best) = found.first() {
        let json: Value = serde_json::from_str(&json).unwrap_or_default();
        let result = runner.execute(&best.name, json).await?;
        show(&result.text());
    }
    runner.shutdown().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints what it gets")]
fn show(text: &str) {
    println!("{text}");
}
