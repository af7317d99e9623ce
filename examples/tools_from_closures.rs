//! Tools inside the program, which are searched and called as those of servers are: `cargo run --example tools_from_closures`.

use mcpzip::{Error, Runner, Server, Tool, Tools};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let schema = json!({
        "type": "object",
        "properties": { "text": { "type": "string", "description": "The text" } },
        "required": ["text"],
    });
    let tools = Tools::new()
        .tool(
            Tool::new("count_words", "Counts the words of a text", schema.clone()),
            async |Text { text }| Ok::<_, String>(text.split_whitespace().count()),
        )
        .tool(
            Tool::new("parse_number", "Reads a number", schema),
            // The error of a tool is for the model, as the result of a call that failed.
            async |Text { text }| text.trim().parse::<f64>(),
        );
    let runner = Runner::builder()
        .server("texts", Server::inside(tools))
        .build()
        .await?;
    let found = runner.search("how many words are there", 1).await?.found;
    let name = &found[0].name;
    let result = runner
        .execute(name, json!({ "text": "as many as five words" }))
        .await?;
    show(&format!("{name}: {}", result.text()));
    let failed = runner
        .execute("texts__parse_number", json!({ "text": "five" }))
        .await?;
    show(&format!(
        "is an error: {}, {}",
        failed.is_error(),
        failed.text()
    ));
    runner.shutdown().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints what it gets")]
fn show(text: &str) {
    println!("{text}");
}
