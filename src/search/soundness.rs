//! Checks that the parts of an index are consistent, so that no number in it points outside of it.
//!
//! A checksum detects damage, but not a writer with another idea of the format or with a bug. Such an index is not
//! opened either, so readers can rely on its numbers. Postings are the exception: they are most of an index and are
//! read in order anyway, so they are checked while they are read.

use super::layout::{Layout, List, Section, value};
use super::schema::FIELDS;

/// Whether all references in these bytes stay inside of them. Reads each number once, a few per tool and word.
pub(super) fn is_sound(layout: &Layout) -> bool {
    let tools = layout.tools();
    let list = |section| {
        List::of(layout.section(section))
            .filter(List::is_whole)
            .map(|list| list.len())
    };
    let has = |section, count: usize, size| {
        Some(layout.section(section).len()) == count.checked_mul(size)
    };
    let names_below = |section, limit| {
        layout
            .numbers(section)
            .iter()
            .all(|number| value(*number) < limit)
    };
    let lists = [Section::Servers, Section::Stems, Section::Words].map(list);
    let [Some(servers), Some(stems), Some(words)] = lists else {
        return false;
    };
    list(Section::Tools) == Some(tools)
        && list(Section::Postings) == Some(stems)
        && has(Section::ServerOf, tools, 4)
        && has(Section::Vectors, tools, 8)
        && has(Section::Lengths, tools, 2 * FIELDS)
        && has(Section::Totals, FIELDS, 4)
        && has(Section::ByTool, tools, 4)
        && has(Section::ByName, tools, 4)
        && has(Section::WordTools, words, 4)
        && names_below(Section::ServerOf, servers)
        && names_below(Section::ByTool, tools)
        && names_below(Section::ByName, tools)
}

#[cfg(test)]
mod tests {
    use crate::search::layout::{Layout, fuzzing_seal};
    use crate::search::tests::documents;
    use crate::search::writing;

    use super::*;

    #[test]
    fn what_a_checksum_covers_is_still_not_taken_for_sound() {
        let whole = writing::write(&documents()).unwrap();
        let is_taken = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            fuzzing_seal(&mut bytes);
            Layout::open(bytes).is_some_and(|layout| is_sound(&layout))
        };
        assert!(is_taken(&whole));
        let layout = Layout::open(whole.clone()).unwrap();
        let start = |section| {
            layout.section(section).as_ptr() as usize
                - layout.section(Section::Servers).as_ptr() as usize
        };
        let servers =
            whole.len() - (start(Section::WordTools) + layout.section(Section::WordTools).len());
        // The number of tools, then the first offset of each section that has offsets.
        let offsets = [
            Section::Servers,
            Section::ServerOf,
            Section::Tools,
            Section::ByTool,
            Section::ByName,
        ]
        .into_iter()
        .chain([Section::Stems, Section::Postings, Section::Words])
        .map(|section| servers + start(section));
        for at in std::iter::once(12).chain(offsets) {
            let mut odd = whole.clone();
            odd[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
            assert!(!is_taken(&odd), "the number at byte {at}");
        }
    }
}
