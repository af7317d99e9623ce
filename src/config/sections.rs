//! The sections of the file. Each is one table, from which three things are made: the keys for the JSON Schema and for reports of
//! unknown ones, the struct of what was read, and the function that reads it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::adaptation::{OverrideEntry, overrides};
use super::error::EntryError;
use super::http_auth::{AUTH, AuthEntry, auth};
use super::identity_provider::{IDP, IdpEntry, idp};
use super::key::{Key, Table, Value, key};
use super::options::{FORMAT_EXPECTED, RESULT_FORMS, result_form};
use super::reader::{At, Field, Members, Read};
use super::rule_entry::{RuleEntry, rules};
use super::scripts::script_tools;
use super::surface::{READ_TOOL, SURFACES, surface_name};
use super::tls::{TLS, TlsEntry, tls};
use super::{
    AuditedArguments, DaemonMode, Duplicates, Durability, Grant, LOG_FORMATS, Lifetime, LogFormat,
    Provider, ReadTool, ResultForm, ScriptTools, SearchOptions, Surface,
};

/// `/// doc`, then `key: Read<Type> = reader, value;`, with a default behind the value if there is one. The fault of a key that is
/// an `Option` is one of the whole section.
macro_rules! section {
    ($(#[$attribute:meta])* $name:ident, $table:ident, $prefix:literal {
        $(#[doc = $doc:literal] $key:ident: $read:ident<$type:ty> = $reader:expr, $value:expr $(, $default:literal)?;)*
    }) => {
        $(#[$attribute])*
        pub(super) struct $name {
            $(#[doc = $doc] pub(super) $key: $read<$type>,)*
        }

        pub(super) const $table: Table = &[
            $(Key {
                name: stringify!($key),
                value: $value,
                doc: $doc.trim_ascii_start(),
                default: section!(@default $($default)?),
            },)*
        ];

        impl $name {
            pub(super) fn read(field: &Field<'_>) -> Result<Self, At<EntryError>> {
                let mut members = Members::new(field.object()?, $table, field.scope(), $prefix, field.report());
                let section = Self {
                    $($key: section!(@fault $read members.read(stringify!($key), $reader)),)*
                };
                members.finish();
                Ok(section)
            }
        }
    };
    (@default) => { None };
    (@default $default:literal) => { Some(stringify!($default)) };
    (@fault Read $read:expr) => { $read };
    (@fault Option $read:expr) => { $read? };
}

section! {
    /// The age limit of lists of tools.
    CatalogEntry, CATALOG, "catalog." {
        /// A server whose list is younger is started only when it is called; an older list is renewed in the background.
        max_age: Read<Duration> = Field::positive_duration, Value::Time, "24h";
    }
}

section! {
    /// How logs are written and kept.
    LogsEntry, LOGS, "logs." {
        /// The format of lines on stderr and in the main log; `MCPZIP_LOG_FORMAT` takes precedence.
        format: Read<LogFormat> = log_format, Value::Words(&LOG_FORMATS), "text";
        /// The size at which a log file is rotated.
        max_megabytes: Read<u64> = count, Value::Number(1, None), 10;
        /// The number of files kept of each log, including the current one.
        max_files: Read<u64> = count, Value::Number(1, None), 5;
        /// After how many days without a line a log file is removed.
        max_days: Read<u64> = count, Value::Number(1, None), 30;
    }
}

section! {
    /// The process that sessions share.
    DaemonEntry, DAEMON, "daemon." {
        /// Whether sessions share one process that runs the servers, or run their own. On Windows the default is `off`; on macOS sessions always run their own.
        mode: Option<DaemonMode> = daemon_mode, Value::Words(&["auto", "off"]), "auto";
        /// How long that process stays after its last session.
        idle: Option<Duration> = Field::positive_duration, Value::Time, "5m";
    }
}

section! {
    /// The HTTP endpoints next to MCP.
    HttpEntry, HTTP, "http." {
        /// The address that the daemon listens on, and `--http` without a value; `MCPZIP_HTTP_ADDRESS` takes precedence.
        address: Option<At<String>> = Field::text, Value::Text, "127.0.0.1:8080";
        /// A file with the token that clients must send, unless `--token-file` or `MCPZIP_TOKEN` is set.
        token_file: Option<At<String>> = Field::text, Value::Text;
        /// Web pages of these origins may call the server, in addition to those of `--allow-origin` and `MCPZIP_HTTP_ORIGINS`.
        origins: Option<Vec<At<String>>> = Field::texts, Value::Texts;
        /// How clients show who they are; without it, there is at most the one token. `tokens` stands for `{"tokens": true}`.
        auth: Option<AuthEntry> = auth, Value::FilledObjectOr(&["tokens"], AUTH);
        /// The URL by which people and other servers reach this one, such as `https://mcp.example.com`; the page `/logins` is below it. By default that of `auth.oauth.audience` without `/mcp`, or the address itself on this machine.
        public_url: Option<At<String>> = Field::text, Value::Text;
        /// The URL by which the other replicas reach this one, such as `http://${POD_IP}:8080`, where a `store` is configured. By default the address that it listens on, if that is one address.
        peer: Option<At<String>> = Field::text, Value::Text;
        /// A certificate, with which the server speaks HTTPS. The files are read again when they change.
        tls: Option<TlsEntry> = tls, Value::Complete(&["cert", "key"], TLS);
        /// How long `serve --http` waits for calls in progress when it is asked to end. Meanwhile it accepts no new ones. Without this key it ends at once.
        drain: Option<Duration> = Field::positive_duration, Value::Time;
        /// The surface of clients over HTTP without an entry in `clients`, in place of the file's `surface`.
        surface: Option<Surface> = surface_name, Value::Words(SURFACES);
        /// `true` is `"surface": "direct"`, the older name.
        direct: Read<bool> = Field::flag, Value::Flag, false;
        /// Whether `serve --http` serves the window at `/ui/`, to people who log in; needs `auth`. Roles with `manage` see and control everything there.
        ui: Read<bool> = Field::flag, Value::Flag, false;
        /// Whether metrics for Prometheus are served at `/metrics`, to every client that may use the server.
        metrics: Read<bool> = Field::flag, Value::Flag, false;
    }
}

section! {
    /// How clients see the servers' tools.
    SurfaceEntry, SURFACE, "surface." {
        /// `tools`: the three meta-tools. `direct`: every tool under its own name. `auto`: directly if their definitions are small, else the three; decided once for each client.
        mode: Read<Surface> = surface_name, Value::Words(SURFACES), "tools";
        /// The tokens of definitions up to which `auto` shows tools directly.
        small: Read<usize> = Field::whole_number, Value::Number(0, None), 2000;
        /// Whether `execute_read_tool`, which runs only tools that declare to be read-only, is listed next to the three; `auto`: if `auto` chose the three for a client that was seen to need it.
        read_tool: Read<ReadTool> = read_tool, Value::Words(READ_TOOL), "auto";
    }
}

section! {
    /// The destination of traces and metrics.
    OtlpEntry, OTLP, "otlp." {
        /// The collector's URL, to which `/v1/traces` and `/v1/metrics` are appended; it has to accept OTLP as JSON.
        endpoint: Option<At<String>> = Field::text, Value::Text;
        /// Headers that are sent with the traces and metrics.
        headers: Option<BTreeMap<String, At<String>>> = Field::text_map, Value::TextMap;
        /// The name of this process there; `mcpzip` by default.
        service_name: Option<At<String>> = Field::text, Value::Text;
        /// How many of a hundred traces that begin here are recorded; for traces that clients began, the clients decide.
        sample_percent: Read<u64> = percent, Value::Number(0, Some(100)), 100;
        /// Whether the figures of `/metrics` are sent as well, every minute.
        metrics: Read<bool> = Field::flag, Value::Flag, false;
    }
}

section! {
    /// The `oauth` of a server's entry.
    #[derive(Default)]
    OAuthEntry, OAUTH, "oauth." {
        /// A login by a person in the browser, one without a person by `client_id` and a secret or key, or that of a person at the identity provider of `idp`.
        grant: Option<Grant> = grant, Value::Words(&["authorization_code", "client_credentials", "id-jag"]), "authorization_code";
        /// The identity provider of "id-jag", at which a person logs in once for all servers that name it.
        idp: Option<IdpEntry> = idp, Value::Complete(&["issuer", "client_id"], IDP);
        /// The only authorization server to log in at, by its issuer URL; without it, a configured secret or key stays with the first one.
        issuer: Option<At<String>> = Field::text, Value::Text;
        /// The id of a client that you registered at the authorization server.
        client_id: Option<At<String>> = Field::text, Value::Text;
        /// The secret of the client `client_id`.
        client_secret: Option<At<String>> = Field::text, Value::Text;
        /// An `https` URL of a document that describes the client, for authorization servers that accept one.
        client_metadata_url: Option<At<String>> = Field::text, Value::Text;
        /// A PEM file (PKCS #8, P-256 or RSA) that signs in place of a secret.
        private_key_file: Option<At<String>> = Field::text, Value::Text;
        /// The scopes of a login, in place of all that the server offers.
        scopes: Option<Vec<At<String>>> = Field::texts, Value::Texts;
        /// The port that the browser comes back to; with "id-jag", from the identity provider.
        redirect_port: Option<u16> = port, Value::Number(1, Some(65535));
    }
}

section! {
    /// The exposure of prompts and resources.
    Exposed, EXPOSE, "expose." {
        /// Whether prompts are seen.
        prompts: Read<bool> = Field::flag, Value::Flag, true;
        /// Whether resources and their templates are seen.
        resources: Read<bool> = Field::flag, Value::Flag, true;
    }
}

section! {
    /// The rules for tools.
    #[derive(Debug, Default)]
    PolicyEntry, TOOLS, "tools." {
        /// Only these may be used: names with `*` and `?`, or `@read`, `@write`, `@destructive`, `@unmarked`; with `?` as in `@read?`, also by the texts of tools that declare nothing.
        allow: Option<Vec<At<RuleEntry>>> = rules, Value::Rules;
        /// Before one of these is called, the user is asked.
        ask: Option<Vec<At<RuleEntry>>> = rules, Value::Rules;
        /// These cannot be found, described or called.
        deny: Option<Vec<At<RuleEntry>>> = rules, Value::Rules;
        /// Exact names of tools to which no `ask` next to this key applies: `server__tool`, or in a server's entry the tool's own name; callers may stand before it, as in a rule. `mcpzip approvals allow ID --always` adds to it.
        without_asking: Option<Vec<At<String>>> = Field::texts, Value::Texts;
    }
}

/// The `tools` of a server's entry.
#[derive(Debug, Default)]
pub(super) struct OwnTools {
    pub(super) rules: PolicyEntry,
    pub(super) overrides: Vec<OverrideEntry>,
}

pub(super) const OWN_TOOLS: Table = &[
    TOOLS[0],
    TOOLS[1],
    TOOLS[2],
    TOOLS[3],
    key(
        "override",
        Value::Overrides,
        "Other names, descriptions, arguments and answers of tools, by the server's own names: `{\"create_issue\": {\"name\": …, \"description\": …, \"arguments\": {\"repo\": {\"fixed\": …}, \"labels\": {\"default\": …}, \"draft\": {\"hidden\": true}}, \"select\": …, \"budget\": …, \"form\": …}}`.",
    ),
];

impl OwnTools {
    pub(super) fn read(field: &Field<'_>) -> Result<Self, At<EntryError>> {
        let (object, scope, report) = (field.object()?, field.scope(), field.report());
        let mut members = Members::new(object, OWN_TOOLS, scope, "tools.", report);
        let own = Self {
            rules: PolicyEntry {
                allow: members.read("allow", rules)?,
                ask: members.read("ask", rules)?,
                deny: members.read("deny", rules)?,
                without_asking: members.read("without_asking", Field::texts)?,
            },
            overrides: members.read("override", overrides)?.unwrap_or_default(),
        };
        members.finish();
        Ok(own)
    }
}

section! {
    /// The calls that wait for an approval because their client cannot ask.
    ApprovalsEntry, APPROVALS, "approvals." {
        /// The time that a call waits for `mcpzip approvals` before it is answered that it waits; by default a little less than the client waits (50 seconds, if that is unknown).
        wait: Read<Duration> = Field::positive_duration, Value::Time;
    }
}

section! {
    /// The content and the retention of the audit log.
    AuditEntry, AUDIT, "audit." {
        /// Whether the log is written.
        enabled: Option<bool> = Field::flag, Value::Flag, true;
        /// The form of a call's arguments in a line: nothing, their SHA-256, or the arguments with secrets masked and long texts cut.
        arguments: Option<AuditedArguments> = audited_arguments, Value::Words(&["none", "hash", "redacted"]), "hash";
        /// The days that are kept, including today.
        days: Option<u32> = Field::positive_number, Value::Number(1, None), 30;
        /// The size of all files together above which the oldest ones are removed.
        megabytes: Option<u32> = Field::positive_number, Value::Number(1, None), 200;
        /// The place of a line before its call is answered: in a `file` that is sent to `store` within seconds, or committed in `store`, which costs each call some milliseconds and refuses calls while the store does not answer.
        durable: Option<Durability> = durability, Value::Words(&["file", "store"]), "file";
        /// The targets of a copy of each line: `stdout` (only of `mcpzip serve --http`), `syslog`, or `otlp`, the collector of `otlp` or of the variables.
        to: Option<Vec<At<String>>> = Field::texts, Value::Texts;
        /// The syslog server: the path of a socket, or a `host:port` that takes UDP; the system's own without this key.
        syslog: Option<At<String>> = Field::text, Value::Text;
    }
}

section! {
    /// The options of the search.
    SearchEntry, SEARCH, "search." {
        /// How many hits a search has if the agent sets no limit.
        default_limit: Read<usize> = default_limit, Value::Number(1, Some(50)), 5;
        /// Whether tools are also found by what they mean.
        semantic: Read<bool> = Field::flag, Value::Flag, true;
        /// Whether a tool that was called after a search is raised a little in later searches for such needs. Counts stay on this machine; `mcpzip stats --forget` erases them.
        learn: Read<bool> = Field::flag, Value::Flag, true;
        /// A language model that puts the best hits in order.
        llm: Read<At<LlmEntry>> = |field| Ok(At::new(field.offset(), LlmEntry::read(field)?)), Value::Object(LLM);
    }
}

section! {
    /// The language model of the search.
    LlmEntry, LLM, "search.llm." {
        /// The provider whose protocol it speaks; many services speak OpenAI's.
        provider: Option<Provider> = provider, Value::Words(&["gemini", "anthropic", "openai"]);
        /// The model's name there.
        model: Option<At<String>> = Field::text, Value::Text;
        /// The URL, if not its provider's.
        base_url: Option<At<String>> = Field::text, Value::Text;
        /// Its key: `${VARIABLE}`, or `keychain` for what `mcpzip auth key` put there.
        api_key: Option<At<String>> = Field::text, Value::Text;
        /// How long a search waits for it.
        timeout: Option<Duration> = Field::positive_duration, Value::Time, "3s";
    }
}

section! {
    /// The options for scripts.
    ScriptsEntry, SCRIPTS, "scripts." {
        /// The tools that a script may call: those that declare to be read-only, or all that the rules permit.
        allow: Option<ScriptTools> = script_tools, Value::Words(&["read_only", "all"]), "read_only";
        /// Calls that one script may make.
        max_calls: Option<u32> = Field::positive_number, Value::Number(1, None), 100;
    }
}

section! {
    /// The options for results.
    Results, RESULTS, "results." {
        /// Characters that a result's text may have before it is stored; 0 means no limit.
        budget: Read<usize> = Field::whole_number, Value::Number(0, None), 100000;
        /// The treatment of a text that only repeats the structured content; `auto` keeps the form that the client shows its model.
        duplicates: Read<Duplicates> = duplicates, Value::Words(&["auto", "keep", "text", "structured"]), "auto";
        /// The form of a result: the server's own, or JSON without insignificant whitespace and with arrays of like objects as tables.
        form: Read<ResultForm> = result_form, Value::Words(RESULT_FORMS), "as_is";
        /// How long stored results are kept.
        kept_for: Read<Lifetime> = lifetime, Value::TimeOr(&["session"]), "session";
    }
}

fn read_tool(field: &Field<'_>) -> Result<ReadTool, At<EntryError>> {
    let read_tool = field.word().and_then(ReadTool::parse);
    read_tool.ok_or_else(|| field.wrong("\"auto\", \"on\" or \"off\""))
}

fn log_format(field: &Field<'_>) -> Result<LogFormat, At<EntryError>> {
    field
        .word()
        .and_then(LogFormat::parse)
        .ok_or_else(|| field.wrong(FORMAT_EXPECTED))
}

fn count(field: &Field<'_>) -> Result<u64, At<EntryError>> {
    field.count().map(|count| count.get() as u64)
}

fn default_limit(field: &Field<'_>) -> Result<usize, At<EntryError>> {
    let limits = SearchOptions::LIMITS;
    let count = field.count().ok().map(usize::from);
    count.filter(|limit| limits.contains(limit)).ok_or_else(|| {
        let (start, end) = (limits.start(), limits.end());
        field.wrong(format!("a whole number from {start} to {end}"))
    })
}

fn percent(field: &Field<'_>) -> Result<u64, At<EntryError>> {
    let percent = field.whole_number().ok().filter(|percent| *percent <= 100);
    percent
        .and_then(|percent| u64::try_from(percent).ok())
        .ok_or_else(|| field.wrong("a whole number from 0 to 100"))
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

fn audited_arguments(field: &Field<'_>) -> Result<AuditedArguments, At<EntryError>> {
    let arguments = field.word().and_then(AuditedArguments::parse);
    arguments.ok_or_else(|| field.wrong("\"none\", \"hash\" or \"redacted\""))
}

fn durability(field: &Field<'_>) -> Result<Durability, At<EntryError>> {
    let durability = field.word().and_then(Durability::parse);
    durability.ok_or_else(|| field.wrong("\"file\" or \"store\""))
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

fn grant(field: &Field<'_>) -> Result<Grant, At<EntryError>> {
    match field.word() {
        Some("authorization_code") => Ok(Grant::AuthorizationCode),
        Some("client_credentials") => Ok(Grant::ClientCredentials),
        Some("id-jag") => Ok(Grant::IdJag),
        _ => Err(field.wrong("\"authorization_code\", \"client_credentials\" or \"id-jag\"")),
    }
}

fn port(field: &Field<'_>) -> Result<u16, At<EntryError>> {
    let wrong = || field.wrong("a port from 1 to 65535");
    u16::try_from(field.count().map_err(|_| wrong())?.get()).map_err(|_| wrong())
}

impl Default for OtlpEntry {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: None,
            service_name: None,
            sample_percent: Ok(None),
            metrics: Ok(None),
        }
    }
}

fn daemon_mode(field: &Field<'_>) -> Result<DaemonMode, At<EntryError>> {
    let mode = field.word().and_then(DaemonMode::parse);
    mode.ok_or_else(|| field.wrong("\"auto\" or \"off\""))
}
