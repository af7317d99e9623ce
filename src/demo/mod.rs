//! Real MCP servers inside the binary: what `mcpzip demo` and the tests stand in front of.
//!
//! Each one works: notes and events are kept on disk, units are converted, texts are compared. None needs a network, a
//! key or another program. They are as separate from the gateway as any server, talk to it over stdin and stdout, and
//! know nothing of it. They read and write one message at a time: a server this small needs no runtime.

mod arguments;
mod calendar;
mod file;
mod letter_case;
mod moment;
mod notes;
mod schema;
mod server;
mod text;
mod tool;
#[cfg(test)]
mod trial;
mod units;

use std::io::{self, ErrorKind};
use std::path::Path;

use time::OffsetDateTime;

use self::server::Service;
use self::tool::Context;

/// The servers that the demo starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Server {
    /// A notebook: write, find, tag and export notes.
    Notes,
    /// Events that repeat, free time, and arithmetic with dates.
    Calendar,
    /// Units of measure, money and calculation.
    Units,
    /// Counting, comparing, cleaning up and recoding of texts.
    Text,
}

impl Server {
    /// Every server, in the order in which the demo names them.
    pub const ALL: [Self; 4] = [Self::Notes, Self::Calendar, Self::Units, Self::Text];

    /// The name that a configuration gives it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.service().name
    }

    /// The server of that name.
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

/// Serves one over stdin and stdout until stdin ends. `store` is the directory for its files; it is made when needed.
///
/// # Errors
/// When stdin cannot be read or stdout cannot be written. A client that closed its end is no error.
pub fn serve(server: Server, store: &Path) -> io::Result<()> {
    let context = Context {
        store: store.to_owned(),
        now: OffsetDateTime::now_utc,
    };
    match server::run(
        server.service(),
        &context,
        io::stdin().lock(),
        io::stdout().lock(),
    ) {
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
    fn there_are_enough_tools_to_search_among_and_each_says_what_it_does() {
        let mut names = BTreeSet::new();
        let mut descriptions = BTreeSet::new();
        for tool in Server::ALL
            .iter()
            .flat_map(|server| server.service().tools())
        {
            assert!(names.insert(tool.name), "`{}` is there twice", tool.name);
            assert!(
                descriptions.insert(tool.description),
                "`{}` is described as another is",
                tool.name
            );
            assert!(
                tool.description.ends_with('.') && tool.description.len() > 40,
                "`{}`",
                tool.name
            );
        }
        assert!(names.len() >= 44, "{} tools", names.len());
    }

    #[test]
    fn no_argument_that_fits_its_declaration_breaks_a_tool() {
        for server in Server::ALL {
            trial::strain(server);
        }
    }
}
