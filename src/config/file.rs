//! The configuration file as it is written: the keys of the file and of a server's entry, checked for their kind only.
//!
//! A new key is a field and its `read` line here, and a line in `keys.rs`. Each field keeps its own fault, so that all
//! keys are read, and unknown ones are found, before the first fault is reported.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions};
use tracing::level_filters::LevelFilter;

use super::error::{ConfigWarning, EntryError};
use super::keys;
use super::options::FORMAT_EXPECTED;
use super::reader::{At, Field, Members, Read, Report, kind};
use super::{
    CREDENTIALS_EXPECTED, Credentials, Duplicates, Era, Grant, IdleTimeout, Lifetime, LogFormat,
    Management, Origin, Provider, SearchOptions, Trust, duration, log_level,
};

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
    pub(super) catalog: Read<CatalogEntry>,
    pub(super) search: Read<SearchEntry>,
    pub(super) results: Read<Results>,
    pub(super) management: Read<Management>,
    pub(super) proxy: Read<At<String>>,
    pub(super) ca_file: Read<At<String>>,
    pub(super) expose: Read<Exposed>,
    pub(super) tools: PolicyEntry,
    pub(super) credentials: Read<Credentials>,
    pub(super) registry: Read<At<String>>,
    pub(super) log: Read<LevelFilter>,
    pub(super) logs: Read<LogsEntry>,
    pub(super) http: Read<HttpEntry>,
    pub(super) otlp: Read<TracesEntry>,
}

/// How logs are written and kept.
pub(super) struct LogsEntry {
    pub(super) format: Read<LogFormat>,
    pub(super) max_megabytes: Read<u64>,
    pub(super) max_files: Read<u64>,
    pub(super) max_days: Read<u64>,
}

/// The HTTP endpoints next to MCP.
pub(super) struct HttpEntry {
    pub(super) address: Option<At<String>>,
    pub(super) token_file: Option<At<String>>,
    pub(super) origins: Option<Vec<At<String>>>,
    pub(super) metrics: Read<bool>,
}

/// The destination of traces.
pub(super) struct TracesEntry {
    pub(super) endpoint: Option<At<String>>,
    pub(super) headers: Option<BTreeMap<String, At<String>>>,
    pub(super) service_name: Option<At<String>>,
    pub(super) sample_percent: Read<u64>,
}

/// The age limit of lists of tools.
pub(super) struct CatalogEntry {
    pub(super) max_age: Read<Duration>,
}

/// The options of the search.
pub(super) struct SearchEntry {
    pub(super) default_limit: Read<usize>,
    pub(super) semantic: Read<bool>,
    pub(super) llm: Read<LlmEntry>,
}

/// The language model of the search.
pub(super) struct LlmEntry {
    /// The offset of the object, in bytes.
    pub(super) offset: usize,
    pub(super) provider: Option<Provider>,
    pub(super) model: Option<At<String>>,
    pub(super) base_url: Option<At<String>>,
    pub(super) api_key: Option<At<String>>,
    pub(super) timeout: Option<Duration>,
}

/// The options for results.
pub(super) struct Results {
    pub(super) budget: Read<usize>,
    pub(super) duplicates: Read<Duplicates>,
    pub(super) kept_for: Read<Lifetime>,
}

/// The exposure of prompts and resources.
pub(super) struct Exposed {
    pub(super) prompts: Read<bool>,
    pub(super) resources: Read<bool>,
}

/// The rules for tools.
#[derive(Default)]
pub(super) struct PolicyEntry {
    pub(super) allow: Option<Vec<At<String>>>,
    pub(super) ask: Option<Vec<At<String>>>,
    pub(super) deny: Option<Vec<At<String>>>,
}

/// A member of `mcpServers`.
pub(super) struct Named {
    pub(super) name: At<String>,
    pub(super) entry: Result<Entry, At<EntryError>>,
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
    pub(super) headers_command: Read<Words>,
    pub(super) headers_helper: Read<Words>,
    pub(super) proxy: Read<At<String>>,
    pub(super) ca_file: Read<At<String>>,
    pub(super) oauth: Read<OAuthEntry>,
    pub(super) disabled: Read<bool>,
    pub(super) timeout: Read<Duration>,
    pub(super) idle_timeout: Read<IdleTimeout>,
    pub(super) min_idle_timeout: Read<Duration>,
    pub(super) max_idle_timeout: Read<Duration>,
    pub(super) max_concurrent: Read<NonZeroUsize>,
    pub(super) era: Read<Era>,
    pub(super) description: Read<At<String>>,
    pub(super) expose: Read<Exposed>,
    pub(super) tools: Read<PolicyEntry>,
    pub(super) trust: Read<Trust>,
    pub(super) projects: Read<Vec<At<String>>>,
    pub(super) registry: Read<Origin>,
}

/// A command: a line for the shell, or a program and its arguments.
pub(super) enum Words {
    Line(At<String>),
    Program(At<String>, Vec<At<String>>),
}

/// The `oauth` of a server's entry.
#[derive(Default)]
pub(super) struct OAuthEntry {
    pub(super) grant: Option<Grant>,
    pub(super) issuer: Option<At<String>>,
    pub(super) client_id: Option<At<String>>,
    pub(super) client_secret: Option<At<String>>,
    pub(super) client_metadata_url: Option<At<String>>,
    pub(super) private_key_file: Option<At<String>>,
    pub(super) scopes: Option<Vec<At<String>>>,
    pub(super) redirect_port: Option<u16>,
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
    let catalog = members.read("catalog", |field| catalog(field, report));
    let search = members.read("search", |field| search(field, report));
    let results = members.read("results", |field| results(field, report));
    let management = members.read("management", management);
    let proxy = members.read("proxy", Field::text);
    let ca_file = members.read("ca_file", Field::text);
    let expose = members.read("expose", |field| expose(field, "", report));
    // Invalid rules are never ignored.
    let tools = members
        .read("tools", |field| policy(field, "", report))?
        .unwrap_or_default();
    let credentials = members.read("credentials", credentials);
    let registry = members.read("registry", Field::text);
    let log = members.read("log", level);
    let logs = members.read("logs", |field| logs(field, report));
    let http = members.read("http", |field| http(field, report));
    let otlp = members.read("otlp", |field| otlp(field, report));
    members.finish();
    let servers = servers.unwrap_or_default();
    Ok(File {
        servers,
        call_timeout,
        idle_timeout,
        min_idle_timeout,
        max_idle_timeout,
        catalog,
        search,
        results,
        management,
        expose,
        tools,
        credentials,
        proxy,
        ca_file,
        registry,
        log,
        logs,
        http,
        otlp,
    })
}

fn level(field: &Field<'_>) -> Result<LevelFilter, At<EntryError>> {
    field
        .word()
        .and_then(log_level)
        .ok_or_else(|| field.wrong("off, error, warn, info, debug or trace, in quotes"))
}

fn catalog(field: &Field<'_>, report: &Report) -> Result<CatalogEntry, At<EntryError>> {
    let mut members = Members::new(field.object()?, keys::CATALOG, "", "catalog.", report);
    let entry = CatalogEntry {
        max_age: members.read("max_age", Field::positive_duration),
    };
    members.finish();
    Ok(entry)
}

fn logs(field: &Field<'_>, report: &Report) -> Result<LogsEntry, At<EntryError>> {
    let mut members = Members::new(field.object()?, keys::LOGS, "", "logs.", report);
    let count = |field: &Field<'_>| field.count().map(|count| count.get() as u64);
    let entry = LogsEntry {
        format: members.read("format", |field| {
            field
                .word()
                .and_then(LogFormat::parse)
                .ok_or_else(|| field.wrong(FORMAT_EXPECTED))
        }),
        max_megabytes: members.read("max_megabytes", count),
        max_files: members.read("max_files", count),
        max_days: members.read("max_days", count),
    };
    members.finish();
    Ok(entry)
}

fn http(field: &Field<'_>, report: &Report) -> Result<HttpEntry, At<EntryError>> {
    let mut members = Members::new(field.object()?, keys::HTTP, "", "http.", report);
    let entry = HttpEntry {
        address: members.read("address", Field::text)?,
        token_file: members.read("token_file", Field::text)?,
        origins: members.read("origins", Field::texts)?,
        metrics: members.read("metrics", Field::flag),
    };
    members.finish();
    Ok(entry)
}

fn otlp(field: &Field<'_>, report: &Report) -> Result<TracesEntry, At<EntryError>> {
    let mut members = Members::new(field.object()?, keys::OTLP, "", "otlp.", report);
    let entry = TracesEntry {
        endpoint: members.read("endpoint", Field::text)?,
        headers: members.read("headers", Field::text_map)?,
        service_name: members.read("service_name", Field::text)?,
        sample_percent: members.read("sample_percent", percent),
    };
    members.finish();
    Ok(entry)
}

fn percent(field: &Field<'_>) -> Result<u64, At<EntryError>> {
    let percent = field.whole_number().ok().filter(|percent| *percent <= 100);
    percent
        .and_then(|percent| u64::try_from(percent).ok())
        .ok_or_else(|| field.wrong("a whole number from 0 to 100"))
}

impl Default for TracesEntry {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: None,
            service_name: None,
            sample_percent: Ok(None),
        }
    }
}

fn search(field: &Field<'_>, report: &Report) -> Result<SearchEntry, At<EntryError>> {
    let mut members = Members::new(field.object()?, keys::SEARCH, "", "search.", report);
    let default_limit = members.read("default_limit", |field| {
        let limits = SearchOptions::LIMITS;
        let expected = || {
            field.wrong(format!(
                "a whole number from {} to {}",
                limits.start(),
                limits.end()
            ))
        };
        let limit = field.count().map_err(|_| expected())?.get();
        if limits.contains(&limit) {
            Ok(limit)
        } else {
            Err(expected())
        }
    });
    let semantic = members.read("semantic", Field::flag);
    let llm = members.read("llm", |field| llm(field, report));
    members.finish();
    Ok(SearchEntry {
        default_limit,
        semantic,
        llm,
    })
}

fn llm(field: &Field<'_>, report: &Report) -> Result<LlmEntry, At<EntryError>> {
    let mut members = Members::new(field.object()?, keys::LLM, "search.", "llm.", report);
    let entry = LlmEntry {
        offset: field.offset(),
        provider: members.read("provider", provider)?,
        model: members.read("model", Field::text)?,
        base_url: members.read("base_url", Field::text)?,
        api_key: members.read("api_key", Field::text)?,
        timeout: members.read("timeout", Field::positive_duration)?,
    };
    members.finish();
    Ok(entry)
}

fn provider(field: &Field<'_>) -> Result<Provider, At<EntryError>> {
    match field.word() {
        Some("gemini") => Ok(Provider::Gemini),
        Some("anthropic") => Ok(Provider::Anthropic),
        Some("openai") => Ok(Provider::OpenAi),
        _ => Err(field
            .wrong("\"gemini\", \"anthropic\" or \"openai\" (also for what speaks as it does)")),
    }
}

fn results(field: &Field<'_>, report: &Report) -> Result<Results, At<EntryError>> {
    let mut members = Members::new(field.object()?, keys::RESULTS, "", "results.", report);
    let results = Results {
        budget: members.read("budget", Field::whole_number),
        duplicates: members.read("duplicates", duplicates),
        kept_for: members.read("kept_for", lifetime),
    };
    members.finish();
    Ok(results)
}

fn duplicates(field: &Field<'_>) -> Result<Duplicates, At<EntryError>> {
    match field.word() {
        Some("auto") => Ok(Duplicates::Auto),
        Some("keep") => Ok(Duplicates::Keep),
        Some("text") => Ok(Duplicates::Text),
        Some("structured") => Ok(Duplicates::Structured),
        _ => Err(field.wrong("\"auto\", \"keep\", \"text\" or \"structured\"")),
    }
}

fn lifetime(field: &Field<'_>) -> Result<Lifetime, At<EntryError>> {
    match field.word() {
        Some("session") => Ok(Lifetime::Session),
        _ => Ok(Lifetime::For(field.positive_duration()?)),
    }
}

fn management(field: &Field<'_>) -> Result<Management, At<EntryError>> {
    match field.word() {
        Some("off") => Ok(Management::Off),
        Some("read") => Ok(Management::Read),
        Some("full") => Ok(Management::Full),
        _ => Err(field.wrong("\"off\", \"read\" or \"full\"")),
    }
}

fn expose(field: &Field<'_>, scope: &str, report: &Report) -> Result<Exposed, At<EntryError>> {
    let mut members = Members::new(field.object()?, keys::EXPOSE, scope, "expose.", report);
    let exposed = Exposed {
        prompts: members.read("prompts", Field::flag),
        resources: members.read("resources", Field::flag),
    };
    members.finish();
    Ok(exposed)
}

fn policy(field: &Field<'_>, scope: &str, report: &Report) -> Result<PolicyEntry, At<EntryError>> {
    let mut members = Members::new(field.object()?, keys::TOOLS, scope, "tools.", report);
    let entry = PolicyEntry {
        allow: members.read("allow", Field::texts)?,
        ask: members.read("ask", Field::texts)?,
        deny: members.read("deny", Field::texts)?,
    };
    members.finish();
    Ok(entry)
}

fn servers(field: &Field<'_>, report: &Report) -> Result<Vec<Named>, At<EntryError>> {
    let members = Members::new(field.object()?, &[], "mcpServers.", "", report);
    let named = |(name, field): (At<&str>, Field<'_>)| {
        let scope = format!("mcpServers.{}.", name.value);
        Named {
            name: At::new(name.offset, name.value.to_owned()),
            entry: entry(&field, &scope, report),
        }
    };
    Ok(members.into_fields().map(named).collect())
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
    let mut members = Members::new(object, keys::ENTRY, scope, "", report);
    let entry = Entry {
        kind: members.read("type", Field::text),
        command: members.read("command", command),
        args: members.read("args", Field::texts),
        env: members.read("env", Field::text_map),
        cwd: members.read("cwd", Field::text),
        url: members.read("url", Field::text),
        headers: members.read("headers", Field::text_map),
        headers_command: members.read("headers_command", words),
        // Claude Code's name for the key, with the same meaning.
        headers_helper: members.read("headersHelper", words),
        proxy: members.read("proxy", Field::text),
        ca_file: members.read("ca_file", Field::text),
        oauth: members.read("oauth", |field| oauth(field, scope, report)),
        disabled: members.read("disabled", Field::flag),
        timeout: members.read("timeout", Field::positive_duration),
        idle_timeout: members.read("idle_timeout", idle_timeout),
        min_idle_timeout: members.read("min_idle_timeout", Field::positive_duration),
        max_idle_timeout: members.read("max_idle_timeout", Field::positive_duration),
        max_concurrent: members.read("max_concurrent", Field::count),
        era: members.read("era", era),
        description: members.read("description", Field::text),
        expose: members.read("expose", |field| expose(field, scope, report)),
        tools: members.read("tools", |field| policy(field, scope, report)),
        trust: members.read("trust", trust),
        projects: members.read("projects", Field::texts),
        registry: members.read("registry", |field| origin(field, scope, report)),
    };
    members.finish();
    Ok(entry)
}

fn oauth(field: &Field<'_>, scope: &str, report: &Report) -> Result<OAuthEntry, At<EntryError>> {
    let mut members = Members::new(field.object()?, keys::OAUTH, scope, "oauth.", report);
    let entry = OAuthEntry {
        grant: members.read("grant", grant)?,
        issuer: members.read("issuer", Field::text)?,
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

fn credentials(field: &Field<'_>) -> Result<Credentials, At<EntryError>> {
    field
        .word()
        .and_then(Credentials::parse)
        .ok_or_else(|| field.wrong(CREDENTIALS_EXPECTED))
}

fn grant(field: &Field<'_>) -> Result<Grant, At<EntryError>> {
    match field.word() {
        Some("authorization_code") => Ok(Grant::AuthorizationCode),
        Some("client_credentials") => Ok(Grant::ClientCredentials),
        _ => Err(field.wrong("\"authorization_code\" or \"client_credentials\"")),
    }
}

fn port(field: &Field<'_>) -> Result<u16, At<EntryError>> {
    let wrong = || field.wrong("a port from 1 to 65535");
    u16::try_from(field.count().map_err(|_| wrong())?.get()).map_err(|_| wrong())
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
        _ => Err(field.wrong("\"report\" or \"pin\"")),
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
