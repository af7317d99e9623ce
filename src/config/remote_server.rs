//! Remote servers of the command line (`serve --server name=url`), in addition to those of the file.

use std::str::FromStr;

use serde_json::json;

use super::Document;
use crate::tool::ServerName;

/// A server behind HTTP by its name and URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteServer {
    name: ServerName,
    url: String,
}

impl FromStr for RemoteServer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, url) = text
            .split_once('=')
            .ok_or("must be a name and a URL, as `notes=https://notes.example.com/mcp`")?;
        let name = ServerName::new(name).map_err(|error| error.to_string())?;
        if name.as_str().eq_ignore_ascii_case(super::BUILT_IN_SERVER) {
            return Err("this name is the built-in server's".to_owned());
        }
        if !super::server::is_url(url, &["http", "https"]) {
            return Err(
                "the URL must begin with `http://` or `https://` and name a host".to_owned(),
            );
        }
        Ok(Self {
            name,
            url: url.to_owned(),
        })
    }
}

/// The configuration `text` with `servers`, each in place of the file's one of its name; nothing where the text cannot be
/// understood.
pub(super) fn added(text: &str, servers: &[RemoteServer]) -> Option<String> {
    let mut document = Document::parse(text).ok()?;
    for RemoteServer { name, url } in servers {
        // The shell has filled in variables already.
        let entry = json!({ "url": url.replace("${", "$${") }).to_string();
        document.set(&["mcpServers", name.as_str()], &entry).ok()?;
    }
    Some(document.text())
}
