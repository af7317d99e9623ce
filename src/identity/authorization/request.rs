//! The authorization request of a client: its checks, and the place where an error is shown.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::client::{Client, ClientFault};
use crate::identity::tokens::sha256;

/// The longest state of a client, in bytes.
const LONGEST_STATE: usize = 2048;

/// The members of a query or a form. A member that is there twice is a mistake.
#[derive(Debug, Default)]
pub(crate) struct Fields(BTreeMap<String, String>);

/// There is a member twice, or the text is not a form.
#[derive(Debug)]
pub(crate) struct BadForm;

impl Fields {
    /// Reads a query, or the body of a form.
    ///
    /// # Errors
    /// When a member is there twice.
    pub(crate) fn parse(text: &str) -> Result<Self, BadForm> {
        let mut url = Url::parse("http://form").expect("it is a URL");
        url.set_query(Some(text));
        let mut fields = BTreeMap::new();
        for (name, value) in url.query_pairs().into_owned() {
            if fields.insert(name, value).is_some() {
                return Err(BadForm);
            }
        }
        Ok(Self(fields))
    }

    /// A form with these members.
    pub(super) fn of<const N: usize>(members: [(&str, &str); N]) -> Self {
        Self(
            members
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        )
    }

    /// A member that is not empty.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name)?;
        (!value.is_empty()).then_some(value)
    }
}

/// The client of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Asker {
    /// The name that it gives itself.
    pub(super) name: String,
    /// The host of the document that describes it.
    pub(super) host: Option<String>,
    /// The hash of its id.
    pub(super) sha256: String,
}

/// An authorization request of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) client: Asker,
    pub(super) redirect: String,
    pub(super) state: Option<String>,
    /// The challenge of PKCE, by S256.
    pub(super) challenge: String,
    pub(super) scopes: BTreeSet<String>,
}

/// Why a request is refused.
#[derive(Debug)]
pub(super) enum Refused {
    /// For the person, on a page: the client or its redirect is not known, so that nothing may be sent there.
    Page(String),
    /// For the person, on a page: the client cannot be known now.
    NotNow(String),
    /// For the client, at its redirect.
    Client {
        redirect: String,
        state: Option<String>,
        fault: ClientFault,
    },
}

impl Request {
    /// Reads the request of a client, whose redirect is known to be its own.
    pub(super) fn read(
        fields: &Fields,
        client: Client,
        redirect: &str,
        audience: &str,
        offered: &BTreeSet<String>,
    ) -> Result<Self, Refused> {
        let state = fields.get("state");
        let refused = |code, reason: &str| Refused::Client {
            redirect: redirect.to_owned(),
            state: state.map(str::to_owned),
            fault: ClientFault {
                code,
                reason: reason.to_owned(),
            },
        };
        if state.is_some_and(|state| state.len() > LONGEST_STATE) {
            let reason = "`state` is longer than 2048 bytes";
            return Err(refused("invalid_request", reason));
        }
        if fields.get("response_type") != Some("code") {
            let reason = "`response_type` must be `code`";
            return Err(refused("unsupported_response_type", reason));
        }
        if fields
            .get("response_mode")
            .is_some_and(|mode| mode != "query")
        {
            return Err(refused(
                "invalid_request",
                "`response_mode` must be `query`",
            ));
        }
        if fields
            .get("request")
            .or(fields.get("request_uri"))
            .is_some()
        {
            return Err(refused(
                "request_not_supported",
                "requests have no request objects",
            ));
        }
        let challenge = fields.get("code_challenge").filter(|text| {
            // The hash of S256 in base64.
            text.len() == 43
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        });
        let challenge = challenge.filter(|_| fields.get("code_challenge_method") == Some("S256"));
        let Some(challenge) = challenge else {
            let reason =
                "PKCE is required: a `code_challenge` with the `code_challenge_method` `S256`";
            return Err(refused("invalid_request", reason));
        };
        if !is_resource(fields, audience) {
            let reason = "`resource` must be the URL of this server";
            return Err(refused("invalid_target", reason));
        }
        if fields.get("prompt") == Some("none") {
            return Err(refused("consent_required", "a person has to consent"));
        }
        let asked = fields.get("scope").unwrap_or_default().split_whitespace();
        let scopes = asked.filter(|scope| offered.contains(*scope));
        Ok(Self {
            client: Asker {
                sha256: sha256(&client.id),
                name: client.name,
                host: client.host,
            },
            redirect: redirect.to_owned(),
            state: state.map(str::to_owned),
            challenge: challenge.to_owned(),
            scopes: scopes.map(str::to_owned).collect(),
        })
    }
}

/// Whether a request is for this server; older clients do not say (RFC 8707).
pub(super) fn is_resource(fields: &Fields, audience: &str) -> bool {
    fields
        .get("resource")
        .is_none_or(|resource| resource.trim_end_matches('/') == audience)
}

/// A redirect with these members.
pub(super) fn redirect_to(redirect: &str, members: &[(&str, Option<&str>)]) -> String {
    let Ok(mut url) = Url::parse(redirect) else {
        return redirect.to_owned();
    };
    let given = members
        .iter()
        .filter_map(|(name, value)| Some((*name, (*value)?)));
    url.query_pairs_mut().extend_pairs(given);
    url.to_string()
}
