//! Descriptors that a message carries over a Unix socket.

use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::AsyncReadExt as _;

use super::message::{encoded, receive_rest};

/// Maximum number of descriptors in a message: stdin, stdout and the journal's files.
const MOST_DESCRIPTORS: usize = 5;

/// Sends a message with `descriptors`. Blocks.
///
/// # Errors
/// When the message is too long, or cannot be sent completely.
pub(super) fn send(
    mut socket: &UnixStream,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = encoded(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    let flags = SendFlags::NOSIGNAL;
    let sent = sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, flags)?;
    socket.write_all(&bytes[sent..])
}

/// Receives a message and the descriptors that came with its first bytes.
pub(super) async fn receive<T: DeserializeOwned>(
    socket: &mut tokio::net::UnixStream,
) -> io::Result<(T, Vec<OwnedFd>)> {
    let mut length = [0; 4];
    let mut descriptors = Vec::new();
    let read = loop {
        socket.readable().await?;
        let received = socket.try_io(tokio::io::Interest::READABLE, || {
            receive_some(socket.as_fd(), &mut length, &mut descriptors)
        });
        match received {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => break received?,
        }
    };
    if read == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    socket.read_exact(&mut length[read..]).await?;
    let message = receive_rest(socket, u32::from_le_bytes(length)).await?;
    Ok((message, descriptors))
}

fn receive_some(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    Ok(received.bytes)
}
