//! How far each line has come: a head with a few numbers, behind it a record for each step of a line that is not finished.
//!
//! Every number is one atomic word, so it is there whole or not at all. The file is mapped into this process: to note a step costs no
//! system call. Records of lines that are done are ignored by whoever reads them; new ones are written over them once no line is
//! open.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vm_memory::{FileOffset, MmapRegion, VolatileMemory as _};

/// Where in the head each number is.
const DONE: usize = 0;
const LINE_OPEN: usize = 8;
const KEPT: u64 = 16;
const CAPTURED: usize = 32;

/// Where records begin.
const RECORDS: usize = 64;
const RECORD: usize = 8;

/// What is mapped, in bytes: enough for the records of all usual sessions. Those behind it are written to the file.
const MAPPED: usize = 64 * 1024;

/// What happened to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// A server was about to get it.
    HandedOver = 1,
    /// It was answered, or will not be.
    Finished = 2,
}

/// The numbers at the beginning of the file, and the first records.
#[derive(Debug, Clone)]
pub(super) struct Head {
    file: Arc<File>,
    mapped: Arc<MmapRegion>,
}

#[derive(Debug)]
pub(super) struct Marks {
    head: Head,
    /// Where the next record goes.
    next: usize,
}

impl Head {
    /// Writes the head of an empty file.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn prepare(file: &File) -> io::Result<()> {
        file.set_len(MAPPED as u64)
    }

    /// The head of a file that was prepared.
    ///
    /// # Errors
    /// When it cannot be mapped.
    pub(super) fn open(file: &File) -> io::Result<Self> {
        let file = Arc::new(file.try_clone()?);
        let mapped = MmapRegion::from_file(FileOffset::from_arc(file.clone(), 0), MAPPED);
        Ok(Self {
            file,
            mapped: Arc::new(mapped.map_err(io::Error::other)?),
        })
    }

    /// All before this position is finished.
    ///
    /// # Errors
    /// Never, as it is mapped.
    pub(super) fn done(&self) -> io::Result<u64> {
        Ok(u64::from_le(self.word(DONE)?.load(Ordering::Acquire)))
    }

    /// How much of the input is in the journal.
    pub(super) fn captured(&self) -> io::Result<u64> {
        Ok(u64::from_le(self.word(CAPTURED)?.load(Ordering::Acquire)))
    }

    pub(super) fn set_captured(&self, position: u64) -> io::Result<()> {
        self.set(CAPTURED, position)
    }

    /// Notes that a line on the way to the client is not complete, or is.
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
    /// The marks, and what they say of lines that are not done; the later of two for one line.
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

    /// All before this position is finished.
    pub(super) fn done(&self) -> io::Result<u64> {
        self.head.done()
    }

    pub(super) fn set_done(&self, position: u64) -> io::Result<()> {
        self.head.set(DONE, position)
    }

    /// Where in the third file the kept lines are, and how long they are.
    pub(super) fn kept(&self) -> io::Result<(u64, u64)> {
        let mut both = [0; 16];
        self.head.file.read_exact_at(&mut both, KEPT)?;
        Ok((number_of(&both[..8]), number_of(&both[8..])))
    }

    /// Sets both in one write, which a kill does not tear.
    pub(super) fn set_kept(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut both = [0; 16];
        both[..8].copy_from_slice(&offset.to_le_bytes());
        both[8..].copy_from_slice(&length.to_le_bytes());
        self.head.file.write_all_at(&both, KEPT)
    }

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

    /// No line is open: the next record may stand over the first.
    pub(super) fn begin_anew(&mut self) {
        self.next = RECORDS;
    }
}

/// The end of the line that a record is about, and what happened to it.
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
