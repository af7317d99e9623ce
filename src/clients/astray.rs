//! Finds entries for mcpzip that start another program than this one or use another configuration: servers that move behind them would be
//! missing in their client.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::servers::Servers;
use super::{
    Client, Entry, Found, Launch, Node, Scope, Surroundings, Survey, Target, desktop_path,
};
use crate::config::{find_program, safe_name};
use crate::text::shell_word;

/// How long another copy of mcpzip may take to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// The pause between two looks at it.
const PAUSE: Duration = Duration::from_millis(5);

/// The program that an entry starts.
pub(crate) enum Started {
    /// This one, or a program that starts it.
    Own,
    /// An mcpzip that does not exist.
    Gone,
    /// Another copy of the same version.
    Copy(PathBuf),
    /// Another version, as it calls itself.
    Version(PathBuf, Option<String>),
}

impl Started {
    /// The program that `client` starts by the command `written`.
    #[must_use]
    pub(crate) fn by(
        client: Client,
        written: &str,
        launch: &Launch,
        around: &Surroundings,
    ) -> Self {
        // Another program may start mcpzip.
        let is_ours = Path::new(written)
            .file_stem()
            .is_some_and(|name| name == "mcpzip");
        if !is_ours {
            return Self::Own;
        }
        let path = match desktop_path(around.platform) {
            Some(path) if client.is_graphical() => path,
            _ => around.environment.get("PATH").unwrap_or_default(),
        };
        let Some(found) = find_program(written, path, &around.environment) else {
            return Self::Gone;
        };
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if real(&found) == real(Path::new(&launch.program)) {
            return Self::Own;
        }
        let version = version(&found);
        match version.as_deref() == Some(env!("CARGO_PKG_VERSION")) {
            true => Self::Copy(found),
            false => Self::Version(found, version),
        }
    }

    /// Why an entry with the command `written` has to start this program in its place.
    fn problem(&self, written: &str) -> Option<String> {
        match self {
            Self::Own | Self::Copy(_) => None,
            Self::Gone => Some(format!("`{written}` does not exist")),
            Self::Version(_, version) => Some(format!(
                "`{written}` is version {}, which does not know these servers",
                version.as_deref().unwrap_or("unknown")
            )),
        }
    }
}

/// The other configuration that `entry` uses.
#[must_use]
pub(crate) fn other_config<'e>(entry: &'e Entry, config_file: &Path) -> Option<&'e str> {
    let named = entry.config();
    named.filter(|named| Path::new(named) != config_file)
}

/// Why a server stays: no entry for mcpzip in its client would reach it.
pub(super) fn elsewhere(
    found: &Found,
    survey: &Survey,
    (servers, config): (&Servers, &Node),
    config_file: &Path,
) -> Option<String> {
    let own = own_entries(found.location.client, survey);
    let title = found.location.client.title();
    let reason = |entry: &Entry| {
        if let Some(other) = other_config(entry, config_file) {
            return Some(format!(
                "mcpzip uses the configuration {other} in {title}, where it would be missing; `mcpzip migrate --config {}` moves it there",
                shell_word(other)
            ));
        }
        let profile = entry.profile()?;
        let has_it = has_server(config.at(&["profiles", profile, "servers"]), found, servers);
        (!has_it).then(|| {
            format!(
                "mcpzip has the profile `{profile}` in {title}, where it would be missing; name it in `profiles.{profile}.servers` of {} first",
                config_file.display()
            )
        })
    };
    let reasons: Option<Vec<String>> = own.iter().map(|(_, _, entry)| reason(entry)).collect();
    reasons?.into_iter().next()
}

/// Whether the servers of a profile have one with the name that it would get here.
fn has_server(profile: Option<&Node>, found: &Found, servers: &Servers) -> bool {
    let (name, entry) = (safe_name(&found.name), found.entry.as_ref().ok());
    let listed = profile.map(Node::items).unwrap_or_default();
    let mut listed = listed.iter().filter_map(Node::as_text);
    let mut all = servers.all().iter();
    let is_free = !all.any(|(known, _)| known.eq_ignore_ascii_case(&name));
    let is_there =
        entry.is_some_and(|entry| servers.same_as(&name, &entry.to_node(), false).is_some());
    listed.any(|listed| listed == "*" || listed == name && (is_free || is_there))
}

/// Our entries that have to start this program once `moving` have left, with the reasons.
pub(super) fn to_mend<'s>(
    survey: &'s Survey,
    moving: &[&Found],
    launch: &Launch,
    around: &Surroundings,
) -> Vec<(&'s Found, String)> {
    let mut clients: Vec<Client> = moving.iter().map(|found| found.location.client).collect();
    clients.sort();
    clients.dedup();
    let own = clients
        .into_iter()
        .flat_map(|client| own_entries(client, survey));
    let own: Vec<_> = own
        .map(|(found, command, _)| {
            let started = Started::by(found.location.client, command, launch, around);
            (found, started.problem(command))
        })
        .collect();
    let is_served = |found: &Found| {
        let mut own = own.iter();
        own.any(|(other, problem)| other.location == found.location && problem.is_none())
    };
    let bad = own
        .iter()
        .filter_map(|(found, problem)| Some((*found, problem.clone()?)));
    bad.filter(|(found, _)| !is_served(found)).collect()
}

/// The sentence for the user about an entry of `to_mend`.
pub(super) fn note((found, problem): &(&Found, String)) -> String {
    format!(
        "`{}` of {} in {} starts this mcpzip from now on: {problem}",
        found.name,
        found.location.client.title(),
        found.location.path.display()
    )
}

/// The entries of mcpzip in the user's files of `client` that are on, each with its program.
fn own_entries(client: Client, survey: &Survey) -> Vec<(&Found, &str, &Entry)> {
    let own = survey.found.iter().filter(|found| {
        found.is_mcpzip && found.location.client == client && found.scope() == Scope::User
    });
    own.filter_map(|found| {
        let entry = found.entry.as_ref().ok();
        let entry = entry.filter(|entry| !entry.is_disabled)?;
        match &entry.target {
            Target::Local { command, .. } => Some((found, command.as_str(), entry)),
            Target::Remote { .. } => None,
        }
    })
    .collect()
}

/// The version that another copy of mcpzip prints.
fn version(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let started = Instant::now();
    let ended = loop {
        match child.try_wait() {
            Ok(None) if started.elapsed() < VERSION_LIMIT => std::thread::sleep(PAUSE),
            Ok(ended) => break ended,
            Err(_) => break None,
        }
    };
    if ended.is_none() {
        // It may have ended just now.
        let _ = child.kill();
        let _ = child.wait();
        return None;
    }
    let mut text = String::new();
    let output = child.stdout.take()?;
    output.take(1024).read_to_string(&mut text).ok()?;
    text.trim().strip_prefix("mcpzip ").map(str::to_owned)
}
