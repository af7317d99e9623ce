//! Bodies of HTTP responses: read whole with a size limit, or quoted in an error.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode};

use super::client::keeps_method;
use super::error::{HttpError, words};
use super::headers::origin;
use crate::text::shortened;
use crate::upstream::oauth::AuthRequired;

/// The size limit of an error response's body, in bytes. It may hold a long JSON-RPC error.
const REFUSAL_LIMIT: usize = 1024 * 1024;

/// The time limit for reading an error response's body.
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// The length of a quotation from it, in characters.
const QUOTED: usize = 200;

/// The kind of a response's body.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::upstream) enum Content {
    /// One JSON text.
    Json,
    /// An event stream.
    Events,
    /// Another content type, for the error.
    Other(String),
}

/// Why a body is incomplete.
#[derive(Debug)]
pub(in crate::upstream) enum Broken {
    /// It exceeds the limit; the number of bytes that arrived.
    TooLarge(u64),
    /// The connection was lost, or the body is damaged.
    Lost(String),
}

/// The content type of `response`.
pub(in crate::upstream) fn content(response: &Response) -> Content {
    let header = response
        .headers()
        .get(CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()));
    let Some(header) = header else {
        return Content::Other("no content type".to_owned());
    };
    let kind = header
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match kind.as_str() {
        "text/event-stream" => Content::Events,
        kind if kind == "application/json"
            || (kind.starts_with("application/") && kind.ends_with("+json")) =>
        {
            Content::Json
        }
        kind => Content::Other(format!("`{}`", kind.chars().take(60).collect::<String>())),
    }
}

/// The whole body, of at most `limit` bytes after decompression.
pub(in crate::upstream) async fn whole(
    mut response: Response,
    limit: usize,
) -> Result<Bytes, Broken> {
    let length = response
        .content_length()
        .and_then(|length| usize::try_from(length).ok())
        .unwrap_or(0);
    if length > limit {
        return Err(Broken::TooLarge(length as u64));
    }
    let mut body = BytesMut::with_capacity(length);
    while let Some(chunk) = next_chunk(&mut response)
        .await
        .map_err(|error| Broken::Lost(words(error)))?
    {
        if body.len() + chunk.len() > limit {
            return Err(Broken::TooLarge((body.len() + chunk.len()) as u64));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// The next piece of a body. It yields to other tasks, because a few compressed bytes can expand without any waiting.
///
/// # Cancel safety
/// Dropping the future loses no input.
pub(super) async fn next_chunk(response: &mut Response) -> reqwest::Result<Option<Bytes>> {
    tokio::task::coop::consume_budget().await;
    response.chunk().await
}

/// Describes an error response, with quotations of it after `masked`. Also returns the body if it may hold a
/// JSON-RPC error.
pub(super) async fn refusal(
    response: Response,
    masked: impl Fn(&str) -> String,
) -> (HttpError, Option<Bytes>) {
    let status = response.status();
    if let Some(error) = redirect(&response, &masked) {
        return (error, None);
    }
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .map(|value| quoted(&masked(value)));
    let is_json = content(&response) == Content::Json;
    let body = tokio::time::timeout(REFUSAL_TIME, whole(response, REFUSAL_LIMIT)).await;
    let body = body.ok().and_then(Result::ok).unwrap_or_default();
    // Masked as a whole, before it is cut.
    let said = said(&masked(&String::from_utf8_lossy(&body)));
    let error = if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        HttpError::Login {
            status: status.as_u16(),
            need: AuthRequired::default(),
            said,
        }
    } else {
        HttpError::Status {
            status: status.as_u16(),
            said,
            retry_after,
        }
    };
    (error, is_json.then_some(body))
}

/// The error for a redirect that was not followed.
fn redirect(response: &Response, masked: impl Fn(&str) -> String) -> Option<HttpError> {
    let target = response
        .headers()
        .get(LOCATION)
        .filter(|_| response.status().is_redirection())?;
    let target = target
        .to_str()
        .ok()
        .and_then(|target| response.url().join(target).ok());
    let Some(target) = target else {
        let to = "nowhere".to_owned();
        return Some(HttpError::Redirect { to });
    };
    let to = origin(&target);
    if to != origin(response.url()) {
        let to = format!("`{to}`");
        return Some(HttpError::Redirect { to });
    }
    let to = format!("`{to}{}`", quoted(&masked(target.path())));
    Some(match keeps_method(response.status()) {
        true => HttpError::Endless { to },
        false => HttpError::Redirect { to },
    })
}

/// The words of an error response: the title of a web page, or the beginning of another text.
fn said(text: &str) -> String {
    let text = text.trim_start();
    // Its bytes are at the same places.
    let lower = text.to_ascii_lowercase();
    if !lower.starts_with("<!doctype html") && !lower.starts_with("<html") {
        return quoted(text);
    }
    let title = || {
        let tag = lower.find("<title")?;
        let start = tag + lower[tag..].find('>')? + 1;
        let end = start + lower[start..].find("</title")?;
        Some(quoted(&text[start..end])).filter(|title| !title.is_empty())
    };
    match title() {
        Some(title) => format!("a web page with the title \"{title}\""),
        None => "a web page".to_owned(),
    }
}

/// The beginning of `text`, on one line.
fn quoted(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    shortened(&words.join(" "), QUOTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_short() {
        assert_eq!(said(" a\n  b\n"), "a b");
        for page in ["<!DOCTYPE html>\n<p>no</p>", "<html><title> </title>"] {
            assert_eq!(said(page), "a web page");
        }
        assert_eq!(
            said("<html>\n<head><title lang=en>Not\n Found</title></head><h1>no</h1>"),
            "a web page with the title \"Not Found\""
        );
        assert_eq!(quoted(&"ü".repeat(300)).chars().count(), QUOTED + 1);
    }
}
