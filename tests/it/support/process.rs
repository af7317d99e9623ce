//! The processes of a test. Each carries the test's mark in its environment.

use std::fmt;

/// The mark of the processes of one home.
#[derive(Debug, Clone)]
pub(crate) struct Mark(String);

impl Mark {
    /// The environment variable with the mark.
    pub(crate) const VARIABLE: &str = "MCPZIP_TEST_MARK";

    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }

    /// The running processes with this mark and their command lines. The test itself has no mark.
    #[cfg(target_os = "linux")]
    pub(crate) fn processes(&self) -> Vec<Process> {
        let wanted = format!("{}={self}", Self::VARIABLE);
        let has_mark = |id: u32| {
            let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted.as_bytes())
        };
        all_ids()
            .filter(|id| has_mark(*id))
            .filter_map(Process::read)
            .collect()
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of kills that `MCPZIP_TEST_KILLS` asks for.
#[cfg(unix)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests have no configuration of their own"
)]
pub(crate) fn kills() -> Option<u64> {
    std::env::var("MCPZIP_TEST_KILLS").ok()?.parse().ok()
}

/// A figure of a process's memory in bytes, such as `VmHWM:`, the most that it had so far.
#[cfg(target_os = "linux")]
pub(crate) fn memory(process: u32, figure: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix(figure)).unwrap();
    let kilobytes = value.trim().strip_suffix(" kB").unwrap();
    kilobytes.parse::<usize>().unwrap() * 1024
}

/// The most memory that a process had so far, in bytes, without the pages of its own file: a debug build has 60 MB of those.
#[cfg(target_os = "linux")]
pub(crate) fn peak(process: u32) -> usize {
    memory(process, "VmHWM:") - memory(process, "RssFile:")
}

/// A process at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    /// The process id.
    pub(crate) id: u32,
    /// The parent's process id.
    pub(crate) parent: u32,
    /// `R`, `S`, `Z` for a zombie, and so on.
    pub(crate) state: char,
    /// The command line.
    pub(crate) command: String,
}

#[cfg(target_os = "linux")]
impl Process {
    /// The process with this id, if there is one.
    pub(crate) fn read(id: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name in parentheses may contain anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let command = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        Some(Self {
            id,
            parent,
            state,
            command,
        })
    }

    /// All processes, including zombies.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        all_ids().filter_map(Self::read)
    }

    /// The children of a process, including zombies.
    pub(crate) fn children_of(parent: u32) -> Vec<Self> {
        Self::all()
            .filter(|process| process.parent == parent)
            .collect()
    }
}

#[cfg(target_os = "linux")]
fn all_ids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc")
        .expect("Linux has /proc")
        .flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Sends a signal to a process.
#[cfg(unix)]
#[track_caller]
pub(crate) fn signal(id: u32, signal: rustix::process::Signal) {
    let id = i32::try_from(id)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .expect("it is a process id");
    rustix::process::kill_process(id, signal).expect("the process is there");
}
