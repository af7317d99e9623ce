//! Finds the known key that an unknown one was probably meant to be.

use crate::text::distance;

/// Keys of other clients' files, and common mistakes, that a distance between spellings would not find.
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

/// The member of `known` that is most similar to `written`: by common mistake, otherwise by the number of letters to
/// change. Letter case, `-` and `_` are ignored, and at most a third of the letters may differ.
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

/// `key` without letter case, `-` and `_`.
pub(super) fn simplify(key: &str) -> String {
    letters(key).collect()
}

/// The characters of [`simplify`].
pub(super) fn letters(key: &str) -> impl Iterator<Item = char> + '_ {
    key.chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
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
}
