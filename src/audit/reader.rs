//! Reads the log: the lines of all chains in order of time, and new lines as they are added.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::chain;
use crate::day::Day;
use crate::files;

/// A selection of lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    pub(crate) server: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) kind: Option<String>,
    /// Only refusals.
    pub(crate) denied: bool,
    /// Only failures.
    pub(crate) errors: bool,
    /// Only lines from this day on.
    pub(crate) since: Option<Day>,
}

/// The parts of a line that are read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Line {
    pub(crate) time: String,
    pub(crate) kind: String,
    pub(crate) outcome: String,
    pub(crate) session: String,
    pub(crate) client: String,
    pub(crate) version: String,
    pub(crate) identity: String,
    pub(crate) directory: String,
    pub(crate) profile: String,
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) ms: Option<f64>,
    pub(crate) sent: Option<u64>,
    pub(crate) received: Option<u64>,
    pub(crate) rule: String,
    pub(crate) detail: String,
    /// The whole line as it is in the file.
    #[serde(skip)]
    pub(crate) raw: String,
}

/// A reader that follows the log.
#[derive(Debug)]
pub(crate) struct Reader {
    directory: PathBuf,
    filter: Filter,
    /// The position in each file.
    read: BTreeMap<PathBuf, u64>,
}

impl Filter {
    fn fits(&self, line: &Line) -> bool {
        let is =
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|it| it == value);
        is(&self.server, &line.server)
            && is(&self.tool, &line.tool)
            && is(&self.client, &line.client)
            && is(&self.kind, &line.kind)
            && self
                .user
                .as_deref()
                .is_none_or(|user| is_of(user, &line.identity))
            && (!self.denied || line.outcome == "refused")
            && (!self.errors || matches!(line.outcome.as_str(), "error" | "failed" | "cancelled"))
    }
}

/// Whether an identity is that of a person. It is `KIND:NAME`, or `KIND:NAME/SUB` where an issuer names people by another member than `sub`;
/// the name alone means it, too.
fn is_of(person: &str, identity: &str) -> bool {
    let Some((kind, whole)) = identity.split_once(':') else {
        return identity == person;
    };
    let of_kind = person.strip_prefix(kind);
    let name = of_kind.and_then(|rest| rest.strip_prefix(':'));
    let wanted = name.unwrap_or(person);
    let shown = match kind {
        "oauth" | "login" => whole.split_once('/').map_or(whole, |(name, _)| name),
        _ => whole,
    };
    let named = shown.replace("%2F", "/").replace("%25", "%");
    [whole, shown, &named].contains(&wanted)
}

impl Reader {
    /// Creates a reader of the chains in `directory`.
    #[must_use]
    pub(crate) fn new(directory: &Path, filter: Filter) -> Self {
        Self {
            directory: directory.to_owned(),
            filter,
            read: BTreeMap::new(),
        }
    }

    /// The lines since the last call, by time. The first call returns all of them.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn lines(&mut self) -> io::Result<Vec<Line>> {
        let mut lines = Vec::new();
        self.each(|line| lines.push(line))?;
        lines.sort_by(|one: &Line, other| one.time.cmp(&other.time));
        Ok(lines)
    }

    /// Gives `take` the lines since the last call, chain by chain, each in its order.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn each(&mut self, mut take: impl FnMut(Line)) -> io::Result<()> {
        for (_, chain) in chain::chains(&self.directory)? {
            for (segment, path) in chain::segments(&chain)? {
                if self.filter.since.is_none_or(|since| segment.day >= since) {
                    self.read_file(&path, &mut take)?;
                }
            }
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path, take: &mut impl FnMut(Line)) -> io::Result<()> {
        let from = self.read.get(path).copied().unwrap_or(0);
        let mut file = match files::open_regular(path) {
            Ok(file) => file,
            // Retention has removed the file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(chain::of_file(path, &error)),
        };
        if file.metadata()?.len() <= from {
            return Ok(());
        }
        file.seek(SeekFrom::Start(from))?;
        let (mut reader, mut end, mut raw) = (BufReader::new(file), from, String::new());
        loop {
            raw.clear();
            let length = reader.read_line(&mut raw)?;
            // The rest of an unfinished line comes later.
            if !raw.ends_with('\n') {
                break;
            }
            end += length as u64;
            // `verify` reports lines that cannot be read.
            if let Ok(mut line) = serde_json::from_str::<Line>(&raw)
                && self.filter.fits(&line)
            {
                line.raw = raw.trim_end().to_owned();
                take(line);
            }
        }
        self.read.insert(path.to_owned(), end);
        Ok(())
    }
}
