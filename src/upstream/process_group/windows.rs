use std::io;
use std::sync::Arc;

use tokio::process::{Child, Command};
use win32job::{ExtendedLimitInfo, Job, JobError};

use crate::upstream::guard::Guard;

/// No window appears for a server when we have none, and Ctrl-C in our terminal is for us alone.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// A process in a job of its own, with all that it starts: nobody gets out of it, and all are ended when this is dropped.
///
/// A process is put into its job right after its start, since the standard library can neither start one in a job nor wake
/// one that was started asleep. What it started in between, if it can be that quick, is in the job of the [`Guard`] only, and ends
/// with us in place of its server.
#[derive(Debug)]
pub(in crate::upstream) struct ProcessGroup {
    _job: Option<Job>,
}

impl ProcessGroup {
    /// Starts `command` in a job.
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
                // One that has ended already needs none.
                tracing::debug!(%error, "a process is in no job of its own");
                None
            });
        Ok((child, Self { _job: job }))
    }

    /// Asks all of them to end; says whether they can be asked here at all: the end of stdin is the only word that a process without
    /// a window understands.
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
