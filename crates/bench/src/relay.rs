//! The minimal relay: the floor for whatever stands between a client and a server and passes whole messages on.
//!
//! It looks at nothing but line ends. A message is passed on when it is whole, those that came together in one write, as
//! a proxy must that may drop or answer one; passing half messages on would be faster for large ones, and of no use.

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
    // It has seen the end of its input; what it does then is not ours to wait for.
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
        // Either end that closes is the end of both.
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

/// Without such pipes each direction is a thread that copies.
#[cfg(not(unix))]
fn pass(mut input: std::process::ChildStdin, mut output: std::process::ChildStdout) -> Result<()> {
    std::thread::spawn(move || std::io::copy(&mut std::io::stdin().lock(), &mut input));
    std::io::copy(&mut output, &mut std::io::stdout().lock())?;
    Ok(())
}
