//! Checks of identities: whether the limits and each role can be used, each role in a rule exists, each token gives something, and issuers
//! answer.

use std::net::IpAddr;

use super::super::printable::printable;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::app::App;
use crate::config::{Config, HttpOptions, UpstreamIdentity};
use crate::downstream::http;
use crate::identity::authorization::KeyFile;
use crate::identity::{People, TokenFile, claims_of, faulty_issuers};

pub(super) async fn examine(app: &App, examination: &mut Examination) {
    let config = app.proxy().unscoped().config();
    roles(&config, examination);
    rules(&config, examination);
    servers(&config, examination);
    window(&config, examination);
    // A fault of `http` itself is one of the file.
    if config.http.is_ok()
        && let Err(error) = http::check(&app.session().environment, &config.http)
    {
        let what = printable(&format!("{error:#}"));
        examination.add(Finding::new(&kinds::GATEWAY_UNUSABLE, "http", what));
    }
    if let Err(fault) = &config.limits {
        let what = printable(&fault.to_string());
        let about = "limits".to_owned();
        examination.add(Finding::new(&kinds::LIMITS_UNUSABLE, about, what));
    }
    let auth = config
        .http
        .as_ref()
        .ok()
        .and_then(|http| http.auth.as_ref());
    if let Some(auth) = auth {
        for (issuer, fault) in faulty_issuers(auth).await {
            let what = printable(&config.masker.mask(&fault));
            examination.add(Finding::new(
                &kinds::ISSUER_UNUSABLE,
                printable(&issuer),
                what,
            ));
        }
    }
    let state = app.session().environment.state(&app.paths().state_dir);
    let tokens = match TokenFile::of(&state).read() {
        Ok(tokens) => tokens,
        Err(error) => {
            let what = printable(&error.to_string());
            examination.add(Finding::new(&kinds::TOKENS_UNREADABLE, String::new(), what));
            return;
        }
    };
    if let Some(fault) = auth
        .filter(|auth| auth.server.is_some())
        .and_then(|_| KeyFile::next_to(&TokenFile::of(&state)).fault())
    {
        let what = printable(&fault.to_string());
        examination.add(Finding::new(&kinds::KEYS_UNUSABLE, String::new(), what));
    }
    for token in tokens.list().iter().filter(|token| token.is_valid()) {
        if let Err(reason) = config.entitlement(&claims_of(token)) {
            let about = format!("{} ({})", token.name, token.id);
            let what = printable(&reason.to_string());
            examination.add(Finding::new(&kinds::TOKEN_USELESS, printable(&about), what));
        }
    }
    people(&config, tokens.people(), examination);
}

/// Whether people who were invited, or let a client in, get something by that.
fn people(config: &Config, people: &People, examination: &mut Examination) {
    let invited = people.invitations.iter().map(|one| (one, "invitation"));
    let invited = invited.chain(people.browsers.iter().map(|one| (one, "browser")));
    let invited = invited.map(|(one, kind)| (&one.id, one.claims(), kind));
    let clients = people.grants.iter();
    let clients = clients.map(|grant| (&grant.id, grant.claims(), "client"));
    for (id, claims, kind) in invited.chain(clients) {
        if let Err(reason) = config.entitlement(&claims) {
            let about = format!("{} ({kind} {id})", claims.name);
            let what = printable(&reason.to_string());
            examination.add(Finding::new(&kinds::TOKEN_USELESS, printable(&about), what));
        }
    }
}

/// Servers that are used in people's names, and what they need of the gateway.
fn servers(config: &Config, examination: &mut Examination) {
    let http = config.http.as_ref().ok();
    let auth = http.and_then(|http| http.auth.as_ref());
    let has_url = http.is_some_and(|http| http.public_url.is_some() || is_here(http));
    let has_issuer = auth.is_some_and(|auth| auth.oauth.is_some());
    let used = config.servers.iter().filter(|(_, entry)| !entry.disabled);
    for (server, entry) in used {
        let Some(remote) = entry.remote() else {
            continue;
        };
        let problem = match &remote.identity {
            UpstreamIdentity::Shared => continue,
            _ if auth.is_none() => "clients have no identity without `http.auth`",
            UpstreamIdentity::Exchange(_) if !has_issuer => {
                "only tokens of an issuer (`http.auth.oauth`) can be exchanged"
            }
            UpstreamIdentity::PerUser if !has_url && !has_issuer => {
                "people are sent to a page of this gateway, whose URL is not known"
            }
            UpstreamIdentity::Forward(forward)
                if forward.assertion.is_some() && !has_url && !has_issuer =>
            {
                "an assertion names the URL of this gateway, which is not known"
            }
            _ => continue,
        };
        let finding = Finding::new(
            &kinds::IDENTITY_UNSERVED,
            server.as_str(),
            problem.to_owned(),
        );
        examination.add(finding);
    }
}

/// Whether the configured address is one of this machine alone.
fn is_here(http: &HttpOptions) -> bool {
    let address = http.address.clone().unwrap_or_default();
    let is_address = address
        .host
        .parse()
        .is_ok_and(|ip: IpAddr| ip.is_loopback());
    is_address || address.host == "localhost"
}

/// Whether browsers reach the window of the gateway, and someone manages the gateway there.
fn window(config: &Config, examination: &mut Examination) {
    let Some(http) = config.http.as_ref().ok().filter(|http| http.ui) else {
        return;
    };
    let auth = http.auth.as_ref();
    let has_issuer = auth.is_some_and(|auth| auth.oauth.is_some() || auth.server.is_some());
    let mut add = |kind, what: &str| {
        examination.add(Finding::new(kind, "http.ui", what.to_owned()));
    };
    if http.public_url.is_none() && !has_issuer && !is_here(http) {
        add(
            &kinds::WINDOW_WITHOUT_URL,
            "the URL by which browsers reach it is not known",
        );
    }
    if config.managing_roles().next().is_none() {
        add(&kinds::WINDOW_UNMANAGED, "no role has `manage`");
    }
}

fn roles(config: &Config, examination: &mut Examination) {
    let roles = match &config.roles {
        Ok(roles) => roles.iter().flatten(),
        Err(fault) => {
            let what = printable(&fault.to_string());
            examination.add(Finding::new(
                &kinds::ROLE_UNUSABLE,
                "roles".to_owned(),
                what,
            ));
            return;
        }
    };
    for (name, role) in roles {
        let problems: Vec<String> = match role {
            Err(fault) => vec![fault.to_string()],
            Ok(role) => {
                let profiles = role.profiles.iter().filter(|profile| *profile != "*");
                let refusals = profiles
                    .filter_map(|profile| config.narrowed(std::slice::from_ref(profile)).err());
                refusals.map(|refusal| refusal.to_string()).collect()
            }
        };
        for problem in problems {
            let finding = Finding::new(&kinds::ROLE_UNUSABLE, name.clone(), printable(&problem));
            examination.add(finding);
        }
    }
}

fn rules(config: &Config, examination: &mut Examination) {
    let Ok(known) = &config.roles else { return };
    let is_known = |role: &str| known.as_ref().is_some_and(|known| known.contains_key(role));
    for role in config.roles_of_rules() {
        if !is_known(&role) {
            let what = format!("no entry of `roles` is called `{}`", printable(&role));
            let about = format!("@role:{}", printable(&role));
            examination.add(Finding::new(&kinds::RULE_ROLE_UNKNOWN, about, what));
        }
    }
}
