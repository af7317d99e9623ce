//! A yes-or-no question of a command that already waits for signals, so that Ctrl-C no longer ends it by default.

use std::io::Write;

use tokio::sync::oneshot;

use super::diagnostics::Exit;
use super::output::asked;
use crate::shutdown::{self, spawn_thread};

/// Asks the person at the terminal. Any answer other than yes, and the end of input, is no.
///
/// The answer is read on a thread of its own, because a read of the terminal may never end.
///
/// # Errors
/// When the answer cannot be read, or when a signal ends the command first.
pub(super) async fn agrees(question: &str) -> Result<bool, Exit> {
    let mut stderr = std::io::stderr();
    write!(stderr, "{} ", asked(question))?;
    stderr.flush()?;
    let (sender, answer) = oneshot::channel();
    spawn_thread("answer", move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line).map(|_| line);
        // Without a receiver a signal has ended the command.
        let _ = sender.send(read);
    })?;
    tokio::select! {
        answer = answer => {
            let line = answer.map_err(anyhow::Error::from)??;
            if line.is_empty() {
                writeln!(stderr)?;
            }
            Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
        }
        signal = shutdown::signal() => Err(Exit::interrupted(signal)),
    }
}
