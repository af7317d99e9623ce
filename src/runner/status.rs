//! The state of the servers, for the application.

use serde::Serialize;

use crate::proxy::ServerReport;

/// The state of one server.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mcpzip::Error> {
/// use mcpzip::{Runner, Server, State};
///
/// let runner = Runner::builder().server("x", Server::stdio("my-server")).build().await?;
/// let status = runner.status("x")?;
/// assert_eq!((status.state, status.tools), (State::Idle, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The name.
    pub server: String,
    /// The state.
    pub state: State,
    /// Why it is not usable, without secrets.
    pub reason: Option<String>,
    /// The number of its tools that are known and permitted.
    pub tools: usize,
    /// Its own name and version.
    pub software: Option<String>,
}

/// The state of a server's connection.
///
/// ```
/// # mcpzip::internals::with_notes(async |runner| {
/// use mcpzip::State;
///
/// assert_eq!(runner.status("notes")?.state, State::Idle);
/// runner.start("notes").await?;
/// assert_eq!(runner.status("notes")?.state, State::Ready);
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// Not connected. It starts at its first use.
    Idle,
    /// It is being connected.
    Starting,
    /// Calls are sent at once.
    Ready,
    /// The last attempt failed. The next call tries again.
    Failed,
    /// It is disabled, not approved, or belongs to another project.
    Disabled,
}

impl Status {
    pub(super) fn of(report: ServerReport) -> Self {
        Self {
            state: match report.state {
                "ready" => State::Ready,
                "connecting" => State::Starting,
                "failed" | "faulty" => State::Failed,
                "idle" => State::Idle,
                _ => State::Disabled,
            },
            server: report.name,
            reason: report.reason,
            tools: report.tools,
            software: report.software,
        }
    }
}
