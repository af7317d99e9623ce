//! The extensions that a client declares (SEP-2133), apart from those that are capabilities of their own.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::Object;

/// The extension with interfaces of tools (MCP Apps).
pub(crate) const INTERFACES: &str = "io.modelcontextprotocol/ui";

/// The extension with calls that become tasks.
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The extensions that mcpzip handles itself.
const HANDLED: [&str; 3] = [INTERFACES, TASKS, "io.modelcontextprotocol/skills"];

/// The maximum number of extensions of one client that pass through.
const MOST: usize = 16;

/// The maximum length of an extension's name, in bytes.
const LONGEST_NAME: usize = 128;

/// The maximum size of an extension's settings, in bytes.
const LARGEST: usize = 4 * 1024;

/// The beginnings of the methods that no extension can have.
const TAKEN: [&str; 15] = [
    "completion/",
    "elicitation/",
    "initialize/",
    "logging/",
    "notifications/",
    "prompts/",
    "resources/",
    "roots/",
    "sampling/",
    "server/",
    "skills/",
    "subscriptions/",
    "tasks/",
    "tools/",
    "ui/",
];

/// The notifications of the protocol that have one name only.
const TAKEN_NOTIFICATIONS: [&str; 5] = ["cancelled", "initialized", "message", "progress", "tasks"];

/// The extensions that a client declares.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extensions {
    takes_tasks: bool,
    others: Others,
}

/// Extensions that mcpzip does not know, with their settings as JSON.
pub(crate) type Others = BTreeMap<String, String>;

impl Extensions {
    /// Reads the `capabilities` of `initialize`, or the `clientCapabilities` of a modern request.
    #[must_use]
    pub(crate) fn parse(capabilities: &RawValue) -> Self {
        Self {
            takes_tasks: declared(capabilities).any(|(name, _)| name == TASKS),
            others: others(capabilities),
        }
    }

    /// Reads the `capabilities` of `initialize`. Tasks belong to one request, so a handshake declares none.
    #[must_use]
    pub(crate) fn of_handshake(capabilities: &RawValue) -> Self {
        Self {
            takes_tasks: false,
            ..Self::parse(capabilities)
        }
    }

    /// Those of a handshake that another process has answered.
    #[must_use]
    pub(crate) fn of_others(others: Others) -> Self {
        Self {
            takes_tasks: false,
            others,
        }
    }

    /// Whether a call may become a task.
    #[must_use]
    pub(crate) fn takes_tasks(&self) -> bool {
        self.takes_tasks
    }

    /// Those that mcpzip does not know.
    #[must_use]
    pub(crate) fn others(&self) -> &Others {
        &self.others
    }
}

/// The extensions in the capabilities of a client or server that may pass through: they have the form `vendor/name`, are not
/// handled here, and do not concern one connection alone, such as those of authorization.
#[must_use]
pub(crate) fn others(capabilities: &RawValue) -> Others {
    let passing = declared(capabilities).filter(|(name, settings)| {
        let is_plain = |part: &str| !part.is_empty() && is_plain(part);
        let Some((vendor, own)) = name.split_once('/') else {
            return false;
        };
        is_plain(vendor)
            && is_plain(own)
            && vendor != "mcpzip"
            && !(vendor == "io.modelcontextprotocol" && own.contains("auth"))
            && !HANDLED.contains(&name.as_str())
            && name.len() <= LONGEST_NAME
            && settings.len() <= LARGEST
    });
    passing.take(MOST).collect()
}

/// Whether a name has only the characters that names of extensions and methods have.
fn is_plain(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte))
}

/// Whether a method may be one of an extension.
#[must_use]
pub(crate) fn may_be(method: &str) -> bool {
    is_plain(method) && method.contains('/') && !TAKEN.iter().any(|taken| method.starts_with(taken))
}

/// Whether a notification may be one of an extension.
#[must_use]
pub(crate) fn may_notify(method: &str) -> bool {
    match method.strip_prefix("notifications/") {
        Some(own) if !own.contains('/') => is_plain(own) && !TAKEN_NOTIFICATIONS.contains(&own),
        own => may_be(own.unwrap_or(method)),
    }
}

fn declared(capabilities: &RawValue) -> impl Iterator<Item = (String, String)> {
    let all = Object::parse(capabilities).ok();
    let extensions = all.and_then(|all| Object::parse(all.get("extensions")?).ok());
    let extensions = extensions.unwrap_or_default();
    let known: Vec<_> = extensions
        .iter()
        .filter(|(_, settings)| settings.get().starts_with('{'))
        .map(|(name, settings)| (name.into_owned(), settings.get().to_owned()))
        .collect();
    known.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_of_the_protocol_is_none_of_an_extension() {
        for taken in [
            "tools/call",
            "tasks/get",
            "ping",
            "x y/z",
            "skills/other",
            r#"x/y","method":"tools\u002fcall"#,
            "x/y\n{}",
        ] {
            assert!(!may_be(taken), "{taken}");
        }
        assert!(may_be("x.example/files/get") && may_notify("notifications/files/changed"));
        assert!(!may_notify(r#"notifications/x","params":{}}"#));
        assert!(may_notify("notifications/files") && may_notify("x.example/changed"));
        for taken in [
            "notifications/tools/list_changed",
            "notifications/message",
            "notifications/cancelled",
        ] {
            assert!(!may_notify(taken), "{taken}");
        }
    }

    #[test]
    fn what_is_unknown_passes_if_it_has_a_name_and_a_size() {
        let large = format!(r#""com.example/large":{{"x":"{}"}}"#, "x".repeat(LARGEST));
        let many: Vec<_> = (0..40)
            .map(|n| format!(r#""z.example/{n}":{{}}"#))
            .collect();
        let json = format!(
            r#"{{"extensions":{{"com.example/a":{{"n":1e400}},"com.example/b":true,"plain":{{}},"/x":{{}},"x y/z":{{}},"mcpzip/x":{{}},{large},
            "io.modelcontextprotocol/oauth-client-credentials":{{}},"io.modelcontextprotocol/ui":{{}},"io.modelcontextprotocol/tasks":{{}},{}}}}}"#,
            many.join(",")
        );
        let raw = RawValue::from_string(json).unwrap();
        let extensions = Extensions::parse(&raw);
        assert!(extensions.takes_tasks());
        let others = extensions.others();
        assert_eq!(others["com.example/a"], r#"{"n":1e400}"#);
        assert_eq!(others.len(), MOST);
        let rest = others.keys().filter(|name| !name.starts_with("z.example/"));
        assert_eq!(rest.count(), 1);
        for nothing in [
            "{}",
            "[]",
            r#"{"extensions":[]}"#,
            r#"{"extensions":{"io.modelcontextprotocol/tasks":true}}"#,
        ] {
            let raw = RawValue::from_string(nothing.to_owned()).unwrap();
            assert!(
                !Extensions::parse(&raw).takes_tasks()
                    && Extensions::parse(&raw).others().is_empty()
            );
        }
    }
}
