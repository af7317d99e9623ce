//! Four small MCP servers for `mcpzip demo` and tests: a calendar, a notebook, texts and units.
//!
//! Their tools work: events and notes are stored on disk, units are converted, texts are compared. They need no
//! network, key or other program. The crate does not depend on mcpzip. It reads and writes one message at a time over
//! stdin and stdout.
//!
//! A server is a list of definitions (`tools.json`), which is sent to clients as written, and a function that calls a
//! tool by its name. The arguments are checked against these definitions.

mod calendar;
mod notes;
mod protocol;
mod store;
mod text;
mod tool;
#[cfg(test)]
mod trial;
mod units;

use std::io::{self, ErrorKind};
use std::path::Path;

use time::OffsetDateTime;

use tool::{Context, Service};

/// The servers that the demo starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Server {
    /// A notebook: writing, finding and tagging notes.
    Notes,
    /// A calendar: events that may repeat, free time, and calculations with dates.
    Calendar,
    /// Units of measure, money and arithmetic.
    Units,
    /// Counting, comparing, cleaning and encoding texts.
    Text,
}

impl Server {
    /// Every server, in the order of the demo.
    pub const ALL: [Self; 4] = [Self::Notes, Self::Calendar, Self::Units, Self::Text];

    /// The name in a configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.service().name
    }

    /// The server with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|server| server.name() == name)
    }

    fn service(self) -> &'static Service {
        match self {
            Self::Notes => &notes::SERVICE,
            Self::Calendar => &calendar::SERVICE,
            Self::Units => &units::SERVICE,
            Self::Text => &text::SERVICE,
        }
    }
}

/// Serves over stdin and stdout until stdin ends. `store` is the directory for the server's files, created if needed.
///
/// # Errors
/// When stdin cannot be read or stdout cannot be written. A closed stdout is not an error.
pub fn serve(server: Server, store: &Path) -> io::Result<()> {
    let context = Context {
        store: store.to_owned(),
        now: || OffsetDateTime::now_utc().truncate_to_second(),
    };
    let (input, output) = (io::stdin().lock(), io::stdout().lock());
    match protocol::run(server.service(), &context, input, output) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        ended => ended,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_server_is_found_by_its_name() {
        for server in Server::ALL {
            assert_eq!(Server::from_name(server.name()), Some(server));
        }
        assert_eq!(Server::from_name("Notes"), None);
    }

    #[test]
    fn every_tool_does_what_it_says() {
        trial::check(Server::Notes, include_str!("notes/cases.jsonl"));
        trial::check(Server::Calendar, include_str!("calendar/cases.jsonl"));
        trial::check(Server::Units, include_str!("units/cases.jsonl"));
        trial::check(Server::Text, include_str!("text/cases.jsonl"));
    }

    #[test]
    fn there_are_enough_tools_to_search_among_and_each_says_what_it_does() {
        let mut names = BTreeSet::new();
        let mut descriptions = BTreeSet::new();
        for tool in Server::ALL
            .iter()
            .flat_map(|server| server.service().tools())
        {
            assert!(
                names.insert(tool.name.clone()),
                "`{}` is there twice",
                tool.name
            );
            let description = tool.description.clone();
            assert!(
                description.ends_with('.') && description.len() > 40,
                "`{}`",
                tool.name
            );
            assert!(
                descriptions.insert(description),
                "`{}` is described as another is",
                tool.name
            );
        }
        assert!(names.len() >= 44, "{} tools", names.len());
    }
}
