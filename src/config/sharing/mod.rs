//! Decides which sessions may share a server's process, by the differences between them that the server can notice.
//!
//! Only a server's entry or the table of known packages permits sharing; all other criteria only restrict it.

mod table;

pub(crate) use table::{KeptData, KnownPackage};

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::options::{Scope, Share};
use super::{SandboxPreset, Server, SessionEnv, Stdio, Transport};

/// A decision, and why it was made; the reason goes on after "because".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// The sessions that share the process.
    pub scope: Scope,
    /// For people.
    pub reason: String,
    /// Whether the decision is based on anything known of the server.
    pub is_known: bool,
}

impl Server {
    /// The number of calls that the server gets at once.
    #[must_use]
    pub(crate) fn calls_at_once(&self) -> Option<NonZeroUsize> {
        let alone = self.package.is_serial.then_some(NonZeroUsize::MIN);
        self.max_concurrent.or(alone)
    }

    /// Whether the handshake with the server declares what its client can be asked. Without that, clients that differ in it share a
    /// process.
    #[must_use]
    pub(crate) fn declares_capabilities(&self) -> bool {
        self.client_capabilities
            .unwrap_or_else(|| match &self.transport {
                Transport::Stdio(_) => {
                    self.share != Share::For(Scope::All)
                        && !self.package.row.is_some_and(|row| row.asks_nothing)
                }
                Transport::Http(_) | Transport::Sse(_) => true,
                Transport::Folder(_) => false,
            })
    }

    /// Whether its sandbox depends on the session's project.
    fn has_project_inside(&self) -> bool {
        let Transport::Stdio(stdio) = &self.transport else {
            return false;
        };
        let preset = stdio.sandbox.as_ref().map(|sandbox| sandbox.preset);
        preset == Some(SandboxPreset::Project)
    }

    /// Which sessions may share this server with `session`. `asked_for_roots` is whether it was ever seen to ask its client for them.
    #[must_use]
    pub(crate) fn sharing(&self, session: &SessionEnv, asked_for_roots: bool) -> Sharing {
        let decided = |scope, reason: &str| Sharing {
            scope,
            reason: reason.to_owned(),
            is_known: true,
        };
        if let Share::For(scope) = self.share {
            return match (scope, self.has_project_inside()) {
                (Scope::All, true) => {
                    decided(Scope::Project, "its sandbox has the session's project")
                }
                _ => decided(scope, "its entry says so"),
            };
        }
        let stdio = match &self.transport {
            Transport::Http(remote) | Transport::Sse(remote)
                if remote.headers_command.is_some() =>
            {
                return decided(
                    Scope::Session,
                    "its headers_command gets the session's variables",
                );
            }
            Transport::Http(_) | Transport::Sse(_) => {
                return decided(Scope::All, "it is behind HTTP");
            }
            Transport::Folder(_) => return decided(Scope::All, "it is a folder"),
            Transport::Stdio(stdio) => stdio,
        };
        let known = self.package.row;
        let known_scope = known.map_or(Scope::Project, |row| row.scope);
        if known_scope == Scope::All {
            if self.has_project_inside() {
                return decided(Scope::Project, "its sandbox has the session's project");
            }
            if let Some(path) = session
                .directory
                .as_deref()
                .and_then(|at| path_within(stdio, at))
            {
                return decided(Scope::Project, &format!("`{path}` is in the directory"));
            }
            if table::mounts(stdio) {
                return decided(Scope::Project, "a directory is mounted into its container");
            }
            if asked_for_roots {
                return decided(Scope::Project, "it asked for roots");
            }
        }
        match known {
            Some(row) => decided(row.scope, row.reason),
            None => Sharing {
                is_known: false,
                ..decided(Scope::Project, "nothing is known of it")
            },
        }
    }
}

/// An argument that means something in `directory`, or a variable whose value is a path in it.
fn path_within(stdio: &Stdio, directory: &Path) -> Option<String> {
    let values = stdio.env.values().map(|value| value.expose().as_str());
    let is_below = |text: &str| {
        let path = PathBuf::from(text);
        path.is_absolute() && path.starts_with(directory)
    };
    let is_path =
        |text: &str| !text.is_empty() && (is_below(text) || directory.join(text).exists());
    let value_of = |arg: &str| match arg.split_once('=') {
        Some((_, value)) if arg.starts_with('-') => value.to_owned(),
        _ => arg.to_owned(),
    };
    let mut args = stdio.args.iter().map(|arg| value_of(arg));
    if let Some(found) = args.find(|arg| is_path(arg)) {
        return Some(found);
    }
    // A value may be a secret: its variable is named.
    values.clone().any(is_below).then(|| {
        let name = stdio.env.iter().find(|(_, value)| is_below(value.expose()));
        name.map_or_else(String::new, |(name, _)| format!("${{{name}}}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Environment};

    fn sharing(entry: &str, directory: &Path, asked: bool) -> (Scope, String) {
        let text = format!(r#"{{"mcpServers":{{"s":{entry}}}}}"#);
        let path = directory.join("config.json");
        let config = Config::parse(&text, &path, &Environment::default()).unwrap();
        let session = SessionEnv {
            directory: Some(directory.to_owned()),
            environment: Environment::default(),
            open_files: None,
        };
        let server = config.servers.values().next().unwrap();
        let Sharing { scope, reason, .. } = server.sharing(&session, asked);
        (scope, reason)
    }

    #[test]
    fn a_sandbox_with_the_project_is_of_the_project_at_most() {
        let directory = tempfile::tempdir().unwrap();
        let entry = r#"{"command":"npx","args":["tavily-mcp"],"share":"all","sandbox":"project"}"#;
        let (scope, reason) = sharing(entry, directory.path(), false);
        assert_eq!(scope, Scope::Project);
        assert!(reason.contains("its sandbox"), "{reason}");
        for (entry, expected) in [
            (
                r#"{"command":"npx","args":["tavily-mcp"],"sandbox":"project"}"#,
                Scope::Project,
            ),
            (
                r#"{"command":"npx","args":["tavily-mcp"],"sandbox":"strict"}"#,
                Scope::All,
            ),
            (
                r#"{"command":"x","share":"session","sandbox":"project"}"#,
                Scope::Session,
            ),
        ] {
            assert_eq!(
                sharing(entry, directory.path(), false).0,
                expected,
                "{entry}"
            );
        }
    }

    #[test]
    fn a_server_is_shared_by_what_it_can_notice() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("data"), "").unwrap();
        let inside = directory
            .path()
            .join("x")
            .display()
            .to_string()
            .replace('\\', "/");
        let known = r#""command":"npx","args":["-y","tavily-mcp"]"#;
        for (entry, asked, expected, reason) in [
            (r#"{"url":"https://a.example/mcp"}"#.to_owned(), true, Scope::All, "it is behind HTTP"),
            (
                r#"{"url":"https://a.example/mcp","headers_command":"token"}"#.to_owned(),
                false,
                Scope::Session,
                "its headers_command gets the session's variables",
            ),
            (format!("{{{known}}}"), false, Scope::All, "an API behind a key; it reads no files of a project"),
            (format!("{{{known}}}"), true, Scope::Project, "it asked for roots"),
            (
                r#"{"command":"npx","args":["tavily-mcp","data"]}"#.to_owned(),
                false,
                Scope::Project,
                "`data` is in the directory",
            ),
            (
                r#"{"command":"npx","args":["tavily-mcp","--from=data"]}"#.to_owned(),
                false,
                Scope::Project,
                "`data` is in the directory",
            ),
            (
                format!(r#"{{{known},"env":{{"AT":"{inside}"}}}}"#),
                false,
                Scope::Project,
                "`${AT}` is in the directory",
            ),
            (
                r#"{"command":"docker","args":["run","-v","/x:/x","hashicorp/terraform-mcp-server"]}"#.to_owned(),
                false,
                Scope::Project,
                "a directory is mounted into its container",
            ),
            (r#"{"command":"my-server"}"#.to_owned(), false, Scope::Project, "nothing is known of it"),
            (
                r#"{"command":"npx","args":["@playwright/mcp"]}"#.to_owned(),
                true,
                Scope::Session,
                "it drives a browser that shows one caller the pages of another",
            ),
            (r#"{"command":"my-server","share":"all"}"#.to_owned(), true, Scope::All, "its entry says so"),
            (
                r#"{"url":"https://a.example/mcp","share":"session"}"#.to_owned(),
                false,
                Scope::Session,
                "its entry says so",
            ),
        ] {
            assert_eq!(sharing(&entry, directory.path(), asked), (expected, reason.to_owned()), "{entry}");
        }
    }
}
