//! The way out to one peer: any task appends messages, one task writes them, or takes them one by one.
//!
//! Messages that become ready together leave in one write. A peer that does not read fills its outbox up to a limit;
//! whoever has more to say to it then waits, and nobody else does.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use super::Frame;

/// Payloads from this size on are handed over as they are; smaller ones are copied together.
const COPY_BELOW: usize = 16 * 1024;

/// How many bytes may wait before senders do.
const LIMIT: usize = 4 * 1024 * 1024;

/// A handle to append messages; cheap to clone.
#[derive(Debug, Clone)]
pub struct Outbox(Arc<Shared>);

/// The peer is gone; what was to be sent is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer has closed the connection")]
pub struct Closed;

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Woken when there is something to write, or nothing will follow.
    ready: Notify,
    /// Woken when there is room again, or nothing will be written.
    room: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Frame>,
    /// The bytes of `frames`, and of what is being written.
    waiting: usize,
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// What waits is still written.
    Closing,
    Closed,
}

impl Outbox {
    /// An empty outbox; [`Outbox::write_to`] is to be run by one task.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Appends `frame` and a line end; waits while too much is waiting already.
    ///
    /// # Cancel safety
    /// A dropped future has sent all or nothing.
    ///
    /// # Errors
    /// When the peer is gone.
    pub async fn send(&self, frame: Frame) -> Result<(), Closed> {
        loop {
            let room = self.0.room.notified();
            {
                let mut queue = self.queue();
                if queue.state != State::Open {
                    return Err(Closed);
                }
                if queue.waiting < LIMIT {
                    queue.append(frame);
                    drop(queue);
                    self.0.ready.notify_one();
                    return Ok(());
                }
            }
            room.await;
        }
    }

    /// Appends a short message at once, whatever is waiting: a cancellation, an error answer.
    ///
    /// # Errors
    /// When the peer is gone.
    pub fn push(&self, frame: Frame) -> Result<(), Closed> {
        let mut queue = self.queue();
        if queue.state != State::Open {
            return Err(Closed);
        }
        queue.append(frame);
        drop(queue);
        self.0.ready.notify_one();
        Ok(())
    }

    /// Appends a message that may be lost, a progress notification say, unless too much is waiting already.
    pub fn offer(&self, frame: Frame) {
        let mut queue = self.queue();
        if queue.state == State::Open && queue.waiting < LIMIT {
            queue.append(frame);
            drop(queue);
            self.0.ready.notify_one();
        }
    }

    /// No more messages; what waits is still written.
    pub fn close(&self) {
        let mut queue = self.queue();
        if queue.state == State::Open {
            queue.state = State::Closing;
        }
        drop(queue);
        self.0.ready.notify_one();
        self.0.room.notify_waiters();
    }

    /// Writes what is appended until the outbox is closed and empty, or the peer is gone.
    ///
    /// # Errors
    /// When writing fails; the outbox is closed then.
    pub async fn write_to(&self, mut writer: impl AsyncWrite + Unpin) -> io::Result<()> {
        let outcome = self.drain(&mut writer).await;
        self.abandon();
        outcome
    }

    /// Takes the next message, for a transport that writes each by itself; `None` once the outbox is closed and empty.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing.
    pub async fn next(&self) -> Option<Frame> {
        loop {
            {
                let mut queue = self.queue();
                if let Some(frame) = queue.frames.pop_front() {
                    queue.waiting -= size(&frame);
                    drop(queue);
                    self.0.room.notify_waiters();
                    return Some(frame);
                }
                if queue.state != State::Open {
                    return None;
                }
            }
            self.0.ready.notified().await;
        }
    }

    /// The peer is gone: what waits is dropped, and nothing more is taken.
    pub fn abandon(&self) {
        let mut queue = self.queue();
        queue.state = State::Closed;
        queue.frames.clear();
        drop(queue);
        self.0.ready.notify_one();
        self.0.room.notify_waiters();
    }

    /// Whether messages are still taken.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.queue().state == State::Open
    }

    /// Whether the last message was taken, and none will follow.
    #[must_use]
    pub fn is_through(&self) -> bool {
        let queue = self.queue();
        queue.state != State::Open && queue.frames.is_empty()
    }

    async fn drain(&self, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        loop {
            let (frames, ends) = {
                let mut queue = self.queue();
                (std::mem::take(&mut queue.frames), queue.state != State::Open)
            };
            if frames.is_empty() {
                if ends {
                    return writer.flush().await;
                }
                self.0.ready.notified().await;
                continue;
            }
            for chunk in chunks(frames) {
                writer.write_all(&chunk).await?;
                self.queue().waiting -= chunk.len();
            }
            writer.flush().await?;
            self.0.room.notify_waiters();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Appending and taking leave the queue whole even where a panic would strike.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.frames.push_back(frame);
    }
}

/// What a message takes, its line end included.
fn size(frame: &Frame) -> usize {
    frame.len() + 1
}

/// Messages as lines: small parts copied together, large payloads handed over as they are.
fn chunks(frames: VecDeque<Frame>) -> Vec<Bytes> {
    let (mut chunks, mut open) = (Vec::new(), BytesMut::new());
    for frame in frames {
        open.extend_from_slice(&frame.head);
        if frame.body.len() < COPY_BELOW {
            open.extend_from_slice(&frame.body);
        } else {
            chunks.push(open.split().freeze());
            chunks.push(frame.body);
        }
        open.extend_from_slice(&frame.tail);
        open.extend_from_slice(b"\n");
    }
    chunks.push(open.freeze());
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(body: &str) -> Frame {
        Frame { head: b"<".to_vec(), body: Bytes::copy_from_slice(body.as_bytes()), tail: b">".to_vec() }
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
        assert_eq!(String::from_utf8(written).unwrap(), format!("<a>\n<{large}>\n<b>\n"));
        assert_eq!(outbox.send(frame("c")).await, Err(Closed));
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
        let blocked = tokio::time::timeout(std::time::Duration::from_millis(20), outbox.send(frame("late"))).await;
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
}
