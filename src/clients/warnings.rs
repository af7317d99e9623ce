//! The warnings of a migration, which are printed before the user agrees to it.

use std::path::Path;

use super::rules::Rights;
use super::servers::{SERVERS, Servers};
use super::{Carried, Client, Found, Node, Rule, Scope, Surroundings, Survey, desktop};

/// Warns of servers that are hidden in the home directory: `projects` counts for all folders below, which hides them nearly everywhere.
fn everywhere(carried: &[Rule], around: &Surroundings) -> Vec<String> {
    let mut warnings = Vec::new();
    for rule in carried {
        if let Carried::NotIn(project) = &rule.carried
            && around.home.starts_with(project)
        {
            let (server, client) = (&rule.server, rule.client.title());
            let (project, path) = (project.display(), rule.path.display());
            warnings.push(format!(
                "`{server}` is hidden in {project} and in all folders below it, and so in nearly all projects, for all clients: `{}` in {path} switches it \
                 off there, and {client} may mean sessions in that folder alone. `projects` of its entry at mcpzip decides",
                rule.key
            ));
        }
    }
    warnings.dedup();
    warnings
}

/// The warnings for the user before they agree.
pub(super) fn of(
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
    warnings.extend(everywhere(carried, around));
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
            "{} cannot ask the user, so calls that need consent wait there for `mcpzip approvals`",
            silent.join(" and ")
        ));
    }
    if !moving.is_empty() {
        warnings.extend(desktop::warnings(servers, &clients, around));
    }
    warnings
}

/// The rules of one client that hold for other clients of the same server, too, or for those that had it in mcpzip before; `placed`
/// are the moving servers with their new names, and `before` is our configuration.
pub(super) fn tightened(
    survey: &Survey,
    placed: &[(&Found, String)],
    before: &Node,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (found, name) in placed {
        let client = found.location.client;
        let others = placed
            .iter()
            .filter(|(other, known)| known == name && other.location.client != client)
            .map(|(other, _)| Rights::of(rules_of(survey, other), None));
        let here = before.at(&[SERVERS, name.as_str()]).map(Rights::read);
        let others: Vec<Rights> = others.chain(here).collect();
        let own = Rights::of(rules_of(survey, found), None);
        let all = others.iter().fold(own, |all, other| all.and(other));
        for rule in rules_of(survey, found).filter(|rule| rule.is_carried()) {
            let rights = Rights::of(std::iter::once(rule), None);
            let lacks = |other: &Rights| !other.and(&rights).has_rules_of(other);
            if !others.iter().any(lacks) {
                continue;
            }
            let Some(effect) = all.effect_of(&rule.carried) else {
                continue;
            };
            let key = rule.key.rsplit('.').next().unwrap_or(&rule.key);
            let line = format!(
                "`{name}` {} for all clients, because of {}'s `{key}`",
                effect.as_limit(),
                client.title()
            );
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines
}

/// The rules about a server.
pub(super) fn rules_of<'s>(survey: &'s Survey, found: &Found) -> impl Iterator<Item = &'s Rule> {
    survey.rules.iter().filter(|rule| rule.is_about(found))
}
