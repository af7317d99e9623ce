//! An HTTP interface: the keys `openapi`, `graphql`, `base_url`, `include`, `exclude` and `origins` of an entry.
//!
//! `include` and `exclude` restrict what agents may call, so a pattern that is not understood is a fault of the entry.

use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;

use globset::{Glob, GlobBuilder, GlobMatcher};

use super::error::EntryError;
use super::reader::{At, Field, Members};

/// The description of a server, and the operations of it that are tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenApi {
    /// The location of the description.
    pub description: DescriptionLocation,
    /// Whether the entry has a `base_url`. Otherwise the description's own URL decides where credentials go.
    pub has_base_url: bool,
    /// The operations that are tools; empty means all.
    pub include: Vec<OperationPattern>,
    /// The operations that are no tools.
    pub exclude: Vec<OperationPattern>,
    /// Further origins that the description may name, as the user permits.
    pub origins: Vec<String>,
}

/// The location of a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DescriptionLocation {
    /// A URL.
    Url(String),
    /// An absolute path.
    File(PathBuf),
    /// The interface itself, by GraphQL's introspection.
    Introspection,
}

/// A pattern of operations: a tool's name, a tag, a path, or a method and a path, with `*` and `?`.
#[derive(Clone)]
pub(crate) struct OperationPattern {
    written: String,
    method: Option<String>,
    glob: Glob,
    /// Compiled when a description is read: a start that needs none has no time for many patterns.
    matcher: OnceLock<GlobMatcher>,
}

impl fmt::Debug for OperationPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written.fmt(f)
    }
}

impl PartialEq for OperationPattern {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for OperationPattern {}

impl OperationPattern {
    /// Reads a pattern. `None` if it is not understood.
    fn parse(written: &str) -> Option<Self> {
        let words: Vec<&str> = written.split_whitespace().collect();
        let (method, pattern) = match words.as_slice() {
            [pattern] => (None, *pattern),
            [method, path] if path.starts_with(['/', '*']) => {
                (Some(method.to_ascii_uppercase()), *path)
            }
            // A tag may have spaces.
            [_, ..] => (None, written.trim()),
            [] => return None,
        };
        // `{id}` in a path is meant as it stands.
        let escaped = pattern.replace('{', "[{]").replace('}', "[}]");
        let glob = GlobBuilder::new(&escaped)
            .literal_separator(false)
            .build()
            .ok()?;
        Some(Self {
            written: written.to_owned(),
            method,
            glob,
            matcher: OnceLock::new(),
        })
    }

    /// Whether an operation matches.
    pub(crate) fn matches(&self, name: &str, method: &str, path: &str, tags: &[String]) -> bool {
        let matcher = self.matcher.get_or_init(|| self.glob.compile_matcher());
        match &self.method {
            Some(own) => (own == "*" || own.eq_ignore_ascii_case(method)) && matcher.is_match(path),
            None => {
                let mut all = [name, path]
                    .into_iter()
                    .chain(tags.iter().map(String::as_str));
                all.any(|text| matcher.is_match(text))
            }
        }
    }
}

/// The keys as written.
#[derive(Debug)]
pub(super) struct OpenApiEntry {
    /// The description; with `is_graphql`, the URL of the interface.
    pub(super) description: At<String>,
    pub(super) is_graphql: bool,
    pub(super) base_url: Option<At<String>>,
    pub(super) include: Vec<OperationPattern>,
    pub(super) exclude: Vec<OperationPattern>,
    pub(super) origins: Vec<At<String>>,
}

const PATTERNS: &str = "a list of names of tools, tags, paths, or methods with paths, like [\"issues_*\", \"GET /repos/*\"]";

/// Reads the keys of an entry. `None` if the entry has no description.
pub(super) fn read(members: &mut Members<'_>) -> Result<Option<OpenApiEntry>, At<EntryError>> {
    let description = members.read("openapi", Field::text);
    let graphql = members.read("graphql", Field::text);
    let base_url = members.read("base_url", Field::text);
    let include = members.read("include", patterns);
    let exclude = members.read("exclude", patterns);
    let origins = members.read("origins", Field::texts);
    // All are read before the first fault is reported.
    let (description, graphql, base_url) = (description?, graphql?, base_url?);
    let (include, exclude, origins) = (include?, exclude?, origins?);
    let is_graphql = graphql.is_some();
    if let (Some(graphql), true) = (&graphql, description.is_some() || base_url.is_some()) {
        let other = if description.is_some() {
            "openapi"
        } else {
            "base_url"
        };
        return Err(At::new(
            graphql.offset,
            EntryError::GraphQlAndOther { other },
        ));
    }
    let Some(description) = description.or(graphql) else {
        let stray = [
            ("base_url", base_url.map(|at| at.offset)),
            ("include", include.map(|(offset, _)| offset)),
            ("exclude", exclude.map(|(offset, _)| offset)),
        ];
        let stray = stray.into_iter().find_map(|(key, at)| Some((key, at?)));
        return match stray {
            Some((key, offset)) => Err(At::new(offset, EntryError::NeedsOpenApi { key })),
            None => Ok(None),
        };
    };
    Ok(Some(OpenApiEntry {
        description,
        is_graphql,
        base_url,
        include: include.unwrap_or_default().1,
        exclude: exclude.unwrap_or_default().1,
        origins: origins.unwrap_or_default(),
    }))
}

fn patterns(field: &Field<'_>) -> Result<(usize, Vec<OperationPattern>), At<EntryError>> {
    let texts = field.texts()?.into_iter();
    let patterns =
        texts.map(|text| OperationPattern::parse(&text.value).ok_or_else(|| field.wrong(PATTERNS)));
    Ok((field.offset(), patterns.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_a_name_a_tag_a_path_or_a_method_with_a_path() {
        for (pattern, expected) in [
            ("issues_*", true),
            ("issues", true),
            ("/repos/*", true),
            ("/repos/{owner}/issues", true),
            ("GET /repos/*", true),
            ("get /repos/*", true),
            ("* /repos/*", true),
            ("My tag", true),
            ("DELETE /repos/*", false),
            ("repos", false),
            ("/repos", false),
        ] {
            let parsed = OperationPattern::parse(pattern).unwrap();
            let tags = ["issues".to_owned(), "My tag".to_owned()];
            let matches = parsed.matches("issues_list", "GET", "/repos/{owner}/issues", &tags);
            assert_eq!(matches, expected, "{pattern}");
        }
        assert!(OperationPattern::parse(" ").is_none());
        assert!(OperationPattern::parse("[a").is_none());
    }
}
