//! What may be written: the keys of the file and of a server's entry, checked for their kind and nothing else.
//!
//! A new key is a field and its `read` line here. Each field keeps its own fault, so that all keys are read, and the
//! unknown ones told from them, before the first fault decides.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions};

use super::error::{Fault, Oddity};
use super::reader::{At, Field, Members, Read, Report, kind};
use super::{Era, Grant, IdleTimeout, SearchOptions, duration};

/// JSON with comments and trailing commas, and no other liberty: a forgotten comma is more often a slip than a wish.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The file's content.
pub(super) struct File {
    pub(super) servers: Vec<Named>,
    pub(super) call_timeout: Read<Duration>,
    pub(super) idle_timeout: Read<IdleTimeout>,
    pub(super) search: Read<Search>,
    pub(super) budget: Read<usize>,
    pub(super) proxy: Read<At<String>>,
    pub(super) ca_file: Read<At<String>>,
    pub(super) expose: Read<Exposed>,
}

/// How tools are searched.
pub(super) struct Search {
    pub(super) default_limit: Read<usize>,
    pub(super) semantic: Read<bool>,
}

/// What is shown beside the tools.
pub(super) struct Exposed {
    pub(super) prompts: Read<bool>,
    pub(super) resources: Read<bool>,
}

/// A member of `mcpServers`.
pub(super) struct Named {
    pub(super) name: At<String>,
    pub(super) entry: Result<Entry, At<Fault>>,
}

/// A server's entry.
pub(super) struct Entry {
    pub(super) kind: Read<At<String>>,
    pub(super) command: Read<At<String>>,
    pub(super) args: Read<Vec<At<String>>>,
    pub(super) env: Read<BTreeMap<String, At<String>>>,
    pub(super) cwd: Read<At<String>>,
    pub(super) url: Read<At<String>>,
    pub(super) headers: Read<BTreeMap<String, At<String>>>,
    pub(super) proxy: Read<At<String>>,
    pub(super) ca_file: Read<At<String>>,
    pub(super) oauth: Read<OAuthEntry>,
    pub(super) disabled: Read<bool>,
    pub(super) timeout: Read<Duration>,
    pub(super) idle_timeout: Read<IdleTimeout>,
    pub(super) max_concurrent: Read<NonZeroUsize>,
    pub(super) era: Read<Era>,
    pub(super) description: Read<At<String>>,
    pub(super) expose: Read<Exposed>,
}

/// The `oauth` of a server's entry.
#[derive(Default)]
pub(super) struct OAuthEntry {
    pub(super) grant: Option<Grant>,
    pub(super) client_id: Option<At<String>>,
    pub(super) client_secret: Option<At<String>>,
    pub(super) client_metadata_url: Option<At<String>>,
    pub(super) private_key_file: Option<At<String>>,
    pub(super) scopes: Option<Vec<At<String>>>,
    pub(super) redirect_port: Option<u16>,
}

/// Parses `text`; nothing when there is nothing in it.
pub(super) fn parse(text: &str) -> Result<Option<Value<'_>>, jsonc_parser::errors::ParseError> {
    Ok(jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &SYNTAX)?.value)
}

/// Reads the whole file; it is a fault when it, or `mcpServers`, is no object.
pub(super) fn read(root: &Value<'_>, report: &Report) -> Result<File, At<Fault>> {
    let Some(object) = root.as_object() else {
        let fault = Fault::value("configuration", "an object like {\"mcpServers\": …}", kind(root));
        return Err(At::new(root.start(), fault));
    };
    let mut members = Members::new(object, "", "", report);
    // For editors only.
    members.read("$schema", |_| Ok(()))?;
    let servers = members.read("mcpServers", |field| servers(field, report))?;
    if servers.is_none() {
        report.add(root.start(), Oddity::NoServers);
    }
    let call_timeout = members.read("call_timeout", Field::positive_duration);
    let idle_timeout = members.read("idle_timeout", idle_timeout);
    let search = members.read("search", |field| search(field, report));
    let budget = members.read("results", |field| results(field, report)).map(Option::flatten);
    let proxy = members.read("proxy", Field::text);
    let ca_file = members.read("ca_file", Field::text);
    let expose = members.read("expose", |field| expose(field, "", report));
    members.finish();
    let servers = servers.unwrap_or_default();
    Ok(File { servers, call_timeout, idle_timeout, search, budget, expose, proxy, ca_file })
}

fn search(field: &Field<'_>, report: &Report) -> Result<Search, At<Fault>> {
    let mut members = Members::new(field.object()?, "", "search.", report);
    let default_limit = members.read("default_limit", |field| {
        let limits = SearchOptions::LIMITS;
        let expected = || field.wrong(format!("a whole number from {} to {}", limits.start(), limits.end()));
        let limit = field.count().map_err(|_| expected())?.get();
        if limits.contains(&limit) { Ok(limit) } else { Err(expected()) }
    });
    let semantic = members.read("semantic", Field::flag);
    members.finish();
    Ok(Search { default_limit, semantic })
}

fn results(field: &Field<'_>, report: &Report) -> Read<usize> {
    let mut members = Members::new(field.object()?, "", "results.", report);
    let budget = members.read("budget", Field::whole_number);
    members.finish();
    budget
}

fn expose(field: &Field<'_>, scope: &str, report: &Report) -> Result<Exposed, At<Fault>> {
    let mut members = Members::new(field.object()?, scope, "expose.", report);
    let exposed =
        Exposed { prompts: members.read("prompts", Field::flag), resources: members.read("resources", Field::flag) };
    members.finish();
    Ok(exposed)
}

fn servers(field: &Field<'_>, report: &Report) -> Result<Vec<Named>, At<Fault>> {
    let members = Members::new(field.object()?, "mcpServers.", "", report);
    let named = |(name, field): (At<&str>, Field<'_>)| {
        let scope = format!("mcpServers.{}.", name.value);
        Named { name: At::new(name.offset, name.value.to_owned()), entry: entry(&field, &scope, report) }
    };
    Ok(members.into_fields().map(named).collect())
}

fn entry(field: &Field<'_>, scope: &str, report: &Report) -> Result<Entry, At<Fault>> {
    let object = field.object().map_err(|at| {
        let expected = "an object like {\"command\": \"program\"} or {\"url\": \"https://…\"}";
        match at.value {
            Fault::Value { found, .. } => At::new(at.offset, Fault::value("entry", expected, found)),
            fault => At::new(at.offset, fault),
        }
    })?;
    let mut members = Members::new(object, scope, "", report);
    let entry = Entry {
        kind: members.read("type", Field::text),
        command: members.read("command", command),
        args: members.read("args", Field::texts),
        env: members.read("env", Field::text_map),
        cwd: members.read("cwd", Field::text),
        url: members.read("url", Field::text),
        headers: members.read("headers", Field::text_map),
        proxy: members.read("proxy", Field::text),
        ca_file: members.read("ca_file", Field::text),
        oauth: members.read("oauth", |field| oauth(field, scope, report)),
        disabled: members.read("disabled", Field::flag),
        timeout: members.read("timeout", Field::positive_duration),
        idle_timeout: members.read("idle_timeout", idle_timeout),
        max_concurrent: members.read("max_concurrent", Field::count),
        era: members.read("era", era),
        description: members.read("description", Field::text),
        expose: members.read("expose", |field| expose(field, scope, report)),
    };
    members.finish();
    Ok(entry)
}

fn oauth(field: &Field<'_>, scope: &str, report: &Report) -> Result<OAuthEntry, At<Fault>> {
    let mut members = Members::new(field.object()?, scope, "oauth.", report);
    let entry = OAuthEntry {
        grant: members.read("grant", grant)?,
        client_id: members.read("client_id", Field::text)?,
        client_secret: members.read("client_secret", Field::text)?,
        client_metadata_url: members.read("client_metadata_url", Field::text)?,
        private_key_file: members.read("private_key_file", Field::text)?,
        scopes: members.read("scopes", Field::texts)?,
        redirect_port: members.read("redirect_port", port)?,
    };
    members.finish();
    Ok(entry)
}

fn grant(field: &Field<'_>) -> Result<Grant, At<Fault>> {
    match field.word() {
        Some("authorization_code") => Ok(Grant::AuthorizationCode),
        Some("client_credentials") => Ok(Grant::ClientCredentials),
        _ => Err(field.wrong("\"authorization_code\" or \"client_credentials\"")),
    }
}

fn port(field: &Field<'_>) -> Result<u16, At<Fault>> {
    let wrong = || field.wrong("a port from 1 to 65535");
    u16::try_from(field.count().map_err(|_| wrong())?.get()).map_err(|_| wrong())
}

fn command(field: &Field<'_>) -> Result<At<String>, At<Fault>> {
    if field.is_list() { Err(At::new(field.offset(), Fault::CommandList)) } else { field.text() }
}

fn era(field: &Field<'_>) -> Result<Era, At<Fault>> {
    match field.word() {
        Some("auto") => Ok(Era::Auto),
        Some("legacy") => Ok(Era::Legacy),
        Some("modern") => Ok(Era::Modern),
        _ => Err(field.wrong("\"auto\", \"legacy\" or \"modern\"")),
    }
}

fn idle_timeout(field: &Field<'_>) -> Result<IdleTimeout, At<Fault>> {
    match field.word() {
        Some("adaptive") => Ok(IdleTimeout::Adaptive),
        Some("never") => Ok(IdleTimeout::Never),
        _ => Ok(IdleTimeout::After(field.duration(&format!("\"adaptive\", \"never\", or {}", duration::EXPECTED))?)),
    }
}
