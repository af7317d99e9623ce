//! The text of errors about server names that the configuration does not have.

use crate::text::nearest;

/// The text for a name that is not among `known`.
pub(super) fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let advice = match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`mcpzip list` shows the configured servers".to_owned(),
    };
    format!("no server `{name}` is configured; {advice}")
}
