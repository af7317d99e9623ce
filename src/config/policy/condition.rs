//! The conditions of a rule on a call's arguments.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::pattern::fits;

/// A call as conditions look at it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inspected<'a> {
    /// The arguments; `Null` where they cannot be read.
    pub(crate) arguments: &'a Value,
    /// The directory for relative paths: the server's working directory, otherwise the session's.
    pub(crate) directory: Option<&'a Path>,
    /// The directory for `~`.
    pub(crate) home: Option<&'a Path>,
}

/// One argument, and the values that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    /// Its name; dots lead into objects.
    argument: String,
    /// One of them has to hold.
    tests: Vec<Test>,
}

/// A test of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Test {
    is_negated: bool,
    wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    /// A pattern of a text or of a number or flag written as text, in lower case.
    Text(String),
    Path(Location),
}

/// A set of paths.
#[derive(Debug, Clone)]
struct Location {
    /// As it is written.
    text: String,
    /// The leading part without wildcards: absolute, or below the directory or home.
    base: String,
    /// The pattern for the rest of a path below the base; `None` if the base is the whole path.
    rest: Option<GlobMatcher>,
}

impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Location {}

impl Condition {
    /// Reads the patterns of an argument; `None` if a value cannot be a pattern.
    pub(super) fn read(argument: String, values: &[String]) -> Option<Self> {
        let tests: Option<Vec<Test>> = values.iter().map(|value| Test::parse(value)).collect();
        let tests = tests.filter(|tests| !tests.is_empty() && !argument.is_empty())?;
        Some(Self { argument, tests })
    }

    /// Whether it holds for a call; `None` where that cannot be said: the arguments cannot be read, a value is of another
    /// kind, or a path is absent, so that the server chooses one.
    pub(super) fn holds(&self, call: &Inspected<'_>) -> Option<bool> {
        let Value::Object(_) = call.arguments else {
            return None;
        };
        let mut values = Vec::new();
        collect(call.arguments, &self.names(), &mut values);
        if values.is_empty() {
            let is_path = |test: &Test| matches!(test.wanted, Wanted::Path(_));
            return (!self.tests.iter().any(is_path)).then_some(false);
        }
        let holds = |value: &Value| any(self.tests.iter().map(|test| test.holds(value, call)));
        any(values.into_iter().map(holds))
    }

    fn names(&self) -> Vec<&str> {
        self.argument.split('.').collect()
    }
}

/// Whether one of several things is so: unknown where none is certain and one is unknown.
fn any(mut outcomes: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut is_unknown = false;
    let is_certain = outcomes.any(|outcome| {
        is_unknown |= outcome.is_none();
        outcome == Some(true)
    });
    match (is_certain, is_unknown) {
        (true, _) => Some(true),
        (false, true) => None,
        (false, false) => Some(false),
    }
}

/// The values that names lead to, one within the other; each element of an array on the way and at its end.
fn collect<'v>(value: &'v Value, names: &[&str], found: &mut Vec<&'v Value>) {
    match (names, value) {
        (_, Value::Array(items)) => items.iter().for_each(|item| collect(item, names, found)),
        ([name, rest @ ..], Value::Object(members)) => {
            if let Some(value) = members.get(*name).filter(|value| !value.is_null()) {
                collect(value, rest, found);
            }
        }
        // At the end, or something else than the object that the names lead through, which no test can read.
        (_, value) => found.push(value),
    }
}

impl Test {
    fn parse(text: &str) -> Option<Self> {
        let (is_negated, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if text.is_empty() {
            return None;
        }
        let starts = ["/", "./", "../", "~/"];
        let is_path = starts.iter().any(|start| text.starts_with(start))
            || matches!(text, "." | ".." | "~")
            || Path::new(text).is_absolute();
        let wanted = match is_path {
            true => Wanted::Path(Location::parse(text)?),
            false => Wanted::Text(text.to_lowercase()),
        };
        Some(Self { is_negated, wanted })
    }

    fn holds(&self, value: &Value, call: &Inspected<'_>) -> Option<bool> {
        let is_so = match &self.wanted {
            Wanted::Text(pattern) => {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(_) | Value::Bool(_) => value.to_string(),
                    _ => return None,
                };
                fits(pattern, &text.to_lowercase())
            }
            Wanted::Path(location) => location.contains(value.as_str()?, call)?,
        };
        Some(is_so != self.is_negated)
    }
}

impl Location {
    fn parse(text: &str) -> Option<Self> {
        let is_wild = |part: &&str| part.contains(['*', '?', '[', '{']);
        let parts: Vec<&str> = text.split('/').collect();
        let fixed = parts.iter().take_while(|part| !is_wild(part)).count();
        let (base, rest) = (parts[..fixed].join("/"), parts[fixed..].join("/"));
        let base = if base.is_empty() {
            "/".to_owned()
        } else {
            base
        };
        let glob = |rest: &str| {
            GlobBuilder::new(rest)
                .literal_separator(true)
                .backslash_escape(false)
                .case_insensitive(cfg!(any(windows, target_os = "macos")))
                .build()
                .ok()
        };
        let rest = match rest.as_str() {
            "" => None,
            rest => Some(glob(rest)?.compile_matcher()),
        };
        Some(Self {
            text: text.to_owned(),
            base,
            rest,
        })
    }

    /// Whether a path is one of them; `None` where it cannot be resolved.
    fn contains(&self, path: &str, call: &Inspected<'_>) -> Option<bool> {
        let (base, path) = (resolved(&self.base, call)?, resolved(path, call)?);
        let Ok(below) = path.strip_prefix(&base) else {
            return Some(false);
        };
        Some(match &self.rest {
            None => below.as_os_str().is_empty(),
            // `**` is the directory and everything below it.
            Some(rest) if below.as_os_str().is_empty() => rest.glob().glob() == "**",
            Some(rest) => rest.is_match(below),
        })
    }
}

/// A path as the system will find it: absolute, without `..` and links as far as it exists.
fn resolved(path: &str, call: &Inspected<'_>) -> Option<PathBuf> {
    let decoded;
    let path = match path.strip_prefix("file://") {
        Some(rest) => {
            decoded = percent_decode_str(rest).decode_utf8().ok()?;
            decoded.as_ref()
        }
        None => path,
    };
    if path.is_empty() || path.contains('\0') {
        return None;
    }
    let path = match path.strip_prefix('~') {
        Some("") => call.home?.to_owned(),
        Some(rest) if rest.starts_with('/') => call.home?.join(rest.trim_start_matches('/')),
        // The home of another user, which only a shell finds.
        Some(_) => return None,
        None if Path::new(path).is_absolute() => PathBuf::from(path),
        None => call.directory?.join(path),
    };
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            part => {
                found.push(part);
                match found.canonicalize() {
                    Ok(real) => found = real,
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                        // A link to what does not exist yet: the server may create it there.
                        if found.is_symlink() {
                            return None;
                        }
                    }
                    // A directory that cannot be read could lead anywhere.
                    Err(_) => return None,
                }
            }
        }
    }
    Some(found)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(
        argument: &str,
        patterns: &[&str],
        arguments: &Value,
        directory: &Path,
    ) -> Option<bool> {
        let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
        let condition = Condition::read(argument.to_owned(), &patterns).unwrap();
        condition.holds(&Inspected {
            arguments,
            directory: Some(directory),
            home: Some(Path::new("/home/me")),
        })
    }

    #[test]
    fn paths_are_compared_as_the_system_finds_them() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path().canonicalize().unwrap();
        std::fs::create_dir(project.join("src")).unwrap();
        for (to, link) in [
            ("/etc", "link"),
            ("loop", "loop"),
            ("/nowhere/x", "dangling"),
        ] {
            std::os::unix::fs::symlink(to, project.join(link)).unwrap();
        }
        let inside = project.join("src/a.rs").display().to_string();
        for (path, pattern, expected) in [
            (json!("src/a.rs"), "!./**", Some(false)),
            (json!("."), "!./**", Some(false)),
            (json!(inside), "!./**", Some(false)),
            (json!("new/deep/file"), "!./**", Some(false)),
            (json!("../x"), "!./**", Some(true)),
            (json!("src/../../x"), "!./**", Some(true)),
            (json!("new/../../x"), "!./**", Some(true)),
            (json!("link/passwd"), "!./**", Some(true)),
            (json!("link/passwd"), "/etc/**", Some(true)),
            (json!("file:///etc/%70asswd"), "/etc/passwd", Some(true)),
            (json!("~/.ssh/id"), "~/.ssh/**", Some(true)),
            (json!("~/.sshx/id"), "~/.ssh/**", Some(false)),
            (json!("src/a.rs"), "./*.rs", Some(false)),
            (json!("a.rs"), "./*.rs", Some(true)),
            (json!(["src/a", "/etc/x"]), "/etc/**", Some(true)),
            // Not to be resolved, or no path.
            (json!("loop/x"), "!./**", None),
            (json!("dangling"), "!./**", None),
            (json!("a\u{0}b"), "!./**", None),
            (json!("~other/x"), "!./**", None),
            (json!(""), "!./**", None),
            (json!(7), "!./**", None),
            (json!({"a": 1}), "!./**", None),
            (json!(null), "!./**", None),
        ] {
            let arguments = json!({ "path": path });
            let found = holds("path", &[pattern], &arguments, &project);
            assert_eq!(found, expected, "{path} {pattern}");
        }
    }

    #[test]
    fn texts_numbers_and_flags_are_compared_as_texts() {
        let arguments = json!({"branch": "Main", "force": true, "n": {"deep": [1, 2]}, "o": {}});
        for (argument, patterns, expected) in [
            ("branch", &["main"][..], Some(true)),
            ("branch", &["release/*", "ma*"], Some(true)),
            ("branch", &["!main"], Some(false)),
            ("force", &["true"], Some(true)),
            ("n.deep", &["2"], Some(true)),
            ("n.deep", &["3"], Some(false)),
            ("n.deep.more", &["3"], Some(false)),
            ("absent", &["x"], Some(false)),
            ("o", &["x"], None),
        ] {
            let found = holds(argument, patterns, &arguments, Path::new("/"));
            assert_eq!(found, expected, "{argument} {patterns:?}");
        }
        assert_eq!(holds("a", &["x"], &Value::Null, Path::new("/")), None);
    }
}
