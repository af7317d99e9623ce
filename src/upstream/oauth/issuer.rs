//! Issuers of tokens: their comparison, and whether credentials may follow a server to another one.

/// Whether another issuer than the first may be taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum IssuerChange {
    /// It is refused.
    #[default]
    Refused,
    /// A person asked for a login at this server by its name, and sees where it leads.
    Allowed,
}

/// Whether two issuers are one. They are compared as they are written, but for the slash that a URL without a path may have.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    bare(one) == bare(other)
}

/// An issuer without the slash that stands for no path.
fn bare(issuer: &str) -> &str {
    match issuer.strip_suffix('/') {
        Some(rest) if rest.matches('/').count() == 2 => rest,
        _ => issuer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_differ_in_every_character_but_the_slash_of_a_bare_origin() {
        for (one, other, expected) in [
            ("https://a.com", "https://a.com/", true),
            ("https://a.com/x", "https://a.com/x", true),
            ("https://a.com/x", "https://a.com/x/", false),
            ("https://a.com/x", "https://a.com/y", false),
            ("https://a.com", "https://a.com/x", false),
            ("https://a.com", "http://a.com", false),
            ("https://a.com", "https://a.com:8443", false),
            ("https://a.com", "https://a.com.evil.com/", false),
        ] {
            assert_eq!(is_same(one, other), expected, "{one} and {other}");
            assert_eq!(is_same(other, one), expected, "{other} and {one}");
        }
    }
}
