//! avelino/mcp: `~/.config/mcp/servers.json`.
//!
//! Its users, roles and audit log (`serverAuth`, `audit`) stop the import: there are no users here, and a person turns on the audit log. The tools that `tool_acl` lists as
//! writing get an `ask` rule.

use super::super::{Client, Node};
use super::{Draft, DraftServer, is_on, patterns};
use crate::clients::model::Unmovable;

/// The keys that both have, with the same meaning.
const SERVER_KEYS: &[&str] = &["command", "args", "env", "url", "headers"];

const KEYS: &[&str] = &["mcpServers", "serverAuth", "audit"];

const IS_CLI: &str = "is a command line program, not an MCP server (`\"cli\": true`), and mcpzip cannot make tools of it; it stays there, \
                      with its limits";

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
        server_auth(auth, &mut draft);
    }
    if node.get("audit").is_some_and(is_on) {
        draft.blocking.push(
            "`audit`: write `\"audit\": {}` into mcpzip's configuration, which turns on its own audit log (`mcpzip audit`)".to_owned(),
        );
    }
    draft.note_rest(node, KEYS);
    draft
}

fn server(name: &str, written: &Node) -> DraftServer {
    // `${NAME}` in any text, as Claude Code has it.
    let mut server = DraftServer::read(name, written, SERVER_KEYS, Client::ClaudeCode);
    if written.get("cli").is_some_and(is_on) {
        server.entry = Err(Unmovable::Itself(IS_CLI));
        server.left_behind.clear();
        return server;
    }
    server.left_behind.retain(|key| key != "cli");
    for key in ["idle_timeout", "min_idle_timeout", "max_idle_timeout"] {
        if let Some(time @ Node::Text(_)) = written.get(key) {
            server.carry(key, key, time.clone());
        }
    }
    if let Some(acl) = written.get("tool_acl") {
        let writing = acl.get("write").map(patterns).unwrap_or_default();
        let understood = matches!(acl, Node::Null)
            || matches!(acl, Node::Map(_))
                && acl.members().iter().all(|(key, value)| {
                    matches!(*key, "read" | "write") && matches!(value, Node::List(_) | Node::Null)
                });
        if !understood {
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

/// Reads who may call which tools over HTTP. Only settings that admit all callers protect nothing.
fn server_auth(auth: &Node, draft: &mut Draft) {
    let mut providers: Vec<&str> = auth
        .get("providers")
        .map(Node::items)
        .unwrap_or_default()
        .iter()
        .filter_map(Node::as_text)
        .collect();
    // Earlier releases had one provider.
    providers.extend(auth.get("provider").and_then(Node::as_text));
    providers.retain(|provider| *provider != "none");
    if !providers.is_empty() {
        draft.blocking.push(format!(
            "`serverAuth` authenticates users with {}; mcpzip has one token for `serve --http` (`http.token_file`) and no users",
            super::quoted_list(&providers)
        ));
    }
    if auth.get("acl").is_some_and(restricts) {
        draft.blocking.push(
            "`serverAuth.acl` says who may call which tools: mcpzip has rules for everybody (`tools.allow`, `tools.ask`, `tools.deny`), \
             and none for one user"
                .to_owned(),
        );
    }
    let known = [
        "providers",
        "provider",
        "acl",
        "bearer",
        "forwarded",
        "oauthAs",
    ];
    for (key, _) in auth.members() {
        if !known.contains(&key) {
            draft
                .blocking
                .push(format!("`serverAuth.{key}` is not known here"));
        }
    }
}

fn restricts(acl: &Node) -> bool {
    let is_open = |(key, value): &(&str, &Node)| match *key {
        "default" => value.as_text() == Some("allow"),
        _ => {
            value.is_same(&Node::Null)
                || **value == Node::Flag(false)
                || value.items().is_empty() && matches!(value, Node::List(_))
        }
    };
    !matches!(acl, Node::Null) && !acl.members().iter().all(is_open)
}
