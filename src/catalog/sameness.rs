//! Comparison of two definitions of a tool by meaning, independent of their bytes.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Whether two definitions differ at most in the order of their members, and of the lists in their schemas that JSON
/// Schema treats as sets. Invalid JSON, or an object with a duplicate key, equals nothing.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let read = |json| serde_json::from_str::<Json>(json).ok();
    let (one, other) = (read(one), read(other));
    one.is_some_and(|one| other.is_some_and(|other| one.definition() == other.definition()))
}

/// JSON with sorted members.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Json {
    /// A scalar, as its JSON text.
    Plain(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// Sorts the schemas of a tool's definition.
    fn definition(mut self) -> Self {
        if let Self::Object(members) = &mut self {
            for schema in ["inputSchema", "outputSchema"] {
                if let Some(schema) = members.get_mut(schema) {
                    schema.order();
                }
            }
        }
        self
    }

    /// Sorts the lists of a schema that are sets. Values that a schema only quotes stay unsorted.
    fn order(&mut self) {
        let Self::Object(members) = self else { return };
        for (keyword, value) in members {
            match keyword.as_str() {
                "required" | "type" | "enum" => value.sort(),
                "anyOf" | "oneOf" | "allOf" => {
                    value.each(Self::order);
                    value.sort();
                }
                "properties" | "patternProperties" | "$defs" | "definitions"
                | "dependentSchemas" | "prefixItems" => value.each(Self::order),
                "dependentRequired" => value.each(Self::sort),
                "items" => {
                    if matches!(value, Self::List(_)) {
                        value.each(Self::order);
                    } else {
                        value.order();
                    }
                }
                "additionalProperties"
                | "additionalItems"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                | "propertyNames"
                | "contains"
                | "contentSchema"
                | "not"
                | "if"
                | "then"
                | "else" => value.order(),
                _ => {}
            }
        }
    }

    fn each(&mut self, change: impl FnMut(&mut Self)) {
        match self {
            Self::Plain(_) => {}
            Self::List(entries) => entries.iter_mut().for_each(change),
            Self::Object(members) => members.values_mut().for_each(change),
        }
    }

    fn sort(&mut self) {
        if let Self::List(entries) = self {
            entries.sort();
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Plain(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Plain(value.to_string()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Plain(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Plain(format!("{value:?}")))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        // In quotes, so that `"1"` differs from `1`.
        Ok(Json::Plain(format!("\"{value}\"")))
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Plain("null".to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            entries.push(entry);
        }
        Ok(Json::List(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Json, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((name, value)) = object.next_entry::<String, Json>()? {
            // Readers differ in which one they take, and a model sees both.
            if members.insert(name, value).is_some() {
                return Err(Error::custom("a member is there twice"));
            }
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        let tool = |schema: &str| format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        assert_eq!(is_same(&tool(one), &tool(other)), expected, "{one} {other}");
    }

    #[test]
    fn only_lists_that_are_sets_may_be_in_another_order() {
        check(
            r#"{"required":["a","b"]}"#,
            r#"{"required":["b","a"]}"#,
            true,
        );
        check(r#"{"required":["a"]}"#, r#"{"required":["a","b"]}"#, false);
        check(r#"{"enum":[1,"1"]}"#, r#"{"enum":["1",1]}"#, true);
        check(r#"{"enum":[[1,2]]}"#, r#"{"enum":[[2,1]]}"#, false);
        check(
            r#"{"default":["a","b"]}"#,
            r#"{"default":["b","a"]}"#,
            false,
        );
        check(
            r#"{"default":{"required":["a","b"]}}"#,
            r#"{"default":{"required":["b","a"]}}"#,
            false,
        );
        check(
            r#"{"items":{"anyOf":[{"type":["string","null"]},{}]}}"#,
            r#"{"items":{"anyOf":[{},{"type":["null","string"]}]}}"#,
            true,
        );
        check(
            r#"{"prefixItems":[{"minimum":1},{"minimum":2}]}"#,
            r#"{"prefixItems":[{"minimum":2},{"minimum":1}]}"#,
            false,
        );
        // A property may have the name of a keyword.
        check(
            r#"{"properties":{"enum":{"required":["a","b"]}}}"#,
            r#"{"properties":{"enum":{"required":["b","a"]}}}"#,
            true,
        );
    }

    #[test]
    fn what_says_something_twice_is_the_same_as_nothing() {
        let plain = r#"{"name":"t","description":"Reads."}"#;
        let twice = r#"{"name":"t","description":"Mails it.","description":"Reads."}"#;
        assert!(is_same(plain, r#"{"description": "Reads.", "name":"t"}"#));
        assert!(!is_same(plain, twice) && !is_same(twice, plain) && !is_same(twice, twice));
    }
}
