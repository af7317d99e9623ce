//! Limits on a server's lists. Whole pages are kept until the catalog has parsed them, so the limit counts all bytes
//! of a page, not only its entries.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The maximum number of pages, for a server whose pages never end.
const MOST_PAGES: usize = 1000;

/// The maximum number of entries in one list.
const MOST_ENTRIES: usize = 50_000;

/// The maximum size of a server's tools in bytes, and of all its other lists together. The two are separate, so that
/// neither uses up the other's limit.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// The bytes used by lists that share a limit.
#[derive(Debug, Default)]
pub(super) struct Bytes(AtomicUsize);

/// The pages, entries and bytes of one list so far.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    bytes: &'a Bytes,
    pages: usize,
    entries: usize,
}

/// The limit that a list exceeds. The text continues after "it has more than".
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

    /// Counts one more page of `size` bytes.
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

    /// Counts `count` entries.
    pub(super) fn entries(&mut self, count: usize) -> Result<(), Over> {
        self.entries += count;
        if self.entries > MOST_ENTRIES {
            return Err(Over::Entries);
        }
        Ok(())
    }
}

/// The entries of a page, at most one more than a list may have: an entry of one digit takes more memory than its
/// byte.
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
