//! Records why sessions run without a daemon, for `status`: each process has a file in the state directory, which it
//! locks as long as it runs.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use parking_lot::Mutex;

const DIRECTORY: &str = "alone";

/// The locked record of this process.
static RECORD: Mutex<Option<File>> = Mutex::new(None);

/// Records why this process serves its client without a daemon. If the file cannot be written, `status` does not show
/// the reason.
pub(super) fn remember(state_dir: &Path, reason: &str) {
    *RECORD.lock() = record(&state_dir.join(DIRECTORY), reason).ok();
}

fn record(directory: &Path, reason: &str) -> io::Result<File> {
    let process = std::process::id().to_string();
    crate::files::create_private_directory(directory)?;
    // It gets its name when it is locked: an unlocked record is one of an ended process.
    let unlocked = directory.join(format!("{process}.new"));
    let mut options = File::options();
    options.create(true).write(true).truncate(true);
    crate::files::private(&mut options);
    let mut file = crate::files::open_with(&mut options, &unlocked)?;
    file.lock_shared()?;
    file.write_all(reason.as_bytes())?;
    std::fs::rename(unlocked, directory.join(process))?;
    Ok(file)
}

/// Removes the record of this process.
pub(super) fn forget(state_dir: &Path) {
    let path = state_dir
        .join(DIRECTORY)
        .join(std::process::id().to_string());
    if RECORD.lock().take().is_some() {
        // Another process may have removed it already.
        let _ = std::fs::remove_file(path);
    }
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
            let file = crate::files::open_regular(&entry.path()).ok()?;
            if file.try_lock().is_ok() {
                // Another process may have removed it already.
                let _ = std::fs::remove_file(entry.path());
                return None;
            }
            Some((process, io::read_to_string(file).ok()?))
        })
        .collect();
    reasons.sort_unstable();
    reasons
}
