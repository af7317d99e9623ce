//! The text between the members of an object: space, comments and commas.

/// The text between a member and the next one, or the end of the object.
pub(super) struct Trivia {
    pub(super) comma: Option<usize>,
    /// The end of the comma or of the last comment: the later of the two.
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

/// The length of the comment at the start of `text`, without the end of its line.
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
