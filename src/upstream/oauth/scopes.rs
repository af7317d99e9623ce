//! Lists of scopes without duplicates.

/// The scopes in a text, without duplicates.
pub(super) fn scopes_in(text: &str) -> Vec<String> {
    let mut scopes = Vec::new();
    add_scopes(&mut scopes, text.split_whitespace());
    scopes
}

/// Adds the scopes that are missing.
pub(super) fn add_scopes<S: AsRef<str>>(
    scopes: &mut Vec<String>,
    more: impl IntoIterator<Item = S>,
) {
    for scope in more {
        if !scopes.iter().any(|known| known == scope.as_ref()) {
            scopes.push(scope.as_ref().to_owned());
        }
    }
}
