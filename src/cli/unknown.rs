//! A server's name that the configuration does not have.

use super::diagnostics::Exit;
use crate::config::Config;
use crate::text::nearest;

/// Says so, with the name that is most like it.
pub(super) fn unknown_server(name: &str, config: &Config) -> Exit {
    unknown(name, config.names.iter().map(String::as_str))
}

/// The same for the names of a file that is no configuration yet.
pub(super) fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Exit {
    let advice = match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`mcpzip list` shows those that are".to_owned(),
    };
    Exit::failed(format!("no server `{name}` is configured; {advice}"))
}
