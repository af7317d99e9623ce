//! The arguments of a call, as rules read them.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The arguments of a call, from JSON. `Null` stands for arguments that cannot be read: invalid JSON, or an object with
/// two members whose names differ at most in letter case, since servers differ in which of them they use.
#[must_use]
pub(crate) fn read(json: &str) -> Value {
    serde_json::from_str(json).map_or(Value::Null, Unambiguous::into_value)
}

/// The sole member of the object as which `serde_json` hands over a number if a program that uses this library switches on
/// `arbitrary_precision`.
const NUMBER: &str = "$serde_json::private::Number";

enum Unambiguous {
    Value(Value),
    /// A text that `serde_json` owns. It owns the digits of a number, and hands over each text of the JSON borrowed, so that no text which an
    /// agent writes is taken for a number.
    Owned(String),
}

impl Unambiguous {
    fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            Self::Owned(text) => text.into(),
        }
    }
}

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Unambiguous;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Unambiguous, E> {
        Ok(Unambiguous::Value(Value::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Unambiguous, E> {
        Ok(Unambiguous::Value(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Unambiguous, E> {
        Ok(Unambiguous::Value(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Unambiguous, E> {
        Ok(Unambiguous::Value(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Unambiguous, E> {
        Ok(Unambiguous::Value(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Unambiguous, E> {
        Ok(Unambiguous::Value(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Unambiguous, E> {
        Ok(Unambiguous::Owned(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unambiguous, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(Unambiguous::into_value(item));
        }
        Ok(Unambiguous::Value(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Unambiguous, A::Error> {
        let (mut members, mut names) = (Map::new(), HashSet::new());
        while let Some((name, value)) = entries.next_entry::<String, Unambiguous>()? {
            if let (NUMBER, Unambiguous::Owned(digits)) = (name.as_str(), &value) {
                let number = digits.parse().map_err(A::Error::custom)?;
                return Ok(Unambiguous::Value(Value::Number(number)));
            }
            if !names.insert(name.to_lowercase()) {
                return Err(A::Error::custom("a member stands twice"));
            }
            members.insert(name, value.into_value());
        }
        Ok(Unambiguous::Value(members.into()))
    }
}

#[cfg(test)]
mod tests {
    use serde::de::value::MapDeserializer;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_that_stands_twice_makes_the_arguments_unreadable() {
        let plain = r#"{"a":[1,-2,2.5,"x",null,true],"b":{"a":{}}}"#;
        assert_eq!(
            read(plain),
            json!({"a": [1, -2, 2.5, "x", null, true], "b": {"a": {}}})
        );
        for json in [
            r#"{"a":1,"a":1}"#,
            r#"{"path":"x","Path":"y"}"#,
            r#"{"o":[{"a":1,"\u0061":2}]}"#,
            r#"{"a":1e999}"#,
            "{",
        ] {
            assert_eq!(read(json), Value::Null, "{json}");
        }
    }
    #[test]
    fn an_object_is_no_number_by_the_name_of_its_member() {
        for json in [
            r#"{"n":{"$serde_json::private::Number":"5"}}"#,
            r#"{"n":{"\u0024serde_json::private::Number":"\u0035"}}"#,
            r#"{"n":{"$serde_json::private::Number":5}}"#,
            r#"{"$serde_json::private::Number":"5"}"#,
        ] {
            let read = read(json);
            let object = read.get("n").unwrap_or(&read);
            let value = object.get(NUMBER);
            assert!(
                value.is_some_and(|five| *five == "5" || *five == 5),
                "{read}"
            );
        }
        // With `arbitrary_precision`, `serde_json` hands over a number in this form, and an object with borrowed texts.
        let digits = [(NUMBER, "5".to_owned())].into_iter();
        let number = Unambiguous::deserialize(MapDeserializer::<_, serde_json::Error>::new(digits));
        assert_eq!(number.unwrap().into_value(), json!(5));
    }
}
