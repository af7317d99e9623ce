//! Names of servers and entries that are still free.

/// `name`, or where that is taken, one that says where the server comes from.
pub(super) fn free(name: &str, origin: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let told_apart = format!("{name}-{origin}");
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut candidates = [name.to_owned(), told_apart].into_iter().chain(numbered);
    candidates
        .find(|name| !is_taken(name))
        .expect("there are numbers without end")
}
