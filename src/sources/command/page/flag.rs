//! A flag, as a page of help describes it.

use std::iter::Peekable;
use std::str::Chars;

use super::append;

/// A flag of a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::sources::command) struct Flag {
    /// The long spelling, with its dashes.
    pub(in crate::sources::command) long: Option<String>,
    /// The short spelling, with its dash.
    pub(in crate::sources::command) short: Option<String>,
    /// Further spellings of its kind: of this flag, or of others that share its entry (`--ours, --theirs`).
    others: Vec<String>,
    /// Whether `--no-NAME` switches it off.
    pub(in crate::sources::command) is_negatable: bool,
    /// Its value; `None` for a switch.
    pub(in crate::sources::command) value: Option<Value>,
    /// Whether it may be given several times, with a value each.
    pub(in crate::sources::command) is_repeated: bool,
    pub(in crate::sources::command) is_required: bool,
    /// Whether it is on unless switched off by `--NAME=false`.
    pub(in crate::sources::command) is_on: bool,
    pub(in crate::sources::command) about: String,
}

/// The value of a flag.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::sources::command) struct Value {
    pub(in crate::sources::command) kind: Kind,
    /// Whether the flag may be given without it.
    pub(in crate::sources::command) is_optional: bool,
    /// Whether the page writes it after `=`.
    pub(in crate::sources::command) is_attached: bool,
    /// The only values, if the page names them.
    pub(in crate::sources::command) choices: Vec<String>,
    /// Whether it may have a unit, as a size and a speed have.
    pub(in crate::sources::command) is_measure: bool,
    /// How many more values follow the first one: one for `--arg NAME VALUE`.
    pub(in crate::sources::command) more: usize,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::sources::command) enum Kind {
    #[default]
    Text,
    Integer,
    Number,
}

/// The spellings of a flag, and the value that follows them.
#[derive(Debug, Default)]
struct Spec {
    names: Vec<String>,
    is_negatable: bool,
    metavar: Option<String>,
    is_attached: bool,
    is_optional: bool,
    is_repeated: bool,
    /// The default of `--name=default:`, as kubectl writes it.
    default: Option<String>,
    /// The further words after the value.
    more: Vec<String>,
}

const INTEGERS: &[&str] = &[
    "int", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64", "integer", "n", "num",
    "number", "count", "port", "lines", "depth", "cols", "columns", "seconds", "secs", "nr",
    "jobs", "nlines", "intmax", "uintmax",
];
const MEASURES: &[&str] = &[
    "size", "speed", "rate", "bytes", "duration", "time", "level",
];
const NUMBERS: &[&str] = &["float", "float32", "float64", "double", "decimal"];
const LISTS: &[&str] = &[
    "strings",
    "stringarray",
    "stringslice",
    "list",
    "ints",
    "stringtostring",
    "map",
    "uints",
];

impl Flag {
    /// Reads a line that begins with a flag. Also returns the column of its text. `column` is that of the texts before, where a
    /// single blank may separate flag and text.
    pub(super) fn read(line: &str, column: Option<usize>) -> Option<(Self, Option<usize>)> {
        let (spec, text) = match split(line) {
            (spec, None) => column
                .and_then(|at| split_at(line, at))
                .unwrap_or((spec, None)),
            both => both,
        };
        let column = text.map(|text| line.chars().count() - text.chars().count());
        let mut spec = Spec::read(spec)?;
        spec.drop_glued();
        let mut longs = spec.names.iter().filter(|name| name.len() > 2);
        let long = longs.next();
        let mut shorts = spec.names.iter().filter(|name| name.len() == 2);
        let short = shorts.next();
        let others = match long {
            Some(_) => longs.cloned().collect(),
            None => shorts.cloned().collect(),
        };
        // More words than values are running text.
        let are_values = spec
            .more
            .iter()
            .chain(&spec.metavar)
            .all(|word| is_metavar(word));
        let is_text =
            !(spec.more.is_empty() || spec.is_attached || are_values && spec.more.len() < 3);
        if long.is_none() && short.is_none() || is_text {
            return None;
        }
        let mut flag = Self {
            long: long.cloned(),
            short: short.cloned(),
            others,
            is_negatable: spec.is_negatable,
            is_repeated: spec.is_repeated && spec.metavar.is_some(),
            ..Self::default()
        };
        match (&spec.default, &spec.metavar) {
            (Some(default), _) => flag.set_default(default),
            (None, Some(metavar)) => {
                let word = metavar
                    .trim_matches(['<', '>', '[', ']', '"'])
                    .to_lowercase();
                flag.is_repeated |= LISTS.contains(&word.as_str());
                flag.value = Some(Value {
                    kind: kind(&word),
                    is_optional: spec.is_optional,
                    is_attached: spec.is_attached,
                    choices: choices_of(metavar),
                    is_measure: word.split(['-', '_']).any(|part| MEASURES.contains(&part)),
                    more: if are_values { spec.more.len() } else { 0 },
                });
            }
            (None, None) => {}
        }
        if let Some(text) = text {
            flag.add_text(text);
        }
        Some((flag, column))
    }

    /// Continues the text, which may tell more of the value.
    pub(super) fn add_text(&mut self, text: &str) {
        append(&mut self.about, text);
        let lower = self.about.to_lowercase();
        let is_several = [
            "multiple times",
            "can be repeated",
            "may be repeated",
            "more than once",
            "several times",
            "can specify multiple",
            "be used multiple",
            "repeatable",
        ]
        .iter()
        .any(|words| lower.contains(words));
        if lower.contains("(default true)") && self.value.is_none() {
            self.is_on = true;
        }
        let Some(value) = &mut self.value else {
            return;
        };
        self.is_repeated |= is_several;
        if value.choices.is_empty() {
            value.choices = choices_in(&self.about);
        }
        // `The N argument can include a unit`
        if value.kind == Kind::Integer
            && ["a unit", "suffix"]
                .iter()
                .any(|words| lower.contains(words))
        {
            value.kind = Kind::Text;
            return;
        }
        if value.kind == Kind::Text && value.choices.is_empty() {
            if value.is_measure {
                return;
            }
            let default = ["(default ", "[default: ", "(default: ", "Default: "]
                .iter()
                .find_map(|open| {
                    let rest = &self.about[self.about.find(open)? + open.len()..];
                    let end = [')', ']', ' '];
                    Some(
                        rest.split(end)
                            .next()
                            .unwrap_or_default()
                            .trim_end_matches('.'),
                    )
                });
            let is_number =
                |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
            value.kind = match default.map(|text| (text, text.split_once('.'))) {
                Some((text, None)) if is_number(text) => Kind::Integer,
                Some((_, Some((whole, part)))) if is_number(whole) && is_number(part) => {
                    Kind::Number
                }
                _ => Kind::Text,
            };
        }
    }

    fn set_default(&mut self, default: &str) {
        let value = |kind| {
            Some(Value {
                kind,
                is_attached: true,
                ..Value::default()
            })
        };
        match default {
            "true" => self.is_on = true,
            "false" => {}
            "[]" => {
                self.is_repeated = true;
                self.value = value(Kind::Text);
            }
            _ if default.parse::<i64>().is_ok() => self.value = value(Kind::Integer),
            _ if default.parse::<f64>().is_ok() => self.value = value(Kind::Number),
            _ => self.value = value(Kind::Text),
        }
    }

    /// The flag, and one for each further spelling.
    pub(super) fn each(mut self) -> Vec<Self> {
        let others = std::mem::take(&mut self.others);
        let of_spelling = |name: String| {
            let is_long = name.len() > 2;
            Self {
                long: is_long.then(|| name.clone()),
                short: (!is_long).then_some(name),
                ..self.clone()
            }
        };
        let others: Vec<Self> = others.into_iter().map(of_spelling).collect();
        std::iter::once(self).chain(others).collect()
    }

    /// A flag that only a usage line names.
    pub(super) fn of_usage(name: &str, metavar: Option<&str>) -> Self {
        let is_long = name.len() > 2;
        Self {
            long: is_long.then(|| name.to_owned()),
            short: (!is_long).then(|| name.to_owned()),
            value: metavar.map(|metavar| Value {
                kind: kind(metavar.trim_matches(['<', '>']).to_lowercase().as_str()),
                choices: choices_of(metavar),
                ..Value::default()
            }),
            ..Self::default()
        }
    }

    /// The flag, which may be given several times or not.
    pub(super) fn repeated(self, is_repeated: bool) -> Self {
        Self {
            is_repeated,
            ..self
        }
    }

    /// Takes from the same flag of a fuller page the spellings and the text that are missing.
    pub(super) fn complete(&mut self, other: Self) {
        self.long = self.long.take().or(other.long);
        self.short = self.short.take().or(other.short);
        if self.about.is_empty() {
            self.value = self.value.take().or(other.value);
            self.about = other.about;
        }
    }

    /// Takes the value that the usage gives to the same flag.
    pub(super) fn take_value(&mut self, of_usage: Self) {
        if self.value.is_none() && of_usage.value.is_some() {
            self.value = of_usage.value;
            self.is_repeated = of_usage.is_repeated;
        }
    }

    /// Whether the other flag is `--no-NAME` of this switch, which is then known to have it.
    pub(super) fn is_negated_by(&mut self, other: &Self) -> bool {
        let positive = other
            .long
            .as_deref()
            .and_then(|long| long.strip_prefix("--no-"));
        let own = self
            .long
            .as_deref()
            .and_then(|long| long.strip_prefix("--"));
        let is_same = self.value.is_none() && positive.is_some() && positive == own;
        self.is_negatable |= is_same;
        is_same
    }

    /// Leaves the short spelling alone, as a switch. Returns whether there is one.
    pub(super) fn become_short(&mut self) -> bool {
        self.long = None;
        self.value = None;
        self.short.is_some()
    }

    /// The spellings.
    pub(super) fn spellings(&self) -> impl Iterator<Item = &str> {
        self.long
            .as_deref()
            .into_iter()
            .chain(self.short.as_deref())
    }

    /// The name without dashes.
    pub(in crate::sources::command) fn name(&self) -> String {
        let written = self.long.as_deref().or(self.short.as_deref());
        written
            .unwrap_or_default()
            .trim_start_matches('-')
            .to_owned()
    }
}

/// Whether a line is a flag with its text, or a line above some.
pub(super) fn begins(line: &str) -> bool {
    let text = split(line).1;
    line.starts_with("---")
        || line.starts_with('-')
            && text.is_some_and(|text| !text.starts_with('[') && text.contains(' '))
}

/// The flags of a line that names several without texts, as find's help does: `-maxdepth LEVELS -mount`. `None` for other lines.
pub(super) fn table(line: &str) -> Option<Vec<Flag>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_name = |word: &str| {
        let mut characters = word.chars();
        characters.next() == Some('-')
            && characters.next().is_some_and(|c| c.is_ascii_lowercase())
            && word.len() > 2
            && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    let names = words.iter().filter(|word| word.starts_with('-'));
    let is_table = names.clone().count() > 1
        && names.clone().all(|word| is_name(word))
        && !words.iter().any(|word| word.ends_with(','));
    if !is_table {
        return None;
    }
    let mut flags = Vec::new();
    for group in words.chunk_by(|_, next| !next.starts_with('-')) {
        match group {
            [name] => flags.push(Flag::of_usage(name, None)),
            // `N` may be `+N` there.
            [name, _] => flags.push(Flag::of_usage(name, Some(""))),
            [name, values @ ..] if values.iter().all(|value| is_metavar(value)) => {
                let mut flag = Flag::of_usage(name, Some(""));
                if let Some(value) = &mut flag.value {
                    value.more = values.len() - 1;
                }
                flags.push(flag);
            }
            // A command up to a `;` is not an argument, because it would make the tool a shell.
            _ => {}
        }
    }
    Some(flags)
}

/// The column of the long spelling in `-o FILE    --output=FILE`.
pub(super) fn column_of_long(line: &str) -> Option<usize> {
    let at = line.find("  --")?;
    let gap = line[at..].find('-')?;
    Some(line[..at + gap].chars().count())
}

/// Splits a line where the texts of other flags begin.
fn split_at(line: &str, column: usize) -> Option<(&str, Option<&str>)> {
    let (at, _) = line.char_indices().nth(column)?;
    let (spec, text) = line.split_at(at);
    // argparse: `--file FILE, --other FILE`, where the column may happen to be that of the value.
    let is_value = text.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let is_gap = spec.ends_with(' ')
        && !is_value
        && !text.starts_with([' ', '-', '[', '<'])
        && !text.contains(", -");
    is_gap.then(|| (spec.trim_end(), Some(text)))
}

/// Splits a line into the flag's spellings and its text.
fn split(line: &str) -> (&str, Option<&str>) {
    let mut depth = 0_i32;
    let mut blanks = 0;
    for (at, c) in line.char_indices() {
        match c {
            '[' | '<' | '{' | '(' => depth += 1,
            ']' | '>' | '}' | ')' => depth -= 1,
            _ => {}
        }
        blanks = if c == ' ' { blanks + 1 } else { 0 };
        // curl separates value and text by one blank: `--cacert <file> CA certificate`.
        let mut ends = ["> ", "] ", "... "].iter();
        let after = ends
            .find_map(|end| line[at..].strip_prefix(end))
            .filter(|_| depth == 0);
        if let Some(text) = after.filter(|text| text.starts_with(|c: char| c.is_ascii_uppercase()))
        {
            return (line[..line.len() - text.len()].trim(), Some(text.trim()));
        }
        if blanks == 2 && depth <= 0 {
            let text = line[at..].trim();
            // `-e,  --execute=COMMAND`, `-o FILE    --output=FILE`
            let is_spelling = text
                .strip_prefix('-')
                .is_some_and(|rest| rest.starts_with(|c: char| c == '-' || c.is_alphabetic()));
            if is_spelling {
                continue;
            }
            return (line[..at].trim(), (!text.is_empty()).then_some(text));
        }
    }
    // nmap: `-iL <file>: Input from list of hosts`
    match line.split_once(": ") {
        Some((spec, text)) if is_before_colon(spec) => (spec, Some(text.trim())),
        _ => (line, None),
    }
}

/// Whether the text before a colon is a flag with at most one value. kubectl's colons follow a default.
fn is_before_colon(spec: &str) -> bool {
    let is_short = spec.split_whitespace().count() <= 2 || spec.ends_with(['>', ']']);
    is_short && !spec.contains('=')
}

impl Spec {
    fn read(text: &str) -> Option<Self> {
        let mut spec = Self::default();
        let mut rest = text.chars().peekable();
        // Whether a comma or a bar precedes.
        let mut is_listed = true;
        // Whether a blank precedes: `-perm /mode` has one spelling.
        let mut is_apart = true;
        while let Some(c) = rest.peek().copied() {
            match c {
                '/' if !is_apart => {
                    rest.next();
                    spec.alternative(&mut rest);
                    is_listed = true;
                    continue;
                }
                ' ' | ',' | '|' | '/' => {
                    rest.next();
                    is_listed |= c != ' ';
                    is_apart = true;
                    continue;
                }
                '-' if spec.is_name_next(&rest, is_listed) => spec.name(&mut rest)?,
                _ if spec.names.is_empty() => return None,
                _ => {
                    let word = token(&mut rest);
                    // `--color / -C and --monochrome / -M`
                    let is_between = ["and", "or"].contains(&word.as_str())
                        && rest.clone().find(|c| *c != ' ') == Some('-');
                    if !is_between {
                        spec.word(&word);
                    }
                }
            }
            (is_listed, is_apart) = (false, false);
        }
        Some(spec)
    }

    /// Whether the dash that comes next begins a spelling. In `-perm -mode` it begins a value.
    fn is_name_next(&self, rest: &Peekable<Chars<'_>>, is_listed: bool) -> bool {
        let word: String = rest.clone().take_while(|c| !" ,|/=".contains(*c)).collect();
        let is_usual = word.starts_with("--") || word.len() == 2;
        let is_after_long = self
            .names
            .last()
            .is_some_and(|name| name.len() > 2 && !name.starts_with("--"));
        is_usual || is_listed || !is_after_long
    }

    /// Takes a spelling without dashes that follows a `/`: `-sS/sT`, `--min-rate/max-rate`.
    fn alternative(&mut self, rest: &mut Peekable<Chars<'_>>) {
        let word: String = rest
            .clone()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
            .collect();
        let Some(last) = self.names.last().filter(|_| self.metavar.is_none()) else {
            return;
        };
        let bare = last.trim_start_matches('-');
        let dashes = &last[..last.len() - bare.len()];
        let is_alike = match dashes {
            "--" => word.starts_with(|c: char| c.is_ascii_lowercase()) && bare.contains('-'),
            _ => bare.len() > 1 && word.len() == bare.len() && !word.starts_with('-'),
        };
        if is_alike {
            self.names.push(format!("{dashes}{word}"));
            rest.nth(word.len() - 1);
        }
    }

    /// Drops `-Lfile` if there is `-L file`.
    fn drop_glued(&mut self) {
        let shorts: Vec<String> = self
            .names
            .iter()
            .filter(|name| name.len() == 2)
            .cloned()
            .collect();
        self.names.retain(|name| {
            name.starts_with("--")
                || name.len() == 2
                || !shorts.iter().any(|short| name.starts_with(short))
        });
    }

    fn name(&mut self, rest: &mut Peekable<Chars<'_>>) -> Option<()> {
        let mut name = String::new();
        // The other spelling of `--colo[u]r`.
        let mut variant: Option<String> = None;
        while let Some(c) = rest.peek().copied() {
            match c {
                '[' if is_within_name(rest) => {
                    let inside = token(rest);
                    let inside = inside.trim_matches(['[', ']']);
                    if name == "--" && matches!(inside, "no-" | "no") {
                        self.is_negatable = true;
                    } else {
                        variant = Some(format!("{name}{inside}"));
                    }
                }
                '.' if name == "-" => {
                    name.push(c);
                    rest.next();
                }
                // `--http1.1`
                '.' if rest.clone().nth(1).is_some_and(|c| c.is_ascii_digit()) => {
                    name.push(c);
                    variant.iter_mut().for_each(|variant| variant.push(c));
                    rest.next();
                }
                '.' => break,
                c if c.is_alphanumeric()
                    || matches!(c, '-' | '_' | '?' | '@' | '#' | ':')
                        && !(c == ':' && name.len() > 1) =>
                {
                    name.push(c);
                    variant.iter_mut().for_each(|variant| variant.push(c));
                    rest.next();
                }
                _ => break,
            }
        }
        if name == "-" && rest.peek() == Some(&'<') {
            // `-<number>` has a longer spelling next to it.
            token(rest);
            return Some(());
        }
        let bare = name.trim_start_matches('-');
        // `-NUM`, `-b20`
        let is_number = name.len() > 2
            && !name.starts_with("--")
            && (name.starts_with("-N") && bare.chars().all(char::is_uppercase)
                || bare.chars().skip(1).all(|c| c.is_ascii_digit()));
        if bare.is_empty() || bare.contains("--") || name.len() - bare.len() > 2 || is_number {
            // `--` alone ends the flags, `-` is a file, `-NUM` a number, and `--o---o` a drawing.
            return None;
        }
        let negated = name
            .strip_prefix("--no-")
            .map(|positive| format!("--{positive}"));
        if negated.is_some_and(|positive| self.names.contains(&positive)) {
            self.is_negatable = true;
        } else {
            self.names.push(name);
            self.names.extend(variant);
        }
        match rest.peek() {
            Some('=') => {
                rest.next();
                let value = token(rest);
                self.value(&value, true, false);
            }
            Some('[') => {
                let inside = token(rest);
                let value = inside.trim_matches(['[', ']']);
                self.value(value.trim_start_matches('='), value.starts_with('='), true);
            }
            Some('<' | '{') => {
                let value = token(rest);
                self.value(&value, false, false);
            }
            Some(':') => {
                rest.next();
            }
            _ => {}
        }
        self.dots(rest);
        Some(())
    }

    /// Takes `...` after a spelling or a value.
    fn dots(&mut self, rest: &mut Peekable<Chars<'_>>) {
        while rest.peek().is_some_and(|c| matches!(c, '.' | '…')) {
            rest.next();
            self.is_repeated = true;
        }
    }

    fn value(&mut self, written: &str, is_attached: bool, is_optional: bool) {
        let is_kubectl = is_attached
            && written.ends_with(':')
            && (written.starts_with(['\'', '[', '"'])
                || written.trim_end_matches(':').parse::<f64>().is_ok()
                || ["true:", "false:"].contains(&written)
                || written.trim_end_matches(':').ends_with('s')
                    && written.starts_with(|c: char| c.is_ascii_digit()));
        if is_kubectl {
            self.default = Some(written.trim_end_matches(':').to_owned());
            return;
        }
        self.is_attached |= is_attached;
        self.is_optional |= is_optional;
        let written = written.trim_end_matches(':');
        if let Some(repeated) = written.strip_suffix("...") {
            self.is_repeated = true;
            self.metavar.get_or_insert_with(|| repeated.to_owned());
        } else {
            self.metavar.get_or_insert_with(|| written.to_owned());
        }
    }

    /// A word after the spellings: the value, or a further one.
    fn word(&mut self, word: &str) {
        let is_dots = word.chars().all(|c| matches!(c, '.' | '…'));
        match &self.metavar {
            _ if is_dots => self.is_repeated = true,
            None => {
                let is_optional = word.starts_with('[') && word.ends_with(']');
                self.value(word, false, is_optional);
            }
            // `-f FILE, --file FILE` has it twice; argparse writes `--x A [A ...]`.
            Some(known)
                if known.trim_matches(['[', ']'])
                    == word.trim_matches(['[', ']', '.', ' ', ':']) => {}
            Some(_) if word.starts_with('[') => self.is_repeated = true,
            // click: `INTEGER RANGE`
            Some(known) if word == "RANGE" && matches!(known.as_str(), "INTEGER" | "FLOAT") => {}
            Some(_) => self.more.push(word.trim_end_matches(':').to_owned()),
        }
    }
}

/// Takes characters up to a blank or a comma outside of brackets.
fn token(rest: &mut Peekable<Chars<'_>>) -> String {
    let (mut text, mut depth, mut quote) = (String::new(), 0_i32, None);
    while let Some(c) = rest.peek().copied() {
        match c {
            '\'' | '"' if quote.is_none() && text.is_empty() => quote = Some(c),
            c if quote == Some(c) => quote = None,
            '[' | '<' | '{' | '(' => depth += 1,
            ']' | '>' | '}' | ')' => depth -= 1,
            // `CODE1,CODE2` is one value.
            ',' if is_in_word(rest) => {}
            ' ' | ',' if depth <= 0 && quote.is_none() => break,
            _ => {}
        }
        text.push(c);
        rest.next();
        if depth == 0
            && quote.is_none()
            && matches!(c, ']' | '>' | '}')
            && !matches!(rest.peek(), Some('.' | ':' | '=' | '@' | '[' | '<'))
        {
            break;
        }
    }
    text
}

/// Whether the bracket that comes next stands within a spelling: `--colo[u]r`, `--[no-]color`.
fn is_within_name(rest: &Peekable<Chars<'_>>) -> bool {
    let mut rest = rest
        .clone()
        .skip(1)
        .skip_while(|c| c.is_ascii_alphabetic() || *c == '-');
    rest.next() == Some(']') && rest.next().is_some_and(|c| c.is_ascii_alphanumeric())
}

/// Whether the comma that comes next is followed by more of the word.
fn is_in_word(rest: &Peekable<Chars<'_>>) -> bool {
    rest.clone().nth(1).is_some_and(char::is_alphanumeric)
}

/// Whether a word stands for a value: `<file>`, `FILE`, `a`.
fn is_metavar(word: &str) -> bool {
    let is_bracketed = word.starts_with('<') && word.ends_with('>');
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let is_short = word.len() == 1 || !word.chars().any(char::is_lowercase);
    is_bracketed || is_short && !word.is_empty() && word.chars().all(is_plain)
}

fn kind(word: &str) -> Kind {
    match word {
        _ if INTEGERS.contains(&word) => Kind::Integer,
        _ if NUMBERS.contains(&word) => Kind::Number,
        _ => Kind::Text,
    }
}

/// The choices that a metavar names: `{a,b}`, `<a|b>`.
fn choices_of(metavar: &str) -> Vec<String> {
    let inner = metavar.trim_matches(['<', '>', '[', ']', '(', ')']);
    if let Some(list) = inner
        .strip_prefix('{')
        .and_then(|list| list.strip_suffix('}'))
    {
        return words(list, &[',', '|']);
    }
    // `<uid|user>` are two kinds of values.
    let is_kinds = metavar.starts_with('<') && inner.matches('|').count() == 1;
    if inner.contains('|') && !is_kinds {
        return words(inner, &['|']);
    }
    Vec::new()
}

/// The choices that a text names.
fn choices_in(text: &str) -> Vec<String> {
    let list = |open: &str, close: char| {
        let rest = &text[text.find(open)? + open.len()..];
        Some(rest.split(close).next()?.to_owned())
    };
    if let Some(list) = list("[possible values: ", ']') {
        return words(&list, &[',']);
    }
    // gh: `{open|closed|all}` and cobra: `(a|b)`, `One of: (a, b)`.
    for (open, close) in [("{", '}'), ("One of: (", ')'), ("one of: (", ')')] {
        let found = list(open, close).filter(|list| list.contains(['|', ',']));
        if let Some(found) = found
            .map(|list| words(&list, &['|', ',']))
            .filter(|found| found.len() > 1)
        {
            return found;
        }
    }
    let Some(found) = list("(", ')').filter(|list| list.contains('|')) else {
        return Vec::new();
    };
    let found = words(found.rsplit(": ").next().unwrap_or_default(), &['|']);
    if found.len() > 1 { found } else { Vec::new() }
}

/// The words of a list. Empty if one of them is not a plain word, because then it is not a list of values.
fn words(list: &str, separators: &[char]) -> Vec<String> {
    let words: Vec<String> = list
        .split(separators)
        .map(|word| word.trim().trim_matches(['"', '\'', '`', '*']).to_owned())
        .collect();
    let is_plain = |word: &String| {
        !word.is_empty()
            && word.len() <= 40
            && word
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+'))
            && !word.chars().all(char::is_uppercase)
    };
    if words.len() > 1 && words.iter().all(is_plain) {
        words
    } else {
        Vec::new()
    }
}
