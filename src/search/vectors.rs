//! The vectors of tools, in one file that all processes with the same cache share.
//!
//! The file is replaced whole, so readers need no lock; a process that embeds holds one, so that two processes do not
//! do the same work. A damaged file counts as missing: the vectors are computed again.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::embedding::VectorKey;
use crate::files;

/// The version of the file format and of the text that represents a tool.
pub(crate) const VERSION: &str = "v1";
const MAGIC: &[u8; 8] = b"MCPZVEC\x01";
const HEADER: usize = 24;
/// The number of vectors kept for tools that are not in this process's catalog: they may return, or belong to the
/// catalog of another process.
const SPARE: usize = 20_000;

/// The storage of the vectors.
pub(super) struct Vectors {
    /// `None` keeps them in memory only.
    file: Option<PathBuf>,
    width: usize,
    // The vectors that could not be written, and those that a search reads without a file. Locked only to copy the
    // pointer.
    memory: Mutex<Option<Arc<Table>>>,
}

/// The right to compute missing vectors, until it is dropped. It has no file if there is nothing to lock: two processes
/// may then do the same work.
#[derive(Debug)]
pub(super) struct EmbeddingLock(#[expect(dead_code, reason = "it is held, not read")] Option<File>);

/// Vectors by key.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Table {
    width: usize,
    /// In ascending order.
    keys: Vec<u64>,
    scales: Vec<f32>,
    /// The bytes of the file, or only the rows. There is one row of signed bytes per key, from `first_row` on.
    rows: Vec<u8>,
    /// The position of the first row in `rows`.
    first_row: usize,
}

impl Vectors {
    pub(super) fn new(directory: Option<PathBuf>, model: &str, width: usize) -> Self {
        let file = directory.map(|directory| {
            directory
                .join("vectors")
                .join(VERSION)
                .join(format!("{model}.vectors"))
        });
        Self {
            file,
            width,
            memory: Mutex::default(),
        }
    }

    /// The lock for embedding. `None` if another process holds it.
    pub(super) fn lock(&self) -> Option<EmbeddingLock> {
        let Some(file) = &self.file else {
            return Some(EmbeddingLock(None));
        };
        let opened = file
            .parent()
            .map(files::create_private_directory)
            .transpose()
            .and_then(|_| files::open_lock(&file.with_extension("lock")));
        match opened {
            Ok(lock) => match lock.try_lock() {
                Ok(()) => Some(EmbeddingLock(Some(lock))),
                Err(fs::TryLockError::WouldBlock) => None,
                // A disk without locks: two processes may do the same work.
                Err(fs::TryLockError::Error(_)) => Some(EmbeddingLock(None)),
            },
            // A read-only disk: the vectors stay in memory.
            Err(_) => Some(EmbeddingLock(None)),
        }
    }

    /// Whether there may be any vectors.
    pub(super) fn are_there(&self) -> bool {
        let is_in_memory = self.memory.lock().is_some();
        is_in_memory || self.file.as_ref().is_some_and(|file| file.exists())
    }

    /// Reads all current vectors.
    pub(super) fn load(&self) -> Arc<Table> {
        let memory = self.memory.lock().clone();
        if let Some(table) = memory {
            return table;
        }
        let Some(file) = &self.file else {
            return Arc::default();
        };
        match files::read_any(file) {
            Ok(bytes) => Table::parse(bytes, self.width).map(Arc::new).unwrap_or_else(|| {
                tracing::warn!(path = %file.display(), "the vectors of tools are damaged and are made again");
                Arc::default()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Arc::default(),
            Err(error) => {
                tracing::warn!(path = %file.display(), %error, "the vectors of tools cannot be read");
                Arc::default()
            }
        }
    }

    /// Adds vectors. Of the older ones that are not `wanted`, the first [`SPARE`] in the order of keys are kept.
    pub(super) fn add(&self, new: &HashMap<VectorKey, Vec<f32>>, wanted: &HashSet<VectorKey>) {
        let table = self.load().with(new, wanted, self.width);
        let written = self.file.as_ref().map(|file| table.write(file));
        let mut memory = self.memory.lock();
        *memory = match written {
            Some(Ok(())) => None,
            Some(Err(error)) => {
                tracing::warn!(%error, "the vectors of tools cannot be written and stay in memory");
                Some(Arc::new(table))
            }
            None => Some(Arc::new(table)),
        };
    }
}

impl Table {
    /// Takes over the bytes of a file without a copy of the rows, which are most of it.
    fn parse(bytes: Vec<u8>, width: usize) -> Option<Self> {
        let (header, body) = bytes.split_at_checked(HEADER)?;
        let number = |at: usize| {
            header[at..]
                .first_chunk()
                .map(|bytes| u32::from_le_bytes(*bytes))
        };
        let count = number(12)? as usize;
        let is_whole = header.starts_with(MAGIC)
            && number(8)? as usize == width
            && body.len() == count.checked_mul(width.checked_add(12)?)?
            && number(16)? == crc32fast::hash(body);
        if !is_whole {
            return None;
        }
        let (keys, rest) = body.split_at(count * 8);
        let (scales, _) = rest.split_at(count * 4);
        Some(Self {
            width,
            keys: keys
                .as_chunks()
                .0
                .iter()
                .map(|key| u64::from_le_bytes(*key))
                .collect(),
            scales: scales
                .as_chunks()
                .0
                .iter()
                .map(|scale| f32::from_le_bytes(*scale))
                .collect(),
            first_row: HEADER + count * 12,
            rows: bytes,
        })
    }

    /// The row of the key at a position.
    fn row(&self, at: usize) -> &[u8] {
        &self.rows[self.first_row + at * self.width..][..self.width]
    }

    fn write(&self, file: &std::path::Path) -> io::Result<()> {
        let (head, rows) = self.bytes()?;
        files::replace(file, &[&head, rows])
    }

    /// The file: the bytes before the rows, and the rows.
    fn bytes(&self) -> io::Result<(Vec<u8>, &[u8])> {
        let rows = &self.rows[self.first_row..];
        let mut numbers: Vec<u8> = self.keys.iter().flat_map(|key| key.to_le_bytes()).collect();
        numbers.extend(self.scales.iter().flat_map(|scale| scale.to_le_bytes()));
        let mut checksum = crc32fast::Hasher::new();
        [&*numbers, rows]
            .into_iter()
            .for_each(|part| checksum.update(part));
        let number = |number: usize| u32::try_from(number).map_err(|_| io::ErrorKind::FileTooLarge);
        let mut head = MAGIC.to_vec();
        for number in [
            number(self.width)?,
            number(self.keys.len())?,
            checksum.finalize(),
            0,
        ] {
            head.extend(number.to_le_bytes());
        }
        head.append(&mut numbers);
        Ok((head, rows))
    }

    /// A copy with the vectors in `new`.
    fn with(
        &self,
        new: &HashMap<VectorKey, Vec<f32>>,
        wanted: &HashSet<VectorKey>,
        width: usize,
    ) -> Self {
        let mut spare = SPARE;
        let kept = self.keys.iter().enumerate().filter(|(_, key)| {
            let key = VectorKey(**key);
            let is_wanted = wanted.contains(&key);
            let is_kept = !new.contains_key(&key) && (is_wanted || spare > 0);
            spare -= usize::from(is_kept && !is_wanted);
            is_kept
        });
        let mut all: Vec<(u64, Option<usize>)> = kept.map(|(at, key)| (*key, Some(at))).collect();
        all.extend(new.keys().map(|key| (key.0, None)));
        all.sort_unstable();
        let mut table = Self {
            width,
            ..Self::default()
        };
        for (key, row) in all {
            table.keys.push(key);
            match row {
                Some(at) => {
                    table.scales.push(self.scales[at]);
                    table.rows.extend(self.row(at));
                }
                None => table.push(&new[&VectorKey(key)]),
            }
        }
        table
    }

    /// Appends a vector, as bytes.
    fn push(&mut self, vector: &[f32]) {
        let largest = vector
            .iter()
            .fold(f32::MIN_POSITIVE, |largest, value| largest.max(value.abs()));
        let factor = f32::from(i8::MAX) / largest;
        self.scales.push(1.0 / factor);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the values were scaled to fit"
        )]
        self.rows.extend(
            vector
                .iter()
                .map(|value| ((value * factor).round() as i8).cast_unsigned()),
        );
    }

    /// Whether the table has a vector for this key.
    pub(super) fn has(&self, key: VectorKey) -> bool {
        self.keys.binary_search(&key.0).is_ok()
    }

    /// The row of a key's vector.
    pub(super) fn find(&self, key: VectorKey) -> Option<u32> {
        self.keys
            .binary_search(&key.0)
            .ok()
            .and_then(|at| u32::try_from(at).ok())
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// All rows, one after another, as signed bytes.
    pub(super) fn rows(&self) -> &[u8] {
        &self.rows[self.first_row..]
    }

    /// The factor for the numbers of a row.
    pub(super) fn scale(&self, row: u32) -> f32 {
        self.scales[row as usize]
    }

    /// A table of these rows only; `rows` is updated to their new positions.
    pub(super) fn only(&self, rows: &mut [Option<u32>]) -> Self {
        let mut wanted: Vec<u32> = rows.iter().flatten().copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        for row in rows.iter_mut().flatten() {
            let at = wanted.binary_search(row).expect("every row is wanted");
            *row = u32::try_from(at).expect("a part of the rows");
        }
        let mut table = Self {
            width: self.width,
            ..Self::default()
        };
        for row in wanted.into_iter().map(|row| row as usize) {
            table.keys.push(self.keys[row]);
            table.scales.push(self.scales[row]);
            table.rows.extend(self.row(row));
        }
        table
    }
}

#[cfg(any(test, feature = "fuzzing"))]
impl Vectors {
    /// Opens a file with these bytes in memory. `None` if it is damaged.
    pub(super) fn fuzzing_open(bytes: Vec<u8>, width: usize) -> Option<Self> {
        let table = Table::parse(bytes, width)?;
        Some(Self {
            file: None,
            width,
            memory: Mutex::new(Some(Arc::new(table))),
        })
    }

    /// The bytes of a file with all vectors.
    pub(super) fn fuzzing_bytes(&self) -> Vec<u8> {
        let table = self.load();
        let (head, rows) = table.bytes().expect("what a fuzzer makes is small");
        [&head, rows].concat()
    }

    /// Corrects the header of bytes, if they are long enough.
    pub(super) fn fuzzing_seal(bytes: &mut [u8], width: u32) {
        if let Some((header, body)) = bytes.split_at_mut_checked(HEADER) {
            header[..8].copy_from_slice(MAGIC);
            header[8..12].copy_from_slice(&width.to_le_bytes());
            header[16..20].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(keys: &[u64]) -> HashMap<VectorKey, Vec<f32>> {
        let vector = |key: u64| (0..16).map(|at| ((key + at) as f32).sin()).collect();
        keys.iter()
            .map(|key| (VectorKey(*key), vector(*key)))
            .collect()
    }

    fn keys(table: &Table) -> &[u64] {
        &table.keys
    }

    #[test]
    fn what_was_added_is_there_for_all() {
        let home = tempfile::tempdir().unwrap();
        let vectors = Vectors::new(Some(home.path().to_owned()), "model", 16);
        assert!(vectors.lock().is_some());
        vectors.add(&some(&[5, 3]), &HashSet::new());
        vectors.add(&some(&[4, 3]), &HashSet::new());
        let other = Vectors::new(Some(home.path().to_owned()), "model", 16).load();
        assert_eq!(keys(&other), [3, 4, 5]);
        let row = other.find(VectorKey(4)).unwrap();
        let scale = other.scale(row);
        for (byte, exact) in other.rows()[16 * row as usize..][..16]
            .iter()
            .zip(&some(&[4])[&VectorKey(4)])
        {
            assert!((f32::from(byte.cast_signed()) * scale - exact).abs() < 0.005);
        }
        assert!(!other.has(VectorKey(6)) && other.find(VectorKey(6)).is_none());
        let mut rows = [Some(2), None, Some(0), Some(2)];
        let some = other.only(&mut rows);
        assert_eq!(
            (keys(&some), rows),
            (&[3, 5][..], [Some(1), None, Some(0), Some(1)])
        );
        assert_eq!(
            (some.rows(), some.scale(1)),
            (
                &[&other.rows()[..16], &other.rows()[32..]].concat()[..],
                other.scale(2)
            )
        );
        assert!(keys(&Vectors::new(Some(home.path().to_owned()), "other", 16).load()).is_empty());
    }

    #[test]
    fn one_process_embeds() {
        let home = tempfile::tempdir().unwrap();
        let vectors = Vectors::new(Some(home.path().to_owned()), "model", 16);
        let held = vectors.lock();
        assert!(held.is_some() && vectors.lock().is_none());
        drop(held);
        assert!(vectors.lock().is_some());
    }

    #[test]
    fn damage_is_as_good_as_no_file() {
        let home = tempfile::tempdir().unwrap();
        let vectors = Vectors::new(Some(home.path().to_owned()), "model", 16);
        vectors.add(&some(&[1, 2]), &HashSet::new());
        let file = vectors.file.clone().unwrap();
        let whole = fs::read(&file).unwrap();
        let mut damages: Vec<Vec<u8>> = (0..whole.len())
            .step_by(7)
            .map(|length| whole[..length].to_vec())
            .collect();
        for at in [0, 9, 13, 17, HEADER, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            damages.push(damaged);
        }
        for damaged in damages {
            fs::write(&file, &damaged).unwrap();
            assert!(keys(&vectors.load()).is_empty(), "{} bytes", damaged.len());
        }
        vectors.add(&some(&[2]), &HashSet::new());
        assert_eq!(keys(&vectors.load()), [2]);
    }

    #[test]
    fn without_a_disk_they_are_in_memory() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        for directory in [None, Some(file)] {
            let vectors = Vectors::new(directory, "model", 16);
            assert!(vectors.lock().is_some());
            vectors.add(&some(&[1]), &HashSet::new());
            vectors.add(&some(&[2]), &HashSet::new());
            assert_eq!(keys(&vectors.load()), [1, 2]);
        }
    }

    #[test]
    fn what_nobody_wants_goes_when_it_is_too_much() {
        let table = Table::default().with(
            &some(&(0..SPARE as u64 + 10).collect::<Vec<_>>()),
            &HashSet::new(),
            16,
        );
        let last = SPARE as u64 + 9;
        let after = table.with(&HashMap::new(), &HashSet::from([VectorKey(last)]), 16);
        assert_eq!(after.keys.len(), SPARE + 1);
        assert!(after.has(VectorKey(last)));
    }
}
