//! The form of a tool that clients see, and the arguments that the user sets.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::config::{Preset, ResultForm};
use crate::mcp::Object;
use crate::mcp::object::quoted;
use crate::text::loose_name;

/// A tool in the form that clients see.
#[derive(Debug)]
pub(crate) struct Adapted {
    pub(super) json: Box<RawValue>,
    pub(super) arguments: BTreeMap<String, Preset>,
    pub(super) select: Option<String>,
    pub(super) budget: Option<usize>,
    pub(super) form: Option<ResultForm>,
}

/// Arguments that an agent may not send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// The user sets this argument.
    Preset(String),
    /// They are not an object.
    NotAnObject,
}

impl Adapted {
    /// The definition that clients see.
    pub(crate) fn json(&self) -> &RawValue {
        &self.json
    }

    /// The filter for results of calls without one.
    pub(crate) fn select(&self) -> Option<&str> {
        self.select.as_deref()
    }

    /// The characters that an answer may have; 0 means no limit.
    pub(crate) fn budget(&self) -> Option<usize> {
        self.budget
    }

    /// The form of its results, if the tool has one of its own.
    pub(crate) fn form(&self) -> Option<ResultForm> {
        self.form
    }

    /// All arguments for the server: those that an agent sent, in their own bytes, and those that the user sets.
    ///
    /// # Errors
    /// When the agent sent an argument that only the user sets.
    pub(crate) fn complete(&self, sent: &RawValue) -> Result<Box<RawValue>, Rejected> {
        let object = Object::parse(sent).map_err(|_| Rejected::NotAnObject)?;
        self.check(&object)?;
        let mut members: Vec<String> = object
            .members()
            .iter()
            .zip(object.iter())
            // For an argument with a default, `null` gives none.
            .filter(|((_, value), (name, _))| value.get() != "null" || !self.has_default(name))
            .map(|((key, value), _)| format!("{key}:{value}"))
            .collect();
        for (name, preset) in &self.arguments {
            let json = match preset {
                Preset::Fixed(json) => json,
                Preset::Default { json, .. }
                    if object.get(name).is_none_or(|value| value.get() == "null") =>
                {
                    json
                }
                Preset::Default { .. } | Preset::Hidden => continue,
            };
            members.push(format!("{}:{}", quoted(name), json.expose()));
        }
        let json = RawValue::from_string(format!("{{{}}}", members.join(",")));
        Ok(json.expect("members of objects are those of an object"))
    }

    /// Refuses arguments that only the user sets, also before others are checked.
    ///
    /// # Errors
    /// When one of them is there.
    pub(crate) fn check(&self, sent: &Object<'_>) -> Result<(), Rejected> {
        // A server may read names in any letter case and form, and `repoName` for `repo_name`.
        let is_like = |preset: &str, name: &str| {
            preset == name || loose_name(preset) == loose_name(name) && !self.has_argument(name)
        };
        let is_preset = |name: &str| {
            let mut presets = self.arguments.iter();
            presets.any(|(preset, value)| {
                !matches!(value, Preset::Default { .. }) && is_like(preset, name)
            })
        };
        let mut names = sent.iter().map(|(name, _)| name);
        let preset = names.find(|name| is_preset(name));
        preset.map_or(Ok(()), |name| Err(Rejected::Preset(name.into_owned())))
    }

    fn has_default(&self, argument: &str) -> bool {
        matches!(self.arguments.get(argument), Some(Preset::Default { .. }))
    }

    /// Whether clients see an argument with exactly this name.
    fn has_argument(&self, name: &str) -> bool {
        let has = || {
            let tool = Object::parse(&self.json).ok()?;
            let schema = Object::parse(tool.get("inputSchema")?).ok()?;
            let properties = Object::parse(schema.get("properties")?).ok()?;
            properties.get(name).map(drop)
        };
        has().is_some()
    }
}
