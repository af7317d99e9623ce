//! One run of a program that is not `mcpzip`, bounded in time.

use std::fmt;
use std::io::{Read, Write as _};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its exit code; `None` when a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Runs `command` to its end with `input` on its stdin; one that takes longer than `limit` is killed.
pub(super) fn run(command: &mut Command, input: &str, limit: Duration) -> Result<Ended, String> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let program = command.get_program().to_owned();
    let mut child = command
        .spawn()
        .map_err(|error| format!("{} did not start: {error}", program.display()))?;
    let stdout = read_all(child.stdout.take().expect("stdout is piped"));
    let stderr = read_all(child.stderr.take().expect("stderr is piped"));
    // A program that needs no input may have ended already.
    let _ = child
        .stdin
        .take()
        .expect("stdin is piped")
        .write_all(input.as_bytes());
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if start.elapsed() > limit {
            // It may end by itself this very moment.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{command:?} took longer than {limit:?}"));
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let text = |reader: JoinHandle<String>| reader.join().expect("reading does not panic");
    Ok(Ended {
        code: status.code(),
        stdout: text(stdout),
        stderr: text(stderr),
    })
}

fn read_all(mut reader: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is worth printing.
        let _ = reader.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "code {:?}\nstdout: {}\nstderr: {}",
            self.code, self.stdout, self.stderr
        )
    }
}
