//! The byte format of an index, in its file and, unchanged, in memory.
//!
//! A header with a checksum of everything after it, then sections. Numbers are little-endian, unaligned, and read in
//! place, so opening any index costs one read of a few megabytes and the checksum. The checksum does not prove who
//! wrote the file; `soundness` checks the content once.

use std::ops::Range;

/// The magic number with the version of the format, which is also that of [`super::store::VERSION`].
const MAGIC: &[u8; 8] = b"MCPZIDX\x03";
/// Length in bytes of the magic number, the checksum and the number of tools.
const FIXED: usize = 16;
const HEADER: usize = FIXED + 4 * Section::COUNT;

/// The sections of an index, in order. A column has one number per document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Section {
    /// The list of the servers' names.
    Servers,
    /// A column: the position of each tool's server in that list.
    ServerOf,
    /// The list of the tools' names.
    Tools,
    /// A column of 64-bit numbers: the keys of the tools' vectors.
    Vectors,
    /// The number of words of each tool in each ranked field, in 16 bits; longer texts count as the maximum.
    Lengths,
    /// The number of words of all tools in each ranked field, in 32 bits.
    Totals,
    /// Document ids in the order of the tools' compact names: first the bare names, then those with the server's name.
    ByTool,
    ByName,
    /// The list of the stems in the order of their bytes, and the list of their postings.
    Stems,
    Postings,
    /// The list of the unstemmed words in the order of their bytes, and the number of tools that have each.
    Words,
    WordTools,
}

impl Section {
    const COUNT: usize = Self::WordTools as usize + 1;
}

/// The bytes of an index.
pub(super) struct Layout {
    bytes: Vec<u8>,
    tools: usize,
    sections: [Range<usize>; Section::COUNT],
}

/// A list of texts: their end offsets, then the texts.
#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    ends: &'a [[u8; 4]],
    data: &'a [u8],
}

impl Layout {
    /// Takes the bytes of an index. `None` if they do not have the format of [`Builder`].
    pub(super) fn open(bytes: Vec<u8>) -> Option<Self> {
        let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        if !bytes.starts_with(MAGIC)
            || bytes.len() < HEADER
            || number(8)? != crc32fast::hash(&bytes[12..])
        {
            return None;
        }
        let mut sections = [const { 0..0 }; Section::COUNT];
        let mut start = HEADER;
        for (at, section) in sections.iter_mut().enumerate() {
            let end = start.checked_add(number(FIXED + 4 * at)? as usize)?;
            *section = start..end;
            start = end;
        }
        let tools = number(12)? as usize;
        (start == bytes.len()).then_some(Self {
            tools,
            sections,
            bytes,
        })
    }

    pub(super) fn tools(&self) -> usize {
        self.tools
    }

    /// The 32-bit numbers of a section.
    pub(super) fn numbers(&self, section: Section) -> &[[u8; 4]] {
        self.section(section).as_chunks().0
    }

    /// The bytes of a section.
    pub(super) fn section(&self, section: Section) -> &[u8] {
        &self.bytes[self.sections[section as usize].clone()]
    }

    pub(super) fn list(&self, section: Section) -> List<'_> {
        List::of(self.section(section)).expect("an index that is not sound is not opened")
    }
}

/// The number in these bytes.
pub(super) fn value(bytes: [u8; 4]) -> usize {
    u32::from_le_bytes(bytes) as usize
}

impl<'a> List<'a> {
    /// Reads a list. `None` if the bytes cannot be one.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk()?;
        let (ends, data) = rest.split_at_checked(value(*count).checked_mul(4)?)?;
        Some(Self {
            ends: ends.as_chunks().0,
            data,
        })
    }

    /// Whether its texts follow one another and fill the list.
    pub(super) fn is_whole(&self) -> bool {
        self.ends.is_sorted_by_key(|end| value(*end))
            && self.ends.last().map_or(0, |end| value(*end)) == self.data.len()
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> &'a [u8] {
        let start = at
            .checked_sub(1)
            .map_or(0, |before| value(self.ends[before]));
        &self.data[start..value(self.ends[at])]
    }

    /// The text at a position.
    pub(super) fn text(&self, at: usize) -> &'a str {
        str::from_utf8(self.get(at)).unwrap_or_default()
    }

    /// The index of `text` in a list that is sorted by bytes.
    pub(super) fn find(&self, text: &str) -> Option<usize> {
        let mut range = 0..self.len();
        while !range.is_empty() {
            let middle = range.start.midpoint(range.end);
            match self.get(middle).cmp(text.as_bytes()) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => range.start = middle + 1,
                std::cmp::Ordering::Greater => range.end = middle,
            }
        }
        None
    }
}

/// Assembles the sections of an index, in order.
pub(super) struct Builder {
    bytes: Vec<u8>,
    sections: usize,
}

/// An index of more than 4 GB.
#[derive(Debug)]
pub(super) struct TooLarge;

impl Builder {
    pub(super) fn new(tools: usize) -> Result<Self, TooLarge> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([0; 4]);
        bytes.extend(number(tools)?);
        bytes.resize(HEADER, 0);
        Ok(Self { bytes, sections: 0 })
    }

    /// Adds the next section, which must be `section`.
    pub(super) fn add(
        &mut self,
        section: Section,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), TooLarge>,
    ) -> Result<(), TooLarge> {
        debug_assert_eq!(
            section as usize, self.sections,
            "{section:?} has another turn"
        );
        let start = self.bytes.len();
        write(&mut self.bytes)?;
        let length = number(self.bytes.len() - start)?;
        self.bytes[FIXED + 4 * self.sections..][..4].copy_from_slice(&length);
        self.sections += 1;
        Ok(())
    }

    pub(super) fn add_numbers(
        &mut self,
        section: Section,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Result<(), TooLarge> {
        self.add(section, |bytes| {
            for value in numbers {
                bytes.extend(number(value)?);
            }
            Ok(())
        })
    }

    pub(super) fn add_list<T: AsRef<[u8]>>(
        &mut self,
        section: Section,
        texts: &[T],
    ) -> Result<(), TooLarge> {
        self.add(section, |bytes| {
            bytes.extend(number(texts.len())?);
            let mut end = 0;
            for text in texts {
                end += text.as_ref().len();
                bytes.extend(number(end)?);
            }
            texts.iter().for_each(|text| bytes.extend(text.as_ref()));
            Ok(())
        })
    }

    /// Completes the index with its checksum.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let checksum = crc32fast::hash(&self.bytes[12..]).to_le_bytes();
        self.bytes[8..12].copy_from_slice(&checksum);
        self.bytes
    }
}

/// Corrects the checksum of bytes, if their header is long enough.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn fuzzing_seal(bytes: &mut [u8]) {
    if bytes.len() >= FIXED {
        bytes[..8].copy_from_slice(MAGIC);
        let checksum = crc32fast::hash(&bytes[12..]).to_le_bytes();
        bytes[8..12].copy_from_slice(&checksum);
    }
}

fn number(value: usize) -> Result<[u8; 4], TooLarge> {
    Ok(u32::try_from(value).map_err(|_| TooLarge)?.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<u8> {
        let mut builder = Builder::new(3).unwrap();
        for at in 0..Section::COUNT {
            // Any list will do; only the order of sections matters.
            builder.bytes[FIXED + 4 * at..][..4].copy_from_slice(&4u32.to_le_bytes());
            builder.bytes.extend(0u32.to_le_bytes());
        }
        builder.finish()
    }

    #[test]
    fn what_is_damaged_anywhere_is_not_opened() {
        let whole = some();
        assert_eq!(Layout::open(whole.clone()).unwrap().tools(), 3);
        for length in 0..whole.len() {
            assert!(
                Layout::open(whole[..length].to_vec()).is_none(),
                "{length} bytes"
            );
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert!(Layout::open(damaged).is_none(), "byte {at}");
        }
        assert!(
            Layout::open([&whole[..], &[0]].concat()).is_none(),
            "a byte more"
        );
    }

    #[test]
    fn texts_are_found_in_their_order() {
        let mut builder = Builder::new(0).unwrap();
        builder
            .add_list(Section::Servers, &["", "a", "ab", "b", "ü"])
            .unwrap();
        let mut bytes = builder.finish();
        bytes.drain(..HEADER);
        let layout = Layout {
            sections: [const { 0..0 }; Section::COUNT].map(|_| 0..bytes.len()),
            bytes,
            tools: 0,
        };
        let list = layout.list(Section::Servers);
        for (text, index) in [
            ("", Some(0)),
            ("ab", Some(2)),
            ("ü", Some(4)),
            ("aa", None),
            ("z", None),
            ("ý", None),
        ] {
            assert_eq!(list.find(text), index, "{text}");
        }
        assert_eq!((list.len(), list.text(4)), (5, "ü"));
    }
}
