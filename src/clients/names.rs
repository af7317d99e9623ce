//! Unused names for servers and entries.

/// `name`, or, if that is taken, a name with the server's origin.
pub(super) fn free(name: &str, origin: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let suffixed = format!("{name}-{origin}");
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut candidates = [name.to_owned(), suffixed].into_iter().chain(numbered);
    candidates
        .find(|name| !is_taken(name))
        .expect("there are numbers without end")
}
