//! Starts all servers of a configuration and follows what happens: `cargo run --example follow_events -- CONFIGURATION`.

use mcpzip::{Error, Runner};

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
    let mut events = runner.events();
    for (server, outcome) in runner.start_all().await {
        match outcome {
            Ok(()) => show(&format!("{server} is ready")),
            Err(error) => show(&format!("{server}: {error}")),
        }
    }
    runner.shutdown().await;
    // The stream ends with the runner.
    while let Some(event) = events.next().await {
        show(&format!("{event:?}"));
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints what it gets")]
fn show(text: &str) {
    println!("{text}");
}
