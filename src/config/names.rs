//! Valid names for servers whose names in a file are invalid: clients allow spaces and other characters.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use super::BUILT_IN_SERVER;
use crate::tool::ServerName;

/// The number of characters kept of a name; the rest leaves room for a suffix.
const LONGEST: usize = 48;

/// Whether a server may have this name.
fn is_safe(written: &str) -> bool {
    ServerName::new(written).is_ok() && !written.eq_ignore_ascii_case(BUILT_IN_SERVER)
}

/// A valid name that resembles `written`.
pub(crate) fn safe_name(written: &str) -> String {
    if is_safe(written) {
        return written.to_owned();
    }
    let replaced = written.trim().chars().map(|c| {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
            c
        } else {
            '-'
        }
    });
    let mut name: String = replaced.collect();
    for (twice, once) in [("--", "-"), ("__", "_")] {
        while name.contains(twice) {
            name = name.replace(twice, once);
        }
    }
    name.truncate(LONGEST);
    let name = name.trim_matches('-').to_owned();
    match name.as_str() {
        "" => "server".to_owned(),
        name if name.eq_ignore_ascii_case(BUILT_IN_SERVER) => format!("{name}-server"),
        _ => name,
    }
}

/// The names of all servers of a file. If two would get the same name, those that differ from the written one get a
/// part of their hash as a suffix, independent of the order.
pub(crate) fn safe_names(written: &[&str]) -> Vec<String> {
    let safe: Vec<String> = written.iter().map(|name| safe_name(name)).collect();
    let is_shared = |name: &String| {
        let same = safe.iter().filter(|other| other.eq_ignore_ascii_case(name));
        same.count() > 1
    };
    let told_apart = written.iter().zip(&safe).map(|(written, safe)| {
        if *written == safe.as_str() || !is_shared(safe) {
            return safe.clone();
        }
        let hash = Sha256::digest(written);
        format!("{safe}-{}", HEXLOWER.encode(&hash[..4]))
    });
    told_apart.collect()
}

/// The key in `written`, the keys of a file, that belongs to the server `name`.
pub(crate) fn written_name<'k>(written: &'k [String], name: &str) -> Option<&'k str> {
    if let Some(key) = written.iter().find(|key| *key == name) {
        return Some(key);
    }
    let keys: Vec<&str> = written.iter().map(String::as_str).collect();
    let at = safe_names(&keys).iter().position(|safe| safe == name)?;
    Some(keys[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_safe_and_told_apart() {
        let names = |written: &[&str]| safe_names(written);
        assert_eq!(
            names(&[
                "a",
                "my server",
                "x__y",
                "m\u{fc}ll",
                "\u{43c}\u{438}\u{440}",
                "mcpzip!"
            ]),
            ["a", "my-server", "x_y", "m-ll", "server", "mcpzip-server"]
        );
        let both = names(&["a b", "a-b", "a/b"]);
        assert_eq!(both[1], "a-b");
        assert!(both[0].starts_with("a-b-") && both[2].starts_with("a-b-") && both[0] != both[2]);
        assert_eq!(names(&["a/b", "a b", "a-b"])[1], both[0]);
        let long = names(&["x".repeat(70).as_str(), &"x".repeat(80)]);
        assert!(long.iter().all(|name| is_safe(name)) && long[0] != long[1]);
        let keys = ["a b".to_owned(), "c".to_owned()];
        assert_eq!(written_name(&keys, "a-b"), Some("a b"));
        assert_eq!(written_name(&keys, "c"), Some("c"));
        assert_eq!(written_name(&keys, "d"), None);
    }
}
