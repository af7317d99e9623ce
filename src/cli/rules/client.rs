//! The settings and limits of one client that matter to a call. Rules are the same for all clients.

use std::time::Duration;

use serde_json::{Value, json};

use crate::config::{
    Config, Surface, SurfaceRequest, SurfaceSource, Verdict, introduced, is_client, is_known_client,
};
use crate::proxy::approval_wait;

/// The settings and limits of a client.
pub(super) struct ForClient {
    /// As it was asked for.
    name: String,
    /// Its key in `clients`.
    setting: Option<String>,
    surface: Surface,
    source: SurfaceSource,
    /// How long a call waits for a person if the client cannot ask.
    wait: Duration,
    is_known: bool,
}

impl ForClient {
    pub(super) fn of(name: &str, config: &Config) -> Self {
        let introduced = introduced(name);
        let options = &config.surface;
        let (surface, source) = options.of_client(introduced, SurfaceRequest::default());
        let setting = options
            .clients
            .keys()
            .find(|key| is_client(key, introduced));
        Self {
            name: name.to_owned(),
            setting: setting.filter(|_| source == SurfaceSource::Client).cloned(),
            surface,
            source,
            wait: approval_wait(Some(introduced)),
            is_known: is_known_client(introduced) || setting.is_some(),
        }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "name": self.name,
            "is_known": self.is_known,
            "setting": self.setting.as_ref().map(|key| format!("clients.{key}")),
            "surface": self.surface.text(),
            "waits_seconds": self.wait.as_secs(),
        })
    }

    pub(super) fn lines(&self, verdict: Verdict) -> Vec<String> {
        let (name, surface) = (&self.name, self.surface.text());
        let source = match &self.setting {
            Some(key) => format!("`clients.{key}`"),
            None if self.source == SurfaceSource::Profile => "its profile".to_owned(),
            None => "`surface`, as `clients` has no entry for it".to_owned(),
        };
        let mut lines = vec![format!(
            "rules are the same for every client; `{name}` has the surface `{surface}` ({source})"
        )];
        if !self.is_known {
            lines.push(format!(
                "`{name}` is not the name of a known client, so this is what applies to any client"
            ));
        }
        if verdict == Verdict::Asked {
            lines.push(format!(
                "if it cannot ask its user, the call waits up to {} s for `mcpzip approvals allow`",
                self.wait.as_secs()
            ));
        }
        lines
    }
}
