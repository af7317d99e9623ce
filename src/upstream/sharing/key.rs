//! All that a server's process can notice of the session that it is started for.

use std::path::{Path, PathBuf};

use crate::config::env::{
    CLAUDE_PROJECT_DIR, Environment, child_environment, is_ageing, is_inherited,
};
use crate::config::{ConfigHash, Network, Scope, Server, Stdio, Transport};
use crate::tool::ServerName;
use crate::upstream::slot::Idle;
use crate::upstream::{UpstreamContext, program};

/// Inherited variables that differ from terminal to terminal, and decide at most which program is found: that is in the key itself.
const PASSING: [&str; 2] = ["PATH", "TERM"];

/// Sessions with equal keys share a process.
#[derive(Debug, PartialEq)]
pub(super) struct Key {
    pub(super) server: ServerName,
    pub(super) scope: Scope,
    /// With the values of the variables that it names, but for those that age.
    entry: Server,
    idle: Idle,
    /// The file that the command leads to.
    program: Option<PathBuf>,
    /// What else it inherits.
    variables: Vec<(String, String)>,
    network: Network,
    /// The directory as the session gave it, and the project that Claude Code named.
    place: Option<(Option<PathBuf>, Option<String>)>,
}

impl Key {
    pub(super) fn of(
        server: &ServerName,
        entry: &Server,
        scope: Scope,
        idle: Idle,
        session: &UpstreamContext,
    ) -> Self {
        let mut key = Self {
            server: server.clone(),
            scope,
            entry: entry.clone(),
            idle,
            program: None,
            variables: Vec::new(),
            network: Network::of(&session.variables),
            place: (scope != Scope::All).then(|| {
                let project = session.variables.get(CLAUDE_PROJECT_DIR.name);
                (session.directory.clone(), project.map(str::to_owned))
            }),
        };
        if let Transport::Stdio(stdio) = &mut key.entry.transport {
            stdio
                .env
                .retain(|name, value| !is_ageing(name, value.expose(), &session.variables));
            (key.program, key.variables) = noticed(stdio, session);
        }
        // The hash of the entry has the values that age, too.
        key.entry.hash = ConfigHash::of(&key.entry.transport);
        key
    }
}

/// The program that is started, and the inherited variables that it can notice.
fn noticed(stdio: &Stdio, session: &UpstreamContext) -> (Option<PathBuf>, Vec<(String, String)>) {
    let child: Environment = child_environment(&session.variables, &stdio.env)
        .into_iter()
        .collect();
    let path = child.get("PATH").unwrap_or_default();
    let program = program::find(
        &stdio.command,
        &absolute(path, session.directory.as_deref()),
        &child,
    );
    let is_noticed = |name: &str| {
        let is_passing = PASSING.contains(&name) && program.is_some()
            // Of the `XDG_` ones only those of places count: others name the terminal's session.
            || name.starts_with("XDG_") && !["_HOME", "_DIRS", "_DIR"].iter().any(|end| name.ends_with(end));
        is_inherited(name)
            && !stdio.env.contains_key(name)
            && !is_passing
            && name != CLAUDE_PROJECT_DIR.name
    };
    let variables = child.iter().filter(|(name, _)| is_noticed(name));
    let variables = variables
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    (program, variables)
}

/// A `PATH` whose relative directories are those below `directory`.
fn absolute(path: &str, directory: Option<&Path>) -> String {
    let Some(directory) = directory else {
        return path.to_owned();
    };
    let directories = std::env::split_paths(path).map(|one| directory.join(one));
    std::env::join_paths(directories).map_or_else(
        |_| path.to_owned(),
        |path| path.to_string_lossy().into_owned(),
    )
}
