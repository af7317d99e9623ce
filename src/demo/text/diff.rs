//! The difference of two texts by lines: the longest common subsequence of what is left between equal beginnings and ends.

/// The table of the comparison has a cell for each pair of lines.
const MOST_CELLS: usize = 16_000_000;

/// What became of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change<'a> {
    Kept(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

/// The lines of both texts, in order, removed ones before the added ones in their place. `None` when too many differ.
pub(super) fn diff<'a>(old: &'a str, new: &'a str) -> Option<Vec<Change<'a>>> {
    let old: Vec<_> = old.lines().collect();
    let new: Vec<_> = new.lines().collect();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[head..]
        .iter()
        .rev()
        .zip(new[head..].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let mut changes: Vec<_> = old[..head].iter().map(|line| Change::Kept(line)).collect();
    changes.extend(middle(
        &old[head..old.len() - tail],
        &new[head..new.len() - tail],
    )?);
    changes.extend(
        old[old.len() - tail..]
            .iter()
            .map(|line| Change::Kept(line)),
    );
    Some(changes)
}

fn middle<'a>(old: &[&'a str], new: &[&'a str]) -> Option<Vec<Change<'a>>> {
    let width = new.len() + 1;
    if old.len().saturating_mul(new.len()) > MOST_CELLS {
        return None;
    }
    // `common[i][j]`: how many lines `old[i..]` and `new[j..]` have in common, in order.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut changes = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            changes.push(Change::Kept(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]
        {
            changes.push(Change::Removed(old[i]));
            i += 1;
        } else {
            changes.push(Change::Added(new[j]));
            j += 1;
        }
    }
    Some(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_leads_from_one_text_to_the_other() {
        for (old, new) in [
            ("", ""),
            ("a", ""),
            ("", "a\nb"),
            ("a\nb\nc", "c\na\nb"),
            ("x\na\nx\nb", "a\nx\nx\nb\nb"),
        ] {
            let changes = diff(old, new).unwrap();
            let side = |skip: fn(&Change<'_>) -> bool| -> Vec<&str> {
                changes
                    .iter()
                    .filter(|change| !skip(change))
                    .map(|(Change::Kept(line) | Change::Removed(line) | Change::Added(line))| *line)
                    .collect()
            };
            assert_eq!(
                side(|change| matches!(change, Change::Added(_))),
                old.lines().collect::<Vec<_>>()
            );
            assert_eq!(
                side(|change| matches!(change, Change::Removed(_))),
                new.lines().collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn what_did_not_change_is_kept() {
        let changes = diff("a\nb\nc\nd", "a\nc\nx\nd").unwrap();
        assert_eq!(
            changes,
            [
                Change::Kept("a"),
                Change::Removed("b"),
                Change::Kept("c"),
                Change::Added("x"),
                Change::Kept("d")
            ]
        );
    }

    #[test]
    fn long_texts_with_few_changes_are_compared_and_utterly_different_ones_refused() {
        let long: String = (0..10_000).map(|i| format!("{i}\n")).collect();
        let changed = long.replacen("5000\n", "changed\n", 1);
        let changes = diff(&long, &changed).unwrap();
        assert_eq!(
            changes
                .iter()
                .filter(|change| !matches!(change, Change::Kept(_)))
                .count(),
            2
        );
        assert!(diff(&long, &long.replace('\n', "x\n")).is_none());
    }
}
