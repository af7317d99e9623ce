//! The properties of a configuration that hold for every input.

use std::path::Path;

use super::{Config, Document, Environment, Transport};

/// A configuration file: it is refused with a position, or each of its servers is a usable entry or a fault.
pub(crate) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let environment =
        Environment::from_iter([("HOME", "/home/me"), ("TOKEN", "t0ken-of-the-user")]);
    let read = || Config::parse(text, Path::new("/home/me/config.json"), &environment);
    let config = match read() {
        Ok(config) => config,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for (name, server) in &config.servers {
        assert!(!name.as_str().eq_ignore_ascii_case(super::BUILT_IN_SERVER));
        match &server.transport {
            Transport::Stdio(stdio) => assert!(!stdio.command.is_empty()),
            Transport::Folder(folder) => assert!(folder.path.is_absolute()),
            Transport::Http(remote) | Transport::Sse(remote) => {
                assert!(
                    super::server::is_url(&remote.url, &["http", "https"]),
                    "{}",
                    remote.url
                );
            }
        }
        assert!(
            !config
                .faults
                .iter()
                .any(|fault| fault.name == name.as_str()),
            "`{name}` is both"
        );
    }
    let again = read().expect("it was read before");
    assert_eq!(again.servers, config.servers, "the same text says the same");
    // The value of a variable is never displayed.
    for server in config.servers.values() {
        let shown = config.masker.mask(&server.way()).to_string();
        assert!(
            text.contains("t0ken") || !shown.contains("t0ken-of-the-user"),
            "{shown}"
        );
    }
}

/// An edit of a configuration: `path.to.key` on the first line (a leading `-` removes it), a JSON value on the second,
/// then the document. The rest of the document stays unchanged.
pub(crate) fn document(data: &[u8]) {
    let Ok(data) = std::str::from_utf8(data) else {
        return;
    };
    let mut parts = data.splitn(3, '\n');
    let (Some(way), Some(value), Some(text)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    let Ok(document) = Document::parse(text) else {
        return;
    };
    let again = Document::parse(&document.text()).expect("what was read can be read");
    assert_eq!(again, document);
    let removes = way.starts_with('-');
    let path: Vec<&str> = way.trim_start_matches('-').split('.').collect();
    let mut edited = document.clone();
    let is_done = if removes {
        edited.remove(&path).is_ok()
    } else {
        edited.set(&path, value).is_ok()
    };
    if !is_done {
        assert_eq!(edited, document, "a refused edit changes nothing");
        return;
    }
    let read = Document::parse(&edited.text()).expect("what was edited can be read");
    assert_eq!(read, edited);
    if removes {
        assert_eq!(edited.get(&path), None);
    } else {
        let written = edited.get(&path).expect("it was put there");
        let plain = |json: &str| {
            Document::parse(&format!("{{\"v\":{json}\n}}"))
                .ok()
                .and_then(|it| it.get(&["v"]))
        };
        assert_eq!(
            plain(&written),
            plain(value),
            "another value than was meant"
        );
        let mut twice = edited.clone();
        twice.set(&path, value).expect("it is there now");
        assert_eq!(
            twice.get(&path),
            Some(written),
            "the same edit again says the same"
        );
    }
    // The other keys at the top.
    for key in document.keys(&[]).iter().filter(|key| *key != path[0]) {
        assert_eq!(
            edited.get(&[key]),
            document.get(&[key]),
            "`{key}` was not concerned"
        );
    }
    // A line with a quote may end a text over several lines, one with `*/` a comment over several lines, with keys
    // after it.
    let is_whole = |line: &str| !line.contains(['\r', '"']) && !line.contains("*/");
    let is_comment = |line: &&str| line.trim_start().starts_with("//") && is_whole(line);
    for line in text.lines().filter(|line| is_comment(line) && !removes) {
        let count = |text: &str| text.lines().filter(|other| *other == line).count();
        // A comment inside of the replaced value is removed with it.
        let is_in_value = document.get(&path).is_some();
        assert!(
            is_in_value || count(&edited.text()) == count(text),
            "a comment was lost: {line}"
        );
    }
}
