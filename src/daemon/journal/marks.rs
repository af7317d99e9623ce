//! The progress of each line: a head with five numbers, then a record of 8 bytes for each step of an unfinished line.
//!
//! Each number and record is one atomic word, so a kill cannot leave it half-written. The file is mapped into memory: to
//! write a record costs no system call. Readers ignore the records of finished lines. When no line is open, the next
//! record overwrites the first.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vm_memory::{FileOffset, MmapRegion, VolatileMemory as _};

use super::Mark;

/// Byte offsets of the numbers in the head. `KEPT` is a pair: the offset and the length of the kept lines.
const DONE: usize = 0;
const LINE_OPEN: usize = 8;
const KEPT: u64 = 16;
const CAPTURED: usize = 32;

/// Byte offset of the first record.
const RECORDS: usize = 64;
/// Size of a record, in bytes.
const RECORD: usize = 8;

/// Size of the mapped part, in bytes. Records after it cost a system call each; few sessions have so many.
const MAPPED: usize = 64 * 1024;

/// The mapped part of the file: the numbers and the first records.
#[derive(Debug, Clone)]
pub(super) struct Head {
    file: Arc<File>,
    mapped: Arc<MmapRegion>,
}

/// The writer of the records.
#[derive(Debug)]
pub(super) struct Marks {
    head: Head,
    /// Byte offset of the next record.
    next: usize,
}

impl Head {
    /// Grows an empty file to the size that is mapped. All numbers are 0.
    ///
    /// # Errors
    /// When the system has no memory left.
    pub(super) fn prepare(file: &File) -> io::Result<()> {
        file.set_len(MAPPED as u64)
    }

    /// Maps a file that [`Head::prepare`] has grown.
    ///
    /// # Errors
    /// When the file cannot be mapped.
    pub(super) fn open(file: &File) -> io::Result<Self> {
        let file = Arc::new(file.try_clone()?);
        let mapped = MmapRegion::from_file(FileOffset::from_arc(file.clone(), 0), MAPPED);
        Ok(Self {
            file,
            mapped: Arc::new(mapped.map_err(io::Error::other)?),
        })
    }

    /// The position before which all lines are finished.
    ///
    /// # Errors
    /// Never, because the number is in the mapped part.
    pub(super) fn done(&self) -> io::Result<u64> {
        Ok(u64::from_le(self.word(DONE)?.load(Ordering::Acquire)))
    }

    /// The number of bytes of the stream that the input file has.
    pub(super) fn captured(&self) -> io::Result<u64> {
        Ok(u64::from_le(self.word(CAPTURED)?.load(Ordering::Acquire)))
    }

    pub(super) fn set_captured(&self, position: u64) -> io::Result<()> {
        self.set(CAPTURED, position)
    }

    /// Records whether a line to the client is incomplete.
    pub(super) fn set_line_open(&self, is_open: bool) -> io::Result<()> {
        self.set(LINE_OPEN, is_open.into())
    }

    /// Whether an earlier process may have left a line to the client incomplete.
    pub(super) fn is_line_open(&self) -> io::Result<bool> {
        Ok(self.word(LINE_OPEN)?.load(Ordering::Acquire) != 0)
    }

    fn set(&self, at: usize, number: u64) -> io::Result<()> {
        self.word(at)?.store(number.to_le(), Ordering::Release);
        Ok(())
    }

    fn word(&self, at: usize) -> io::Result<&AtomicU64> {
        self.mapped
            .get_atomic_ref(at)
            .map_err(|error| io::Error::other(error.to_string()))
    }
}

impl Marks {
    /// Reads the file. Returns the writer, and the last mark of each unfinished line by the line's end.
    pub(super) fn open(head: Head) -> io::Result<(Self, HashMap<u64, Mark>)> {
        let length = usize::try_from(head.file.metadata()?.len()).map_err(io::Error::other)?;
        let mut records = vec![0; length.saturating_sub(RECORDS)];
        head.file.read_exact_at(&mut records, RECORDS as u64)?;
        let done = head.done()?;
        let mut earlier = HashMap::new();
        let mut next = RECORDS;
        for (number, record) in records.chunks_exact(RECORD).enumerate() {
            let (end, mark) = split(number_of(record));
            if end > done {
                next = RECORDS + (number + 1) * RECORD;
                if earlier.get(&end) != Some(&Mark::Finished) {
                    earlier.insert(end, mark);
                }
            }
        }
        Ok((Self { head, next }, earlier))
    }

    /// The position before which all lines are finished.
    pub(super) fn done(&self) -> io::Result<u64> {
        self.head.done()
    }

    pub(super) fn set_done(&self, position: u64) -> io::Result<()> {
        self.head.set(DONE, position)
    }

    /// The offset and the length of the current lines in the `kept` file, in bytes.
    pub(super) fn kept(&self) -> io::Result<(u64, u64)> {
        let mut both = [0; 16];
        self.head.file.read_exact_at(&mut both, KEPT)?;
        Ok((number_of(&both[..8]), number_of(&both[8..])))
    }

    /// Sets the offset and the length in one write, which a kill cannot interrupt.
    pub(super) fn set_kept(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut both = [0; 16];
        both[..8].copy_from_slice(&offset.to_le_bytes());
        both[8..].copy_from_slice(&length.to_le_bytes());
        self.head.file.write_all_at(&both, KEPT)
    }

    /// Appends a record for the line that ends at `end`.
    pub(super) fn note(&mut self, end: u64, mark: Mark) -> io::Result<()> {
        let record = end << 2 | mark as u64;
        if self.next < MAPPED {
            self.head.set(self.next, record)?;
        } else {
            let at = self.next as u64;
            self.head.file.write_all_at(&record.to_le_bytes(), at)?;
        }
        self.next += RECORD;
        Ok(())
    }

    /// Makes the next record overwrite the first. Only when no line is open.
    pub(super) fn restart(&mut self) {
        self.next = RECORDS;
    }
}

/// Decodes a record into the end of its line and the mark.
fn split(record: u64) -> (u64, Mark) {
    let mark = if record & 3 == Mark::HandedOver as u64 {
        Mark::HandedOver
    } else {
        Mark::Finished
    };
    (record >> 2, mark)
}

fn number_of(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(eight)
}
