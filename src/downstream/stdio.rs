//! A client over one stream in each direction: the one that started this process, over stdin and stdout, or one whose
//! session is served for another process.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use bytes::Bytes;

use super::exchange::Exchange;
use super::{Session, pipes};
use crate::mcp::{Envelope, Journal, Line, LineReader, Outbox, Receipt, Received, RequestId};
use crate::proxy::Proxy;
use crate::shutdown::Tasks;

/// The size limit of a message from a client, in bytes.
const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;

/// After the end of input, the time limit for answering the requests in flight.
const DRAIN: Duration = Duration::from_secs(5);
/// That time limit while a server is still starting.
const DRAIN_WHILE_STARTING: Duration = Duration::from_secs(60);

/// The time that a client has to read the last responses.
const FLUSH: Duration = Duration::from_secs(1);

/// Listing begins after this time even if the client has requested nothing.
const PATIENCE: Duration = Duration::from_millis(100);

/// The streams of a client.
pub(crate) struct Streams {
    /// The client's output.
    pub(crate) input: pipes::Input,
    /// The client's input.
    pub(crate) output: pipes::Output,
    /// The queue of messages to the client.
    pub(crate) outbox: Outbox,
    /// Records each line, if another process can take over the session.
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// Stops reading, so that requests in progress can be answered before another process takes over.
    pub(crate) handover: CancellationToken,
}

/// Serves the client that started this process until its input ends, its output is closed, or the run ends.
///
/// # Errors
/// When stdin or stdout cannot be used.
pub(crate) async fn serve(proxy: Arc<Proxy>, tasks: &Tasks) -> io::Result<()> {
    let (input, output) = pipes::open()?;
    let session = Session::new(proxy.clone(), tasks.clone());
    session.share_workspace();
    let streams = Streams {
        input,
        output,
        outbox: Outbox::of_only_client(),
        journal: None,
        handover: CancellationToken::new(),
    };
    serve_streams(&session, &proxy, tasks, streams).await
}

/// Serves the client of `session` until its input ends, its output is closed, or the run ends.
///
/// # Errors
/// When a stream cannot be used.
pub(crate) async fn serve_streams(
    session: &Arc<Session>,
    proxy: &Arc<Proxy>,
    tasks: &Tasks,
    streams: Streams,
) -> io::Result<()> {
    let Streams {
        input,
        output,
        outbox,
        journal,
        handover,
    } = streams;
    session.attach(outbox.clone());
    // A separate task, so that a response is written before the runtime starts new work. It ends with this future,
    // which a signal drops.
    let mut writer = {
        let outbox = outbox.clone();
        AbortOnDropHandle::new(tasks.spawn(async move {
            outbox
                .write_widening(output, |output, is_large| output.widen(is_large))
                .await
        }))
    };
    let client = Reading {
        session,
        proxy,
        outbox: &outbox,
        journal,
        handover,
    };
    let lines = LineReader::new(input, MESSAGE_LIMIT)
        .with_widening(|input, is_large| input.widen(is_large));
    let reading = async {
        let ended = client.read(lines).await;
        drain(session, proxy).await;
        ended
    };
    let outcome = tokio::select! {
        outcome = reading => outcome,
        // The client does not read any more, which is a normal end.
        written = &mut writer => {
            let written = written.map_err(io::Error::other).flatten();
            return written.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) });
        }
        () = tasks.stopped() => Ok(()),
    };
    session.cancel_all();
    outbox.close();
    // A client that does not read its responses in time is not waited for.
    let _ = tokio::time::timeout(FLUSH, writer).await;
    outcome
}

/// Reads and processes a client's lines.
struct Reading<'a> {
    session: &'a Arc<Session>,
    proxy: &'a Proxy,
    outbox: &'a Outbox,
    journal: Option<Arc<dyn Journal>>,
    handover: CancellationToken,
}

impl Reading<'_> {
    async fn read(&self, mut lines: LineReader<pipes::Input>) -> io::Result<()> {
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(patience);
        let mut patient = true;
        self.replay_kept();
        loop {
            let line = tokio::select! {
                line = lines.next() => line?,
                () = &mut patience, if patient => {
                    patient = false;
                    self.proxy.inventory.release();
                    continue;
                }
                () = self.handover.cancelled() => std::future::pending().await,
            };
            match line {
                Some(Line::Message(line)) => {
                    // A client that reads no responses gets no more requests processed. The end of its input is
                    // noticed afterwards.
                    self.outbox.relieved().await;
                    self.receive(&line, lines.position());
                }
                Some(Line::TooLong { length, id }) => {
                    self.refuse_length(length, id, lines.position());
                }
                None => return Ok(()),
            }
        }
    }

    /// Replays the lines that set the state of the session.
    fn replay_kept(&self) {
        for kept in self.journal.iter().flat_map(|journal| journal.kept()) {
            if kept.is_open {
                let exchange = Exchange::Shared(self.outbox.clone());
                self.session.receive(&kept.line, &exchange);
            } else {
                self.replay_answered(&kept.line);
            }
        }
    }

    /// Replays a line that was answered already.
    fn replay_answered(&self, line: &Bytes) {
        let discarded = Outbox::new();
        discarded.abandon();
        self.session.receive(line, &Exchange::Shared(discarded));
    }

    fn receive(&self, line: &Bytes, end: u64) {
        let Some(journal) = self.journal.clone() else {
            let exchange = Exchange::Shared(self.outbox.clone());
            return self.session.receive(line, &exchange);
        };
        // Parsed once, for the journal and the session.
        let parsed = Envelope::parse(line);
        match journal.received(line, parsed.as_ref().ok(), end) {
            Received::New(receipt) => {
                let exchange = self.journaled(receipt);
                self.session.receive_parsed(line, parsed, &exchange);
            }
            Received::Interrupted(receipt) => {
                self.session
                    .refuse_interrupted(line, &self.journaled(receipt));
            }
            Received::Repeated => self.replay_answered(line),
            Received::Answered => {}
        }
    }

    fn refuse_length(&self, length: u64, id: Option<RequestId>, end: u64) {
        let exchange = match self
            .journal
            .clone()
            .map(|journal| journal.received(&Bytes::new(), None, end))
        {
            None => Exchange::Shared(self.outbox.clone()),
            Some(Received::New(receipt) | Received::Interrupted(receipt)) => {
                self.journaled(receipt)
            }
            Some(Received::Repeated | Received::Answered) => return,
        };
        self.session
            .refuse_length(length, MESSAGE_LIMIT, id, &exchange);
    }

    fn journaled(&self, receipt: Receipt) -> Exchange {
        Exchange::Journaled {
            outbox: self.outbox.clone(),
            receipt,
        }
    }
}

/// Waits for the requests in flight: a client may close its output right after the last request.
async fn drain(session: &Session, proxy: &Proxy) {
    let start = Instant::now();
    while session.in_flight() > 0 {
        let limit = if proxy.inventory.is_connecting() {
            DRAIN_WHILE_STARTING
        } else {
            DRAIN
        };
        if start.elapsed() > limit {
            return;
        }
        // Checked again at an interval, because a server may have started meanwhile.
        let _ = tokio::time::timeout(Duration::from_millis(200), session.finished()).await;
    }
}
