//! The queue of outgoing messages to one peer. Any task appends; one task writes them, or takes them one at a time.
//!
//! Messages that are ready together leave in one write. When a peer does not read, its outbox fills up to a limit,
//! and senders to that peer wait (backpressure). The backlog, including senders that wait, is known, so that no more
//! requests are read from a peer that reads nothing. Several peers may share a byte budget for it.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use super::budget::{ByteBudget, OverBudget};
use super::frame::{one_line, without_line_breaks};
use super::widen::{FOLLOWING, LARGE};
use super::{Frame, Receipt};

/// The size from which a payload is written without a copy; smaller ones are copied together.
const COPY_BELOW: usize = 16 * 1024;

/// The queued bytes above which senders wait.
const LIMIT: usize = 4 * 1024 * 1024;

/// The backlog in bytes, including senders that wait, above which the peer is congested.
const CONGESTED: usize = 32 * 1024 * 1024;

/// The largest buffer that is kept for the next batch of small messages, in bytes.
const KEPT: usize = 64 * 1024;

/// A handle to append messages; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Outbox(Arc<Shared>);

/// The peer is gone; the message was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer has closed the connection")]
pub(crate) struct Closed;

#[derive(Debug, Default)]
struct Shared {
    is_alone: bool,
    /// The budget in which payloads are reserved, if peers share one.
    shared_budget: Option<ByteBudget>,
    queue: Mutex<Queue>,
    /// Notified when there is something to write, or when nothing will follow.
    ready: Notify,
    /// Notified when there is capacity again, or when nothing will be written.
    capacity: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Frame>,
    /// The bytes of `frames` and of the messages being written.
    waiting: usize,
    /// The bytes of messages whose senders wait.
    held_back: usize,
    /// The number of bytes ever appended, and how many of them were written.
    appended: u64,
    written: u64,
    /// The receipts to finish when that number of bytes has been written.
    receipts: VecDeque<(u64, Receipt)>,
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// Queued messages are still written.
    Closing,
    Closed,
}

impl Outbox {
    /// Creates an empty outbox. One task must run [`Outbox::write_to`].
    #[must_use]
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Creates the outbox of the only client. Servers may be made to wait for it, because no other client needs them.
    #[must_use]
    pub(crate) fn of_only_client() -> Self {
        Self(Arc::new(Shared {
            is_alone: true,
            ..Shared::default()
        }))
    }

    /// Creates the outbox of one of several peers that share `budget` for their backlog.
    #[must_use]
    pub(crate) fn within(budget: ByteBudget) -> Self {
        Self(Arc::new(Shared {
            shared_budget: Some(budget),
            ..Shared::default()
        }))
    }

    /// Reserves the payload of `frame` in the budget that is shared with other peers, if there is one. A frame that is large, or
    /// may be one of many, needs a reservation before it is sent.
    ///
    /// # Errors
    /// When the budget is exhausted.
    pub(crate) fn hold(&self, mut frame: Frame) -> Result<Frame, OverBudget> {
        if let Some(budget) = &self.0.shared_budget {
            frame.body = budget.hold(frame.body)?;
        }
        Ok(frame)
    }

    /// Whether its peer is the only client.
    #[must_use]
    pub(crate) fn is_alone(&self) -> bool {
        self.0.is_alone
    }

    /// Appends `frame` and a line end; waits while the queue is above its limit.
    ///
    /// # Cancel safety
    /// A dropped future has sent the whole frame or nothing.
    ///
    /// # Errors
    /// When the peer is gone.
    pub(crate) async fn send(&self, frame: Frame) -> Result<(), Closed> {
        match self.try_send(frame) {
            Ok(sent) => sent,
            // Boxed because it is rare and would make up most of this future's size.
            Err(frame) => Box::pin(self.send_later(frame)).await,
        }
    }

    /// Appends `frame` if there is capacity now; returns it otherwise.
    fn try_send(&self, frame: Frame) -> Result<Result<(), Closed>, Frame> {
        let mut queue = self.queue();
        if queue.state != State::Open {
            return Ok(Err(Closed));
        }
        if queue.waiting >= LIMIT {
            return Err(frame);
        }
        queue.append(frame);
        drop(queue);
        self.0.ready.notify_one();
        Ok(Ok(()))
    }

    async fn send_later(&self, mut frame: Frame) -> Result<(), Closed> {
        let _held_back = HeldBack::of(self, size(&frame));
        loop {
            let capacity = self.0.capacity.notified();
            match self.try_send(frame) {
                Ok(sent) => return sent,
                Err(back) => frame = back,
            }
            capacity.await;
        }
    }

    /// Appends a short message regardless of the limit: a cancellation or an error response.
    ///
    /// # Errors
    /// When the peer is gone.
    pub(crate) fn push(&self, frame: Frame) -> Result<(), Closed> {
        let mut queue = self.queue();
        if queue.state != State::Open {
            return Err(Closed);
        }
        queue.append(frame);
        drop(queue);
        self.0.ready.notify_one();
        Ok(())
    }

    /// Appends a message that may be lost, such as a progress notification, unless the queue is above its limit.
    pub(crate) fn offer(&self, frame: Frame) {
        if self
            .0
            .shared_budget
            .as_ref()
            .is_none_or(|budget| !budget.is_scarce())
        {
            self.append_below(LIMIT, |queue| queue.waiting, frame);
        }
    }

    /// Appends a message without waiting, unless the peer is congested: a response to the peer's own request, or a
    /// notification. Returns whether it was appended.
    pub(crate) fn push_unless_congested(&self, frame: Frame) -> bool {
        self.append_below(CONGESTED, Queue::backlog, frame)
    }

    fn append_below(&self, limit: usize, waiting: impl Fn(&Queue) -> usize, frame: Frame) -> bool {
        let Ok(frame) = self.hold(frame.into_payload()) else {
            return false;
        };
        let mut queue = self.queue();
        let has_room = queue.state == State::Open && waiting(&queue) < limit;
        if has_room {
            queue.append(frame);
            drop(queue);
            self.0.ready.notify_one();
        }
        has_room
    }

    /// Finishes `receipt` when everything appended so far has been written.
    pub(crate) fn finish_when_written(&self, receipt: &Receipt) {
        let mut queue = self.queue();
        let appended = queue.appended;
        if queue.written < appended {
            queue.receipts.push_back((appended, receipt.clone()));
        } else {
            drop(queue);
            receipt.finish();
        }
    }

    /// Whether the backlog is so large that nothing more should be read from the peer.
    #[must_use]
    pub(crate) fn is_congested(&self) -> bool {
        let queue = self.queue();
        queue.state == State::Open && queue.backlog() >= CONGESTED
    }

    /// Resolves when the peer is not congested any more, or is gone.
    pub(crate) async fn relieved(&self) {
        loop {
            if !self.is_congested() {
                return;
            }
            let capacity = self.0.capacity.notified();
            if self.is_congested() {
                capacity.await;
            }
        }
    }

    /// Accepts no more messages; queued ones are still written.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        if queue.state == State::Open {
            queue.state = State::Closing;
        }
        drop(queue);
        self.0.ready.notify_one();
        self.0.capacity.notify_waiters();
    }

    /// Writes messages until the outbox is closed and empty, or the peer is gone.
    ///
    /// # Errors
    /// When writing fails; the outbox is then closed.
    pub(crate) async fn write_to(&self, writer: impl AsyncWrite + Unpin) -> io::Result<()> {
        self.write_widening(writer, |_, _| {}).await
    }

    /// [`Outbox::write_to`], with a function that is called with `true` when large messages begin, and with `false` when no more follow.
    ///
    /// # Errors
    /// When writing fails; the outbox is then closed.
    pub(crate) async fn write_widening<W: AsyncWrite + Unpin>(
        &self,
        mut writer: W,
        widen: fn(&W, bool),
    ) -> io::Result<()> {
        let outcome = self.drain(&mut writer, widen).await;
        self.abandon();
        outcome
    }

    /// Takes the next message, for a transport that writes each one separately. `None` once the outbox is closed and
    /// empty.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing.
    pub(crate) async fn next(&self) -> Option<Frame> {
        loop {
            {
                let mut queue = self.queue();
                if let Some(frame) = queue.frames.pop_front() {
                    let receipts = queue.wrote(size(&frame));
                    drop(queue);
                    receipts.iter().for_each(Receipt::finish);
                    self.0.capacity.notify_waiters();
                    return Some(frame);
                }
                if queue.state != State::Open {
                    return None;
                }
            }
            self.0.ready.notified().await;
        }
    }

    /// Marks the peer as gone: queued messages are dropped, and no more are accepted.
    pub(crate) fn abandon(&self) {
        let mut queue = self.queue();
        queue.state = State::Closed;
        queue.frames.clear();
        drop(queue);
        self.0.ready.notify_one();
        self.0.capacity.notify_waiters();
    }

    /// Whether messages are still accepted.
    #[must_use]
    pub(crate) fn is_open(&self) -> bool {
        self.queue().state == State::Open
    }

    /// Whether the last message was taken and none will follow.
    #[must_use]
    pub(crate) fn is_through(&self) -> bool {
        let queue = self.queue();
        queue.state != State::Open && queue.frames.is_empty()
    }

    async fn drain<W: AsyncWrite + Unpin>(
        &self,
        writer: &mut W,
        widen: fn(&W, bool),
    ) -> io::Result<()> {
        let (mut batch, mut is_wide) = (Batch::default(), false);
        loop {
            let (frames, ends) = {
                let mut queue = self.queue();
                (
                    std::mem::take(&mut queue.frames),
                    queue.state != State::Open,
                )
            };
            if frames.is_empty() {
                if ends {
                    return writer.flush().await;
                }
                let ready = self.0.ready.notified();
                if !is_wide {
                    ready.await;
                } else if Box::pin(tokio::time::timeout(FOLLOWING, ready))
                    .await
                    .is_err()
                {
                    (widen)(writer, false);
                    is_wide = false;
                }
                continue;
            }
            batch.fill(frames);
            if !is_wide && batch.is_large() {
                (widen)(writer, true);
                is_wide = true;
            }
            let mut slices = batch.slices();
            let mut rest = &mut slices[..];
            while !rest.is_empty() {
                let written = writer.write_vectored(rest).await?;
                if written == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                IoSlice::advance_slices(&mut rest, written);
                let receipts = self.queue().wrote(written);
                receipts.iter().for_each(Receipt::finish);
            }
            batch.clear();
            writer.flush().await?;
            self.0.capacity.notify_waiters();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Appending and taking leave the queue consistent even after a panic.
        self.0.queue.lock()
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Queue {
    fn append(&mut self, frame: Frame) {
        self.waiting += size(&frame);
        self.appended += size(&frame) as u64;
        self.frames.push_back(frame);
    }

    /// Records that `bytes` more bytes were written; returns the receipts that this finishes.
    fn wrote(&mut self, bytes: usize) -> Vec<Receipt> {
        self.waiting -= bytes;
        self.written += bytes as u64;
        let written = self.written;
        let finished = self.receipts.iter().take_while(|(at, _)| *at <= written);
        let finished = finished.count();
        self.receipts
            .drain(..finished)
            .map(|(_, receipt)| receipt)
            .collect()
    }

    fn backlog(&self) -> usize {
        self.waiting + self.held_back
    }
}

/// The bytes of a message whose sender waits.
struct HeldBack<'a> {
    outbox: &'a Outbox,
    bytes: usize,
}

impl<'a> HeldBack<'a> {
    fn of(outbox: &'a Outbox, bytes: usize) -> Self {
        outbox.queue().held_back += bytes;
        Self { outbox, bytes }
    }
}

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        let mut queue = self.outbox.queue();
        let was_congested = queue.backlog() >= CONGESTED;
        queue.held_back -= self.bytes;
        if was_congested && queue.backlog() < CONGESTED {
            drop(queue);
            self.outbox.0.capacity.notify_waiters();
        }
    }
}

/// The size of a message with its line end.
fn size(frame: &Frame) -> usize {
    frame.len() + 1
}

/// A batch of messages as lines: small parts are copied together, large payloads are written without a copy.
#[derive(Default)]
struct Batch {
    small: Vec<u8>,
    /// Large payloads, with their positions in `small`.
    large: Vec<(usize, Bytes)>,
}

impl Batch {
    /// Each message becomes one line. A message that came over HTTP may have line breaks between its tokens, which the
    /// peer would read as the ends of messages.
    fn fill(&mut self, frames: VecDeque<Frame>) {
        for frame in frames {
            let start = self.small.len();
            self.small.extend_from_slice(&frame.head);
            if frame.body.len() < COPY_BELOW {
                self.small.extend_from_slice(&frame.body);
            } else {
                let payload = one_line(frame.body);
                self.large.push((self.small.len(), payload));
            }
            self.small.extend_from_slice(&frame.tail);
            without_line_breaks(&mut self.small[start..]);
            self.small.push(b'\n');
        }
    }

    fn is_large(&self) -> bool {
        let large = self.large.iter().map(|(_, payload)| payload.len());
        self.small.len() + large.sum::<usize>() > LARGE
    }

    fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::with_capacity(2 * self.large.len() + 1);
        let mut start = 0;
        for (at, payload) in &self.large {
            slices.extend([IoSlice::new(&self.small[start..*at]), IoSlice::new(payload)]);
            start = *at;
        }
        slices.push(IoSlice::new(&self.small[start..]));
        slices
    }

    fn clear(&mut self) {
        self.small.clear();
        self.small.shrink_to(KEPT);
        self.large.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use tokio_util::task::TaskTracker;

    use super::*;

    fn frame(body: &str) -> Frame {
        Frame {
            head: b"<".to_vec(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            tail: b">".to_vec(),
        }
    }

    #[tokio::test]
    async fn messages_leave_in_order_large_and_small() {
        let outbox = Outbox::new();
        let large = "x".repeat(COPY_BELOW);
        outbox.send(frame("a")).await.unwrap();
        outbox.send(frame(&large)).await.unwrap();
        outbox.push(frame("b")).unwrap();
        outbox.close();
        let mut written = Vec::new();
        outbox.write_to(&mut written).await.unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap(),
            format!("<a>\n<{large}>\n<b>\n")
        );
        assert_eq!(outbox.send(frame("c")).await, Err(Closed));
    }

    #[tokio::test]
    async fn a_message_is_one_line_in_all_its_parts() {
        let outbox = Outbox::new();
        let large = format!("\r{}", " ".repeat(COPY_BELOW));
        for body in ["{\n}", &large] {
            let mut message = frame(body);
            message.head.extend_from_slice(b"\n");
            message.tail.extend_from_slice(b"\r\n");
            outbox.push(message).unwrap();
        }
        outbox.close();
        let mut written = Vec::new();
        outbox.write_to(&mut written).await.unwrap();
        assert_eq!(written.iter().filter(|&&byte| byte == b'\n').count(), 2);
        assert!(!written.contains(&b'\r'));
    }

    #[tokio::test]
    async fn a_pipe_is_enlarged_for_large_messages_only() {
        thread_local!(static TOLD: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) });
        let outbox = Outbox::new();
        let writer = outbox.write_widening(tokio::io::sink(), |_, is_large| {
            TOLD.with_borrow_mut(|told| told.push(is_large));
        });
        let mut writer = std::pin::pin!(writer);
        let mut pass = async |body: &str| {
            outbox.push(frame(body)).unwrap();
            // One poll writes everything, because the sink never waits.
            let writing = tokio::time::timeout(Duration::ZERO, &mut writer).await;
            assert!(writing.is_err(), "the writer ended");
            TOLD.with_borrow(Vec::clone)
        };
        let large = "x".repeat(LARGE);
        assert!(pass("small").await.is_empty());
        assert_eq!(pass(&large).await, [true]);
        assert_eq!(pass(&large).await, [true], "once, however many come");
        let ended = tokio::time::timeout(2 * FOLLOWING, &mut writer).await;
        assert!(ended.is_err() && TOLD.take() == [true, false]);
    }

    #[tokio::test]
    async fn messages_can_be_taken_one_by_one() {
        let outbox = Outbox::new();
        outbox.push(frame("a")).unwrap();
        outbox.push(frame("b")).unwrap();
        outbox.close();
        let mut bodies = Vec::new();
        while let Some(frame) = outbox.next().await {
            bodies.push(frame.body);
            assert_eq!(outbox.is_through(), bodies.len() == 2);
        }
        assert_eq!(bodies, ["a", "b"]);
        assert_eq!(outbox.push(frame("c")), Err(Closed));
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_makes_senders_wait_and_pushes_pass() {
        let outbox = Outbox::new();
        let large = "x".repeat(LIMIT);
        outbox.send(frame(&large)).await.unwrap();
        let blocked = tokio::time::timeout(
            std::time::Duration::from_millis(20),
            outbox.send(frame("late")),
        )
        .await;
        assert!(blocked.is_err(), "the sender did not wait");
        outbox.push(frame("cancel")).unwrap();
    }

    #[tokio::test]
    async fn a_peer_that_is_gone_ends_the_wait() {
        let outbox = Outbox::new();
        outbox.send(frame(&"x".repeat(LIMIT))).await.unwrap();
        let (near, far) = tokio::io::duplex(16);
        drop(far);
        let (sent, written) = tokio::join!(outbox.send(frame("late")), outbox.write_to(near));
        assert_eq!(sent, Err(Closed));
        assert!(written.is_err());
    }

    #[tokio::test]
    async fn what_waits_for_a_peer_is_known_until_it_reads() {
        let (outbox, tasks) = (Outbox::new(), TaskTracker::new());
        let large = "x".repeat(LIMIT);
        let sender = |outbox: Outbox| {
            let frame = frame(&large);
            tasks.spawn(async move { outbox.send(frame).await })
        };
        let senders: Vec<_> = (0..CONGESTED / LIMIT)
            .map(|_| sender(outbox.clone()))
            .collect();
        while !outbox.is_congested() {
            tokio::task::yield_now().await;
        }
        outbox.push_unless_congested(frame("dropped"));
        let reading = tasks.spawn({
            let outbox = outbox.clone();
            async move { outbox.write_to(tokio::io::sink()).await }
        });
        outbox.relieved().await;
        for sender in senders {
            sender.await.unwrap().unwrap();
        }
        outbox.close();
        reading.await.unwrap().unwrap();
        assert_eq!(outbox.queue().backlog(), 0);
    }
}
