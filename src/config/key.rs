//! A key of the configuration: its name, what may stand there, and what it means.

/// The keys of one object.
pub(super) type Table = &'static [Key];

/// A key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) value: Value,
    /// A sentence for the author of the file.
    pub(super) doc: &'static str,
    /// The default, as JSON.
    pub(super) default: Option<&'static str>,
}

/// The permitted values of a key; `null` counts as absent, except for [`RESTRICTIONS`].
#[derive(Debug, Clone, Copy)]
pub(super) enum Value {
    Text,
    Texts,
    /// A list of rules: names of tools, or objects with `tool` and `when`.
    Rules,
    /// An object of overrides of tools.
    Overrides,
    /// A list of tools of a command line.
    CommandTools,
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
    /// An object whose members, with any names, are objects.
    Objects(Table),
    /// An object of profiles, each with these keys.
    Profiles(Table),
    /// An object of roles, each with these keys.
    Roles(Table),
    /// An object with at least these of its keys.
    Complete(&'static [&'static str], Table),
    /// A list of limits, each with these keys.
    Limits(Table),
    /// An object, or one of some words, which stand for it.
    ObjectOr(&'static [&'static str], Table),
    /// An object with at least one of these keys, or a word that stands for one.
    FilledObjectOr(&'static [&'static str], Table),
    /// `true`, `false` or an object with these keys.
    FlagOr(Table),
    /// An object of servers' entries, each with the keys of `keys::ENTRY`.
    Servers,
    /// An object whose members are not checked.
    Opaque,
    /// Any value.
    Any,
}

pub(super) const fn key(name: &'static str, value: Value, doc: &'static str) -> Key {
    Key {
        name,
        value,
        doc,
        default: None,
    }
}

pub(super) const fn with_default(
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

/// The keys without which more is permitted, less is recorded, or data goes elsewhere, wherever one stands. One that is misspelt, `null` or
/// there twice is a fault of the server's entry that it is in, else of the file: to go on without it would lift what it restricts. Objects that
/// refuse unknown keys do so for all of their own keys. A misspelt key of [`is_written_empty`] without a value is none.
pub(super) const RESTRICTIONS: &[&str] = &[
    "clients",
    "profiles",
    "roles",
    "limits",
    "management",
    "max_calls",
    "store",
    "http",
    "auth",
    "tls",
    "token_file",
    "expose",
    "prompts",
    "resources",
    "tools",
    "allow",
    "ask",
    "deny",
    "override",
    "trust",
    "added_by",
    "projects",
    "share",
    "placement",
    "client_capabilities",
    "disabled",
    "sandbox",
    "identity",
    "oauth",
    "issuer",
    "scopes",
    "include",
    "exclude",
    "cli_depth",
    "cli_only",
    "cli_tools",
    "proxy",
    "base_url",
    "registry",
    "credentials",
    "audit",
    "arguments",
    "days",
    "megabytes",
    "durable",
    "to",
    "syslog",
];

/// The keys whose values may restrict a server, as `--read-only` among its arguments does. One that is misspelt and has a value, or is there twice, is a fault,
/// too; `null` is not, because programs write it for an empty value.
const CARRIERS: &[&str] = &["args", "env", "cwd", "headers"];

/// Whether a key is one of [`RESTRICTIONS`].
pub(super) fn restricts(key: &str) -> bool {
    RESTRICTIONS.contains(&key)
}

/// Whether a restriction may be lost with a key or its value.
pub(super) fn may_restrict(key: &str) -> bool {
    restricts(key) || CARRIERS.contains(&key)
}

/// Whether programs write a key, or one of a similar name, also if it has no value.
pub(super) fn is_written_empty(key: &str) -> bool {
    CARRIERS.contains(&key) || matches!(key, "base_url" | "proxy")
}

/// The keys of mcpzip 0.1, as paths, that this program does not have.
pub(super) const OLDER: &[&str] = &[
    "gemini_api_key",
    "search.model",
    "idle_timeout_minutes",
    "call_timeout_seconds",
];
