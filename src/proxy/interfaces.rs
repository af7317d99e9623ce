//! The URIs of tools' interfaces (MCP Apps, `ui://…`).
//!
//! A client sees `ui://X` of a server as `ui://SERVER/X`: hosts accept no other scheme, and the approvals that they keep by URI
//! must not change when a second server has the same one. The interface itself is never changed, so names and URIs in it
//! remain the server's own.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::value::RawValue;

use crate::mcp::object::{Object, quoted, text};
use crate::tool::ServerName;

/// The depth to which a result is searched.
const DEEPEST: usize = 16;

const SCHEME: &str = "ui";

static SCHEME_IN_JSON: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"ui:"));

/// The URI of an interface of `server` as clients see it; `None` if `own` is the URI of something else.
pub(super) fn with_server(server: &ServerName, own: &str) -> Option<String> {
    let rest = rest_of(own)?;
    Some(format!("{SCHEME}://{server}/{rest}"))
}

/// The server and its own URI in a URI that clients see.
pub(super) fn without_server(uri: &str) -> Option<(ServerName, String)> {
    let (server, rest) = rest_of(uri)?.split_once('/')?;
    Some((ServerName::new(server).ok()?, format!("{SCHEME}://{rest}")))
}

fn rest_of(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_once("://")?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(rest)
}

/// Whether a member of this name has the URI of a resource.
pub(super) fn has_uri(member: &str) -> bool {
    matches!(
        member,
        "uri" | "resourceUri" | "ui/resourceUri" | "openai/outputTemplate"
    )
}

/// `raw`, a definition or result of `server`, with the URIs of interfaces as clients see them; `None` if it has none. Structured
/// content is data of the server, and stays as it is.
pub(super) fn for_clients(server: &ServerName, raw: &RawValue) -> Option<String> {
    renamed(server, raw, DEEPEST)
}

fn renamed(server: &ServerName, raw: &RawValue, depth: usize) -> Option<String> {
    let json = raw.get();
    if depth == 0 || !json.starts_with(['[', '{']) || SCHEME_IN_JSON.find(json.as_bytes()).is_none()
    {
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
            .map(|item| keep(item, renamed(server, item, depth - 1)));
        format!("[{}]", items.collect::<Vec<_>>().join(","))
    } else {
        let object = Object::parse(raw).ok()?;
        let members = object.members().iter().zip(object.iter());
        let members = members.map(|((key, value), (name, _))| {
            let new = match name.as_ref() {
                "structuredContent" => None,
                name if has_uri(name) => text(value)
                    .and_then(|own| with_server(server, &own))
                    .map(|uri| quoted(&uri)),
                _ => renamed(server, value, depth - 1),
            };
            format!("{key}:{}", keep(value, new))
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
        for own in ["ui://x", "ui://x/y?z#1", "ui:///x", "ui://{id}/x"] {
            let seen = with_server(&server(), own).unwrap();
            assert_eq!(without_server(&seen), Some((server(), own.to_owned())));
        }
        for other in ["ui:x", "uix://x", "file:///x", "x"] {
            assert_eq!(with_server(&server(), other), None, "{other}");
        }
        assert_eq!(without_server("ui://x"), None);
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
    }
}
