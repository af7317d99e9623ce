//! avelino/mcp: `~/.config/mcp/servers.json`.
//!
//! Its users and roles are read by [`super::server_auth`]. Its audit log turns on
//! ours. The tools that `tool_acl` lists as writing get an `ask` rule: in a server's entry, or in the rules for all servers if it
//! stands at the top of the file.

use super::super::{Client, Node};
use super::server_auth::{Known, server_auth};
use super::{Draft, DraftServer, Setting, is_on, patterns};
use crate::config::program_name;

/// The keys that both have, with the same meaning.
const SERVER_KEYS: &[&str] = &["command", "args", "env", "url", "headers"];

const KEYS: &[&str] = &["mcpServers", "serverAuth", "audit", "tool_acl"];

/// The keys of a command line that both have.
const CLI_KEYS: [&str; 4] = ["cli", "cli_help", "cli_depth", "cli_only"];

pub(super) fn draft(node: &Node) -> Draft {
    let mut draft = Draft::default();
    for (name, written) in node
        .get("mcpServers")
        .map(Node::members)
        .unwrap_or_default()
    {
        draft.servers.push(server(name, written));
    }
    if let Some(auth) = node.get("serverAuth") {
        let servers: Vec<Known<'_>> = node
            .get("mcpServers")
            .map(Node::members)
            .unwrap_or_default()
            .into_iter()
            .map(|(name, written)| known(name, written))
            .collect();
        server_auth(auth, &servers, &mut draft);
    }
    if let Some(acl) = node.get("tool_acl") {
        shared_acl(acl, &mut draft);
    }
    audit(node.get("audit"), &mut draft);
    draft.note_rest(node, KEYS);
    draft
}

/// The facts about a server that the rules for people depend on.
fn known<'a>(name: &'a str, written: &'a Node) -> Known<'a> {
    let of = |key: &str| {
        let listed = written.at(&["tool_acl", key]).map(Node::items);
        let texts = listed.unwrap_or_default().iter();
        texts.filter_map(Node::as_text).collect()
    };
    let command = written.get("command").and_then(Node::as_text);
    let is_program = written.get("cli").is_some_and(is_on);
    Known {
        name,
        program: is_program.then(|| format!("{}_", program_name(command.unwrap_or_default()))),
        reading: of("read"),
        writing: of("write"),
    }
}

/// A `tool_acl` for all servers. Its tools may have their server's name in front or not.
fn shared_acl(acl: &Node, draft: &mut Draft) {
    if !is_understood(acl) {
        draft
            .blocking
            .push("`tool_acl` has a form that is not known here".to_owned());
        return;
    }
    let writing = acl.get("write").map(Node::items).unwrap_or_default();
    let of_any = |text: &str| Node::Text(format!("*__{text}"));
    let patterns: Vec<Node> = writing
        .iter()
        .filter_map(Node::as_text)
        .flat_map(|text| match text.contains("__") {
            true => vec![Node::text(text), of_any(text)],
            false => vec![of_any(text)],
        })
        .collect();
    if patterns.is_empty() {
        return;
    }
    draft.notes.push(
        "each call of a tool that `tool_acl` lists under `write` asks the user first (`tools.ask`, for all servers)".to_owned(),
    );
    draft.settings.push(Setting {
        path: vec!["tools", "ask"],
        value: Node::List(patterns),
        // Other rules of the user do not make up for these.
        protects: Some(|_| false),
    });
}

/// Whether a `tool_acl` has no other members than lists of texts that read and write.
fn is_understood(acl: &Node) -> bool {
    let is_list = |value: &Node| matches!(value, Node::List(items) if items.iter().all(|item| item.as_text().is_some()));
    let is_known = |(key, value): &(&str, &Node)| {
        matches!(*key, "read" | "write") && (matches!(value, Node::Null) || is_list(value))
    };
    matches!(acl, Node::Null) || matches!(acl, Node::Map(_)) && acl.members().iter().all(is_known)
}

/// The audit log, which avelino/mcp writes unless it is switched off.
fn audit(written: Option<&Node>, draft: &mut Draft) {
    let text = |key: &str| written?.get(key)?.as_text();
    if written.is_some_and(|audit| !is_on(audit)) || text("output") == Some("none") {
        return;
    }
    let arguments = written.and_then(|audit| audit.get("log_arguments")?.as_flag());
    let ours = match arguments {
        Some(true) => Node::map([("arguments", Node::text("redacted"))]),
        _ => Node::Map(Vec::new()),
    };
    draft.settings.push(Setting {
        path: vec!["audit"],
        value: ours,
        protects: Some(is_on),
    });
    draft.notes.push(
        "avelino/mcp keeps an audit log unless `audit.enabled` is false, so `audit` turns on that of mcpzip (`mcpzip audit`); the log there stays there"
            .to_owned(),
    );
}

fn server(name: &str, written: &Node) -> DraftServer {
    // `${NAME}` in any text, as Claude Code has it.
    let mut server = DraftServer::read(name, written, SERVER_KEYS, Client::ClaudeCode);
    if written.get("cli").is_some_and(is_on) {
        command_line(written, &mut server);
    }
    server.left_behind.retain(|key| key != "cli");
    for key in ["idle_timeout", "min_idle_timeout", "max_idle_timeout"] {
        if let Some(time @ Node::Text(_)) = written.get(key) {
            server.carry(key, key, time.clone());
        }
    }
    if written.get("forward_identity").is_some_and(is_on) {
        server.blocking.push(
            "its `forward_identity` tells the server who calls; mcpzip does so by `identity`, which it has for a server with a `url` and which \
             has another form, so every caller would be the same to it: write that entry by hand"
                .to_owned(),
        );
    }
    if let Some(acl) = written.get("tool_acl") {
        let mut writing = acl.get("write").map(patterns).unwrap_or_default();
        if written.get("cli").is_some_and(is_on) {
            writing = without_program(writing, written, &mut server);
        }
        if !is_understood(acl) {
            server
                .blocking
                .push("its `tool_acl` has a form that is not known here".to_owned());
        }
        server.left_behind.retain(|key| key != "tool_acl");
        if !writing.is_empty() {
            server.notes.push(
                "each call of a tool that `tool_acl` lists under `write` asks the user first (`tools.ask`)".to_owned(),
            );
            let ask = Node::map([("ask", Node::List(writing))]);
            server.more.push(("tools", ask));
        }
    }
    server
}

/// A program whose subcommands are tools.
fn command_line(written: &Node, server: &mut DraftServer) {
    for key in CLI_KEYS {
        if let Some(value) = written.get(key) {
            server.carry(key, key, value.clone());
        }
    }
    // There the list has tools, here `tools` has rules.
    if let Some(tools @ Node::List(_)) = written.get("tools") {
        server.carry("tools", "cli_tools", tools.clone());
    }
}

/// The names of tools in our form: there, each begins with the program's name.
fn without_program(patterns: Vec<Node>, written: &Node, server: &mut DraftServer) -> Vec<Node> {
    let command = written.get("command").and_then(Node::as_text);
    let prefix = format!("{}_", program_name(command.unwrap_or_default()));
    let mut ours = Vec::new();
    for pattern in patterns {
        match pattern.as_text().and_then(|text| text.strip_prefix(&prefix)) {
            Some(rest) => ours.push(Node::text(rest)),
            None => server.blocking.push(format!(
                "its `tool_acl.write` has a pattern that does not begin with `{prefix}`, and tools of a command line are named without it here"
            )),
        }
    }
    ours
}
