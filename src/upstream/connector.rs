//! Opens the connection for a server's entry: chooses transport and protocol era, and the next attempt after a
//! refusal.

use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::connection::Connection;
use super::error::LastWords;
use super::handshake::Refusal;
use super::home::{self, Homes, Moved, Wanted};
use super::host::{Audience, Declared, Notice};
use super::inbound::InboundRouter;
use super::link::Link;
use super::listing::SharedListing;
use super::own::{Cooperative, OpenStreams, OwnServer};
use super::packages::Prepared;
use super::source::{Inside, Source};
use super::transport::http::mirrors::Mirrors;
use super::transport::http::{HttpError, HttpPeer};
use super::transport::sse;
use super::transport::stdio::{Process, Stderr};
use super::transport::streamable_http::Endpoint;
use super::wire::Wire;
use super::{CallError, ConnectError, Introduction, MESSAGE_LIMIT, ServerLog, UpstreamContext};
use crate::config::{self, Era, Remote, Transport};
use crate::mcp::{Frame, LineReader, Outbox};
use crate::tool::ServerName;

/// Whether the server may ask the clients of its requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct MayAsk {
    /// After a handshake.
    pub(super) after_handshake: bool,
    /// Of the newer era, in which each request declares what its client can be asked.
    pub(super) in_requests: bool,
}

/// The parameters of one attempt.
pub(super) struct Connector<'a> {
    /// The server's name.
    pub(super) server: &'a ServerName,
    /// The configured transport.
    pub(super) transport: &'a Transport,
    /// The protocol era to use; `Auto` tries a handshake first.
    pub(super) era: Era,
    /// The headers that the tools require, learned from earlier listings.
    pub(super) mirrors: &'a Arc<Mirrors>,
    /// The context with tasks and HTTP clients.
    pub(super) context: &'a Arc<UpstreamContext>,
    /// The part of the client that a handshake declares.
    pub(super) declared: Declared,
    pub(super) may_ask: MayAsk,
    /// For a server that runs at one of several replicas: the way to it.
    pub(super) home: Option<(Arc<dyn Homes>, Wanted)>,
    /// The recipient of the server's own messages.
    pub(super) audience: &'a Arc<dyn Audience>,
}

/// A wire during its handshake: it is closed if the attempt fails or is dropped.
struct Opening(Option<Wire>);

impl Opening {
    fn of(wire: Wire) -> Self {
        Self(Some(wire))
    }

    fn kept(mut self) -> Wire {
        self.0.take().expect("only this takes it")
    }
}

impl Deref for Opening {
    type Target = Wire;

    fn deref(&self) -> &Wire {
        self.0.as_ref().expect("only `kept` takes it")
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(wire) = &self.0 {
            wire.close();
        }
    }
}

impl Connector<'_> {
    /// Opens the connection.
    pub(super) async fn connect(&self) -> Result<Connection, ConnectError> {
        match self.context.servers.own.get(self.server) {
            Some(OwnServer::Source(source)) => return self.source(source.clone()),
            Some(OwnServer::Streams(streams)) => return self.streams(&**streams).await,
            None => {}
        }
        if let Some((homes, wanted)) = &self.home {
            return self.placed(&**homes, wanted).await;
        }
        match self.transport {
            Transport::Stdio(transport) => match &transport.command_line {
                Some(command_line) => self.inside(transport, command_line).await,
                None => self.stdio(transport).await,
            },
            Transport::Http(remote) if remote.openapi.is_some() => self.interface(remote),
            Transport::Http(remote) => self.streamable_http(self.peer(remote)?).await,
            Transport::Sse(remote) => {
                let (wire, opened) = self.sse(self.peer(remote)?).await?;
                self.opened(wire, opened, LastWords::default())
            }
            Transport::Folder(folder) => self.folder(folder),
        }
    }

    async fn inside(
        &self,
        program: &config::Stdio,
        command_line: &config::CommandLine,
    ) -> Result<Connection, ConnectError> {
        let Some(sources) = &self.context.sources else {
            return Err(ConnectError::Configuration {
                server: self.server.to_string(),
                reason: "it is a command line, which is not available here".to_owned(),
            });
        };
        let source = sources
            .open(self.server, program, command_line, self.context)
            .await?;
        self.source(source)
    }

    fn folder(&self, folder: &config::Folder) -> Result<Connection, ConnectError> {
        let Some(sources) = &self.context.sources else {
            return Err(ConnectError::Configuration {
                server: self.server.to_string(),
                reason: format!(
                    "it is a folder of {}, which is not available here",
                    folder.holds.word()
                ),
            });
        };
        self.source(sources.open_folder(folder, self.tools_changed(), self.context))
    }

    /// Reports that the tools have changed.
    fn tools_changed(&self) -> Box<dyn Fn() + Send + Sync> {
        let (audience, server) = (self.audience.clone(), self.server.clone());
        Box::new(move || audience.noticed(&server, Notice::ToolsChanged))
    }

    fn source(&self, source: Arc<dyn Source>) -> Result<Connection, ConnectError> {
        let inside = Inside::new(self.server.clone(), source);
        let introduction = inside.introduction();
        self.opened(
            Opening::of(Wire::Inside(inside)),
            Ok(introduction),
            LastWords::default(),
        )
    }

    fn interface(&self, remote: &Remote) -> Result<Connection, ConnectError> {
        let (Some(sources), Some(openapi)) = (&self.context.sources, &remote.openapi) else {
            return Err(ConnectError::Configuration {
                server: self.server.to_string(),
                reason: "it is an HTTP API, which is not available here".to_owned(),
            });
        };
        let changed = self.tools_changed();
        let source = sources.open_interface(self.server, remote, openapi, changed, self.context)?;
        self.source(source)
    }

    /// Connects a server through the streams of the program.
    async fn streams(&self, streams: &dyn OpenStreams) -> Result<Connection, ConnectError> {
        if self.era != Era::Modern {
            let wire = self.stream(streams).await?;
            match Introduction::legacy(&wire, &self.declared, self.limit()).await {
                // As with a process, the server may bind a stream to the first era it sees.
                Err(Refusal::ModernOnly) if self.era == Era::Auto => drop(wire),
                opened => return self.opened(wire, opened, LastWords::default()),
            }
        }
        let wire = self.stream(streams).await?;
        let opened = Introduction::modern(&wire, self.limit()).await;
        self.opened(wire, opened, LastWords::default())
    }

    /// Opens streams, and starts the tasks that write to them and read from them.
    async fn stream(&self, streams: &dyn OpenStreams) -> Result<Opening, ConnectError> {
        let (server, limit) = (self.server.clone(), self.limit());
        let (reader, writer) = match tokio::time::timeout(limit, streams.open()).await {
            Ok(Ok(streams)) => streams,
            Ok(Err(reason)) => return Err(ConnectError::Transport { server, reason }),
            Err(_) => {
                return Err(ConnectError::Timeout {
                    server,
                    limit,
                    last_words: Box::default(),
                });
            }
        };
        let outbox = Outbox::new();
        let link = Link::new(server, outbox.clone(), MESSAGE_LIMIT, self.inbound());
        let reading = link.clone();
        let stop = self.context.tasks.stop().clone();
        self.context.tasks.spawn(async move {
            let mut lines = LineReader::new(Cooperative(reader), MESSAGE_LIMIT);
            let exchange = async {
                tokio::select! {
                    read = reading.read(&mut lines) => {
                        read.err().map_or("the stream ended".to_owned(), |error| error.to_string())
                    }
                    Err(error) = outbox.write_to(writer) => error.to_string(),
                    () = reading.close_requested() => "the connection was closed".to_owned(),
                    () = stop.cancelled() => "the runner is shutting down".to_owned(),
                }
            };
            // The streams are code of the program.
            let reason = AssertUnwindSafe(exchange).catch_unwind().await;
            reading.end(&reason.unwrap_or_else(|_| "its transport panicked".to_owned()));
        });
        Ok(Opening::of(Wire::Stream(link)))
    }

    /// Connects a server that runs at one of several replicas.
    async fn placed(&self, homes: &dyn Homes, wanted: &Wanted) -> Result<Connection, ConnectError> {
        let open = async |wire, opened, moved| {
            let mut connection = self.opened(wire, opened, LastWords::default())?;
            connection.moved = moved;
            Ok(connection)
        };
        if self.era != Era::Modern {
            let (wire, moved) = self.attach(homes, wanted).await?;
            match Introduction::legacy(&wire, &self.declared, self.limit()).await {
                // As with a process of its own.
                Err(Refusal::ModernOnly) if self.era == Era::Auto => drop(wire),
                opened => return open(wire, opened, moved).await,
            }
        }
        let (wire, moved) = self.attach(homes, wanted).await?;
        let opened = Introduction::modern(&wire, self.limit()).await;
        open(wire, opened, moved).await
    }

    /// Opens a connection to such a server, and starts the tasks that write to it and read from it.
    async fn attach(
        &self,
        homes: &dyn Homes,
        wanted: &Wanted,
    ) -> Result<(Opening, Option<Moved>), ConnectError> {
        let (server, limit) = (self.server.clone(), self.limit());
        let attaching = tokio::time::timeout(limit, homes.attach(wanted.clone()));
        let attached = match attaching.await {
            Ok(Ok(attached)) => attached,
            Ok(Err(reason)) => return Err(ConnectError::Transport { server, reason }),
            Err(_) => {
                let reason = format!(
                    "the replica that it runs at does not answer, and no other could take its place within {limit:?}"
                );
                return Err(ConnectError::Transport { server, reason });
            }
        };
        let (reader, writer) = attached.streams;
        let outbox = Outbox::new();
        let link = Link::of_home(
            server,
            outbox.clone(),
            MESSAGE_LIMIT,
            self.inbound(),
            attached.first_id,
        );
        let writing = outbox.clone();
        self.context.tasks.spawn(async move {
            // If the process is gone, the reader notices.
            let _ = writing.write_to(writer).await;
        });
        let (reading, stop) = (link.clone(), self.context.tasks.stop().clone());
        self.context.tasks.spawn(async move {
            let mut lines = LineReader::new(Cooperative(reader), MESSAGE_LIMIT);
            let reason = tokio::select! {
                _ = reading.read(&mut lines) => home::lost(reading.gone()),
                () = reading.close_requested() => {
                    // If the process is gone, it needs no notification.
                    let _ = outbox.push(Frame::notification(home::LEAVE, "{}"));
                    "the connection was closed".to_owned()
                }
                () = stop.cancelled() => "mcpzip is shutting down".to_owned(),
            };
            reading.end(&reason);
        });
        let moved = attached.moved.map(Moved::new);
        Ok((Opening::of(Wire::Stream(link)), moved))
    }

    async fn stdio(&self, transport: &config::Stdio) -> Result<Connection, ConnectError> {
        let prepared = self.context.prepare(self.server, transport).await?;
        let transport = &prepared;
        if self.era != Era::Modern {
            let (wire, stderr) = self.start(transport)?;
            match Introduction::legacy(&wire, &self.declared, self.limit()).await {
                // A server may bind a process to the first era it sees, so it gets a new process.
                Err(Refusal::ModernOnly) if self.era == Era::Auto => drop(wire),
                opened => {
                    return self.opened(wire, opened, self.last_words(&stderr, transport));
                }
            }
        }
        let (wire, stderr) = self.start(transport)?;
        let opened = Introduction::modern(&wire, self.limit()).await;
        self.opened(wire, opened, self.last_words(&stderr, transport))
    }

    async fn streamable_http(&self, peer: HttpPeer) -> Result<Connection, ConnectError> {
        if self.era == Era::Modern {
            let (wire, opened) = self.modern_http(peer).await;
            return self.opened(wire, opened, LastWords::default());
        }
        let endpoint = self.endpoint(peer.clone());
        let wire = Opening::of(Wire::Http(endpoint.clone()));
        let opened = Introduction::legacy(&wire, &self.declared, self.limit()).await;
        if opened.is_ok() {
            endpoint.listen();
        }
        let other = match &opened {
            Err(_) if self.era == Era::Legacy => None,
            // Modern servers refuse a handshake in different ways, so every refusal may mean a modern server.
            Err(Refusal::ModernOnly | Refusal::Refused(_)) => Some(self.modern_http(peer).await),
            // Not Streamable HTTP: perhaps HTTP+SSE (2025-11-25, basic/transports, backwards compatibility).
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
                drop(wire);
                self.opened(other, Ok(introduction), LastWords::default())
            }
            Some((other, Err(refusal))) => {
                drop(other);
                let is_modern = matches!(opened, Err(Refusal::ModernOnly));
                self.opened(
                    wire,
                    if is_modern { Err(refusal) } else { opened },
                    LastWords::default(),
                )
            }
            None => self.opened(wire, opened, LastWords::default()),
        }
    }

    async fn modern_http(&self, peer: HttpPeer) -> (Opening, Result<Introduction, Refusal>) {
        let wire = Opening::of(Wire::Http(self.endpoint(peer)));
        let opened = Introduction::modern(&wire, self.limit()).await;
        (wire, opened)
    }

    async fn sse(
        &self,
        peer: HttpPeer,
    ) -> Result<(Opening, Result<Introduction, Refusal>), ConnectError> {
        let server = self.server.clone();
        let opening = sse::open(peer, &self.context.tasks, self.inbound());
        let link = match tokio::time::timeout(self.limit(), opening).await {
            Ok(Ok(link)) => link,
            Ok(Err(error)) => {
                return Err(self.refused(Refusal::NoAnswer(error), LastWords::default()));
            }
            Err(_) => {
                return Err(ConnectError::Timeout {
                    server,
                    limit: self.limit(),
                    last_words: Box::default(),
                });
            }
        };
        let wire = Opening::of(Wire::Stream(link));
        let opened = Introduction::legacy(&wire, &self.declared, self.limit()).await;
        Ok((wire, opened))
    }

    fn opened(
        &self,
        wire: Opening,
        opened: Result<Introduction, Refusal>,
        last_words: LastWords,
    ) -> Result<Connection, ConnectError> {
        match opened {
            Ok(introduction) => {
                tracing::info!(server = %self.server, revision = %introduction.revision, "connected");
                Ok(Connection {
                    wire: wire.kept(),
                    introduction,
                    may_ask: self.may_ask.in_requests,
                    compared: Arc::default(),
                    listing: SharedListing::default(),
                    has_log_level: AtomicBool::new(false),
                    moved: None,
                })
            }
            Err(refusal) => Err(match (wire.no_message(), refusal) {
                (Some(text), Refusal::NoAnswer(error)) => self.not_mcp(text, &error, last_words),
                (_, refusal) => self.refused(refusal, last_words),
            }),
        }
    }

    /// The error for a server that wrote text where messages belong, and did not answer the handshake.
    fn not_mcp(&self, text: &str, error: &CallError, last_words: LastWords) -> ConnectError {
        ConnectError::NotMcp {
            server: self.server.clone(),
            text: text.to_owned(),
            failure: match error {
                CallError::Timeout { limit, .. } => {
                    format!("did not answer the handshake within {limit:?}")
                }
                CallError::Lost { reason, .. } => format!("ended ({reason})"),
                other => format!("failed: {other}"),
            },
            last_words: last_words.into(),
        }
    }

    /// The last words of a process that was started.
    fn last_words(&self, stderr: &Stderr, prepared: &Prepared<'_>) -> LastWords {
        let own = self.context.of_child(&prepared.stdio);
        stderr.last_words(&self.context.variables, &own)
    }

    fn refused(&self, refusal: Refusal, last_words: LastWords) -> ConnectError {
        let server = self.server.clone();
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
                last_words: last_words.into(),
            },
            Refusal::NoAnswer(CallError::Lost { reason, .. }) => ConnectError::Ended {
                server,
                status: reason,
                last_words: last_words.into(),
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
        HttpPeer::of(self.server, remote, self.context)
    }

    fn endpoint(&self, peer: HttpPeer) -> Arc<Endpoint> {
        Endpoint::new(
            peer,
            &self.context.tasks,
            self.mirrors.clone(),
            self.inbound(),
        )
    }

    fn inbound(&self) -> Arc<InboundRouter> {
        InboundRouter::new(
            self.server.clone(),
            self.audience.clone(),
            self.context.tasks.clone(),
            self.may_ask.after_handshake,
        )
    }

    fn limit(&self) -> Duration {
        self.context.handshake_limit_of(self.transport)
    }

    /// Starts the server's process, and the tasks that write to it, read from it, and wait for its end.
    fn start(&self, prepared: &Prepared<'_>) -> Result<(Opening, Stderr), ConnectError> {
        let context = self.context;
        let log = ServerLog::open(context.log_directory.as_deref(), self.server);
        let (process, stdin, stdout) = Process::start(self.server, prepared, context, log)?;
        let stderr = process.stderr().clone();
        let outbox = Outbox::new();
        let link = Link::new(
            self.server.clone(),
            outbox.clone(),
            MESSAGE_LIMIT,
            self.inbound(),
        );
        process.attend((stdin, stdout), outbox, link.clone(), &context.tasks);
        Ok((Opening::of(Wire::Stream(link)), stderr))
    }
}
