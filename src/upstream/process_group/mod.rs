//! A process with all its descendants, which end together.
//!
//! On Unix it is a process group (`unix.rs`), on Windows a job object (`windows.rs`). Dropping a [`ProcessGroup`]
//! ends all processes in it.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{GroupId, ProcessGroup};
#[cfg(windows)]
pub(super) use windows::ProcessGroup;
