//! The loop of an agent with a stand-in for its model, which asks for tools by words until it is content:
//! `cargo run --example agent_loop -- CONFIGURATION`.

use mcpzip::{Error, Found, Runner, ToolResult};
use serde_json::{Value, json};

/// The model's next step.
enum Turn {
    Search(&'static str),
    Call(String, Value),
    Done(String),
}

/// A model that searches once, calls the best tool once, and repeats what it read.
#[derive(Default)]
struct StandIn {
    found: Option<Vec<Found>>,
    read: Option<String>,
}

impl StandIn {
    fn next(&self) -> Turn {
        match (&self.found, &self.read) {
            (None, _) => Turn::Search("the current time"),
            (Some(found), None) => match found.first() {
                Some(best) => Turn::Call(best.name.clone(), json!({ "timezone": "UTC" })),
                None => Turn::Done("there is no such tool".to_owned()),
            },
            (_, Some(text)) => Turn::Done(text.clone()),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let file = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "mcp.json".to_owned());
    let runner = Runner::builder()
        .config_file(file)
        .environment(std::env::vars())
        .build()
        .await?;
    let mut model = StandIn::default();
    loop {
        match model.next() {
            Turn::Search(need) => model.found = Some(runner.search(need, 5).await?.found),
            Turn::Call(name, arguments) => {
                // A failure is for the model, which may do better.
                let result = runner.execute(&name, arguments).await;
                let text = result.as_ref().map(ToolResult::text);
                model.read = Some(text.unwrap_or_else(ToString::to_string));
            }
            Turn::Done(text) => {
                show(&text);
                break;
            }
        }
    }
    runner.shutdown().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints what it gets")]
fn show(text: &str) {
    println!("{text}");
}
