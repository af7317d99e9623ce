//! `mcpzip token`: makes, shows and revokes the tokens by which people and programs show who they are to `serve --http`, and the
//! invitations, browsers and clients of its authorization server.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::macros::format_description;

use super::completions;
use super::diagnostics::Exit;
use super::output::{Output, bad, faint, strong};
use super::printable::printable;
use super::recorder::Recorder;
use crate::audit::{Kind, Outcome};
use crate::config::{Claims, Config, Environment, Paths};
use crate::identity::authorization::KeyFile;
use crate::identity::{Grant, Known, NewToken, Revoked, Stored, TokenError, TokenFile, is_name};
use crate::upstream::oauth;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a token for a person or program, and print it once
    Create(Create),
    /// Invite a person to log in at the authorization server of mcpzip, and print the link, which works once
    Invite(Invite),
    /// Show whom the tokens are for, and what they give; also invitations, and the browsers and clients of people who log in
    #[command(after_help = "Examples:
  mcpzip token list
  mcpzip token list --json")]
    List,
    /// Revoke tokens, invitations, browsers and clients: what they opened ends within seconds
    #[command(after_help = "Examples:
  mcpzip token revoke anna
  mcpzip token revoke 5f0c21aa")]
    Revoke {
        /// Name of the person or program, for all that is theirs, or the id of one line of `mcpzip token list`
        #[arg(add = completions::of_tokens())]
        name: String,
    },
    /// Replace the keys of the authorization server: all clients of it register and log in again
    #[command(
        after_help = "Keys are replaced every 30 days automatically. This is for a file of keys that others may have read.

Examples:
  mcpzip token rotate-keys
  mcpzip token rotate-keys --json"
    )]
    RotateKeys,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip token create anna --role dev --expires 90d
  mcpzip token create ci --profile review
  mcpzip token create zoe --role admin --manage --expires 12h
  mcpzip token create anna --json

The token is printed once and stored nowhere: only its hash is kept.")]
pub(super) struct Create {
    /// Name of the person or program, as `@user:NAME` in rules
    name: String,
    /// Role that the token gives, in addition to those that `roles` gives to the name; may be given several times
    #[arg(long, value_name = "NAME", add = completions::of_roles())]
    role: Vec<String>,
    /// Profile that the token is limited to
    #[arg(long, value_name = "NAME", add = completions::of_profiles())]
    profile: Option<String>,
    /// Let the token manage the gateway in its window, if its roles do: keep it out of the configuration of agents
    #[arg(long, conflicts_with = "profile")]
    manage: bool,
    /// How long the token counts, such as 12h, 30d or 4w [default: until it is revoked]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip token invite anna --role dev
  mcpzip token invite bo --expires 2d --json

The person opens the link in their browser and clicks once; then their clients log in there. Until the link is used, it is a secret: send it to this person only.")]
pub(super) struct Invite {
    /// Name of the person, as `@user:NAME` in rules
    name: String,
    /// Role that the person gets, in addition to those that `roles` gives to the name; may be given several times
    #[arg(long, value_name = "NAME", add = completions::of_roles())]
    role: Vec<String>,
    /// Profile that the person is limited to
    #[arg(long, value_name = "NAME", add = completions::of_profiles())]
    profile: Option<String>,
    /// How long the link counts, such as 12h, 2d or 1w [default: 7d]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Duration>,
}

/// Reads a number of minutes, hours, days or weeks.
fn lifetime(text: &str) -> Result<Duration, String> {
    let units = [("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)];
    let found = units.iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit)?.parse::<u64>().ok()?;
        number.checked_mul(*seconds).filter(|seconds| *seconds > 0)
    });
    // A century.
    let found = found.filter(|seconds| *seconds <= 100 * 366 * 86_400);
    found.map(Duration::from_secs).ok_or_else(|| {
        "a number of minutes, hours, days or weeks such as 90m, 12h, 30d or 4w".to_owned()
    })
}

pub(super) async fn run(
    arguments: Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let file = TokenFile::of(&environment.state(&paths.state_dir));
    match arguments.command {
        Command::List => list(&file, output),
        Command::Create(create) => {
            let config = Config::load(paths, environment)?;
            let new = checked(create, &config)?;
            forget_predecessor(&file, "token", &new.name, paths, environment).await?;
            let (stored, text) = file.create(new).map_err(|error| failed(&error))?;
            let detail = format!("a token for {} was made: {}", stored.name, rights(&stored));
            record(&detail, config.clone(), paths, output).await;
            // A token is often piped to a place that keeps it.
            if output.is_json_asked() {
                let mut made = shown(&stored);
                made["token"] = json!(text.expose());
                output.json(&made);
            } else {
                output.verbatim(text.expose());
            }
            if let Err(error) = output.finish() {
                return Err(Exit::failed(format!(
                    "{error}; the token was not shown, but counts: revoke it with `mcpzip token revoke {}`",
                    stored.id
                )));
            }
            if !output.is_json_asked() {
                output.note(&format!(
                    "this is the token of {} ({}); it is not shown again",
                    printable(&stored.name),
                    rights(&stored)
                ));
            }
            remark(&config, output);
            Ok(())
        }
        Command::Invite(invite) => {
            let config = Config::load(paths, environment)?;
            let url = inviting(&config)?;
            let Invite {
                name,
                role,
                profile,
                expires,
            } = invite;
            let create = Create {
                name,
                role,
                profile,
                manage: false,
                expires,
            };
            let new = checked(create, &config)?;
            forget_predecessor(&file, "person", &new.name, paths, environment).await?;
            let (invitation, secret) = file.invite(new).map_err(|error| failed(&error))?;
            let rights = rights_of(&invitation.roles, invitation.profile.as_deref());
            let detail = format!("{} was invited: {rights}", invitation.name);
            record(&detail, config, paths, output).await;
            let link = format!("{url}/invite/{}", secret.expose());
            if output.is_json_asked() {
                let mut made = shown_known(&invitation, "invitation");
                made["url"] = json!(link);
                output.json(&made);
            } else {
                output.verbatim(&link);
                output.note(&format!(
                    "this is the link of {} ({}); it works once, until {}, and is not shown again",
                    printable(&invitation.name),
                    rights,
                    date(invitation.expires)
                ));
            }
            Ok(())
        }
        Command::Revoke { name } => {
            let Revoked {
                tokens,
                others,
                accounts,
            } = file.revoke(&name).map_err(|error| failed(&error))?;
            forget(&accounts, paths, environment).await?;
            let ids = tokens.iter().map(|token| token.id.as_str());
            let ids: Vec<&str> = ids
                .chain(others.iter().map(|(id, ..)| id.as_str()))
                .collect();
            let owners = tokens.iter().map(|token| token.name.as_str());
            let mut owners = owners.chain(others.iter().map(|(_, name, _)| name.as_str()));
            let owner = owners.next().unwrap_or_default();
            let what = match others.is_empty() {
                true => "tokens",
                false => "tokens, invitations, browsers and clients",
            };
            let detail = format!("{what} of {owner} were revoked: {}", ids.join(", "));
            let config = Config::load_or_default(paths, environment)?;
            record(&detail, config, paths, output).await;
            if output.is_json() {
                let others = others
                    .iter()
                    .map(|(id, name, kind)| json!({ "id": id, "name": name, "kind": kind }));
                output.json(&tokens.iter().map(shown).chain(others).collect::<Vec<_>>());
            } else {
                output.line(printable(&detail));
            }
            Ok(())
        }
        Command::RotateKeys => {
            let config = Config::load_or_default(paths, environment)?;
            let replaced = KeyFile::next_to(&file).replace();
            replaced.map_err(|error| Exit::failed(error.to_string()))?;
            let detail = "the keys of the authorization server were replaced";
            record(detail, config, paths, output).await;
            match output.is_json() {
                true => output.json(&json!({ "replaced": true })),
                false => output.line(format!("{detail}: all clients of it log in again")),
            }
            Ok(())
        }
    }
}

/// Removes the logins at servers that an earlier person with the same name left behind.
async fn forget_predecessor(
    file: &TokenFile,
    kind: &str,
    name: &str,
    paths: &Paths,
    environment: &Environment,
) -> Result<(), Exit> {
    let left = file.read().map_err(|error| failed(&error))?.left(name);
    let own = left.into_iter().filter(|account| account.starts_with(kind));
    forget(&own.collect(), paths, environment).await
}

/// Removes the logins of people at servers that are used in each person's name.
async fn forget(
    accounts: &BTreeSet<String>,
    paths: &Paths,
    environment: &Environment,
) -> Result<(), Exit> {
    let directory = paths.state_dir.join(oauth::DIRECTORY).join(oauth::PEOPLE);
    let forgotten = match environment.store() {
        _ if accounts.is_empty() => return Ok(()),
        Some(store) => oauth::forget_shared(store.as_ref(), oauth::of_people(accounts)).await,
        None => oauth::forget(&directory, oauth::of_people(accounts)).await,
    };
    let failed = |error| {
        Exit::failed(format!(
            "the logins of the person at servers cannot be removed from `{}`: {error}",
            directory.display()
        ))
    };
    forgotten.map(drop).map_err(failed)
}

/// The URL of the authorization server, if people may be invited to it.
fn inviting(config: &Config) -> Result<String, Exit> {
    let auth = config
        .http
        .as_ref()
        .ok()
        .and_then(|http| http.auth.as_ref());
    let server = auth.and_then(|auth| auth.server.as_ref());
    let missing = "people are invited to the authorization server of mcpzip, which the configuration does not have: \
                   `\"http\": {\"auth\": {\"authorization_server\": {\"url\": \"https://mcp.example.com\"}}}`";
    let server = server.ok_or_else(|| Exit::failed(missing))?;
    match server.invitations {
        true => Ok(server.url.clone()),
        false => Err(Exit::failed(
            "`http.auth.authorization_server.invitations` is `false`: people log in at the provider alone",
        )),
    }
}

fn failed(error: &TokenError) -> Exit {
    Exit::failed(error.to_string())
}

/// The token to make, with a name that rules can use and rights that the configuration has.
fn checked(create: Create, config: &Config) -> Result<NewToken, Exit> {
    let Create {
        name,
        role,
        profile,
        manage,
        expires,
    } = create;
    if !is_name(&name) {
        return Err(Exit::bad_usage(
            "a name has no spaces, no hidden characters, each letter with its accents as one character, and at most 256 bytes",
        ));
    }
    let roles: BTreeSet<String> = role.into_iter().collect();
    let known = config.roles.as_ref().ok().and_then(Option::as_ref);
    for role in &roles {
        match known.and_then(|known| known.get(role)) {
            Some(Ok(_)) => {}
            Some(Err(fault)) => {
                return Err(Exit::of_setting(&format!(
                    "the role `{role}` cannot be used: {fault}"
                )));
            }
            None => {
                return Err(Exit::bad_usage(format!(
                    "there is no role `{role}` in `roles` of the configuration"
                )));
            }
        }
    }
    let claims = Claims {
        identity: format!("token:{name}"),
        name: name.clone(),
        roles: roles.clone(),
        profile: profile.clone(),
        ..Claims::default()
    };
    let entitlement = config.entitlement(&claims);
    let entitlement = entitlement
        .map_err(|reason| Exit::failed(format!("the token would give nothing: {reason}")))?;
    if manage && !entitlement.manages {
        return Err(Exit::failed(
            "no role of the token has `manage`, so it would manage nothing: give it such a role with `--role`",
        ));
    }
    Ok(NewToken {
        name,
        roles,
        profile,
        manages: manage,
        lifetime: expires,
    })
}

/// Says if tokens are not asked for.
fn remark(config: &Config, output: &Output) {
    let auth = config
        .http
        .as_ref()
        .ok()
        .and_then(|http| http.auth.as_ref());
    if !auth.is_some_and(|auth| auth.tokens) {
        output.note(
            "`serve --http` does not ask for tokens yet: `\"http\": {\"auth\": {\"tokens\": true}}` in the configuration turns that on",
        );
    }
}

async fn record(detail: &str, config: Config, paths: &Paths, output: &Output) {
    let recorder = Recorder::new(config, paths);
    let event = (Kind::Identity, Outcome::Ok);
    recorder.note(event, None, detail, output).await;
}

fn list(file: &TokenFile, output: &Output) -> Result<(), Exit> {
    let tokens = file.read().map_err(|error| failed(&error))?;
    let people = tokens.people();
    if output.is_json() {
        let invitations = people.invitations.iter();
        let invitations = invitations.map(|one| shown_known(one, "invitation"));
        let browsers = people
            .browsers
            .iter()
            .map(|one| shown_known(one, "browser"));
        let grants = people.grants.iter().map(shown_grant);
        let all = tokens.list().iter().map(shown);
        let all = all.chain(invitations).chain(browsers).chain(grants);
        output.json(&all.collect::<Vec<_>>());
        return Ok(());
    }
    for token in tokens.list() {
        let state = match (token.is_valid(), token.revoked, token.expires) {
            (false, Some(at), _) => bad(format!("revoked {}", date(at))),
            (false, None, at) => bad(format!("expired {}", at.map(date).unwrap_or_default())),
            (true, _, Some(at)) => faint(format!("until {}", date(at))),
            (true, _, None) => faint("until it is revoked"),
        };
        let head = format!("{}  {}  ", token.id, strong(printable(&token.name)));
        output.row(head, format!("{}; {state}", printable(&rights(token))));
    }
    let known = [
        (&people.invitations, "invitation"),
        (&people.browsers, "browser"),
    ];
    for (list, kind) in known {
        for one in list {
            let head = format!("{}  {}  ", one.id, strong(printable(&one.name)));
            let rights = rights_of(&one.roles, one.profile.as_deref());
            let until = faint(format!("until {}", date(one.expires)));
            output.row(head, format!("{kind}; {}; {until}", printable(&rights)));
        }
    }
    for grant in &people.grants {
        let head = format!("{}  {}  ", grant.id, strong(printable(&grant.name)));
        let until = faint(format!("until {}", date(grant.expires)));
        output.row(
            head,
            format!("client {}; {until}", printable(&grant.client)),
        );
    }
    if tokens.list().is_empty() && people.ids().next().is_none() {
        output.line("there are no tokens; `mcpzip token create NAME` makes one");
    }
    Ok(())
}

/// The rights of a token, in words.
fn rights(token: &Stored) -> String {
    let rights = rights_of(&token.roles, token.profile.as_deref());
    match token.manages {
        true => format!("{rights}, manages the gateway in its window"),
        false => rights,
    }
}

fn rights_of(roles: &BTreeSet<String>, profile: Option<&str>) -> String {
    let roles: Vec<&str> = roles.iter().map(String::as_str).collect();
    let roles = match roles.is_empty() {
        true => "the roles of the name".to_owned(),
        false => format!("role {}", roles.join(", ")),
    };
    match profile {
        None => roles,
        Some(profile) => format!("{roles}, profile {profile}"),
    }
}

/// A token as JSON, without its hash.
fn shown(token: &Stored) -> Value {
    json!({
        "kind": "token",
        "id": token.id,
        "name": token.name,
        "roles": token.roles,
        "profile": token.profile,
        "manages": token.manages,
        "created": date(token.created),
        "expires": token.expires.map(date),
        "revoked": token.revoked.map(date),
        "valid": token.is_valid(),
    })
}

/// An invitation or a browser as JSON, without its hash.
fn shown_known(known: &Known, kind: &str) -> Value {
    json!({
        "kind": kind,
        "id": known.id,
        "name": known.name,
        "roles": known.roles,
        "profile": known.profile,
        "created": date(known.created),
        "expires": date(known.expires),
    })
}

/// A client that a person let in, as JSON.
fn shown_grant(grant: &Grant) -> Value {
    json!({
        "kind": "client",
        "id": grant.id,
        "name": grant.name,
        "identity": grant.identity,
        "client": grant.client,
        "roles": grant.roles,
        "profile": grant.profile,
        "created": date(grant.created),
        "expires": date(grant.expires),
    })
}

/// A time in UTC.
pub(super) fn date(seconds: u64) -> String {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
    let time = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.and_then(|time| time.format(form).ok())
        .unwrap_or_else(|| "never".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_a_number_of_minutes_hours_days_or_weeks() {
        for (text, seconds) in [
            ("90m", 5400),
            ("12h", 43_200),
            ("30d", 2_592_000),
            ("4w", 2_419_200),
        ] {
            assert_eq!(lifetime(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for wrong in [
            "",
            "d",
            "0d",
            "-1d",
            "30",
            "1.5h",
            "99999999999999999999d",
            "9999999w",
            "soon",
        ] {
            assert!(lifetime(wrong).is_err(), "{wrong}");
        }
    }
}
