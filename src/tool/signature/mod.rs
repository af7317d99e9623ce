//! A tool as one line that shows how to call it: `github__create_issue(owner: string, body?: string) [write]`.
//!
//! Search hits, errors and the command line show the same line. It has a token budget. Required parameters keep their
//! types and enums even over budget; optional ones become `…`, and the description is cut before a parameter is.
//! Tokens are estimated, because loading a tokenizer's tables takes longer than a search.

mod reader;
mod sentence;
mod shape;
mod tokens;

use std::fmt;

use serde_json::value::RawValue;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use sentence::first_sentence;
#[cfg(not(any(test, feature = "fuzzing")))]
use sentence::first_sentence;
use sentence::{cut, visible};
use shape::{Detail, Member, Members};
use tokens::estimate;
pub use tokens::tokens_of;

use crate::tool::{Definition, SEPARATOR, ServerName};

/// The token budget of one hit, unless its required parameters need more.
const HIT: usize = 76;
/// The token limit of required parameters; beyond it even these are cut.
const REQUIRED: usize = 150;
/// The minimum tokens for the description, regardless of the signature's length.
const SENTENCE: usize = 16;

const OPTIONAL_FULL: Detail = Detail {
    literals: 70,
    members: Members::All,
};
const OPTIONAL_SHORT: Detail = Detail {
    literals: 24,
    members: Members::None,
};
/// The levels of detail for required parameters, from full to least.
const REQUIRED_STEPS: [Detail; 5] = [
    Detail {
        literals: 400,
        members: Members::All,
    },
    Detail {
        literals: 400,
        members: Members::Few,
    },
    Detail {
        literals: 400,
        members: Members::Required,
    },
    Detail {
        literals: 100,
        members: Members::Required,
    },
    Detail {
        literals: 24,
        members: Members::None,
    },
];

/// A tool's name, parameters and label, ready to be rendered at any length.
#[derive(Debug, Clone)]
pub(crate) struct Signature {
    name: String,
    members: Vec<Member>,
    label: Option<&'static str>,
}

impl Signature {
    /// Creates the signature of a server's tool.
    #[must_use]
    pub(crate) fn of(server: &ServerName, definition: &Definition<'_>) -> Self {
        Self {
            name: format!(
                "{server}{SEPARATOR}{}",
                visible(definition.name.as_str()).replace('\n', " ")
            ),
            members: definition
                .input_schema
                .map(reader::parameters)
                .unwrap_or_default(),
            label: definition.hints.label(),
        }
    }

    /// Renders the signature in about `tokens` tokens. Required parameters may exceed that, up to about `required`.
    fn render(&self, tokens: usize, required: usize) -> String {
        let (needed, optional) = self
            .members
            .split_at(self.members.partition_point(|member| member.required));
        let frame = estimate(&self.name) + 1 + self.label.map_or(0, |_| 3);
        let mut detail = REQUIRED_STEPS[0];
        for step in REQUIRED_STEPS {
            detail = step;
            if frame + cost(needed, step)
                <= if matches!(step.members, Members::All | Members::Few) {
                    tokens
                } else {
                    required
                }
            {
                break;
            }
        }
        let mut parts: Vec<String> = Vec::with_capacity(self.members.len());
        let mut used = frame;
        let mut left_out = false;
        for member in needed {
            let part = written(member, detail);
            let part_cost = estimate(&part) + 1;
            left_out = left_out || used + part_cost > required;
            if !left_out {
                used += part_cost;
                parts.push(part);
            }
        }
        left_out |= self.fill(optional, tokens.saturating_sub(used), &mut parts);
        if left_out {
            parts.push("…".to_owned());
        }
        let mut out = format!("{}({})", self.name, parts.join(", "));
        if let Some(label) = self.label {
            out.push_str(&format!(" [{label}]"));
        }
        out
    }

    /// Appends as many of `optional` as fit into `room` tokens: every name before any detail. Returns whether some
    /// are missing.
    fn fill(&self, optional: &[Member], mut room: usize, parts: &mut Vec<String>) -> bool {
        if cost(optional, OPTIONAL_FULL) <= room {
            parts.extend(optional.iter().map(|member| written(member, OPTIONAL_FULL)));
            return false;
        }
        let short = cost(optional, OPTIONAL_SHORT);
        // The tokens left after the short forms go to the first members that can use them.
        let mut spare = room.saturating_sub(short);
        let all_fit = short <= room;
        let mut missing = false;
        for member in optional {
            let brief = written(member, OPTIONAL_SHORT);
            let full = written(member, OPTIONAL_FULL);
            let extra = estimate(&full).saturating_sub(estimate(&brief));
            if all_fit && extra <= spare {
                spare -= extra;
                parts.push(full);
            } else if all_fit || estimate(&brief) + 2 <= room {
                room = room.saturating_sub(estimate(&brief) + 1);
                parts.push(brief);
            } else {
                missing = true;
            }
        }
        missing
    }
}

impl fmt::Display for Signature {
    /// Renders the signature at its length in a search hit without a description.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(HIT, REQUIRED))
    }
}

fn written(member: &Member, detail: Detail) -> String {
    let mut out = String::new();
    member.write(detail, &mut out);
    out
}

fn cost(members: &[Member], detail: Detail) -> usize {
    members
        .iter()
        .map(|member| estimate(&written(member, detail)) + 1)
        .sum()
}

/// The type expression of `schema`, as in signatures. Local references are resolved in `root`.
#[must_use]
pub(crate) fn type_expression(schema: &RawValue, root: &RawValue) -> String {
    reader::type_of(
        schema,
        root,
        Detail {
            literals: 200,
            members: Members::Few,
        },
    )
}

/// The JSON pointer of a schema's local reference; `None` for any other reference.
#[must_use]
pub(crate) fn local_pointer(reference: &str) -> Option<String> {
    reader::pointer(reference).filter(|pointer| pointer.is_empty() || pointer.starts_with('/'))
}

/// A tool as one search hit: its signature, and indented below it the first sentence of its description.
#[must_use]
pub fn render_hit(server: &ServerName, definition: &Definition<'_>) -> String {
    hit(server, definition, HIT, REQUIRED)
}

/// The tools as hits, one text each, in about `tokens` tokens together (the estimate is rather high).
///
/// Tokens that short hits do not need go to the long ones. Required parameters are cut only if all hits together are
/// too long.
#[must_use]
pub fn render_hits<'a, 'd: 'a>(
    tools: impl IntoIterator<Item = (&'a ServerName, &'a Definition<'d>)>,
    tokens: usize,
) -> Vec<String> {
    // A margin: the estimate can be too low, mainly for words in capitals.
    let tokens = tokens - tokens / 20;
    let tools: Vec<_> = tools.into_iter().collect();
    let mut hits: Vec<_> = tools
        .iter()
        .map(|(server, definition)| render_hit(server, definition))
        .collect();
    let costs: Vec<_> = hits.iter().map(|hit| estimate(hit) + 1).collect();
    if costs.iter().sum::<usize>() > tokens {
        let limit = fair_limit(&costs, tokens);
        for (at, (server, definition)) in tools
            .iter()
            .enumerate()
            .filter(|(at, _)| costs[*at] > limit)
        {
            hits[at] = hit(
                server,
                definition,
                limit.saturating_sub(1),
                limit.saturating_sub(SENTENCE + 2),
            );
        }
    }
    hits
}

/// The largest limit per hit with which all hits together stay within `tokens`.
fn fair_limit(costs: &[usize], tokens: usize) -> usize {
    let mut sorted = costs.to_vec();
    sorted.sort_unstable();
    let mut left = tokens;
    for (at, cost) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - at);
        if *cost > share {
            return share;
        }
        left -= cost;
    }
    tokens
}

fn hit(server: &ServerName, definition: &Definition<'_>, tokens: usize, required: usize) -> String {
    let signature = Signature::of(server, definition);
    let sentence = first_sentence(&definition.description);
    if sentence.is_empty() {
        return signature.render(tokens, required);
    }
    // The line break with the indentation is one token.
    let whole = estimate(&sentence) + 1;
    let reserved = whole.min(SENTENCE.max(tokens / 3));
    let line = signature.render(tokens.saturating_sub(reserved), required);
    let room = tokens.saturating_sub(estimate(&line)).max(SENTENCE);
    let sentence = if whole <= room {
        sentence
    } else {
        cut(&sentence, usize::MAX, room - 2)
    };
    format!("{line}\n  {sentence}")
}

#[cfg(test)]
mod tests;
