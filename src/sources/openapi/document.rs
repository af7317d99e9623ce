//! A description as plain JSON: its version, its references, its servers and its logins.

use serde_json::Value;

use crate::sources::yaml;

/// The maximum number of references from one to the next.
const LONGEST_CHAIN: usize = 16;

/// A description.
#[derive(Debug)]
pub(in crate::sources) struct Document {
    root: Value,
    /// Whether it is of Swagger 2.
    pub(super) is_older: bool,
}

impl Document {
    /// A description of OpenAPI 3 that was made in the program.
    pub(in crate::sources) fn made(root: Value) -> Self {
        Self {
            root,
            is_older: false,
        }
    }

    /// Reads a description in JSON or YAML.
    ///
    /// # Errors
    /// The reason why it is none.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_start_matches('\u{feff}');
        let root: Value = if text.trim_start().starts_with('{') {
            match serde_json::from_str(text) {
                Ok(root) => root,
                // YAML in braces looks like JSON.
                Err(error) => yaml::parse(text).map_err(|_| format!("it is not JSON: {error}"))?,
            }
        } else {
            yaml::parse(text).map_err(|reason| format!("it is neither JSON nor YAML: {reason}"))?
        };
        let version = |key: &str| {
            root.get(key).map(|version| match version {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
        };
        let is_older = match (version("openapi"), version("swagger")) {
            (Some(version), _) if version.starts_with('3') => false,
            (_, Some(version)) if version.starts_with('2') => true,
            (Some(version), _) | (None, Some(version)) => {
                return Err(format!(
                    "its version is {version}; 2.0, 3.0, 3.1 and later 3 are read"
                ));
            }
            (None, None) => {
                return Err(
                    "it has neither `openapi` nor `swagger`, so it is not an OpenAPI description"
                        .to_owned(),
                );
            }
        };
        Ok(Self { root, is_older })
    }

    /// All of it.
    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    /// A value after its references.
    ///
    /// # Errors
    /// When a reference leads nowhere, or out of the description.
    pub(super) fn resolved<'d>(&'d self, value: &'d Value) -> Result<&'d Value, String> {
        let mut value = value;
        for _ in 0..LONGEST_CHAIN {
            let Some(Value::String(reference)) = value.get("$ref") else {
                return Ok(value);
            };
            let Some(pointer) = reference.strip_prefix('#') else {
                return Err(format!(
                    "`{reference}` is in another document, which is not read"
                ));
            };
            let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8_lossy();
            value = self
                .root
                .pointer(&pointer)
                .ok_or_else(|| format!("`{reference}` refers to nothing"))?;
        }
        Err("its references lead in a circle".to_owned())
    }

    /// The URLs of its servers, which may be relative, with the defaults of their variables.
    pub(super) fn servers(&self) -> Vec<String> {
        if !self.is_older {
            return servers_of(&self.root);
        }
        let text = |key: &str| self.root.get(key).and_then(Value::as_str);
        let base = text("basePath").unwrap_or_default();
        let Some(host) = text("host").filter(|host| !host.is_empty()) else {
            return Vec::from([base.to_owned()].map(|base| {
                if base.is_empty() {
                    "/".to_owned()
                } else {
                    base
                }
            }));
        };
        let schemes = self.root.get("schemes").and_then(Value::as_array);
        let mut schemes: Vec<&str> = schemes
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        schemes.retain(|scheme| matches!(*scheme, "https" | "http"));
        schemes.sort_unstable_by(|a, b| b.cmp(a));
        if schemes.is_empty() {
            // Relative to the scheme of the description (2.0, `schemes`).
            return vec![format!("//{host}{base}")];
        }
        let urls = schemes
            .iter()
            .map(|scheme| format!("{scheme}://{host}{base}"));
        urls.collect()
    }

    /// The credentials that it asks for, each as part of a sentence.
    pub(super) fn logins(&self) -> Vec<String> {
        let schemes = match self.is_older {
            true => self.root.get("securityDefinitions"),
            false => self.root.pointer("/components/securitySchemes"),
        };
        let schemes = schemes.and_then(Value::as_object).into_iter().flatten();
        let asked = schemes.filter_map(|(_, scheme)| {
            let scheme = self.resolved(scheme).ok()?;
            let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
            Some(
                match (
                    text("type"),
                    text("in"),
                    text("scheme").to_ascii_lowercase().as_str(),
                ) {
                    ("apiKey", "header", _) => format!("the header `{}`", text("name")),
                    ("apiKey", "query", _) => {
                        format!(
                            "the query parameter `{}`, which `base_url` may have",
                            text("name")
                        )
                    }
                    ("apiKey", "cookie", _) => {
                        format!("the header `Cookie` with `{}=…`", text("name"))
                    }
                    ("basic", ..) | ("http", _, "basic") => {
                        "the header `Authorization: Basic …`".to_owned()
                    }
                    ("http", _, "bearer") => "the header `Authorization: Bearer …`".to_owned(),
                    ("oauth2" | "openIdConnect", ..) => {
                        "the header `Authorization: Bearer …` with a token, or `oauth`".to_owned()
                    }
                    _ => return None,
                },
            )
        });
        let mut asked: Vec<String> = asked.collect();
        asked.sort_unstable();
        asked.dedup();
        asked
    }
}

/// The URLs in the member `servers`.
pub(super) fn servers_of(holder: &Value) -> Vec<String> {
    let servers = holder.get("servers").and_then(Value::as_array);
    let urls = servers.into_iter().flatten().filter_map(|server| {
        let mut url = server.get("url")?.as_str()?.to_owned();
        let variables = server.get("variables").and_then(Value::as_object);
        for (name, variable) in variables.into_iter().flatten() {
            let default = match variable.get("default") {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => continue,
            };
            url = url.replace(&format!("{{{name}}}"), &default);
        }
        Some(url)
    });
    urls.collect()
}
