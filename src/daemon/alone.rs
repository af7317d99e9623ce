//! Records why sessions run without a daemon, for `status`: a file per process in the state directory.

use std::path::Path;

const DIRECTORY: &str = "alone";

/// Records why this process serves its client without a daemon. If the file cannot be written, `status` does not show
/// the reason.
pub(super) fn remember(state_dir: &Path, reason: &str) {
    let path = state_dir
        .join(DIRECTORY)
        .join(std::process::id().to_string());
    let _ = crate::files::replace(&path, &[reason.as_bytes()]);
}

/// Removes the record of this process.
pub(super) fn forget(state_dir: &Path) {
    // The record may never have been written.
    let _ = std::fs::remove_file(
        state_dir
            .join(DIRECTORY)
            .join(std::process::id().to_string()),
    );
}

/// The processes that serve their clients without a daemon, each with the reason. Records of ended processes are
/// removed.
#[must_use]
pub(crate) fn reasons(state_dir: &Path) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir(state_dir.join(DIRECTORY));
    let entries = entries.into_iter().flatten().flatten();
    let mut reasons: Vec<(u32, String)> = entries
        .filter_map(|entry| {
            let process: u32 = entry.file_name().to_str()?.parse().ok()?;
            if !Path::new("/proc").join(process.to_string()).exists() {
                // Another process may have removed it already.
                let _ = std::fs::remove_file(entry.path());
                return None;
            }
            Some((process, std::fs::read_to_string(entry.path()).ok()?))
        })
        .collect();
    reasons.sort_unstable();
    reasons
}
