//! mcpproxy-go: `~/.mcpproxy/mcp_config.json`, where `mcpServers` is a list.
//!
//! A server in quarantine arrives disabled and in quarantine, and a server whose tool changes need approval gets `"trust": "pin"`. Decisions about
//! single tools are in a database, which is not read: where there is one, each server arrives in quarantine. Profiles come over,
//! and clients need tokens if they did. Containers, users and the filtering of results have no counterpart and stop the import.

use std::path::{Path, PathBuf};

use super::super::{Client, Node};
use super::{Draft, DraftServer, Setting, is_on, patterns, with_texts};
use crate::config::{SecretName, env, is_profile_name};

/// The database of mcpproxy-go, with a person's decisions about single tools.
const DATABASE: &str = "config.db";

/// The keys with the same meaning here, after [`in_our_keys`].
const SERVER_KEYS: &[&str] = &[
    "command", "args", "env", "url", "headers", "cwd", "type", "oauth", "enabled",
];

/// The keys that are read elsewhere here, or have no effect on the server.
const QUIET_KEYS: &[&str] = &[
    "name",
    "created",
    "updated",
    "quarantined",
    "trust_mode",
    "skip_quarantine",
    "auto_approve_tool_changes",
    "isolation",
    "source_registry_id",
    "source_registry_provenance",
];

/// The settings that are read here; all others are listed as notes.
const KEYS: &[&str] = &[
    "mcpServers",
    "call_tool_timeout",
    "tools_limit",
    "tool_response_limit",
    "quarantine_enabled",
    "read_only_mode",
    "disable_management",
    "allow_server_add",
    "allow_server_remove",
    "docker_isolation",
    "require_mcp_auth",
    "api_key",
    "profiles",
    "anonymous_profile",
    "output_sanitisation",
    "output_validation",
    "tls",
    "sensitive_data_detection",
    "intent_declaration",
    "server_edition",
    "teams",
    "audit_log",
    "environment",
];

/// With names in `only`, notes are about these servers alone.
pub(super) fn draft((file, only): (&Path, &[String]), node: &Node, home: Option<&Path>) -> Draft {
    let mut draft = Draft::default();
    let database = database(file, node, home);
    if let Some(database) = &database {
        draft.notes.push(format!(
            "`{}` has the decisions about single tools (blocked, approved, changed), and mcpzip does not read it: each server comes over with \
             `\"trust\": \"quarantine\"`, so that its tools wait for `mcpzip approve NAME`. Tools that were blocked there belong in `tools.deny` of its entry",
            database.display()
        ));
    }
    let custom = custom_variables(node);
    let has_quarantine = node.get("quarantine_enabled") != Some(&Node::Flag(false));
    let is_isolated = node.get("docker_isolation").is_some_and(isolates);
    let list = node.get("mcpServers").map(Node::items).unwrap_or_default();
    for (index, written) in list.iter().enumerate() {
        let name = written.get("name").and_then(Node::as_text);
        let name = name.map_or_else(|| format!("server-{}", index + 1), str::to_owned);
        draft.servers.push(server(
            &name,
            written,
            &General {
                has_quarantine,
                is_isolated,
                has_decisions: database.is_some(),
                custom: &custom,
            },
            &mut draft.notes,
        ));
    }
    explain_changes(list, &mut draft, only, has_quarantine && database.is_none());
    environment(node, &custom, &mut draft);
    audit(node, &mut draft);
    settings(node, &mut draft);
    protections(node, &mut draft);
    profiles(node, &mut draft);
    draft.note_rest(node, KEYS);
    draft
}

/// The settings for all servers.
struct General<'a> {
    has_quarantine: bool,
    is_isolated: bool,
    /// Whether there are decisions about single tools, which are not read.
    has_decisions: bool,
    /// The variables that each program gets.
    custom: &'a [(&'a str, &'a Node)],
}

/// The key by which changed tools of a server are used without a person's approval, if one does.
fn passing_key(written: &Node) -> Option<&'static str> {
    let is_on = |key: &&str| written.get(key).and_then(Node::as_flag);
    if let Some(mode) = written.get("trust_mode").and_then(Node::as_text) {
        return (mode == "auto").then_some("trust_mode");
    }
    let mut keys = ["auto_approve_tool_changes", "skip_quarantine"].into_iter();
    let first = keys.find(|key| is_on(key).is_some())?;
    is_on(&first)?.then_some(first)
}

/// Explains which servers' changed tools wait for a person here.
fn explain_changes(list: &[Node], draft: &mut Draft, only: &[String], waits: bool) {
    if !waits {
        return;
    }
    let (mut pinned, mut passing) = (Vec::new(), Vec::new());
    let servers = list.iter().zip(&draft.servers);
    for (written, server) in
        servers.filter(|(_, server)| only.is_empty() || only.contains(&server.name))
    {
        let trust = server.more.iter().find(|(key, _)| *key == "trust");
        match trust.and_then(|(_, value)| value.as_text()) {
            Some("pin") => pinned.push(format!("`{}`", server.name)),
            Some(_) => {}
            None => {
                let key = passing_key(written);
                passing.extend(key.map(|key| format!("`{}` (`{key}`)", server.name)));
            }
        }
    }
    if !pinned.is_empty() {
        draft.notes.push(format!(
            "without `auto_approve_tool_changes`, changed and new tools wait for approval there, so these get `\"trust\": \"pin\"`, with which they wait for \
             `mcpzip approve`: {}",
            pinned.join(", ")
        ));
    }
    if !passing.is_empty() {
        draft.notes.push(format!(
            "changed and new tools of these are used without approval there and here; `mcpzip approve` lists them, and `\"trust\": \"pin\"` makes them wait: {}",
            passing.join(", ")
        ));
    }
}

/// The database next to the file, in its `data_dir` or in the usual directory.
fn database(file: &Path, node: &Node, home: Option<&Path>) -> Option<PathBuf> {
    let data = node.get("data_dir").and_then(Node::as_text);
    let data = data.and_then(|written| match written.strip_prefix("~/") {
        Some(rest) => Some(home?.join(rest)),
        None => Some(PathBuf::from(written)),
    });
    let usual = home.map(|home| home.join(".mcpproxy"));
    let next_to_it = file.parent().map(Path::to_owned);
    [next_to_it, data, usual]
        .into_iter()
        .flatten()
        .map(|directory| directory.join(DATABASE))
        // One that cannot be looked at counts as there.
        .find(|database| database.try_exists().unwrap_or(true))
}

/// The variables that mcpproxy-go gives to each program that it starts.
fn custom_variables(node: &Node) -> Vec<(&str, &Node)> {
    let custom = node.at(&["environment", "custom_vars"]);
    custom.map(Node::members).unwrap_or_default()
}

/// The entry with these variables, unless it has its own value for one.
fn with_variables(written: &Node, custom: &[(&str, &Node)]) -> Node {
    let own = written.get("env").map(Node::members).unwrap_or_default();
    let is_own = |name: &str| own.iter().any(|(known, _)| *known == name);
    let added = custom.iter().filter(|(name, _)| !is_own(name));
    let all = own.iter().chain(added);
    let all = Node::map(all.map(|(name, value)| ((*name).to_owned(), (*value).clone())));
    let rest = written.members().into_iter();
    let rest = rest.filter(|(key, _)| *key != "env");
    let rest = rest.map(|(key, value)| (key.to_owned(), value.clone()));
    Node::map(rest.chain([("env".to_owned(), all)]))
}

/// Notes where the variables of programs come from.
fn environment(node: &Node, custom: &[(&str, &Node)], draft: &mut Draft) {
    let listed = |names: Vec<&str>| format!("`{}`", names.join("`, `"));
    if !custom.is_empty() {
        let names = listed(custom.iter().map(|(name, _)| *name).collect());
        draft.notes.push(format!(
            "`environment.custom_vars` ({names}) comes over as `env` of each server that is a program"
        ));
    }
    let passed = node.at(&["environment", "allowed_system_vars"]);
    let passed = passed.map(Node::items).unwrap_or_default().iter();
    let passed: Vec<&str> = passed
        .filter_map(Node::as_text)
        .filter(|name| !env::is_inherited(name))
        .collect();
    if let Some(first) = passed.first() {
        draft.notes.push(format!(
            "`environment.allowed_system_vars` gives servers {} from the shell; here an entry has to name each that it needs: `\"env\": {{\"{first}\": \"${{{first}}}\"}}`",
            listed(passed.clone())
        ));
    }
}

/// The audit log, if it is on.
fn audit(node: &Node, draft: &mut Draft) {
    if node.at(&["audit_log", "enabled"]) != Some(&Node::Flag(true)) {
        return;
    }
    draft.settings.push(Setting {
        path: vec!["audit"],
        value: Node::Map(Vec::new()),
        protects: Some(is_on),
    });
    draft.notes.push(
        "`audit_log` becomes `audit`, the audit log of mcpzip (`mcpzip audit`), in its own place and form; the log there stays there"
            .to_owned(),
    );
}

/// Has calls of those tools ask the user that the user marks as more dangerous than their servers say.
fn overridden(written: &Node, server: &mut DraftServer) {
    let Some(overrides) = written.get("annotation_overrides") else {
        return;
    };
    if !matches!(overrides, Node::Map(_) | Node::Null) {
        let why = "its `annotation_overrides` have a form that is not known here";
        server.blocking.push(why.to_owned());
    }
    let mut asked = Vec::new();
    for (tool, hints) in overrides.members() {
        let is_set = |hint: &str, flag: bool| hints.get(hint).and_then(Node::as_flag) == Some(flag);
        let is_stricter = is_set("readOnlyHint", false)
            || is_set("destructiveHint", true)
            || is_set("openWorldHint", true);
        if !is_stricter {
            continue;
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        if tool.is_empty() || !tool.chars().all(is_plain) {
            server.blocking.push(format!(
                "`annotation_overrides` is about `{tool}`, which no rule here can name: write a rule by `tools.ask`"
            ));
            continue;
        }
        asked.push(tool);
    }
    if !asked.is_empty() {
        server
            .left_behind
            .retain(|key| key != "annotation_overrides");
        server.notes.push(format!(
            "`annotation_overrides` marks `{}` as more dangerous than the server says, so each call asks the user first (`tools.ask`)",
            asked.join("`, `")
        ));
    }
    for rule in patterns(&Node::texts(asked)) {
        if let Node::Text(rule) = rule {
            server.restrict("ask", rule);
        }
    }
}

fn server(
    name: &str,
    written: &Node,
    general: &General<'_>,
    notes: &mut Vec<String>,
) -> DraftServer {
    let has_quarantine = general.has_quarantine;
    let is_program = matches!(written.get("command"), Some(Node::Text(text)) if !text.is_empty());
    let with_variables = match is_program && !general.custom.is_empty() {
        true => Some(with_variables(written, general.custom)),
        false => None,
    };
    let written = with_variables.as_ref().unwrap_or(written);
    let ours = in_our_keys(name, written, notes);
    let mut server = DraftServer::read(name, &ours, SERVER_KEYS, Client::ClaudeCode);
    server.has_keyring = true;
    server
        .left_behind
        .retain(|key| !QUIET_KEYS.contains(&key.as_str()));
    let flag = |key: &str| written.get(key).and_then(Node::as_flag);
    let trusts = passing_key(written).is_some();
    let held = match flag("quarantined") {
        Some(true) => Some("is in quarantine there (`quarantined`)"),
        None if has_quarantine && !trusts => Some(
            "has no `\"quarantined\": false`, so the file does not say that a person has reviewed it",
        ),
        _ => None,
    };
    if let Some(reason) = held {
        let note = format!(
            "{reason}, so it comes over disabled. `mcpzip enable` starts it, and `mcpzip approve` shows its tools, which wait for approval"
        );
        server.switch_off("quarantined", &note);
        server.more.push(("trust", Node::text("quarantine")));
    } else if general.has_decisions {
        server.notes.push(
            "the decisions about its tools do not come over, so all of them wait for approval: `mcpzip approve` shows them"
                .to_owned(),
        );
        server.more.push(("trust", Node::text("quarantine")));
    } else if has_quarantine && !trusts {
        server.more.push(("trust", Node::text("pin")));
    }
    let mut rules = Vec::new();
    for (key, rule) in [("enabled_tools", "allow"), ("disabled_tools", "deny")] {
        if let Some(tools @ Node::List(items)) = written.get(key)
            && !items.is_empty()
        {
            server.left_behind.retain(|left| left != key);
            rules.push((rule, Node::List(patterns(tools))));
        }
    }
    if !rules.is_empty() {
        server.more.push(("tools", Node::map(rules)));
    }
    overridden(written, &mut server);
    if flag("expose_prompts") == Some(false) {
        let hidden = Node::map([("prompts", Node::Flag(false))]);
        server.carry("expose_prompts", "expose", hidden);
    }
    if let Some(most @ Node::Number(number)) = written.get("max_concurrent_requests")
        && number.parse::<u32>().is_ok_and(|most| most > 0)
    {
        server.carry("max_concurrent_requests", "max_concurrent", most.clone());
    }
    let own_isolation = written.get("isolation").filter(|own| says_how(own));
    let is_process = ours.get("command").is_some();
    if is_process && own_isolation.map_or(general.is_isolated, isolates) {
        server.blocking.push(
            "it runs in a container or a sandbox there, and would run as you here (`isolation`, `docker_isolation`): add it by `mcpzip add`, with `sandbox` in its entry".to_owned(),
        );
    }
    if written.get("auth_broker").is_some_and(is_on) {
        server
            .blocking
            .push("it gets credentials of the user who calls (`auth_broker`)".to_owned());
    }
    server
}

/// The entry with our keys and references.
fn in_our_keys(name: &str, written: &Node, notes: &mut Vec<String>) -> Node {
    let is_text = |value: &Node| !matches!(value, Node::Text(text) if text.is_empty());
    let protocol = written.get("protocol").and_then(Node::as_text);
    let is_local = written.get("command").is_some_and(is_text);
    let launches = matches!(protocol, Some("http" | "sse" | "streamable-http"));
    let mut members = Vec::new();
    for (key, value) in written.members() {
        let ours = match key {
            "working_dir" => "cwd",
            "protocol" => match protocol {
                Some("sse") => "type",
                _ => continue,
            },
            // A command goes before a URL, unless the protocol is HTTP.
            "url" if is_local && !launches => continue,
            "command" | "url" | "cwd" if !is_text(value) => continue,
            "oauth" => {
                if let Some(oauth) = oauth(value) {
                    members.push(("oauth".to_owned(), translated(&oauth, name, notes)));
                }
                continue;
            }
            _ => key,
        };
        if ours == "cwd" && !is_text(value) {
            continue;
        }
        members.push((ours.to_owned(), translated(value, name, notes)));
    }
    Node::map(members)
}

/// The settings of logins, in our keys.
fn oauth(node: &Node) -> Option<Node> {
    let mut members = Vec::new();
    for key in ["client_id", "client_secret", "scopes"] {
        if let Some(value) = node.get(key).filter(|value| !value.is_same(&Node::Null)) {
            members.push((key, value.clone()));
        }
    }
    (!members.is_empty()).then(|| Node::map(members))
}

/// Translates `${env:NAME}` to `${NAME}`, and keeps `${keyring:NAME}`, which the user has to set here.
fn translated(node: &Node, server: &str, notes: &mut Vec<String>) -> Node {
    with_texts(node, &mut |text| references(text, server, notes))
}

fn references(text: &str, server: &str, notes: &mut Vec<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        let inner = &rest[at + 2..];
        let reference = inner
            .find('}')
            .and_then(|end| Some((inner[..end].split_once(':')?, &inner[end + 1..])));
        match reference {
            Some((("env", name), after)) => {
                out.push_str(&format!("${{{}}}", name.trim()));
                rest = after;
            }
            Some((("keyring", name), after)) => {
                let name = secret_name(name.trim());
                notes.push(format!(
                    "`{server}`: the secret `{name}` is in mcpproxy-go's keyring, which mcpzip does not read: `mcpzip secret set {name}` sets it \
                     (the keyring's service is `mcpproxy`)"
                ));
                out.push_str(&format!("${{keyring:{name}}}"));
                rest = after;
            }
            _ => {
                out.push_str("${");
                rest = inner;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The name of a secret here: its own, or the nearest one that a secret can have.
fn secret_name(written: &str) -> String {
    if let Some(name) = SecretName::parse(written) {
        return name.to_string();
    }
    let name: String = written
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "-_./".contains(c) {
                c
            } else {
                '_'
            }
        })
        .take(100)
        .collect();
    match name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        true => name,
        false => format!("_{name}"),
    }
}

fn settings(node: &Node, draft: &mut Draft) {
    if let Some(text) = node.get("call_tool_timeout").and_then(Node::as_text) {
        match milliseconds(text) {
            Some(time) if time > 0 => draft.set(&["call_timeout"], Node::Text(time_text(time))),
            _ => draft.notes.push(format!(
                "`call_tool_timeout` is {text:?}, which is not a time"
            )),
        }
    }
    let number = |key: &str| match node.get(key) {
        Some(value @ Node::Number(number)) => Some((value.clone(), number.parse::<u64>().ok()?)),
        _ => None,
    };
    if let Some((value, 1..=50)) = number("tools_limit") {
        draft.set(&["search", "default_limit"], value);
    }
    if let Some((value, _)) = number("tool_response_limit") {
        draft.set(&["results", "budget"], value);
    }
    let is_set = |key: &str, flag: bool| node.get(key).and_then(Node::as_flag) == Some(flag);
    if is_set("read_only_mode", true)
        || is_set("disable_management", true)
        || is_set("allow_server_add", false)
        || is_set("allow_server_remove", false)
    {
        draft.settings.push(Setting {
            path: vec!["management"],
            value: Node::text("read"),
            protects: Some(|_| false),
        });
    }
}

/// Reads the parts of the configuration that clients have by their URL, which is the same here.
fn profiles(node: &Node, draft: &mut Draft) {
    let mut profiles = Vec::new();
    for profile in node.get("profiles").map(Node::items).unwrap_or_default() {
        let name = profile.get("name").and_then(Node::as_text);
        let is_known = |(key, _): &(&str, &Node)| matches!(*key, "name" | "servers");
        match (name, profile.get("servers")) {
            (Some(name), Some(servers)) if profile.members().iter().all(is_known) => {
                profiles.push((name, Node::map([("servers", servers.clone())])));
            }
            _ => draft
                .blocking
                .push("`profiles` has a form that is not known here".to_owned()),
        }
    }
    if !profiles.is_empty() {
        draft.settings.push(Setting {
            path: vec!["profiles"],
            value: Node::map(profiles),
            protects: Some(|_| false),
        });
    }
}

/// The `profiles` without those that could not be used here. A session that asks for a profile which stays behind is refused, so
/// none gets more than before.
pub(super) fn usable(profiles: &Node, servers: &[(String, Node)], notes: &mut Vec<String>) -> Node {
    let mut usable = Vec::new();
    for (name, profile) in profiles.members() {
        let written = profile.get("servers").map(Node::items).unwrap_or_default();
        let is_here = |text: &str| servers.iter().any(|(known, _)| known == text) || text == "*";
        let (here, absent): (Vec<&str>, Vec<&str>) = written
            .iter()
            .filter_map(Node::as_text)
            .partition(|text| is_here(text));
        if !absent.is_empty() {
            let absent = absent.join("`, `");
            notes.push(format!(
                "the profile `{name}` names `{absent}`, which is not a server here, and goes without it"
            ));
        }
        let reason = match (is_profile_name(name), here.is_empty()) {
            (false, _) => "has a name that a profile cannot have here",
            (true, true) => "has no server",
            (true, false) => {
                usable.push((name.to_owned(), Node::map([("servers", Node::texts(here))])));
                continue;
            }
        };
        notes.push(format!(
            "the profile `{name}` {reason} and stays behind: sessions that ask for it are refused"
        ));
    }
    Node::map(usable)
}

/// Reads the protections of access, and those without a counterpart.
fn protections(node: &Node, draft: &mut Draft) {
    let mut stop = |key: &str, is_there: bool, why: &str| {
        if is_there {
            draft.blocking.push(format!("`{key}`: {why}"));
        }
    };
    let is_set = |key: &str| node.get(key).is_some_and(is_on);
    let mode = |key: &str, inner: &str| node.at(&[key, inner]).and_then(Node::as_text);
    let is_on_there = node.at(&["tls", "enabled"]) == Some(&Node::Flag(true));
    if node.get("tls").is_some() && !is_on_there {
        draft
            .notes
            .push("`tls`, which is off, stays behind".to_owned());
    }
    stop(
        "tls",
        is_on_there,
        "`http.tls` names the files of the certificate and the key here",
    );
    let changes = ["spotlight_untrusted", "strip_control_chars"]
        .iter()
        .any(|key| node.at(&["output_sanitisation", key]) == Some(&Node::Flag(true)));
    stop(
        "output_sanitisation",
        changes
            || matches!(
                mode("output_sanitisation", "response_action"),
                Some("redact" | "block")
            ),
        "mcpzip hands on results as the servers give them",
    );
    stop(
        "output_validation",
        mode("output_validation", "mode") == Some("strict"),
        "mcpzip does not check results against their schemas",
    );
    stop(
        "server_edition",
        is_set("server_edition") || is_set("teams"),
        "people, roles and their tokens are made here by `http.auth`, `roles` and `mcpzip token create`",
    );
    stop(
        "anonymous_profile",
        is_set("anonymous_profile"),
        "the profile of callers without a credential is that of each client's entry here: `mcpzip connect CLIENT --profile NAME`",
    );
    if is_set("require_mcp_auth") {
        draft.want_tokens("`require_mcp_auth`");
    }
    let has_key = matches!(node.get("api_key"), Some(Node::Text(key)) if !key.is_empty());
    if has_key {
        draft.notes.push(
            "`api_key` is for its REST interface and its web pages, which mcpzip does not have"
                .to_owned(),
        );
    }
    // It writes both of these into every file that it saves.
    if is_set("intent_declaration") {
        draft.notes.push(
            "agents declare there whether a call reads, writes or destroys; `\"tools\": {\"ask\": [\"@destructive\"]}` lets a person decide here"
                .to_owned(),
        );
    }
    if is_set("sensitive_data_detection") {
        draft
            .notes
            .push("it reports secrets in calls and results, which mcpzip does not".to_owned());
    }
}

/// Whether an `isolation` sets a mode.
fn says_how(node: &Node) -> bool {
    node.get("enabled").is_some_and(|own| *own != Node::Null)
        || node.get("mode").is_some_and(|own| *own != Node::Null)
}

/// Whether it requires a container or a sandbox; `mode` goes before `enabled`.
fn isolates(node: &Node) -> bool {
    match node.get("mode").and_then(Node::as_text) {
        Some(mode) if !mode.is_empty() => mode != "none",
        _ => node.get("enabled") == Some(&Node::Flag(true)),
    }
}

/// Parses a duration of Go: `1m30s`, `500ms`, `2h`.
fn milliseconds(text: &str) -> Option<u64> {
    let mut total: f64 = 0.0;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit = rest[digits..].find(|c: char| c.is_ascii_digit());
        let end = unit.map_or(rest.len(), |length| digits + length);
        let factor = match &rest[digits..end] {
            "ms" => 1.0,
            "s" => 1000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return None,
        };
        total += number * factor;
        rest = &rest[end..];
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked"
    )]
    (0.0..1e12).contains(&total).then(|| total.round() as u64)
}

fn time_text(milliseconds: u64) -> String {
    match milliseconds % 1000 {
        0 => format!("{}s", milliseconds / 1000),
        _ => format!("{milliseconds}ms"),
    }
}
