//! `mcpzip rules check`: what would happen to one call.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::client::ForClient;
use super::withheld::{self, Withheld};
use super::{Check, listed, meant};
use crate::catalog::{Key, PinHome};
use crate::cli::diagnostics::Exit;
use crate::cli::output::{Output, bad, faint, good, strong};
use crate::cli::printable::printable;
use crate::config::{
    Claims, Config, Environment, Inspected, Paths, ProfileRequest, Server, Subject, Transport,
    Verdict, arguments, introduced, real,
};
use crate::tool::{Hints, QualifiedName, ServerName, ToolName};
use crate::upstream::list_name;

/// The answer to the question.
struct Answer {
    /// The server's own name of the tool.
    name: QualifiedName,
    /// The name that agents see, if it is another.
    seen_as: Option<ToolName>,
    verdict: Verdict,
    reason: Option<String>,
    withheld: Option<Withheld>,
    /// The hints of the tool; `None` if the server has not listed it.
    listed: Option<Hints>,
    is_list_known: bool,
    /// The kinds of findings in the tool's texts.
    findings: Vec<String>,
    looks_further: bool,
    client: Option<ForClient>,
    /// The profiles of the session.
    profiles: Vec<String>,
    /// The roles of the person, if there is one.
    roles: Option<Vec<String>>,
}

pub(super) fn run(
    asked: &Check,
    config: &Config,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let answer = answer(asked, config, paths, environment)?;
    if output.is_json() {
        output.json(&answer.json());
    } else {
        answer.print(output);
    }
    match answer.verdict {
        Verdict::Allowed => Ok(()),
        Verdict::Asked => Err(Exit::found(false)),
        Verdict::Denied => Err(Exit::found(true)),
    }
}

fn answer(
    asked: &Check,
    config: &Config,
    paths: &Paths,
    environment: &Environment,
) -> Result<Answer, Exit> {
    let (server, entry, tool) = meant(asked, config)?;
    let mut overrides = entry.overrides.iter();
    let named = overrides.find(|(_, wanted)| wanted.name.as_ref() == Some(&tool));
    let tool = match named.map(|(own, _)| ToolName::new(own)) {
        Some(own) => own.map_err(|error| Exit::failed(error.to_string()))?,
        None => tool,
    };
    let renamed = entry.overrides.get(tool.as_str());
    let seen_as = renamed.and_then(|wanted| wanted.name.clone());
    let arguments = arguments_of(asked)?;
    let project = project(asked)?;
    let cwd = match &entry.transport {
        Transport::Stdio(stdio) => stdio.cwd.clone(),
        Transport::Http(_) | Transport::Sse(_) | Transport::Folder(_) => None,
    };
    let (directory, home) = (cwd.or_else(|| project.clone()), environment.home());
    let call = Inspected {
        arguments: &arguments,
        directory: directory.as_deref(),
        home: home.as_deref(),
    };
    let key = Key {
        server: server.clone(),
        configuration: list_name(entry, project.as_deref()),
    };
    let list = listed(server, &key.configuration, paths);
    let known = list
        .as_ref()
        .and_then(|list| list.position(&tool).map(|at| &list.entries()[at]));
    let hints = known.map(|known| known.hints);
    let name = QualifiedName {
        server: server.clone(),
        tool,
    };
    let call = asked.arguments.as_ref().map(|_| &call);
    let profiles = profiles(asked, config, project.as_deref());
    let part = part(asked, config, &profiles);
    let (verdict, rule) = match &part {
        Ok(part) => part.decide(&name, hints.unwrap_or_default(), call),
        Err(refusal) => (Verdict::Denied, Some(refusal.clone())),
    };
    let roles = part.as_ref().ok().and_then(roles_of);
    let is_outside = part.is_ok_and(|part| !part.servers.contains_key(server));
    let outside = || match profiles.is_empty() {
        true => "the server is outside of the profiles of this person's roles".to_owned(),
        false => format!(
            "the server is outside of the session's profile ({})",
            profiles.join(", ")
        ),
    };
    let unreachable = unreachable(server, entry, config, project.as_deref());
    let unreachable = unreachable.or_else(|| is_outside.then(outside));
    let home = PinHome::of(environment.store(), paths.state_dir.join("pins"));
    let withheld = withheld::of(&key, entry, known, &home);
    let (verdict, reason) = match (unreachable, verdict, &withheld) {
        (Some(reason), ..) => (Verdict::Denied, Some(reason)),
        (None, Verdict::Allowed | Verdict::Asked, Some(withheld)) => {
            (Verdict::Denied, Some(withheld.reason.clone()))
        }
        (None, verdict, _) => (verdict, rule),
    };
    let findings = list
        .as_ref()
        .zip(known)
        .map(|(list, known)| withheld::findings(list, known, config, paths));
    Ok(Answer {
        name,
        seen_as,
        verdict,
        reason,
        withheld,
        listed: hints,
        is_list_known: list.is_some(),
        findings: findings.unwrap_or_default(),
        looks_further: asked.arguments.is_none() && config.inspects(server),
        client: asked
            .client
            .as_deref()
            .map(|client| ForClient::of(client, config)),
        profiles,
        roles,
    })
}

fn arguments_of(asked: &Check) -> Result<Value, Exit> {
    let Some(text) = &asked.arguments else {
        return Ok(Value::Null);
    };
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map(|_| arguments::read(text))
        .map_err(|error| Exit::failed(format!("--arguments is not JSON: {error}")))
}

/// The directory that the client works in.
fn project(asked: &Check) -> Result<Option<PathBuf>, Exit> {
    let current = std::env::current_dir().ok();
    let Some(project) = &asked.project else {
        return Ok(current);
    };
    let whole = current.map_or_else(|| project.clone(), |current| current.join(project));
    match whole.is_dir() {
        true => Ok(Some(real(&whole))),
        false => Err(Exit::failed(format!(
            "--project: there is no directory {}",
            whole.display()
        ))),
    }
}

/// The profiles of the session that makes the call.
fn profiles(asked: &Check, config: &Config, project: Option<&Path>) -> Vec<String> {
    let named: Vec<String> = asked.profile.iter().cloned().collect();
    let directories: Vec<PathBuf> = project.iter().map(|project| real(project)).collect();
    config.profiles_of(ProfileRequest {
        named: &named,
        client: asked.client.as_deref().map(introduced),
        directories: &directories,
    })
}

/// The part of the configuration that the session gets, or the reason why it gets none.
fn part(asked: &Check, config: &Config, profiles: &[String]) -> Result<Config, String> {
    let is_person = asked.user.is_some() || !asked.role.is_empty() || !asked.group.is_empty();
    if !is_person {
        let part = config.narrowed(profiles);
        return part.map_err(|refusal| refusal.to_string());
    }
    let roles = config.roles.iter().flatten();
    let is_known = |role: &&String| roles.clone().any(|roles| roles.contains_key(*role));
    if let Some(role) = asked.role.iter().find(|role| !is_known(role)) {
        return Err(format!(
            "there is no role `{role}` in `roles` of the configuration"
        ));
    }
    let claims = Claims {
        name: asked.user.clone().unwrap_or_default(),
        groups: asked.group.iter().cloned().collect(),
        roles: asked.role.iter().cloned().collect(),
        ..Claims::default()
    };
    let entitlement = config.entitlement(&claims);
    let entitlement = entitlement.map_err(|reason| reason.to_string())?;
    let part = config.entitled(&entitlement);
    let part = part.and_then(|part| part.narrowed(profiles));
    part.map_err(|refusal| refusal.to_string())
}

/// The roles of the person that a configuration is for.
fn roles_of(part: &Config) -> Option<Vec<String>> {
    match &part.subject {
        Subject::Person(person) => Some(person.roles.iter().cloned().collect()),
        Subject::Local | Subject::Unidentified => None,
    }
}

/// Why agents reach nothing of a server.
fn unreachable(
    server: &ServerName,
    entry: &Server,
    config: &Config,
    project: Option<&Path>,
) -> Option<String> {
    let workspace: Vec<PathBuf> = project.iter().map(|project| real(project)).collect();
    if entry.disabled {
        Some("the server is disabled".to_owned())
    } else if config.unseen(&workspace).contains(server) {
        Some("the server's `projects` do not admit this directory".to_owned())
    } else {
        None
    }
}

impl Answer {
    fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Allowed => "allowed",
            Verdict::Asked => "asked",
            Verdict::Denied => "denied",
        }
    }

    fn json(&self) -> Value {
        let hints = self.listed.unwrap_or_default();
        json!({
            "tool": self.name.to_string(),
            "seen_as": self.seen_as.as_ref().map(ToString::to_string),
            "verdict": self.word(),
            "rule": self.reason,
            "withheld": self.withheld.as_ref().map(|withheld| withheld.word),
            "findings": self.findings,
            "is_listed": self.listed.is_some(),
            "declares": hints.label(),
            "texts_suggest": hints.guess,
            "arguments_matter": self.looks_further,
            "client": self.client.as_ref().map(ForClient::json),
            "profiles": self.profiles,
            "roles": self.roles,
        })
    }

    fn print(&self, output: &Output) {
        let word = match self.verdict {
            Verdict::Allowed => good(self.word()),
            _ => bad(self.word()),
        };
        let reason = self.reason.as_deref().unwrap_or("no rule applies");
        output.line(format!(
            "{} {word}: {reason}",
            strong(self.name.to_string())
        ));
        if let Some(seen_as) = &self.seen_as {
            output.line(faint(format!("agents see it as `{seen_as}`")));
        }
        if let Some(known) = self.known() {
            output.line(faint(known));
        }
        if !self.findings.is_empty() {
            output.line(faint(format!(
                "the scanner found in its texts: {} (`mcpzip doctor` shows the parts; a finding withholds nothing)",
                self.findings.join(", ")
            )));
        }
        if self.looks_further {
            output.line(faint(
                "some rules inspect arguments: pass them with --arguments",
            ));
        }
        if !self.profiles.is_empty() {
            let profiles = printable(&self.profiles.join(", "));
            output.line(faint(format!("judged under the profile {profiles}")));
        }
        match self.roles.as_deref() {
            None => {}
            Some([]) => output.line(faint("judged for a person without a role")),
            Some(roles) => {
                let roles = printable(&roles.join(", "));
                output.line(faint(format!("judged for a person with the role {roles}")));
            }
        }
        if let Some(client) = &self.client {
            for line in client.lines(self.verdict) {
                output.line(faint(line));
            }
        }
    }

    /// A sentence about the tool's declarations, if the answer depends on them.
    fn known(&self) -> Option<String> {
        let hints = self.listed.unwrap_or_default();
        match (self.listed, hints.guess) {
            (None, _) if self.is_list_known => Some(format!(
                "the server's last list has no such tool: `mcpzip tools {}` shows the names",
                self.name.server
            )),
            (None, _) => Some(
                "the server has not listed this tool yet, so it was judged as a tool without annotations".to_owned(),
            ),
            (_, Some(guess)) => Some(format!(
                "the tool has no annotations; its texts suggest `{}`, which only rules with `?` use",
                guess.word()
            )),
            (_, None) if !hints.is_declared() => Some(
                "the tool has no annotations, and its texts suggest nothing: `@destructive?` under `ask` and `deny` applies to it".to_owned(),
            ),
            _ => None,
        }
    }
}
