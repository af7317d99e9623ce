//! Fills the user's values into the registry's texts, in the syntax of the configuration.

use super::{Given, Input, is_bare, label};
use crate::registry::wire::{self, Argument, Named};

/// The values to fill in.
pub(super) struct Fill<'a> {
    pub(super) inputs: &'a [Input],
    pub(super) given: &'a Given,
}

/// A part of a text.
#[derive(Debug, Clone)]
enum Piece {
    /// The registry's text, which is taken literally.
    Literal(String),
    /// The user's value or a reference to a variable, in the syntax of the configuration.
    Written(String),
}

impl Fill<'_> {
    pub(super) fn named(&self, variables: &[Named]) -> Vec<(String, String)> {
        let value = |variable: &Named| match variable.input.value {
            Some(_) => self.value(&variable.input),
            None => self
                .input(&variable.name)
                .into_iter()
                .next()
                .map(|piece| written(vec![piece])),
        };
        variables
            .iter()
            .filter_map(|variable| Some((variable.name.clone(), value(variable)?)))
            .collect()
    }

    pub(super) fn arguments(&self, arguments: &[Argument]) -> Vec<String> {
        let mut line = Vec::new();
        for argument in arguments {
            let values: Vec<String> = match argument.input.value {
                Some(_) => self.value(&argument.input).into_iter().collect(),
                None => self
                    .input(&label(argument))
                    .into_iter()
                    .map(|piece| written(vec![piece]))
                    .collect(),
            };
            let name = argument
                .name
                .as_deref()
                .filter(|_| argument.kind == "named");
            match name.map(|name| written(vec![Piece::Literal(name.to_owned())])) {
                None => line.extend(values),
                // A flag without a value.
                Some(name) if is_bare(argument) => {
                    line.extend(Some(name).filter(|_| argument.input.is_required == Some(true)));
                }
                Some(name) => {
                    for value in values {
                        line.push(name.clone());
                        line.extend(Some(value).filter(|value| !value.is_empty()));
                    }
                }
            }
        }
        line
    }

    /// The user's value, or else the default.
    fn input(&self, name: &str) -> Vec<Piece> {
        let Some(input) = self.inputs.iter().find(|input| input.name == name) else {
            return Vec::new();
        };
        let given = self.given.get(name).map(Vec::as_slice).unwrap_or_default();
        if input.is_secret {
            // A value that is not a reference is not written to the file.
            let own = given.iter().find(|value| value.contains("${")).cloned();
            let reference = (input.is_required || !given.is_empty())
                .then(|| format!("${{{}}}", input.variable));
            return own.or(reference).map(Piece::Written).into_iter().collect();
        }
        match (given, &input.default) {
            ([], Some(default)) => vec![Piece::Literal(default.clone())],
            (given, _) if input.is_repeated => given.iter().cloned().map(Piece::Written).collect(),
            (given, _) => given.iter().take(1).cloned().map(Piece::Written).collect(),
        }
    }

    /// The registry's value with its variables filled in. `None` if one of them has no value.
    pub(super) fn value(&self, input: &wire::Input) -> Option<String> {
        let mut rest = input.value.as_deref()?;
        let mut pieces = Vec::new();
        while let Some((before, after)) = rest.split_once('{') {
            pieces.push(Piece::Literal(before.to_owned()));
            let named = after.split_once('}').and_then(|(name, after)| {
                Some((name, input.variables.as_ref()?.get(name)?, after))
            });
            rest = match named {
                Some((name, inner, after)) => {
                    pieces.push(match &inner.value {
                        Some(value) => Piece::Literal(value.clone()),
                        None => self.input(name).into_iter().next()?,
                    });
                    after
                }
                None => {
                    pieces.push(Piece::Literal("{".to_owned()));
                    after
                }
            };
        }
        pieces.push(Piece::Literal(rest.to_owned()));
        Some(written(pieces))
    }
}

/// A text in the syntax of the configuration. Literal pieces are joined first, because two of them may make a `${`, as
/// may a user's value and the literal after it.
fn written(pieces: Vec<Piece>) -> String {
    let (mut text, mut literal) = (String::new(), String::new());
    for piece in pieces {
        match piece {
            Piece::Literal(piece) => literal.push_str(&piece),
            Piece::Written(piece) => {
                append_literal(&mut text, &std::mem::take(&mut literal));
                text.push_str(&piece);
            }
        }
    }
    append_literal(&mut text, &literal);
    text
}

fn append_literal(text: &mut String, literal: &str) {
    if text.ends_with('$') && literal.starts_with('{') {
        text.push('$');
    }
    text.push_str(&literal.replace("${", "$${"));
}
