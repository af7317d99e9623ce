//! The members of a raw JSON object, without building values.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of a JSON object in their order, with keys and values in their original bytes.
///
/// Duplicate keys are kept at every depth; [`Object::get`] returns the last one, as most JSON parsers do.
#[derive(Debug, Default)]
pub(crate) struct Object<'a> {
    members: Vec<(&'a RawValue, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// Parses the members of `raw`.
    ///
    /// # Errors
    /// When `raw` is not an object.
    pub(crate) fn parse(raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(raw.get())
    }

    /// The value of `key`, if present.
    #[must_use]
    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        let mut latest_first = self.members.iter().rev();
        let member = latest_first.find(|(name, _)| is_key(name, key));
        member.map(|(_, value)| *value)
    }

    /// The value of `key` as text, if it is a string. Invalid Unicode (a lone surrogate) becomes `U+FFFD`.
    #[must_use]
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(text)
    }

    /// The members, with keys as text.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> + '_ {
        self.members
            .iter()
            .map(|(key, value)| (key_text(key), *value))
    }

    /// The object with the JSON text `value` for `key`, replaced where it was or appended. All other bytes are
    /// unchanged.
    #[must_use]
    pub(crate) fn with(&self, key: &str, value: &str) -> String {
        let mut found = false;
        let members = self
            .members
            .iter()
            .zip(self.iter())
            .map(|((raw_key, raw), (name, _))| {
                let replaced = name == key;
                found |= replaced;
                format!("{raw_key}:{}", if replaced { value } else { raw.get() })
            });
        let mut members: Vec<String> = members.collect();
        if !found {
            members.push(format!("{}:{value}", quoted(key)));
        }
        format!("{{{}}}", members.join(","))
    }

    /// The object without `key`. All other bytes are unchanged.
    #[must_use]
    pub(crate) fn without(&self, key: &str) -> String {
        let kept = self
            .members
            .iter()
            .zip(self.iter())
            .filter(|(_, (name, _))| name != key);
        let kept: Vec<String> = kept
            .map(|((raw_key, raw), _)| format!("{raw_key}:{raw}"))
            .collect();
        format!("{{{}}}", kept.join(","))
    }

    /// The members, with keys and values in their original bytes.
    #[must_use]
    pub(crate) fn members(&self) -> &[(&'a RawValue, &'a RawValue)] {
        &self.members
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Members<'a> {
            type Value = Object<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(Object { members })
            }
        }
        deserializer.deserialize_map(Members(std::marker::PhantomData))
    }
}

/// The number of objects and arrays of `json`, which is valid, that are open at its deepest point.
#[must_use]
pub(crate) fn nesting(json: &str) -> usize {
    let (mut deepest, mut open, mut is_text, mut bytes) = (0_usize, 0_usize, false, json.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_text = !is_text,
            b'\\' if is_text => drop(bytes.next()),
            b'{' | b'[' if !is_text => {
                open += 1;
                deepest = deepest.max(open);
            }
            b'}' | b']' if !is_text => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// `text` as a JSON string.
#[must_use]
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always JSON")
}

/// The text of a JSON string, with invalid Unicode as `U+FFFD`. `None` for any other value.
#[must_use]
pub(crate) fn text(raw: &RawValue) -> Option<String> {
    let json = raw.get();
    if !json.starts_with('"') {
        return None;
    }
    serde_json::from_str(json).ok().or_else(|| lossy_text(json))
}

/// Decodes a string that is not valid Unicode: `serde_json` passes its bytes to a byte visitor.
fn lossy_text(json: &str) -> Option<String> {
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON string")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }
    serde_json::Deserializer::from_str(json)
        .deserialize_bytes(Bytes)
        .ok()
}

/// Whether the JSON string `name` is the text `key`.
fn is_key(name: &RawValue, key: &str) -> bool {
    let json = name.get();
    let inner = &json[1..json.len() - 1];
    match inner.contains('\\') {
        false => inner == key,
        true => key_text(name) == key,
    }
}

fn key_text(key: &RawValue) -> Cow<'_, str> {
    let json = key.get();
    let inner = &json[1..json.len() - 1];
    if inner.contains('\\') {
        Cow::Owned(text(key).unwrap_or_default())
    } else {
        Cow::Borrowed(inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn a_member_is_replaced_or_added() {
        let json = raw(r#"{"a":1e400,"b": "\ud83d"}"#);
        let object = Object::parse(&json).unwrap();
        assert_eq!(object.with("a", "2"), r#"{"a":2,"b":"\ud83d"}"#);
        assert_eq!(object.with("c", "[]"), r#"{"a":1e400,"b":"\ud83d","c":[]}"#);
        assert_eq!(Object::default().with("c", "0"), r#"{"c":0}"#);
    }

    #[test]
    fn members_keep_order_duplicates_and_bytes() {
        let json = raw(r#"{"b": 1e400, "a":[ 1 ],"b":"\ud83d", "\u0063":{"\ud83d":0}}"#);
        let object = Object::parse(&json).unwrap();
        let keys: Vec<_> = object
            .iter()
            .map(|(key, value)| (key.into_owned(), value.get()))
            .collect();
        assert_eq!(
            keys,
            [
                ("b".to_owned(), "1e400"),
                ("a".to_owned(), "[ 1 ]"),
                ("b".to_owned(), r#""\ud83d""#),
                ("c".to_owned(), r#"{"\ud83d":0}"#)
            ]
        );
        assert_eq!(object.get("b").unwrap().get(), r#""\ud83d""#);
        assert!(object.get("c").is_some() && object.get(r"\u0063").is_none());
    }

    #[test]
    fn a_lone_surrogate_costs_one_character_only() {
        assert_eq!(
            text(&raw(r#""a\ud83db""#)).unwrap(),
            "a\u{fffd}\u{fffd}\u{fffd}b"
        );
        assert_eq!(text(&raw(r#""\u00e9""#)).unwrap(), "é");
        assert_eq!(text(&raw("7")), None);
    }

    #[test]
    fn only_an_object_has_members() {
        assert!(Object::parse(&raw("[1]")).is_err());
    }
}
