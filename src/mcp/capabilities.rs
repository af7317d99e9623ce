//! The capabilities that clients and servers declare to each other.

use std::fmt;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::extensions::{INTERFACES, Others, others};
use super::object::{Object, quoted, text};

/// The capabilities that a client declares to servers (specification, `ClientCapabilities`), limited to those that
/// are relayed.
///
/// A closed set of flags: clients with equal capabilities compare equal, and a client cannot add unknown kinds.
/// `Display` prints the JSON object that is declared to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClientCapabilities(u8);

impl ClientCapabilities {
    /// No capabilities.
    pub(crate) const NONE: Self = Self(0);
    /// Those of a client that can be asked anything.
    pub(crate) const QUESTIONS: Self =
        Self(Self::FORM | Self::URL | Self::SAMPLING | Self::SAMPLING_TOOLS | Self::ROOTS);
    const FORM: u8 = 1;
    const URL: u8 = 2;
    const SAMPLING: u8 = 4;
    const SAMPLING_TOOLS: u8 = 8;
    const SAMPLING_CONTEXT: u8 = 16;
    const ROOTS: u8 = 32;
    const ROOTS_CHANGE: u8 = 64;
    const INTERFACES: u8 = 128;

    /// Reads the `capabilities` of `initialize`, or the `clientCapabilities` of a modern request.
    #[must_use]
    pub(crate) fn parse(raw: &RawValue) -> Self {
        let all = Object::parse(raw).unwrap_or_default();
        let member =
            |object: &Object<'_>, key: &str| object.get(key).is_some_and(|raw| raw.get() != "null");
        let parts = |key: &str| all.get(key).and_then(|raw| Object::parse(raw).ok());
        let mut flags = 0;
        let mut add = |is_there: bool, flag: u8| flags |= if is_there { flag } else { 0 };
        if let Some(elicitation) = parts("elicitation") {
            // An empty object means forms only (2025-11-25, client/elicitation).
            add(
                member(&elicitation, "form") || !member(&elicitation, "url"),
                Self::FORM,
            );
            add(member(&elicitation, "url"), Self::URL);
        }
        if let Some(sampling) = parts("sampling") {
            add(true, Self::SAMPLING);
            add(member(&sampling, "tools"), Self::SAMPLING_TOOLS);
            add(member(&sampling, "context"), Self::SAMPLING_CONTEXT);
        }
        if let Some(roots) = parts("roots") {
            add(true, Self::ROOTS);
            add(
                roots
                    .get("listChanged")
                    .is_some_and(|raw| raw.get() == "true"),
                Self::ROOTS_CHANGE,
            );
        }
        let extension = parts("extensions").and_then(|all| all.get(INTERFACES));
        let shows = |raw| {
            let types = Object::parse(raw).ok()?.get("mimeTypes")?;
            let types: Vec<&RawValue> = serde_json::from_str(types.get()).ok()?;
            let mut types = types.into_iter().filter_map(text);
            types.any(|one| is_interface_type(&one)).then_some(())
        };
        add(extension.and_then(shows).is_some(), Self::INTERFACES);
        Self(flags)
    }

    /// The capabilities as a number, which [`Self::of_bits`] reads.
    #[must_use]
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// The capabilities in a number of [`Self::bits`].
    #[must_use]
    pub(crate) fn of_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Whether servers can ask the client nothing.
    #[must_use]
    pub(crate) fn answers_nothing(self) -> bool {
        self == self.without_questions()
    }

    /// The capabilities of a client that cannot be asked.
    #[must_use]
    pub(crate) fn without_questions(self) -> Self {
        Self(self.0 & Self::INTERFACES)
    }

    /// Whether the client shows interfaces of tools (MCP Apps).
    #[must_use]
    pub(crate) fn shows_interfaces(self) -> bool {
        self.has(Self::INTERFACES)
    }

    /// Whether a server's request with this method may be sent to the client.
    #[must_use]
    pub(crate) fn allow(self, method: &str) -> bool {
        self.has(match method {
            "elicitation/create" => Self::FORM | Self::URL,
            "sampling/createMessage" => Self::SAMPLING,
            "roots/list" => Self::ROOTS,
            _ => return false,
        })
    }

    /// Whether a server's question may be put to the client: it has declared the method, and this kind of it.
    #[must_use]
    pub(crate) fn permit(self, method: &str, params: Option<&RawValue>) -> bool {
        let params = params.and_then(|raw| Object::parse(raw).ok());
        let params = params.unwrap_or_default();
        let has_kind = match method {
            "elicitation/create" => {
                let mode = params.get("mode");
                match mode.map(|raw| text(raw).unwrap_or_default()).as_deref() {
                    // Before 2025-11-25 there were forms only.
                    None | Some("form") => self.has(Self::FORM),
                    Some("url") => self.has(Self::URL),
                    Some(_) => false,
                }
            }
            "sampling/createMessage" => {
                let context = params.get("includeContext");
                let context = context.map(|raw| text(raw).unwrap_or_default());
                (self.has(Self::SAMPLING_TOOLS) || !has_tools(&params))
                    && (self.has(Self::SAMPLING_CONTEXT)
                        || matches!(context.as_deref(), None | Some("none")))
            }
            _ => true,
        };
        has_kind && self.allow(method)
    }

    /// The capabilities among these that `declared` lacks.
    #[must_use]
    pub(crate) fn lacking_in(self, declared: Self) -> Self {
        let lacking = self.0 & !declared.0;
        let of_sampling = match lacking & (Self::SAMPLING_TOOLS | Self::SAMPLING_CONTEXT) {
            0 => 0,
            _ => Self::SAMPLING,
        };
        Self(lacking | of_sampling)
    }

    /// Whether the client supports elicitation by form.
    #[must_use]
    pub(crate) fn elicits_forms(self) -> bool {
        self.has(Self::FORM)
    }

    /// Whether the client supports elicitation by URL.
    #[must_use]
    pub(crate) fn elicits_urls(self) -> bool {
        self.has(Self::URL)
    }

    fn has(self, any: u8) -> bool {
        self.0 & any != 0
    }
}

/// Whether a request for sampling is about tools.
fn has_tools(params: &Object<'_>) -> bool {
    let list = |raw: Option<&'_ RawValue>| -> Vec<Box<RawValue>> {
        let json = raw.map_or("[]", RawValue::get);
        match json.starts_with('[') {
            true => serde_json::from_str(json).unwrap_or_default(),
            false => serde_json::from_str(&format!("[{json}]")).unwrap_or_default(),
        }
    };
    let is_of_tools = |block: &RawValue| {
        let kind = Object::parse(block).ok().and_then(|one| one.text("type"));
        matches!(kind.as_deref(), Some("tool_use" | "tool_result"))
    };
    let has_blocks = |message: &RawValue| {
        let message = Object::parse(message).unwrap_or_default();
        let content = list(message.get("content"));
        content.iter().any(|block| is_of_tools(block))
    };
    let messages = list(params.get("messages"));
    params.get("tools").is_some()
        || params.get("toolChoice").is_some()
        || messages.iter().any(|message| has_blocks(message))
}

/// The media type of an interface, the one that the extension defines.
const INTERFACE_TYPE: &str = "text/html;profile=mcp-app";

/// Whether a media type is that of interfaces; letter case and spaces make no difference.
fn is_interface_type(written: &str) -> bool {
    let plain: String = written.chars().filter(|c| !c.is_whitespace()).collect();
    plain.eq_ignore_ascii_case(INTERFACE_TYPE)
}

impl fmt::Display for ClientCapabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_extensions(Vec::new()))
    }
}

impl ClientCapabilities {
    /// The JSON object that is declared to a server, with more `extensions`: names and settings.
    #[must_use]
    pub(crate) fn with_extensions(self, mut extensions: Vec<(String, String)>) -> String {
        let mut members = Vec::new();
        let elicitation = match (self.has(Self::FORM), self.has(Self::URL)) {
            (false, false) => None,
            // Older servers do not know modes.
            (true, false) => Some("{}"),
            (false, true) => Some(r#"{"url":{}}"#),
            (true, true) => Some(r#"{"form":{},"url":{}}"#),
        };
        members.extend(elicitation.map(|modes| format!(r#""elicitation":{modes}"#)));
        if self.has(Self::SAMPLING) {
            let parts = [
                (Self::SAMPLING_TOOLS, r#""tools":{}"#),
                (Self::SAMPLING_CONTEXT, r#""context":{}"#),
            ];
            let parts: Vec<_> = parts
                .into_iter()
                .filter(|(flag, _)| self.has(*flag))
                .map(|(_, part)| part)
                .collect();
            members.push(format!(r#""sampling":{{{}}}"#, parts.join(",")));
        }
        if self.has(Self::ROOTS) {
            let changes = if self.has(Self::ROOTS_CHANGE) {
                r#""listChanged":true"#
            } else {
                ""
            };
            members.push(format!(r#""roots":{{{changes}}}"#));
        }
        if self.has(Self::INTERFACES) {
            let types = format!(r#"{{"mimeTypes":["{INTERFACE_TYPE}"]}}"#);
            extensions.push((INTERFACES.to_owned(), types));
        }
        let extensions: Vec<String> = extensions
            .into_iter()
            .map(|(name, settings)| format!("{}:{settings}", quoted(&name)))
            .collect();
        if !extensions.is_empty() {
            members.push(format!(r#""extensions":{{{}}}"#, extensions.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }
}

/// The capabilities that a server declares (specification, `ServerCapabilities`), in its own bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCapabilities(Arc<str>);

impl ServerCapabilities {
    /// Takes the `capabilities` of a response to `initialize` or `server/discover`.
    #[must_use]
    pub fn new(raw: &RawValue) -> Self {
        Self(raw.get().into())
    }

    /// The JSON as the server wrote it.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Whether the server declares `feature`: `tools`, `prompts`, `resources`, `completions`, `logging`.
    #[must_use]
    pub fn has(&self, feature: &str) -> bool {
        self.member(feature).is_some()
    }

    /// Whether the server declares an extension.
    #[must_use]
    pub(crate) fn has_extension(&self, name: &str) -> bool {
        self.extension(name).is_some()
    }

    /// Whether `part` of the settings of an extension is `true`.
    #[must_use]
    pub(crate) fn has_part_of_extension(&self, name: &str, part: &str) -> bool {
        let part = self.extension(name).and_then(|settings| settings.get(part));
        part.is_some_and(|raw| raw.get() == "true")
    }

    fn extension(&self, name: &str) -> Option<Object<'_>> {
        let all = Object::parse(self.member("extensions")?).ok()?;
        Object::parse(all.get(name)?).ok()
    }

    /// The extensions that may pass through, with their settings.
    #[must_use]
    pub(crate) fn other_extensions(&self) -> Others {
        let raw: Option<&RawValue> = serde_json::from_str(&self.0).ok();
        raw.map(others).unwrap_or_default()
    }

    /// Whether `part` of `feature` is `true`, for example `subscribe` of `resources`.
    #[must_use]
    pub fn has_part(&self, feature: &str, part: &str) -> bool {
        let feature = self.member(feature);
        let parts = feature.and_then(|raw| Object::parse(raw).ok());
        parts.is_some_and(|parts| parts.get(part).is_some_and(|raw| raw.get() == "true"))
    }

    fn member(&self, feature: &str) -> Option<&RawValue> {
        let raw: &RawValue = serde_json::from_str(&self.0).ok()?;
        Object::parse(raw)
            .ok()?
            .get(feature)
            .filter(|raw| raw.get() != "null")
    }
}

impl Default for ServerCapabilities {
    fn default() -> Self {
        Self("{}".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_is_what_was_read_and_nothing_else() {
        #[track_caller]
        fn check(read: &str, declared: &str) {
            let raw = RawValue::from_string(read.to_owned()).unwrap();
            assert_eq!(ClientCapabilities::parse(&raw).to_string(), declared);
        }
        check("{}", "{}");
        check("[]", "{}");
        check(
            r#"{"experimental":{},"extensions":{"x/tasks":{}},"elicitation":null}"#,
            "{}",
        );
        check(r#"{"elicitation":{}}"#, r#"{"elicitation":{}}"#);
        check(
            r#"{"elicitation":{"url":{}}}"#,
            r#"{"elicitation":{"url":{}}}"#,
        );
        check(
            r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}"#,
            r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}"#,
        );
        let ui = r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;
        check(ui, ui);
        check(
            r#"{"extensions":{"io.modelcontextprotocol/ui":true}}"#,
            "{}",
        );
        check(
            r#"{"roots":{"listChanged":true},"sampling":{}}"#,
            r#"{"sampling":{},"roots":{"listChanged":true}}"#,
        );
    }

    #[test]
    fn only_declared_methods_are_allowed() {
        let raw = RawValue::from_string(r#"{"elicitation":{},"roots":{}}"#.to_owned()).unwrap();
        let capabilities = ClientCapabilities::parse(&raw);
        for (method, allowed) in [
            ("elicitation/create", true),
            ("roots/list", true),
            ("sampling/createMessage", false),
            ("ping", false),
        ] {
            assert_eq!(capabilities.allow(method), allowed, "{method}");
        }
    }

    #[test]
    fn a_kind_of_question_is_for_clients_that_have_declared_it() {
        let check = |declared: &str, method: &str, params: &str, expected: bool| {
            let declared = RawValue::from_string(declared.to_owned()).unwrap();
            let params = RawValue::from_string(params.to_owned()).unwrap();
            let permitted = ClientCapabilities::parse(&declared).permit(method, Some(&params));
            assert_eq!(permitted, expected, "{declared}: {method} {params}");
        };
        for (mode, by_form, by_url) in [
            ("{}", true, false),
            (r#"{"mode":"form"}"#, true, false),
            (r#"{"mode":"\u0075rl"}"#, false, true),
            (r#"{"mode":"other"}"#, false, false),
            (r#"{"mode":null}"#, false, false),
            (r#"{"mode":"form","mode":"url"}"#, false, true),
        ] {
            check(r#"{"elicitation":{}}"#, "elicitation/create", mode, by_form);
            let url = r#"{"elicitation":{"url":{}}}"#;
            check(url, "elicitation/create", mode, by_url);
            check("{}", "elicitation/create", mode, false);
        }
        for (params, is_plain) in [
            (
                r#"{"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}"#,
                true,
            ),
            (r#"{"messages":[],"includeContext":"none"}"#, true),
            (r#"{"messages":[],"tools":[]}"#, false),
            (r#"{"messages":[],"toolChoice":{"mode":"auto"}}"#, false),
            (
                r#"{"messages":[{"role":"user","content":{"type":"tool_result"}}]}"#,
                false,
            ),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"text"},{"type":"tool_use","n":1e400}]}]}"#,
                false,
            ),
        ] {
            check(
                r#"{"sampling":{}}"#,
                "sampling/createMessage",
                params,
                is_plain,
            );
            let tools = r#"{"sampling":{"tools":{}}}"#;
            check(tools, "sampling/createMessage", params, true);
        }
        for (declared, is_permitted) in [
            (r#"{"sampling":{}}"#, false),
            (r#"{"sampling":{"context":{}}}"#, true),
        ] {
            let params = r#"{"messages":[],"includeContext":"allServers"}"#;
            check(declared, "sampling/createMessage", params, is_permitted);
        }
        check(r#"{"roots":{}}"#, "roots/list", "{}", true);
        check(r#"{"roots":{}}"#, "tools/call", "{}", false);
    }

    #[test]
    fn what_a_server_offers_is_looked_up_in_its_own_words() {
        let raw = RawValue::from_string(
            r#"{"resources":{"subscribe":true,"listChanged":false},"prompts":{},"tools":null}"#
                .to_owned(),
        )
        .unwrap();
        let capabilities = ServerCapabilities::new(&raw);
        assert!(capabilities.has("prompts") && capabilities.has("resources"));
        assert!(!capabilities.has("tools") && !capabilities.has("logging"));
        assert!(capabilities.has_part("resources", "subscribe"));
        assert!(
            !capabilities.has_part("resources", "listChanged")
                && !capabilities.has_part("prompts", "listChanged")
        );
    }
}
