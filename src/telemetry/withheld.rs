//! Servers whose words are in no lines but those of their own logs: an agent may read stderr and the main log.

use serde_json::{Map, Value};
use tracing::Level;

use super::known::known;
use crate::tool::ServerName;

/// Withholds the words of the servers for which `rule` returns true, until it returns `None`.
pub(crate) fn withhold(rule: impl Fn(&ServerName) -> Option<bool> + Send + Sync + 'static) {
    known(|known| {
        let mut rules = known.rules.write();
        if let Ok(any) = ServerName::new("a") {
            rules.retain(|rule| rule(&any).is_some());
        }
        rules.push(Box::new(rule));
    });
}

/// Whether the words of this server are withheld. After the last session, those of all servers are.
pub(crate) fn is_withheld(server: &str) -> bool {
    let Ok(server) = ServerName::new(server) else {
        return true;
    };
    known(|known| {
        let rules = known.rules.read();
        let mut answers = rules.iter().filter_map(|rule| rule(&server)).peekable();
        let has_ended = answers.peek().is_none() && !rules.is_empty();
        has_ended || answers.any(|is_withheld| is_withheld)
    })
}

/// Removes from a line's fields the texts that the server may have written, and says where they are. Returns whether it did.
pub(super) fn remove(fields: &mut Map<String, Value>, level: Level) -> bool {
    let server = fields.get("server").and_then(Value::as_str);
    let Some(server) = server.filter(|server| is_withheld(server)) else {
        return false;
    };
    let rest = format!("`mcpzip logs {server}` shows a person the rest");
    // Messages at `trace` contain those of the servers.
    let is_own = |name: &str| name == "server" || name == "message" && level != Level::TRACE;
    fields.retain(|name, value| is_own(name) || value.is_number() || value.is_boolean());
    fields.insert("withheld".to_owned(), rest.into());
    true
}
