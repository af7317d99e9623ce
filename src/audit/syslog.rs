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
            logger.send(line.trim_end())?;
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
    use std::collections::BTreeMap;
    use std::io;

    use syslog::{Facility, Formatter3164, Formatter5424, LoggerBackend};

    use crate::config::Syslog;

    const NAME: &str = "mcpzip";

    pub(super) enum Logger {
        Local(syslog::Logger<LoggerBackend, Formatter3164>),
        Remote(syslog::Logger<LoggerBackend, Formatter5424>),
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
