//! The parts of a definition that clients can read in a list of tools.
//!
//! Clients check and compile a list as a whole, so one malformed definition of one server would take every tool from them. A
//! malformed part that may be absent is left out, and so is a tool whose schema of arguments cannot be used.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use serde_json::Value;
use serde_json::value::RawValue;

use super::portable;
use crate::catalog::Tool;
use crate::mcp::Object;
use crate::mcp::object::nesting;
use crate::proxy::arguments;
use crate::tool::ToolHash;

/// The nesting above which a definition is not listed. Parsers with a limit, such as those of Python and Rust, would refuse the
/// whole list.
const DEEPEST: usize = 100;

/// A definition as it is listed.
#[derive(Debug)]
pub(crate) struct Listable<'a> {
    /// The definition, in its own bytes except for the parts that changed.
    pub(crate) json: Cow<'a, RawValue>,
    /// The parts that are left out, each with its reason.
    pub(crate) left_out: Vec<String>,
}

impl<'a> Listable<'a> {
    /// The definition of a tool as clients can read it.
    ///
    /// # Errors
    /// The reason why it cannot be listed.
    pub(crate) fn of(listed: &'a RawValue) -> Result<Self, String> {
        if nesting(listed.get()) > DEEPEST {
            return Err(format!("it is nested more than {DEEPEST} levels deep"));
        }
        let tool = Object::parse(listed).map_err(|_| "it is not an object")?;
        let mut json = Edited(Cow::Borrowed(listed));
        let mut left_out = Vec::new();
        match tool.get("inputSchema").map(object_schema) {
            None => json.set("inputSchema", r#"{"type":"object"}"#),
            Some(Ok(None)) => {}
            Some(Ok(Some(changed))) => json.set("inputSchema", &changed),
            Some(Err(reason)) => return Err(format!("its `inputSchema` {reason}")),
        }
        for (key, is_well_formed, expected) in PARTS {
            if tool.get(key).is_some_and(|value| !is_well_formed(value)) {
                json.remove(key);
                left_out.push(format!("`{key}` must be {expected}"));
            }
        }
        if let Some(annotations) = tool.get("annotations").map(Object::parse) {
            match annotations {
                Err(_) => {
                    json.remove("annotations");
                    left_out.push("`annotations` must be an object".to_owned());
                }
                Ok(annotations) => {
                    let mut kept =
                        Edited(Cow::Borrowed(tool.get("annotations").expect("it is there")));
                    for (key, is_well_formed, expected) in ANNOTATIONS {
                        if annotations
                            .get(key)
                            .is_some_and(|value| !is_well_formed(value))
                        {
                            kept.remove(key);
                            left_out.push(format!("`annotations.{key}` must be {expected}"));
                        }
                    }
                    if let Cow::Owned(kept) = kept.0 {
                        json.set("annotations", kept.get());
                    }
                }
            }
        }
        match tool.get("outputSchema").map(output_schema) {
            None | Some(Ok(None)) => {}
            Some(Ok(Some(changed))) => json.set("outputSchema", &changed),
            Some(Err(reason)) => {
                json.remove("outputSchema");
                left_out.push(format!("`outputSchema` {reason}"));
            }
        }
        let json = json.0;
        Ok(Self { json, left_out })
    }
}

/// The findings about definitions, by their hashes: schemas are compiled once, and a malformed one is in the log once.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Listables(Mutex<HashMap<ToolHash, Found>>);

#[derive(Debug, Clone)]
enum Found {
    AsItIs,
    Changed(Arc<RawValue>),
    LeftOut,
}

/// The number of definitions above which all findings are forgotten.
const MOST_KNOWN: usize = 100_000;

impl Listables {
    /// The definition `json` of a tool as clients can read it; `None` if they cannot.
    pub(super) fn of<'a>(&self, tool: &Tool, json: &'a RawValue) -> Option<Cow<'a, RawValue>> {
        // The form of an adapted tool depends on the configuration, too.
        let hash = tool.adapted().is_none().then(|| tool.entry().hash);
        let known = hash.and_then(|hash| self.0.lock().get(&hash).cloned());
        let found = known.unwrap_or_else(|| {
            let found = Found::of(tool, json);
            if let Some(hash) = hash {
                let mut all = self.0.lock();
                if all.len() >= MOST_KNOWN {
                    all.clear();
                }
                all.insert(hash, found.clone());
            }
            found
        });
        match found {
            Found::AsItIs => Some(Cow::Borrowed(json)),
            Found::Changed(changed) => Some(Cow::Owned((*changed).to_owned())),
            Found::LeftOut => None,
        }
    }
}

impl Found {
    fn of(tool: &Tool, json: &RawValue) -> Self {
        match Listable::of(json) {
            Ok(listable) => match listable.json {
                Cow::Borrowed(_) => Self::AsItIs,
                Cow::Owned(changed) => Self::Changed(changed.into()),
            },
            Err(reason) => {
                let server = tool.server().name();
                tracing::warn!(%server, tool = %tool.qualified_name(), reason, "clients could not read the list with this definition, so it is left out");
                Self::LeftOut
            }
        }
    }
}

/// A member that may be absent, whether a value of it is well-formed, and what it must be.
type Part = (&'static str, fn(&RawValue) -> bool, &'static str);

const PARTS: &[Part] = &[
    ("description", is_text, "a text"),
    ("title", is_text, "a text"),
    ("_meta", is_object, "an object"),
    ("icons", are_icons, "an array of icons"),
    (
        "execution",
        is_execution,
        "an object with a known `taskSupport`",
    ),
];

const ANNOTATIONS: &[Part] = &[
    ("title", is_text, "a text"),
    ("readOnlyHint", is_bool, "true or false"),
    ("destructiveHint", is_bool, "true or false"),
    ("idempotentHint", is_bool, "true or false"),
    ("openWorldHint", is_bool, "true or false"),
];

fn is_text(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}

fn is_bool(raw: &RawValue) -> bool {
    matches!(raw.get(), "true" | "false")
}

fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

fn are_texts(raw: &RawValue) -> bool {
    let items = serde_json::from_str::<Vec<&RawValue>>(raw.get());
    items.is_ok_and(|items| items.into_iter().all(is_text))
}

fn are_icons(raw: &RawValue) -> bool {
    let is_icon = |icon: &Object<'_>| {
        let has =
            |key, is_well_formed: fn(&RawValue) -> bool| icon.get(key).is_none_or(is_well_formed);
        let theme = icon.get("theme").map(RawValue::get);
        icon.get("src").is_some_and(is_text)
            && has("mimeType", is_text)
            && has("sizes", are_texts)
            && matches!(theme, None | Some(r#""light""# | r#""dark""#))
    };
    let icons = serde_json::from_str::<Vec<Object<'_>>>(raw.get());
    icons.is_ok_and(|icons| icons.iter().all(is_icon))
}

fn is_execution(raw: &RawValue) -> bool {
    Object::parse(raw).is_ok_and(|execution| {
        let support = execution
            .get("taskSupport")
            .map(|_| execution.text("taskSupport").unwrap_or_default());
        matches!(
            support.as_deref(),
            None | Some("required" | "optional" | "forbidden")
        )
    })
}

/// A schema of an object as clients read it: its `type` is "object", and those of its properties are objects, too. `None` if it
/// is that already.
///
/// # Errors
/// The fault that has no other form.
fn object_schema(raw: &RawValue) -> Result<Option<String>, &'static str> {
    let schema = Object::parse(raw).map_err(|_| "is not an object")?;
    let mut json = Edited(Cow::Borrowed(raw));
    match schema.get("type") {
        None => json.set("type", r#""object""#),
        Some(_) if schema.text("type").as_deref() == Some("object") => {}
        Some(_) => return Err("has a `type` other than \"object\""),
    }
    // Some servers write an empty list as `null`.
    for key in ["properties", "required"] {
        if schema.get(key).is_some_and(|value| value.get() == "null") {
            json.remove(key);
        }
    }
    let given = |key: &str| schema.get(key).filter(|value| value.get() != "null");
    if given("required").is_some_and(|required| !are_texts(required)) {
        return Err("has a `required` that is not an array of texts");
    }
    if let Some(raw) = given("properties") {
        let properties =
            Object::parse(raw).map_err(|_| "has `properties` that are not an object")?;
        let mut changed = Edited(Cow::Borrowed(raw));
        for (name, property) in properties.iter() {
            match property.get() {
                // These are schemas, too, but not for every client.
                "true" => changed.set(&name, "{}"),
                "false" => changed.set(&name, r#"{"not":{}}"#),
                object if object.starts_with('{') => {}
                _ => return Err("has a property that is not a schema"),
            }
        }
        if let Cow::Owned(changed) = changed.0 {
            json.set("properties", changed.get());
        }
    }
    Ok(match json.0 {
        Cow::Borrowed(_) => None,
        Cow::Owned(json) => Some(json.get().to_owned()),
    })
}

/// A schema of results, which clients compile when they list the tools.
fn output_schema(raw: &RawValue) -> Result<Option<String>, String> {
    let changed = object_schema(raw)?;
    if let Some(fault) = arguments::fault_of(raw) {
        return Err(format!("cannot be used: {fault}"));
    }
    let schema: Value = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    match portable::fault_of(&schema) {
        None => Ok(changed),
        Some(keyword) => Err(format!(
            "has a `{keyword}` that some clients cannot compile"
        )),
    }
}

/// A JSON object under edit.
struct Edited<'a>(Cow<'a, RawValue>);

impl Edited<'_> {
    fn set(&mut self, key: &str, value: &str) {
        self.edit(|object| object.with(key, value));
    }

    fn remove(&mut self, key: &str) {
        self.edit(|object| object.without(key));
    }

    fn edit(&mut self, edit: impl FnOnce(&Object<'_>) -> String) {
        let edited = Object::parse(&self.0).map(|object| edit(&object));
        let edited = edited.and_then(RawValue::from_string);
        self.0 = Cow::Owned(edited.expect("members of an object are those of an object"));
    }
}
