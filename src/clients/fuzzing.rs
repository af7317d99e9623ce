//! The properties of other programs' files that hold for every content.

use super::text::{Syntax, Text};
use super::{Client, Node, reading};

/// A client's file. The first byte selects the syntax and the edit; then the file and its entries are read, and it is
/// edited.
pub(crate) fn client_file(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    let syntax = [Syntax::Json, Syntax::Toml, Syntax::Yaml][usize::from(first % 3)];
    let Ok(read) = Text::parse(syntax, text) else {
        return;
    };
    assert_eq!(read.text(), text, "reading changes nothing");
    for key in ["mcpServers", "mcp_servers", "servers", "mcp", "extensions"] {
        for (_, entry) in read.node().get(key).map(Node::members).unwrap_or_default() {
            for client in Client::ALL {
                // Any reason is fine for an unusable entry.
                if let Ok(entry) = reading::read(client, entry, None) {
                    let _ = (entry.to_node(), entry.secrets().len());
                }
            }
        }
    }
    let path = ["mcpServers".to_owned(), "mcpzip".to_owned()];
    // An item of a list is found by its name.
    let entry = Node::map([
        ("name", Node::text("mcpzip")),
        ("command", Node::text("/usr/bin/mcpzip")),
        ("args", Node::texts(["serve", "--x=\"y\" # 'z'"])),
    ]);
    let mut edited = read.clone();
    if edited.set(&path, &entry).is_err() {
        return assert_eq!(edited.text(), text, "a refused edit changes nothing");
    }
    let at = edited.node().at(&path).expect("it was put there");
    assert!(at.is_same(&entry), "{at:?}");
    let again = Text::parse(syntax, &edited.text()).expect("what was edited can be read");
    assert!(again.node().is_same(edited.node()));
    let mut back = edited.clone();
    if back.remove(&path).is_ok() {
        assert!(back.node().at(&path).is_none());
        if read.node().at(&path).is_none() {
            assert!(
                back.node().is_same(read.node()),
                "put in and taken out, something else is gone"
            );
        }
    }
}
