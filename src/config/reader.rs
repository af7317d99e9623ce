//! Reads values of a parsed file, each with its position.
//!
//! [`Members`] returns an object's values by key. Keys that are missing in its table are unknown. Builds with
//! assertions check for each object that exactly the keys of the table were read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::time::Duration;

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;

use super::duration;
use super::error::{ConfigWarning, EntryError, Position, Warning};
use super::key::{OLDER, Table, is_written_empty, may_restrict, restricts};
use super::nearest::nearest;

/// Above this, a number without a unit was probably meant as milliseconds, as in some clients.
const MANY_SECONDS: u64 = 10_000;

/// Whether a value is `null`, or an empty text, array or object.
fn is_empty(value: &Value<'_>) -> bool {
    match value {
        Value::NullKeyword(_) => true,
        Value::StringLit(text) => text.value.is_empty(),
        Value::Array(items) => items.elements.is_empty(),
        Value::Object(members) => members.properties.is_empty(),
        Value::NumberLit(_) | Value::BooleanLit(_) => false,
    }
}

/// A value and its position, in bytes from the start of the text.
#[derive(Debug, Clone)]
pub(super) struct At<T> {
    pub(super) offset: usize,
    pub(super) value: T,
}

/// The value of a key; `None` if it is absent or `null`.
pub(super) type Read<T> = Result<Option<T>, At<EntryError>>;

/// Collects the warnings, and the faults that would lift a restriction.
#[derive(Debug, Default)]
pub(super) struct Report {
    warnings: RefCell<Vec<At<ConfigWarning>>>,
    lost: RefCell<Vec<At<EntryError>>>,
}

/// An object's members; of a duplicate key that restricts nothing, the last one.
pub(super) struct Members<'a> {
    members: Vec<&'a ObjectProp<'a>>,
    table: Table,
    /// The keys that were read; filled with assertions only.
    asked: Vec<&'static str>,
    /// The prefix of a key in a warning (`mcpServers.github.`) and in a fault (empty, or `search.`).
    scope: &'a str,
    prefix: &'static str,
    report: &'a Report,
}

/// A value and its key.
pub(super) struct Field<'a> {
    /// The name in faults.
    key: String,
    /// The path in warnings.
    path: String,
    value: &'a Value<'a>,
    report: &'a Report,
}

/// The line and column of an offset.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<T> At<T> {
    pub(super) const fn new(offset: usize, value: T) -> Self {
        Self { offset, value }
    }
}

impl Report {
    /// The value of a key, or of a part of the file. If it is invalid, a warning names the `default` that applies.
    pub(super) fn value<T>(
        &self,
        read: Result<T, At<EntryError>>,
        default: impl Into<String>,
    ) -> Option<T> {
        read.map_err(|fault| self.fall_back(fault, default)).ok()
    }

    /// Warns that a `default` applies because of a fault.
    pub(super) fn fall_back(&self, fault: At<EntryError>, default: impl Into<String>) {
        let At { offset, value } = fault;
        let warning = ConfigWarning::Default {
            fault: value,
            default: default.into(),
        };
        self.add(offset, warning);
    }

    /// Warns that something is refused because of a fault.
    pub(super) fn refuse(&self, fault: At<EntryError>, consequence: &'static str) {
        let At { offset, value } = fault;
        let fault = value;
        self.add(offset, ConfigWarning::Refused { fault, consequence });
    }

    pub(super) fn add(&self, offset: usize, warning: ConfigWarning) {
        self.warnings.borrow_mut().push(At::new(offset, warning));
    }

    /// Removes and returns the first unknown key of a server's entry that was probably meant to be one of `keys`.
    pub(super) fn take_misspelt(
        &self,
        server: &str,
        keys: &[&str],
    ) -> Option<(String, &'static str)> {
        let scope = format!("mcpServers.{server}.");
        let meant = |warning: &ConfigWarning| match warning {
            ConfigWarning::UnknownKey {
                key,
                nearest: Some(nearest),
            } if keys.contains(nearest) => {
                let written = key.strip_prefix(&scope)?;
                Some((written.to_owned(), *nearest))
            }
            _ => None,
        };
        let mut warnings = self.warnings.borrow_mut();
        let (at, found) = warnings
            .iter()
            .enumerate()
            .find_map(|(at, warning)| Some((at, meant(&warning.value)?)))?;
        warnings.remove(at);
        Some(found)
    }

    /// Notes a fault that would lift a restriction.
    fn lose(&self, offset: usize, fault: EntryError) {
        self.lost.borrow_mut().push(At::new(offset, fault));
    }

    /// Removes the restrictions between these offsets that would be lifted, and returns the fault of one.
    pub(super) fn take_lost(&self, within: std::ops::Range<usize>) -> Option<At<EntryError>> {
        let mut lost = self.lost.borrow_mut();
        let mut taken = lost.extract_if(.., |at| within.contains(&at.offset));
        taken.by_ref().min_by_key(|at| at.offset)
    }

    /// All warnings, in the file's order.
    pub(super) fn into_warnings(self, lines: &Lines<'_>) -> Vec<Warning> {
        let mut found = self.warnings.into_inner();
        found.sort_by_key(|warning| warning.offset);
        let warning = |at: At<ConfigWarning>| Warning {
            position: lines.position(at.offset),
            kind: at.value,
        };
        found.into_iter().map(warning).collect()
    }
}

impl<'a> Members<'a> {
    /// The members of an object with the keys of `table`; an empty table accepts all keys.
    pub(super) fn new(
        object: &'a Object<'a>,
        table: Table,
        scope: &'a str,
        prefix: &'static str,
        report: &'a Report,
    ) -> Self {
        let mut last: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, property) in object.properties.iter().enumerate() {
            let name = property.name.as_str();
            let is_twice = last.insert(name, index).is_some();
            // Each of two `mcpServers` may restrict the servers of the other.
            let is_restriction = (may_restrict(name) || name == "mcpServers")
                && table.iter().any(|key| key.name == name);
            match (is_twice, is_restriction) {
                (true, true) => {
                    report.lose(property.range.start, twice(format!("{prefix}{name}")));
                }
                (true, false) => {
                    let key = format!("{scope}{prefix}{name}");
                    report.add(property.range.start, ConfigWarning::Duplicate { key });
                }
                _ => {}
            }
        }
        let is_last = |index: usize, property: &ObjectProp<'_>| {
            last.get(property.name.as_str()) == Some(&index)
        };
        let members = object.properties.iter().enumerate();
        let members = members
            .filter(|(index, property)| is_last(*index, property))
            .map(|(_, property)| property);
        Self {
            members: members.collect(),
            table,
            asked: Vec::new(),
            scope,
            prefix,
            report,
        }
    }

    /// The value of `key`, a key of the table, as parsed by `read`.
    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Field<'a>) -> Result<T, At<EntryError>>,
    ) -> Read<T> {
        debug_assert!(
            self.table.iter().any(|known| known.name == key),
            "`{key}` is missing in keys.rs"
        );
        if cfg!(debug_assertions) {
            self.asked.push(key);
        }
        let property = self
            .members
            .iter()
            .find(|property| property.name.as_str() == key);
        let field = property.map(|property| self.field(property));
        match field {
            Some(field) if field.is_null() && restricts(key) => {
                let found = "null, which would lift what it restricts";
                let fault = EntryError::value(&field.key, "a value, or left out", found);
                self.report.lose(field.offset(), fault);
                Ok(None)
            }
            field => {
                let field = field.filter(|field| !field.is_null());
                field.map(|field| read(&field)).transpose()
            }
        }
    }

    /// All members with any keys, and the positions of the keys.
    pub(super) fn into_fields(self) -> impl Iterator<Item = (At<&'a str>, Field<'a>)> {
        let members = self.members.clone();
        members.into_iter().map(move |property| {
            (
                At::new(property.range.start, property.name.as_str()),
                self.field(property),
            )
        })
    }

    /// Reports the unknown keys, after all known ones were read.
    pub(super) fn finish(self) {
        let names = || self.table.iter().map(|key| key.name);
        debug_assert!(
            names().all(|key| self.asked.contains(&key)),
            "not all keys of {:?} are read",
            self.table
        );
        for property in &self.members {
            let name = property.name.as_str();
            if !names().any(|known| known == name) {
                let known: Vec<&'static str> = names().collect();
                let nearest = nearest(name, &known);
                let written = format!("{}{name}", self.prefix);
                let key = format!("{}{written}", self.scope);
                let offset = property.range.start;
                match nearest {
                    _ if OLDER.contains(&key.as_str()) => {
                        self.report.add(offset, ConfigWarning::Older { key });
                    }
                    // A file of another client may have `"enabled": true` or `"auth": false`, which restrict nothing.
                    // In an entry, `registry` is its origin, and programs write some keys without a value.
                    Some(meant)
                        if may_restrict(meant)
                            && !matches!(name, "auth" | "enabled")
                            && (self.scope.is_empty() || meant != "registry")
                            && !(is_written_empty(meant) && is_empty(&property.value)) =>
                    {
                        let fault = EntryError::MisspeltRestriction { written, meant };
                        self.report.lose(offset, fault);
                    }
                    // Everything in `tools` restricts.
                    _ if self.prefix == "tools." => {
                        self.report
                            .lose(offset, EntryError::UnknownRule { written });
                    }
                    // No key of `http` has members that are free, so it may be one that keeps strangers out.
                    _ if self.prefix == "http." && property.value.as_object().is_some() => {
                        self.report
                            .lose(offset, EntryError::UnknownProtection { written });
                    }
                    nearest => {
                        let warning = ConfigWarning::UnknownKey { key, nearest };
                        self.report.add(offset, warning);
                    }
                }
            }
        }
    }

    fn field(&self, property: &'a ObjectProp<'a>) -> Field<'a> {
        let key = format!("{}{}", self.prefix, property.name.as_str());
        Field {
            path: format!("{}{key}", self.scope),
            key,
            value: &property.value,
            report: self.report,
        }
    }
}

impl<'a> Field<'a> {
    /// The value of a key that is read alone.
    pub(super) fn of(key: &str, value: &'a Value<'a>, report: &'a Report) -> Self {
        Self {
            key: key.to_owned(),
            path: key.to_owned(),
            value,
            report,
        }
    }

    pub(super) fn value(&self) -> &'a Value<'a> {
        self.value
    }

    pub(super) fn offset(&self) -> usize {
        self.value.start()
    }

    pub(super) fn report(&self) -> &'a Report {
        self.report
    }

    /// The path of the object that it is a member of, as warnings name it.
    pub(super) fn scope(&self) -> &str {
        self.path.strip_suffix(&self.key).unwrap_or_default()
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.value, Value::NullKeyword(_))
    }

    pub(super) fn object(&self) -> Result<&'a Object<'a>, At<EntryError>> {
        self.value
            .as_object()
            .ok_or_else(|| self.wrong_kind("an object like {\"key\": …}"))
    }

    pub(super) fn text(&self) -> Result<At<String>, At<EntryError>> {
        self.text_as("a string")
    }

    pub(super) fn flag(&self) -> Result<bool, At<EntryError>> {
        self.value
            .as_boolean_lit()
            .map(|literal| literal.value)
            .ok_or_else(|| self.wrong_kind("true or false"))
    }

    pub(super) fn texts(&self) -> Result<Vec<At<String>>, At<EntryError>> {
        let elements = self.elements("a list of strings like [\"one\", \"two\"]")?;
        elements.map(|field| field.text()).collect()
    }

    /// The members of an object with any keys, each read by `read`. A key that is there twice is a fault, since either value may be the
    /// restriction that was meant.
    pub(super) fn members<T>(
        &self,
        mut read: impl FnMut(&str, &Field<'_>) -> Result<T, At<EntryError>>,
    ) -> Result<Vec<T>, At<EntryError>> {
        let mut known = BTreeSet::new();
        for property in &self.object()?.properties {
            let name = property.name.as_str();
            if !known.insert(name) {
                let key = format!("{}.{name}", self.key);
                return Err(At::new(property.range.start, twice(key)));
            }
        }
        let scope = format!("{}.", self.path);
        let members = Members::new(self.object()?, &[], &scope, "", self.report);
        let fields = members.into_fields();
        fields
            .map(|(name, field)| read(name.value, &field))
            .collect()
    }

    /// The elements of a list; the fault says what was `expected`.
    pub(super) fn elements(
        &self,
        expected: &str,
    ) -> Result<impl Iterator<Item = Field<'a>>, At<EntryError>> {
        let array = self
            .value
            .as_array()
            .ok_or_else(|| self.wrong_kind(expected))?;
        let element = |(index, value)| {
            let (key, path) = (
                format!("{}[{index}]", self.key),
                format!("{}[{index}]", self.path),
            );
            Field {
                key,
                path,
                value,
                report: self.report,
            }
        };
        Ok(array.elements.iter().enumerate().map(element))
    }

    /// Parses an object of texts.
    pub(super) fn text_map(&self) -> Result<BTreeMap<String, At<String>>, At<EntryError>> {
        let object = self
            .value
            .as_object()
            .ok_or_else(|| self.wrong_kind("an object of texts like {\"NAME\": \"value\"}"))?;
        let scope = format!("{}.", self.path);
        let members = Members::new(object, &[], &scope, "", self.report);
        members
            .into_fields()
            .map(|(name, mut field)| {
                field.key = format!("{}.{}", self.key, name.value);
                Ok((name.value.to_owned(), field.text_as("a string, in quotes")?))
            })
            .collect()
    }

    /// Parses a time longer than zero.
    pub(super) fn positive_duration(&self) -> Result<Duration, At<EntryError>> {
        let time = self.duration(duration::EXPECTED)?;
        if time.is_zero() {
            Err(self.wrong("longer than 0"))
        } else {
            Ok(time)
        }
    }

    pub(super) fn duration(&self, expected: &str) -> Result<Duration, At<EntryError>> {
        let written = match self.value {
            Value::StringLit(text) => text.value.as_ref(),
            Value::NumberLit(number) => number.value,
            _ => return Err(self.wrong(expected)),
        };
        let time = duration::parse(written).ok_or_else(|| self.wrong(expected))?;
        if matches!(self.value, Value::NumberLit(_)) && time.as_secs() >= MANY_SECONDS {
            self.report.add(
                self.offset(),
                ConfigWarning::ManySeconds {
                    key: self.path.clone(),
                    seconds: time.as_secs(),
                },
            );
        }
        Ok(time)
    }

    pub(super) fn count(&self) -> Result<NonZeroUsize, At<EntryError>> {
        let number = self
            .value
            .as_number_lit()
            .and_then(|number| number.value.parse().ok());
        number.ok_or_else(|| self.wrong("a whole number from 1"))
    }

    pub(super) fn positive_number(&self) -> Result<u32, At<EntryError>> {
        let number = self
            .value
            .as_number_lit()
            .and_then(|number| number.value.parse().ok())
            .filter(|number| *number > 0);
        number.ok_or_else(|| self.wrong("a whole number from 1"))
    }

    pub(super) fn whole_number(&self) -> Result<usize, At<EntryError>> {
        let number = self
            .value
            .as_number_lit()
            .and_then(|number| number.value.parse().ok());
        number.ok_or_else(|| self.wrong("a whole number from 0"))
    }

    pub(super) fn word(&self) -> Option<&str> {
        self.value.as_string_lit().map(|text| text.value.as_ref())
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.as_array().is_some()
    }

    /// The fault of an invalid value, which is quoted.
    pub(super) fn wrong(&self, expected: impl Into<String>) -> At<EntryError> {
        let found = match self.value {
            Value::StringLit(text) => format!("`\"{}\"`", text.value),
            Value::NumberLit(number) => format!("`{}`", number.value),
            _ => return self.wrong_kind(expected),
        };
        At::new(self.offset(), EntryError::value(&self.key, expected, found))
    }

    /// The fault of a value of the wrong kind. Quotes nothing: it may be a secret in the wrong place.
    fn wrong_kind(&self, expected: impl Into<String>) -> At<EntryError> {
        At::new(
            self.offset(),
            EntryError::value(&self.key, expected, kind(self.value)),
        )
    }

    pub(super) fn text_as(&self, expected: &str) -> Result<At<String>, At<EntryError>> {
        let text = self
            .value
            .as_string_lit()
            .ok_or_else(|| self.wrong_kind(expected))?;
        Ok(At::new(self.offset(), text.value.clone().into_owned()))
    }
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let after_break = text
            .bytes()
            .enumerate()
            .filter(|(_, byte)| *byte == b'\n')
            .map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(after_break).collect(),
        }
    }

    pub(super) fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        Position {
            line,
            column: self.text[self.starts[line - 1]..offset].chars().count() + 1,
        }
    }
}

fn twice(key: String) -> EntryError {
    let problem = "is there twice";
    EntryError::Unusable { key, problem }
}

/// The kind of a value, for a sentence.
pub(super) const fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(literal) => {
            if literal.value {
                "true"
            } else {
                "false"
            }
        }
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "null",
    }
}
