//! Request ids: compared by value, echoed as written.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde_json::value::RawValue;

/// A request's id: a string or a number, in the sender's own bytes.
///
/// Ids are equal if their values are: `1`, `1.0` and `1e0` are one id, `"1"` is another.
#[derive(Clone)]
pub struct RequestId {
    raw: Box<str>,
    meaning: Meaning,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Meaning {
    Integer(i64),
    Text(Box<str>),
    /// A fraction, or a number beyond 64 bits, by its digits.
    Other(Box<str>),
}

impl RequestId {
    /// Parses an id; `None` if it is neither a string nor a number.
    #[must_use]
    pub fn parse(raw: &RawValue) -> Option<Self> {
        let json = raw.get();
        let meaning = match json.as_bytes().first()? {
            b'"' => Meaning::Text(super::object::text(raw)?.into()),
            b'-' | b'0'..=b'9' => match json.parse::<i64>() {
                Ok(integer) => Meaning::Integer(integer),
                Err(_) => {
                    integral(json).map_or_else(|| Meaning::Other(json.into()), Meaning::Integer)
                }
            },
            _ => return None,
        };
        Some(Self {
            raw: json.into(),
            meaning,
        })
    }

    /// The id as the sender wrote it.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.raw
    }

    /// The value, if it is a whole number.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        match self.meaning {
            Meaning::Integer(integer) => Some(integer),
            _ => None,
        }
    }

    /// The value, if it is a text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.meaning {
            Meaning::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The whole number that `1.0` or `1e3` represents, if a double holds it exactly.
fn integral(json: &str) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let number: f64 = json.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "within 2^53 and without a fraction"
    )]
    (number.abs() <= EXACT && number.fract() == 0.0).then_some(number as i64)
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.meaning == other.meaning
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meaning.hash(state);
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.raw)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(json: &str) -> Option<RequestId> {
        RequestId::parse(&RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn ids_are_equal_by_meaning_and_echoed_as_written() {
        assert_eq!(id("1"), id("1.0"));
        assert_eq!(id("1000"), id("1e3"));
        assert_eq!(id(r#""a""#), id(r#""\u0061""#));
        assert_ne!(id("1"), id(r#""1""#));
        assert_ne!(
            id("18446744073709551617"),
            id("18446744073709551616"),
            "2^64+1 is not 2^64"
        );
        assert_eq!(id("1.0").unwrap().as_json(), "1.0");
    }

    #[test]
    fn null_and_containers_are_no_ids() {
        for json in ["null", "true", "[1]", "{}"] {
            assert!(id(json).is_none(), "{json} was taken");
        }
    }
}
