//! The plan of a migration: a verdict for each server, and the new content of each file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::cache::read_source;
use super::connection::{own_entries, permission};
use super::edit::{Edit, PlanError};
use super::model::Unmovable;
use super::rules::Rights;
use super::servers::{Servers, Twin};
use super::stored::Stored;
use super::{
    Carried, Client, ConfigLocation, Entry, Fixed, Found, Item, Launch, Rule, Scope, Surroundings,
    Survey, Syntax, Text, TextError, Verdict,
};
use super::{approval, barrier, desktop, entry, names, secrets};
use crate::secret::{Masker, Secret};
use crate::text::chain;

/// The user's selection among everything found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    /// These scopes; empty selects all.
    pub scopes: Vec<Scope>,
    /// These servers, by the client's name; empty selects all. A named server is moved even if it is a proxy.
    pub only: Vec<String>,
    /// Whether to move servers that are protected by a rule that cannot be carried over.
    pub drop_rules: bool,
    /// The servers, by the client's name, that are merged with one that differs in secrets alone.
    pub merged: BTreeSet<String>,
    /// Whether literal secrets of new servers move to the file of secrets.
    pub extracts_secrets: bool,
}

/// A complete plan.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// A verdict for each server.
    pub items: Vec<Item>,
    /// The files that change, `mcpzip`'s own first, so that a server is added before it is removed.
    pub edits: Vec<Edit>,
    /// The rules that keep servers from moving.
    pub blocking: Vec<Rule>,
    /// The rules that the proxy applies afterwards.
    pub carried: Vec<Rule>,
    /// The rules that stop working, because they protect nothing or the user gave them up.
    pub lost: Vec<Rule>,
    /// Whether Codex gets an entry, whose approval the user can choose.
    pub asks_for_approval: bool,
    /// The migrated servers that were behind `mcp-remote`, which may have logins.
    pub unwrapped: Vec<String>,
    /// The servers that could be merged with another, but were not chosen for it.
    pub twins: Vec<Twin>,
    /// The new servers whose literal secrets stay in our configuration, and where each has them.
    pub literals: Vec<(String, Vec<String>)>,
    /// The secrets that move to the file of secrets.
    pub stored: Vec<(String, Secret<String>)>,
    /// Further warnings, one sentence each.
    pub warnings: Vec<String>,
    /// Hides the secrets of all servers.
    pub masker: Masker,
}

impl Plan {
    /// Plans to move the servers of `survey` that `choice` selects into the configuration at `config_file`.
    ///
    /// # Errors
    /// When a file that must change cannot be read or edited.
    pub(crate) fn new(
        survey: &Survey,
        choice: &Choice,
        config_file: &Path,
        launch: &Launch,
        around: &Surroundings,
    ) -> Result<Self, PlanError> {
        let (mut refused, mut first) = (BTreeMap::new(), None);
        loop {
            let plan = Self::without(&refused, survey, choice, config_file, launch, around);
            match plan {
                // An unusable file of a client affects that client only: its servers stay in the next attempt.
                Err(error)
                    if error
                        .path()
                        .is_some_and(|path| path != config_file && !refused.contains_key(path)) =>
                {
                    let path = error.path().map(Path::to_owned).unwrap_or_default();
                    refused.insert(path, chain(&error));
                    first.get_or_insert(error);
                }
                Ok(plan) if plan.edits.is_empty() => return first.map_or(Ok(plan), Err),
                plan => return plan,
            }
        }
    }

    /// The plan without the clients' files in `refused`, each with its reason.
    fn without(
        refused: &BTreeMap<PathBuf, String>,
        survey: &Survey,
        choice: &Choice,
        config_file: &Path,
        launch: &Launch,
        around: &Surroundings,
    ) -> Result<Self, PlanError> {
        let unreadable = PlanError::unreadable(config_file);
        let config = read_source(config_file, Syntax::Json).map_err(unreadable)?;
        let stored = Stored::of(config_file, &around.environment)?;
        let mut servers = Servers::of(&config.text).with_secrets(stored);
        let (mut twins, mut unwrapped) = (Vec::new(), Vec::new());
        let (mut items, mut moving, mut blocking) = (Vec::new(), Vec::new(), Vec::new());
        let is_meant = |found: &&Found| {
            (choice.scopes.is_empty() || choice.scopes.contains(&found.scope()))
                && (choice.only.is_empty() || choice.only.contains(&found.name))
        };
        let mut barriers: BTreeMap<Client, Option<String>> = BTreeMap::new();
        for found in survey.found.iter().filter(is_meant) {
            let mut notes = Vec::new();
            let client = found.location.client;
            let barrier = barriers
                .entry(client)
                .or_insert_with(|| barrier(client, survey, launch, around));
            let files = [
                &found.location.path,
                &found.location.client.user_location(around).path,
            ];
            let kept = files.into_iter().find_map(|path| refused.get(path));
            let verdict = match kept
                .cloned()
                .or_else(|| stays(found, survey, choice, barrier.as_deref(), &mut blocking))
            {
                Some(reason) => Verdict::Stays(reason),
                None => {
                    let entry = found.entry.as_ref().expect("what cannot be read stays");
                    moving.push(found);
                    notes.extend(entry.notes.iter().cloned());
                    let rights =
                        Rights::of(rules_of(survey, found), found.location.project.as_ref());
                    let merging = (choice.merged.contains(&found.name), &mut twins);
                    let verdict = servers.take(entry, found, &rights, &mut notes, merging);
                    notes.extend(approval::note(found, &verdict));
                    if let (true, Verdict::Moves { name, .. } | Verdict::Conflicts { name }) =
                        (entry.is_unwrapped, &verdict)
                    {
                        unwrapped.push(name.clone());
                    }
                    verdict
                }
            };
            let left_behind = found
                .entry
                .as_ref()
                .map(|entry| entry.left_behind.clone())
                .unwrap_or_default();
            let is_new = !matches!(
                verdict,
                Verdict::Stays(_) | Verdict::Moves { is_known: true, .. }
            );
            items.push(Item {
                is_off: is_new && found.entry.as_ref().is_ok_and(|entry| entry.is_disabled),
                client: found.location.client,
                scope: found.scope(),
                path: found.location.path.clone(),
                server: found.name.clone(),
                verdict,
                left_behind,
                notes,
            });
        }
        if choice.scopes.is_empty() && choice.only.is_empty() {
            items.extend(survey.fixed.iter().map(Item::of));
        }
        let literals = match choice.extracts_secrets {
            true => {
                servers.store_literals();
                Vec::new()
            }
            false => servers.literals(),
        };
        let launch = Launch {
            variables: servers.variables(),
            ..launch.clone()
        };
        // A secret is stored before an entry refers to it.
        let mut edits = Vec::from_iter(servers.stored().edit(config_file)?);
        let mut text = config.text.clone();
        let failed = PlanError::edit(config_file);
        let steps = servers.write(&mut text).map_err(failed)?;
        edits.extend(Edit::new(
            None,
            config_file,
            Syntax::Json,
            &config,
            &text,
            steps,
        ));
        let mut warnings = Vec::new();
        edits.extend(client_edits(
            survey,
            &moving,
            &launch,
            around,
            &mut warnings,
        )?);
        let asks_for_approval = !warnings.is_empty();
        let is_about_moving = |rule: &&Rule| moving.iter().any(|found| rule.is_about(found));
        let about_moving = survey.rules.iter().filter(is_about_moving).cloned();
        let (carried, lost): (Vec<Rule>, Vec<Rule>) = about_moving.partition(Rule::is_carried);
        let of_entries = survey
            .found
            .iter()
            .filter_map(|found| found.entry.as_ref().ok());
        let files = survey.files.values().map(|source| &source.text);
        let of_files = files
            .chain([&config.text])
            .flat_map(|text| secrets::of(text.node()));
        let stored = servers.stored().secrets();
        let of_entries = of_entries.flat_map(Entry::secrets);
        let masker = Masker::new(of_entries.chain(of_files).chain(stored));
        let added = servers.stored().added().iter();
        let stored = added.map(|(name, value)| (name.clone(), Secret::new(value.clone())));
        warnings.splice(0..0, approval::warning(&items));
        warnings.extend(self::warnings(survey, &moving, &servers, &carried, around));
        let barred = barriers.iter().filter_map(|(client, barrier)| {
            let (title, barrier) = (client.title(), barrier.as_ref()?);
            Some(format!(
                "nothing of {title} moves, as mcpzip would not run there: {barrier}"
            ))
        });
        warnings.splice(0..0, barred);
        Ok(Self {
            items,
            edits,
            blocking,
            carried,
            lost,
            warnings,
            asks_for_approval,
            unwrapped,
            twins,
            literals,
            stored: stored.collect(),
            masker,
        })
    }
}

impl Item {
    fn of(fixed: &Fixed) -> Self {
        Self {
            client: fixed.client,
            scope: Scope::User,
            path: fixed.path.clone(),
            server: fixed.name.clone(),
            verdict: Verdict::Stays(fixed.reason.to_owned()),
            left_behind: Vec::new(),
            notes: Vec::new(),
            is_off: false,
        }
    }
}

fn rules_of<'s>(survey: &'s Survey, found: &Found) -> impl Iterator<Item = &'s Rule> {
    survey.rules.iter().filter(|rule| rule.is_about(found))
}

/// The reason why a server stays, if it does. The rules that keep it are added to `blocking`.
fn stays(
    found: &Found,
    survey: &Survey,
    choice: &Choice,
    barrier: Option<&str>,
    blocking: &mut Vec<Rule>,
) -> Option<String> {
    let entry = match &found.entry {
        Err(reason) => return Some(reason.to_string()),
        Ok(_) if found.is_mcpzip => return Some("is mcpzip itself".to_owned()),
        Ok(entry) => entry,
    };
    if let Some(barrier) = barrier {
        return Some(format!("mcpzip would not run in its place: {barrier}"));
    }
    if let Some(proxy) = entry.other_proxy()
        && !choice.only.contains(&found.name)
    {
        return Some(format!(
            "is another proxy, `{proxy}`; `--only {}` moves it",
            found.name
        ));
    }
    if let Some(unknown) = rules_of(survey, found).find(|rule| rule.is_unknown())
        && !choice.drop_rules
    {
        let path = unknown.path.display();
        return Some(format!(
            "the rules in {path} are not known: it {}",
            unknown.text
        ));
    }
    let protecting: Vec<Rule> = rules_of(survey, found)
        .filter(|rule| rule.is_blocking())
        .cloned()
        .collect();
    let first = protecting.first()?;
    if choice.drop_rules {
        return None;
    }
    let reason = format!(
        "`{}` in {} would stop working: {}",
        first.key,
        first.path.display(),
        first.text
    );
    blocking.extend(protecting);
    Some(reason)
}

/// The clients' files without the migrated servers. Our entry is written to the user's own file only: a project's file
/// may be shared, and would start a program that others do not have.
fn client_edits(
    survey: &Survey,
    moving: &[&Found],
    launch: &Launch,
    around: &Surroundings,
    warnings: &mut Vec<String>,
) -> Result<Vec<Edit>, PlanError> {
    let mut locations: Vec<ConfigLocation> = Vec::new();
    for found in moving {
        // A profile gets its own entry; the entry in the user's file serves everything else.
        let user = Some(found.location.client.user_location(around))
            .filter(|_| found.scope() != Scope::User);
        for location in user.into_iter().chain([found.location.clone()]) {
            if !locations.contains(&location) {
                locations.push(location);
            }
        }
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    for location in locations.iter().filter(|location| {
        is_touched(location, survey, moving) || location.client == Client::ClaudeCode
    }) {
        if !paths.contains(&location.path) {
            paths.push(location.path.clone());
        }
    }
    let mut edits = Vec::new();
    for path in paths {
        let inside: Vec<&ConfigLocation> = locations
            .iter()
            .filter(|location| location.path == path)
            .collect();
        let first = inside[0];
        let unreadable = PlanError::unreadable(&path);
        let source = match survey.files.get(&path) {
            Some(source) => source.clone(),
            None => read_source(&path, first.syntax).map_err(unreadable)?,
        };
        let mut text = source.text.clone();
        let (mut steps, mut removals) = (Vec::new(), Vec::new());
        for location in &inside {
            let failed = PlanError::edit(&path);
            let leaving: Vec<&str> = moving
                .iter()
                .filter(|found| found.location == **location)
                .map(|found| found.name.as_str())
                .collect();
            let needs_entry = needs_entry(location, survey);
            let (paths, own) = leave(&mut text, location, &leaving, needs_entry, launch, around)
                .map_err(failed)?;
            let others = leaving.iter().filter(|name| **name != own);
            removals.extend(others.map(|name| location.path_of(name)));
            steps.extend(paths);
            warnings.extend(entry::warning(&text, location, &own).filter(|_| needs_entry));
        }
        // All at once: a file may be large.
        let failed = PlanError::edit(&path);
        text.remove_all(&removals).map_err(failed)?;
        let user = first.client.user_location(around);
        if path == user.path
            && let Some(known) = own_entries(&user, text.node()).first()
        {
            edits.extend(permission(text.node(), &user, known, around)?);
        }
        steps.sort();
        steps.dedup();
        edits.extend(Edit::new(
            Some(first.client),
            &path,
            first.syntax,
            &source,
            &text,
            steps,
        ));
    }
    Ok(edits)
}

fn is_touched(location: &ConfigLocation, survey: &Survey, moving: &[&Found]) -> bool {
    needs_entry(location, survey) || moving.iter().any(|found| found.location == *location)
}

fn needs_entry(location: &ConfigLocation, survey: &Survey) -> bool {
    let is_connected = |found: &Found| found.location == *location && found.is_mcpzip;
    location.scope == Scope::User && !survey.found.iter().any(is_connected)
}

/// Removes servers and adds our entry. Returns the changed values, and the entry's name.
fn leave(
    text: &mut Text,
    location: &ConfigLocation,
    leaving: &[&str],
    needs_entry: bool,
    launch: &Launch,
    around: &Surroundings,
) -> Result<(Vec<Vec<String>>, String), TextError> {
    let mut paths: Vec<Vec<String>> = leaving.iter().map(|name| location.path_of(name)).collect();
    let mut own = String::new();
    if needs_entry {
        let is_taken = |name: &str| {
            text.node().at(&location.path_of(name)).is_some() && !leaving.contains(&name)
        };
        own = names::free(entry::NAME, "proxy", is_taken);
        // A migrated server may have the name; then it is removed first.
        if leaving.contains(&own.as_str()) {
            text.remove(&location.path_of(&own))?;
        }
        entry::write(text, location, &own, launch, &around.environment)?;
        paths.extend(entry::paths(text.node(), location, &own));
    }
    Ok((paths, own))
}

/// Warns of servers that `clients` get through mcpzip although a rule or a policy there names them.
fn elsewhere(survey: &Survey, moving: &[&Found], clients: &[Client]) -> Vec<String> {
    let moved = |name: &str, client: Client| {
        let mut moving = moving.iter();
        let is_other = |found: &&&Found| found.location.client != client && found.name == name;
        clients.contains(&client) && moving.any(|found| is_other(&found))
    };
    let rules = survey.elsewhere.iter();
    let rules = rules.filter(|rule| moved(&rule.server, rule.client));
    let rules = rules.map(|rule| {
        let path = rule.path.display();
        let why = format!("`{}` in {path} does not hold: {}", rule.key, rule.text);
        (&rule.server, rule.client, why)
    });
    let blocked = survey.found.iter().filter_map(|found| {
        let client = found.location.client;
        let reason = found.entry.as_ref().err()?;
        let is_blocked = matches!(reason, Unmovable::Denied(_) | Unmovable::NotAllowed(_))
            && moved(&found.name, client);
        is_blocked.then(|| (&found.name, client, format!("it {reason}")))
    });
    let texts = rules.chain(blocked).map(|(server, client, why)| {
        let client = client.title();
        format!(
            "{client} can call `{server}` of another client through mcpzip, where {why}; `projects` and `tools` of its entry at mcpzip limit it for all clients"
        )
    });
    texts
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// The warnings for the user before they agree.
fn warnings(
    survey: &Survey,
    moving: &[&Found],
    servers: &Servers,
    carried: &[Rule],
    around: &Surroundings,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut shared: Vec<&Path> = moving
        .iter()
        .filter(|found| found.scope() == Scope::Project)
        .map(|found| found.location.path.as_path())
        .collect();
    shared.dedup();
    for path in shared {
        warnings.push(format!(
            "{} may be shared with others, who lose these servers when they receive your change (`--scope user --scope local` leaves the file alone)",
            path.display()
        ));
    }
    let mut clients: Vec<Client> = moving.iter().map(|found| found.location.client).collect();
    clients.extend(
        survey
            .found
            .iter()
            .filter(|found| found.is_mcpzip)
            .map(|found| found.location.client),
    );
    clients.sort();
    clients.dedup();
    warnings.extend(elsewhere(survey, moving, &clients));
    let asks = carried
        .iter()
        .any(|rule| matches!(rule.carried, Carried::Ask(_)));
    let silent: Vec<&str> = clients
        .iter()
        .filter(|client| matches!(client, Client::GeminiCli | Client::OpenCode))
        .map(|client| client.title())
        .collect();
    if asks && !silent.is_empty() {
        warnings.push(format!(
            "{} cannot ask the user, so calls that need consent are refused there",
            silent.join(" and ")
        ));
    }
    if !moving.is_empty() {
        warnings.extend(desktop::warnings(servers, &clients, around));
    }
    warnings
}
