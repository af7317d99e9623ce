//! The minimal relay: a lower bound for any program that relays whole messages between a client and a server.
//!
//! It only looks for line ends. A message is relayed when it is complete, and messages that arrive together are written
//! together, like a proxy that may drop or answer messages. Relaying incomplete messages would be faster for large ones
//! but not comparable.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

/// Relays stdin and stdout to the program that `arguments` name.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (program, arguments) = arguments
        .split_first()
        .context("usage: mcpzip-bench relay COMMAND [ARGUMENT...]")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (input, output) = (
        child.stdin.take().context("no stdin")?,
        child.stdout.take().context("no stdout")?,
    );
    pass(input, output)?;
    // Its stdin is closed, and its exit is not waited for.
    let _ = child.kill();
    child.wait()?;
    Ok(())
}

#[cfg(unix)]
fn pass(input: std::process::ChildStdin, output: std::process::ChildStdout) -> Result<()> {
    use std::os::fd::AsFd as _;
    use tokio::net::unix::pipe::{Receiver, Sender};

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let from_client = Receiver::from_owned_fd(std::io::stdin().as_fd().try_clone_to_owned()?)?;
        let to_client = Sender::from_owned_fd(std::io::stdout().as_fd().try_clone_to_owned()?)?;
        let to_server = Sender::from_owned_fd(input.into())?;
        let from_server = Receiver::from_owned_fd(output.into())?;
        // If either side closes, both end.
        tokio::select! {
            ended = messages(from_client, to_server) => ended,
            ended = messages(from_server, to_client) => ended,
        }
    })
}

#[cfg(unix)]
async fn messages(
    mut from: impl tokio::io::AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
) -> Result<()> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const CHUNK: usize = 64 * 1024;
    let mut buffer = Vec::with_capacity(CHUNK);
    loop {
        if buffer.capacity() - buffer.len() < CHUNK / 4 {
            buffer.reserve(CHUNK.max(buffer.len()));
        }
        let known = buffer.len();
        if from.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        if let Some(end) = memchr::memrchr(b'\n', &buffer[known..]) {
            to.write_all(&buffer[..=known + end]).await?;
            buffer.drain(..=known + end);
        }
    }
}

/// Without such pipes, each direction is copied by a thread.
#[cfg(not(unix))]
fn pass(mut input: std::process::ChildStdin, mut output: std::process::ChildStdout) -> Result<()> {
    std::thread::spawn(move || std::io::copy(&mut std::io::stdin().lock(), &mut input));
    std::io::copy(&mut output, &mut std::io::stdout().lock())?;
    Ok(())
}
