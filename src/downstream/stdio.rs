//! The client that started us, over stdin and stdout.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::task::AbortOnDropHandle;

use super::exchange::Exchange;
use super::{Session, pipes};
use crate::mcp::{Line, LineReader, Outbox};
use crate::proxy::Proxy;
use crate::shutdown::Tasks;

/// The largest message that is taken from a client, in bytes.
const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;

/// After the end of input, what is under way has this long to be answered,
const DRAIN: Duration = Duration::from_secs(5);
/// or this long while a server is still being started.
const DRAIN_WHILE_STARTING: Duration = Duration::from_secs(60);

/// How long a client has to take the last answers.
const FLUSH: Duration = Duration::from_secs(1);

/// Listing begins after this time even when the client has not asked for anything.
const PATIENCE: Duration = Duration::from_millis(100);

/// Serves one client until its input ends, its output is gone, or the run is to end.
///
/// # Errors
/// When stdin or stdout cannot be used.
pub(crate) async fn serve(proxy: Arc<Proxy>, tasks: &Tasks) -> io::Result<()> {
    let (input, output) = pipes::open()?;
    let outbox = Outbox::of_only_client();
    let session = Session::new(proxy.clone(), tasks.clone());
    session.attach(outbox.clone());
    session.stands_here();
    let exchange = Exchange::Shared(outbox.clone());
    // A task of its own, so that an answer leaves before the runtime looks for anything new to do. It ends with this future, which
    // a signal drops.
    let mut writer = {
        let outbox = outbox.clone();
        AbortOnDropHandle::new(tasks.spawn(async move { outbox.write_to(output).await }))
    };
    let reading = async {
        let ended = read(
            &session,
            LineReader::new(input, MESSAGE_LIMIT),
            &proxy,
            &exchange,
        )
        .await;
        drain(&session, &proxy).await;
        ended
    };
    let outcome = tokio::select! {
        outcome = reading => outcome,
        // The client does not listen any more; there is nobody to answer, and nothing wrong with leaving.
        written = &mut writer => {
            let written = written.map_err(io::Error::other).flatten();
            return written.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) });
        }
        () = tasks.stopped() => Ok(()),
    };
    session.cancel_all();
    outbox.close();
    // A client that does not take its answers in time has lost interest.
    let _ = tokio::time::timeout(FLUSH, writer).await;
    outcome
}

async fn read(
    session: &Arc<Session>,
    mut lines: LineReader<pipes::Input>,
    proxy: &Proxy,
    exchange: &Exchange,
) -> io::Result<()> {
    let patience = tokio::time::sleep(PATIENCE);
    tokio::pin!(patience);
    let mut patient = true;
    loop {
        let line = tokio::select! {
            line = lines.next() => line?,
            () = &mut patience, if patient => {
                patient = false;
                proxy.inventory.release();
                continue;
            }
        };
        match line {
            Some(Line::Message(line)) => {
                // Who takes no answers gets no more; an end of the input behind this line is noticed after it.
                exchange.outbox().relieved().await;
                session.receive(&line, exchange);
            }
            Some(Line::TooLong { length, id }) => {
                session.refuse_length(length, MESSAGE_LIMIT, id, exchange);
            }
            None => return Ok(()),
        }
    }
}

/// Waits for the requests under way: a client may close its end as soon as it has asked.
async fn drain(session: &Session, proxy: &Proxy) {
    let start = Instant::now();
    while session.running() > 0 {
        let limit = if proxy.inventory.is_connecting() {
            DRAIN_WHILE_STARTING
        } else {
            DRAIN
        };
        if start.elapsed() > limit {
            return;
        }
        // Looked at again now and then, as a server may have started meanwhile.
        let _ = tokio::time::timeout(Duration::from_millis(200), session.finished()).await;
    }
}
