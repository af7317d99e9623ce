//! The text of errors about server names that the configuration does not have.

use crate::text::{nearest, shortened};

/// The text for a configuration without servers.
pub(super) const NO_SERVER: &str =
    "no server is configured; `mcpzip add` adds one, and `mcpzip init` takes over those of clients";

/// A name for a message, which may be of any length.
pub(super) fn shown(name: &str) -> String {
    shortened(name, 100)
}

/// The text for a name that is not among `known`, or that cannot be used though it is.
pub(super) fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let known: Vec<&str> = known.collect();
    if known.contains(&name) {
        return format!(
            "the server `{name}` is configured, but not available here; `mcpzip status` says why"
        );
    }
    let advice = match nearest(name, known.into_iter()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`mcpzip list` shows the configured servers".to_owned(),
    };
    format!("no server `{}` is configured; {advice}", shown(name))
}
