//! Where log lines go: stderr, because stdout is the protocol's.

use std::io;

use tracing::level_filters::LevelFilter;

/// The levels by name, as `MCPZIP_LOG` takes them.
pub const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Sends log lines of `level` and above to stderr.
pub fn start(level: LevelFilter) {
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time();
    // Fails only where a log was started already, by a test say; that one then goes on.
    let _ = lines.try_init();
}

/// Reads a level's name.
#[must_use]
pub fn level(name: &str) -> Option<LevelFilter> {
    name.to_lowercase().parse().ok().filter(|_| LEVELS.contains(&name.to_lowercase().as_str()))
}
