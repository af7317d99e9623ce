//! The configuration file as it is written: the keys of the file and of a server's entry, checked for their kind only.
//!
//! A new key is a field and its `read` line here, and a line in `keys.rs`; one of a section is a line in `sections.rs`.
//! Each field keeps its own fault, so that all keys are read, and unknown ones are found, before the first fault is reported.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions};
use tracing::level_filters::LevelFilter;

use super::error::{ConfigWarning, EntryError};
use super::limits::{Limit, limits};
use super::openapi::OpenApiEntry;
use super::profiles::{ProfileEntries, profiles};
use super::reader::{At, Field, Members, Read, Report, kind};
use super::roles::{RoleEntries, roles};
use super::sandbox::SandboxEntry;
use super::sections::{
    ApprovalsEntry, AuditEntry, CatalogEntry, DaemonEntry, Exposed, HTTP, HttpEntry, LogsEntry,
    OAuthEntry, OtlpEntry, OwnTools, PolicyEntry, Results, ScriptsEntry, SearchEntry, SurfaceEntry,
};
use super::shown::{Shown, shown};
use super::surface_options::{ClientEntry, clients, surface};
use super::upstream_identity::{IdentityEntry, identity};
use super::{
    CREDENTIALS_EXPECTED, CommandLine, Credentials, DaemonMode, DaemonOptions, Era, HealthCheck,
    IdleTimeout, Management, Origin, Placement, ScriptOptions, Share, Trust, duration, log_level,
};
use super::{command_line, foreign, keys, openapi};

/// JSON with comments and trailing commas, and nothing else: a forgotten comma is more often a slip than intended.
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
    pub(super) min_idle_timeout: Read<Duration>,
    pub(super) max_idle_timeout: Read<Duration>,
    pub(super) health_check: Read<HealthCheck>,
    pub(super) catalog: Read<CatalogEntry>,
    pub(super) surface: Read<SurfaceEntry>,
    pub(super) show: Read<Shown>,
    pub(super) clients: Read<Vec<(String, ClientEntry)>>,
    pub(super) search: Read<SearchEntry>,
    pub(super) results: Read<Results>,
    pub(super) scripts: Read<ScriptOptions>,
    pub(super) management: Read<Management>,
    pub(super) proxy: Read<At<String>>,
    pub(super) ca_file: Read<At<String>>,
    pub(super) expose: Read<Exposed>,
    pub(super) tools: PolicyEntry,
    pub(super) profiles: Read<ProfileEntries>,
    pub(super) roles: Read<RoleEntries>,
    pub(super) limits: Read<Vec<Limit>>,
    pub(super) credentials: Option<Credentials>,
    pub(super) store: Read<At<String>>,
    pub(super) registry: Option<At<String>>,
    pub(super) log: Read<LevelFilter>,
    pub(super) logs: Read<LogsEntry>,
    pub(super) daemon: Read<DaemonOptions>,
    pub(super) http: Read<HttpEntry>,
    pub(super) otlp: Read<OtlpEntry>,
    pub(super) audit: Option<AuditEntry>,
    pub(super) approvals: Read<ApprovalsEntry>,
    pub(super) notify: Read<bool>,
}

/// A member of `mcpServers`.
pub(super) struct Named {
    pub(super) name: At<String>,
    pub(super) entry: Result<Entry, At<EntryError>>,
    /// The offsets of further entries of this name.
    pub(super) again: Vec<usize>,
}

/// A server's entry.
pub(super) struct Entry {
    pub(super) kind: Read<At<String>>,
    pub(super) command: Read<At<String>>,
    pub(super) args: Read<Vec<At<String>>>,
    pub(super) env: Read<BTreeMap<String, At<String>>>,
    pub(super) cwd: Read<At<String>>,
    pub(super) command_line: Read<CommandLine>,
    pub(super) sandbox: Read<SandboxEntry>,
    pub(super) fetch: Read<bool>,
    pub(super) url: Read<At<String>>,
    pub(super) openapi: Read<OpenApiEntry>,
    pub(super) skills: Read<At<String>>,
    pub(super) headers: Read<BTreeMap<String, At<String>>>,
    pub(super) headers_command: Read<Words>,
    pub(super) headers_helper: Read<Words>,
    pub(super) proxy: Read<At<String>>,
    pub(super) ca_file: Read<At<String>>,
    pub(super) oauth: Read<OAuthEntry>,
    pub(super) identity: Read<At<IdentityEntry>>,
    pub(super) disabled: Read<bool>,
    pub(super) timeout: Read<Duration>,
    pub(super) idle_timeout: Read<IdleTimeout>,
    pub(super) min_idle_timeout: Read<Duration>,
    pub(super) max_idle_timeout: Read<Duration>,
    pub(super) max_concurrent: Read<NonZeroUsize>,
    pub(super) era: Read<Era>,
    pub(super) description: Read<At<String>>,
    pub(super) expose: Read<Exposed>,
    pub(super) tools: Read<OwnTools>,
    pub(super) trust: Read<Trust>,
    pub(super) added_by: Read<()>,
    pub(super) share: Read<Share>,
    pub(super) placement: Read<At<Placement>>,
    pub(super) client_capabilities: Read<bool>,
    pub(super) projects: Read<Vec<At<String>>>,
    pub(super) registry: Read<Origin>,
}

const DAEMON_EXPECTED: &str = "\"auto\" or \"off\", or an object with `mode` and `idle`";

/// A command: a line for the shell, or a program and its arguments.
pub(super) enum Words {
    Line(At<String>),
    Program(At<String>, Vec<At<String>>),
}

/// Parses `text`. `None` if it is empty.
pub(super) fn parse(text: &str) -> Result<Option<Value<'_>>, jsonc_parser::errors::ParseError> {
    Ok(jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &SYNTAX)?.value)
}

/// Reads the whole file. It is a fault if the root or `mcpServers` is not an object.
pub(super) fn read(root: &Value<'_>, report: &Report) -> Result<File, At<EntryError>> {
    let Some(object) = root.as_object() else {
        let fault = EntryError::value(
            "configuration",
            "an object like {\"mcpServers\": …}",
            kind(root),
        );
        return Err(At::new(root.start(), fault));
    };
    foreign::refuse(object, keys::FILE, &[foreign::FILE, foreign::RULES])?;
    let mut members = Members::new(object, keys::FILE, "", "", report);
    // For editors only.
    members.read("$schema", |_| Ok(()))?;
    let servers = members.read("mcpServers", |field| servers(field, report))?;
    if servers.is_none() {
        report.add(root.start(), ConfigWarning::NoServers);
    }
    let call_timeout = members.read("call_timeout", Field::positive_duration);
    let idle_timeout = members.read("idle_timeout", idle_timeout);
    let min_idle_timeout = members.read("min_idle_timeout", Field::positive_duration);
    let max_idle_timeout = members.read("max_idle_timeout", Field::positive_duration);
    let health_check = members.read("health_check", health_check);
    let catalog = members.read("catalog", CatalogEntry::read);
    let surface = members.read("surface", surface);
    let show = members.read("show", shown);
    let clients = members.read("clients", clients);
    let search = members.read("search", SearchEntry::read);
    let results = members.read("results", Results::read);
    let scripts = members.read("scripts", scripts);
    let management = members.read("management", management);
    let proxy = members.read("proxy", Field::text);
    let ca_file = members.read("ca_file", Field::text);
    let expose = members.read("expose", Exposed::read);
    // Invalid rules are never ignored.
    let tools = members
        .read("tools", PolicyEntry::read)?
        .unwrap_or_default();
    let profiles = members.read("profiles", profiles);
    let roles = members.read("roles", roles);
    let limits = members.read("limits", limits);
    let credentials = members.read("credentials", credentials)?;
    let store = members.read("store", Field::text);
    let registry = members.read("registry", Field::text)?;
    let log = members.read("log", level);
    let logs = members.read("logs", LogsEntry::read);
    let daemon = members.read("daemon", daemon);
    let http = members.read("http", |field| {
        foreign::refuse(field.object()?, HTTP, &[foreign::HTTP])?;
        HttpEntry::read(field)
    });
    let otlp = members.read("otlp", OtlpEntry::read);
    let audit = members.read("audit", AuditEntry::read)?;
    let approvals = members.read("approvals", ApprovalsEntry::read);
    let notify = members.read("notify", Field::flag);
    members.finish();
    if let Some(fault) = report.take_lost(object.range.start..object.range.end) {
        return Err(fault);
    }
    let servers = servers.unwrap_or_default();
    Ok(File {
        servers,
        call_timeout,
        idle_timeout,
        min_idle_timeout,
        max_idle_timeout,
        health_check,
        catalog,
        surface,
        show,
        clients,
        search,
        results,
        scripts,
        management,
        expose,
        tools,
        profiles,
        roles,
        limits,
        credentials,
        store,
        proxy,
        ca_file,
        registry,
        log,
        logs,
        daemon,
        http,
        otlp,
        audit,
        approvals,
        notify,
    })
}

fn level(field: &Field<'_>) -> Result<LevelFilter, At<EntryError>> {
    field
        .word()
        .and_then(log_level)
        .ok_or_else(|| field.wrong("off, error, warn, info, debug or trace, in quotes"))
}

fn management(field: &Field<'_>) -> Result<Management, At<EntryError>> {
    match field.word() {
        Some("off") => Ok(Management::Off),
        Some("read") => Ok(Management::Read),
        Some("full") => Ok(Management::Full),
        _ => Err(field.wrong("\"off\", \"read\" or \"full\"")),
    }
}

fn servers(field: &Field<'_>, report: &Report) -> Result<Vec<Named>, At<EntryError>> {
    if field.is_list() {
        return Err(field.wrong(foreign::SERVERS_EXPECTED));
    }
    let mut servers: Vec<Named> = Vec::new();
    let mut known = BTreeMap::new();
    for property in &field.object()?.properties {
        let (name, offset) = (property.name.as_str(), property.range.start);
        if let Some(first) = known.get(name) {
            let first: &mut Named = &mut servers[*first];
            first.again.push(offset);
            continue;
        }
        known.insert(name, servers.len());
        let field = Field::of(name, &property.value, report);
        servers.push(Named {
            name: At::new(offset, name.to_owned()),
            entry: entry(&field, &format!("mcpServers.{name}."), report),
            again: Vec::new(),
        });
    }
    Ok(servers)
}

fn entry(field: &Field<'_>, scope: &str, report: &Report) -> Result<Entry, At<EntryError>> {
    let object = field.object().map_err(|at| {
        let expected = "an object like {\"command\": \"program\"} or {\"url\": \"https://…\"}";
        match at.value {
            EntryError::Value { found, .. } => {
                At::new(at.offset, EntryError::value("entry", expected, found))
            }
            fault => At::new(at.offset, fault),
        }
    })?;
    foreign::refuse(object, keys::ENTRY, &[foreign::ENTRY, foreign::RULES])?;
    let mut members = Members::new(object, keys::ENTRY, scope, "", report);
    let entry = Entry {
        kind: members.read("type", Field::text),
        command: members.read("command", command),
        args: members.read("args", Field::texts),
        env: members.read("env", Field::text_map),
        cwd: members.read("cwd", Field::text),
        command_line: command_line::read(&mut members),
        sandbox: members.read("sandbox", SandboxEntry::read),
        fetch: members.read("fetch", Field::flag),
        url: members.read("url", Field::text),
        openapi: openapi::read(&mut members),
        skills: members.read("skills", Field::text),
        headers: members.read("headers", Field::text_map),
        headers_command: members.read("headers_command", words),
        // Claude Code's name for the key, with the same meaning.
        headers_helper: members.read("headersHelper", words),
        proxy: members.read("proxy", Field::text),
        ca_file: members.read("ca_file", Field::text),
        oauth: members.read("oauth", OAuthEntry::read),
        identity: members.read("identity", identity),
        disabled: members.read("disabled", Field::flag),
        timeout: members.read("timeout", Field::positive_duration),
        idle_timeout: members.read("idle_timeout", idle_timeout),
        min_idle_timeout: members.read("min_idle_timeout", Field::positive_duration),
        max_idle_timeout: members.read("max_idle_timeout", Field::positive_duration),
        max_concurrent: members.read("max_concurrent", Field::count),
        era: members.read("era", era),
        description: members.read("description", Field::text),
        expose: members.read("expose", Exposed::read),
        tools: members.read("tools", OwnTools::read),
        trust: members.read("trust", trust),
        added_by: members.read("added_by", added_by),
        share: members.read("share", share),
        placement: members.read("placement", placement),
        client_capabilities: members.read("client_capabilities", Field::flag),
        projects: members.read("projects", Field::texts),
        registry: members.read("registry", |field| origin(field, scope, report)),
    };
    members.finish();
    let range = object.range.start..object.range.end;
    report.take_lost(range).map_or(Ok(entry), Err)
}

/// Reads the member that `mcpzip update` maintains; only `update` interprets it.
fn origin(field: &Field<'_>, scope: &str, report: &Report) -> Result<Origin, At<EntryError>> {
    let mut members = Members::new(field.object()?, keys::ORIGIN, scope, "registry.", report);
    let missing =
        || field.wrong("an object with the `name` and `version` of a server in the registry");
    let name = members
        .read("name", Field::text)?
        .ok_or_else(missing)?
        .value;
    let version = members
        .read("version", Field::text)?
        .ok_or_else(missing)?
        .value;
    members.read("use", Field::text)?;
    members.read("inputs", |field| field.object().map(drop))?;
    members.read("given", |field| field.object().map(drop))?;
    members.finish();
    Ok(Origin { name, version })
}

fn words(field: &Field<'_>) -> Result<Words, At<EntryError>> {
    if !field.is_list() {
        return field.text().map(Words::Line);
    }
    let mut words = field.texts()?.into_iter();
    let program = words.next().ok_or_else(|| {
        field.wrong("a line for the shell, or a list like [\"program\", \"argument\"]")
    })?;
    Ok(Words::Program(program, words.collect()))
}

/// A word stands for an object with that `mode`.
pub(super) fn daemon(field: &Field<'_>) -> Result<DaemonOptions, At<EntryError>> {
    let default = DaemonOptions::default();
    if let Some(word) = field.word() {
        let mode = DaemonMode::parse(word).ok_or_else(|| field.wrong(DAEMON_EXPECTED))?;
        return Ok(DaemonOptions { mode, ..default });
    }
    let written = DaemonEntry::read(field)?;
    Ok(DaemonOptions {
        mode: written.mode.unwrap_or(default.mode),
        idle: written.idle.unwrap_or(default.idle),
    })
}

/// Reads `true`, `false` or an object, which switches scripts on.
fn scripts(field: &Field<'_>) -> Result<ScriptOptions, At<EntryError>> {
    let default = ScriptOptions::default();
    if let Ok(is_on) = field.flag() {
        return Ok(ScriptOptions { is_on, ..default });
    }
    if field.object().is_err() {
        return Err(field.wrong("true, false or an object"));
    }
    let written = ScriptsEntry::read(field)?;
    Ok(ScriptOptions {
        is_on: true,
        allow: written.allow.unwrap_or(default.allow),
        max_calls: written.max_calls.unwrap_or(default.max_calls),
    })
}

fn credentials(field: &Field<'_>) -> Result<Credentials, At<EntryError>> {
    field
        .word()
        .and_then(Credentials::parse)
        .ok_or_else(|| field.wrong(CREDENTIALS_EXPECTED))
}

fn command(field: &Field<'_>) -> Result<At<String>, At<EntryError>> {
    if field.is_list() {
        Err(At::new(field.offset(), EntryError::CommandList))
    } else {
        field.text()
    }
}

fn era(field: &Field<'_>) -> Result<Era, At<EntryError>> {
    match field.word() {
        Some("auto") => Ok(Era::Auto),
        Some("legacy") => Ok(Era::Legacy),
        Some("modern") => Ok(Era::Modern),
        _ => Err(field.wrong("\"auto\", \"legacy\" or \"modern\"")),
    }
}

fn trust(field: &Field<'_>) -> Result<Trust, At<EntryError>> {
    match field.word() {
        Some("report") => Ok(Trust::Report),
        Some("pin") => Ok(Trust::Pin),
        Some("quarantine") => Ok(Trust::Quarantine),
        _ => Err(field.wrong("\"report\", \"pin\" or \"quarantine\"")),
    }
}

fn added_by(field: &Field<'_>) -> Result<(), At<EntryError>> {
    match field.word() {
        Some("agent") => Ok(()),
        _ => Err(field.wrong("\"agent\"")),
    }
}

fn share(field: &Field<'_>) -> Result<Share, At<EntryError>> {
    field
        .word()
        .and_then(Share::parse)
        .ok_or_else(|| field.wrong("\"auto\", \"all\", \"project\" or \"session\""))
}

fn placement(field: &Field<'_>) -> Result<At<Placement>, At<EntryError>> {
    let placement = field.word().and_then(Placement::parse);
    let placement = placement.ok_or_else(|| field.wrong("\"each\" or \"one\""))?;
    Ok(At::new(field.offset(), placement))
}

fn health_check(field: &Field<'_>) -> Result<HealthCheck, At<EntryError>> {
    match field.word() {
        Some("never") => Ok(HealthCheck::Never),
        _ => Ok(HealthCheck::Every(field.positive_duration()?)),
    }
}

fn idle_timeout(field: &Field<'_>) -> Result<IdleTimeout, At<EntryError>> {
    match field.word() {
        Some("adaptive") => Ok(IdleTimeout::Adaptive),
        Some("never") => Ok(IdleTimeout::Never),
        _ => Ok(IdleTimeout::After(field.duration(&format!(
            "\"adaptive\", \"never\", or {}",
            duration::EXPECTED
        ))?)),
    }
}
