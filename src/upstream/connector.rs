//! From a server's entry to an open connection: which wire, which era, and what to try next when one is refused.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::handshake::Refusal;
use super::host::Audience;
use super::inbound::InboundRouter;
use super::link::Link;
use super::transport::http::mirrors::Mirrors;
use super::transport::http::{HttpError, HttpPeer};
use super::transport::sse;
use super::transport::stdio::{Process, Stderr, widen};
use super::transport::streamable_http::Endpoint;
use super::wire::Wire;
use super::{CallError, ConnectError, Introduction, MESSAGE_LIMIT, ServerLog, UpstreamContext};
use crate::config::{self, Era, Remote, Transport};
use crate::mcp::{ClientCapabilities, LineReader, Outbox};
use crate::tool::ServerName;

/// How long a process whose output ended is watched for its exit status before the calls on it fail without one.
const STATUS_LIMIT: Duration = Duration::from_millis(200);

/// All that one attempt needs.
pub(super) struct Connector<'a> {
    /// The server's name.
    pub(super) server: &'a ServerName,
    /// How it is reached.
    pub(super) transport: &'a Transport,
    /// The era to speak; `Auto` asks with a handshake first.
    pub(super) era: Era,
    /// Which headers its tools want, learnt before.
    pub(super) mirrors: &'a Arc<Mirrors>,
    /// Where tasks and clients come from.
    pub(super) environment: &'a Arc<UpstreamContext>,
    /// What a handshake declares.
    pub(super) capabilities: ClientCapabilities,
    /// Who hears what the server says by itself.
    pub(super) audience: &'a Arc<dyn Audience>,
}

impl Connector<'_> {
    /// Makes the connection.
    pub(super) async fn connect(&self) -> Result<Connection, ConnectError> {
        match self.transport {
            Transport::Stdio(transport) => self.stdio(transport).await,
            Transport::Http(remote) => self.streamable_http(self.peer(remote)?).await,
            Transport::Sse(remote) => {
                let (wire, opened) = self.sse(self.peer(remote)?).await?;
                self.opened(wire, opened, "")
            }
        }
    }

    async fn stdio(&self, transport: &config::Stdio) -> Result<Connection, ConnectError> {
        if self.era != Era::Modern {
            let (wire, stderr) = self.start(transport)?;
            match Introduction::legacy(&wire, self.capabilities, self.limit()).await {
                // A server may lock a pipe to the era it saw first: it gets a fresh process.
                Err(Refusal::ModernOnly) if self.era == Era::Auto => wire.close(),
                opened => return self.opened(wire, opened, &stderr.tail()),
            }
        }
        let (wire, stderr) = self.start(transport)?;
        let opened = Introduction::modern(&wire, self.limit()).await;
        self.opened(wire, opened, &stderr.tail())
    }

    async fn streamable_http(&self, peer: HttpPeer) -> Result<Connection, ConnectError> {
        if self.era == Era::Modern {
            let (wire, opened) = self.modern_http(peer).await;
            return self.opened(wire, opened, "");
        }
        let endpoint = self.endpoint(peer.clone());
        let wire = Wire::Http(endpoint.clone());
        let opened = Introduction::legacy(&wire, self.capabilities, self.limit()).await;
        if opened.is_ok() {
            endpoint.listen();
        }
        let other = match &opened {
            Err(_) if self.era == Era::Legacy => None,
            // Modern servers differ in how they refuse a handshake, so every refusal may be one.
            Err(Refusal::ModernOnly | Refusal::Refused(_)) => Some(self.modern_http(peer).await),
            // No Streamable HTTP at all: perhaps its forerunner (2025-11-25, basic/transports, backwards compatibility).
            Err(Refusal::NoAnswer(CallError::Http {
                error:
                    HttpError::Status {
                        status: 400 | 404 | 405,
                        ..
                    },
                ..
            })) => self.sse(peer).await.ok(),
            _ => None,
        };
        match other {
            Some((other, Ok(introduction))) => {
                wire.close();
                self.opened(other, Ok(introduction), "")
            }
            Some((other, Err(refusal))) => {
                other.close();
                let is_modern = matches!(opened, Err(Refusal::ModernOnly));
                self.opened(wire, if is_modern { Err(refusal) } else { opened }, "")
            }
            None => self.opened(wire, opened, ""),
        }
    }

    async fn modern_http(&self, peer: HttpPeer) -> (Wire, Result<Introduction, Refusal>) {
        let wire = Wire::Http(self.endpoint(peer));
        let opened = Introduction::modern(&wire, self.limit()).await;
        (wire, opened)
    }

    async fn sse(
        &self,
        peer: HttpPeer,
    ) -> Result<(Wire, Result<Introduction, Refusal>), ConnectError> {
        let server = self.server.clone();
        let opening = sse::open(peer, &self.environment.tasks, self.inbound());
        let link = match tokio::time::timeout(self.limit(), opening).await {
            Ok(Ok(link)) => link,
            Ok(Err(error)) => return Err(self.refused(Refusal::NoAnswer(error), "")),
            Err(_) => {
                return Err(ConnectError::Timeout {
                    server,
                    limit: self.limit(),
                    stderr: String::new(),
                });
            }
        };
        let wire = Wire::Stream(link);
        let opened = Introduction::legacy(&wire, self.capabilities, self.limit()).await;
        Ok((wire, opened))
    }

    fn opened(
        &self,
        wire: Wire,
        opened: Result<Introduction, Refusal>,
        stderr: &str,
    ) -> Result<Connection, ConnectError> {
        match opened {
            Ok(introduction) => {
                tracing::info!(server = %self.server, revision = %introduction.revision, "connected");
                Ok(Connection {
                    wire,
                    introduction,
                    compared: Arc::default(),
                })
            }
            Err(refusal) => {
                wire.close();
                Err(self.refused(refusal, stderr))
            }
        }
    }

    fn refused(&self, refusal: Refusal, stderr: &str) -> ConnectError {
        let (server, stderr) = (self.server.clone(), stderr.to_owned());
        match refusal {
            Refusal::ModernOnly => {
                let reason = match self.era {
                    Era::Legacy => "it speaks the modern era only, and its `era` is \"legacy\"",
                    Era::Auto | Era::Modern => "it refuses both protocol eras",
                };
                ConnectError::Handshake {
                    server,
                    reason: reason.to_owned(),
                }
            }
            Refusal::Refused(reason) => ConnectError::Handshake { server, reason },
            Refusal::NoAnswer(CallError::Timeout { limit, .. }) => ConnectError::Timeout {
                server,
                limit,
                stderr,
            },
            Refusal::NoAnswer(CallError::Lost { reason, .. }) => ConnectError::Ended {
                server,
                status: reason,
                stderr,
            },
            Refusal::NoAnswer(CallError::Http { error, .. }) => {
                ConnectError::Http { server, error }
            }
            Refusal::NoAnswer(error) => ConnectError::Handshake {
                server,
                reason: error.to_string(),
            },
        }
    }

    fn peer(&self, remote: &Remote) -> Result<HttpPeer, ConnectError> {
        HttpPeer::of(self.server, remote, self.environment)
    }

    fn endpoint(&self, peer: HttpPeer) -> Arc<Endpoint> {
        Endpoint::new(
            peer,
            &self.environment.tasks,
            self.mirrors.clone(),
            self.inbound(),
        )
    }

    fn inbound(&self) -> Arc<InboundRouter> {
        InboundRouter::new(
            self.server.clone(),
            self.audience.clone(),
            self.environment.tasks.clone(),
        )
    }

    fn limit(&self) -> Duration {
        self.environment.handshake_limit_of(self.transport)
    }

    /// Starts the server's process, and the tasks that write to it, read from it and see it to its end.
    fn start(&self, transport: &config::Stdio) -> Result<(Wire, Stderr), ConnectError> {
        let environment = self.environment;
        let log = ServerLog::open(environment.log_directory.as_deref(), self.server);
        let (process, stdin, stdout) = Process::start(self.server, transport, environment, log)?;
        let stderr = process.stderr().clone();
        let outbox = Outbox::new();
        let link = Link::new(
            self.server.clone(),
            outbox.clone(),
            MESSAGE_LIMIT,
            self.inbound(),
        );
        let unwritable = CancellationToken::new();
        let broken = unwritable.clone();
        environment.tasks.spawn(async move {
            if outbox.write_to(stdin).await.is_err() {
                broken.cancel();
            }
        });
        let stop = environment.tasks.stop().clone();
        let reader = link.clone();
        environment.tasks.spawn(async move {
            let mut process = process;
            let mut lines = LineReader::new(stdout, MESSAGE_LIMIT).with_widening(widen);
            let reason = tokio::select! {
                read = reader.read(&mut lines) => {
                    let status = tokio::time::timeout(STATUS_LIMIT, process.ended()).await;
                    status.ok().unwrap_or_else(|| read.err().map_or("it closed its output".into(), |e| e.to_string()))
                }
                status = process.ended() => {
                    // What it wrote last may still be in the pipe.
                    let _ = tokio::time::timeout(STATUS_LIMIT, reader.read(&mut lines)).await;
                    status
                }
                () = unwritable.cancelled() => {
                    // Mostly it has ended, and how it did says more.
                    let _ = tokio::time::timeout(STATUS_LIMIT, reader.read(&mut lines)).await;
                    let status = tokio::time::timeout(STATUS_LIMIT, process.ended()).await;
                    status.unwrap_or_else(|_| "it closed its input".to_owned())
                }
                () = reader.close_requested() => "the connection was closed".to_owned(),
                () = stop.cancelled() => "mcpzip is shutting down".to_owned(),
            };
            reader.end(&reason);
            process.end(&stop).await;
        });
        Ok((Wire::Stream(link), stderr))
    }
}
