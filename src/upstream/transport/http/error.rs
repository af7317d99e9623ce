use std::error::Error as _;
use std::io;

/// What goes wrong with servers that are reached over HTTP. It reads on after the server's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// No connection came about; nothing was sent.
    #[error("cannot be reached: {reason}")]
    Unreachable {
        /// What stood in the way.
        reason: String,
    },
    /// It answered, but not as an MCP server does.
    #[error("answered with HTTP {status}{}{}", after(.retry_after), quote(.said))]
    Status {
        /// The status code.
        status: u16,
        /// The beginning of what it said.
        said: String,
        /// When to try again, in its own words.
        retry_after: Option<String>,
    },
    /// It wants credentials, or better ones.
    #[error("wants a login (HTTP {status}){}", quote(.said))]
    Login {
        /// 401, or 403.
        status: u16,
        /// The beginning of what it said.
        said: String,
    },
    /// It points elsewhere, where its credentials must not go.
    #[error("redirects to {to}, which is not followed: its URL in the configuration is out of date")]
    Redirect {
        /// The origin it points to.
        to: String,
    },
    /// What came is no message.
    #[error("answered with {found} instead of JSON or an event stream")]
    ContentType {
        /// The type it gave.
        found: String,
    },
    /// An event stream of HTTP+SSE that does not begin as one.
    #[error("is no HTTP+SSE server: {reason}")]
    NoEndpoint {
        /// What is wrong with it.
        reason: String,
    },
}

/// The innermost cause, which says most; without any URL.
pub(super) fn words(error: reqwest::Error) -> String {
    let error = error.without_url();
    if error.is_connect() && error.is_timeout() {
        return "no connection was made in time".to_owned();
    }
    let mut last = error.to_string();
    let (mut is_name, mut is_tls) = (false, false);
    let mut cause = error.source();
    while let Some(inner) = cause {
        last = inner.to_string();
        is_name |= last == "dns error";
        is_tls |= inner.downcast_ref().is_some_and(is_of_tls);
        cause = inner.source();
    }
    match (is_name, is_tls) {
        (true, _) => format!("its host name cannot be resolved ({last})"),
        (_, true) => format!("no secure connection (TLS) comes about: {last}"),
        _ => last,
    }
}

/// An error of a stream is that of TLS where one is inside, however deep: its `source` skips what it wraps.
fn is_of_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>() || inner.downcast_ref().is_some_and(is_of_tls))
}

fn after(retry_after: &Option<String>) -> String {
    retry_after.as_deref().map(|time| format!(", to be tried again after {}", readable(time))).unwrap_or_default()
}

/// `Retry-After` is a number of seconds or a date.
fn readable(time: &str) -> String {
    if time.bytes().all(|byte| byte.is_ascii_digit()) { format!("{time} s") } else { time.to_owned() }
}

fn quote(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}
