//! The known key that an unknown one was probably meant to be.

/// Keys of other clients' files, and habits, that no distance between spellings would lead to ours.
const HABITS: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("arguments", "args"),
    ("environment", "env"),
    ("envvars", "env"),
    ("directory", "cwd"),
    ("workingdirectory", "cwd"),
    ("workingdir", "cwd"),
    ("serverurl", "url"),
    ("httpurl", "url"),
    ("endpoint", "url"),
    ("httpproxy", "proxy"),
    ("httpsproxy", "proxy"),
    ("ca", "ca_file"),
    ("cacert", "ca_file"),
    ("cacerts", "ca_file"),
    ("cainfo", "ca_file"),
    ("cabundle", "ca_file"),
    ("certificateauthority", "ca_file"),
    ("nodeextracacerts", "ca_file"),
    ("uri", "url"),
    ("httpheaders", "headers"),
    ("transport", "type"),
    ("transporttype", "type"),
    ("enabled", "disabled"),
    ("servers", "mcpServers"),
    ("mcp", "mcpServers"),
];

/// The characters of the longest name that is compared.
const LONGEST: usize = 200;

/// The one of `known` that is most like `written`, if any is: by habit, otherwise by the number of letters to change,
/// letter case, `-` and `_` aside, of which a third may differ.
pub(super) fn nearest(written: &str, known: &[&'static str]) -> Option<&'static str> {
    let plain = simplify(written);
    if let Some((_, key)) = HABITS
        .iter()
        .find(|(habit, key)| *habit == plain && known.contains(key))
    {
        return Some(key);
    }
    let letters = plain.chars().count();
    known
        .iter()
        .filter_map(|key| {
            Some((
                distance(&plain, &simplify(key), letters.max(key.chars().count()) / 3)?,
                *key,
            ))
        })
        .min()
        .map(|(_, key)| key)
}

fn simplify(key: &str) -> String {
    key.chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`; `None` where they are more than
/// `limit`, or one of the two is longer than anything that a person writes: names are given by others, at any length.
#[must_use]
pub(crate) fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let letters = |text: &str| text.chars().take(LONGEST + 1).collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    if a.len().max(b.len()) > LONGEST || a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let (mut before, mut last) = (Vec::new(), (0..=b.len()).collect::<Vec<_>>());
    for i in 1..=a.len() {
        let mut row = Vec::with_capacity(last.len());
        row.push(i);
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                let swapped: &Vec<usize> = &before;
                least = least.min(swapped[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|changes| *changes <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_leads_to_the_key_that_was_meant() {
        let known = [
            "command",
            "args",
            "env",
            "cwd",
            "url",
            "headers",
            "max_concurrent",
            "disabled",
            "type",
        ];
        for (written, expected) in [
            ("comand", Some("command")),
            ("comamnd", Some("command")),
            ("cmd", Some("command")),
            ("arg", Some("args")),
            ("maxConcurrent", Some("max_concurrent")),
            ("header", Some("headers")),
            ("URL", Some("url")),
            ("serverUrl", Some("url")),
            ("httpUrl", Some("url")),
            ("enabled", Some("disabled")),
            ("tpye", Some("type")),
            ("autoApprove", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, &known), expected, "{written}");
        }
        assert_eq!(
            nearest("cmd", &["mcpServers"]),
            None,
            "a habit leads to known keys only"
        );
    }

    #[test]
    fn names_of_any_length_cost_next_to_nothing() {
        // A table of these two would have a thousand times what there is of memory.
        let long = "x".repeat(1_000_000);
        assert_eq!(distance(&long, &long, usize::MAX), None);
        assert_eq!(nearest(&long, &["command"]), None);
        assert_eq!(distance(&long[..LONGEST], &long[..LONGEST - 1], 1), Some(1));
    }

    #[test]
    fn distance_counts_changes() {
        for (a, b, changes) in [
            ("", "", 0),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
            ("ä", "a", 1),
        ] {
            assert_eq!(
                (distance(a, b, 3), distance(b, a, 3)),
                (Some(changes), Some(changes)),
                "{a} {b}"
            );
        }
        assert_eq!(
            (distance("kitten", "sitting", 2), distance("", "abc", 2)),
            (None, None),
            "more than the limit"
        );
    }
}
