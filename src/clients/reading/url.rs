//! Reads an entry with a URL: its transport, its headers, its login.

use super::{HEADER_KEYS, Reader};
use crate::clients::Target;
use crate::clients::model::Unmovable;
use crate::clients::references::Role;
use crate::clients::{Client, Node};

impl Reader<'_> {
    pub(super) fn remote(&self, key: &str, url: &str) -> Result<Target, Unmovable> {
        let url = self.text(url.trim(), Role::Value)?;
        let is_http = ["http://", "https://"]
            .iter()
            .any(|scheme| url.to_ascii_lowercase().starts_with(scheme));
        if !is_http && !url.starts_with("${") {
            let scheme = url.split("://").next().unwrap_or_default();
            return Err(Unmovable::Scheme(scheme.to_owned()));
        }
        let kind = ["type", "transport", "transportType"]
            .iter()
            .find_map(|key| self.entry.get(key)?.as_text());
        let is_sse = match kind.map(|kind| kind.to_ascii_lowercase().replace(['-', '_'], "")) {
            Some(kind) => match kind.as_str() {
                "sse" => true,
                "http" | "streamablehttp" | "remote" | "mcp" => false,
                other => return Err(Unmovable::Type(other.to_owned())),
            },
            // In that client, `url` alone means the older transport.
            None => self.client == Client::GeminiCli && key == "url",
        };
        let mut headers = Vec::new();
        for key in HEADER_KEYS {
            headers.extend(self.pairs(key, self.entry.get(key))?);
        }
        headers.extend(self.pairs("headers", self.entry.at(&["requestOptions", "headers"]))?);
        for (name, variable) in self
            .entry
            .get("env_http_headers")
            .map(Node::members)
            .unwrap_or_default()
        {
            let variable = variable
                .as_text()
                .ok_or_else(|| Unmovable::NoText("a value of `env_http_headers`".to_owned()))?;
            headers.push((name.to_owned(), format!("${{{variable}}}")));
        }
        if let Some(variable) = self
            .entry
            .get("bearer_token_env_var")
            .and_then(Node::as_text)
        {
            headers.push((
                "Authorization".to_owned(),
                format!("Bearer ${{{variable}}}"),
            ));
        }
        let headers_helper = self
            .entry
            .get("headersHelper")
            .filter(|helper| !matches!(helper, Node::Null))
            .cloned();
        Ok(Target::Remote {
            url,
            is_sse,
            headers,
            headers_helper,
            oauth: self.oauth()?,
            way: Vec::new(),
        })
    }

    fn oauth(&self) -> Result<Vec<(&'static str, Node)>, Unmovable> {
        let oauth = self
            .entry
            .get("oauth")
            .or_else(|| self.entry.get("auth"))
            .filter(|node| matches!(node, Node::Map(_)));
        let mut ours: Vec<(&'static str, Node)> = Vec::new();
        for (key, value) in oauth.map(Node::members).unwrap_or_default() {
            let known = match key {
                "clientId" | "client_id" | "CLIENT_ID" => "client_id",
                "clientSecret" | "client_secret" | "CLIENT_SECRET" => "client_secret",
                "callbackPort" | "redirectPort" => "redirect_port",
                "scopes" | "scope" => "scopes",
                "enabled" => continue,
                other => return Err(Unmovable::Login(other.to_owned())),
            };
            ours.push((known, self.translated(value)?));
        }
        if let Some(scopes) = self.entry.get("scopes") {
            ours.push(("scopes", self.translated(scopes)?));
        }
        for (_, value) in ours.iter_mut().filter(|(key, _)| *key == "scopes") {
            if let Node::Text(text) = value {
                *value = Node::texts(text.split_whitespace());
            }
        }
        Ok(ours)
    }

    fn translated(&self, node: &Node) -> Result<Node, Unmovable> {
        Ok(match node {
            Node::Text(text) => Node::Text(self.text(text, Role::Value)?),
            Node::List(items) => Node::List(
                items
                    .iter()
                    .map(|item| self.translated(item))
                    .collect::<Result<_, _>>()?,
            ),
            other => other.clone(),
        })
    }
}
