//! Remote servers of the command line (`serve --server name=url`), in addition to those of the file.

use std::str::FromStr;

use serde_json::json;

use super::Document;
use crate::tool::{NameError, ServerName};

/// A server behind HTTP by its name and URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteServer {
    name: ServerName,
    url: String,
}

/// A text that is not a [`RemoteServer`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteServerError {
    /// It has no `=`.
    #[error("must be a name and a URL, as `notes=https://notes.example.com/mcp`")]
    Form,
    /// The name breaks the rules for names.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The name is reserved.
    #[error("this name is the built-in server's")]
    Reserved,
    /// Not a URL of a server.
    #[error("the URL must begin with `http://` or `https://` and name a host")]
    Url,
}

impl FromStr for RemoteServer {
    type Err = RemoteServerError;

    fn from_str(text: &str) -> Result<Self, RemoteServerError> {
        let (name, url) = text.split_once('=').ok_or(RemoteServerError::Form)?;
        let name = ServerName::new(name)?;
        if name.as_str().eq_ignore_ascii_case(super::BUILT_IN_SERVER) {
            return Err(RemoteServerError::Reserved);
        }
        if !super::server::is_url(url, &["http", "https"]) {
            return Err(RemoteServerError::Url);
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
