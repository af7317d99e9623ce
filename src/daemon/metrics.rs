//! The metrics of the daemon, which `/metrics` and the OTLP export show with those of a session.

use crate::proxy::ProcessMetric;
use crate::ui::servers::ServerState;

/// The metrics of a daemon with so many sessions and windows, these servers, and so many sessions of daemons that ended; whether the
/// user has paused mcpzip.
pub(super) fn all(
    sessions: usize,
    windows: usize,
    is_paused: bool,
    servers: &[ServerState],
    taken_over: u64,
) -> Vec<ProcessMetric> {
    let shared = servers.iter().filter(|server| server.sessions.len() > 1);
    let gauge = |name, help, value: usize| ProcessMetric {
        name,
        help,
        is_counter: false,
        value: value as u64,
    };
    vec![
        gauge(
            "mcpzip_daemon_sessions",
            "Sessions that the daemon serves, without HTTP clients.",
            sessions,
        ),
        gauge(
            "mcpzip_daemon_windows",
            "Open windows of `mcpzip ui`.",
            windows,
        ),
        gauge(
            "mcpzip_daemon_paused",
            "Whether the user has paused mcpzip: 1 or 0.",
            is_paused.into(),
        ),
        gauge(
            "mcpzip_daemon_shared_servers",
            "Servers whose connections several sessions share.",
            shared.count(),
        ),
        ProcessMetric {
            name: "mcpzip_daemon_taken_over_sessions_total",
            help: "Sessions that this daemon took over from one that ended.",
            is_counter: true,
            value: taken_over,
        },
    ]
}
