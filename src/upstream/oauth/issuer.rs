//! Issuers of tokens: their comparison, and whether credentials may follow a server to another one.

/// Whether a login may use another issuer than the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum IssuerChange {
    /// Another issuer is refused.
    #[default]
    Refused,
    /// Another issuer is permitted: a person asked for a login at this server by name, and sees its target.
    Allowed,
}

/// Whether two issuers are equal as written, except for a trailing slash after an empty path.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    bare(one) == bare(other)
}

/// An issuer without the slash of an empty path.
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
