//! How far each line has come: a head with a few numbers, behind it a record for each step of a line that is not finished.
//!
//! Every write has 16 bytes at most and stays within a page, so it is there whole or not at all. Records of lines that are done are
//! ignored by whoever reads them; new ones are written over them once no line is open.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Where in the head each number is.
const DONE: u64 = 0;
const LINE_OPEN: u64 = 8;
const KEPT: u64 = 16;

/// Where records begin.
const RECORDS: u64 = 64;
const RECORD: usize = 16;

/// What happened to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// A server was about to get it.
    HandedOver = 1,
    /// It was answered, or will not be.
    Finished = 2,
}

#[derive(Debug)]
pub(super) struct Marks {
    file: File,
    /// Where the next record goes.
    next: u64,
}

impl Marks {
    /// Writes the head of an empty file.
    pub(super) fn prepare(file: &File) -> io::Result<()> {
        file.write_all_at(&[0; RECORDS as usize], 0)
    }

    /// The marks, and what they say of lines that are not done; the later of two for one line.
    pub(super) fn open(file: File) -> io::Result<(Self, HashMap<u64, Mark>)> {
        let length = file.metadata()?.len();
        let mut records = vec![0; usize::try_from(length.saturating_sub(RECORDS)).unwrap_or(0)];
        file.read_exact_at(&mut records, RECORDS)?;
        let next = RECORDS + (records.len() / RECORD * RECORD) as u64;
        let marks = Self { file, next };
        let done = marks.done()?;
        let mut earlier = HashMap::new();
        for record in records.chunks_exact(RECORD) {
            let (end, kind) = (number(&record[..8]), number(&record[8..]));
            let mark = match kind {
                1 => Mark::HandedOver,
                _ => Mark::Finished,
            };
            if end > done && earlier.get(&end) != Some(&Mark::Finished) {
                earlier.insert(end, mark);
            }
        }
        Ok((marks, earlier))
    }

    /// All before this position is finished.
    pub(super) fn done(&self) -> io::Result<u64> {
        done(&self.file)
    }

    pub(super) fn set_done(&self, position: u64) -> io::Result<()> {
        self.file.write_all_at(&position.to_le_bytes(), DONE)
    }

    /// Where in the third file the kept lines are, and how long they are.
    pub(super) fn kept(&self) -> io::Result<(u64, u64)> {
        Ok((read(&self.file, KEPT)?, read(&self.file, KEPT + 8)?))
    }

    pub(super) fn set_kept(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut both = [0; 16];
        both[..8].copy_from_slice(&offset.to_le_bytes());
        both[8..].copy_from_slice(&length.to_le_bytes());
        self.file.write_all_at(&both, KEPT)
    }

    pub(super) fn note(&mut self, end: u64, mark: Mark) -> io::Result<()> {
        let mut record = [0; RECORD];
        record[..8].copy_from_slice(&end.to_le_bytes());
        record[8..].copy_from_slice(&(mark as u64).to_le_bytes());
        self.file.write_all_at(&record, self.next)?;
        self.next += RECORD as u64;
        Ok(())
    }

    /// No line is open: the next record may stand over the first.
    pub(super) fn begin_anew(&mut self) {
        self.next = RECORDS;
    }
}

/// All before this position is finished.
pub(super) fn done(file: &File) -> io::Result<u64> {
    read(file, DONE)
}

/// Notes in `file` that a line on the way to the client is not complete, or is.
pub(super) fn set_line_open(file: &File, is_open: bool) -> io::Result<()> {
    file.write_all_at(&u64::from(is_open).to_le_bytes(), LINE_OPEN)
}

/// Whether an earlier process may have left a line to the client incomplete.
pub(super) fn is_line_open(file: &File) -> io::Result<bool> {
    Ok(read(file, LINE_OPEN)? != 0)
}

fn read(file: &File, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at)?;
    Ok(u64::from_le_bytes(bytes))
}

fn number(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(eight)
}
