//! The errors of a server behind HTTP.

use std::error::Error;
use std::io;

use crate::config::NoCertificates;
use crate::text::causes;
use crate::upstream::headers_command::HeadersCommandError;
use crate::upstream::oauth::AuthRequired;
use crate::upstream::person::IdentityError;

/// An error of a server behind HTTP. Its text continues a sentence after the server's name.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum HttpError {
    /// No connection was made. Nothing was sent.
    #[error("cannot be reached: {reason}")]
    Unreachable {
        /// The obstacle.
        reason: String,
    },
    /// A connection was made that cannot be trusted. Nothing was sent.
    #[error("offers no secure connection (TLS): {reason}")]
    Insecure {
        /// The fault, and the advice.
        reason: String,
    },
    /// The answer is an HTTP error.
    #[error("answered with HTTP {status}{}{}", after(.retry_after), quote(.said))]
    Status {
        /// The status code.
        status: u16,
        /// The beginning of its text.
        said: String,
        /// The time of the next attempt, as sent.
        retry_after: Option<String>,
    },
    /// The server requires credentials, or better ones.
    #[error("{} (HTTP {status}){}", .need.demand(), quote(.said))]
    Login {
        /// 401, or 403.
        status: u16,
        /// The step that is missing.
        need: AuthRequired,
        /// The beginning of its text.
        said: String,
    },
    /// The command that prints its headers failed. Nothing was sent.
    #[error("cannot be called: its `headers_command` {0}")]
    Command(#[source] HeadersCommandError),
    /// The request cannot be sent in the name of its person. Nothing was sent.
    #[error("is used in the name of each person, and {0}")]
    Identity(#[source] IdentityError),
    /// It redirects to a place to which its credentials must not be sent, or in a way that changes the method.
    #[error(
        "redirects to {to}, which is not followed: its URL in the configuration is out of date"
    )]
    Redirect {
        /// The origin, or the URL at its own origin.
        to: String,
    },
    /// Its redirects were followed, and lead to another one again and again.
    #[error("redirects without end; the last redirect is to {to}")]
    Endless {
        /// The URL.
        to: String,
    },
    /// A request would go to an origin that the entry does not name. Nothing was sent.
    #[error(
        "is described as {origin}, to which its entry permits no requests; `origins` of the entry permits them"
    )]
    Elsewhere {
        /// The origin.
        origin: String,
    },
    /// The answer is larger than the limit.
    #[error("answered with {size} bytes or more, over the limit of {limit}")]
    TooLarge {
        /// The bytes that arrived or were announced.
        size: u64,
        /// The limit.
        limit: usize,
    },
    /// The answer is not a message.
    #[error("answered with {found} instead of JSON or an event stream")]
    ContentType {
        /// Its content type.
        found: String,
    },
    /// An HTTP+SSE stream without the required first event.
    #[error("is not an HTTP+SSE server: {reason}")]
    NoEndpoint {
        /// The fault.
        reason: String,
    },
}

impl From<NoCertificates> for HttpError {
    fn from(error: NoCertificates) -> Self {
        let reason = error.to_string();
        Self::Insecure { reason }
    }
}

impl HttpError {
    /// Whether a login by a person could help.
    pub(in crate::upstream) fn wants_login(&self) -> bool {
        let Self::Login { need, .. } = self else {
            return false;
        };
        matches!(
            need,
            AuthRequired::Login
                | AuthRequired::Sealed(_)
                | AuthRequired::Renewal
                | AuthRequired::Refused
                | AuthRequired::Scopes(_)
                | AuthRequired::Page(_)
        )
    }
}

/// Why nothing could be sent, with the host and port that were meant.
pub(super) fn unsent(error: reqwest::Error) -> HttpError {
    let place = error.url().and_then(|url| {
        let (host, port) = (url.host_str()?, url.port_or_known_default()?);
        Some(format!("{host}:{port}"))
    });
    match (obstacle(error), place) {
        (HttpError::Unreachable { reason }, Some(place)) => HttpError::Unreachable {
            reason: format!("{reason}, at {place}"),
        },
        (obstacle, _) => obstacle,
    }
}

fn obstacle(error: reqwest::Error) -> HttpError {
    let error = error.without_url();
    let reason = match (
        causes(&error).find_map(insecure),
        causes(&error).find_map(of_way),
    ) {
        (Some(reason), _) => return HttpError::Insecure { reason },
        (None, _) if error.is_timeout() => "no connection was made in time".to_owned(),
        (None, Some(fault)) => format!("{fault} ({})", innermost(&error)),
        (None, None) => innermost(&error),
    };
    HttpError::Unreachable { reason }
}

/// Why a request other than a message has no answer; it continues a sentence after its target.
pub(in crate::upstream) fn reason(error: reqwest::Error) -> String {
    if error.is_connect() || error.is_builder() {
        obstacle(error).to_string()
    } else {
        format!("gave no answer ({})", words(error))
    }
}

/// The innermost cause, which says most, without any URL.
pub(super) fn words(error: reqwest::Error) -> String {
    innermost(&error.without_url())
}

fn innermost(error: &reqwest::Error) -> String {
    causes(error)
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// The obstacle between us and the server, which the types of these errors do not show.
fn of_way(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    let text = cause.to_string();
    if text == "dns error" {
        Some("its host name cannot be resolved")
    } else if text.starts_with("tunnel error") || text.contains("socks proxy") {
        Some("the connection through its proxy failed")
    } else {
        None
    }
}

/// The fault of TLS, if there is one.
fn insecure(cause: &(dyn Error + 'static)) -> Option<String> {
    #[cfg(feature = "tls")]
    if let Some(error) = of_tls(cause) {
        return Some(advice(error));
    }
    // Servers without TLS close the connection on unknown input.
    (cause.to_string() == "tls handshake eof").then(|| {
        "it ended the connection during the handshake; perhaps it does not speak TLS, and its URL should begin with `http://`".to_owned()
    })
}

/// The TLS error inside of a stream's error, at any depth: its `source` skips the errors that it wraps.
#[cfg(feature = "tls")]
fn of_tls<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(error) = cause.downcast_ref() {
        return Some(error);
    }
    of_tls(cause.downcast_ref::<io::Error>()?.get_ref()?)
}

/// The fault of a TLS connection, for the author of the configuration.
#[cfg(feature = "tls")]
fn advice(error: &rustls::Error) -> String {
    use rustls::CertificateError as Fault;
    match error {
        rustls::Error::InvalidCertificate(Fault::UnknownIssuer | Fault::BadSignature) => {
            "its certificate is not signed by an authority that this machine trusts; if that is \
             intended, set `ca_file` in its configuration to the authority's certificate"
                .to_owned()
        }
        rustls::Error::InvalidCertificate(Fault::NotValidForName) => {
            "its certificate is for another host than its URL names".to_owned()
        }
        rustls::Error::InvalidCertificate(Fault::NotValidForNameContext { presented, .. }) => {
            // Each is `DnsName("host")` or similar.
            let names: Vec<&str> = presented
                .iter()
                .map(|name| name.split('"').nth(1).unwrap_or(name))
                .take(5)
                .collect();
            format!(
                "its certificate is for another host than its URL names: {}",
                names.join(", ")
            )
        }
        rustls::Error::InvalidCertificate(Fault::Expired | Fault::ExpiredContext { .. }) => {
            "its certificate has expired, or the clock of this machine is wrong".to_owned()
        }
        rustls::Error::InvalidCertificate(
            Fault::NotValidYet | Fault::NotValidYetContext { .. },
        ) => "its certificate is not valid yet, or the clock of this machine is wrong".to_owned(),
        rustls::Error::InvalidMessage(_) => {
            "it does not speak TLS; perhaps its URL should begin with `http://`".to_owned()
        }
        rustls::Error::General(text) if text.contains("No CA certificates") => {
            NoCertificates.to_string()
        }
        other => other.to_string(),
    }
}

fn after(retry_after: &Option<String>) -> String {
    retry_after
        .as_deref()
        .map(|time| format!(", to be tried again after {}", readable(time)))
        .unwrap_or_default()
}

/// `Retry-After` is a number of seconds or a date.
fn readable(time: &str) -> String {
    if time.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("{time} s")
    } else {
        time.to_owned()
    }
}

fn quote(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}
