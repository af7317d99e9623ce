//! The options for calls that wait for an approval.

use std::time::Duration;

use super::reader::{Read, Report};
use super::sections::ApprovalsEntry;

/// The options for calls that wait for an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ApprovalOptions {
    /// The time that a call waits; without it, a little less than its client waits.
    pub wait: Option<Duration>,
}

impl ApprovalOptions {
    /// The options as written, with defaults for the others.
    pub(super) fn of(read: Read<ApprovalsEntry>, report: &Report) -> Self {
        match report.value(read, "the defaults for approvals").flatten() {
            None => Self::default(),
            Some(written) => Self {
                wait: report
                    .value(written.wait, "the client's own limit")
                    .flatten(),
            },
        }
    }
}
