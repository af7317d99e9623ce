//! Every key of the configuration: its name, its permitted values, and its meaning. Unknown keys are found by these
//! tables, and the JSON Schema for editors is made from them; the reader in `file.rs` reads exactly these keys.

use super::key::{Table, Value, key, with_default};
use super::limits::LIMIT;
use super::options::RESULT_FORMS;
use super::sandbox::{PRESETS, SANDBOX};
use super::sections::{
    APPROVALS, AUDIT, CATALOG, DAEMON, EXPOSE, HTTP, LOGS, OAUTH, OTLP, OWN_TOOLS, RESULTS,
    SCRIPTS, SEARCH, SURFACE, TOOLS,
};

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
        "The time limit of a call: `\"90s\"`, `\"2m\"`, or seconds.",
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
    with_default(
        "health_check",
        Value::TimeOr(&["never"]),
        "\"60s\"",
        "How often an open but unused connection over HTTP is checked, so that a missing server is detected before the next call.",
    ),
    key(
        "catalog",
        Value::Object(CATALOG),
        "How long the servers' lists of tools are used.",
    ),
    key(
        "surface",
        Value::ObjectOr(super::surface::SURFACES, SURFACE),
        "How clients see the servers' tools; a word is its `mode`. `serve --surface` takes precedence.",
    ),
    key(
        "show",
        Value::Texts,
        "Tools that clients see next to the three meta-tools, with their own schemas: `server__tool`, with `*` and `?` in the tool's name. With `direct` all are seen anyway.",
    ),
    key(
        "clients",
        Value::Objects(CLIENT),
        "Settings of single clients, by the names that `mcpzip connect` uses, or by which they introduce themselves.",
    ),
    key("search", Value::Object(SEARCH), "How tools are found."),
    key(
        "results",
        Value::Object(RESULTS),
        "How results are answered.",
    ),
    with_default(
        "scripts",
        Value::FlagOr(SCRIPTS),
        "false",
        "Whether agents run scripts (`mcpzip__run`): JavaScript that makes a chain of calls in one.",
    ),
    key(
        "profiles",
        Value::Profiles(PROFILE),
        "Named parts of the configuration, which only narrow it.",
    ),
    key(
        "roles",
        Value::Roles(ROLE),
        "The profiles that people with an identity (`http.auth`) get; those of all their roles add up. Without this key each of them gets everything.",
    ),
    key(
        "limits",
        Value::Limits(LIMIT),
        "How much clients over HTTP may do: a list of limits, which all count.",
    ),
    with_default(
        "management",
        Value::Words(&["off", "read", "full"]),
        "\"read\"",
        "The rights of agents over mcpzip itself: none, reading its state, or also adding and removing servers, which lets them start programs.",
    ),
    key(
        "proxy",
        Value::Text,
        "The proxy by which servers at URLs are reached: a URL (`http`, `https`, `socks5`), or `none`.",
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
        "How logins are stored: `keychain`, encrypted with a key from the system's keychain or not at all; `file`, in plain files; `auto`, encrypted if there is a keychain.",
    ),
    key(
        "store",
        Value::Text,
        "The PostgreSQL database that several replicas of `mcpzip serve --http` share: `postgres://user:${PASSWORD}@host/database`. Without it, everything is in files of the state directory. `MCPZIP_STORE` takes precedence.",
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
        "daemon",
        Value::ObjectOr(&["auto", "off"], DAEMON),
        "The process that sessions share; a word is its `mode`. `MCPZIP_DAEMON` takes precedence.",
    ),
    key(
        "http",
        Value::Object(HTTP),
        "How HTTP clients are served, by `mcpzip serve --http` and, if there is an `address`, by the daemon. `serve --http` reads all but `metrics` at the start.",
    ),
    key(
        "otlp",
        Value::Object(OTLP),
        "The receiver of traces and metrics, read at the start. The variables of OpenTelemetry take precedence.",
    ),
    key(
        "audit",
        Value::Object(AUDIT),
        "The audit log: a line for each call, refusal, approval, login and change. Off where this key is absent.",
    ),
    key(
        "approvals",
        Value::Object(APPROVALS),
        "How a call waits for `mcpzip approvals` if a rule asks and its client cannot.",
    ),
    with_default(
        "notify",
        Value::Flag,
        "false",
        "Whether a notification on the desktop says that a call or a server waits for you: `mcpzip approvals`, `mcpzip approve`. On Linux and macOS.",
    ),
];

const IDLE_TIMEOUT: Value = Value::TimeOr(&["adaptive", "never"]);

/// The keys of an entry in `profiles`.
const PROFILE: Table = &[
    key(
        "servers",
        Value::Texts,
        "The servers of the profile; `[\"*\"]` for all. Required.",
    ),
    key(
        "tools",
        Value::Object(TOOLS),
        "Rules that apply in addition to all others.",
    ),
    key(
        "surface",
        Value::Words(super::surface::SURFACES),
        "The surface of the profile's sessions.",
    ),
    key(
        "management",
        Value::Words(&["off", "read"]),
        "The rights of agents over mcpzip itself, up to the file's `management`.",
    ),
    key(
        "projects",
        Value::Texts,
        "Directories whose sessions get the profile without asking for it.",
    ),
];

/// The keys of an entry in `roles`.
const ROLE: Table = &[
    key(
        "profiles",
        Value::Texts,
        "The profiles of the role; `[\"*\"]` for the whole configuration. Required.",
    ),
    key(
        "groups",
        Value::Texts,
        "The groups whose members have the role, as the identity provider or the proxy in front names them.",
    ),
    key("users", Value::Texts, "The names of people with the role."),
    with_default(
        "manage",
        Value::Flag,
        "false",
        "Whether its people see and control everything in the window of the gateway (`http.ui`): all servers, sessions, audit lines and approvals.",
    ),
];

/// The keys of an entry in `clients`.
pub(super) const CLIENT: Table = &[
    key(
        "surface",
        Value::Words(super::surface::SURFACES),
        "The client's surface, in place of the file's `surface`.",
    ),
    key(
        "show",
        Value::Texts,
        "The tools that the client sees next to the three meta-tools, in place of the file's `show`.",
    ),
    key(
        "form",
        Value::Words(RESULT_FORMS),
        "The form of the client's results, in place of `results.form`; a tool's own `form` goes before it.",
    ),
    key(
        "profile",
        Value::Text,
        "The profile of the client's sessions, in addition to that of their command line or URL.",
    ),
];

/// The keys of a server's entry.
pub(super) const ENTRY: Table = &[
    key(
        "type",
        Value::Words(TYPES),
        "The transport; `sse` uses the older HTTP+SSE at once, which is detected otherwise.",
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
    key(
        "sandbox",
        Value::ObjectOr(PRESETS, SANDBOX),
        "Limits on the program's access to this machine; a word is the `preset`. Without this key it has all the access that you have.",
    ),
    with_default(
        "fetch",
        Value::Flag,
        "true",
        "Whether a package that `npx` or `uvx` would start is fetched into mcpzip's cache and started from there.",
    ),
    with_default(
        "cli",
        Value::Flag,
        "false",
        "Whether the program is a command line instead of an MCP server: its subcommands are the tools, read from its help.",
    ),
    key(
        "cli_help",
        Value::Text,
        "The argument that prints the help of the program and of its subcommands; several are tried without it.",
    ),
    with_default(
        "cli_depth",
        Value::Number(1, None),
        "4",
        "How many levels of help are read: 1 is the program's own, 2 those of its subcommands.",
    ),
    key(
        "cli_only",
        Value::Texts,
        "The only subcommands that are tools, each with all below it: `\"pr\"`, `\"pr list\"`.",
    ),
    key(
        "cli_read",
        Value::Texts,
        "Subcommands that you declare to be read-only, each with all below it.",
    ),
    key(
        "cli_tools",
        Value::CommandTools,
        "The tools, in place of those that the help names: fixed `args` with `{name}` for an argument.",
    ),
    key("url", Value::Text, "The URL of a server behind HTTP."),
    key(
        "openapi",
        Value::Text,
        "The OpenAPI description of an HTTP API, a URL or a file: its operations are the tools.",
    ),
    key(
        "graphql",
        Value::Text,
        "The URL of a GraphQL API: its queries and mutations are the tools, found by introspection.",
    ),
    key(
        "skills",
        Value::Text,
        "A folder of skills, relative to that of this file: each folder in it with a `SKILL.md` is a tool, and its files are resources.",
    ),
    key(
        "base_url",
        Value::Text,
        "The URL of the API that `openapi` describes, in place of the server that the description names. Credentials go to its origin.",
    ),
    key(
        "include",
        Value::Texts,
        "The only operations of `openapi` or `graphql` that are tools, by name, tag, path, or method and path: `\"issues_*\"`, `\"GET /repos/*\"`.",
    ),
    key(
        "exclude",
        Value::Texts,
        "Operations of `openapi` or `graphql` that do not become tools, in the form of `include`.",
    ),
    key(
        "origins",
        Value::Texts,
        "Further origins that the description of `openapi` may name for its servers, and redirect to. They get `headers` too, but no login.",
    ),
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
        "Claude Code's name for `headers_command`.",
    ),
    key(
        "proxy",
        Value::Text,
        "The proxy by which the server is reached: a URL (`http`, `https`, `socks5`), or `none`.",
    ),
    key(
        "ca_file",
        Value::Text,
        "A PEM file of certificates that are trusted in addition to the system's.",
    ),
    key(
        "oauth",
        Value::Object(OAUTH),
        "How to log in, if the server does not describe all of it.",
    ),
    with_default(
        "identity",
        Value::FilledObjectOr(
            super::upstream_identity::WORDS,
            super::upstream_identity::IDENTITY,
        ),
        "\"shared\"",
        "How the server learns which person with an identity (`http.auth`) calls: not at all (it gets the configured credentials), by the person's name in a header, by a token for which the person's own is exchanged, or by the person's own login there. Without an identity, all but `shared` are refused.",
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
        "The time limit of a call: `\"90s\"`, `\"2m\"`, or seconds.",
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
        "How many calls the server gets at once; more wait. For `@modelcontextprotocol/server-memory` one by default, because parallel calls overwrite each other's changes.",
    ),
    with_default(
        "era",
        Value::Words(&["auto", "legacy", "modern"]),
        "\"auto\"",
        "Which protocol the server speaks: up to 2025-11-25, from 2026-07-28 on, or detected.",
    ),
    key(
        "description",
        Value::Text,
        "The server's purpose, shown to agents.",
    ),
    key(
        "expose",
        Value::Object(EXPOSE),
        "Whether clients see the server's prompts and resources.",
    ),
    key(
        "tools",
        Value::Object(OWN_TOOLS),
        "Rules for the server's tools, in addition to those for all servers, and overrides of tools.",
    ),
    with_default(
        "trust",
        Value::Words(&["report", "pin", "quarantine"]),
        "\"report\"",
        "Tools that no person has approved: changed ones are reported (`report`); changed and new ones, also prompts and resources, are held back until `mcpzip approve` (`pin`); or nothing of the server is available before that (`quarantine`). Entries of the same program or URL have the strictest value of all of them. An entry without it stays in a quarantine until `mcpzip approve`.",
    ),
    key(
        "added_by",
        Value::Words(&["agent"]),
        "Set by mcpzip when an agent adds the server or changes its command: it is not started before `mcpzip approve`.",
    ),
    with_default(
        "share",
        Value::Words(&super::Share::WORDS),
        "\"auto\"",
        "Which sessions share the server's process: all, those in one directory, or none; `auto` decides by a table of known packages.",
    ),
    with_default(
        "placement",
        Value::Words(&super::Placement::WORDS),
        "\"each\"",
        "The placement of a server with a `command` if several replicas share a `store`: a process at each replica, or one process at one replica, to which the others pass its calls. `one` is for servers that keep a state in memory. Without a `store` it has no effect.",
    ),
    key(
        "client_capabilities",
        Value::Flag,
        "Whether the server learns what its clients can be asked (elicitation, sampling, roots). With `false` it cannot ask, and clients that differ in this share a process. `false` is the default for local servers with `\"share\": \"all\"` and for packages that are known to ask nothing.",
    ),
    key(
        "projects",
        Value::Texts,
        "Only clients in these directories see the server; `!` before one is everywhere but there.",
    ),
    key(
        "registry",
        Value::Object(ORIGIN),
        "The origin of the entry; `mcpzip update` reads and writes it.",
    ),
];

pub(super) const ORIGIN: Table = &[
    key("name", Value::Text, "The server's name in the registry."),
    key("version", Value::Text, "The installed version."),
    key(
        "use",
        Value::Text,
        "Which of the packages and remotes in the registry is used.",
    ),
    key(
        "inputs",
        Value::Opaque,
        "The values of its inputs; for secrets, the names of variables.",
    ),
    key(
        "given",
        Value::Opaque,
        "The entry as installed from the registry, so that `mcpzip update` can tell your changes apart.",
    ),
];

/// The pattern of a time.
pub(super) const TIME_PATTERN: &str = "^\\s*[0-9]*\\.?[0-9]+\\.?\\s*(ms|s|m|min|h)?\\s*$";
