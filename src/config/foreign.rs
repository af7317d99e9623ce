//! Keys of other programs' configurations, in files that were pasted or named by `--config`.
//!
//! A key that protects a server or its clients is a fault, because its protection would be lost unnoticed. All others are unknown keys.

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use super::error::EntryError;
use super::key::Table;
use super::nearest::{letters, simplify};
use super::reader::At;

/// A key that protects something in another program. `*` at its end stands for any end; letter case, `-` and `_` are ignored.
#[derive(Debug)]
pub(super) struct Foreign {
    key: &'static str,
    program: &'static str,
    /// Whether a value protects.
    protects: fn(&Value<'_>) -> bool,
    advice: &'static str,
}

const AVELINO: &str = "avelino/mcp";
const MCPPROXY: &str = "mcpproxy-go";
const RUNNER: &str = "mcp-runner";
const CLIENTS: &str = "other clients";
const OTHERS: &str = "other programs";

const FROM_AVELINO: &str =
    "`mcpzip migrate --from avelino FILE` carries it over, or stops if it has no counterpart";
const FROM_MCPPROXY: &str =
    "`mcpzip migrate --from mcpproxy-go FILE` carries it over, or stops if it has no counterpart";
const FROM_RUNNER: &str =
    "`mcpzip migrate --from mcp-runner FILE` carries it over, or stops if it has no counterpart";
const AS_RULES: &str = "write it as rules: `\"tools\": {\"allow\": [...], \"deny\": [...]}`";
const AS_DISABLED: &str = "write `\"disabled\": true`";
const AS_SANDBOX: &str = "write it as a sandbox: `\"sandbox\": \"strict\"`";
const AS_READ: &str = "write it as a rule: `\"tools\": {\"allow\": [\"@read\"]}`";
const AS_AUTH: &str = "write `\"auth\": {\"tokens\": true}` or another way of `http.auth`";
const IN_HTTP: &str = "in mcpzip it is part of `http`: `\"http\": {\"auth\": {\"tokens\": true}}`, or another way of `http.auth`";
const AS_TLS: &str = "write it as `\"http\": {\"tls\": {\"cert\": …, \"key\": …}}`";
const AS_LIMITS: &str = "write it as `\"limits\": [...]`";
const AS_OAUTH: &str =
    "write it as `\"oauth\": {\"client_id\": …, \"client_secret\": …, \"scopes\": [...]}`";
const AS_ORIGINS: &str = "`origins`, `auth` and `limits` restrict who calls";

const fn foreign(
    key: &'static str,
    program: &'static str,
    protects: fn(&Value<'_>) -> bool,
    advice: &'static str,
) -> Foreign {
    Foreign {
        key,
        program,
        protects,
        advice,
    }
}

/// Keys with which many programs restrict tools, at the top level and in a server's entry.
pub(super) const RULES: &[Foreign] = &[
    foreign("allow", OTHERS, always, AS_RULES),
    foreign("ask", OTHERS, always, AS_RULES),
    foreign("deny", OTHERS, always, AS_RULES),
    foreign("rules", OTHERS, always, AS_RULES),
    foreign("permissions", OTHERS, always, AS_RULES),
    foreign("allowed*", OTHERS, always, AS_RULES),
    foreign("allowlist", OTHERS, always, AS_RULES),
    foreign("blocked*", OTHERS, always, AS_RULES),
    foreign("blocklist", OTHERS, always, AS_RULES),
    foreign("denied*", OTHERS, always, AS_RULES),
    foreign("denylist", OTHERS, always, AS_RULES),
];

/// Top-level keys.
pub(super) const FILE: &[Foreign] = &[
    foreign("tool_acl", AVELINO, always, FROM_AVELINO),
    foreign("serverAuth", AVELINO, always, FROM_AVELINO),
    foreign("sseProxy", RUNNER, always, FROM_RUNNER),
    foreign("require_mcp_auth", MCPPROXY, is_true, FROM_MCPPROXY),
    foreign("anonymous_profile", MCPPROXY, always, FROM_MCPPROXY),
    foreign("read_only_mode", MCPPROXY, is_true, FROM_MCPPROXY),
    foreign("disable_management", MCPPROXY, is_true, FROM_MCPPROXY),
    foreign("docker_isolation", MCPPROXY, is_enabled, FROM_MCPPROXY),
    foreign("enabled_tools", OTHERS, always, AS_RULES),
    foreign("disabled_tools", OTHERS, always, AS_RULES),
    foreign("include_tools", OTHERS, always, AS_RULES),
    foreign("exclude_tools", OTHERS, always, AS_RULES),
    foreign("read_only", OTHERS, is_true, AS_READ),
    foreign("auth", OTHERS, is_on, IN_HTTP),
    foreign("authentication", OTHERS, is_on, IN_HTTP),
    foreign("authorization", OTHERS, is_on, IN_HTTP),
    foreign("token", OTHERS, is_on, IN_HTTP),
    foreign("tokens", OTHERS, is_on, IN_HTTP),
    foreign("token_file", OTHERS, is_on, IN_HTTP),
    foreign("users", OTHERS, is_on, IN_HTTP),
    foreign("identities", OTHERS, is_on, IN_HTTP),
    foreign("tls", OTHERS, is_on, AS_TLS),
    foreign("ssl", OTHERS, is_on, AS_TLS),
    foreign("https", OTHERS, is_on, AS_TLS),
    foreign("rate_limit*", OTHERS, is_on, AS_LIMITS),
];

/// Keys of a server's entry.
pub(super) const ENTRY: &[Foreign] = &[
    foreign("tool_acl", AVELINO, always, FROM_AVELINO),
    foreign("forward_identity", AVELINO, always, FROM_AVELINO),
    foreign("quarantined", MCPPROXY, is_true, AS_DISABLED),
    foreign("isolation", MCPPROXY, is_enabled, FROM_MCPPROXY),
    foreign("auth", CLIENTS, is_on, AS_OAUTH),
    foreign("enabled", CLIENTS, is_off, AS_DISABLED),
    foreign("active", CLIENTS, is_off, AS_DISABLED),
    foreign("is_active", CLIENTS, is_off, AS_DISABLED),
    foreign("sandboxEnabled", CLIENTS, is_true, AS_SANDBOX),
    foreign("enabled_tools", CLIENTS, always, AS_RULES),
    foreign("disabled_tools", CLIENTS, always, AS_RULES),
    foreign("include_tools", CLIENTS, always, AS_RULES),
    foreign("exclude_tools", CLIENTS, always, AS_RULES),
    foreign("read_only*", OTHERS, is_true, AS_READ),
];

/// Keys of `http`.
pub(super) const HTTP: &[Foreign] = &[
    foreign("token*", OTHERS, is_on, AS_AUTH),
    foreign("require*", OTHERS, is_true, AS_AUTH),
    foreign("identit*", OTHERS, is_on, AS_AUTH),
    foreign("login*", OTHERS, is_on, AS_AUTH),
    foreign("jwt*", OTHERS, is_on, AS_AUTH),
    foreign("oidc*", OTHERS, is_on, AS_AUTH),
    foreign("authentication", OTHERS, always, AS_AUTH),
    foreign("authorization", OTHERS, always, AS_AUTH),
    foreign("api_key*", OTHERS, always, AS_AUTH),
    foreign("bearer*", OTHERS, always, AS_AUTH),
    foreign("password", OTHERS, always, AS_AUTH),
    foreign("users", OTHERS, always, AS_AUTH),
    foreign("forwarded", OTHERS, always, AS_AUTH),
    foreign("oauth", OTHERS, always, AS_AUTH),
    foreign("certificates", OTHERS, is_true, AS_AUTH),
    foreign("cert*", OTHERS, is_on, AS_TLS),
    foreign("ssl*", OTHERS, is_on, AS_TLS),
    foreign("https", OTHERS, is_on, AS_TLS),
    foreign("allow*", OTHERS, always, AS_ORIGINS),
    foreign("blocked*", OTHERS, always, AS_ORIGINS),
    foreign("denied*", OTHERS, always, AS_ORIGINS),
    foreign("deny", OTHERS, always, AS_ORIGINS),
    foreign("cors*", OTHERS, always, AS_ORIGINS),
    foreign("limits", OTHERS, always, AS_ORIGINS),
    foreign("rate_limit*", OTHERS, always, AS_ORIGINS),
    foreign("read_only*", OTHERS, is_true, AS_READ),
];

/// The expected form of `mcpServers`, with a hint for the list that mcpproxy-go writes.
pub(super) const SERVERS_EXPECTED: &str = "an object of servers by name (mcpproxy-go writes a list: `mcpzip migrate \
                                           --from mcpproxy-go FILE` imports it)";

impl Foreign {
    /// Whether it is the key `written`, which is simplified.
    fn is(&self, written: &str) -> bool {
        let (start, is_whole) = match self.key.strip_suffix('*') {
            Some(start) => (start, false),
            None => (self.key, true),
        };
        let mut rest = written.chars();
        letters(start).all(|letter| rest.next() == Some(letter))
            && !(is_whole && rest.next().is_some())
    }
}

/// Refuses an object with a key of one of these lists. Keys of `own` are not of another program.
pub(super) fn refuse(
    object: &Object<'_>,
    own: Table,
    keys: &[&[Foreign]],
) -> Result<(), At<EntryError>> {
    for property in &object.properties {
        let name = property.name.as_str();
        if own.iter().any(|key| key.name == name) {
            continue;
        }
        let written = simplify(name);
        let found = keys
            .iter()
            .copied()
            .flatten()
            .find(|foreign| foreign.is(&written) && (foreign.protects)(&property.value));
        if let Some(Foreign {
            program, advice, ..
        }) = found
        {
            let fault = EntryError::Foreign {
                key: name.to_owned(),
                program,
                advice,
            };
            return Err(At::new(property.range().start, fault));
        }
    }
    Ok(())
}

fn always(value: &Value<'_>) -> bool {
    !matches!(value, Value::NullKeyword(_))
}

fn is_true(value: &Value<'_>) -> bool {
    always(value) && !is_false(value)
}

/// Whether a value does not switch off what it configures.
fn is_on(value: &Value<'_>) -> bool {
    let word = value.as_string_lit().map(|word| word.value.as_ref());
    is_true(value) && !matches!(word, Some("none" | "off" | "false"))
}

/// Whether a value does not switch on: what is neither `true` nor `false` may have been meant to switch off.
fn is_off(value: &Value<'_>) -> bool {
    let is_word = value
        .as_string_lit()
        .is_some_and(|word| word.value == "true");
    always(value) && !is_word && !value.as_boolean_lit().is_some_and(|flag| flag.value)
}

fn is_false(value: &Value<'_>) -> bool {
    value.as_boolean_lit().is_some_and(|flag| !flag.value)
}

/// Whether an object is on: it has neither `"enabled": false` nor `"mode": "none"`.
fn is_enabled(value: &Value<'_>) -> bool {
    let member = |key: &str| {
        let object = value.as_object()?;
        let mut members = object.properties.iter();
        Some(
            &members
                .find(|property| property.name.as_str() == key)?
                .value,
        )
    };
    let is_off = member("enabled").is_some_and(is_false);
    let is_none = member("mode")
        .and_then(Value::as_string_lit)
        .is_some_and(|mode| mode.value == "none");
    is_true(value) && !is_off && !is_none
}
