//! An index as bytes: how it lies in its file and, unchanged, in memory.
//!
//! A header with a checksum of everything behind it, then sections. Numbers are little-endian and lie anywhere; they are
//! read where they lie, so that opening an index costs one read of a few megabytes and the checksum, whatever it holds.
//! What the checksum lets through is what somebody wrote; `soundness` sees once whether that was this program.

use std::ops::Range;

/// With the number of the form, which is also that of [`super::store::VERSION`].
const MAGIC: &[u8; 8] = b"MCPZIDX\x03";
/// Magic, checksum, number of tools.
const FIXED: usize = 16;
const HEADER: usize = FIXED + 4 * Section::COUNT;

/// The parts of an index, in their order. A column has a number for each document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Section {
    /// A list of the servers' names.
    Servers,
    /// A column: the index of each tool's server in that list.
    ServerOf,
    /// A list of the tools' names.
    Tools,
    /// A column of 64 bits: what the tools' vectors are found by.
    Vectors,
    /// The number of words of each tool in each ranked field, in 16 bits; longer texts count as that long.
    Lengths,
    /// The number of words of all tools in each ranked field, in 32 bits.
    Totals,
    /// Places in the order of their tools' compact names, first alone, then behind the server's.
    ByTool,
    ByName,
    /// A list of the stems in the order of their bytes, and a list of their postings.
    Stems,
    Postings,
    /// A list of the words, not stemmed, in the order of their bytes, and the number of tools that have each.
    Words,
    WordTools,
}

impl Section {
    const COUNT: usize = Self::WordTools as usize + 1;
}

/// An index's bytes, which are as they were written.
pub(super) struct Layout {
    bytes: Vec<u8>,
    tools: usize,
    sections: [Range<usize>; Section::COUNT],
}

/// Texts, one after another: their ends, then themselves.
#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    ends: &'a [[u8; 4]],
    data: &'a [u8],
}

impl Layout {
    /// Takes the bytes of an index; `None` when they are not what [`Builder`] made.
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

/// The number that lies in these bytes.
pub(super) fn value(bytes: [u8; 4]) -> usize {
    u32::from_le_bytes(bytes) as usize
}

impl<'a> List<'a> {
    /// The list that these bytes are; `None` when they cannot be one.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk()?;
        let (ends, data) = rest.split_at_checked(value(*count).checked_mul(4)?)?;
        Some(Self {
            ends: ends.as_chunks().0,
            data,
        })
    }

    /// Whether its texts lie one behind the other and are all there is.
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

    /// As text, which is what was written.
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

/// Puts the sections of an index together, each in its turn.
pub(super) struct Builder {
    bytes: Vec<u8>,
    sections: usize,
}

/// An index of more than 4 GB, which nobody has.
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

    /// Adds the next section, which has to be `section`.
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

    /// The whole, with its checksum.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let checksum = crc32fast::hash(&self.bytes[12..]).to_le_bytes();
        self.bytes[8..12].copy_from_slice(&checksum);
        self.bytes
    }
}

/// Makes bytes pass for an index, as far as that is in their beginning.
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
            // Any list will do; the turn is what counts.
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
