//! Errors about server names that the configuration does not have.

use super::diagnostics::Exit;
use crate::config::Config;
use crate::text::nearest;

/// The error for an unknown server, with the most similar name.
pub(super) fn unknown_server(name: &str, config: &Config) -> Exit {
    let names = config.names.iter().map(String::as_str);
    Exit::failed(unknown(name, names))
}

/// The text for a name that is not among `known`.
pub(super) fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let advice = match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`mcpzip list` shows the configured servers".to_owned(),
    };
    format!("no server `{name}` is configured; {advice}")
}
