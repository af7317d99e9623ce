//! The journal in three anonymous files (memfd), which outlive the process that serves the session.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use super::kept::KeptLine;
use super::marks::{Head, Marks};
use super::{Contents, Journal, Mark, Store};

/// Minimum size of a hole in the input file, in bytes.
const HOLE: u64 = 256 * 1024;

/// Beyond this position, the lines are written to the start of the file again.
const TURN: u64 = 1024 * 1024;

/// The files of a session's journal. All processes that serve the session share them.
#[derive(Debug)]
pub(in crate::daemon) struct Files {
    pub(in crate::daemon) input: File,
    pub(in crate::daemon) marks: File,
    pub(in crate::daemon) kept: File,
}

/// The files, in the process that serves the session.
#[derive(Debug)]
struct Open {
    input: File,
    marks: Marks,
    kept: Records,
    /// The memory of the input before this position was freed.
    returned: u64,
}

impl Files {
    /// Creates the files of a new session.
    ///
    /// # Errors
    /// When the system cannot create or grow them.
    pub(in crate::daemon) fn new() -> io::Result<Self> {
        let file =
            |name| -> io::Result<File> { Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into()) };
        let files = Self {
            input: file("mcpzip-input")?,
            marks: file("mcpzip-marks")?,
            kept: file("mcpzip-kept")?,
        };
        Head::prepare(&files.marks)?;
        Ok(files)
    }
}

impl Journal {
    /// Opens the journal at the first line that is not finished; in new files, at the start of the stream.
    ///
    /// # Errors
    /// When the files cannot be read or mapped.
    pub(in crate::daemon) fn open(files: &Files) -> io::Result<Arc<Self>> {
        let (marks, earlier) = Marks::open(Head::open(&files.marks)?)?;
        let (records, kept) = Records::open(files.kept.try_clone()?, marks.kept()?)?;
        let contents = Contents {
            done: marks.done()?,
            kept,
            earlier,
        };
        let store = Open {
            input: files.input.try_clone()?,
            marks,
            kept: records,
            returned: 0,
        };
        Ok(Self::new(store, contents))
    }
}

impl Store for Open {
    fn note(&mut self, end: u64, mark: Mark) -> io::Result<()> {
        self.marks.note(end, mark)
    }

    fn set_done(&mut self, position: u64) -> io::Result<()> {
        self.marks.set_done(position)?;
        if position - self.returned >= HOLE {
            let from = std::mem::replace(&mut self.returned, position);
            let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // If this fails, the memory is freed at the end of the session.
            let _ = fallocate(&self.input, mode, from, position - from);
        }
        Ok(())
    }

    fn restart(&mut self) {
        self.marks.restart();
    }

    fn keep(&mut self, lines: &[KeptLine]) -> io::Result<()> {
        self.kept.write(lines, &self.marks)
    }
}

/// The file of the kept lines. A record is the line's end (8 bytes), its length (8 bytes) and its text.
///
/// When a line changes, all of them are written again after the previous copy. Then the head of the marks is set to the new copy, so that
/// a kill leaves one of both.
#[derive(Debug)]
struct Records {
    file: File,
    /// The byte offset of the current records in the file.
    offset: u64,
    /// The length of the current records, in bytes.
    length: u64,
}

impl Records {
    /// Reads the records at `offset`, which take `length` bytes.
    fn open(file: File, (offset, length): (u64, u64)) -> io::Result<(Self, Vec<KeptLine>)> {
        let mut text = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        file.read_exact_at(&mut text, offset)?;
        let mut text = Bytes::from(text);
        let mut lines = Vec::new();
        while text.len() >= 16 {
            let (end, length) = (number(&text[..8]), number(&text[8..16]));
            let length = usize::try_from(length).map_err(io::Error::other)?;
            let mut record = text.split_to(text.len().min(16 + length));
            lines.extend(KeptLine::new(end, record.split_off(16)));
        }
        let records = Self {
            file,
            offset,
            length,
        };
        Ok((records, lines))
    }

    /// Writes all lines to a new offset and sets `marks` to it.
    fn write(&mut self, lines: &[KeptLine], marks: &Marks) -> io::Result<()> {
        let mut text = Vec::new();
        for KeptLine { end, line, .. } in lines {
            text.extend_from_slice(&end.to_le_bytes());
            text.extend_from_slice(&(line.len() as u64).to_le_bytes());
            text.extend_from_slice(line);
        }
        let length = text.len() as u64;
        // The current lines are never overwritten.
        let next = self.offset + self.length;
        let offset = if next > TURN && length <= self.offset {
            0
        } else {
            next
        };
        self.file.write_all_at(&text, offset)?;
        marks.set_kept(offset, length)?;
        (self.offset, self.length) = (offset, length);
        Ok(())
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(eight)
}

#[cfg(test)]
impl Files {
    /// The start of the first line that is not finished.
    pub(super) fn done(&self) -> u64 {
        Head::open(&self.marks).unwrap().done().unwrap()
    }
}
