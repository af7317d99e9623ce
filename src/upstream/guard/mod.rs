//! Ends the servers' processes after mcpzip was killed and cannot end them.
//!
//! On Unix, a companion process outlives mcpzip for a moment (`unix.rs`). On Windows, all processes are in one job,
//! which ends when its last handle is closed; only mcpzip holds one (`windows.rs`).

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::Guard;
#[cfg(unix)]
pub(crate) use unix::{COMMAND, run};
#[cfg(windows)]
pub(super) use windows::Guard;
