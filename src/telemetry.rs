//! Where log lines go: stderr, because stdout is the protocol's.

use std::io;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The levels by name, as `MCPZIP_LOG` takes them.
pub const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Sends log lines of `level` and above to stderr; of libraries, which know no secrets to hide, warnings at most.
pub fn start(level: LevelFilter) {
    let wanted = Targets::new().with_target("mcpzip", level).with_default(level.min(LevelFilter::WARN));
    let lines =
        tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false).with_target(false).without_time();
    let lines = tracing_subscriber::registry().with(lines.with_filter(wanted));
    // Fails only where a log was started already, by a test say; that one then goes on.
    let _ = lines.try_init();
}

/// Reads a level's name.
#[must_use]
pub fn level(name: &str) -> Option<LevelFilter> {
    name.to_lowercase().parse().ok().filter(|_| LEVELS.contains(&name.to_lowercase().as_str()))
}
