//! The sharing key: everything about a session that the server's process can observe.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::env::{
    CLAUDE_PROJECT_DIR, Environment, child_environment, is_ageing, is_inherited,
};
use crate::config::program;
use crate::config::{ConfigHash, Entitlement, Network, Scope, Server, Stdio, Subject, Transport};
use crate::keychain::Keychain;
use crate::tool::ServerName;
use crate::upstream::UpstreamContext;
use crate::upstream::slot::Idle;

/// Inherited variables that vary between terminals. They only affect which program is found, and the program is in
/// the key itself.
const PASSING: [&str; 2] = ["PATH", "TERM"];

/// The sharing key. Sessions with equal keys share a process.
#[derive(Debug, PartialEq)]
pub(super) struct Key {
    pub(super) server: ServerName,
    pub(super) scope: Scope,
    /// The entry, with the values of the variables that it names, except for volatile ones.
    entry: Server,
    idle: Idle,
    /// The file of the command.
    program: Option<PathBuf>,
    /// Other inherited variables.
    variables: Vec<(String, String)>,
    network: Network,
    /// The keychain with the key of the logins, for a remote server.
    keychain: Option<Keychain>,
    /// The session's directory, and Claude Code's project directory.
    location: Option<(Option<PathBuf>, Option<String>)>,
    /// The person, with the rights in which it came; connections are not shared with another one.
    person: Option<Arc<Entitlement>>,
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
            keychain: None,
            location: (scope != Scope::All).then(|| {
                let project = session.variables.get(CLAUDE_PROJECT_DIR.name);
                (session.directory.clone(), project.map(str::to_owned))
            }),
            person: session
                .person
                .as_ref()
                .map(|person| person.entitlement.clone()),
        };
        // The caller that the rules judge for is the concern of its session.
        key.entry.tools.judge_for(&Subject::Local);
        match &mut key.entry.transport {
            Transport::Stdio(stdio) => {
                stdio
                    .env
                    .retain(|name, value| !is_ageing(name, value.expose(), &session.variables));
                (key.program, key.variables) = noticed(stdio, session);
            }
            _ => {
                let vault = session.logins.as_ref();
                key.keychain = vault.and_then(|vault| vault.keychain()).cloned();
            }
        }
        // The hash of the entry includes the volatile values as well.
        key.entry.hash = ConfigHash::of(&key.entry.transport);
        key
    }
}

/// The program to start, and the inherited variables that it can observe.
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
            // Of the `XDG_` variables only those with directories count: others identify the terminal's session.
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

/// A `PATH` with relative directories resolved against `directory`.
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
