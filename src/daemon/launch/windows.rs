//! The daemon makes its pipe itself, and the starter waits for it.

use std::io;
use std::os::windows::process::CommandExt as _;
use std::process::{Command, Stdio};

use filedescriptor::{FileDescriptor, StdioDescriptor};

use crate::config::{Environment, Paths};
use crate::daemon::endpoint::Listener;
use crate::daemon::socket_location::SocketLocation;

/// `DETACHED_PROCESS` and `CREATE_NEW_PROCESS_GROUP`: no console, and no signals of the client's.
const DETACHED: u32 = 0x0000_0208;
/// `CREATE_BREAKAWAY_FROM_JOB`: the end of a client's job does not end the daemon.
const OWN_JOB: u32 = 0x0100_0000;

/// Starts a daemon. Its pipe exists some time later. The caller must hold the lock.
pub(in crate::daemon) fn start(
    _: &SocketLocation,
    paths: &Paths,
    environment: &Environment,
) -> Result<(), super::Error> {
    keep_stdio()?;
    let command = |flags| -> io::Result<Command> {
        let mut command = super::command(paths, environment)?;
        command.stdin(Stdio::null()).creation_flags(flags);
        Ok(command)
    };
    // The job of some clients forbids it. Then the daemon ends with that client, and another one takes over.
    if command(DETACHED | OWN_JOB)?.spawn().is_err() {
        command(DETACHED)?.spawn()?;
    }
    Ok(())
}

/// Replaces stdin, stdout and stderr of this process by handles that a daemon does not inherit: it would keep the client's pipes open.
fn keep_stdio() -> io::Result<()> {
    fn keep(
        stream: &impl filedescriptor::AsRawFileDescriptor,
        which: StdioDescriptor,
    ) -> io::Result<()> {
        // The old handle is closed.
        FileDescriptor::redirect_stdio(stream, which)
            .map(drop)
            .map_err(io::Error::other)
    }
    keep(&io::stdin(), StdioDescriptor::Stdin)?;
    keep(&io::stdout(), StdioDescriptor::Stdout)?;
    keep(&io::stderr(), StdioDescriptor::Stderr)
}

/// A detached process has nothing to leave.
pub(in crate::daemon) fn detach(_: &Environment) -> io::Result<()> {
    Ok(())
}

/// Windows passes no listener.
pub(in crate::daemon) fn inherited() -> io::Result<Option<Listener>> {
    Ok(None)
}
