//! The packages, images and programs that a command line starts, by any runner and behind other programs.
//!
//! The answer is a set: an option that is not known may have a value or none, and a program that is not known may start the one
//! after it. Two entries that may start the same are the same for all that withholds. Only [`package`] and [`way`] are certain. Where a
//! shell makes the name of a program, or a line is longer than is read, [`Kind::Any`] is among the programs: it may be each one.

mod commands;
mod directories;
mod lines;
mod options;
mod runners;
mod scripts;
mod shells;
mod spelling;
#[cfg(test)]
mod tests;
mod wrappers;

use std::collections::BTreeSet;

use lines::is_glob;
pub(crate) use runners::arguments_of;
pub(super) use runners::{Package, package};
pub(super) use spelling::addresses;
use spelling::{bare, is_made, names, versionless};

use super::runner::{may_install, program_name};

/// The kinds of what is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Npm,
    Pypi,
    Image,
    /// A program without a runner.
    Plain,
    /// A server at a URL, behind a program that connects to it.
    Url,
    /// It is not known what is started.
    Any,
}

/// A program that a command line may start. Versions of packages and plain flags do not count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Program {
    pub(super) kind: Kind,
    pub(super) name: String,
    args: Vec<String>,
}

/// A command line in a form that is the same for all that certainly start one program in one way.
pub(crate) struct Way {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    /// Variables that it sets.
    pub(crate) env: Vec<(String, String)>,
}

/// Programs that connect to the server at a URL.
const CONNECTING: &[&str] = &["mcp-remote", "mcp-proxy", "supergateway"];

/// The deepest that command lines within others are read, and the most of them.
const DEEPEST: usize = 8;
const MOST: usize = 50;

/// The longest line that is read, and the length of all that is read and found of one. See [`length`].
const LONGEST: usize = 32 * 1024;
const LONGEST_WHOLE: usize = 96 * 1024;

impl Kind {
    /// The words of `packages.tsv` and of hashes that are stored.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Image => "image",
            Self::Plain => "stdio",
            Self::Url => "url",
            Self::Any => "any",
        }
    }
}

impl Program {
    /// Its texts, by which it is stored. Those that older versions wrote are among the programs of each command line.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let head = [self.kind.word(), &self.name];
        head.into_iter().chain(self.args.iter().map(String::as_str))
    }

    /// The program that is not known.
    pub(super) fn any() -> Self {
        Self {
            kind: Kind::Any,
            name: String::new(),
            args: Vec::new(),
        }
    }

    /// The programs at a URL.
    pub(super) fn at(url: &str) -> impl Iterator<Item = Self> {
        addresses(url).into_iter().map(|name| Self {
            kind: Kind::Url,
            name,
            args: Vec::new(),
        })
    }
}

/// All that a command line may start.
pub(super) fn programs(command: &str, args: &[String]) -> BTreeSet<Program> {
    let mut reader = Reader::default();
    let line = [vec![command.to_owned()], args.to_vec()].concat();
    if length(&line) > LONGEST {
        reader.add(Kind::Plain, command, args, false);
        reader.found.insert(Program::any());
        return reader.found;
    }
    reader.read(&line, 0);
    reader.search(&line, 1);
    reader.found
}

/// The programs of a command line that are found in a directory; none if they do not depend on it.
pub(super) fn programs_in(directory: &str, command: &str, args: &[String]) -> BTreeSet<Program> {
    let line = [vec![command.to_owned()], args.to_vec()].concat();
    if length(&line) > LONGEST {
        return BTreeSet::new();
    }
    let forms = directories::within(line.clone(), Some(directory)).into_iter();
    let forms = forms.filter(|form| *form != line);
    let forms = forms.chain(shells::from(directory, &line));
    forms
        .flat_map(|form| programs(&form[0], &form[1..]))
        .collect()
}

/// See [`Way`].
#[must_use]
pub(crate) fn way(command: &str, args: &[String]) -> Way {
    let (mut command, mut args, mut env) = (command.to_owned(), args.to_vec(), Vec::new());
    if length(&args) > LONGEST {
        return Way { command, args, env };
    }
    for _ in 0..DEEPEST {
        let Some(inner) = wrappers::certain(&bare(&command), &args, &mut env) else {
            break;
        };
        (command, args) = inner;
    }
    let is_package = may_install(&command, &args);
    let (name, words) = match package(&command, &args) {
        Some(package) => (
            format!("{} {}", package.kind.word(), package.name()),
            package.way(),
        ),
        None => (program_name(&command).to_lowercase(), args),
    };
    let words = words.into_iter();
    let words = words.map(|word| match is_package {
        true => versionless(&word).to_owned(),
        false => word,
    });
    Way {
        command: name,
        args: words.collect(),
        env,
    }
}

/// The argument that names the file which a shell or an interpreter runs.
#[must_use]
pub(crate) fn script_of<'a>(command: &str, args: &'a [String]) -> Option<&'a str> {
    scripts::script(&bare(command), args).map(|at| args[at].as_str())
}

/// The length of words in bytes. A short one takes as long as one of 16 bytes.
fn length(words: &[String]) -> usize {
    words.iter().map(|word| word.len() + 16).sum()
}

#[derive(Default)]
struct Reader {
    found: BTreeSet<Program>,
    seen: BTreeSet<Vec<String>>,
    texts: BTreeSet<String>,
    /// The length of what was read and found.
    length: usize,
}

impl Reader {
    /// Whether more may be read; otherwise it may be any program.
    fn may_go_on(&mut self, words: &[String], depth: usize) -> bool {
        let length = length(words);
        self.length += length;
        let is_over = depth >= DEEPEST
            || self.seen.len() >= MOST
            || length > LONGEST
            || self.length > LONGEST_WHOLE;
        if is_over {
            self.found.insert(Program::any());
        }
        !is_over
    }

    fn read(&mut self, line: &[String], depth: usize) {
        let Some((command, args)) = line.split_first() else {
            return;
        };
        if self.seen.contains(line) || !self.may_go_on(line, depth) {
            return;
        }
        self.seen.insert(line.to_vec());
        let (_, file) = directories::split(command);
        if is_made(file) || is_glob(file) {
            self.found.insert(Program::any());
        }
        let is_package = may_install(command, args);
        let name = bare(command);
        for name in [&program_name(command).to_lowercase(), &name] {
            self.add(Kind::Plain, name, args, is_package);
            // As the same after `cd` into its directory.
            if let Some(directory) = directories::find_in_path(command) {
                let args = [args.to_vec(), vec![directory]].concat();
                self.add(Kind::Plain, name, &args, is_package);
            }
        }
        for package in runners::packages(&name, args) {
            if is_made(package.spec) {
                self.found.insert(Program::any());
            }
            for name in names(package.kind, package.spec) {
                self.add(
                    package.kind,
                    &name,
                    package.args,
                    package.kind != Kind::Image,
                );
            }
            if CONNECTING.contains(&package.name().as_str()) {
                self.add_address(package.args);
            }
        }
        if CONNECTING.contains(&name.as_str()) {
            self.add_address(args);
        }
        let elsewhere = runners::elsewhere(&name, args).into_iter();
        let packages = runners::packages(&name, args).into_iter();
        // `npx tsx FILE`.
        let of_packages = packages.flat_map(|it| shells::inner(&it.name(), it.args));
        let of_project = directories::place_project(&name, args);
        let inner = wrappers::inner(&name, args).into_iter();
        let mut alike = BTreeSet::new();
        for inner in inner.chain(elsewhere).chain(of_project).chain(of_packages) {
            if self.length > LONGEST_WHOLE {
                return;
            }
            if !alike.insert(inner.clone()) {
                continue;
            }
            if scripts::reads_commands(&inner) {
                self.found.insert(Program::any());
            }
            self.read(&inner, depth + 1);
            self.search(&inner, depth + 1);
        }
    }

    /// Reads what begins with a runner or a shell after a program that is not known, and within texts.
    fn search(&mut self, words: &[String], depth: usize) {
        if length(words) > LONGEST {
            self.found.insert(Program::any());
            return;
        }
        for (at, word) in words.iter().enumerate() {
            if self.length > LONGEST_WHOLE {
                return;
            }
            // A last word is often a directory with such a name.
            if at + 1 < words.len() && wrappers::is_starter(&bare(word)) {
                self.read(&words[at..], depth);
            }
            let value = word.split_once('=').filter(|_| word.starts_with('-'));
            let text = value.map_or(word.as_str(), |(_, value)| value);
            let is_text = text.contains(char::is_whitespace);
            if is_text
                && self.texts.insert(text.to_owned())
                && self.may_go_on(std::slice::from_ref(word), depth)
            {
                for line in commands::commands(text) {
                    // A shell puts its words there, which `wrappers` does.
                    if !line.iter().any(|word| lines::is_given(word)) {
                        self.search(&line, depth + 1);
                    }
                }
                for inner in lines::substituted(text) {
                    // Its output may be that of the whole.
                    if inner.replace("2>&1", "").contains(">&") {
                        self.found.insert(Program::any());
                    }
                    self.search(&[inner], depth + 1);
                }
            }
        }
    }

    fn add(&mut self, kind: Kind, name: &str, args: &[String], is_package: bool) {
        let is_flag = |arg: &&String| arg.starts_with('-') && !arg.contains('=');
        let args = args.iter().filter(|arg| !is_flag(arg));
        let args = args.map(|arg| if is_package { versionless(arg) } else { arg });
        let args: Vec<String> = args.map(str::to_owned).collect();
        if !self.may_go_on(&args, 0) {
            return;
        }
        self.found.insert(Program {
            kind,
            name: name.to_owned(),
            args,
        });
    }

    fn add_address(&mut self, args: &[String]) {
        let mut args = args.iter();
        if let Some(url) =
            args.find(|arg| arg.starts_with("http://") || arg.starts_with("https://"))
        {
            self.found.extend(Program::at(url));
        }
    }
}
