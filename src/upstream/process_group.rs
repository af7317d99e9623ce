use std::fmt;

/// A server's process and all that it started, as far as they stayed together.
///
/// On systems without process groups there is only the process itself, which its owner ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessGroup(u32);

impl ProcessGroup {
    /// The group that process `id` leads.
    pub(crate) fn led_by(id: u32) -> Self {
        Self(id)
    }

    /// Reads what `Display` printed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// Asks all of them to end.
    pub(crate) fn terminate(&self) {
        self.signal(Kind::Terminate);
    }

    /// Ends all of them.
    pub(crate) fn kill(&self) {
        self.signal(Kind::Kill);
    }

    #[cfg(unix)]
    fn signal(self, kind: Kind) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let signal = match kind {
            Kind::Terminate => Signal::TERM,
            Kind::Kill => Signal::KILL,
        };
        let id = i32::try_from(self.0).ok().filter(|id| *id > 1).and_then(Pid::from_raw);
        if let Some(id) = id {
            // It fails when nobody is left, which is what is wanted.
            let _ = kill_process_group(id, signal);
        }
    }

    #[cfg(not(unix))]
    fn signal(self, kind: Kind) {
        tracing::debug!(?kind, process = self.0, "no process groups on this system");
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Terminate,
    Kill,
}

impl fmt::Display for ProcessGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
