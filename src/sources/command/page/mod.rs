//! A program's help, read as text: its subcommands, flags and positional arguments.
//!
//! There is no format of help, only habits: those of clap, cobra, argparse, click, GNU programs, Go's `flag` and git. A line
//! that follows none of them is left out, and has no other effect.

mod flag;
mod layout;
mod usage;

pub(super) use flag::{Flag, Kind};
pub(super) use usage::{Positional, Positionals};

use std::collections::BTreeMap;

use layout::{Line, Section, lines};

/// The longest text of an entry, in characters.
const LONGEST: usize = 400;

/// A column in which no text begins.
const NOWHERE: usize = usize::MAX;

/// The pages of a program by subcommand: the words after the program; none for its own page.
pub(super) type Pages = BTreeMap<Vec<String>, Page>;

/// A page of help.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Page {
    /// The purpose, in a sentence or two.
    pub(super) about: String,
    /// The usage lines.
    pub(super) usage: Vec<String>,
    pub(super) commands: Vec<Command>,
    pub(super) flags: Vec<Flag>,
    /// Whether it is a manual page: flags have lines of their own, at one indentation.
    pub(super) is_manual: bool,
    /// The entries of a section about arguments: name and text.
    arguments: Vec<(String, String)>,
    /// Lines of flags in brackets, without the command.
    synopsis: Vec<String>,
    /// The lists of a manual page that may be of subcommands, by section and indentation.
    lists: BTreeMap<(usize, usize), Vec<String>>,
}

/// The separator between a page and a fuller one of the same command.
pub(super) const FULLER: char = '\u{c}';

/// A subcommand that a page names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) about: String,
    /// Whether it stands below a heading about commands.
    is_certain: bool,
}

impl Command {
    /// A subcommand without a text.
    fn named(name: String) -> Self {
        let about = String::new();
        let is_certain = true;
        Self {
            name,
            about,
            is_certain,
        }
    }
}

/// The entry that the following lines continue.
enum Last {
    None,
    /// The first paragraph.
    About,
    Command,
    Flag,
    Argument,
}

struct Reader {
    page: Page,
    section: Section,
    last: Last,
    /// The indentation of the last entry.
    indent: usize,
    /// The column in which the text of the last entry begins.
    column: Option<usize>,
    /// The column in which the texts of flags begin.
    column_of_flags: Option<usize>,
    /// The column of long spellings, where short and long ones have a column each.
    long_at: Option<usize>,
    /// The indentation of the section's first flag.
    flags_at: Option<usize>,
    after_blank: bool,
    /// Whether the section's lines have names only.
    is_table: bool,
    /// Whether this line began a section.
    has_begun: bool,
    /// Whether the headings are groups of subcommands.
    has_groups: bool,
    /// The number of sections before.
    sections: usize,
    /// Whether the line before is a flag's.
    is_below_flag: bool,
    /// Whether the next line has more indentation.
    has_text: bool,
}

impl Page {
    /// Reads a page, and the fuller ones that follow it after [`FULLER`].
    pub(super) fn read(text: &str) -> Self {
        let fuller = text.split(FULLER).skip(1).map(Self::read_one);
        fuller.fold(Self::own(text), Self::completed_by)
    }

    /// Reads a page without the fuller ones that follow it.
    pub(super) fn own(text: &str) -> Self {
        Self::read_one(text.split(FULLER).next().unwrap_or_default())
    }

    fn read_one(text: &str) -> Self {
        let all = lines(text);
        let mut reader = Reader {
            page: Self {
                is_manual: layout::is_manual(&all),
                ..Self::default()
            },
            section: Section::About,
            last: Last::None,
            indent: 0,
            column: None,
            column_of_flags: None,
            long_at: None,
            flags_at: None,
            after_blank: true,
            is_table: false,
            has_begun: false,
            has_groups: false,
            sections: 0,
            is_below_flag: false,
            has_text: false,
        };
        for (index, line) in all.iter().enumerate() {
            if line.text.is_empty() {
                reader.after_blank = true;
                continue;
            }
            let next = all[index + 1..].iter().find(|line| !line.text.is_empty());
            let flags = reader.page.flags.len();
            let below = all.get(index + 1).map(|line| line.indent);
            reader.has_text = below.is_some_and(|indent| indent > line.indent);
            reader.line(line, next);
            reader.is_below_flag = reader.page.flags.len() > flags;
            let has_begun = std::mem::take(&mut reader.has_begun);
            reader.after_blank = has_begun && reader.page.is_manual;
        }
        let mut page = reader.page;
        page.about = page.about.trim().to_owned();
        page.flags = page.flags.into_iter().flat_map(Flag::each).collect();
        page.drop_doubtful();
        page.drop_duplicates();
        page.add_flags_of_usage();
        page.require_by_usage();
        page
    }

    /// This page, with what it lacks of a fuller one.
    fn completed_by(mut self, other: Self) -> Self {
        for flag in other.flags {
            let is_same = |known: &&mut Flag| {
                let mut spellings = known.spellings();
                spellings.any(|name| flag.spellings().any(|other| other == name))
            };
            match self.flags.iter_mut().find(is_same) {
                Some(known) => known.complete(flag),
                None => self.flags.push(flag),
            }
        }
        self.drop_duplicates();
        // Most of the names of a list are known if it is that of the subcommands.
        let is_known = |name: &String| self.commands.iter().any(|known| known.name == *name);
        let is_of_commands = |list: &&Vec<String>| {
            let known = list.iter().filter(|name| is_known(name)).count();
            known * 2 > list.len() && known * 2 > self.commands.len()
        };
        let list = other.lists.values().find(is_of_commands);
        let mut named = list.cloned().unwrap_or_default();
        named.retain(|name| !is_known(name));
        self.commands.extend(named.into_iter().map(Command::named));
        self
    }

    /// The page of the command `words` alone, if the usage has several commands.
    pub(super) fn narrowed(&self, words: &[&str]) -> Self {
        let mut page = self.clone();
        let own = self
            .usage
            .iter()
            .filter_map(|usage| usage::of_command(usage, words));
        let own: Vec<String> = own.collect();
        if own.is_empty() || own.len() == self.usage.len() {
            return page;
        }
        if let Some(named) = usage::all_spellings(&own) {
            page.flags.retain(|flag| {
                let mut spellings = flag.spellings();
                spellings.any(|name| named.iter().any(|known| known == name))
            });
        }
        page.usage = own;
        page.add_flags_of_usage();
        page.require_by_usage();
        page
    }

    /// The page of the command `words` of a program that has one page for all.
    pub(super) fn shared_with(&self, words: &[&str]) -> Self {
        let own = self.narrowed(words);
        Self {
            usage: own
                .usage
                .into_iter()
                .filter(|usage| !self.usage.contains(usage))
                .collect(),
            flags: own.flags,
            ..Self::default()
        }
    }

    /// The positional arguments of the command `path`, the words that begin its usage.
    pub(super) fn positionals(&self, path: &[&str]) -> Positionals {
        usage::positionals(&self.usage, path, &self.arguments)
    }

    /// Drops tables of other words than subcommands: without a heading that says so, the usage must name a command.
    fn drop_doubtful(&mut self) {
        let names_command = self.usage.iter().any(|usage| {
            let usage = usage.to_lowercase();
            ["command", "<cmd>", "action"]
                .iter()
                .any(|word| usage.contains(word))
        });
        self.commands
            .retain(|command| command.is_certain || names_command);
    }

    fn drop_duplicates(&mut self) {
        let mut seen = std::collections::BTreeSet::new();
        self.commands
            .retain(|command| seen.insert(command.name.clone()));
        let mut seen = std::collections::BTreeSet::new();
        self.flags.retain_mut(|flag| {
            let is_new = seen.insert(flag.name());
            // `-p, --style=slash` is a switch, in addition to `--style=WORD`.
            is_new || flag.become_short() && seen.insert(flag.name())
        });
    }

    /// Adds flags that only the usage names.
    fn add_flags_of_usage(&mut self) {
        let is_only_source = self.flags.is_empty();
        let all = self.usage.iter().chain(&self.synopsis);
        let found: Vec<Flag> = all
            .flat_map(|usage| usage::flags(usage, is_only_source))
            .collect();
        for flag in found {
            let known = self.flags.iter().position(|known| {
                let mut spellings = known.spellings();
                spellings.any(|name| flag.spellings().any(|own| own == name))
            });
            match known {
                Some(at) => self.flags[at].take_value(flag),
                None if self
                    .flags
                    .iter_mut()
                    .any(|known| known.is_negated_by(&flag)) => {}
                None => self.flags.push(flag),
            }
        }
    }

    /// A flag that a usage line has outside of brackets is required.
    fn require_by_usage(&mut self) {
        let [usage] = &self.usage[..] else {
            return;
        };
        let required = usage::bare_flags(usage);
        for flag in &mut self.flags {
            let is_required = flag.spellings().any(|name| required.contains(&name));
            flag.is_required = is_required;
        }
    }
}

impl Reader {
    fn line(&mut self, line: &Line, next: Option<&Line>) {
        if self.page.is_manual && line.indent == 0 {
            return self.begin(layout::manual_section(&line.text));
        }
        if self.section == Section::Name {
            let (_, about) = line.text.split_once(" - ").unwrap_or(("", &line.text));
            return append(&mut self.page.about, about);
        }
        if line.text.starts_with("[-") && line.text.ends_with(']') && self.section == Section::Flags
        {
            return self.page.synopsis.push(line.text.clone());
        }
        if let Some(usage) = layout::usage(&line.text) {
            self.begin(Section::Usage);
            self.indent = line.indent;
            if !usage.is_empty() {
                self.page.usage.push(usage.to_owned());
                self.column = Some(line.indent + 7);
            }
            return;
        }
        if self.section == Section::Usage && self.continues_usage(line) {
            return;
        }
        if let Some(section) = layout::heading(line, next).filter(|_| !self.page.is_manual) {
            let section = self.grouped(section);
            self.begin(section);
            return;
        }
        if self.entry(line) {
            return;
        }
        let is_continued = line.indent > self.indent;
        match (&self.last, self.section) {
            (Last::Flag, _) if is_continued => {
                if let Some(flag) = self.page.flags.last_mut() {
                    flag.add_text(&line.text);
                }
            }
            (Last::Command, _) if is_continued => {
                if let Some(command) = self.page.commands.last_mut() {
                    append(&mut command.about, &line.text);
                }
            }
            (Last::Argument, _) if is_continued => {
                if let Some((_, text)) = self.page.arguments.last_mut() {
                    append(text, &line.text);
                }
            }
            (_, Section::About | Section::Usage | Section::Other)
                if line.indent <= 1 && !self.page.is_manual =>
            {
                let is_first = self.page.about.is_empty();
                self.section = Section::About;
                if is_first || matches!(self.last, Last::About) && !self.after_blank {
                    append(&mut self.page.about, &line.text);
                    self.last = Last::About;
                } else {
                    self.last = Last::None;
                }
            }
            _ => {}
        }
    }

    /// The section of a heading. After a heading of commands that has only headings below it, as `list of commands:` of
    /// Mercurial, those have the commands.
    fn grouped(&mut self, section: Section) -> Section {
        let is_empty = matches!(self.last, Last::None);
        self.has_groups = match section {
            Section::Other => self.has_groups || self.section == Section::Commands && is_empty,
            _ => false,
        };
        if self.has_groups {
            Section::Commands
        } else {
            section
        }
    }

    fn begin(&mut self, section: Section) {
        self.section = section;
        self.sections += 1;
        self.has_begun = true;
        self.last = Last::None;
        (self.column, self.flags_at) = (None, None);
        self.is_table = false;
        self.indent = 0;
    }

    /// Takes a line that belongs to the usage.
    fn continues_usage(&mut self, line: &Line) -> bool {
        if matches!(self.last, Last::Flag) {
            return false;
        }
        let is_new = self.page.usage.is_empty() || self.column.is_none();
        if self.after_blank && !is_new {
            // Options may begin right of the usage.
            self.column = Some(NOWHERE);
            return false;
        }
        if line.indent <= self.indent && !(is_new && self.page.usage.is_empty()) {
            return false;
        }
        if flag::begins(&line.text) {
            self.begin(Section::Flags);
            return false;
        }
        // A line that begins as the first one does is another usage.
        let first_word = |text: &str| text.split_whitespace().next().map(str::to_owned);
        let begins = self.page.usage.first().and_then(|usage| first_word(usage));
        let text = line.text.strip_prefix("or:").unwrap_or(&line.text).trim();
        match self.page.usage.last_mut() {
            Some(last) if begins != first_word(text) => {
                last.push(' ');
                last.push_str(text);
            }
            _ => self.page.usage.push(text.to_owned()),
        }
        self.column = Some(line.indent);
        true
    }

    /// Takes a line that begins an entry.
    fn entry(&mut self, line: &Line) -> bool {
        // A usage without indentation has no column of its own.
        let is_text = (self.column).is_some_and(|column| column > 0 && line.indent >= column);
        if line.text.starts_with('-') && self.section != Section::Ignored {
            let most = if self.page.is_manual { 0 } else { 6 };
            let is_deep = self.flags_at.is_some_and(|at| line.indent > at + most)
                && self.long_at != Some(line.indent);
            // In a manual, a line of a paragraph may begin with a flag.
            let is_paragraph = self.page.is_manual
                && !self.after_blank
                && !(self.is_below_flag && line.indent == self.indent);
            if is_text || is_deep || is_paragraph {
                return false;
            }
            if let Some(flags) = flag::table(&line.text).filter(|_| !self.page.is_manual) {
                self.page.flags.extend(flags);
                self.column = None;
                return self.at(Last::None, line);
            }
            let column = self
                .column_of_flags
                .and_then(|at| at.checked_sub(line.indent));
            let Some(flag) = Flag::read(&line.text, column) else {
                return false;
            };
            self.flags_at.get_or_insert(line.indent);
            if let Some(at) = flag::column_of_long(&line.text) {
                self.long_at = Some(line.indent + at);
            }
            self.column = flag.1.map(|at| line.indent + at);
            self.column_of_flags = self.column.or(self.column_of_flags);
            self.page.flags.push(flag.0);
            return self.at(Last::Flag, line);
        }
        if line.indent == 0 && self.section != Section::Commands || is_text {
            return false;
        }
        self.list(line);
        match self.section {
            Section::Commands if self.page.is_manual => self.command_of_manual(line),
            Section::Commands | Section::Other | Section::About => {
                let is_certain = self.section == Section::Commands;
                let cells = layout::table(&line.text).filter(|_| is_certain);
                if let Some(cells) = cells.filter(|cells| cells.len() > 2 || self.is_table) {
                    self.is_table = true;
                    let named = cells
                        .into_iter()
                        .map(|name| Command::named(name.to_owned()));
                    self.page.commands.extend(named);
                    return self.at(Last::None, line);
                }
                let found = layout::commands(line, is_certain, self.column);
                if found.is_empty() {
                    return false;
                }
                self.column = found
                    .last()
                    .and_then(|(_, _, at)| at.map(|at| line.indent + at));
                for (name, about, _) in found {
                    self.page.commands.push(Command {
                        name,
                        about,
                        is_certain,
                    });
                }
                self.at(Last::Command, line)
            }
            Section::Arguments => self.argument(line),
            Section::Name | Section::Usage | Section::Flags | Section::Ignored => false,
        }
    }

    /// Takes an entry of a manual's section about subcommands: `add [-f] <name> <url>`.
    fn command_of_manual(&mut self, line: &Line) -> bool {
        let Some(name) = layout::command_with_usage(&line.text).filter(|_| self.after_blank) else {
            return false;
        };
        if *self.flags_at.get_or_insert(line.indent) != line.indent {
            return false;
        }
        self.page.commands.push(Command::named(name.to_owned()));
        self.at(Last::Command, line)
    }

    /// Notes a line of a manual page that may name a subcommand, in any section.
    fn list(&mut self, line: &Line) {
        let is_readable =
            self.page.is_manual && self.after_blank && self.section != Section::Ignored;
        // A short name has its text in the same line.
        let head = layout::columns(&line.text).map(|(head, _)| head);
        let head = head.or(self.has_text.then_some(line.text.as_str()));
        let name = head
            .filter(|_| is_readable)
            .and_then(layout::command_with_usage);
        if let Some(name) = name {
            let list = self
                .page
                .lists
                .entry((self.sections, line.indent))
                .or_default();
            list.push(name.to_owned());
        }
    }

    /// Takes an entry of a section about arguments; `{a,b}` are subcommands, as are entries below `<command>`.
    fn argument(&mut self, line: &Line) -> bool {
        let stands_for_commands = |(name, text): &(String, String)| {
            text.is_empty() && ["command", "subcommand", "cmd", "action"].contains(&name.as_str())
        };
        if matches!(self.last, Last::Argument)
            && line.indent > self.indent
            && self.page.arguments.last().is_some_and(stands_for_commands)
            && !layout::commands(line, true, None).is_empty()
        {
            self.begin(Section::Commands);
            return self.entry(line);
        }
        let (name, text) = line.text.split_once("  ").unwrap_or((&line.text, ""));
        let (name, text) = (name.trim(), text.trim());
        if let Some(choices) = name
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'))
        {
            let names = choices.split(',').filter(|name| layout::is_command(name));
            let commands = names.map(|name| Command::named(name.to_owned()));
            self.page.commands.extend(commands);
            return self.at(Last::None, line);
        }
        let known = self
            .page
            .commands
            .iter_mut()
            .find(|command| command.name == name);
        if let Some(command) = known {
            text.clone_into(&mut command.about);
            return true;
        }
        if !matches!(self.last, Last::None) && line.indent > self.indent {
            return false;
        }
        let is_name = !name.is_empty() && !name.contains(' ') || name.starts_with(['<', '[']);
        if is_name {
            let name = usage::plain(name);
            self.page.arguments.push((name, text.to_owned()));
            return self.at(Last::Argument, line);
        }
        false
    }

    fn at(&mut self, last: Last, line: &Line) -> bool {
        self.last = last;
        self.indent = line.indent;
        true
    }
}

/// Appends a line to the text of an entry, up to a limit.
fn append(text: &mut String, line: &str) {
    if text.chars().count() >= LONGEST {
        return;
    }
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(line);
    if let Some((at, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(at);
        text.push('…');
    }
}
