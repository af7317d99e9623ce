//! The words of documents, help texts, messages and comments: plain English, and no advice to install another program.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::support::{Setup, command};

/// Documents that were edited for plain English. Add a file when it is clean.
const DOCUMENTS: &[&str] = &[
    ".github/ISSUE_TEMPLATE/bug.yml",
    ".github/ISSUE_TEMPLATE/idea.yml",
    ".github/ISSUE_TEMPLATE/server.yml",
    ".github/pull_request_template.md",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "crates/embedding/README.md",
    "docs",
    "packaging",
    "python/README.md",
    "src/cli/doctor/page.md",
    "tests/peers/README.md",
    "tools/embedding/FORMAT.md",
    "tools/embedding/README.md",
    "website/src/content/docs/404.md",
    "website/src/content/docs/guides",
    "website/src/content/docs/index.mdx",
    "website/src/content/docs/introduction.mdx",
    "website/src/content/docs/project/comparison.md",
    "website/src/content/docs/project/faq.md",
    "website/src/content/docs/project/native-search.mdx",
    "website/src/content/docs/recipes",
    "website/src/content/docs/reference",
    "website/src/content/docs/start",
    "website/src/content/docs/try",
    "website/src/data/migrate.md",
    "website/src/data/migrate-proxies.md",
    "website/src/data/migrate-rules.md",
    "website/src/data/troubleshooting.md",
];

/// The code whose comments are checked.
const COMMENTS: &[&str] = &["crates", "examples", "src", "tests/it/support"];

/// The scripts, the tests of the website and the pages of the window: their comments are checked.
const SCRIPTS: &[&str] = &[
    ".ci",
    ".github/workflows",
    "packaging",
    "test",
    "tools",
    "web/src",
    "web/test",
    "website/scripts",
    "website/src/components",
    "website/src/lib",
    "website/test",
];

/// The code whose strings are checked: messages, help, and the texts of the configuration's schema.
const MESSAGES: &[&str] = &["crates/demo", "crates/embedding", "python/src", "src"];

/// Patterns that make a sentence harder to read, each with better words.
const PATTERNS: &[(&str, &str)] = &[
    (
        r"(?i)\b(whoever|whatever|whichever)\b",
        "name the person or thing",
    ),
    (
        r"(?i)\b(somebody|nobody|anybody|everybody)\b",
        "name the person or program",
    ),
    (
        r"(?i)\b(is|are|was) told\b",
        "say who reports it: \"the plan shows\", \"the agent gets\"",
    ),
    (r"(?i)\bis no [a-z]+", "\"is not a\", \"is missing\""),
    (r"(?i)\bmend(s|ed|ing)?\b", "fix, repair"),
    (r"\bwants\b", "needs, requires"),
    (
        r"(?i)\b(by itself|by themselves|by oneself)\b",
        "automatically, alone",
    ),
    (r"(?i)\bbesides?\b", "next to, with, in addition to"),
    (r"(?i)\banew\b", "again"),
    (r"(?i)\bof (ours|theirs)\b", "of mcpzip, of the server"),
    (r"(?i)\bhow things stand\b", "the current state"),
    (r"(?i)\bwhere one\b", "name the place"),
    (
        r"(^|[.:;] |\n- |\*\* )The same\b[^.?]*[.:;]",
        "repeat the noun",
    ),
    (r"(^|[.:;] |\n- )What [^.?;:]*[.;:]", "begin with the noun"),
    // A doc of a value may begin with "Why".
    (
        r"((^|\n\n)Where|\n\nWhy) [^?]*?[.;:,]",
        "begin with the noun: \"the reason why\", \"the directory\"",
    ),
    (r"^The reason why ", "\"Why …\""),
    (r"^Its [a-z]+\.$", "name the thing that it belongs to"),
    (r"\b(be|not) a text\b", "a string"),
    (r"(?i)\bunder way\b", "in progress, in flight"),
    (r"(?i)\b(hears?|heard)\b", "gets, receives, is notified of"),
];

/// The largest number of words in a sentence of a document.
const MOST_WORDS: usize = 50;

/// Another program has this name on the Rust registry.
const WRONG_PACKAGE: &str = r"cargo (install|add|binstall) mcpzip\b($|[^-])";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Markdown files at and below `path`, without those that the website's build makes and Git ignores.
fn markdown(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        found.push(path.to_owned());
        return;
    }
    let entries = path
        .read_dir()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        let is_generated = [
            "guides/migrate.md",
            "guides/migrate-proxies.md",
            "guides/migrate-rules.md",
            "guides/observability.md",
            "guides/sandbox.md",
            "guides/secrets.md",
            "guides/troubleshooting.md",
            "reference/commands.md",
            "reference/configuration.md",
            "reference/environment.md",
        ]
        .iter()
        .any(|name| path.ends_with(name));
        let is_text = path
            .extension()
            .is_some_and(|kind| kind == "md" || kind == "mdx");
        if path.is_dir() || (is_text && !is_generated) {
            markdown(&path, found);
        }
    }
}

/// `text` without code and with each paragraph in one line.
fn prose(text: &str) -> String {
    // Compiled once: there are thousands of comments.
    static LEFT_OUT: LazyLock<Vec<Regex>> = LazyLock::new(|| {
        let patterns = [
            r"(?s)\A---\n.*?\n---\n",
            r"(?s)```.*?\n\s*```",
            r"`[^`]*`",
            r"\]\([^)]*\)",
        ];
        patterns.map(|pattern| Regex::new(pattern).unwrap()).into()
    });
    static LINE_BREAK: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"([^\n])\n[ \t]*([^\s\-#|*\d])").unwrap());
    let text = LEFT_OUT.iter().fold(text.to_owned(), |text, pattern| {
        pattern.replace_all(&text, "…").into_owned()
    });
    LINE_BREAK.replace_all(&text, "$1 $2").into_owned()
}

/// The files below `path` that have this ending.
fn files_with_ending(path: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        found.extend(
            path.to_str()
                .filter(|name| name.ends_with(ending))
                .map(PathBuf::from),
        );
        return;
    }
    for entry in path.read_dir().unwrap() {
        files_with_ending(&entry.unwrap().path(), ending, found);
    }
}

/// The comments of code, if they begin with one of `marks` on a line of their own: the number of each one's first line, and its text.
fn comments(code: &str, marks: &[&str]) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in code.lines().enumerate() {
        let line = line.trim_start();
        let Some(text) = marks.iter().find_map(|mark| line.strip_prefix(mark)) else {
            is_open = false;
            continue;
        };
        let text = text.trim_start_matches(['/', '!', '*']).trim();
        let text = text.strip_suffix("*/").unwrap_or(text).trim_end();
        match found.last_mut() {
            Some((_, comment)) if is_open => {
                comment.push('\n');
                comment.push_str(text);
            }
            _ => found.push((at + 1, text.to_owned())),
        }
        is_open = true;
    }
    found
}

/// The strings of Rust code that are sentences or parts of one: the number of each one's first line, and its text. Tests at the end of a file
/// are left out.
fn strings(code: &str) -> Vec<(usize, String)> {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        let comment = r"//[^\n]*";
        let character = r"'(?:\\[^']*.|[^\\'])'";
        let raw = r##"r#"(?<hashed>(?s:.*?))"#|r"(?<raw>[^"]*)""##;
        let plain = r#""(?<plain>(?:[^"\\]|\\(?s:.))*)""#;
        Regex::new(&[comment, character, raw, plain].join("|")).unwrap()
    });
    static CONTINUED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\\\n\s*").unwrap());
    static VALUE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\{[\w.:?#]*\}").unwrap());
    let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let mut found = Vec::new();
    for token in TOKEN.captures_iter(code) {
        let names = ["hashed", "raw", "plain"];
        let Some(text) = names.iter().find_map(|name| token.name(name)) else {
            continue;
        };
        let line = code[..text.start()].matches('\n').count() + 1;
        let text = CONTINUED.replace_all(text.as_str(), "");
        let text = VALUE.replace_all(&text, "…").replace(r"\n", "\n");
        if text.contains(' ') {
            found.push((line, text));
        }
    }
    found
}

/// The findings of one text, with some words around each.
fn findings(name: &str, text: &str) -> Vec<String> {
    static COMPILED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let patterns = PATTERNS.iter();
        let compiled = patterns.map(|(pattern, better)| (Regex::new(pattern).unwrap(), *better));
        compiled.collect()
    });
    let mut found = Vec::new();
    for (pattern, better) in COMPILED.iter() {
        for hit in pattern.find_iter(text) {
            // "there is no" and "which is no more than" are ordinary.
            if pattern.as_str().contains("is no ")
                && (text[..hit.start()].to_lowercase().ends_with("there ")
                    || hit.as_str().ends_with("longer"))
            {
                continue;
            }
            let words: String = hit.as_str().chars().take(80).collect();
            found.push(format!("{name}: {words:?}; better: {better}"));
        }
    }
    found
}

/// The documents, each with its name in the repository and its prose.
fn documents() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for document in DOCUMENTS {
        markdown(&root().join(document), &mut files);
    }
    assert!(files.len() > 60, "only {} files were found", files.len());
    let named = files.into_iter().map(|file| {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        (name, prose(&std::fs::read_to_string(&file).unwrap()))
    });
    named.collect()
}

#[test]
fn documents_are_written_in_plain_english() {
    let mut found = Vec::new();
    for (name, text) in documents() {
        found.extend(findings(&name, &text));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn sentences_of_documents_are_short() {
    let end = Regex::new(r#"[.?!]["')*_…\]]*\s+"#).unwrap();
    let places = [
        "ARCHITECTURE.md",
        "README.md",
        "SECURITY.md",
        "website/src/content",
    ];
    let mut found = Vec::new();
    for (name, text) in documents() {
        if !places.iter().any(|place| name.starts_with(place)) {
            continue;
        }
        // An item of a list is a line of its own. Tables, headings and elements are left out.
        let lines = text.lines().map(str::trim_start);
        let lines = lines.filter(|line| !line.starts_with(['|', '#', '<']));
        for sentence in lines.flat_map(|line| end.split(line)) {
            let words = sentence.split_whitespace().count();
            if words > MOST_WORDS {
                found.push(format!("{name}: {words} words: {sentence}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The files at and below these paths with one of `endings`, each with its name in the repository and its text.
fn code(places: &[&str], endings: &[&str]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for place in places {
        for ending in endings {
            files_with_ending(&root().join(place), ending, &mut files);
        }
    }
    assert!(files.len() > 80, "only {} files were found", files.len());
    let named = files.into_iter().map(|file| {
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        (name, std::fs::read_to_string(&file).unwrap())
    });
    named.collect()
}

/// Whether a file has only tests.
fn is_of_tests(name: &str) -> bool {
    name.ends_with("tests.rs") || name.ends_with("fuzzing.rs")
}

#[test]
fn comments_are_written_in_plain_english() {
    let mut found = Vec::new();
    for (name, code) in code(COMMENTS, &[".rs"]) {
        for (line, text) in comments(&code, &["//"]) {
            found.extend(findings(&format!("{name}:{line}"), &prose(&text)));
        }
        if !is_of_tests(&name) && !code.starts_with("//!") {
            found.push(format!(
                "{name}: a `//!` line at the top says what the file is"
            ));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_of_scripts_are_written_in_plain_english() {
    let endings = [
        ".astro", ".css", ".js", ".mjs", ".ps1", ".py", ".sh", ".ts", ".tsx", ".yml", "/run",
        "/test",
    ];
    let (mut found, mut count) = (Vec::new(), 0);
    for (name, code) in code(SCRIPTS, &endings) {
        for (line, text) in comments(&code, &["//", "/*", "*", "#"]) {
            count += 1;
            found.extend(findings(&format!("{name}:{line}"), &prose(&text)));
        }
    }
    assert!(count > 400, "only {count} comments were found");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn messages_are_written_in_plain_english() {
    let (mut found, mut count) = (Vec::new(), 0);
    for (name, code) in code(MESSAGES, &[".rs"]) {
        if is_of_tests(&name) {
            continue;
        }
        for (line, text) in strings(&code) {
            count += 1;
            found.extend(findings(&format!("{name}:{line}"), &prose(&text)));
        }
    }
    assert!(count > 3_000, "only {count} strings were found");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_are_found_in_code() {
    let code = "/** The first\n * comment. */\nlet text; // no comment\n# The second";
    let expected = [
        (1, "The first\ncomment.".to_owned()),
        (4, "The second".to_owned()),
    ];
    assert_eq!(comments(code, &["//", "/*", "*", "#"]), expected);
}

#[test]
fn strings_are_found_in_code() {
    let code = r##"// "a comment has no string"
let quotes = ['"', '\''];
error!("the first message \
        goes on: {name:?}");
let raw = r#"a "second" message"#;
#[cfg(test)]
mod tests { "the words of a test" }"##;
    let expected = [
        (3, "the first message goes on: …".to_owned()),
        (5, "a \"second\" message".to_owned()),
    ];
    assert_eq!(strings(code), expected);
}

#[test]
fn the_help_is_written_in_plain_english() {
    let recorded = root().join("website/src/data/commands.json");
    let recorded = std::fs::read_to_string(recorded).unwrap();
    let commands: Vec<serde_json::Value> = serde_json::from_str(&recorded).unwrap();
    assert!(commands.len() > 80, "{} commands", commands.len());
    let setup = Setup::new();
    let mut found = Vec::new();
    for command in commands {
        let name = command["name"].as_str().unwrap();
        let words: Vec<&str> = name.split_whitespace().chain(["--help"]).collect();
        let help = command::run(setup.command(&words), "").code(0).stdout;
        found.extend(findings(&format!("mcpzip {name} --help"), &help));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_readme_is_short_and_names_both_commands() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.len() <= 7_000, "{} bytes", readme.len());
    assert!(
        readme.lines().count() <= 150,
        "{} lines",
        readme.lines().count()
    );
    let demo = readme.find("cargo run --release -- demo").unwrap();
    let tests = readme.find("./test   # all tests").unwrap();
    // A user tries it and installs it; contributors also test it.
    let install = readme.find("cargo install --path .").unwrap();
    assert!(demo < install && install < tests);
}

#[test]
fn nothing_tells_a_user_to_install_the_package_of_another_program() {
    let wrong = Regex::new(WRONG_PACKAGE).unwrap();
    let mut files: Vec<PathBuf> = ["packaging/install.sh", "packaging/install.ps1"]
        .map(|file| root().join(file))
        .into();
    for place in [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs",
        "website/src/content/docs",
        "website/src/data",
    ] {
        markdown(&root().join(place), &mut files);
    }
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!wrong.is_match(&text), "{}", file.display());
    }
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"mcpzip-cli\""));
}
