//! The URIs of mcpzip: of tools' interfaces (MCP Apps, `ui://…`), of skills (`skill://…`), and `mcpzip://SERVER/…` for all else that
//! has to say whose it is.
//!
//! *Invariant*: a URI that names a server is that server's. So one that stands in a text of a server and is, or may be taken for, one of
//! these is replaced by one that names this server ([`seen`]), however it is spelled and wherever the protocol has URIs
//! ([`for_clients`]). A client that reads what a server named is never led to another one.
//!
//! A client sees `ui://X` of a server as `ui://SERVER/X`. Hosts accept no other scheme, and they store approvals by
//! URI, which must not change when a second server has the URI, too. The contents are never changed, so names and
//! URIs in them remain the server's own. A skill whose URI has another scheme is `skill://SERVER/@SCHEME/…`, which
//! keeps the last parts of its URI, because these have the skill's name.

use std::borrow::Cow;
use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memchr2;
use memchr::memmem::Finder;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::value::RawValue;

use crate::mcp::object::{quoted, text};
use crate::tool::ServerName;

/// The schemes of our URIs.
const INTERFACE: &str = "ui";
const SKILL: &str = "skill";
const MCPZIP: &str = "mcpzip";

/// The ASCII characters that are encoded; all non-ASCII characters are.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// How often a scheme is decoded; a reader that decodes more often than that would read no other URI correctly.
const MOST_DECODINGS: usize = 4;

/// The endings of the names of all members that contain the URI of a resource, and the beginning of a letter that is written by its
/// number, which a name may have as well.
static MARKS: LazyLock<[Finder<'static>; 4]> = LazyLock::new(|| {
    [
        Finder::new(b"uri\""),
        Finder::new(b"Uri\""),
        Finder::new(b"outputTemplate\""),
        Finder::new(b"\\u"),
    ]
});

/// The URI that clients see for one in a text of `server`; `None` if they see that one itself, because it has none of our schemes in any
/// spelling.
pub(super) fn seen(server: &ServerName, own: &str) -> Option<String> {
    let canonical = with_server(server, own);
    canonical.or_else(|| known_scheme(own).map(|_| told_apart(server, own)))
}

/// A URI of `server` of any kind as one that names its server.
pub(super) fn told_apart(server: &ServerName, own: &str) -> String {
    format!("{MCPZIP}://{server}/{}", encoded(own))
}

/// The server and the encoded rest of a URI made by [`told_apart`].
pub(super) fn split(uri: &str) -> Option<(ServerName, &str)> {
    let rest = uri.strip_prefix(MCPZIP)?.strip_prefix("://")?;
    let (server, rest) = rest.split_once('/')?;
    Some((ServerName::new(server).ok()?, rest))
}

/// Percent-encodes everything except the unreserved characters of RFC 3986.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The URI of an interface or skill of `server` as clients see it; `None` if `own` is the URI of something else.
pub(super) fn with_server(server: &ServerName, own: &str) -> Option<String> {
    let (scheme, rest) = parts(own)?;
    match rest.starts_with('@') {
        true => Some(format!("{scheme}://{server}/@{scheme}/{rest}")),
        false => Some(format!("{scheme}://{server}/{rest}")),
    }
}

/// The server and its own URI in a URI that clients see.
pub(super) fn without_server(uri: &str) -> Option<(ServerName, String)> {
    let (scheme, rest) = parts(uri)?;
    let (server, rest) = rest.split_once('/')?;
    let marked = rest.strip_prefix('@').and_then(|rest| rest.split_once('/'));
    let (scheme, rest) = marked.unwrap_or((scheme, rest));
    Some((ServerName::new(server).ok()?, format!("{scheme}://{rest}")))
}

/// The URI of a file of a skill of `server` as clients see it.
pub(super) fn of_skill(server: &ServerName, own: &str) -> String {
    let is_plain = |scheme: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        !scheme.is_empty() && scheme.bytes().all(is_plain)
    };
    let other = || match own.split_once("://") {
        Some((scheme, rest)) if is_plain(scheme) => {
            format!("{SKILL}://{server}/@{scheme}/{rest}")
        }
        _ => told_apart(server, own),
    };
    with_server(server, own).unwrap_or_else(other)
}

/// Whether a path or URI has a part that leads elsewhere, `.` or `..`, also if it is percent-encoded, or a character that readers of
/// URIs leave out. Servers may resolve such a URI to another one.
pub(super) fn leads_elsewhere(path: &str) -> bool {
    let plain = percent_decode_str(path).decode_utf8_lossy();
    plain.chars().any(char::is_control)
        || plain
            .split(['/', '\\'])
            .any(|part| matches!(part, "." | ".."))
}

/// Whether a URI has the scheme of interfaces or skills, in any spelling that a reader of URIs may accept.
pub(super) fn is_owned(uri: &str) -> bool {
    matches!(known_scheme(uri), Some(INTERFACE | SKILL))
}

/// Whether a URI has our own scheme, likewise. No server is asked for such a URI.
pub(super) fn is_ours(uri: &str) -> bool {
    known_scheme(uri) == Some(MCPZIP)
}

/// The scheme among ours that a reader of URIs may see in `uri`. Readers leave out spaces, control characters and marks, take both
/// letter cases, and may decode before they look.
fn known_scheme(uri: &str) -> Option<&'static str> {
    let mut uri = Cow::Borrowed(uri);
    for _ in 0..MOST_DECODINGS {
        if let Some((scheme, _)) = uri.split_once(':') {
            let scheme: String = scheme.chars().filter(char::is_ascii_graphic).collect();
            let mut ours = [INTERFACE, SKILL, MCPZIP].into_iter();
            if let Some(scheme) = ours.find(|ours| scheme.eq_ignore_ascii_case(ours)) {
                return Some(scheme);
            }
        }
        let decoded = percent_decode_str(&uri).decode_utf8_lossy().into_owned();
        if decoded == *uri {
            break;
        }
        uri = Cow::Owned(decoded);
    }
    None
}

fn parts(uri: &str) -> Option<(&'static str, &str)> {
    let (scheme, rest) = uri.split_once("://")?;
    let mut known = [INTERFACE, SKILL].into_iter();
    let scheme = known.find(|known| scheme.eq_ignore_ascii_case(known))?;
    Some((scheme, rest))
}

/// `raw`, a definition or result of `server`, with the URIs that clients see; `None` if these are the server's own.
pub(super) fn for_clients(server: &ServerName, raw: &RawValue) -> Option<String> {
    replaced(raw, &mut |own| seen(server, own))
}

/// The entry of a skill of `server` as clients see it.
pub(super) fn skill_for_clients(server: &ServerName, entry: &RawValue) -> String {
    let new = replaced(entry, &mut |own| Some(of_skill(server, own)));
    new.unwrap_or_else(|| entry.get().to_owned())
}

/// A result of `server` about its skills, with their URIs as clients see them also where they have another scheme. Those of the schemes
/// that each result may have are such URIs already.
pub(super) fn of_skills(server: &ServerName, result: Bytes) -> Bytes {
    let raw: Option<&RawValue> = serde_json::from_slice(&result).ok();
    let mut new = |own: &str| {
        let is_seen = known_scheme(own).is_some();
        (!is_seen).then(|| of_skill(server, own))
    };
    let renamed = raw.and_then(|raw| replaced(raw, &mut new));
    renamed.map_or(result, Bytes::from)
}

/// Whether a text may have a member with the URI of a resource. It may be large, and few have one.
pub(super) fn may_have_uri(json: &[u8]) -> bool {
    MARKS.iter().any(|mark| mark.find(json).is_some())
}

/// `raw` with each URI of a resource replaced for which `new` has another one; `None` if nothing is. All other bytes stay. Structured
/// content and front matter are data of the server, in which nothing is a URI of the protocol.
pub(super) fn replaced(
    raw: &RawValue,
    new: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<String> {
    let json = raw.get();
    if !may_have_uri(json.as_bytes()) {
        return None;
    }
    let bytes = json.as_bytes();
    let (mut changed, mut copied, mut at) = (String::new(), 0, 0);
    let mut open: Vec<Level> = Vec::new();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = end_of_text(bytes, at);
                let written = &json[at..end];
                match open.last_mut() {
                    Some(level) if level.awaits_name => {
                        level.awaits_name = false;
                        level.member = Member::of(&plain(written));
                    }
                    Some(level) if level.member == Member::Uri && !level.is_data => {
                        if let Some(uri) = new(&plain(written)) {
                            changed.push_str(&json[copied..at]);
                            changed.push_str(&quoted(&uri));
                            copied = end;
                        }
                    }
                    _ => {}
                }
                at = end;
                continue;
            }
            b'{' | b'[' => {
                let is_data = open
                    .last()
                    .is_some_and(|outer| outer.is_data || outer.member == Member::Data);
                open.push(Level {
                    is_object: *byte == b'{',
                    awaits_name: *byte == b'{',
                    member: Member::Other,
                    is_data,
                });
            }
            b'}' | b']' => drop(open.pop()),
            b',' => {
                if let Some(level) = open.last_mut() {
                    level.awaits_name = level.is_object;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if copied == 0 {
        return None;
    }
    changed.push_str(&json[copied..]);
    Some(changed)
}

/// An object or array of a text that is being read.
struct Level {
    is_object: bool,
    /// Whether the next text is the name of a member.
    awaits_name: bool,
    /// The current member of an object.
    member: Member,
    /// Whether it is data of the server, or in such data.
    is_data: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    Uri,
    Data,
    Other,
}

impl Member {
    fn of(name: &str) -> Self {
        match name {
            "uri" | "resourceUri" | "ui/resourceUri" | "openai/outputTemplate" => Self::Uri,
            "structuredContent" | "frontmatter" => Self::Data,
            _ => Self::Other,
        }
    }
}

/// The end of the text that begins at `start`, with its quotes.
fn end_of_text(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr2(b'"', b'\\', json.get(at..).unwrap_or_default()) {
        at += found;
        if json[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    json.len()
}

/// The text of a JSON string.
fn plain(written: &str) -> Cow<'_, str> {
    if !written.contains('\\') {
        return Cow::Borrowed(written.trim_matches('"'));
    }
    let raw: Option<&RawValue> = serde_json::from_str(written).ok();
    Cow::Owned(raw.and_then(text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> ServerName {
        ServerName::new("a.b").unwrap()
    }

    #[test]
    fn a_uri_comes_back_from_what_clients_see() {
        for own in [
            "ui://x",
            "ui://x/y?z#1",
            "ui:///x",
            "ui://{id}/x",
            "skill://x/SKILL.md",
            "skill://@x/y",
        ] {
            let seen = with_server(&server(), own).unwrap();
            assert_eq!(without_server(&seen), Some((server(), own.to_owned())));
        }
        for other in ["ui:x", "uix://x", "file:///x", "x"] {
            assert_eq!(with_server(&server(), other), None, "{other}");
        }
        assert_eq!(without_server("ui://x"), None);
        let own = "github://o/r/refunds/SKILL.md";
        let seen = of_skill(&server(), own);
        assert_eq!(seen, "skill://a.b/@github/o/r/refunds/SKILL.md");
        assert_eq!(without_server(&seen), Some((server(), own.to_owned())));
    }

    #[test]
    fn what_may_be_taken_for_a_uri_of_ours_names_its_server() {
        for own in [
            "UI://b/x",
            " ui://b/x",
            "u%69://b/x",
            "%2575i://b/x",
            "u\ti:b/x",
            "\u{feff}skill://b/x",
            "mcpzip://b/x",
            "MCPZIP:x",
            "ui%3a//b/x",
            "ui:\\\\b",
        ] {
            let seen = seen(&server(), own).unwrap();
            let beginnings = ["ui", "mcpzip"].map(|scheme| format!("{scheme}://a.b/"));
            assert!(beginnings.iter().any(|one| seen.starts_with(one)), "{seen}");
            let back = split(&seen).map(|(server, rest)| {
                (
                    server,
                    percent_decode_str(rest).decode_utf8_lossy().into_owned(),
                )
            });
            let back = back.or_else(|| without_server(&seen)).unwrap();
            assert_eq!(back.0, server());
        }
        for other in [
            "file:///ui:",
            "x",
            "ui",
            "uix:y",
            "build:ui://x",
            "data:,ui:",
            "%zz",
        ] {
            assert_eq!(seen(&server(), other), None, "{other}");
        }
    }

    #[test]
    fn parts_that_lead_elsewhere_are_found_in_each_spelling() {
        for path in ["a/../b", "a/%2e%2E/b", ".", "a\\..\\b", "a/.\t./b", "a%0a"] {
            assert!(leads_elsewhere(path), "{path}");
        }
        for path in ["a/b.md", "skill://a.b/..c/d", "a%20b", "%252e%252e/x"] {
            assert!(!leads_elsewhere(path), "{path}");
        }
    }

    #[test]
    fn uris_are_renamed_where_the_protocol_has_them_and_nowhere_else() {
        #[track_caller]
        fn check(json: &str, expected: Option<&str>) {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(for_clients(&server(), raw).as_deref(), expected);
        }
        check(
            r#"{"_meta":{"ui":{"resourceUri":"ui://x"},"ui/resourceUri":"ui://x","openai/outputTemplate":"ui://y"},"x": 1e400}"#,
            Some(
                r#"{"_meta":{"ui":{"resourceUri":"ui://a.b/x"},"ui/resourceUri":"ui://a.b/x","openai/outputTemplate":"ui://a.b/y"},"x": 1e400}"#,
            ),
        );
        check(
            r#"{"content":[{"type":"text","text":"{\"uri\":\"ui://x\"}"},{"type":"resource","resource":{"uri":"ui://x","text":"<a href=\"ui://x\">"}}],"structuredContent":{"uri":"ui://x"}}"#,
            Some(
                r#"{"content":[{"type":"text","text":"{\"uri\":\"ui://x\"}"},{"type":"resource","resource":{"uri":"ui://a.b/x","text":"<a href=\"ui://x\">"}}],"structuredContent":{"uri":"ui://x"}}"#,
            ),
        );
        check(
            r#"{"ur\u0069":"\u0075i://x","uri":"file:///x","deep":[[{"uri":"mcpzip://c/x"}]],"uris":["ui://x"],"text":"uri","s\\":"}{"}"#,
            Some(
                r#"{"ur\u0069":"ui://a.b/x","uri":"file:///x","deep":[[{"uri":"mcpzip://a.b/mcpzip%3A%2F%2Fc%2Fx"}]],"uris":["ui://x"],"text":"uri","s\\":"}{"}"#,
            ),
        );
        check(r#"{"content":[{"uri":"file:///x"}],"title":"ui:"}"#, None);
        check(r#"{"structuredContent":{"uri":"ui://x"}}"#, None);
        check("7", None);
        let entry = r#"{"uri":"git://x/a/SKILL.md","frontmatter":{"uri":"skill://x"},"resources":[{"uri":"git://x/a/b.md","size":1}]}"#;
        let expected = r#"{"uri":"skill://a.b/@git/x/a/SKILL.md","frontmatter":{"uri":"skill://x"},"resources":[{"uri":"skill://a.b/@git/x/a/b.md","size":1}]}"#;
        let raw: &RawValue = serde_json::from_str(entry).unwrap();
        assert_eq!(skill_for_clients(&server(), raw), expected);
    }
}
