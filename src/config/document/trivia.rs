//! What stands between the members of an object: space, comments and commas.

/// What stands between a member and the next, or the end of the object.
pub(super) struct Trivia {
    pub(super) comma: Option<usize>,
    /// The end of the comma or the last comment, whichever is later.
    pub(super) end: usize,
}

impl Trivia {
    pub(super) fn after(text: &str, start: usize) -> Self {
        let mut found = Self {
            comma: None,
            end: start,
        };
        let mut at = start;
        loop {
            let rest = &text[at..];
            if let Some(length) = comment_length(rest) {
                at += length;
                found.end = at;
            } else if rest.starts_with(',') && found.comma.is_none() {
                found.comma = Some(at);
                at += 1;
                found.end = at;
            } else if let Some(space) = rest.chars().next().filter(|c| c.is_whitespace()) {
                at += space.len_utf8();
            } else {
                return found;
            }
        }
    }
}

/// The length of the comment that `text` starts with; a line's end is not part of one.
pub(super) fn comment_length(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find(['\r', '\n']).unwrap_or(text.len()));
    }
    let inner = text.strip_prefix("/*")?;
    Some(inner.find("*/").map_or(text.len(), |end| end + 4))
}

pub(super) fn line_end_length(text: &str) -> Option<usize> {
    if text.starts_with("\r\n") {
        Some(2)
    } else {
        text.starts_with('\n').then_some(1)
    }
}
