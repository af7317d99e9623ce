//! A process and all that it starts, which end together.
//!
//! On Unix it is a process group (`unix.rs`), on Windows a job (`windows.rs`). Dropping a [`ProcessGroup`] ends whatever is left of it.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{GroupId, ProcessGroup};
#[cfg(windows)]
pub(super) use windows::ProcessGroup;
