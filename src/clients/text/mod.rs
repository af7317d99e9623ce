//! A client's file as editable text: an edit leaves everything else unchanged byte for byte.
//!
//! Each syntax has its own way of editing. The result is checked here: the new text is parsed again and must equal the
//! old one with this one change, otherwise the edit is refused. So an unforeseen way of writing a file costs an edit,
//! never a file.

mod aside;
mod error;
mod json;
mod toml;
mod yaml;

use std::sync::Arc;

use super::node::Node;
use aside::Aside;
pub(super) use aside::is_mark;
use error::EditError;
pub(crate) use error::TextError;

/// The syntax of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// JSON with comments and trailing commas.
    Json,
    /// JSON of which only the parts about servers are read: Claude Code keeps other data in the file.
    ClaudeJson,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// A file's text with its parsed content; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    syntax: Syntax,
    /// The text, with placeholders for the parts that are set aside.
    text: Arc<String>,
    aside: Arc<Aside>,
    node: Arc<Node>,
}

impl Syntax {
    /// Its name in records.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::ClaudeJson => "claude-json",
            Self::Toml => "toml",
            Self::Yaml => "yaml",
        }
    }

    /// The syntax with this name.
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Json, Self::ClaudeJson, Self::Toml, Self::Yaml]
            .into_iter()
            .find(|syntax| syntax.name() == name)
    }
}

impl Text {
    /// Parses `text`, with or without a byte order mark; an empty one is an empty map.
    ///
    /// # Errors
    /// When it is invalid in its syntax.
    pub(crate) fn parse(syntax: Syntax, text: &str) -> Result<Self, TextError> {
        Self::read(syntax, &Arc::new(text.to_owned()))
    }

    /// Like [`Text::parse`], for a shared text.
    ///
    /// # Errors
    /// Those of [`Text::parse`].
    pub(super) fn read(syntax: Syntax, text: &Arc<String>) -> Result<Self, TextError> {
        let (short, aside) = match syntax {
            Syntax::Json | Syntax::ClaudeJson => {
                let (short, aside) = Aside::of(text, syntax == Syntax::ClaudeJson);
                (Arc::new(short), aside)
            }
            Syntax::Toml | Syntax::Yaml => (Arc::clone(text), Aside::default()),
        };
        Self::of(syntax, short, Arc::new(aside))
    }

    fn of(syntax: Syntax, text: Arc<String>, aside: Arc<Aside>) -> Result<Self, TextError> {
        let plain = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let node = match syntax {
            Syntax::Json | Syntax::ClaudeJson => json::read(plain),
            Syntax::Toml => toml::read(plain),
            Syntax::Yaml => yaml::read(plain),
        };
        let node = Arc::new(node?);
        Ok(Self {
            syntax,
            text,
            aside,
            node,
        })
    }

    /// The parsed content.
    #[must_use]
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// The text as it is written to the file.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        self.aside.restore(&self.text)
    }

    /// The text for display, with placeholders for the parts that are not read.
    pub(super) fn shown(&self) -> &Arc<String> {
        &self.text
    }

    /// Sets the value at `path`: replaces the present value, or appends it to its neighbours.
    ///
    /// # Errors
    /// When the text is written in a way that cannot be edited. It is unchanged then.
    pub(crate) fn set(&mut self, path: &[String], value: &Node) -> Result<(), TextError> {
        let mut wanted = Node::clone(&self.node);
        if !wanted.set(path, value.clone()) {
            return Err(refused(path, EditError::Scalar));
        }
        self.change(path, &wanted, |syntax, plain| match syntax {
            Syntax::Json | Syntax::ClaudeJson => json::set(plain, path, value),
            Syntax::Toml => toml::set(plain, path, value),
            Syntax::Yaml => yaml::set(plain, path, value),
        })
    }

    /// Removes the value at `path`, if there is one.
    ///
    /// # Errors
    /// Those of [`Text::set`].
    pub(crate) fn remove(&mut self, path: &[String]) -> Result<(), TextError> {
        self.remove_all(&[path.to_vec()])
    }

    /// Takes away what stands at any of `paths`. A large text is read once for all of them.
    ///
    /// # Errors
    /// As for [`Text::set`].
    pub(crate) fn remove_all(&mut self, paths: &[Vec<String>]) -> Result<(), TextError> {
        let mut wanted = Node::clone(&self.node);
        let there = paths.iter().filter(|path| self.node.at(path).is_some());
        let there: Vec<Vec<String>> = there.cloned().collect();
        let Some(first) = there.first() else {
            return Ok(());
        };
        there.iter().for_each(|path| wanted.remove(path));
        let each = |plain: &str, remove: fn(&str, &[String]) -> Result<String, EditError>| {
            let mut paths = there.iter();
            paths.try_fold(plain.to_owned(), |text, path| remove(&text, path))
        };
        self.change(first, &wanted, |syntax, plain| match syntax {
            Syntax::Json | Syntax::ClaudeJson => json::remove(plain, &there),
            Syntax::Toml => each(plain, toml::remove),
            Syntax::Yaml => each(plain, yaml::remove),
        })
    }

    fn change(
        &mut self,
        path: &[String],
        wanted: &Node,
        edit: impl FnOnce(Syntax, &str) -> Result<String, EditError>,
    ) -> Result<(), TextError> {
        let mark = if self.text.starts_with('\u{feff}') {
            "\u{feff}"
        } else {
            ""
        };
        let edited = edit(self.syntax, &self.text[mark.len()..])
            .map_err(|problem| refused(path, problem))?;
        let is_right = |new: &Self| new.node.is_same(wanted);
        let edited = Arc::new(format!("{mark}{edited}"));
        let new = Self::of(self.syntax, edited, Arc::clone(&self.aside))
            .ok()
            .filter(is_right);
        *self = new.ok_or_else(|| refused(path, EditError::Unintended))?;
        Ok(())
    }
}

fn refused(path: &[String], problem: EditError) -> TextError {
    TextError::Edit {
        key: path.join("."),
        problem,
    }
}

/// The text with `\n` as its only line end, and whether every line ended in `\r\n` before.
///
/// # Errors
/// When it has both.
fn unified(text: &str) -> Result<(String, bool), EditError> {
    let (all, windows) = (text.matches('\n').count(), text.matches("\r\n").count());
    match windows {
        0 => Ok((text.to_owned(), false)),
        _ if windows == all => Ok((text.replace("\r\n", "\n"), true)),
        _ => Err(EditError::LineEnds),
    }
}
