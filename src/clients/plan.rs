//! The plan of a migration: a verdict for each server, and the new content of each file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::cache::read_own;
use super::client_edits::client_edits;
use super::edit::{Edit, PlanError};
use super::extraction::OwnSecrets;
use super::model::{Approval, Unmovable};
use super::rules::Rights;
use super::servers::{Literals, Servers, Twin};
use super::sharing::Ruled;
use super::stored::{Destination, Stored};
use super::warnings::rules_of;
use super::withheld::{Reason, Withheld, becomes_limit, withholds_all};
use super::{
    Carried, Client, Entry, Fixed, Found, History, Item, Launch, Rule, Scope, Surroundings, Survey,
    Verdict,
};
use super::{approval, astray, barrier, secrets, warnings, withheld};
use crate::secret::{Masker, Secret};
use crate::text::{chain, shell_word};

/// The user's selection among everything found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    /// These scopes; empty selects all.
    pub scopes: Vec<Scope>,
    /// These servers, by the client's name; empty selects all. A named server is moved even if it is a proxy.
    pub only: Vec<String>,
    /// The servers that stay although their names are in `only`: their files and names.
    pub without: BTreeSet<(PathBuf, String)>,
    /// Whether to move servers that are protected by a rule that cannot be carried over.
    pub drop_rules: bool,
    /// The clients that get an entry for mcpzip, unless a rule of the client withholds a server from it.
    pub connecting: BTreeSet<Client>,
    /// The servers, by the client's name, that are merged with one that differs only in secrets.
    pub merged: BTreeSet<String>,
    /// The servers that came over before.
    pub history: History,
    /// Whether literal secrets of new servers move to the file of secrets.
    pub extracts_secrets: bool,
    /// The place of these secrets. To the store of `${keyring:NAME}`, those of our own files move with them.
    pub destination: Destination,
}

/// A complete plan.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// A verdict for each server.
    pub items: Vec<Item>,
    /// The files that change, `mcpzip`'s own first, so that a server is added before it is removed.
    pub edits: Vec<Edit>,
    /// The clients of [`Choice::connecting`] that do not get an entry, with the reasons.
    pub apart: BTreeMap<Client, String>,
    /// A sentence with the command that moves more servers, as it leaves clients out. It is one of the warnings, too.
    pub leaving: Option<String>,
    /// The rules that keep servers from moving.
    pub blocking: Vec<Rule>,
    /// The rules that the proxy applies afterwards.
    pub carried: Vec<Rule>,
    /// The rules that stop working, because they protect nothing or the user gave them up.
    pub lost: Vec<Rule>,
    /// The limits that a server gets from the rules of another client or of another name for its program, one sentence each.
    pub tightened: Vec<String>,
    /// Whether Codex gets an entry, whose approval the user can choose.
    pub asks_for_approval: bool,
    /// The migrated servers that were behind `mcp-remote`, which may have logins.
    pub unwrapped: Vec<String>,
    /// The secrets of the servers.
    pub secrets: SecretsPlan,
    /// Further warnings, one sentence each.
    pub warnings: Vec<String>,
    /// Hides the secrets of all servers.
    pub masker: Masker,
}

/// The part of a plan about secrets.
#[derive(Debug, Default)]
pub(crate) struct SecretsPlan {
    /// The servers that could be merged with another, but were not chosen for it.
    pub twins: Vec<Twin>,
    /// The new servers whose literal secrets stay in our configuration, and where each has them.
    pub literals: Literals,
    /// The secrets that move to the file of secrets.
    pub stored: Vec<(String, Secret<String>)>,
    /// All secrets that leave a file: those, and the ones that are stored already.
    pub moved: Vec<(String, Secret<String>)>,
    /// The secrets of our own files that move with them.
    pub own: Literals,
    /// The paths of the texts that are hidden as secrets and stay in our configuration, if those move.
    pub staying: Vec<String>,
}

impl SecretsPlan {
    /// Moves the literal secrets of the new servers if that is chosen.
    pub(super) fn of(twins: Vec<Twin>, servers: &mut Servers, extracts: bool) -> Self {
        let (literals, staying) = match extracts {
            true => {
                servers.store_literals();
                (Vec::new(), servers.staying())
            }
            false => (servers.literals(), Vec::new()),
        };
        let plan = Self {
            twins,
            literals,
            stored: Vec::new(),
            moved: Vec::new(),
            own: Vec::new(),
            staying,
        };
        plan.with_stored(servers)
    }

    /// This plan, with all secrets that `servers` stores.
    pub(super) fn with_stored(self, servers: &Servers) -> Self {
        let added = servers.stored().added().iter();
        let stored = added.map(|(name, value)| (name.clone(), Secret::new(value.clone())));
        Self {
            stored: stored.collect(),
            moved: servers.stored().moved(),
            ..self
        }
    }
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
        let config = read_own(config_file).map_err(unreadable)?;
        let stored = Stored::of(config_file, &around.environment)?.to(choice.destination.clone());
        let servers = Servers::of(&config.text).with_secrets(stored);
        let mut servers = servers.with_history(choice.history.clone());
        let (mut twins, mut unwrapped, mut placed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut items, mut moving, mut blocking) = (Vec::new(), Vec::new(), Vec::new());
        let mut off: Vec<(&Found, String)> = Vec::new();
        let (mut kept, mut leaving) = (BTreeSet::new(), BTreeSet::new());
        let is_meant = |found: &&Found| {
            (choice.scopes.is_empty() || choice.scopes.contains(&found.scope()))
                && (choice.only.is_empty() || choice.only.contains(&found.name))
                && !choice
                    .without
                    .contains(&(found.location.path.clone(), found.name.clone()))
        };
        let mut barriers: BTreeMap<Client, Option<String>> = BTreeMap::new();
        let expected = survey.candidates().filter(is_meant);
        // A client of which nothing moves does not get mcpzip.
        let expected = expected.filter(|found| {
            let own = (survey, around);
            stays(found, own, choice, None, &mut Vec::new()).is_none()
        });
        let expected = expected.map(|found| found.location.client);
        let expected = expected.chain(choice.connecting.iter().copied()).collect();
        let ours = (&servers, config_file);
        let mut withheld = Withheld::of(survey, &expected, ours, &[], launch, around);
        for found in survey.candidates().filter(is_meant) {
            let mut notes = Vec::new();
            let client = found.location.client;
            let barrier = barriers
                .entry(client)
                .or_insert_with(|| barrier(client, survey, launch, around));
            let files = [
                &found.location.path,
                &found.location.client.user_location(around).path,
            ];
            let refusal = files.into_iter().find_map(|path| refused.get(path));
            let verdict = match refusal
                .cloned()
                .or_else(|| {
                    stays(
                        found,
                        (survey, around),
                        choice,
                        barrier.as_deref(),
                        &mut blocking,
                    )
                })
                .or_else(|| {
                    let ours = (&servers, config.text.node());
                    astray::elsewhere(found, survey, ours, config_file)
                })
                .or_else(|| off_elsewhere(found, &servers).filter(|_| !choice.drop_rules))
                .or_else(|| {
                    let reason = guarded_elsewhere(found, survey, choice, &servers, &mut blocking)
                        .or_else(|| withheld.reason(found, &moving));
                    let reason = reason.filter(|_| !choice.drop_rules)?;
                    if !reason.leaving.is_empty() {
                        kept.insert(format!("`{}`", found.name));
                        leaving.extend(reason.leaving.iter().copied());
                    }
                    Some(reason.with(all_the_same(found, around)))
                })
                .or_else(|| {
                    denied_elsewhere(found, survey, &servers).filter(|_| !choice.drop_rules)
                })
                .or_else(|| on_elsewhere(found, &servers, around).filter(|_| !choice.drop_rules))
            {
                Some(reason) => Verdict::Stays(reason),
                None => {
                    let entry = found.entry.as_ref().expect("what cannot be read stays");
                    moving.push(found);
                    withheld.start(client);
                    notes.extend(entry.notes.iter().cloned());
                    let rights =
                        Rights::of(rules_of(survey, found), found.location.project.as_ref());
                    let merging = (choice.merged.contains(&found.name), &mut twins);
                    let verdict = servers.merge(entry, found, &rights, &mut notes, merging);
                    notes.extend(approval::note(found, &verdict));
                    if let Verdict::Moves { name, .. } | Verdict::Conflicts { name } = &verdict {
                        placed.push((found, name.clone()));
                        if entry.is_disabled && found.approval != Approval::Missing {
                            off.push((found, name.clone()));
                        }
                        if entry.is_unwrapped {
                            unwrapped.push(name.clone());
                        }
                    }
                    verdict
                }
            };
            let left_behind = found
                .entry
                .as_ref()
                .map(|entry| entry.left_behind.clone())
                .unwrap_or_default();
            let is_off = match &verdict {
                Verdict::Moves { name, .. } | Verdict::Conflicts { name } => servers.is_off(name),
                Verdict::Stays(_) => false,
            };
            items.push(Item {
                is_off,
                is_off_there: found.is_switched_off,
                project: found.location.project.clone(),
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
            let fixed = survey.fixed.iter();
            let fixed = fixed.filter(|fixed| survey.movable.contains(&fixed.client));
            items.extend(fixed.map(Item::of));
        }
        let apart = withheld.connect(&choice.connecting, &moving);
        let elsewhere = withheld.rules(&placed);
        let (limits, given_up): (Vec<_>, Vec<_>) = elsewhere
            .into_iter()
            .partition(|(_, rule)| becomes_limit(rule));
        let hidden = hide_overridden(survey, &placed, &mut servers);
        let shared = servers.share_rules(&ruled(survey, &placed), &placed, &limits);
        let mut of_servers = SecretsPlan::of(twins, &mut servers, choice.extracts_secrets);
        let launch = Launch {
            variables: servers.variables(),
            ..launch.clone()
        };
        // A secret is stored before an entry refers to it.
        let mut edits = Vec::from_iter(servers.edit_of_secrets(config_file)?);
        let mut text = config.text.clone();
        let failed = PlanError::edit(config_file);
        let mut steps = servers.write(&mut text).map_err(failed)?;
        let mut of_file = None;
        if servers.stored().is_keyring() {
            let own = OwnSecrets::store(&mut text, &mut servers, config_file)?;
            steps.extend(own.steps);
            of_file = own.file;
            of_servers = of_servers.with_stored(&servers);
            of_servers.own = own.literals;
            of_servers.staying = secrets::places(text.node());
        }
        let mut of_config = Vec::new();
        edits.extend(Edit::of_config(
            config_file,
            &config,
            &text,
            steps,
            !of_servers.literals.is_empty(),
            &mut of_config,
        ));
        edits.extend(of_file);
        let mut warnings = Vec::new();
        let mended = astray::to_mend(survey, &moving, &launch, around);
        edits.extend(client_edits(
            survey,
            &moving,
            &launch,
            around,
            &mended,
            &mut warnings,
        )?);
        if let Some(first) = edits.first_mut() {
            let moved = placed.iter().map(|(_, name)| name.clone());
            let limited = limits.iter().map(|(name, _)| (*name).to_owned());
            first.relied = moved.chain(limited).collect();
        }
        for edit in &mut edits {
            let here = off
                .iter()
                .filter(|(found, _)| found.location.path == edit.path);
            edit.off = here.map(|(_, name)| name.clone()).collect();
            let moved = placed
                .iter()
                .filter(|(found, _)| found.location.path == edit.path);
            let names = |(found, name): &(&Found, String)| {
                let path = found.location.path_of(&found.name);
                ([found.name.clone(), name.clone()], path)
            };
            (edit.moved, edit.left) = moved.map(names).unzip();
        }
        let asks_for_approval = !warnings.is_empty();
        let is_about_moving = |rule: &&Rule| moving.iter().any(|found| rule.is_about(found));
        let about_moving = survey.rules.iter().filter(is_about_moving).cloned();
        let about_moving = about_moving.map(|rule| with_outcome(rule, &placed, &servers));
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
        warnings.splice(0..0, approval::warning(&items));
        warnings.splice(0..0, mended.iter().map(astray::note));
        warnings.extend(of_config);
        let limits = shared.limits();
        warnings.extend(shared.notes);
        warnings.extend(choice.history.warning());
        warnings.extend(withheld::given_up(&given_up));
        warnings.extend(warnings::of(survey, &moving, &servers, &carried, around));
        let barred = barriers.iter().filter_map(|(client, barrier)| {
            let (title, barrier) = (client.title(), barrier.as_ref()?);
            Some(format!(
                "nothing of {title} moves, as mcpzip would not run there: {barrier}"
            ))
        });
        warnings.splice(0..0, barred);
        let leaving = (!leaving.is_empty()).then(|| leaving_out(&leaving, &kept, choice, survey));
        warnings.splice(0..0, leaving.clone());
        let mut tightened = warnings::tightened(survey, &placed, config.text.node());
        for limit in hidden.into_iter().chain(limits) {
            if !tightened.contains(&limit) {
                tightened.push(limit);
            }
        }
        Ok(Self {
            items,
            edits,
            apart,
            leaving,
            blocking,
            carried,
            lost,
            tightened,
            warnings,
            asks_for_approval,
            unwrapped,
            secrets: of_servers,
            masker,
        })
    }
}

/// A rule with its outcome by all rules that its server gets.
fn with_outcome(rule: Rule, placed: &[(&Found, String)], servers: &Servers) -> Rule {
    let mut here = placed.iter().filter(|(found, _)| rule.is_about(found));
    let name = here.next().map(|(_, name)| name);
    let rights = name.and_then(|name| servers.rights(name));
    let idle = rights
        .as_ref()
        .map(|rights| rights.leaves_out(&rule.carried));
    Rule {
        is_idle: idle.unwrap_or_default(),
        decided: rights.map(|rights| rights.outcome_of(&rule.carried)),
        ..rule
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
            project: None,
            is_off_there: false,
            is_off: false,
        }
    }
}

/// Why a server stays, if it does. The rules that keep it are added to `blocking`.
fn stays(
    found: &Found,
    (survey, around): (&Survey, &Surroundings),
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
            shell_word(&found.name)
        ));
    }
    let unknown = rules_of(survey, found).filter(|rule| rule.is_unknown());
    let unknown =
        unknown.map(|rule| format!("{} are not known: it {}", rule.path.display(), rule.text));
    let unknown: BTreeSet<String> = unknown.collect();
    if !unknown.is_empty() && !choice.drop_rules {
        return Some(format!(
            "the rules in {}; correct {}, or {}",
            Vec::from_iter(unknown.iter().map(String::as_str)).join(", and those in "),
            if unknown.len() == 1 { "it" } else { "them" },
            all_the_same(found, around)
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
        "`{}` in {} would stop working: {}; {}",
        first.key,
        first.path.display(),
        first.text,
        all_the_same(found, around)
    );
    blocking.extend(protecting);
    Some(reason)
}

/// Why a server that is on stays: mcpzip has it under some name, where it is switched off.
fn off_elsewhere(found: &Found, servers: &Servers) -> Option<String> {
    let name = servers.off_equal(&entry_that_is_on(found)?.to_node())?;
    let refused_by = servers.history.refused_by(name);
    let clients: Vec<&str> = refused_by.map(Client::title).collect();
    let also = match clients.is_empty() {
        true => String::new(),
        false => format!(
            ", also for {}, which had it switched off",
            clients.join(" and ")
        ),
    };
    Some(off_here(name, &also))
}

/// Why a server that its client has switched off stays: mcpzip has it on, so that nothing but this entry says so.
fn on_elsewhere(found: &Found, servers: &Servers, around: &Surroundings) -> Option<String> {
    let entry = found.entry.as_ref().ok()?;
    let is_refused = entry.is_disabled && found.location.project.is_none();
    let name = servers.on_equal(&entry.to_node()).filter(|_| is_refused)?;
    Some(format!(
        "is switched off in {}, and mcpzip has it as `{name}`, on for all clients: nothing but this entry says so. `mcpzip disable {}` switches it \
         off for all, and then this one can move, or {}",
        found.location.client.title(),
        shell_word(name),
        all_the_same(found, around)
    ))
}

fn entry_that_is_on(found: &Found) -> Option<&Entry> {
    let entry = found.entry.as_ref().ok();
    entry.filter(|entry| !entry.is_disabled)
}

/// Why a server that is on stays: mcpzip has it under some name, where all tools are denied.
fn denied_elsewhere(found: &Found, survey: &Survey, servers: &Servers) -> Option<String> {
    let node = entry_that_is_on(found)?.to_node();
    let is_denied = rules_of(survey, found).any(withholds_all);
    let name = servers.denied_equal(&node).filter(|_| !is_denied)?;
    Some(format!(
        "mcpzip has the same program or URL as `{name}`, all of whose tools are denied there, and so would be all tools of this one; \
         without that denial (`tools` of `{name}`) it can move"
    ))
}

/// Why a server does not come over to its equal `name`, which is off; `also` is for whom else.
pub(super) fn off_here(name: &str, also: &str) -> String {
    format!(
        "mcpzip has the same server as `{name}`, which is switched off there for all clients; `mcpzip enable {}` switches it on{also}, and \
         then this one can move",
        shell_word(name)
    )
}

/// The sentence that says how the servers `kept` move: without the clients `leaving`.
fn leaving_out(
    leaving: &BTreeSet<Client>,
    kept: &BTreeSet<String>,
    choice: &Choice,
    survey: &Survey,
) -> String {
    let mut command = "mcpzip migrate".to_owned();
    let mut option =
        |name: &str, value: &str| command += &format!(" --{name} {}", shell_word(value));
    match survey.movable.len() < Client::ALL.len() {
        true => {
            let rest = survey
                .movable
                .iter()
                .filter(|client| !leaving.contains(client));
            rest.for_each(|client| option("client", client.name()));
        }
        false => leaving
            .iter()
            .for_each(|client| option("without", client.name())),
    }
    // Another command chooses these itself.
    if choice.connecting.is_empty() {
        choice
            .scopes
            .iter()
            .for_each(|scope| option("scope", scope.name()));
        choice.only.iter().for_each(|name| option("only", name));
    }
    let titles: Vec<&str> = leaving.iter().map(|client| client.title()).collect();
    let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
    format!(
        "`{command}` leaves out {}, so {} can move",
        titles.join(" and "),
        kept.join(", ")
    )
}

/// The command that moves a server of a client, and no other one of its name, without the rules that keep it.
fn all_the_same(found: &Found, around: &Surroundings) -> String {
    let client = found.location.client;
    let of_client = match &around.claude_config {
        Some(file) => format!("--claude-config {}", shell_word(&file.to_string_lossy())),
        None => format!("--client {}", client.name()),
    };
    format!(
        "`mcpzip migrate {of_client} --scope {} --only {} --drop-rules` moves it all the same",
        found.scope().name(),
        shell_word(&found.name)
    )
}

/// Hides servers of all projects in those where their client has another one of the same name, and so does not start them. Returns a
/// sentence for each.
fn hide_overridden(
    survey: &Survey,
    placed: &[(&Found, String)],
    servers: &mut Servers,
) -> Vec<String> {
    let mut hidden = Vec::new();
    let for_all = placed.iter();
    for (found, name) in for_all.filter(|(found, _)| found.location.project.is_none()) {
        for other in survey.found.iter().chain(&survey.staying) {
            let location = &other.location;
            let is_meant = location.client == found.location.client && other.name == found.name;
            // A part of an entry changes this one there.
            let is_part = matches!(
                other.entry,
                Err(Unmovable::Part { .. } | Unmovable::NoTarget)
            );
            let Some(project) = location.project.as_deref().filter(|_| is_meant && !is_part) else {
                continue;
            };
            let mut moved = placed.iter().filter(|(moved, _)| moved.is(other));
            let is_merged = moved.any(|(_, known)| known == name);
            let is_equal = match (&found.form, &other.form) {
                (Some(form), Some(there)) => servers.is_equal(form, there),
                _ => false,
            };
            let is_refused = other.approval == Approval::Refused;
            let stands = project.is_absolute() && !is_refused && !is_merged && !is_equal;
            if stands && servers.hide(name, project) {
                hidden.push(format!(
                    "`{name}` is hidden in {} for all clients, because {} has another `{}` in its place there",
                    project.display(),
                    location.client.title(),
                    other.name
                ));
            }
        }
    }
    hidden
}

/// The servers of clients with the rules about them: a client can call a server that is equal to one of its own through mcpzip.
pub(super) fn ruled<'s>(survey: &'s Survey, placed: &'s [(&Found, String)]) -> Vec<Ruled<'s>> {
    let found = survey.found.iter().filter(|found| !found.is_mcpzip);
    let found = found.map(|found| (found, found.location.client.title().to_owned()));
    let staying = survey.staying.iter().filter(|found| !found.is_mcpzip);
    let staying = staying.map(|found| {
        let title = found.location.client.title();
        let title = match &found.location.project {
            Some(project) => format!("{title} in {}", project.display()),
            None => title.to_owned(),
        };
        (found, title)
    });
    found
        .chain(staying)
        .map(|(found, title)| {
            let mut here = placed.iter().filter(|(moved, _)| moved.is(found));
            let placed = here.next().map(|(_, name)| name.as_str());
            // Behind mcpzip, a denial of all tools of a server that stays keeps its client and its equals apart.
            let rules = rules_of(survey, found);
            let rules = rules.filter(|rule| placed.is_some() || !withholds_all(rule));
            Ruled {
                name: &found.name,
                client: found.location.client,
                title,
                placed,
                form: found.form.as_ref(),
                rights: Rights::of(rules, None),
            }
        })
        .collect()
}

/// Why a server stays because of a rule about an equal server in another file, which could not hold for it. The rule is added
/// to `blocking`.
pub(super) fn guarded_elsewhere(
    found: &Found,
    survey: &Survey,
    choice: &Choice,
    servers: &Servers,
    blocking: &mut Vec<Rule>,
) -> Option<Reason> {
    let node = found.entry.as_ref().ok()?.to_node();
    let is_equal = |other: &&Found| match &other.form {
        _ if other.is(found) || other.is_mcpzip => false,
        Some(form) => servers.is_same_program(&node, form),
        None => other.name.eq_ignore_ascii_case(&found.name),
    };
    let all = survey.found.iter().chain(&survey.staying);
    let equal = all.filter(is_equal);
    let mut rules = equal.flat_map(|other| rules_of(survey, other));
    // A server of one project alone cannot be hidden there.
    let (client, own) = (found.location.client, &found.location.project);
    let is_hidden = |rule: &Rule| match (&rule.carried, own) {
        (Carried::NotIn(project), Some(own)) => rule.client != client && own.starts_with(project),
        _ => false,
    };
    let rule = rules.find(|rule| rule.is_blocking() || rule.is_unknown() || is_hidden(rule))?;
    if choice.drop_rules {
        return None;
    }
    if rule.is_blocking() && !blocking.contains(rule) {
        blocking.push(rule.clone());
    }
    let (client, path, key) = (rule.client.title(), rule.path.display(), &rule.key);
    let (why, remedy) = match rule.is_unknown() {
        true => (
            format!("its rules in {path} are not known: it {}", rule.text),
            Some(format!("correct {path}")),
        ),
        false => (
            format!("`{key}` in {path} would not hold: {}", rule.text),
            None,
        ),
    };
    Some(Reason {
        text: format!(
            "{client} has the same server, and where it calls that through mcpzip, {why}"
        ),
        remedies: remedy.into_iter().collect(),
        leaving: BTreeSet::new(),
    })
}
