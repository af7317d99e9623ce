//! The URL of a store: `postgres://user:password@host:port/database?sslmode=verify-full`.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use tokio_postgres::config::{Host, SslMode};

use super::LIMIT;
use crate::secret::Secret;

/// A URL of PostgreSQL that can be used. Printed, it has no password.
#[derive(Clone)]
pub(crate) struct StoreUrl {
    config: tokio_postgres::Config,
    tls: Tls,
    text: Secret<String>,
}

/// The protection of connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tls {
    /// None: a socket, this machine, or the user said so.
    Off,
    /// TLS with a certificate of the system's authorities, or of those in a file.
    Verified {
        /// The file of `sslrootcert`.
        authorities: Option<PathBuf>,
    },
}

/// Why a URL cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlFault {
    /// Another scheme.
    #[error("`store` is a URL that begins with `postgres://` or `postgresql://`")]
    Scheme,
    /// A part cannot be read.
    #[error("the URL of `store` cannot be read: {0}")]
    Unreadable(String),
    /// A mode that could send the password and all records in plain text.
    #[error(
        "`sslmode={0}` is not known here: `disable` is plain text, `require`, `verify-ca` and `verify-full` are TLS with a checked certificate"
    )]
    SslMode(String),
    /// Two modes, of which one may be plain text.
    #[error("the URL of `store` has `sslmode` twice")]
    Twice,
    /// An `@` that is not the end of the password: parts of the password would be taken for others.
    #[error(
        "the URL of `store` has an `@` that is not encoded: write special characters of the password and of options percent-encoded, as `%40` for `@` and `%2F` for `/`"
    )]
    Unencoded,
    /// No host.
    #[error("the URL of `store` names no host")]
    Host,
    /// Authorities that cannot be read.
    #[error("`sslrootcert` cannot be used: {0}")]
    Authorities(String),
}

impl StoreUrl {
    /// Reads a URL. The parameters `sslmode` and `sslrootcert` are read here, others by the client library.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(crate) fn parse(text: &str) -> Result<Self, UrlFault> {
        let text = text.trim();
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(UrlFault::Scheme);
        }
        let (_, rest) = text.split_once("://").unwrap_or_default();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let at = |text: &str| text.matches('@').count();
        if at(rest) > 1 || at(authority) != at(rest) {
            return Err(UrlFault::Unencoded);
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut mode, mut authorities, mut others) = (None, None, Vec::new());
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
            match name {
                "sslmode" if mode.is_some() => return Err(UrlFault::Twice),
                "sslmode" => mode = Some(value()),
                "sslrootcert" => authorities = Some(PathBuf::from(value())),
                _ => others.push(parameter),
            }
        }
        let plain = match others.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", others.join("&")),
        };
        let mut config: tokio_postgres::Config = plain
            .parse()
            .map_err(|error: tokio_postgres::Error| UrlFault::Unreadable(cause(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(UrlFault::Host);
        }
        let tls = match mode.as_deref() {
            Some("disable") => Tls::Off,
            None if is_local(&config) && authorities.is_none() => Tls::Off,
            None | Some("require" | "verify-ca" | "verify-full") => Tls::Verified { authorities },
            Some(other) => return Err(UrlFault::SslMode(other.to_owned())),
        };
        config
            .ssl_mode(match tls {
                Tls::Off => SslMode::Disable,
                Tls::Verified { .. } => SslMode::Require,
            })
            .connect_timeout(LIMIT)
            .tcp_user_timeout(LIMIT * 2)
            .keepalives_idle(LIMIT * 5)
            .keepalives_interval(LIMIT);
        if config.get_application_name().is_none() {
            config.application_name("mcpzip");
        }
        Ok(Self {
            config,
            tls,
            text: Secret::new(text.to_owned()),
        })
    }

    pub(super) fn config(&self) -> &tokio_postgres::Config {
        &self.config
    }

    pub(super) fn tls(&self) -> &Tls {
        &self.tls
    }

    /// The secrets in it, for the masker.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = Secret<String>> {
        let password = self
            .config
            .get_password()
            .map(|password| Secret::new(String::from_utf8_lossy(password).into_owned()));
        password.into_iter().chain([self.text.clone()])
    }
}

/// The cause of a failure, without the URL.
fn cause(error: &tokio_postgres::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Whether all connections stay on this machine. An address goes before the host of the same position.
fn is_local(config: &tokio_postgres::Config) -> bool {
    let mut addresses = config.get_hostaddrs().iter();
    config.get_hosts().iter().all(is_here) && addresses.all(IpAddr::is_loopback)
}

/// Whether a host is a socket or this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        let ports = self.config.get_ports();
        for (index, host) in self.config.get_hosts().iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match host {
                Host::Tcp(name) => f.write_str(name)?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{}", path.display())?,
            }
            if let Some(port) = ports.get(index).or(ports.first()) {
                write!(f, ":{port}")?;
            }
        }
        match self.config.get_dbname() {
            Some(name) => write!(f, "/{name}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for StoreUrl {
    fn eq(&self, other: &Self) -> bool {
        self.text.expose() == other.text.expose()
    }
}

impl Eq for StoreUrl {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_password() {
        let url = StoreUrl::parse("postgres://gate:s3cret@db.example:6432/mcp?sslmode=verify-full")
            .unwrap();
        assert_eq!(url.to_string(), "postgres://gate@db.example:6432/mcp");
        assert!(!format!("{url:?}").contains("s3cret"));
        assert_eq!(url.tls, Tls::Verified { authorities: None });
        assert!(url.secrets().any(|secret| secret.expose() == "s3cret"));
    }

    #[test]
    fn connections_to_other_machines_have_tls_unless_it_is_disabled() {
        let tls = |text: &str| StoreUrl::parse(text).map(|url| url.tls);
        let verified = Tls::Verified { authorities: None };
        for (text, expected) in [
            ("postgres://db.example/mcp", Ok(verified.clone())),
            (
                "postgresql://db.example/mcp?sslmode=require",
                Ok(verified.clone()),
            ),
            ("postgres://db.example/mcp?sslmode=disable", Ok(Tls::Off)),
            ("postgres://127.0.0.1:5432/mcp", Ok(Tls::Off)),
            ("postgres://localhost/mcp?sslmode=verify-full", Ok(verified)),
            ("postgres:///mcp?host=/run/postgresql", Ok(Tls::Off)),
            (
                "postgres://db.example/mcp?sslmode=prefer",
                Err(UrlFault::SslMode("prefer".into())),
            ),
            // An address goes before the host.
            (
                "postgres://a:b@/mcp?hostaddr=10.1.2.3",
                Ok(Tls::Verified { authorities: None }),
            ),
            (
                "postgres://localhost/mcp?hostaddr=10.1.2.3",
                Ok(Tls::Verified { authorities: None }),
            ),
            ("postgres://localhost/mcp?hostaddr=127.0.0.1", Ok(Tls::Off)),
            ("postgres://a:b@/mcp?hostaddr=127.0.0.1", Ok(Tls::Off)),
            ("mysql://db.example/mcp", Err(UrlFault::Scheme)),
            ("postgres:///mcp", Err(UrlFault::Host)),
        ] {
            assert_eq!(tls(text), expected, "{text}");
        }
        let authorities = tls("postgres://127.0.0.1/mcp?sslrootcert=/etc/ca%20one.pem").unwrap();
        let file = Some(PathBuf::from("/etc/ca one.pem"));
        assert_eq!(authorities, Tls::Verified { authorities: file });
    }
}
