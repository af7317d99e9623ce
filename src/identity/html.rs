//! HTML pages for people: without scripts and external resources, and with every external text escaped.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// A document with its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The document.
    pub(crate) html: String,
    /// The text of its `<style>`.
    style: &'static str,
    /// The target of a redirect after its form, in addition to this server.
    pub(crate) leads_to: Option<String>,
}

impl Page {
    /// A page whose `body` is HTML and whose `title` is any text.
    pub(crate) fn new(status: u16, title: &str, style: &'static str, body: &str) -> Self {
        let title = escaped(title);
        Self {
            status,
            html: format!(
                "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
                 <title>{title} · mcpzip</title><style>{style}</style><body><h1>{title}</h1>{body}</body></html>\n"
            ),
            style,
            leads_to: None,
        }
    }

    /// The `Content-Security-Policy`, which permits the style by its hash.
    #[must_use]
    pub(crate) fn policy(&self) -> String {
        let more = self.leads_to.as_deref().unwrap_or_default();
        let style = STANDARD.encode(Sha256::digest(self.style));
        format!(
            "default-src 'none'; style-src 'sha256-{style}'; form-action 'self' {more}; frame-ancestors 'none'; base-uri 'none'"
        )
    }
}

/// A text as a part of a document or of a quoted attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}
