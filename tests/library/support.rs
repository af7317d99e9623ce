//! Scripted servers for the tests.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mcpzip::Server;
use serde_json::{Value, json};

/// The scriptable server, which is built as an example.
pub(crate) fn fake_server() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.join("examples")
        .join(format!("fake_server{}", std::env::consts::EXE_SUFFIX))
}

/// A server with this script. `name` names its files in `home`.
pub(crate) fn scripted(home: &Path, name: &str, script: &Value) -> Server {
    let path = home.join(format!("{name}.json"));
    std::fs::write(&path, script.to_string()).unwrap();
    let paths = [path, home.join(format!("{name}.log"))];
    let paths = paths.map(|path| path.to_str().unwrap().to_owned());
    Server::stdio(fake_server().to_str().unwrap()).args(paths)
}

/// The lines of what the server of this name received.
pub(crate) fn log(home: &Path, name: &str) -> String {
    std::fs::read_to_string(home.join(format!("{name}.log"))).unwrap_or_default()
}

/// A tool that takes anything.
pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

/// A server with one tool, which runs `steps`.
pub(crate) fn one_tool(home: &Path, name: &str, steps: &Value) -> Server {
    let script = json!({ "tools": [tool(name, "Creates a note")], "calls": { name: steps } });
    scripted(home, name, &script)
}

/// Waits until `holds`.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The answer at a plain URL.
pub(crate) async fn get(url: impl AsRef<str>) -> reqwest::Response {
    // Another test may have installed it.
    #[cfg(feature = "tls")]
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::get(url.as_ref()).await.unwrap()
}
