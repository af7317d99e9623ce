//! The content of a YAML text with positions.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::Location;
use crate::clients::node::Node;
use crate::clients::text::error::SyntaxError;

/// The deepest nesting that is read.
const DEEPEST: usize = 64;

/// A value and its position; lines and columns from 0.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) kind: Kind,
    pub(super) is_flow: bool,
    line: usize,
    /// The column of the dash before it, for an item that starts on the dash's line.
    dash: Option<usize>,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Scalar(Node),
    List(Vec<Tree>),
    Map(Vec<Member>),
}

#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) key: String,
    line: usize,
    pub(super) column: usize,
    key_end: usize,
    value: Tree,
}

impl Tree {
    /// Parses a text with one document, whose lines end in `\n`.
    pub(super) fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut reader = Reader {
            text,
            events: Parser::new_from_str(text),
            anchors: BTreeMap::new(),
        };
        let mut root = None;
        while let Some((event, span)) = reader.next()? {
            match event {
                Event::StreamStart
                | Event::DocumentStart(_)
                | Event::DocumentEnd
                | Event::Nothing => {}
                Event::StreamEnd => break,
                event if root.is_none() => root = Some(reader.tree(event, span, 0)?),
                _ => return Err(SyntaxError::Documents),
            }
        }
        Ok(root.unwrap_or(Self {
            kind: Kind::Scalar(Node::Null),
            is_flow: false,
            line: 0,
            dash: None,
        }))
    }

    pub(super) fn node(&self) -> Node {
        match &self.kind {
            Kind::Scalar(node) => node.clone(),
            Kind::List(items) => Node::List(items.iter().map(Self::node).collect()),
            Kind::Map(members) => Node::Map(
                members
                    .iter()
                    .map(|member| (member.key.clone(), member.value.node()))
                    .collect(),
            ),
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.kind {
            Kind::Scalar(_) => 0,
            Kind::List(items) => items.len(),
            Kind::Map(members) => members.len(),
        }
    }

    /// Its position as an item of a list.
    pub(super) fn location(&self) -> Option<Location<'_>> {
        Some(Location {
            line: self.line,
            column: self.dash?,
            key_end: 0,
            in_list: true,
            value: self,
        })
    }
}

impl Member {
    pub(super) fn location(&self) -> Location<'_> {
        Location {
            line: self.line,
            column: self.column,
            key_end: self.key_end,
            in_list: false,
            value: &self.value,
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    events: Parser<'t, saphyr_parser::StrInput<'t>>,
    anchors: BTreeMap<usize, Node>,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, SyntaxError> {
        let event = self.events.next_event().transpose();
        event.map_err(|error| {
            let at = error.marker();
            SyntaxError::Yaml {
                line: at.line(),
                column: at.col() + 1,
                problem: error.info().to_owned(),
            }
        })
    }

    fn tree(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Tree, SyntaxError> {
        if depth > DEEPEST {
            return Err(SyntaxError::Depth { limit: DEEPEST });
        }
        let (line, column) = (span.start.line().saturating_sub(1), span.start.col());
        let (anchor, kind) = match event {
            Event::Scalar(text, style, anchor, _) => (anchor, Kind::Scalar(scalar(&text, style))),
            Event::Alias(id) => (
                0,
                Kind::Scalar(self.anchors.get(&id).cloned().unwrap_or(Node::Null)),
            ),
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                while let Some((event, span)) = self.next()? {
                    if matches!(event, Event::SequenceEnd) {
                        break;
                    }
                    items.push(self.tree(event, span, depth + 1)?);
                }
                (anchor, Kind::List(items))
            }
            Event::MappingStart(anchor, _) => {
                let mut members = Vec::new();
                while let Some((event, span)) = self.next()? {
                    if matches!(event, Event::MappingEnd) {
                        break;
                    }
                    let key = self.tree(event, span, depth + 1)?;
                    let Some((event, value_span)) = self.next()? else {
                        break;
                    };
                    let value = self.tree(event, value_span, depth + 1)?;
                    members.push(Member {
                        key: match key.node() {
                            Node::Text(text) | Node::Number(text) => text,
                            other => other.to_json(),
                        },
                        line: span.start.line().saturating_sub(1),
                        column: span.start.col(),
                        key_end: span.end.col(),
                        value,
                    });
                }
                (anchor, Kind::Map(members))
            }
            other => {
                return Err(SyntaxError::Yaml {
                    line: line + 1,
                    column: column + 1,
                    problem: format!("{other:?} is out of place"),
                });
            }
        };
        let first = self.text.split('\n').nth(line).unwrap_or_default();
        let is_flow = match kind {
            Kind::Scalar(_) => false,
            _ => matches!(first.chars().nth(column), Some('{' | '[')),
        };
        let before: String = first.chars().take(column).collect();
        let dash = before
            .trim_end_matches(' ')
            .strip_suffix('-')
            .map(|indent| indent.chars().count());
        let dash = dash.filter(|_| before.trim_start_matches(' ').trim_end_matches(' ') == "-");
        let tree = Tree {
            kind,
            is_flow,
            line,
            dash,
        };
        if anchor > 0 {
            self.anchors.insert(anchor, tree.node());
        }
        Ok(tree)
    }
}

/// The value of a scalar by YAML's core schema.
fn scalar(text: &str, style: ScalarStyle) -> Node {
    if style != ScalarStyle::Plain {
        return Node::text(text);
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Node::Null,
        "true" | "True" | "TRUE" => Node::Flag(true),
        "false" | "False" | "FALSE" => Node::Flag(false),
        number
            if number.parse::<f64>().is_ok()
                && number.starts_with(|c: char| c.is_ascii_digit() || c == '-') =>
        {
            Node::Number(number.to_owned())
        }
        text => Node::text(text),
    }
}
