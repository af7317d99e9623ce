//! The answer of an interface as the result of a call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LINK, RETRY_AFTER};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::operation::{Form, is_json};
use crate::mcp::object::quoted;
use crate::upstream::InterfaceAnswer;

/// The result of a call: an error with status and body for any status but 2xx. `logins` are the credentials that the
/// description asks for.
pub(super) fn result(answer: &InterfaceAnswer, url: &Url, logins: &[String]) -> String {
    let status = answer.status;
    if let Some(target) = &answer.refused_redirect {
        return refusal(&format!(
            "HTTP {status}: it redirects to {target}, which is not followed. `origins` in the server's entry permits other origins"
        ));
    }
    let media = text_of(&answer.headers, &CONTENT_TYPE);
    if !status.is_success() {
        let mut text = format!("HTTP {status}");
        if let Some(pause) = answer
            .headers
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
        {
            text.push_str(&format!(" (Retry-After: {pause})"));
        }
        let body = String::from_utf8_lossy(&answer.body);
        if !body.trim().is_empty() {
            text.push('\n');
            text.push_str(body.trim_end());
        }
        if matches!(status.as_u16(), 401 | 403) && !logins.is_empty() {
            text.push_str(&format!(
                "\n[The description asks for {}. A person sets credentials in `headers` of the server's entry]",
                logins.join(", or ")
            ));
        }
        return refusal(&text);
    }
    if answer.body.is_empty() {
        return texts(&[&empty(answer)], None);
    }
    let text = std::str::from_utf8(&answer.body);
    match text {
        Ok(text) if is_json(&media) || media.is_empty() => {
            let raw = serde_json::from_str::<&RawValue>(text.trim()).ok();
            let object = raw.filter(|raw| raw.get().starts_with('{'));
            let next = next_page(&answer.headers);
            let all: Vec<&str> = [Some(text), next.as_deref()]
                .into_iter()
                .flatten()
                .collect();
            texts(&all, object)
        }
        Ok(text) if is_text(&media) => texts(&[text], None),
        _ => resource(&answer.body, &media, url),
    }
}

/// A result with an error.
pub(in crate::sources) fn refusal(text: &str) -> String {
    json!({ "content": [{ "type": "text", "text": text }], "isError": true }).to_string()
}

/// The answer to a request whose answer has no body: the status, and the headers of a `HEAD`.
fn empty(answer: &InterfaceAnswer) -> String {
    let mut text = format!("HTTP {}", answer.status);
    for name in [
        "location",
        "etag",
        "last-modified",
        "content-length",
        "content-type",
    ] {
        if let Some(value) = answer
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
        {
            text.push_str(&format!("\n{name}: {value}"));
        }
    }
    text
}

/// The place of the next page, if the answer says it in a header (RFC 8288).
fn next_page(headers: &HeaderMap) -> Option<String> {
    let link = text_of(headers, &LINK);
    let next = link
        .split(',')
        .find(|part| part.contains("rel=\"next\"") || part.contains("rel=next"))?;
    let url = next.split('<').nth(1)?.split('>').next()?;
    let query = url.split_once('?').map_or(url, |(_, query)| query);
    Some(format!("[next page: {query}]"))
}

fn text_of(headers: &HeaderMap, name: &reqwest::header::HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_owned()
}

fn is_text(media: &str) -> bool {
    let kind = media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    Form::of(media) == Form::Text
        || matches!(
            kind.as_str(),
            "application/javascript"
                | "application/yaml"
                | "application/x-yaml"
                | "application/x-ndjson"
                | "application/graphql"
                | "application/x-www-form-urlencoded"
                | "application/sql"
        )
        || kind.ends_with("+yaml")
}

/// A result of texts, and the object of the first in the bytes that it came in.
pub(in crate::sources) fn texts(all: &[&str], object: Option<&RawValue>) -> String {
    let content = all
        .iter()
        .map(|text| format!(r#"{{"type":"text","text":{}}}"#, quoted(text)));
    let content = content.collect::<Vec<_>>().join(",");
    match object {
        Some(object) => format!(
            r#"{{"content":[{content}],"structuredContent":{}}}"#,
            object.get()
        ),
        None => format!(r#"{{"content":[{content}]}}"#),
    }
}

/// A result that is bytes. Its URI is that of the request without a query, which may have secrets.
fn resource(bytes: &[u8], media: &str, url: &Url) -> String {
    let mut uri = url.clone();
    uri.set_query(None);
    let media = media.split(';').next().unwrap_or_default().trim();
    let media = if media.is_empty() {
        "application/octet-stream"
    } else {
        media
    };
    let resource: Value =
        json!({ "uri": uri.as_str(), "mimeType": media, "blob": STANDARD.encode(bytes) });
    json!({ "content": [{ "type": "resource", "resource": resource }] }).to_string()
}
