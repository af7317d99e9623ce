//! The guard on Windows: a job object around mcpzip and its servers.

use std::sync::OnceLock;

use win32job::{ExtendedLimitInfo, Job, JobError};

use crate::sandbox::Container;

/// A job object around mcpzip itself. Every process that is started later belongs to it from its first moment. The
/// system ends them when the last handle is closed, and only mcpzip has one. No guard process and no messages are
/// needed.
#[derive(Debug)]
pub(in crate::upstream) struct Guard {
    /// Whether the process may be put into a job.
    has_job: bool,
}

/// The only job. It is never dropped, because closing it would end mcpzip as well.
static JOB: OnceLock<Option<Job>> = OnceLock::new();

impl Guard {
    pub(in crate::upstream) fn new() -> Self {
        Self { has_job: true }
    }

    /// A guard without a job, for a process that is not mcpzip's own.
    pub(in crate::upstream) fn absent() -> Self {
        Self { has_job: false }
    }

    /// The environment variable for servers: `None`, since no mark is needed.
    pub(in crate::upstream) fn variable(&self) -> Option<(String, String)> {
        None
    }

    /// Joins the job. Call it before starting a server.
    pub(in crate::upstream) fn start(&self) {
        if !self.has_job {
            return;
        }
        JOB.get_or_init(|| {
            enter()
                // Each server also has a job of its own, which ends with mcpzip, except for processes that it starts
                // in its first moment.
                .inspect_err(
                    |error| tracing::warn!(%error, "mcpzip could not join a job: processes that servers start at once may keep running"),
                )
                .ok()
        });
    }

    /// Does nothing: there are no containers on Windows.
    #[expect(clippy::unused_self, reason = "as on Unix")]
    pub(in crate::upstream) fn watch_container(&self, _: &Container) {}

    /// Does nothing, either.
    #[expect(clippy::unused_self, reason = "as on Unix")]
    pub(in crate::upstream) fn release_container(&self, _: &Container) {}

    /// Does nothing: the job ends with the process.
    #[expect(clippy::unused_async, reason = "as on Unix")]
    pub(in crate::upstream) async fn close(&self) {}
}

fn enter() -> Result<Job, JobError> {
    let mut limits = ExtendedLimitInfo::new();
    // A browser that mcpzip opens for a login must survive. Servers are in nested jobs without breakaway.
    limits.limit_kill_on_job_close().limit_breakaway_ok();
    let job = Job::create_with_limit_info(&limits)?;
    job.assign_current_process()?;
    Ok(job)
}
