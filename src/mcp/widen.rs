//! Pipes that are enlarged while large messages pass.
//!
//! A full or empty pipe ends a process's time slice; with a pipe sixteen times as large, a result of 10 MB takes two thirds of the time.
//! Pipes are not always large, because Linux limits the total size of a user's pipes and makes new ones tiny beyond it.

use std::time::Duration;

use tokio::io::{Chain, Stdin, Stdout, WriteHalf};
use tokio_util::io::StreamReader;

/// The size in bytes from which messages are large: that of four usual pipes.
pub(super) const LARGE: usize = 256 * 1024;

/// The wait for the next large message before a stream gets its usual size again.
pub(super) const FOLLOWING: Duration = Duration::from_millis(500);

/// A stream that may be a pipe.
pub(crate) trait Widen {
    /// Enlarges the pipe before large messages, or gives it its usual size after them. If the system refuses, it keeps its size.
    fn widen(&self, _is_large: bool) {}
}

impl Widen for Stdin {}
impl Widen for Stdout {}
impl<T, U> Widen for Chain<T, U> {}
impl<T> Widen for WriteHalf<T> {}
impl<S, B> Widen for StreamReader<S, B> {}

#[cfg(not(unix))]
impl Widen for tokio::process::ChildStdin {}
#[cfg(not(unix))]
impl Widen for tokio::process::ChildStdout {}

/// Streams that are pipes.
#[cfg(unix)]
mod pipes {
    use std::os::fd::AsFd;

    use tokio::net::UnixStream;
    use tokio::net::unix::pipe::{Receiver, Sender};
    use tokio::process::{ChildStdin, ChildStdout};

    use super::Widen;

    /// The size of an enlarged pipe in bytes, the maximum for unprivileged users on Linux.
    #[cfg(target_os = "linux")]
    const WIDE: usize = 1024 * 1024;
    /// The default size of a pipe on Linux, in bytes.
    #[cfg(target_os = "linux")]
    const NARROW: usize = 64 * 1024;

    fn resize(pipe: &impl AsFd, is_large: bool) {
        #[cfg(target_os = "linux")]
        {
            let size = if is_large { WIDE } else { NARROW };
            // A pipe keeps its size if the system refuses, or if it holds more than that.
            let _ = rustix::pipe::fcntl_setpipe_size(pipe.as_fd(), size);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (pipe, is_large);
    }

    macro_rules! pipes {
        ($($pipe:ty),*) => {$(
            impl Widen for $pipe {
                fn widen(&self, is_large: bool) {
                    resize(self, is_large);
                }
            }
        )*};
    }

    pipes!(Receiver, Sender, ChildStdin, ChildStdout);
    impl Widen for UnixStream {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::pipe::fcntl_getpipe_size;

    use super::*;

    #[tokio::test]
    async fn a_pipe_is_enlarged_and_gets_its_size_back() {
        let (near, far) = tokio::net::unix::pipe::pipe().unwrap();
        let before = fcntl_getpipe_size(&far).unwrap();
        for (pipe, is_large) in [
            (&near as &dyn Widen, true),
            (&far, true),
            (&far, false),
            (&near, false),
        ] {
            pipe.widen(is_large);
            let size = fcntl_getpipe_size(&far).unwrap();
            // A system may refuse it.
            assert!(size == before || size == if is_large { 1024 * 1024 } else { 64 * 1024 });
        }
    }
}
