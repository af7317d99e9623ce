//! Runs a program for its help: its own, then that of the subcommands that the help names.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::kept::{self, Program};
use super::manual::Manual;
use super::page::{FULLER, Page, Pages};
use crate::config::{CommandLine, Stdio, program_name};
use crate::upstream::{Run, UpstreamContext};

/// The variables of every run: plain text, without a pager.
pub(super) const PLAIN: [(&str, &str); 8] = [
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("COLUMNS", "200"),
];

/// The time limit of one page.
const LIMIT: Duration = Duration::from_secs(10);

/// The size limit of a page, in bytes.
const LARGEST: usize = 1024 * 1024;

/// The number of pages that are read at the same time.
const AT_ONCE: usize = 8;

/// The number of pages after which they are stored.
const KEPT: usize = 16;

/// The largest number of pages. Subcommands beyond it are no tools.
const MOST: usize = 1000;

/// The reading of a program's help.
pub(super) struct Help<'a> {
    pub(super) program: &'a Stdio,
    /// The program's file.
    pub(super) file: &'a Path,
    pub(super) command_line: &'a CommandLine,
    pub(super) context: &'a Arc<UpstreamContext>,
}

impl Help<'_> {
    /// The pages of the program. Those that were read before are kept in `directory`.
    ///
    /// # Errors
    /// When the program prints no help, for a person.
    pub(super) async fn pages(
        &self,
        program: &Program,
        directory: Option<&Path>,
    ) -> Result<Pages, String> {
        let mut texts = directory
            .map(|directory| kept::load(directory, program))
            .unwrap_or_default();
        self.read(&mut texts, |texts| {
            if let Some(directory) = directory {
                kept::store(directory, program, texts);
            }
        })
        .await
    }

    /// Reads the pages that `texts` lacks. `keep` stores what is read so far: if there are many pages, the time limit of a
    /// listing may pass, and the next listing goes on from there.
    async fn read(
        &self,
        texts: &mut BTreeMap<Vec<String>, String>,
        keep: impl Fn(&BTreeMap<Vec<String>, String>),
    ) -> Result<Pages, String> {
        let empty = tempfile::tempdir()
            .map_err(|error| format!("no empty directory for its help could be made: {error}"))?;
        let mut pages = Pages::new();
        let mut level = vec![Vec::new()];
        for depth in 0..self.command_line.depth {
            let missing = level
                .iter()
                .filter(|path| !texts.contains_key(*path))
                .cloned();
            let missing: Vec<Vec<String>> =
                missing.take(MOST.saturating_sub(texts.len())).collect();
            let reads = missing.into_iter().map(|path| async {
                let text = match path.is_empty() {
                    true => self.own_text(empty.path()).await,
                    false => self.text(&path, empty.path()).await,
                };
                (path, text)
            });
            let mut found = stream::iter(reads)
                .buffer_unordered(AT_ONCE)
                .ready_chunks(KEPT);
            let mut unkept = 0;
            while let Some(some) = found.next().await {
                unkept += some.len();
                let some = some.into_iter();
                texts.extend(some.filter_map(|(path, text)| Some((path, text?))));
                if unkept >= KEPT {
                    keep(texts);
                    unkept = 0;
                }
            }
            drop(found);
            if unkept > 0 {
                keep(texts);
            }
            let mut next = Vec::new();
            let mut repeating = Vec::new();
            for path in level {
                let Some(text) = texts.get(&path) else {
                    continue;
                };
                let page = Page::read(text);
                // A program that does not know the subcommand prints the page of the command above.
                let above = path.split_last().and_then(|(_, above)| texts.get(above));
                if above.is_some_and(|above| Page::own(above) == Page::own(text)) {
                    repeating.push(path);
                    continue;
                }
                if depth + 1 < self.command_line.depth {
                    let below = page.commands.iter().map(|command| {
                        let mut path = path.clone();
                        path.push(command.name.clone());
                        path
                    });
                    next.extend(below.filter(|path| self.is_wanted(path)));
                }
                pages.insert(path, page);
            }
            add_repeating(repeating, program_name(&self.program.command), &mut pages);
            level = next;
        }
        if pages.is_empty() {
            let command = &self.program.command;
            return Err(format!(
                "`{command}` prints no help that can be read; `cli_help` sets the argument that prints it, and `cli_tools` defines tools without it"
            ));
        }
        Ok(pages)
    }

    /// Whether `cli_only` has room for a subcommand, or for one below it.
    fn is_wanted(&self, path: &[String]) -> bool {
        let only = &self.command_line.only;
        let is_held_back = path
            .last()
            .is_some_and(|last| super::tools::is_held_back(last));
        let fits = |one: &Vec<String>| {
            let length = one.len().min(path.len());
            one[..length] == path[..length]
        };
        if only.is_empty() {
            !is_held_back
        } else {
            only.iter().any(fits)
        }
    }

    /// The program's own help, with the list of all subcommands where the help names a way to it.
    async fn own_text(&self, directory: &Path) -> Option<String> {
        let mut text = self.own_page(&[], directory).await?;
        let ways: [(&str, &[&str], &str); 4] = [
            (" help -a", &["help", "-a"], "All commands"),
            ("commands with --list", &["--list"], "All commands"),
            ("--help all", &["--help", "all"], "All options"),
            ("--long-help", &["--long-help"], "All options"),
        ];
        for (words, arguments, title) in ways {
            if text.contains(words) {
                let arguments: Vec<String> =
                    arguments.iter().map(|&word| word.to_owned()).collect();
                let more = self.run(&arguments, directory).await;
                text.extend(more.map(|(more, _)| format!("\n\n{title}:\n{more}")));
            }
        }
        Some(self.with_fuller(text, &[], directory).await)
    }

    /// The help of a subcommand.
    async fn text(&self, path: &[String], directory: &Path) -> Option<String> {
        let text = self.own_page(path, directory).await?;
        Some(self.with_fuller(text, path, directory).await)
    }

    /// A page of help, with those that it names as fuller ones.
    async fn with_fuller(&self, mut text: String, path: &[String], directory: &Path) -> String {
        if self.command_line.help.is_some() || Page::read(&text).is_manual {
            return text;
        }
        let other = [&["help".to_owned()], path].concat();
        if !path.is_empty() && names(&text, &other.join(" ")) {
            let fuller = self.run(&other, directory).await;
            text.extend(fuller.map(|(fuller, _)| format!("{FULLER}{fuller}")));
        }
        let manual = Manual::of(&self.program.command, self.file, path);
        if let Some(manual) = manual.filter(|manual| manual.is_named_in(&text)) {
            let arguments = manual.arguments();
            let fuller = self.run_as(&manual.program, &arguments, directory).await;
            text.extend(fuller.map(|(fuller, _)| format!("{FULLER}{fuller}")));
        }
        text
    }

    /// The fullest of the pages that the program prints of a subcommand.
    async fn own_page(&self, path: &[String], directory: &Path) -> Option<String> {
        let after = |word: &str| [path, &[word.to_owned()]].concat();
        let before = |word: &str| [&[word.to_owned()], path].concat();
        if let Some(help) = &self.command_line.help {
            let is_flag = help.starts_with('-') || path.is_empty();
            let arguments = if is_flag { after(help) } else { before(help) };
            return self.run(&arguments, directory).await.map(|(text, _)| text);
        }
        let mut best: Option<(String, usize)> = None;
        for arguments in [after("--help"), after("-h"), before("help"), after("-help")] {
            let found = self.run(&arguments, directory).await;
            if let Some((text, size)) = found
                && best.as_ref().is_none_or(|(_, known)| size > *known)
            {
                best = Some((text, size));
            }
            if best.as_ref().is_some_and(|(text, _)| is_enough(text)) {
                break;
            }
        }
        best.map(|(text, _)| text)
    }

    /// The text that a run prints, and the number of things that it describes.
    async fn run(&self, arguments: &[String], directory: &Path) -> Option<(String, usize)> {
        self.run_as(self.program, arguments, directory).await
    }

    async fn run_as(
        &self,
        program: &Stdio,
        arguments: &[String],
        directory: &Path,
    ) -> Option<(String, usize)> {
        let run = Run {
            program,
            arguments,
            variables: &PLAIN,
            directory: Some(directory),
            input: None,
            limit: LARGEST,
        };
        let finished = tokio::time::timeout(LIMIT, self.context.run(run)).await;
        // A page that is cut, or comes too late, is none.
        let finished = finished
            .ok()?
            .ok()
            .filter(|finished| finished.status.is_some())?;
        let texts = [finished.stdout, finished.stderr];
        let pages = texts.into_iter().map(|bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let page = Page::read(&text);
            let size = page.usage.len() + page.commands.len() + page.flags.len();
            (text, size)
        });
        pages
            .filter(|(_, size)| *size > 0)
            .max_by_key(|(_, size)| *size)
    }
}

/// Adds subcommands whose help is that of the command above, if all of them are such: the program has one page for all.
fn add_repeating(mut paths: Vec<Vec<String>>, program: &str, pages: &mut Pages) {
    paths.retain(|path| {
        let above = &path[..path.len() - 1];
        let mut others = pages.keys().filter(|known| known.len() == path.len());
        !others.any(|known| known.starts_with(above))
    });
    for path in paths {
        if let Some(parent) = pages.get(&path[..path.len() - 1]) {
            let words: Vec<&str> = std::iter::once(program)
                .chain(path.iter().map(String::as_str))
                .collect();
            let page = parent.shared_with(&words);
            pages.insert(path, page);
        }
    }
}

/// Whether no other way to print the help needs to be tried.
fn is_enough(text: &str) -> bool {
    let page = Page::read(text);
    !page.usage.is_empty() && !page.is_manual
}

/// Whether a text has these words, as `go build --help` has `go help build`.
fn names(text: &str, words: &str) -> bool {
    let is_end =
        |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let mut found = text.match_indices(words);
    found.any(|(at, _)| is_end(&text[at + words.len()..]))
}
