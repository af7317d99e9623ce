//! mcp-runner: a file of servers, with `sseProxy` for access over HTTP.

use super::super::{Client, Node};
use super::{Draft, DraftServer, is_on};

const SERVER_KEYS: &[&str] = &["command", "args", "env"];

const KEYS: &[&str] = &["mcpServers", "sseProxy"];

pub(super) fn draft(node: &Node) -> Draft {
    let mut draft = Draft::default();
    let proxy = node.get("sseProxy").unwrap_or(&Node::Null);
    let allowed: Option<Vec<&str>> = match proxy.get("allowedServers") {
        None | Some(Node::Null) => None,
        Some(names) => Some(names.items().iter().filter_map(Node::as_text).collect()),
    };
    for (name, written) in node
        .get("mcpServers")
        .map(Node::members)
        .unwrap_or_default()
    {
        // It expanded no references, like Claude Desktop.
        let mut server = DraftServer::read(name, written, SERVER_KEYS, Client::ClaudeDesktop);
        if allowed
            .as_ref()
            .is_some_and(|allowed| !allowed.contains(&name))
        {
            server.switch_off(
                "",
                "is not among `sseProxy.allowedServers`, so it comes over disabled; `mcpzip enable` lets clients use it",
            );
        }
        draft.servers.push(server);
    }
    if proxy.get("authenticate").is_some_and(is_on) {
        draft.want_tokens("`sseProxy.authenticate`");
    }
    let known = [
        "allowedServers",
        "authenticate",
        "address",
        "port",
        "workers",
    ];
    for (key, _) in proxy.members() {
        if !known.contains(&key) {
            draft
                .blocking
                .push(format!("`sseProxy.{key}` is not known here"));
        }
    }
    if let Node::Map(_) = proxy {
        let address = proxy.get("address").and_then(Node::as_text);
        let port = match proxy.get("port") {
            Some(Node::Number(port)) => port.as_str(),
            _ => "3000",
        };
        let address = format!("{}:{port}", address.unwrap_or("127.0.0.1"));
        draft.notes.push(format!(
            "`sseProxy` opened a port: `mcpzip serve --http` opens {address} (`http.address`)"
        ));
        draft.set(&["http", "address"], Node::Text(address));
    }
    draft.note_rest(node, KEYS);
    draft
}
