//! The people of `serve --http` in `mcpzip status`.

use std::path::Path;

use serde::Serialize;

use super::output::{Output, bad};
use super::printable::printable;
use crate::config::Config;
use crate::identity::TokenFile;
use crate::proxy::counted;

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
    /// The reason why no client can be identified.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

impl Identities {
    /// `None` where clients have no identity.
    pub(super) fn of(config: &Config, state_dir: &Path) -> Option<Self> {
        let auth = config.http.as_ref().ok()?.auth.as_ref()?;
        let has_server = auth.server.is_some();
        let tokens = TokenFile::below(state_dir).read();
        let roles = config.roles.as_ref();
        let limits = config.limits.as_ref();
        let fault = tokens.as_ref().err().map(ToString::to_string);
        Some(Self {
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
        if let Some(fault) = &self.fault {
            output.row("  ", bad(printable(fault)));
        }
    }
}
