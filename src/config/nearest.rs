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

/// The one of `known` that is most like `written`, if any is: by habit, otherwise by the number of letters to change,
/// letter case, `-` and `_` aside, of which a third may differ.
pub(super) fn nearest(written: &str, known: &[&'static str]) -> Option<&'static str> {
    let plain = simplify(written);
    if let Some((_, key)) = HABITS.iter().find(|(habit, key)| *habit == plain && known.contains(key)) {
        return Some(key);
    }
    known
        .iter()
        .map(|key| (distance(&plain, &simplify(key)), *key))
        .filter(|(changes, key)| *changes <= key.chars().count().max(plain.chars().count()) / 3)
        .min()
        .map(|(_, key)| key)
}

fn simplify(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`.
#[must_use]
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_leads_to_the_key_that_was_meant() {
        let known = ["command", "args", "env", "cwd", "url", "headers", "max_concurrent", "disabled", "type"];
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
        assert_eq!(nearest("cmd", &["mcpServers"]), None, "a habit leads to known keys only");
    }

    #[test]
    fn distance_counts_changes() {
        for (a, b, changes) in [("", "", 0), ("", "ab", 2), ("kitten", "sitting", 3), ("ab", "ba", 1), ("ä", "a", 1)] {
            assert_eq!((distance(a, b), distance(b, a)), (changes, changes), "{a} {b}");
        }
    }
}
