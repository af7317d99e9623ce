//! Short type expressions: `{state: "open"|"closed", labels?: string[]}`.
//!
//! An unknown type is `any`; an omitted part is `…`.

use super::sentence::visible;

/// The values that a schema accepts, as far as a signature shows them.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Any,
    Plain(&'static str),
    /// An enum or a constant: each value as JSON.
    Literals(Vec<String>),
    Union(Vec<Shape>),
    List(Box<Shape>),
    Tuple(Vec<Shape>),
    Record(Vec<Member>),
    Map(Box<Shape>),
    /// An object whose members are not listed.
    Closed,
    LeftOut,
}

/// A parameter, or a member of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) shape: Shape,
}

/// The level of detail; the rest becomes `…`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Detail {
    /// The maximum number of characters of an enum's values.
    pub(super) literals: usize,
    /// The members of a nested object to write.
    pub(super) members: Members,
}

/// The members of a nested object to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Members {
    All,
    /// The required ones and the first few others.
    Few,
    Required,
    None,
}

impl Members {
    fn show(self, member: &Member, at: usize) -> bool {
        match self {
            Self::All => true,
            Self::Few => member.required || at < 4,
            Self::Required => member.required,
            Self::None => false,
        }
    }
}

/// The union of `shapes`, with `null` last.
pub(super) fn union(shapes: Vec<Shape>) -> Shape {
    let mut flat: Vec<Shape> = Vec::new();
    for shape in shapes {
        let parts = if let Shape::Union(parts) = shape {
            parts
        } else {
            vec![shape]
        };
        for part in parts {
            if flat.contains(&part) {
                continue;
            }
            match (flat.last_mut(), part) {
                (Some(Shape::Literals(known)), Shape::Literals(more)) => known.extend(more),
                (_, part) => flat.push(part),
            }
        }
    }
    if flat.contains(&Shape::Any) {
        return Shape::Any;
    }
    flat.sort_by_key(|shape| *shape == Shape::Plain("null"));
    if flat.len() == 1 {
        flat.remove(0)
    } else if flat.is_empty() {
        Shape::Any
    } else {
        Shape::Union(flat)
    }
}

/// Removes `null` from the type of an optional parameter, which can be omitted instead.
pub(super) fn without_null(shape: Shape) -> Shape {
    match shape {
        Shape::Union(parts) => union(
            parts
                .into_iter()
                .filter(|part| *part != Shape::Plain("null"))
                .collect(),
        ),
        Shape::Literals(mut values) if values.len() > 1 => {
            values.retain(|value| value != "null");
            Shape::Literals(values)
        }
        shape => shape,
    }
}

impl Shape {
    pub(super) fn write(&self, detail: Detail, out: &mut String) {
        match self {
            Self::Any => out.push_str("any"),
            Self::Plain(name) => out.push_str(name),
            Self::Literals(values) => write_literals(values, detail.literals, out),
            Self::Union(parts) => {
                // Objects that differ only in omitted parts have the same text.
                let mut texts: Vec<String> = Vec::with_capacity(parts.len());
                for part in parts {
                    let mut text = String::new();
                    part.write(detail, &mut text);
                    if !texts.contains(&text) {
                        texts.push(text);
                    }
                }
                out.push_str(&texts.join("|"));
            }
            Self::List(item) => {
                let grouped = matches!(&**item, Self::Union(_))
                    || matches!(&**item, Self::Literals(v) if v.len() > 1);
                out.push_str(if grouped { "(" } else { "" });
                item.write(detail, out);
                out.push_str(if grouped { ")[]" } else { "[]" });
            }
            Self::Tuple(parts) => {
                out.push('[');
                separated(parts, ", ", out, |part, out| part.write(detail, out));
                out.push(']');
            }
            Self::Record(members) => {
                let shown: Vec<_> = members
                    .iter()
                    .enumerate()
                    .filter(|(at, member)| detail.members.show(member, *at))
                    .map(|(_, member)| member)
                    .collect();
                out.push('{');
                separated(&shown, ", ", out, |member, out| member.write(detail, out));
                if shown.len() < members.len() {
                    out.push_str(if shown.is_empty() { "…" } else { ", …" });
                }
                out.push('}');
            }
            Self::Map(values) => {
                out.push_str("{[key]: ");
                values.write(detail, out);
                out.push('}');
            }
            Self::Closed => out.push_str("{…}"),
            Self::LeftOut => out.push('…'),
        }
    }
}

impl Member {
    pub(super) fn write(&self, detail: Detail, out: &mut String) {
        let plain = !self.name.is_empty()
            && !self
                .name
                .contains(|c: char| c.is_whitespace() || ",:?(){}[]\"…".contains(c));
        if plain {
            out.push_str(&visible(&self.name));
        } else {
            out.push_str(&visible(
                &serde_json::Value::from(self.name.as_str()).to_string(),
            ));
        }
        out.push_str(if self.required { ": " } else { "?: " });
        self.shape.write(detail, out);
    }
}

fn write_literals(values: &[String], limit: usize, out: &mut String) {
    let mut length = 0;
    for (at, value) in values.iter().enumerate() {
        length += value.chars().count() + 1;
        if at > 0 {
            out.push('|');
        }
        if length > limit {
            out.push('…');
            return;
        }
        out.push_str(value);
    }
    if values.is_empty() {
        out.push_str("any");
    }
}

fn separated<T>(
    parts: &[T],
    separator: &str,
    out: &mut String,
    mut write: impl FnMut(&T, &mut String),
) {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        write(part, out);
    }
}
