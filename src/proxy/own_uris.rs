//! The URIs of tools' interfaces (MCP Apps, `ui://…`) and of skills (`skill://…`).
//!
//! A client sees `ui://X` of a server as `ui://SERVER/X`. Hosts accept no other scheme, and they store approvals by
//! URI, which must not change when a second server has the URI, too. The contents are never changed, so names and
//! URIs in them remain the server's own. A skill whose URI has another scheme is `skill://SERVER/@SCHEME/…`, which
//! keeps the last parts of its URI, because these have the skill's name.

use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use crate::mcp::object::{Object, quoted, text};
use crate::tool::ServerName;

/// The depth to which a result is searched.
const DEEPEST: usize = 16;

const INTERFACE: &str = "ui";
const SKILL: &str = "skill";

/// The beginnings of such URIs in JSON.
static IN_JSON: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| [Finder::new(b"\"ui:"), Finder::new(b"\"skill:")]);

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
    let other = || match own.split_once("://") {
        Some((scheme, rest)) => format!("{SKILL}://{server}/@{scheme}/{rest}"),
        None => own.to_owned(),
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
    let plain = percent_decode_str(uri).decode_utf8_lossy();
    let mut known = plain.chars().filter(|c| c.is_ascii_graphic());
    let scheme: String = known.by_ref().take_while(|c| *c != ':').collect();
    let mut owned = [INTERFACE, SKILL].into_iter();
    owned.any(|owned| scheme.eq_ignore_ascii_case(owned))
}

fn parts(uri: &str) -> Option<(&'static str, &str)> {
    let (scheme, rest) = uri.split_once("://")?;
    let mut known = [INTERFACE, SKILL].into_iter();
    let scheme = known.find(|known| scheme.eq_ignore_ascii_case(known))?;
    Some((scheme, rest))
}

/// Whether a member of this name has the URI of a resource.
pub(super) fn has_uri(member: &str) -> bool {
    matches!(
        member,
        "uri" | "resourceUri" | "ui/resourceUri" | "openai/outputTemplate"
    )
}

/// `raw`, a definition or result of `server`, with the URIs of interfaces and skills as clients see them; `None` if it has none.
/// Structured content and front matter are data of the server, and stay as they are.
pub(super) fn for_clients(server: &ServerName, raw: &RawValue) -> Option<String> {
    let has_any = |json: &str| {
        let mut known = IN_JSON.iter();
        known.any(|known| known.find(json.as_bytes()).is_some())
    };
    renamed(raw, DEEPEST, &has_any, &|own| with_server(server, own))
}

/// The entry of a skill of `server` as clients see it.
pub(super) fn skill_for_clients(server: &ServerName, entry: &RawValue) -> String {
    let new = |own: &str| Some(of_skill(server, own));
    renamed(entry, DEEPEST, &|_| true, &new).unwrap_or_else(|| entry.get().to_owned())
}

/// A result of `server` about its skills, with their URIs as clients see them also where they have another scheme. Those of the schemes
/// that each result may have are such URIs already.
pub(super) fn of_skills(server: &ServerName, result: Bytes) -> Bytes {
    let new = |own: &str| (!is_owned(own)).then(|| of_skill(server, own));
    let raw: Option<&RawValue> = serde_json::from_slice(&result).ok();
    let renamed = raw.and_then(|raw| renamed(raw, DEEPEST, &|_| true, &new));
    renamed.map_or(result, Bytes::from)
}

fn renamed(
    raw: &RawValue,
    depth: usize,
    may_have: &dyn Fn(&str) -> bool,
    new: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let json = raw.get();
    if depth == 0 || !json.starts_with(['[', '{']) || !may_have(json) {
        return None;
    }
    let mut is_changed = false;
    let mut keep = |raw: &RawValue, new: Option<String>| {
        is_changed |= new.is_some();
        new.unwrap_or_else(|| raw.get().to_owned())
    };
    let joined = if json.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
        let items = items
            .into_iter()
            .map(|item| keep(item, renamed(item, depth - 1, may_have, new)));
        format!("[{}]", items.collect::<Vec<_>>().join(","))
    } else {
        let object = Object::parse(raw).ok()?;
        let members = object.members().iter().zip(object.iter());
        let members = members.map(|((key, value), (name, _))| {
            let now = match name.as_ref() {
                "structuredContent" | "frontmatter" => None,
                name if has_uri(name) => text(value)
                    .and_then(|own| new(&own))
                    .map(|uri| quoted(&uri)),
                _ => renamed(value, depth - 1, may_have, new),
            };
            format!("{key}:{}", keep(value, now))
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    };
    is_changed.then_some(joined)
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
                r#"{"_meta":{"ui":{"resourceUri":"ui://a.b/x"},"ui/resourceUri":"ui://a.b/x","openai/outputTemplate":"ui://a.b/y"},"x":1e400}"#,
            ),
        );
        check(
            r#"{"content":[{"type":"text","text":"{\"uri\":\"ui://x\"}"},{"type":"resource","resource":{"uri":"ui://x","text":"<a href=\"ui://x\">"}}],"structuredContent":{"uri":"ui://x"}}"#,
            Some(
                r#"{"content":[{"type":"text","text":"{\"uri\":\"ui://x\"}"},{"type":"resource","resource":{"uri":"ui://a.b/x","text":"<a href=\"ui://x\">"}}],"structuredContent":{"uri":"ui://x"}}"#,
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
