//! The names of people and groups.

use unicode_normalization::is_nfc;

use crate::tool::is_hidden;

/// The longest name in bytes.
const LONGEST: usize = 256;

/// Whether a text can be the name of a person or group: rules separate names by spaces, and a person who reads a name must see all of it, and a
/// letter has one form (NFC), so that names that look alike are compared alike.
#[must_use]
pub(crate) fn is_name(text: &str) -> bool {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !is_hidden(c);
    !text.is_empty() && text.len() <= LONGEST && text.chars().all(is_plain) && is_nfc(text)
}
