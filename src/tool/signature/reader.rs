//! Reads a JSON Schema's parameters and types.
//!
//! It reads the raw schema, so that parameters keep the author's order. No input can make it fail or run long: parts
//! that it cannot follow are left out.

use std::borrow::Cow;
use std::cell::Cell;

use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use super::sentence::visible;
use super::shape::{Detail, Member, Shape, union, without_null};
use crate::mcp::object::{Object, text};

/// The maximum bytes of schema read for one tool, counting repeated references each time: a few milliseconds at
/// worst.
const MAX_BYTES: usize = 2_000_000;
/// The maximum nesting of references, arrays and alternatives.
const MAX_DEPTH: usize = 10;

/// The members of the object that `schema` describes, required ones first.
pub(super) fn parameters(schema: &RawValue) -> Vec<Member> {
    Reader::new(schema)
        .members(schema, 1, 0)
        .unwrap_or_default()
}

/// The type expression of `schema`. Local references are resolved in `root`.
pub(super) fn type_of(schema: &RawValue, root: &RawValue, detail: Detail) -> String {
    let mut out = String::new();
    Reader::new(root)
        .shape(schema, 1, 0)
        .write(detail, &mut out);
    out
}

/// The part of `root` that a local reference such as `#/$defs/Label` names.
fn resolve<'a>(root: &'a RawValue, reference: &str) -> Option<&'a RawValue> {
    let mut found = root;
    for step in pointer(reference)?.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        found = match Object::parse(found) {
            Ok(object) => object.get(&step)?,
            Err(_) => items(found)?.get(step.parse::<usize>().ok()?).copied()?,
        };
    }
    Some(found)
}

/// The JSON pointer in a local reference, whose fragment may be percent-encoded: `#/$defs/List%3Cstring%3E`.
pub(super) fn pointer(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    percent_decode_str(fragment)
        .decode_utf8()
        .ok()
        .map(Cow::into_owned)
}

fn items(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

struct Reader<'a> {
    root: &'a RawValue,
    bytes_left: Cell<usize>,
}

impl<'a> Reader<'a> {
    fn new(root: &'a RawValue) -> Self {
        Self {
            root,
            bytes_left: Cell::new(MAX_BYTES),
        }
    }

    /// The members of `schema`, unless the byte or depth limit is reached.
    fn open(&self, schema: &'a RawValue, depth: usize) -> Result<Object<'a>, Shape> {
        let left = self.bytes_left.get();
        if depth > MAX_DEPTH || left == 0 {
            return Err(Shape::LeftOut);
        }
        self.bytes_left.set(left.saturating_sub(schema.get().len()));
        Object::parse(schema).map_err(|_| Shape::Any)
    }

    fn resolve(&self, reference: &str) -> Option<&'a RawValue> {
        self.bytes_left.set(
            self.bytes_left
                .get()
                .saturating_sub(2 * self.root.get().len()),
        );
        resolve(self.root, reference)
    }

    /// The shape of `schema`, with at most `objects` levels of nested objects.
    fn shape(&self, schema: &'a RawValue, objects: usize, depth: usize) -> Shape {
        let object = match self.open(schema, depth) {
            Ok(object) => object,
            Err(shape) => return shape,
        };
        let shape = self.bare(schema, &object, objects, depth);
        let nullable = object
            .get("nullable")
            .is_some_and(|raw| raw.get() == "true");
        if nullable {
            union(vec![shape, Shape::Plain("null")])
        } else {
            shape
        }
    }

    fn bare(
        &self,
        schema: &'a RawValue,
        object: &Object<'a>,
        objects: usize,
        depth: usize,
    ) -> Shape {
        if let Some(value) = object.get("const") {
            return Shape::Literals(vec![literal(value)]);
        }
        if let Some(values) = object.get("enum").and_then(items) {
            return Shape::Literals(values.into_iter().map(literal).collect());
        }
        if let Some(reference) = object.text("$ref") {
            return match self.resolve(&reference) {
                Some(target) => self.shape(target, objects, depth + 1),
                None => Shape::LeftOut,
            };
        }
        let open = object.get("properties").is_none();
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = object.get(keyword).and_then(items).filter(|_| open) {
                let shapes = branches
                    .into_iter()
                    .map(|branch| self.shape(branch, objects, depth + 1))
                    .collect();
                // Branches that only say which members belong together have no type.
                match union(shapes) {
                    Shape::Any => {}
                    shape => return shape,
                }
            }
        }
        match object.get("type") {
            Some(kind) => match text(kind) {
                Some(kind) => self.named(&kind, schema, object, objects, depth),
                None => union(
                    items(kind)
                        .unwrap_or_default()
                        .into_iter()
                        .filter_map(text)
                        .map(|kind| self.named(&kind, schema, object, objects, depth))
                        .collect(),
                ),
            },
            None if !open => self.named("object", schema, object, objects, depth),
            None if object.get("items").is_some() => {
                self.named("array", schema, object, objects, depth)
            }
            None => self.all_of(schema, object, objects, depth),
        }
    }

    fn named(
        &self,
        kind: &str,
        schema: &'a RawValue,
        object: &Object<'a>,
        objects: usize,
        depth: usize,
    ) -> Shape {
        match kind {
            "string" => match object.text("format").as_deref() {
                Some("date") => Shape::Plain("string<date>"),
                Some("date-time") => Shape::Plain("string<date-time>"),
                _ => Shape::Plain("string"),
            },
            "number" => Shape::Plain("number"),
            "integer" => Shape::Plain("integer"),
            "boolean" => Shape::Plain("boolean"),
            "null" => Shape::Plain("null"),
            "array" => {
                let tuple = object
                    .get("prefixItems")
                    .or_else(|| object.get("items"))
                    .and_then(items);
                match (tuple, object.get("items")) {
                    (Some(parts), _) if !parts.is_empty() => Shape::Tuple(
                        parts
                            .into_iter()
                            .map(|part| self.shape(part, objects, depth + 1))
                            .collect(),
                    ),
                    (None, Some(item)) => {
                        Shape::List(Box::new(self.shape(item, objects, depth + 1)))
                    }
                    _ => Shape::List(Box::new(Shape::Any)),
                }
            }
            "object" => self.record(schema, object, objects, depth),
            _ => Shape::Any,
        }
    }

    fn record(
        &self,
        schema: &'a RawValue,
        object: &Object<'a>,
        objects: usize,
        depth: usize,
    ) -> Shape {
        let described = ["properties", "allOf"]
            .iter()
            .any(|keyword| object.get(keyword).is_some());
        if described && objects == 0 {
            return Shape::Closed;
        }
        if described
            && let Some(members) = self.members(schema, objects - 1, depth)
            && !members.is_empty()
        {
            return Shape::Record(members);
        }
        match object.get("additionalProperties") {
            Some(values) if values.get().starts_with('{') => match self.shape(values, 0, depth + 1)
            {
                Shape::Any => Shape::Plain("object"),
                shape => Shape::Map(Box::new(shape)),
            },
            _ => Shape::Plain("object"),
        }
    }

    fn all_of(
        &self,
        schema: &'a RawValue,
        object: &Object<'a>,
        objects: usize,
        depth: usize,
    ) -> Shape {
        let Some(parts) = object.get("allOf").and_then(items) else {
            return Shape::Any;
        };
        let shapes: Vec<_> = parts
            .into_iter()
            .map(|part| self.shape(part, objects, depth + 1))
            .collect();
        if shapes
            .iter()
            .filter(|shape| matches!(shape, Shape::Record(_) | Shape::Closed))
            .count()
            > 1
        {
            return self.record(schema, object, objects, depth);
        }
        shapes
            .into_iter()
            .find(|shape| *shape != Shape::Any)
            .unwrap_or(Shape::Any)
    }

    /// The members from `properties`, from references, and from all parts of `allOf`.
    fn members(&self, schema: &'a RawValue, objects: usize, depth: usize) -> Option<Vec<Member>> {
        let mut members = Vec::new();
        let mut required = Vec::new();
        self.gather(schema, objects, depth, &mut members, &mut required)?;
        for name in required {
            match members.iter_mut().find(|member| member.name == name) {
                Some(member) => member.required = true,
                None => members.push(Member {
                    name,
                    required: true,
                    shape: Shape::Any,
                }),
            }
        }
        members.sort_by_key(|member| !member.required);
        for member in members.iter_mut().filter(|member| !member.required) {
            member.shape = without_null(std::mem::replace(&mut member.shape, Shape::Any));
        }
        Some(members)
    }

    fn gather(
        &self,
        schema: &'a RawValue,
        objects: usize,
        depth: usize,
        members: &mut Vec<Member>,
        required: &mut Vec<String>,
    ) -> Option<()> {
        let object = self.open(schema, depth).ok()?;
        if let Some(Ok(properties)) = object.get("properties").map(Object::parse) {
            for (name, schema) in properties.iter() {
                let shape = self.shape(schema, objects, depth + 1);
                members.push(Member {
                    name: name.into_owned(),
                    required: false,
                    shape,
                });
            }
        }
        required.extend(
            object
                .get("required")
                .and_then(items)
                .into_iter()
                .flatten()
                .filter_map(text),
        );
        if let Some(target) = object
            .text("$ref")
            .and_then(|reference| self.resolve(&reference))
        {
            self.gather(target, objects, depth + 1, members, required);
        }
        for part in object.get("allOf").and_then(items).into_iter().flatten() {
            self.gather(part, objects, depth + 1, members, required);
        }
        Some(())
    }
}

fn literal(value: &RawValue) -> String {
    visible(value.get())
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
