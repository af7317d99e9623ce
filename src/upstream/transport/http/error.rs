use std::error::Error;
use std::io;

use crate::config::NoCertificates;
use crate::text::causes;
use crate::upstream::headers_command::HeadersCommandError;
use crate::upstream::oauth::AuthRequired;

/// What goes wrong with servers that are reached over HTTP. It reads on after the server's name.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum HttpError {
    /// No connection came about; nothing was sent.
    #[error("cannot be reached: {reason}")]
    Unreachable {
        /// What stood in the way.
        reason: String,
    },
    /// A connection came about and is none that can be trusted; nothing was sent.
    #[error("offers no secure connection (TLS): {reason}")]
    Insecure {
        /// What is wrong, and what to do about it.
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
    #[error("requires a login (HTTP {status}){}", quote(.said))]
    Login {
        /// 401, or 403.
        status: u16,
        /// What it takes.
        need: AuthRequired,
        /// The beginning of what it said.
        said: String,
    },
    /// The command that gives its headers gave none; nothing was sent.
    #[error("cannot be spoken with: its `headers_command` {0}")]
    Command(#[source] HeadersCommandError),
    /// It points elsewhere, where its credentials must not go.
    #[error(
        "redirects to {to}, which is not followed: its URL in the configuration is out of date"
    )]
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
    #[error("is not an HTTP+SSE server: {reason}")]
    NoEndpoint {
        /// What is wrong with it.
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
    /// Whether a person who logs in could help.
    pub(in crate::upstream) fn wants_login(&self) -> bool {
        let Self::Login { need, .. } = self else {
            return false;
        };
        matches!(
            need,
            AuthRequired::Login
                | AuthRequired::Sealed(_)
                | AuthRequired::Renewal
                | AuthRequired::Scopes(_)
        )
    }
}

/// Why nothing could be sent.
pub(super) fn unsent(error: reqwest::Error) -> HttpError {
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

/// Why a request that is no message has no answer; it reads on after whom it went to.
pub(in crate::upstream) fn reason(error: reqwest::Error) -> String {
    if error.is_connect() || error.is_builder() {
        unsent(error).to_string()
    } else {
        format!("gave no answer ({})", words(error))
    }
}

/// The innermost cause, which says most; without any URL.
pub(super) fn words(error: reqwest::Error) -> String {
    innermost(&error.without_url())
}

fn innermost(error: &reqwest::Error) -> String {
    causes(error)
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

/// What stands on the way to the server, which the types of these errors do not tell.
fn of_way(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    let text = cause.to_string();
    if text == "dns error" {
        Some("its host name cannot be resolved")
    } else if text.starts_with("tunnel error") || text.contains("socks proxy") {
        Some("its proxy does not let us through")
    } else {
        None
    }
}

/// What is wrong with TLS, if anything is.
fn insecure(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = of_tls(cause) {
        return Some(advice(error));
    }
    // Servers without TLS end what they do not understand.
    (cause.to_string() == "tls handshake eof").then(|| {
        "it ended the connection during the handshake; perhaps it does not speak TLS, and its URL should begin with `http://`".to_owned()
    })
}

/// An error of a stream is that of TLS where one is inside, however deep: its `source` skips what it wraps.
fn of_tls<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(error) = cause.downcast_ref() {
        return Some(error);
    }
    of_tls(cause.downcast_ref::<io::Error>()?.get_ref()?)
}

/// What is wrong with a connection behind TLS, for whoever configured it.
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
            // Each is `DnsName("host")` or the like.
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
