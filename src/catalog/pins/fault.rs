//! Why a record cannot be used.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a record cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    text: String,
    kind: FaultKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FaultKind {
    /// It is damaged or gone: a person decides again.
    Lost,
    /// It is in the way, or may not be read or written.
    Barred,
    /// The system has no descriptor or memory for it now.
    Passing,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for Fault {}

impl Fault {
    /// The fault in an error of a record, or one of its place.
    pub(super) fn of(error: &io::Error) -> Self {
        let inner = error.get_ref();
        let known = inner.and_then(|inner| inner.downcast_ref::<Self>());
        known.cloned().unwrap_or_else(|| Self {
            text: error.to_string(),
            kind: match is_passing(error) {
                true => FaultKind::Passing,
                false => FaultKind::Barred,
            },
        })
    }

    /// The fault of a record that was there, and is not any more.
    pub(super) fn missing(name: &Path) -> io::Error {
        let text = format!("{} is gone", name.display());
        let kind = FaultKind::Lost;
        io::Error::new(io::ErrorKind::NotFound, Self { text, kind })
    }

    /// An error of a file, which it names.
    pub(super) fn at(path: &Path, error: &io::Error) -> io::Error {
        let path = path.display();
        let (text, kind) = match error.kind() {
            _ if is_passing(error) => (
                format!("{path} could not be opened: {error}"),
                FaultKind::Passing,
            ),
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                (format!("{path} is damaged: {error}"), FaultKind::Lost)
            }
            _ => (format!("{path}: {error}"), FaultKind::Barred),
        };
        io::Error::new(error.kind(), Self { text, kind })
    }

    /// Whether a record is damaged or gone, which no second attempt changes.
    pub(super) fn is_loss(&self) -> bool {
        self.kind == FaultKind::Lost
    }

    /// Whether the next attempt may succeed.
    pub(super) fn is_passing(&self) -> bool {
        self.kind == FaultKind::Passing
    }
}

fn is_passing(error: &io::Error) -> bool {
    #[cfg(unix)]
    let codes = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(|it| it.raw_os_error());
    #[cfg(not(unix))]
    let codes = [4];
    let is_code = |code: i32| codes.contains(&code);
    error.raw_os_error().is_some_and(is_code) || error.kind() == io::ErrorKind::OutOfMemory
}
