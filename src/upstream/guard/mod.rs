//! What ends the servers that we could not, because we were killed hard ourselves.
//!
//! Unix has no word for that: a companion process outlives us by a moment (`unix.rs`). On Windows the system does it: all of us
//! are in one job, which ends with its last handle, and only we hold one (`windows.rs`).

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
