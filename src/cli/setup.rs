//! Shared parts of the commands that edit clients' files.

use std::collections::BTreeSet;
use std::path::Path;

use clap::builder::PossibleValuesParser;

use super::diagnostics::Exit;
use super::output::Output;
use super::printable::printable;
use super::rules::listed;
use crate::clients::{
    Client, CodexApproval, Guards, Journal, Launch, Platform, Scope, Surroundings, Survey, running,
};
use crate::config::{
    self, Config, Environment, Paths, ProfileRequest, Surface, SurfaceRequest, SurfaceSource,
    introduced,
};
use crate::upstream::list_name;

/// This machine with its clients and mcpzip's paths.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) around: Surroundings,
    pub(super) paths: Paths,
    /// Whether `--config` was given. Then the clients' entries need it, too.
    has_own_config: bool,
}

impl Machine {
    /// Reads the environment of this process.
    ///
    /// # Errors
    /// When there is no home directory.
    pub(super) fn new(
        paths: Paths,
        environment: Environment,
        has_own_config: bool,
    ) -> Result<Self, Exit> {
        let no_home = || {
            Exit::failed(
                "no home directory is known, so the clients' files cannot be found: set HOME",
            )
        };
        let around = Surroundings {
            home: environment.home().ok_or_else(no_home)?,
            platform: Platform::current(),
            environment,
            // Without a current directory there is no project.
            directory: std::env::current_dir().ok(),
            managed: Some(Platform::current().managed()),
            codex_managed: Some(Platform::current().codex_managed()),
            claude_config: None,
        };
        Ok(Self {
            around,
            paths,
            has_own_config,
        })
    }

    /// Whether `--config` was given.
    pub(super) const fn has_own_config(&self) -> bool {
        self.has_own_config
    }

    /// Checks that new servers can be added to mcpzip's configuration.
    ///
    /// # Errors
    /// When there is one that cannot be read.
    pub(super) fn check_configuration(&self) -> Result<(), Exit> {
        match Config::load(&self.paths, &self.around.environment) {
            Ok(_) | Err(config::Error::Missing { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn journal(&self) -> Journal {
        Journal::new(&self.paths.state_dir)
    }

    /// The command that clients start.
    ///
    /// # Errors
    /// When the system does not report the path of this program.
    pub(super) fn launch(&self) -> Result<Launch, Exit> {
        let config = self
            .has_own_config
            .then_some(self.paths.config_file.as_path());
        Ok(Launch::of(
            &crate::executable::path()?,
            config,
            &self.around.environment,
        ))
    }
}

/// A path with `~` for the home directory.
pub(super) fn below_home(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(rest) if !rest.as_os_str().is_empty() => Path::new("~").join(rest).display().to_string(),
        _ => path.display().to_string(),
    }
}

/// The values of `--codex-approval`.
pub(super) fn approvals() -> PossibleValuesParser {
    PossibleValuesParser::new(
        [CodexApproval::Auto, CodexApproval::Approve].map(CodexApproval::name),
    )
}

/// Asks whether Codex may run tools without asking, under this profile. `None` if the user cannot be asked; then Codex's file decides.
///
/// # Errors
/// When the answer cannot be read.
pub(super) fn ask_for_approval(
    profile: Option<&str>,
    machine: &Machine,
    output: &Output,
) -> Result<Option<CodexApproval>, Exit> {
    if output.is_json() || !output.can_ask() {
        return Ok(None);
    }
    let config = Config::load(&machine.paths, &machine.around.environment).ok();
    let surface = config.map(|config| SeenBy::of(Client::Codex, profile, &config).surface);
    output.notable(match surface {
        Some(Surface::Direct) => {
            "Codex gets the tools of servers under their own names.\n\
             If you answer yes, it runs every tool without asking. If no, it asks before each call of a tool that does not declare to be \
             read-only, and refuses it if it may not ask (`approval_policy = \"never\"`, `codex exec`)."
        }
        _ => {
        "Codex sees all tools behind mcpzip as one, `execute_tool`, so it cannot distinguish those that delete or send from others. \
         `\"surface\": {\"read_tool\": \"on\"}` in mcpzip's configuration gives it `execute_read_tool` as well, which runs only tools that declare to be read-only.\n\
         If you answer yes, it runs every tool without asking. If no, it asks before each call of `execute_tool`, and refuses it if it \
         may not ask (`approval_policy = \"never\"`, `codex exec`)."
        }
    });
    let is_free = output.ask("Let Codex run every tool without asking?")?;
    Ok(Some(if is_free {
        CodexApproval::Approve
    } else {
        CodexApproval::Auto
    }))
}

pub(super) fn client_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Client::ALL.map(Client::name))
}

pub(super) fn scope_names() -> PossibleValuesParser {
    PossibleValuesParser::new([Scope::User, Scope::Local, Scope::Project].map(Scope::name))
}

/// The clients of these names, which clap has checked. All clients if `names` is empty.
pub(super) fn clients_of(names: &[String]) -> Vec<Client> {
    if names.is_empty() {
        return Client::ALL.to_vec();
    }
    names
        .iter()
        .filter_map(|name| Client::named(name))
        .collect()
}

/// Warnings of a client's rules for servers that it reaches through mcpzip, where those rules have no effect. `planned` is the
/// configuration that a plan makes; `None` means the one that is there.
pub(super) fn rule_warnings(
    client: Client,
    profile: Option<&str>,
    planned: Option<&str>,
    machine: &Machine,
) -> Vec<String> {
    let Machine { around, paths, .. } = machine;
    let config = match Config::load(paths, &around.environment) {
        Ok(config) => Some(config),
        Err(config::Error::Missing { .. }) => None,
        Err(error) => {
            let title = client.title();
            return vec![format!(
                "the rules of {title} could not be compared with the servers behind mcpzip: {error}. Correct it, then `mcpzip doctor` compares them"
            )];
        }
    };
    let text = match planned {
        Some(text) => text.to_owned(),
        None => Config::text(paths, &around.environment).unwrap_or_default(),
    };
    let survey = Survey::of(&[client], around);
    let gets = |name: &str| may_get(client, profile, name, config.as_ref());
    let ours = (text.as_str(), paths.config_file.as_path());
    let history = machine.journal().history();
    let rules = Guards::of(client, &survey, ours, &history, gets, around).all();
    let seen = config.map(|config| SeenBy::of(client, profile, &config));
    let surface = seen.as_ref().and_then(|seen| surface_warning(client, seen));
    let interfaces = seen
        .as_ref()
        .and_then(|seen| interface_warning(client, Some(seen), paths, around));
    rules.chain(surface).chain(interfaces).collect()
}

/// Whether sessions of a client, under a profile of its entry, may get this server.
pub(super) fn may_get(
    client: Client,
    profile: Option<&str>,
    server: &str,
    config: Option<&Config>,
) -> bool {
    let has = |config: &Config| config.servers.keys().any(|known| known.as_str() == server);
    // One that cannot be used now may be repaired.
    config.is_none_or(|config| !has(config) || has(&SeenBy::of(client, profile, config).part))
}

/// Warnings of the rules of all clients that run mcpzip, which do not hold for this one of its servers.
pub(super) fn warnings_about(
    server: &str,
    paths: &Paths,
    environment: &Environment,
) -> Vec<String> {
    let Ok(machine) = Machine::new(paths.clone(), environment.clone(), false) else {
        return Vec::new();
    };
    let (around, text) = (&machine.around, Config::text(paths, environment));
    let (Ok(text), Ok(launch)) = (text, machine.launch()) else {
        return Vec::new();
    };
    let survey = Survey::of(&Client::ALL, around);
    let clients = running(&survey, &launch, around).into_iter();
    let history = machine.journal().history();
    let guards = clients.flat_map(|client| {
        let config = (text.as_str(), paths.config_file.as_path());
        let gets = |name: &str| name == server;
        Guards::of(client, &survey, config, &history, gets, around).all()
    });
    guards.collect()
}

/// Warnings for clients that may get tools under their own names.
pub(super) fn surface_warnings(clients: &BTreeSet<Client>, machine: &Machine) -> Vec<String> {
    let Machine { around, paths, .. } = machine;
    let config = Config::load(paths, &around.environment).ok();
    let warnings = clients.iter().flat_map(|client| {
        let seen = config
            .as_ref()
            .map(|config| SeenBy::of(*client, None, config));
        let surface = seen
            .as_ref()
            .and_then(|seen| surface_warning(*client, seen));
        let interfaces = interface_warning(*client, seen.as_ref(), paths, around);
        surface.into_iter().chain(interfaces)
    });
    warnings.collect()
}

/// The servers' tools as a client sees them.
struct SeenBy {
    surface: Surface,
    /// The profile that decides it.
    profile: Option<String>,
    /// The part of the configuration that its sessions get.
    part: Config,
}

impl SeenBy {
    /// As the sessions of `client` see them, under a profile of its entry. If they are then the three tools, as it sees them in a
    /// project whose profile has another surface.
    fn of(client: Client, profile: Option<&str>, config: &Config) -> Self {
        let named: Vec<String> = profile.map(str::to_owned).into_iter().collect();
        let profiles = config.profiles_of(ProfileRequest {
            named: &named,
            client: Some(introduced(client.name())),
            directories: &[],
        });
        // Without a usable profile the sessions are refused.
        let part = config
            .narrowed(&profiles)
            .unwrap_or_else(|_| config.clone());
        let request = SurfaceRequest::default();
        let (surface, source) = part.surface.of_client(client.name(), request);
        let surface_of = |name: &str| {
            let profile = config.profiles.as_ref().ok()?.get(name)?;
            profile.as_ref().ok()?.surface()
        };
        let decides = |name: &&String| surface_of(name).is_some();
        let profile = match source {
            SurfaceSource::Profile => profiles.iter().find(decides).cloned(),
            _ => None,
        };
        let seen = Self {
            surface,
            profile,
            part,
        };
        if seen.surface != Surface::Tools || seen.profile.is_some() {
            return seen;
        }
        let mut others = config.profiles.iter().flatten();
        let other = others.find_map(|(name, profile)| {
            let profile = profile
                .as_ref()
                .ok()
                .filter(|profile| profile.has_directories())?;
            let surface = profile
                .surface()
                .filter(|surface| *surface != Surface::Tools)?;
            Some((name.clone(), surface))
        });
        match other {
            Some((name, surface)) => Self {
                surface,
                profile: Some(name),
                ..seen
            },
            None => seen,
        }
    }
}

/// A warning if the client shows interfaces, and servers have tools with one, or are not listed yet: these are listed under their
/// own names next to the three.
fn interface_warning(
    client: Client,
    seen: Option<&SeenBy>,
    paths: &Paths,
    around: &Surroundings,
) -> Option<String> {
    if !client.shows_interfaces() {
        return None;
    }
    if seen.is_some_and(|seen| seen.surface != Surface::Tools) {
        // Another warning is about all tools.
        return None;
    }
    let servers = seen.iter().flat_map(|seen| &seen.part.servers);
    let mut is_known = seen.is_some();
    let mut names = Vec::new();
    for (name, entry) in servers.filter(|(_, entry)| !entry.disabled) {
        match listed(name, &list_name(entry, around.directory.as_deref()), paths) {
            Some(list) if list.has_interfaces() => names.push(name.to_string()),
            Some(_) => {}
            None => is_known = false,
        }
    }
    let title = client.title();
    let tools = match (names.is_empty(), is_known) {
        (true, true) => return None,
        (true, false) => "tools of servers".to_owned(),
        (false, _) => format!("tools of `{}`", printable(&names.join("`, `"))),
    };
    Some(format!(
        "{title} shows interfaces: {tools} that have one are listed under their own names next to the three. Permissions in {title} for \
         `execute_tool` do not hold for these, so permit or deny them there by name; `tools` of mcpzip holds in any case"
    ))
}

/// A warning if the client may get the servers' tools under their own names, which its rules for mcpzip's tools do not name.
fn surface_warning(client: Client, seen: &SeenBy) -> Option<String> {
    let surface = seen.surface;
    let (title, name) = (client.title(), client.name());
    let shown = seen.part.surface.shown_to(name);
    if surface == Surface::Tools && !shown.is_empty() {
        let tools = printable(&shown.patterns().join("`, `"));
        return Some(format!(
            "{title} gets `{tools}` under their own names (`show`): permissions in {title} for `execute_tool` do not hold for these, \
             so permit or deny them there by name; `tools` of mcpzip holds in any case"
        ));
    }
    if surface == Surface::Tools {
        return None;
    }
    let (of, entry) = match &seen.profile {
        Some(profile) => (
            format!(" of the profile `{profile}`"),
            format!(r#""profiles": {{"{profile}": "#),
        ),
        None => (String::new(), format!(r#""clients": {{"{name}": "#)),
    };
    Some(format!(
        "{title} may get the servers' tools under their own names (`surface`{of} is `{}`): permissions in {title} for `execute_tool` do not \
         hold for these, so permit or deny them there by name, or all of mcpzip; `tools` of mcpzip holds in any case. \
         `{entry}{{\"surface\": \"tools\"}}}}` keeps the three tools",
        surface.text()
    ))
}

/// Tells which clients had a server switched off before it moved here, where it is on for all.
pub(super) fn refusal_hint(name: &str, paths: &Paths) -> Option<String> {
    let history = Journal::new(&paths.state_dir).history();
    let clients: Vec<Client> = history.refused_by(name).collect();
    if clients.is_empty() {
        return history.warning();
    }
    let titles: Vec<&str> = clients.iter().map(|client| client.title()).collect();
    let ways = clients.iter().map(|client| {
        let client = client.name();
        format!("`mcpzip disconnect {client}`, then `mcpzip connect {client} --profile NAME`")
    });
    Some(format!(
        "{} had `{name}` switched off, and can call it now through mcpzip. To keep it from {}, write a profile without it, and use that: {}",
        titles.join(" and "),
        match titles.len() {
            1 => "this client alone",
            _ => "these clients alone",
        },
        Vec::from_iter(ways).join("; ")
    ))
}
