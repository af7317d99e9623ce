use std::sync::OnceLock;

use win32job::{ExtendedLimitInfo, Job, JobError};

/// A job around ourselves: whatever is started from now on is in it from its first moment, and is ended by the system when
/// the last handle is closed, which is ours. No process is needed for it, nor anything said when servers come and go.
#[derive(Debug)]
pub(in crate::upstream) struct Guard;

/// Of a process there is one, and it is never dropped: its end would be ours.
static JOB: OnceLock<Option<Job>> = OnceLock::new();

impl Guard {
    pub(in crate::upstream) fn new() -> Self {
        Self
    }

    /// What a server is to carry: nothing, as nobody has to be told apart.
    pub(in crate::upstream) fn variable(&self) -> Option<(String, String)> {
        None
    }

    /// Goes into the job; to be done before a server is started.
    #[expect(clippy::unused_self, reason = "as on Unix")]
    pub(in crate::upstream) fn start(&self) {
        JOB.get_or_init(|| {
            enter()
                // Each server still has a job of its own, which ends with us as well: all but what it starts in its first moment.
                .inspect_err(
                    |error| tracing::warn!(%error, "mcpzip is in no job: what servers start at once may stay behind"),
                )
                .ok()
        });
    }

    /// There is nothing to end: the job goes with the process.
    #[expect(clippy::unused_async, reason = "as on Unix")]
    pub(in crate::upstream) async fn close(&self) {}
}

fn enter() -> Result<Job, JobError> {
    let mut limits = ExtendedLimitInfo::new();
    // A browser that we open for a login is to stay; servers are in jobs below this one, which don't let them go.
    limits.limit_kill_on_job_close().limit_breakaway_ok();
    let job = Job::create_with_limit_info(&limits)?;
    job.assign_current_process()?;
    Ok(job)
}
