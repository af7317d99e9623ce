//! How much a server may list. Its pages are kept until the catalog has read them, so their bytes are what counts, with all
//! that stands in them beside the entries.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A server that never comes to its last page is cut off here.
const MOST_PAGES: usize = 1000;

/// The most entries of one list.
const MOST_ENTRIES: usize = 50_000;

/// The most bytes of a server's tools, and of all its other lists together: so neither takes the other's.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// What lists have taken that share a limit.
#[derive(Debug, Default)]
pub(super) struct Bytes(AtomicUsize);

/// What one list has taken.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    bytes: &'a Bytes,
    pages: usize,
    entries: usize,
}

/// A limit that a list is over; it reads on after "it has more than".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Pages,
    Entries,
    Bytes,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pages => write!(f, "{MOST_PAGES} pages"),
            Self::Entries => write!(f, "{MOST_ENTRIES} entries"),
            Self::Bytes => write!(f, "{} MB", MOST_BYTES / 1024 / 1024),
        }
    }
}

impl<'a> Taken<'a> {
    pub(super) fn of(bytes: &'a Bytes) -> Self {
        Self {
            bytes,
            pages: 0,
            entries: 0,
        }
    }

    /// Counts one more page of this size.
    pub(super) fn page(&mut self, size: usize) -> Result<(), Over> {
        self.pages += 1;
        if self.pages > MOST_PAGES {
            return Err(Over::Pages);
        }
        let before = self.bytes.0.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) > MOST_BYTES {
            return Err(Over::Bytes);
        }
        Ok(())
    }

    /// Counts so many entries.
    pub(super) fn entries(&mut self, count: usize) -> Result<(), Over> {
        self.entries += count;
        if self.entries > MOST_ENTRIES {
            return Err(Over::Entries);
        }
        Ok(())
    }
}

/// The entries of a page, and at most one more than a list may have: an entry that is a digit takes more memory than its byte.
#[derive(Debug)]
pub(super) struct Entries<'a>(pub(super) Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while entries.len() <= MOST_ENTRIES
                    && let Some(entry) = list.next_element()?
                {
                    entries.push(entry);
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Entries(entries))
            }
        }

        from.deserialize_seq(Reader)
    }
}
