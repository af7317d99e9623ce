//! The limit of open files, which Windows does not have.

/// The soft limit of this process.
#[cfg(unix)]
pub(super) fn limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current
}

#[cfg(not(unix))]
pub(super) fn limit() -> Option<u64> {
    None
}

/// Raises the soft limit as far as it goes. Returns the one before.
#[cfg(unix)]
pub(super) fn raise_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let open_files = limit.current;
    limit.current = limit.maximum;
    // With fewer descriptors the daemon serves fewer servers.
    let _ = setrlimit(Resource::Nofile, limit);
    open_files
}

#[cfg(not(unix))]
pub(super) fn raise_limit() -> Option<u64> {
    None
}
