//! URIs of resources that several servers have.
//!
//! Such a URI becomes `mcpzip://SERVER/URI` with the URI percent-encoded; that of an interface always names its server
//! (see [`crate::proxy::own_uris`]). In a template, the expressions are kept, so
//! that a client can expand it. The values that it inserts are therefore encoded only once, and are copied unchanged
//! into the server's own URI.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use regex::{Regex, RegexBuilder};

use crate::proxy::own_uris::{self, encoded};
use crate::tool::ServerName;

/// The memory limit of a template's pattern in bytes; a larger one matches nothing.
const LARGEST_PATTERN: usize = 256 * 1024;

/// A URI template (RFC 6570), as needed to parse URIs that were expanded from it: literals and expressions. The value
/// of an expression ends where the next literal begins.
#[derive(Debug)]
pub(in crate::proxy) struct Template<'a>(Vec<Part<'a>>);

#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    Literal(&'a str),
    /// An expression with its braces.
    Expression(&'a str),
}

/// Maximum number of expressions in a template; one with more matches nothing.
const MOST_EXPRESSIONS: usize = 16;

/// The disambiguated form of `uri` of `server`.
pub(crate) fn disambiguated(server: &ServerName, uri: &str) -> String {
    own_uris::with_server(server, uri).unwrap_or_else(|| own_uris::told_apart(server, uri))
}

/// The length of the common prefix of two URIs in bytes; 0 if it is shorter than the scheme.
pub(in crate::proxy) fn in_common(a: &str, b: &str) -> usize {
    let length = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    if a.as_bytes()[..length].contains(&b':') {
        length
    } else {
        0
    }
}

/// The disambiguated form of what is encoded already.
fn prefixed(server: &ServerName, rest: &str) -> String {
    format!("{}{rest}", own_uris::told_apart(server, ""))
}

/// Decodes percent-encoding; `None` if the result is not UTF-8.
pub(in crate::proxy) fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text)
        .decode_utf8()
        .ok()
        .map(Cow::into_owned)
}

impl<'a> Template<'a> {
    /// Parses a template; an unclosed brace is a literal.
    pub(in crate::proxy) fn new(text: &'a str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let Some(length) = rest[start..].find('}') else {
                break;
            };
            parts.push(Part::Literal(&rest[..start]));
            parts.push(Part::Expression(&rest[start..=start + length]));
            rest = &rest[start + length + 1..];
        }
        parts.push(Part::Literal(rest));
        Self(parts)
    }

    /// The disambiguated template of `server`, which is a template as well.
    pub(in crate::proxy) fn disambiguated(&self, server: &ServerName) -> String {
        if let Some(template) = own_uris::with_server(server, &self.text()) {
            return template;
        }
        let parts = self.0.iter().map(|part| match part {
            Part::Literal(text) => encoded(text),
            Part::Expression(text) => (*text).to_owned(),
        });
        prefixed(server, &parts.collect::<String>())
    }

    /// The template of `server` as clients see it; `None` if they see the template itself. The values of expressions at its beginning
    /// could make any scheme of it.
    pub(in crate::proxy) fn seen(&self, server: &ServerName) -> Option<String> {
        let may_be_ours = match self.0.len() {
            1 => false,
            _ => !self.beginning().contains(':'),
        };
        let is_seen = may_be_ours || own_uris::seen(server, &self.text()).is_some();
        is_seen.then(|| self.disambiguated(server))
    }

    fn text(&self) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Literal(text) | Part::Expression(text) => *text,
        });
        parts.collect()
    }

    /// How specific the template is.
    pub(in crate::proxy) fn weight(&self) -> usize {
        self.literals().map(str::len).sum()
    }

    /// The literal before the first expression.
    pub(in crate::proxy) fn beginning(&self) -> &'a str {
        self.literals().next().unwrap_or_default()
    }

    /// Whether `uri` may have been expanded from this template.
    pub(in crate::proxy) fn matches(&self, uri: &str) -> bool {
        self.values(uri, str::to_owned).is_some()
    }

    /// The disambiguated URI for `uri`, which was expanded from this template.
    pub(in crate::proxy) fn disambiguate(&self, server: &ServerName, uri: &str) -> Option<String> {
        let values = self.values(uri, str::to_owned)?;
        Some(prefixed(server, &self.expanded(&values, encoded)))
    }

    /// The server's own URI for `rest` of a disambiguated URI, if that was expanded from this template.
    pub(in crate::proxy) fn own_uri(&self, rest: &str) -> Option<String> {
        let values = self.values(rest, encoded)?;
        Some(self.expanded(&values, str::to_owned))
    }

    fn literals(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.0.iter().filter_map(|part| match part {
            Part::Literal(text) => Some(*text),
            Part::Expression(_) => None,
        })
    }

    fn expanded(&self, values: &[String], literal: fn(&str) -> String) -> String {
        let mut values = values.iter();
        let parts = self.0.iter().map(|part| match part {
            Part::Literal(text) => literal(text),
            Part::Expression(_) => values.next().cloned().unwrap_or_default(),
        });
        parts.collect()
    }

    /// The values of the expressions in `uri`, in order; `literal` converts the literals to their form in `uri`.
    fn values(&self, uri: &str, literal: fn(&str) -> String) -> Option<Vec<String>> {
        if !uri.starts_with(&literal(self.beginning())) || !self.may_match(uri, literal) {
            return None;
        }
        let captures = self.pattern(literal)?.captures(uri)?;
        Some(
            captures
                .iter()
                .skip(1)
                .flatten()
                .map(|value| value.as_str().to_owned())
                .collect(),
        )
    }

    /// Whether `uri` has the literals in their order. This needs no pattern, which takes long to make.
    fn may_match(&self, uri: &str, literal: fn(&str) -> String) -> bool {
        let (mut rest, mut expressions) = (uri, 0);
        for part in &self.0 {
            match part {
                Part::Expression(_) => expressions += 1,
                Part::Literal(text) => {
                    let text = literal(text);
                    let Some(at) = rest.find(&text) else {
                        return false;
                    };
                    rest = &rest[at + text.len()..];
                }
            }
        }
        expressions <= MOST_EXPRESSIONS
    }

    fn pattern(&self, literal: fn(&str) -> String) -> Option<Regex> {
        let parts = self.0.iter().map(|part| match part {
            Part::Literal(text) => regex::escape(&literal(text)),
            Part::Expression(text) => match text.as_bytes()[1] {
                b'+' => "(.*)".to_owned(),
                b'#' => "((?:#.*)?)".to_owned(),
                b'.' => r"((?:\.[^/?#]*)?)".to_owned(),
                b'/' => "((?:/[^?#]*)?)".to_owned(),
                b';' => "((?:;[^/?#]*)?)".to_owned(),
                b'?' => r"((?:\?[^#]*)?)".to_owned(),
                b'&' => "((?:&[^#]*)?)".to_owned(),
                _ => "([^/?#]*)".to_owned(),
            },
        });
        let pattern = format!(r"\A{}\z", parts.collect::<String>());
        RegexBuilder::new(&pattern)
            .dot_matches_new_line(true)
            .size_limit(LARGEST_PATTERN)
            .build()
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> ServerName {
        ServerName::new("a.b").unwrap()
    }

    #[test]
    fn a_uri_comes_back_from_what_tells_it_apart() {
        for uri in [
            "file:///a b",
            "x:",
            "http://[::1]:8/p?q=%20#ü",
            "mcpzip://a/x",
            "a%2Fb",
            "%",
            "%zz",
        ] {
            let apart = disambiguated(&server(), uri);
            let (name, rest) = own_uris::split(&apart).unwrap();
            assert_eq!(
                (name, decoded(rest).unwrap().as_str()),
                (server(), uri),
                "{apart}"
            );
            assert!(!rest.contains('/'), "{rest}");
        }
        for other in ["file:///x", "mcpzip://a b/x", "mcpzip://a"] {
            assert!(own_uris::split(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_template_with_very_many_expressions_matches_nothing() {
        let template = |count: usize| format!("x:{}", "{a}.".repeat(count));
        let uri = |count: usize| format!("x:{}", "1.".repeat(count));
        for (count, matches) in [(MOST_EXPRESSIONS, true), (MOST_EXPRESSIONS + 1, false)] {
            let template = template(count);
            assert_eq!(
                Template::new(&template).matches(&uri(count)),
                matches,
                "{count}"
            );
        }
    }

    #[test]
    fn a_template_matches_what_is_expanded_from_it() {
        for (template, uri, matches) in [
            ("file:///{path}", "file:///a.txt", true),
            ("file:///{path}", "file:///a/b", false),
            ("file:///{+path}", "file:///a/b", true),
            ("file:///{+path}", "http://a", false),
            ("x:{a}/{b}.json", "x:1/2.json", true),
            ("x:{a}/{b}.json", "x:1/2.xml", false),
            ("x:s{?q,lang}", "x:s?q=1&lang=en", true),
            ("x:s{?q,lang}", "x:s", true),
            ("x:s{?q,lang}", "x:st", false),
            ("x:{a}{#part}", "x:1#2", true),
            ("x:{/a,b}", "x:/1/2", true),
            ("x:p{.end}", "x:p.html", true),
            ("x:p{;v}", "x:p;v=1", true),
            ("x:?a=1{&b}", "x:?a=1&b=2", true),
            ("x:(.*)", "x:anything", false),
            ("x:{open", "x:{open", true),
            ("x:{}", "x:1", true),
        ] {
            assert_eq!(
                Template::new(template).matches(uri),
                matches,
                "{template} {uri}"
            );
        }
    }

    #[test]
    fn what_is_expanded_from_a_told_apart_template_stands_for_the_servers_own_uri() {
        let template = Template::new("file:///d/{name}{?q}");
        assert_eq!(
            template.disambiguated(&server()),
            "mcpzip://a.b/file%3A%2F%2F%2Fd%2F{name}{?q}"
        );
        for (name, query) in [("x", ""), ("a%20b%2Fc", "?q=1%26"), ("", "")] {
            let own = format!("file:///d/{name}{query}");
            let expanded = format!("mcpzip://a.b/file%3A%2F%2F%2Fd%2F{name}{query}");
            assert_eq!(
                template
                    .own_uri(own_uris::split(&expanded).unwrap().1)
                    .as_deref(),
                Some(own.as_str())
            );
            assert_eq!(
                template.disambiguate(&server(), &own).as_deref(),
                Some(expanded.as_str())
            );
        }
        assert_eq!(template.own_uri("other%3Ax"), None);
    }

    #[test]
    fn uris_have_in_common_what_goes_beyond_the_scheme() {
        assert_eq!(in_common("file:///a/b", "file:///a/c"), 10);
        assert_eq!(in_common("file:x", "files:x"), 0);
        assert_eq!(in_common("a:", "b:"), 0);
    }
}
