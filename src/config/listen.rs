//! The address that `serve --http` listens on, as users write it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The port of an address that names none.
const PORT: u16 = 8080;

/// The host of an address that names none: other machines do not reach it.
const HOST: &str = "127.0.0.1";

/// The forms of an address, for errors and for the schema.
pub(crate) const LISTEN_EXPECTED: &str = "an address and a port as 127.0.0.1:8080, [::1]:8080, localhost:8080, :8080 (this machine alone) or 8080";

/// A host, by its name or its IP address, and a port; port 0 is any free one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListenAddress {
    /// A name, or an IP address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl ListenAddress {
    /// The address at which a program on this machine reaches a server that listens here.
    #[must_use]
    pub(crate) fn reachable(&self) -> Self {
        let host = match self.host.parse() {
            Ok(IpAddr::V4(ip)) if ip.is_unspecified() => HOST.to_owned(),
            Ok(IpAddr::V6(ip)) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
            _ => self.host.clone(),
        };
        Self {
            host,
            port: self.port,
        }
    }
}

impl Default for ListenAddress {
    fn default() -> Self {
        Self {
            host: HOST.to_owned(),
            port: PORT,
        }
    }
}

/// A text that is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be {LISTEN_EXPECTED}")]
pub(crate) struct NoAddress;

impl FromStr for ListenAddress {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let text = text.trim();
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self {
                host: address.ip().to_string(),
                port: address.port(),
            });
        }
        let bare = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(text);
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return Ok(Self {
                host: ip.to_string(),
                port: PORT,
            });
        }
        if let Ok(port) = text.parse() {
            return Ok(Self {
                port,
                ..Self::default()
            });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| NoAddress)?),
            None => (text, PORT),
        };
        match host {
            "" if text.is_empty() => Err(NoAddress),
            "" => Ok(Self {
                port,
                ..Self::default()
            }),
            host if is_host_name(host) => Ok(Self {
                host: host.to_owned(),
                port,
            }),
            _ => Err(NoAddress),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Whether `host` is a name of labels, and not a number that is too large for an IP address or a port.
fn is_host_name(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    host.split('.').all(is_label) && host.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_leave_out_its_host_or_its_port() {
        for (text, expected) in [
            ("127.0.0.1:9", "127.0.0.1:9"),
            ("[::1]:9", "[::1]:9"),
            (":9090", "127.0.0.1:9090"),
            ("9090", "127.0.0.1:9090"),
            ("0", "127.0.0.1:0"),
            ("localhost:9090", "localhost:9090"),
            ("localhost", "localhost:8080"),
            ("0.0.0.0", "0.0.0.0:8080"),
            ("::1", "[::1]:8080"),
            ("gate-1.example.org:80", "gate-1.example.org:80"),
        ] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), expected, "{text}");
        }
        for text in [
            "",
            ":",
            "99999",
            ":99999",
            "localhost:",
            "localhost:http",
            "http://localhost:8080",
            "300.1.1.1:80",
            "a b:80",
            "-x:80",
            "a..b:80",
            "localhost:80/mcp",
        ] {
            assert_eq!(text.parse::<ListenAddress>(), Err(NoAddress), "{text}");
        }
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_on_this_machine() {
        for (text, expected) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "[::1]:80"),
            ("localhost:80", "localhost:80"),
        ] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(address.reachable().to_string(), expected);
        }
    }
}
