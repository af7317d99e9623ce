//! A job object: a server's process and its descendants on Windows.

use std::io;
use std::sync::Arc;

use tokio::process::{Child, Command};
use win32job::{ExtendedLimitInfo, Job, JobError};

use crate::upstream::guard::Guard;

/// Opens no console window for a server, and keeps Ctrl-C in our terminal from it.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// A process in a job object of its own, with all its descendants. They cannot leave it, and are ended when this is
/// dropped.
///
/// The process joins its job right after its start, because the standard library cannot start a process in a job or
/// resume a suspended one. A process that it starts in between is only in the job of the [`Guard`], and ends with
/// mcpzip.
#[derive(Debug)]
pub(in crate::upstream) struct ProcessGroup {
    _job: Option<Job>,
}

impl ProcessGroup {
    /// Starts `command` in a new job.
    pub(in crate::upstream) fn spawn(
        command: &mut Command,
        guard: &Arc<Guard>,
    ) -> io::Result<(Child, Self)> {
        command.creation_flags(CREATE_NO_WINDOW);
        guard.start();
        let child = command.spawn()?;
        let job = child
            .raw_handle()
            .map(|handle| enclose(handle as isize))
            .transpose()
            .unwrap_or_else(|error| {
                // A process that has ended already needs no job.
                tracing::debug!(%error, "a process is in no job of its own");
                None
            });
        Ok((child, Self { _job: job }))
    }

    /// Returns false: a process without a window can only be asked to end by closing its stdin.
    #[expect(clippy::unused_self, reason = "as on Unix")]
    pub(in crate::upstream) fn terminate(&self) -> bool {
        false
    }
}

fn enclose(process: isize) -> Result<Job, JobError> {
    let mut limits = ExtendedLimitInfo::new();
    limits.limit_kill_on_job_close();
    let job = Job::create_with_limit_info(&limits)?;
    job.assign_process(process)?;
    Ok(job)
}
