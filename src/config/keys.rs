//! Every key of the configuration: its name, its permitted values, and its meaning. Unknown keys are found by these
//! tables, and the JSON Schema for editors is made from them; the reader in `file.rs` reads exactly these keys.

/// The keys of one object.
pub(super) type Table = &'static [Key];

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) value: Value,
    /// A sentence for the author of the file.
    pub(super) doc: &'static str,
    /// The default, as JSON.
    pub(super) default: Option<&'static str>,
}

/// The permitted values of a key; `null` always counts as absent.
#[derive(Debug)]
pub(super) enum Value {
    Text,
    Texts,
    /// An object of texts.
    TextMap,
    Flag,
    /// A whole number within bounds.
    Number(u64, Option<u64>),
    /// A time longer than zero.
    Time,
    /// A time, or one of some words.
    TimeOr(&'static [&'static str]),
    /// One of some words.
    Words(&'static [&'static str]),
    /// A command line, or a list with at least a program.
    Command,
    Object(Table),
    /// An object of servers' entries, each with the keys of [`ENTRY`].
    Servers,
    /// An object whose members are not checked.
    Opaque,
    /// Any value.
    Any,
}

const fn key(name: &'static str, value: Value, doc: &'static str) -> Key {
    Key {
        name,
        value,
        doc,
        default: None,
    }
}

const fn with_default(
    name: &'static str,
    value: Value,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        value,
        doc,
        default: Some(default),
    }
}

/// The values of `type` that are offered; letter case, `-` and `_` are ignored.
pub(super) const TYPES: &[&str] = &["stdio", "http", "streamable-http", "sse"];

/// The keys of the file.
pub(super) const FILE: Table = &[
    key(
        "$schema",
        Value::Any,
        "The JSON Schema of this file, for editors.",
    ),
    key(
        "mcpServers",
        Value::Servers,
        "The servers by name, in the form that MCP clients use.",
    ),
    with_default(
        "call_timeout",
        Value::Time,
        "\"120s\"",
        "What a call may take: `\"90s\"`, `\"2m\"`, or seconds.",
    ),
    with_default(
        "idle_timeout",
        IDLE_TIMEOUT,
        "\"adaptive\"",
        "When an unused connection closes.",
    ),
    with_default(
        "min_idle_timeout",
        Value::Time,
        "\"60s\"",
        "The shortest time of an adaptive `idle_timeout`: that of a server which is seldom used.",
    ),
    with_default(
        "max_idle_timeout",
        Value::Time,
        "\"30m\"",
        "The longest time of an adaptive `idle_timeout`.",
    ),
    key(
        "catalog",
        Value::Object(CATALOG),
        "How long the servers' lists of tools are used.",
    ),
    key("search", Value::Object(SEARCH), "How tools are found."),
    key(
        "results",
        Value::Object(RESULTS),
        "How results are answered.",
    ),
    with_default(
        "management",
        Value::Words(&["off", "read", "full"]),
        "\"read\"",
        "What agents may do to mcpzip: nothing, look, or also add and remove servers, which lets them start programs.",
    ),
    key(
        "proxy",
        Value::Text,
        "By which proxy servers behind HTTP are reached: a URL (`http`, `https`, `socks5`), or `none`.",
    ),
    key(
        "ca_file",
        Value::Text,
        "A PEM file of certificates that are trusted in addition to the system's.",
    ),
    key(
        "expose",
        Value::Object(EXPOSE),
        "Whether clients see the servers' prompts and resources.",
    ),
    key(
        "tools",
        Value::Object(TOOLS),
        "Rules for the tools of all servers, the built-in server `mcpzip` among them.",
    ),
    with_default(
        "credentials",
        Value::Words(&["auto", "keychain", "file"]),
        "\"auto\"",
        "How logins are kept: with the system's keychain or not at all, in plain files, or as it can be had.",
    ),
    key(
        "registry",
        Value::Text,
        "The registry that `mcpzip registry` and `mcpzip add --from-registry` ask: a URL.",
    ),
    key(
        "log",
        Value::Words(&super::LOG_LEVELS),
        "How much `mcpzip serve` logs, where neither `--log` nor `MCPZIP_LOG` says so.",
    ),
    key(
        "logs",
        Value::Object(LOGS),
        "How logs are written, and what is kept of their files.",
    ),
    key(
        "http",
        Value::Object(HTTP),
        "The options of `mcpzip serve --http`; all but `metrics` are read at the start.",
    ),
    key(
        "otlp",
        Value::Object(OTLP),
        "Where traces go; read at the start. The variables of OpenTelemetry go before it.",
    ),
];

pub(super) const CATALOG: Table = &[with_default(
    "max_age",
    Value::Time,
    "\"24h\"",
    "A server whose list is younger is started only when it is called; an older list is renewed in the background.",
)];

pub(super) const LOGS: Table = &[
    with_default(
        "format",
        Value::Words(&super::LOG_FORMATS),
        "\"text\"",
        "The format of lines on stderr and in the main log; `MCPZIP_LOG_FORMAT` takes precedence.",
    ),
    with_default(
        "max_megabytes",
        Value::Number(1, None),
        "10",
        "The size at which a log file is rotated.",
    ),
    with_default(
        "max_files",
        Value::Number(1, None),
        "5",
        "The number of files kept of each log, including the current one.",
    ),
    with_default(
        "max_days",
        Value::Number(1, None),
        "30",
        "After how many days without a line a log file is removed.",
    ),
];

pub(super) const HTTP: Table = &[
    with_default(
        "address",
        Value::Text,
        "\"127.0.0.1:8080\"",
        "The address of `--http` without a value; `MCPZIP_HTTP_ADDRESS` takes precedence.",
    ),
    key(
        "token_file",
        Value::Text,
        "A file with the token that clients must send, unless `--token-file` or `MCPZIP_TOKEN` is set.",
    ),
    key(
        "origins",
        Value::Texts,
        "Web pages of these origins may call the server, in addition to those of `--allow-origin`.",
    ),
    with_default(
        "metrics",
        Value::Flag,
        "false",
        "Whether metrics for Prometheus are served at `/metrics`, to every client that may use the server.",
    ),
];

pub(super) const OTLP: Table = &[
    key(
        "endpoint",
        Value::Text,
        "The collector's URL, which `/v1/traces` is put behind; it has to take OTLP as JSON.",
    ),
    key(
        "headers",
        Value::TextMap,
        "Headers that are sent with the traces.",
    ),
    key(
        "service_name",
        Value::Text,
        "What this process is called in traces; `mcpzip` if nothing is said.",
    ),
    with_default(
        "sample_percent",
        Value::Number(0, Some(100)),
        "100",
        "How many of a hundred traces that begin here are recorded; those that clients began are as these say.",
    ),
];

const IDLE_TIMEOUT: Value = Value::TimeOr(&["adaptive", "never"]);

/// The keys of a server's entry.
pub(super) const ENTRY: Table = &[
    key(
        "type",
        Value::Words(TYPES),
        "How the server is spoken to; `sse` asks for the older HTTP+SSE at once, otherwise it is found out.",
    ),
    key(
        "command",
        Value::Text,
        "The server's program. `${VARIABLE}` and `${VARIABLE:-default}` work in any text.",
    ),
    key("args", Value::Texts, "The program's arguments."),
    key(
        "env",
        Value::TextMap,
        "The program's variables, in addition to a short list that it inherits.",
    ),
    key(
        "cwd",
        Value::Text,
        "The directory the program runs in, relative to that of this file.",
    ),
    key("url", Value::Text, "The URL of a server behind HTTP."),
    key(
        "headers",
        Value::TextMap,
        "Headers that are sent to the server's own origin with each request.",
    ),
    key(
        "headers_command",
        Value::Command,
        "A command that prints more headers: a line for the shell, or a list of a program and its arguments.",
    ),
    key(
        "headersHelper",
        Value::Command,
        "The same, as Claude Code calls it.",
    ),
    key(
        "proxy",
        Value::Text,
        "By which proxy the server is reached: a URL (`http`, `https`, `socks5`), or `none`.",
    ),
    key(
        "ca_file",
        Value::Text,
        "A PEM file of certificates that are trusted in addition to the system's.",
    ),
    key(
        "oauth",
        Value::Object(OAUTH),
        "How to log in, where the server does not say all of it.",
    ),
    with_default(
        "disabled",
        Value::Flag,
        "false",
        "Whether the server is kept, but not used.",
    ),
    key(
        "timeout",
        Value::Time,
        "What a call may take: `\"90s\"`, `\"2m\"`, or seconds.",
    ),
    key(
        "idle_timeout",
        IDLE_TIMEOUT,
        "When an unused connection closes.",
    ),
    key(
        "min_idle_timeout",
        Value::Time,
        "The shortest time of an adaptive `idle_timeout`.",
    ),
    key(
        "max_idle_timeout",
        Value::Time,
        "The longest time of an adaptive `idle_timeout`.",
    ),
    key(
        "max_concurrent",
        Value::Number(1, None),
        "How many calls the server gets at once; more wait.",
    ),
    with_default(
        "era",
        Value::Words(&["auto", "legacy", "modern"]),
        "\"auto\"",
        "Which protocol the server speaks: up to 2025-11-25, from 2026-07-28 on, or found out.",
    ),
    key(
        "description",
        Value::Text,
        "What the server is for, shown to agents.",
    ),
    key(
        "expose",
        Value::Object(EXPOSE),
        "Whether clients see the server's prompts and resources.",
    ),
    key(
        "tools",
        Value::Object(TOOLS),
        "Rules for the server's tools, in addition to those for all servers.",
    ),
    with_default(
        "trust",
        Value::Words(&["report", "pin"]),
        "\"report\"",
        "What happens when a tool's text or schema is not what it was: it is reported, or held back until `mcpzip approve`.",
    ),
    key(
        "projects",
        Value::Texts,
        "Only clients in these directories see the server; `!` before one is everywhere but there.",
    ),
    key(
        "registry",
        Value::Object(ORIGIN),
        "Where the entry came from; `mcpzip update` looks after this.",
    ),
];

pub(super) const OAUTH: Table = &[
    with_default(
        "grant",
        Value::Words(&["authorization_code", "client_credentials"]),
        "\"authorization_code\"",
        "A login by a person in the browser, or one without a person by `client_id` and a secret or key.",
    ),
    key(
        "issuer",
        Value::Text,
        "The only authorization server to log in at, by its issuer URL; without it, a configured secret or key stays with the first one.",
    ),
    key(
        "client_id",
        Value::Text,
        "A client that you registered where one logs in.",
    ),
    key("client_secret", Value::Text, "Its secret."),
    key(
        "client_metadata_url",
        Value::Text,
        "An `https` URL of a document that describes the client, where such are taken.",
    ),
    key(
        "private_key_file",
        Value::Text,
        "A PEM file (PKCS #8, P-256 or RSA) that signs in place of a secret.",
    ),
    key(
        "scopes",
        Value::Texts,
        "What a login is for, in place of all that the server offers.",
    ),
    key(
        "redirect_port",
        Value::Number(1, Some(65535)),
        "The port that the browser comes back to.",
    ),
];

pub(super) const EXPOSE: Table = &[
    with_default("prompts", Value::Flag, "true", "Whether prompts are seen."),
    with_default(
        "resources",
        Value::Flag,
        "true",
        "Whether resources and their templates are seen.",
    ),
];

pub(super) const TOOLS: Table = &[
    key(
        "allow",
        Value::Texts,
        "Only these may be used: names with `*` and `?`, or `@read`, `@write`, `@destructive`, `@unmarked`.",
    ),
    key(
        "ask",
        Value::Texts,
        "Before one of these is called, the user is asked.",
    ),
    key(
        "deny",
        Value::Texts,
        "These are neither found nor described nor callable.",
    ),
];

pub(super) const ORIGIN: Table = &[
    key("name", Value::Text, "The server's name in the registry."),
    key("version", Value::Text, "The version that was taken."),
    key("use", Value::Text, "Which of the things it offers is used."),
    key(
        "inputs",
        Value::Opaque,
        "What it was given; of secrets, the variables.",
    ),
    key(
        "given",
        Value::Opaque,
        "The entry as installed from the registry, so that `mcpzip update` can tell your changes apart.",
    ),
];

pub(super) const SEARCH: Table = &[
    with_default(
        "default_limit",
        Value::Number(1, Some(50)),
        "5",
        "How many hits there are when the agent does not say.",
    ),
    with_default(
        "semantic",
        Value::Flag,
        "true",
        "Whether tools are also found by what they mean.",
    ),
    key(
        "llm",
        Value::Object(LLM),
        "A language model that puts the best hits in order.",
    ),
];

pub(super) const LLM: Table = &[
    key(
        "provider",
        Value::Words(&["gemini", "anthropic", "openai"]),
        "Whose protocol it speaks; many speak OpenAI's.",
    ),
    key("model", Value::Text, "The model's name there."),
    key(
        "base_url",
        Value::Text,
        "Where it is, if not at its provider's.",
    ),
    key(
        "api_key",
        Value::Text,
        "Its key: `${VARIABLE}`, or `keychain` for what `mcpzip auth key` put there.",
    ),
    with_default(
        "timeout",
        Value::Time,
        "\"3s\"",
        "How long a search waits for it.",
    ),
];

pub(super) const RESULTS: Table = &[
    with_default(
        "budget",
        Value::Number(0, None),
        "100000",
        "Characters that a result's text may have before it is stored; 0 means no limit.",
    ),
    with_default(
        "duplicates",
        Value::Words(&["auto", "keep", "text", "structured"]),
        "\"auto\"",
        "What is answered of a text that only repeats the structured content; `auto` is what the client shows.",
    ),
    with_default(
        "kept_for",
        Value::TimeOr(&["session"]),
        "\"session\"",
        "How long stored results are kept.",
    ),
];

/// The pattern of a time.
pub(super) const TIME_PATTERN: &str = "^\\s*[0-9]*\\.?[0-9]+\\.?\\s*(ms|s|m|min|h)?\\s*$";
