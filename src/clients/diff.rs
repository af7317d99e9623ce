//! Line differences: shown before a migration, and reversed by an undo.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use crate::secret::MASK;

/// The time limit of the search for the smallest difference. After it, the difference has more lines than necessary.
const PATIENCE: Duration = Duration::from_millis(500);

/// The number of unchanged lines shown around a change.
const CONTEXT: usize = 3;

/// Lines of one text that replace lines of the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hunk {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// The lines, each with its line end.
pub(super) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The changes from `old` to `new`, in order.
pub(super) fn hunks(old: &[&str], new: &[&str]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let deadline = Some(Instant::now() + PATIENCE);
    for op in capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline) {
        let (tag, old, new) = op.as_tag_tuple();
        match hunks.last_mut() {
            _ if tag == DiffTag::Equal => {}
            // A removal and an insertion at one position are one change.
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                (last.old.end, last.new.end) = (old.end, new.end);
            }
            _ => hunks.push(Hunk { old, new }),
        }
    }
    hunks
}

/// The change as a unified diff; empty if there is none. Each text has a form for display. If that has masks in other places than within
/// lines, the difference is the one between both forms.
#[must_use]
pub(super) fn unified_diff(old: [&str; 2], new: [&str; 2]) -> String {
    let ([old, old_shown], [new, new_shown]) = (old.map(lines), new.map(lines));
    let is_same = |text: &[&str], shown: &[&str]| {
        let mut pairs = text.iter().zip(shown);
        text.len() == shown.len()
            && pairs.all(|(line, shown)| line == shown || shown.contains(MASK))
    };
    let hunks = match is_same(&old, &old_shown) && is_same(&new, &new_shown) {
        true => hunks(&old, &new),
        false => hunks(&old_shown, &new_shown),
    };
    let (old, new) = (old_shown, new_shown);
    let mut text = String::new();
    let mut rest = hunks.as_slice();
    while let Some(first) = rest.first() {
        // Changes whose context lines meet are shown as one.
        let near = |pair: &[Hunk]| pair[1].old.start - pair[0].old.end <= 2 * CONTEXT;
        let count = 1 + rest.windows(2).take_while(|pair| near(pair)).count();
        let (group, behind) = rest.split_at(count);
        rest = behind;
        let last = &group[count - 1];
        let (from, to) = (
            first.old.start.saturating_sub(CONTEXT),
            (last.old.end + CONTEXT).min(old.len()),
        );
        let new_from = first.new.start - (first.old.start - from);
        let new_count = last.new.end + (to - last.old.end) - new_from;
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "@@ -{},{} +{},{} @@",
            from + 1,
            to - from,
            new_from + 1,
            new_count
        );
        let mut at = from;
        for hunk in group {
            old[at..hunk.old.start]
                .iter()
                .for_each(|line| push(&mut text, ' ', line));
            old[hunk.old.clone()]
                .iter()
                .for_each(|line| push(&mut text, '-', line));
            new[hunk.new.clone()]
                .iter()
                .for_each(|line| push(&mut text, '+', line));
            at = hunk.old.end;
        }
        old[at..to]
            .iter()
            .for_each(|line| push(&mut text, ' ', line));
    }
    text
}

fn push(text: &mut String, sign: char, line: &str) {
    text.push(sign);
    text.push_str(line.trim_end_matches(['\r', '\n']));
    text.push('\n');
}

/// `current`, an edited form of `after`, without the change from `before` to `after`. `None` if `current` was changed
/// at the same position.
pub(super) fn reversed(before: &str, after: &str, current: &str) -> Option<String> {
    let (before, after, current) = (lines(before), lines(after), lines(current));
    let theirs = hunks(&after, &current);
    let mut text = String::new();
    let mut at = 0;
    for own in hunks(&before, &after) {
        if theirs
            .iter()
            .any(|hunk| hunk.old.start < own.new.end && hunk.old.end > own.new.start)
        {
            return None;
        }
        // The number of lines by which earlier changes have moved it.
        let moved = theirs
            .iter()
            .rev()
            .find(|hunk| hunk.old.end <= own.new.start);
        let position = |line: usize| moved.map_or(line, |hunk| line - hunk.old.end + hunk.new.end);
        text.extend(current[at..position(own.new.start)].iter().copied());
        text.extend(before[own.old.clone()].iter().copied());
        at = position(own.new.end);
    }
    text.extend(current[at..].iter().copied());
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_lead_from_one_text_to_the_other() {
        let words = ["a\n", "b\n", "c\n", "d\n"];
        let mut seed = 5_u64;
        let mut next = |limit: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((seed >> 33) % limit).unwrap()
        };
        for _ in 0..2000 {
            let old: Vec<&str> = (0..next(8)).map(|_| words[next(4)]).collect();
            let new: Vec<&str> = (0..next(8)).map(|_| words[next(4)]).collect();
            let (mut made, mut at) = (Vec::<&str>::new(), 0);
            for hunk in hunks(&old, &new) {
                assert_eq!(
                    old[at..hunk.old.start].len(),
                    hunk.new.start - made.len(),
                    "{old:?} {new:?}"
                );
                made.extend(&old[at..hunk.old.start]);
                made.extend(&new[hunk.new.clone()]);
                at = hunk.old.end;
            }
            made.extend(&old[at..]);
            assert_eq!(made, new, "from {old:?}");
            let (old, new) = (old.concat(), new.concat());
            assert_eq!(reversed(&old, &new, &new).unwrap(), old);
        }
    }

    #[test]
    fn a_diff_shows_what_changed_and_a_little_around() {
        let old: String = (1..=20).map(|line| format!("{line}\n")).collect();
        let new = old.replace("10\n", "ten\n").replace("2\n", "");
        let diff = unified_diff([&old; 2], [&new; 2]);
        assert!(
            diff.starts_with("@@ -1,") && diff.contains("\n-10\n+ten\n") && diff.contains("\n-2\n"),
            "{diff}"
        );
        assert!(!diff.contains(" 17"), "{diff}");
        assert_eq!(unified_diff([&old; 2], [&old; 2]), "");
    }

    #[test]
    fn our_change_is_taken_back_among_those_of_others() {
        let (before, after) = ("a\nb\nc\nd\ne\n", "a\nB\nc\nd\ne\n");
        assert_eq!(
            reversed(before, after, "0\na\nB\nc\nd\nE\n").unwrap(),
            "0\na\nb\nc\nd\nE\n"
        );
        assert_eq!(
            reversed(before, after, "0\nB\n1\nc\nd\ne\n").unwrap(),
            "0\nb\n1\nc\nd\ne\n"
        );
        assert_eq!(reversed(before, after, "a\nB!\nc\nd\ne\n"), None);
    }
}
