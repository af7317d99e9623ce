//! The arguments of a call, as rules read them.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The arguments of a call, from JSON. `Null` stands for arguments that cannot be read: invalid JSON, or an object with
/// two members whose names differ at most in letter case, since servers differ in which of them they use.
#[must_use]
pub(crate) fn read(json: &str) -> Value {
    serde_json::from_str(json).map_or(Value::Null, |Unambiguous(value)| value)
}

/// The sole member of the object as which `serde_json` hands over a number if a program that uses this library switches on
/// `arbitrary_precision`.
const NUMBER: &str = "$serde_json::private::Number";

struct Unambiguous(Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unambiguous(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let (mut members, mut names) = (Map::new(), HashSet::new());
        while let Some((name, Unambiguous(value))) = entries.next_entry::<String, _>()? {
            if !names.insert(name.to_lowercase()) {
                return Err(A::Error::custom("a member stands twice"));
            }
            members.insert(name, value);
        }
        if let (1, Some(Value::String(number))) = (members.len(), members.get(NUMBER))
            && let Ok(number) = number.parse()
        {
            return Ok(Value::Number(number));
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_that_stands_twice_makes_the_arguments_unreadable() {
        let plain = r#"{"a":[1,-2,2.5,"x",null,true],"b":{"a":{}}}"#;
        assert_eq!(
            read(plain),
            json!({"a": [1, -2, 2.5, "x", null, true], "b": {"a": {}}})
        );
        let number = read(r#"{"n":{"$serde_json::private::Number":"5"}}"#);
        assert_eq!(number, json!({"n": 5}));
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
}
