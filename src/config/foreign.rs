//! Keys of other programs' configurations, in files that were pasted or named by `--config`.
//!
//! A key that protects a server or its clients is a fault, because its protection would be lost unnoticed. All others are unknown keys.

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use super::error::EntryError;
use super::reader::At;

/// A key that protects something in another program.
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

const FROM_AVELINO: &str =
    "`mcpzip migrate --from avelino FILE` carries it over, or stops if it has no counterpart";
const FROM_MCPPROXY: &str =
    "`mcpzip migrate --from mcpproxy-go FILE` carries it over, or stops if it has no counterpart";
const FROM_RUNNER: &str =
    "`mcpzip migrate --from mcp-runner FILE` carries it over, or stops if it has no counterpart";
const AS_RULES: &str = "write it as rules: `\"tools\": {\"allow\": [...], \"deny\": [...]}`";
const AS_DISABLED: &str = "write `\"disabled\": true`";

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

/// Top-level keys.
pub(super) const FILE: &[Foreign] = &[
    foreign("tool_acl", AVELINO, always, FROM_AVELINO),
    foreign("serverAuth", AVELINO, always, FROM_AVELINO),
    foreign("sseProxy", RUNNER, always, FROM_RUNNER),
    foreign("require_mcp_auth", MCPPROXY, is_true, FROM_MCPPROXY),
    foreign("read_only_mode", MCPPROXY, is_true, FROM_MCPPROXY),
    foreign("disable_management", MCPPROXY, is_true, FROM_MCPPROXY),
    foreign("docker_isolation", MCPPROXY, is_enabled, FROM_MCPPROXY),
];

/// Keys of a server's entry.
pub(super) const ENTRY: &[Foreign] = &[
    foreign("tool_acl", AVELINO, always, FROM_AVELINO),
    foreign("quarantined", MCPPROXY, is_true, AS_DISABLED),
    foreign("isolation", MCPPROXY, is_enabled, FROM_MCPPROXY),
    foreign("enabled", CLIENTS, is_false, AS_DISABLED),
    foreign("enabled_tools", CLIENTS, always, AS_RULES),
    foreign("disabled_tools", CLIENTS, always, AS_RULES),
    foreign("enabledTools", CLIENTS, always, AS_RULES),
    foreign("disabledTools", CLIENTS, always, AS_RULES),
    foreign("includeTools", CLIENTS, always, AS_RULES),
    foreign("excludeTools", CLIENTS, always, AS_RULES),
];

/// The expected form of `mcpServers`, with a hint for the list that mcpproxy-go writes.
pub(super) const SERVERS_EXPECTED: &str = "an object of servers by name (mcpproxy-go writes a list: `mcpzip migrate \
                                           --from mcpproxy-go FILE` imports it)";

/// Refuses an object with such a key.
pub(super) fn refuse(object: &Object<'_>, keys: &[Foreign]) -> Result<(), At<EntryError>> {
    for property in &object.properties {
        let name = property.name.as_str();
        let found = keys
            .iter()
            .find(|foreign| foreign.key == name && (foreign.protects)(&property.value));
        if let Some(Foreign {
            key,
            program,
            advice,
            ..
        }) = found
        {
            let fault = EntryError::Foreign {
                key: (*key).to_owned(),
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
