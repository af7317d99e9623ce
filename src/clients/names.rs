//! Names of servers, made such that `mcpzip` can use them.

use crate::config::BUILT_IN_SERVER;
use crate::tool::ServerName;

/// A name like `written` that a server may have: clients allow spaces and more.
pub(super) fn valid(written: &str) -> String {
    if ServerName::new(written).is_ok() && !written.eq_ignore_ascii_case(BUILT_IN_SERVER) {
        return written.to_owned();
    }
    let mut name: String = written
        .trim()
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
                c
            } else {
                '-'
            }
        })
        .collect();
    for (twice, once) in [("--", "-"), ("__", "_")] {
        while name.contains(twice) {
            name = name.replace(twice, once);
        }
    }
    // Room for what tells it apart from another.
    name.truncate(48);
    let name = name.trim_matches('-').to_owned();
    match name.as_str() {
        "" => "server".to_owned(),
        name if name.eq_ignore_ascii_case(BUILT_IN_SERVER) => format!("{name}-server"),
        _ => name,
    }
}

/// `name`, or where that is taken, one that says where the server comes from.
pub(super) fn free(name: &str, origin: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let told_apart = format!("{name}-{origin}");
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut candidates = [name.to_owned(), told_apart].into_iter().chain(numbered);
    candidates
        .find(|name| !is_taken(name))
        .expect("there are numbers without end")
}
