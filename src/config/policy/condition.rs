//! The conditions of a rule on a call's arguments.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::pattern::fits;
use super::readings;
use crate::text::loose_name;

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

    /// Whether it may hold for a call: for one of the argument's values, or for one that cannot be read. An absent path
    /// counts as unreadable, since the server then chooses one.
    pub(super) fn may_hold(&self, call: &Inspected<'_>) -> bool {
        let is_path = |test: &Test| matches!(test.wanted, Wanted::Path(_));
        let has_path = self.tests.iter().any(is_path);
        self.values(call).into_iter().any(|found| match found {
            Found::Value(value) => self.accepts(value, call) != Some(false),
            Found::Nothing => has_path,
            Found::Unreadable => true,
        })
    }

    /// Whether it holds for a call with certainty: for each of the argument's values, of which there is at least one.
    pub(super) fn holds_for_all(&self, call: &Inspected<'_>) -> bool {
        self.values(call).into_iter().all(|found| match found {
            Found::Value(value) => self.accepts(value, call) == Some(true),
            Found::Nothing | Found::Unreadable => false,
        })
    }

    /// The values of the argument; at least one element.
    fn values<'v>(&self, call: &Inspected<'v>) -> Vec<Found<'v>> {
        let mut found = Vec::new();
        match call.arguments {
            Value::Object(_) => collect(call.arguments, &self.names(), &mut found),
            _ => found.push(Found::Unreadable),
        }
        if found.is_empty() {
            found.push(Found::Nothing);
        }
        found
    }

    /// Whether a value passes one of the tests; `None` if that cannot be decided.
    fn accepts(&self, value: &Value, call: &Inspected<'_>) -> Option<bool> {
        any(self.tests.iter().map(|test| test.holds(value, call)))
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

/// The result of following an argument's names in one object.
#[derive(Debug, Clone, Copy)]
enum Found<'v> {
    Value(&'v Value),
    /// No member of that name.
    Nothing,
    /// A value in the place of an object, or `null`.
    Unreadable,
}

/// Collects the values that names lead to, one within the other, in each element of an array. All members with a spelling of a
/// name that some server takes for it count, also one whose own name has the dots.
fn collect<'v>(value: &'v Value, names: &[&str], found: &mut Vec<Found<'v>>) {
    match (names, value) {
        (_, Value::Array(items)) => items.iter().for_each(|item| collect(item, names, found)),
        ([], value) => found.push(Found::Value(value)),
        (names, Value::Object(members)) => {
            let known = found.len();
            for inner in 1..=names.len() {
                let (name, rest) = names.split_at(inner);
                let name = loose_name(&name.concat());
                for (_, value) in members.iter().filter(|(own, _)| loose_name(own) == name) {
                    match value {
                        Value::Null => found.push(Found::Unreadable),
                        value => collect(value, rest, found),
                    }
                }
            }
            if found.len() == known {
                found.push(Found::Nothing);
            }
        }
        (_, _) => found.push(Found::Unreadable),
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
                let readings = readings::of_value(value)?.into_iter();
                agreed(readings.map(|text| Some(fits(pattern, &text))))?
            }
            Wanted::Path(location) => {
                let readings = readings::of_path(value.as_str()?)?.into_iter();
                agreed(readings.map(|path| location.contains(&path, call)))?
            }
        };
        Some(is_so != self.is_negated)
    }
}

/// The outcome that all readings of a value have; `None` if they differ, or one is unknown.
fn agreed(mut outcomes: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let first = outcomes.next()??;
    outcomes
        .all(|outcome| outcome == Some(first))
        .then_some(first)
}

impl Location {
    fn parse(text: &str) -> Option<Self> {
        let is_wild = |part: &&str| part.contains(['*', '?']);
        let parts: Vec<&str> = text.split('/').collect();
        let fixed = parts.iter().take_while(|part| !is_wild(part)).count();
        let (base, rest) = (parts[..fixed].join("/"), parts[fixed..].join("/"));
        let base = if base.is_empty() {
            "/".to_owned()
        } else {
            base
        };
        let glob = |rest: &str| {
            GlobBuilder::new(&without_classes(rest))
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

/// A glob in which only `*` and `?` are special.
fn without_classes(glob: &str) -> String {
    let mut escaped = String::with_capacity(glob.len());
    for character in glob.chars() {
        match character {
            '[' | ']' | '{' | '}' => escaped.extend(['[', character, ']']),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A path as the system will find it: absolute, without `..` and links as far as it exists. `None` if that is not certain.
fn resolved(path: &str, call: &Inspected<'_>) -> Option<PathBuf> {
    // A link behind so many others is in a loop.
    const MOST_LINKS: usize = 40;
    let path = absolute(path, call)?;
    let mut ahead: VecDeque<OsString> = parts(&path).collect();
    let (mut found, mut links) = (PathBuf::new(), 0);
    while let Some(part) = ahead.pop_front() {
        if part == ".." {
            found.pop();
            continue;
        }
        found.push(&part);
        if depends_on_process(&found) {
            return None;
        }
        match found.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                let target = found.read_link().ok().filter(|_| links <= MOST_LINKS)?;
                found.pop();
                let before = std::mem::take(&mut ahead);
                ahead = parts(&target).chain(before).collect();
            }
            // As the file system spells it.
            Ok(_) => found = found.canonicalize().ok()?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            // A directory that cannot be read could lead anywhere.
            Err(_) => return None,
        }
    }
    Some(found)
}

/// The absolute form of an argument that is a path or a `file:` URL.
fn absolute(path: &str, call: &Inspected<'_>) -> Option<PathBuf> {
    let is_url = path
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("file:"));
    let decoded = match path.get(5..).filter(|_| is_url) {
        // A URL with a host, a query or a fragment, or with a relative path, is read in several ways.
        Some(rest) if !rest.starts_with("///") || rest.contains(['?', '#']) => return None,
        Some(rest) => percent_decode_str(&rest[2..]).decode_utf8().ok()?,
        None => path.into(),
    };
    let path = decoded.as_ref();
    if path.is_empty() || path.contains('\0') {
        return None;
    }
    match path.strip_prefix('~') {
        Some("") => call.home.map(Path::to_owned),
        Some(rest) if rest.starts_with('/') => Some(call.home?.join(rest.trim_start_matches('/'))),
        // The home of another user, which only a shell finds.
        Some(_) => None,
        None if Path::new(path).is_absolute() => Some(PathBuf::from(path)),
        None => Some(call.directory?.join(path)),
    }
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned())
}

/// Whether a path leads to another file in each process, as `/proc/self/cwd` does.
fn depends_on_process(path: &Path) -> bool {
    let mut parts = path
        .strip_prefix("/proc")
        .into_iter()
        .flat_map(Path::components);
    parts.next().is_some_and(|part| {
        let name = part.as_os_str().as_encoded_bytes();
        name == b"self" || name == b"thread-self" || name.iter().all(u8::is_ascii_digit)
    })
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
        let call = Inspected {
            arguments,
            directory: Some(directory),
            home: Some(Path::new("/home/me")),
        };
        match (condition.may_hold(&call), condition.holds_for_all(&call)) {
            (true, true) => Some(true),
            (false, false) => Some(false),
            (true, false) => None,
            (false, true) => panic!("{argument} {patterns:?} {arguments}"),
        }
    }

    #[test]
    fn paths_are_compared_as_the_system_finds_them() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path().canonicalize().unwrap();
        std::fs::create_dir(project.join("src")).unwrap();
        std::fs::create_dir_all(project.join("app/[id]")).unwrap();
        for (to, link) in [
            ("/etc", "link"),
            ("loop", "loop"),
            ("/nowhere/x", "dangling"),
            ("src/new", "ahead"),
            ("/proc/self/cwd", "process"),
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
            (json!("dangling"), "!./**", Some(true)),
            (json!("ahead"), "./src/**", Some(true)),
            (json!("app/[id]/a"), "./app/[id]/**", Some(true)),
            (json!("app/i/a"), "./app/[id]/**", Some(false)),
            (json!("{x,y}/a"), "./{x,y}/*", Some(true)),
            (json!("app/[id]/a"), "./*/[id]/*", Some(true)),
            // A restriction is about one of several values, a permission about all.
            (json!(["src/a", "/etc/x"]), "/etc/**", None),
            (json!(["src/a", "src/b"]), "./src/**", Some(true)),
            (json!([]), "./src/**", None),
            // Not the same file for the server, or read in several ways.
            (json!("/proc/self/cwd/x"), "!./**", None),
            (json!("/proc/1/root/x"), "!./**", None),
            (json!("process/x"), "!./**", None),
            (json!("/dev/fd/3"), "!./**", None),
            (json!("file://localhost/etc/passwd"), "/etc/**", None),
            (json!("FILE:///etc/passwd"), "/etc/**", Some(true)),
            (json!("file:/etc/passwd"), "/etc/**", None),
            (json!("file:///etc/passwd?x"), "/etc/**", None),
            (json!("file:///etc/passwd#x"), "/etc/passwd", None),
            (json!(" /etc/passwd"), "!./**", None),
            (json!("..\\..\\x"), "!./**", None),
            (json!("src/%2e%2e/%2e%2e/x"), "!./**", None),
            (json!("\u{ff0e}\u{ff0e}/x"), "!./**", None),
            (json!("$HOME/x"), "!./**", None),
            (json!("${HOME}/x"), "!./**", None),
            (json!("src/$id.rs"), "!./**", Some(false)),
            (json!("src/100%25.txt"), "!./**", Some(false)),
            (json!("src/a b.txt"), "!./**", Some(false)),
            (json!("/etc/passwd\n"), "/etc/passwd", None),
            // Not to be resolved, or no path.
            (json!("loop/x"), "!./**", None),
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
        let arguments = json!({"branch": "Main", "force": true, "n": {"deep": [1, 2]}, "o": {},
            "five": 5.0, "each": [{"x": 1}, {"y": 1}], "text": "{\"x\": 1}",
            "full": "\u{ff4d}ain", "padded": " main\u{200b}", "number": "5.0", "flat.name": "x",
            "STRASSE": "x", "two": "x", "t_wo": "y"});
        for (argument, patterns, expected) in [
            ("branch", &["main"][..], Some(true)),
            ("branch", &["release/*", "ma*"], Some(true)),
            ("branch", &["!main"], Some(false)),
            ("force", &["true"], Some(true)),
            ("n.deep", &["2"], None),
            ("n.deep", &["1", "2"], Some(true)),
            ("n.deep", &["3"], Some(false)),
            ("n.deep.more", &["3"], None),
            ("five", &["5"], Some(true)),
            ("FORCE", &["true"], Some(true)),
            ("b-ranch", &["main"], Some(true)),
            ("full", &["main"], None),
            ("full", &["!main"], None),
            ("full", &["other"], Some(false)),
            ("padded", &["main"], None),
            ("number", &["5"], None),
            ("flat.name", &["x"], Some(true)),
            ("fla_t.name", &["y"], Some(false)),
            ("stra\u{df}e", &["x"], Some(true)),
            ("two", &["x"], None),
            ("each.x", &["1"], None),
            ("text.x", &["1"], None),
            ("absent", &["x"], Some(false)),
            ("o", &["x"], None),
        ] {
            let found = holds(argument, patterns, &arguments, Path::new("/"));
            assert_eq!(found, expected, "{argument} {patterns:?}");
        }
        assert_eq!(holds("a", &["x"], &Value::Null, Path::new("/")), None);
    }
}
