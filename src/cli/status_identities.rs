//! The people of `serve --http` in `mcpzip status`.

use std::path::Path;

use serde::Serialize;

use super::output::{Output, bad};
use super::printable::printable;
use crate::config::Config;
use crate::downstream::http::WINDOW;
use crate::identity::TokenFile;
use crate::proxy::counted;
use crate::store::State;
use crate::upstream::oauth;

/// How clients over HTTP show who they are.
#[derive(Serialize)]
pub(super) struct Identities {
    roles: usize,
    limits: usize,
    /// The valid tokens.
    tokens: usize,
    /// The clients that people let in at the authorization server, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    clients: Option<usize>,
    /// The servers that are used in each person's name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    servers_of_people: Vec<String>,
    /// The logins of people at them.
    logins_of_people: usize,
    /// Whether `serve --http` has the window, and the roles that manage the gateway there.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<Vec<String>>,
    /// Why no client can be identified.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

impl Identities {
    /// `None` where clients have no identity.
    pub(super) fn of(config: &Config, state: &State) -> Option<Self> {
        let state_dir = &state.directory;
        let http = config.http.as_ref().ok()?;
        let auth = http.auth.as_ref()?;
        let has_server = auth.server.is_some();
        let tokens = TokenFile::of(state).read();
        let roles = config.roles.as_ref();
        let limits = config.limits.as_ref();
        let fault = tokens.as_ref().err().map(ToString::to_string);
        let used = config.servers.iter().filter(|(_, entry)| !entry.disabled);
        let of_people = used.filter(|(_, entry)| entry.is_for_people());
        let logins = std::fs::read_dir(state_dir.join(oauth::DIRECTORY).join(oauth::PEOPLE));
        let logins = logins.into_iter().flatten().flatten();
        let is_login = |path: &Path| path.extension().is_some_and(|end| end == "json");
        Some(Self {
            window: http.ui.then(|| config.managing_roles().cloned().collect()),
            servers_of_people: of_people.map(|(name, _)| name.to_string()).collect(),
            logins_of_people: logins.filter(|file| is_login(&file.path())).count(),
            roles: roles.map_or(0, |roles| roles.iter().flatten().count()),
            limits: limits.map_or(0, Vec::len),
            tokens: tokens.as_ref().map_or(0, |tokens| {
                let valid = tokens.list().iter().filter(|token| token.is_valid());
                valid.count()
            }),
            clients: tokens
                .as_ref()
                .ok()
                .filter(|_| has_server)
                .map(|tokens| tokens.people().grants.len()),
            fault: fault
                .or_else(|| roles.err().map(ToString::to_string))
                .or_else(|| limits.err().map(ToString::to_string)),
        })
    }

    pub(super) fn show(&self, output: &Output) {
        let (tokens, roles) = (counted(self.tokens, "token"), counted(self.roles, "role"));
        let limits = counted(self.limits, "limit");
        let clients = self.clients.map_or_else(String::new, |clients| {
            format!(", {} of people who log in", counted(clients, "client"))
        });
        output.row(
            "  ",
            format!("clients over HTTP show who they are: {tokens}, {roles}, {limits}{clients}"),
        );
        if !self.servers_of_people.is_empty() {
            let (servers, logins) = (
                printable(&self.servers_of_people.join(", ")),
                counted(self.logins_of_people, "login"),
            );
            output.row(
                "  ",
                format!("used in each person's name: {servers}; {logins} of people"),
            );
        }
        if let Some(roles) = &self.window {
            let managed = match roles.is_empty() {
                true => "no role manages the gateway there".to_owned(),
                false => format!("{} manage the gateway there", printable(&roles.join(", "))),
            };
            output.row("  ", format!("window at {WINDOW}; {managed}"));
        }
        if let Some(fault) = &self.fault {
            output.row("  ", bad(printable(fault)));
        }
    }
}
