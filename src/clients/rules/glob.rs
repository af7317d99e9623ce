//! Glob patterns for clients' names of tools, which begin with the server's name.

use std::collections::BTreeSet;

/// The patterns of the rest of the names that start with `prefix` and match `pattern`. `*` matches any characters, `?`
/// matches one.
pub(super) fn behind(pattern: &str, prefix: &str) -> Vec<String> {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut at = BTreeSet::from([0]);
    for c in prefix.chars() {
        let mut next = BTreeSet::new();
        for mut position in at {
            // A `*` may also match nothing, so the character after it is checked as well.
            while pattern.get(position) == Some(&'*') {
                next.insert(position);
                position += 1;
            }
            if pattern
                .get(position)
                .is_some_and(|known| *known == c || *known == '?')
            {
                next.insert(position + 1);
            }
        }
        at = next;
    }
    let rest = at
        .into_iter()
        .map(|position| pattern[position..].iter().collect::<String>());
    let mut rest: Vec<String> = rest.filter(|rest| !rest.is_empty()).collect();
    let is_all = |rest: &String| rest.chars().all(|c| c == '*');
    if rest.iter().any(is_all) {
        rest = vec!["*".to_owned()];
    }
    rest
}

/// Whether a pattern matches every tool of every server, and therefore mcpzip's tools.
pub(super) fn is_about_all(pattern: &str, prefix: impl Fn(&str) -> String) -> bool {
    // No server has this name.
    behind(pattern, &prefix("\u{1}")) == ["*"]
}

/// Whether `name` matches `pattern`.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    // The name ends with a character that no pattern contains.
    behind(&format!("{pattern}\u{1}$"), &format!("{name}\u{1}")).contains(&"$".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_followed_through_the_servers_name() {
        for (pattern, rest) in [
            ("x_rm*", &["rm*"][..]),
            ("*rm*", &["*rm*"]),
            ("*_rm", &["*_rm", "rm"]),
            ("x*rm", &["*rm"]),
            ("?_rm", &["rm"]),
            ("*", &["*"]),
            ("x_**", &["*"]),
            ("y_rm", &[]),
            ("x_", &[]),
            ("x", &[]),
        ] {
            assert_eq!(behind(pattern, "x_"), rest, "{pattern}");
        }
        let prefix = |server: &str| format!("{server}_");
        for (pattern, is_all) in [("*", true), ("*_*", true), ("x_*", false), ("*rm", false)] {
            assert_eq!(is_about_all(pattern, prefix), is_all, "{pattern}");
        }
        for (pattern, name, is_fit) in [
            ("git*", "github", true),
            ("git", "github", false),
            ("*", "", true),
            ("g?t", "git", true),
        ] {
            assert_eq!(fits(pattern, name), is_fit, "{pattern} {name}");
        }
    }
}
