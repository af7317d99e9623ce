//! Estimates the validator's work for a schema before it is compiled.
//!
//! References make a short schema large: forty definitions that each name the next one twice are a trillion checks. A
//! schema that references itself more than once multiplies its checks with every level of the arguments.

use std::collections::HashMap;

use memchr::memchr2;
use serde_json::Value;

use crate::tool::local_pointer;

/// The maximum nesting of references and levels.
const MAX_DEPTH: usize = 256;
/// The maximum number of nodes of a schema with all references expanded.
const MAX_NODES: u64 = 100_000;
/// The maximum number of visits to a recursive schema.
const MAX_VISITS: u64 = 10_000;

/// The maximum product of schema nodes and argument values. Explaining a fault takes a third of a microsecond for
/// each.
const MAX_WORK: u64 = 2_000_000;

/// The size of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// The nesting of arrays and objects.
    pub(super) levels: usize,
    /// The number of values, including the keys of members.
    pub(super) values: usize,
}

impl Extent {
    /// Measures JSON text without parsing it into values.
    pub(super) fn of(json: &str) -> Self {
        let mut extent = Self {
            levels: 0,
            values: 1,
        };
        let (bytes, mut at, mut depth) = (json.as_bytes(), 0, 0_usize);
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'"' => at = after_string(bytes, at),
                b'{' | b'[' => {
                    depth += 1;
                    extent.levels = extent.levels.max(depth);
                    extent.values += 1;
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b',' => extent.values += 1,
                _ => {}
            }
        }
        extent
    }
}

/// The position after the string whose first character is at `at`.
fn after_string(json: &[u8], mut at: usize) -> usize {
    /// Most strings are short, and others have escapes: a search with wide instructions does not pay for these bytes.
    const NEAR: usize = 16;
    loop {
        let rest = json.get(at..).unwrap_or_default();
        let (near, far) = rest.split_at(rest.len().min(NEAR));
        let is_mark = |byte: &u8| matches!(byte, b'"' | b'\\');
        let near = near.iter().position(is_mark);
        let mark = near.or_else(|| memchr2(b'"', b'\\', far).map(|far| NEAR + far));
        match mark {
            Some(mark) if rest[mark] == b'"' => return at + mark + 1,
            // The escaped character is passed over, too.
            Some(mark) => at += mark + 2,
            None => return json.len(),
        }
    }
}

/// The size of a schema with its references expanded up to a recursion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expansion {
    nodes: u64,
    loops: u64,
}

impl Expansion {
    /// Measures `schema`; `None` if it is too large, or has references that only the validator can resolve.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let mut walk = Walk {
            root: schema,
            known: HashMap::new(),
            has_reference: false,
            has_inner_id: false,
        };
        let expansion = walk.visit(schema, 0)?;
        // A nested `$id` changes the meaning of `#/…`.
        let is_clear = !(walk.has_reference && walk.has_inner_id);
        (expansion.nodes <= MAX_NODES && is_clear).then_some(expansion)
    }

    /// The number of argument values that can be checked in bounded time, if each item of an array is checked against
    /// the whole schema.
    pub(super) fn values(self) -> usize {
        usize::try_from(MAX_WORK / self.nodes).unwrap_or(usize::MAX)
    }

    /// The number of argument levels that can be checked in bounded time.
    pub(super) fn levels(self) -> usize {
        if self.loops < 2 {
            return usize::MAX;
        }
        let mut levels = 0;
        let mut visits = self.loops;
        while visits <= MAX_VISITS {
            visits = visits.saturating_mul(self.loops);
            levels += 1;
        }
        levels
    }
}

struct Walk<'s> {
    root: &'s Value,
    /// The targets of references: measured, or (`None`) being measured.
    known: HashMap<*const Value, Option<Expansion>>,
    has_reference: bool,
    has_inner_id: bool,
}

impl<'s> Walk<'s> {
    fn visit(&mut self, schema: &'s Value, depth: usize) -> Option<Expansion> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut sum = Expansion { nodes: 1, loops: 0 };
        let mut add = |part: Expansion| {
            sum.nodes = sum.nodes.saturating_add(part.nodes);
            sum.loops = sum.loops.saturating_add(part.loops);
        };
        match schema {
            Value::Array(items) => {
                for item in items {
                    add(self.visit(item, depth + 1)?);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    match (name.as_str(), value) {
                        // Definitions count where they are referenced.
                        ("$defs" | "definitions", Value::Object(_)) => {}
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                            add(self.follow(reference, depth)?);
                        }
                        ("$id" | "id", Value::String(_)) => self.has_inner_id |= depth > 0,
                        (_, value) => add(self.visit(value, depth + 1)?),
                    }
                }
            }
            _ => {}
        }
        Some(sum)
    }

    fn follow(&mut self, reference: &str, depth: usize) -> Option<Expansion> {
        self.has_reference = true;
        let target = self.root.pointer(&local_pointer(reference)?)?;
        if std::ptr::eq(target, self.root) {
            return Some(Expansion { nodes: 1, loops: 1 });
        }
        match self.known.get(&std::ptr::from_ref(target)) {
            Some(Some(expansion)) => Some(*expansion),
            Some(None) => Some(Expansion { nodes: 1, loops: 1 }),
            None => {
                self.known.insert(target, None);
                let expansion = self.visit(target, depth + 1)?;
                self.known.insert(target, Some(expansion));
                Some(expansion)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_extent_passes_over_strings() {
        assert_eq!(
            Extent::of(r#"{"a":[1,{"b":"[[,\\\"{"}]}"#),
            Extent {
                levels: 3,
                values: 5
            }
        );
        let long = format!(
            r#"[{0},{0},"a"]"#,
            r#""a string that is longer than that, [\"{,\\""#
        );
        assert_eq!(
            Extent::of(&long),
            Extent {
                levels: 1,
                values: 4
            }
        );
        assert_eq!(
            Extent::of("7"),
            Extent {
                levels: 0,
                values: 1
            }
        );
    }

    #[test]
    fn a_tree_is_checked_to_some_depth() {
        let list = json!({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}}}}});
        assert_eq!(Expansion::of(&list).unwrap().levels(), usize::MAX);
        let tree = json!({"properties": {"and": {"items": {"$ref": "#"}}, "or": {"items": {"$ref": "#"}}}});
        assert_eq!(Expansion::of(&tree).unwrap().levels(), 13);
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        for schema in [
            json!({"$ref": "https://example.com/x"}),
            json!({"$ref": "#anchor", "$defs": {"a": {"$anchor": "anchor"}}}),
            json!({"properties": {"a": {"$id": "b", "$ref": "#/$defs/c"}}, "$defs": {"c": {}}}),
        ] {
            assert!(Expansion::of(&schema).is_none(), "{schema}");
        }
        assert!(Expansion::of(&json!({"properties": {"a": {"$id": "#/properties/a"}}})).is_some());
    }
}
