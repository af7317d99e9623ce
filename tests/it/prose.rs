//! The words of documents, help texts and comments: plain English, and no advice to install another program.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::support::{Setup, command};

/// Documents that were edited for plain English. Add a file when it is clean.
const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs",
    "python/README.md",
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
    "website/src/data/troubleshooting.md",
];

/// Modules whose comments were edited for plain English. Add a module when it is clean.
const SOURCES: &[&str] = &[
    "crates",
    "src/app",
    "src/app.rs",
    "src/approvals",
    "src/audit",
    "src/catalog",
    "src/cli",
    "src/clients",
    "src/config",
    "src/daemon",
    "src/day.rs",
    "src/dbus.rs",
    "src/downstream",
    "src/events.rs",
    "src/executable.rs",
    "src/files.rs",
    "src/fuzzing.rs",
    "src/identity",
    "src/keychain",
    "src/keyring",
    "src/lib.rs",
    "src/limits",
    "src/main.rs",
    "src/mcp",
    "src/notify",
    "src/notify.rs",
    "src/pause.rs",
    "src/proxy",
    "src/registry",
    "src/results",
    "src/runner",
    "src/sandbox",
    "src/scan",
    "src/scripts",
    "src/sealing.rs",
    "src/search",
    "src/secret.rs",
    "src/shutdown.rs",
    "src/sources",
    "src/statistics",
    "src/telemetry",
    "src/text.rs",
    "src/tls",
    "src/tool",
    "src/ui",
    "src/upstream",
    "tests/it/support",
];

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
    (
        r"(^|\n\n)(Why|Where) [^?]*?[.;:,]",
        "begin with the noun: \"the reason why\", \"the directory\"",
    ),
    (r"(?i)\bunder way\b", "in progress, in flight"),
    (r"(?i)\b(hears?|heard)\b", "gets, receives, is notified of"),
];

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
            "commands.md",
            "configuration.md",
            "environment.md",
            "migrate.md",
            "observability.md",
            "troubleshooting.md",
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

/// The comments of Rust code: the number of each one's first line, and its text.
fn comments(code: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in code.lines().enumerate() {
        let Some(text) = line.trim_start().strip_prefix("//") else {
            is_open = false;
            continue;
        };
        let text = text.trim_start_matches(['/', '!']).trim_start();
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

#[test]
fn documents_are_written_in_plain_english() {
    let mut files = Vec::new();
    for document in DOCUMENTS {
        markdown(&root().join(document), &mut files);
    }
    assert!(files.len() > 60, "only {} files were found", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        found.extend(findings(&name, &prose(&text)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn comments_are_written_in_plain_english() {
    let mut files = Vec::new();
    for source in SOURCES {
        files_with_ending(&root().join(source), ".rs", &mut files);
    }
    assert!(files.len() > 80, "only {} files were found", files.len());
    let mut found = Vec::new();
    for file in files {
        let code = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(root()).unwrap().display().to_string();
        for (line, text) in comments(&code) {
            found.extend(findings(&format!("{name}:{line}"), &prose(&text)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_help_is_written_in_plain_english() {
    let setup = Setup::new();
    let help = command::run(setup.command(&["--help"]), "").code(0).stdout;
    let mut found = findings("mcpzip --help", &help);
    for name in [
        "init", "add", "migrate", "undo", "connect", "serve", "search", "call", "servers", "login",
    ] {
        let help = command::run(setup.command(&[name, "--help"]), "")
            .code(0)
            .stdout;
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
