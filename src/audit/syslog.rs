//! Lines for syslog, in the form of RFC 3164 for a socket of this machine and of RFC 5424 over UDP.

use std::io;

use crate::config::Syslog;

/// A connection, made when it is first needed and again after a failure.
pub(super) struct Connection {
    address: Syslog,
    #[cfg(unix)]
    logger: Option<unix::Logger>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.address.fmt(f)
    }
}

impl Connection {
    #[must_use]
    pub(super) fn new(address: Syslog) -> Self {
        Self {
            address,
            #[cfg(unix)]
            logger: None,
        }
    }

    /// Opens the connection. Blocks on the socket.
    #[cfg(unix)]
    pub(super) fn open(&mut self) -> io::Result<()> {
        self.logger = Some(unix::Logger::connect(&self.address)?);
        Ok(())
    }

    /// Windows has no syslog.
    #[cfg(not(unix))]
    pub(super) fn open(&mut self) -> io::Result<()> {
        self.send(&[])
    }

    /// Sends each line as a message. Blocks on the socket.
    #[cfg(unix)]
    pub(super) fn send(&mut self, lines: &[String]) -> io::Result<()> {
        let mut logger = match self.logger.take() {
            Some(logger) => logger,
            None => unix::Logger::connect(&self.address)?,
        };
        for line in lines {
            logger.send(&unix::of_usual_size(line.trim_end()))?;
        }
        self.logger = Some(logger);
        Ok(())
    }

    /// Windows has no syslog.
    #[cfg(not(unix))]
    pub(super) fn send(&mut self, _: &[String]) -> io::Result<()> {
        let address = &self.address;
        Err(io::Error::other(format!(
            "this system has no syslog: {address:?}"
        )))
    }
}

#[cfg(unix)]
mod unix {
    use std::borrow::Cow;
    use std::collections::BTreeMap;
    use std::io;

    use serde_json::{Map, Value};
    use syslog::{Facility, Formatter3164, Formatter5424, LoggerBackend};

    use crate::config::Syslog;

    const NAME: &str = "mcpzip";

    /// The largest line that is sent whole, in bytes. Many receivers cut or refuse messages above 8 KiB, and an agent must not be able to
    /// keep a line from them.
    const LARGEST: usize = 8_000;

    pub(super) enum Logger {
        Local(syslog::Logger<LoggerBackend, Formatter3164>),
        Remote(syslog::Logger<LoggerBackend, Formatter5424>),
    }

    /// A line, without its arguments if it is a large one.
    pub(super) fn of_usual_size(line: &str) -> Cow<'_, str> {
        let members = || serde_json::from_str::<Map<String, Value>>(line).ok();
        match (line.len() > LARGEST).then(members).flatten() {
            Some(mut members) => {
                members.insert("arguments".to_owned(), "too large for syslog".into());
                Value::Object(members).to_string().into()
            }
            None => line.into(),
        }
    }

    impl Logger {
        pub(super) fn connect(address: &Syslog) -> io::Result<Self> {
            let local = Formatter3164 {
                facility: Facility::LOG_AUTHPRIV,
                // Readers of the local socket add it themselves.
                hostname: None,
                process: NAME.to_owned(),
                pid: std::process::id(),
            };
            let connected = match address {
                Syslog::System => syslog::unix(local).map(Self::Local),
                Syslog::Socket(path) => syslog::unix_custom(local, path).map(Self::Local),
                Syslog::Udp(server) => {
                    let remote = Formatter5424 {
                        facility: Facility::LOG_AUTHPRIV,
                        process: NAME.to_owned(),
                        ..Formatter5424::default()
                    };
                    let server = server.as_str();
                    syslog::udp(remote.clone(), "0.0.0.0:0", server)
                        .or_else(|_| syslog::udp(remote, "[::]:0", server))
                        .map(Self::Remote)
                }
            };
            connected.map_err(io::Error::other)
        }

        pub(super) fn send(&mut self, line: &str) -> io::Result<()> {
            let sent = match self {
                Self::Local(logger) => logger.info(line),
                Self::Remote(logger) => logger.info((0, BTreeMap::new(), line)),
            };
            sent.map_err(io::Error::other)
        }
    }
}
