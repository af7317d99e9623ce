//! Selections: the members that a query returns.

use std::collections::BTreeMap;

use super::types::{Field, Input, Type};

/// The maximum number of members of one object that are selected without a request.
const MOST_MEMBERS: usize = 24;

/// The maximum length of a selection that mcpzip makes, in bytes.
const LONGEST: usize = 1500;

/// Members that say which object is meant.
const IDENTIFYING: &[&str] = &[
    "id",
    "name",
    "login",
    "title",
    "number",
    "key",
    "slug",
    "url",
    "state",
    "nameWithOwner",
    "oid",
    "email",
];

/// Makes the usual selections of types.
#[derive(Debug)]
pub(super) struct Selector<'s> {
    types: &'s BTreeMap<&'s str, &'s Type>,
}

impl<'s> Selector<'s> {
    pub(super) fn new(types: &'s BTreeMap<&'s str, &'s Type>) -> Self {
        Self { types }
    }

    /// The usual selection of a type, without the braces around it; empty for a scalar. It has the scalars of the object, those
    /// that identify the objects in it, and the scalars of a list's items.
    pub(super) fn usual(&self, name: &str) -> String {
        let Some(one) = self.types.get(name).filter(|one| !one.is_leaf()) else {
            return String::new();
        };
        let whole = self.members(one, 2);
        match whole.len() <= LONGEST {
            true => whole,
            false => self.members(one, 0),
        }
    }

    fn members(&self, one: &Type, depth: usize) -> String {
        let Some(fields) = &one.fields else {
            return self.alternatives(one);
        };
        let free = || {
            fields
                .iter()
                .filter(|field| !field.args.iter().any(Input::is_required))
        };
        let leaves = free()
            .filter(|field| self.is_leaf(field))
            .map(|field| field.name.clone());
        let mut members: Vec<String> = leaves.take(MOST_MEMBERS).collect();
        let has_own = members.iter().any(|name| name != "clientMutationId");
        if depth > 0 {
            for field in free()
                .filter(|field| !self.is_leaf(field))
                .take(MOST_MEMBERS)
            {
                let Some(inner) = self.types.get(field.kind.named()) else {
                    continue;
                };
                let is_list = matches!(field.name.as_str(), "nodes" | "items" | "pageInfo");
                let selected = if is_list || !has_own {
                    self.members(inner, depth - 1)
                } else {
                    self.identity(inner)
                };
                if !selected.is_empty() {
                    members.push(format!("{} {{ {selected} }}", field.name));
                }
            }
        }
        if members.is_empty() {
            members.push("__typename".to_owned());
        }
        members.join(" ")
    }

    /// The members that identify an object.
    fn identity(&self, one: &Type) -> String {
        let fields = one.fields.iter().flatten();
        let known = fields.filter(|field| {
            IDENTIFYING.contains(&field.name.as_str())
                && field.args.is_empty()
                && self.is_leaf(field)
        });
        known
            .map(|field| field.name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The members of a union: the type, and what identifies each.
    fn alternatives(&self, one: &Type) -> String {
        let mut members = vec!["__typename".to_owned()];
        for name in one.possible().take(MOST_MEMBERS) {
            let fields = self.types.get(name).and_then(|one| one.fields.as_ref());
            // Members of one name must have one type in all alternatives, which `id` has.
            if fields.is_some_and(|fields| fields.iter().any(|field| field.name == "id")) {
                members.push(format!("... on {name} {{ id }}"));
            }
        }
        members.join(" ")
    }

    fn is_leaf(&self, field: &Field) -> bool {
        self.types
            .get(field.kind.named())
            .is_some_and(|one| one.is_leaf())
    }
}

/// Checks that a selection stays within its braces: otherwise it could ask for fields that rules deny.
///
/// # Errors
/// The reason why it does not.
pub(super) fn check(selection: &str) -> Result<&str, String> {
    let (mut depth, mut text) = (0_usize, selection.chars().peekable());
    if selection.contains("\"\"\"") || selection.contains('#') {
        return Err("the selection must not have comments or block texts".to_owned());
    }
    while let Some(c) = text.next() {
        match c {
            '"' => loop {
                match text.next() {
                    Some('\\') => {
                        text.next();
                    }
                    Some('"') => break,
                    Some('\n') | None => {
                        return Err("a string in the selection has no end".to_owned());
                    }
                    Some(_) => {}
                }
            },
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or("the selection closes a brace that it does not open")?;
            }
            _ => {}
        }
    }
    match (depth, selection.trim()) {
        (0, "") => Err("the selection is empty".to_owned()),
        (0, selection) => Ok(selection),
        _ => Err("the selection opens a brace that it does not close".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_stays_within_its_braces() {
        for good in [
            "id",
            "id author { login }",
            "a(b: \"}\\\"\") { c }",
            "... on User { id }",
        ] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            " ",
            "id } viewer { id",
            "id { a",
            "id # }",
            "a(b: \"\"\"}\"\"\")",
            "a(b: \"x",
            "id) }",
            "a ] {",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
