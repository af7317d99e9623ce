//! A program with an MCP client on its stdin and stdout.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use memchr::{memchr, memchr_iter, memmem};
use serde_json::Value;

/// Time limit for any answer. A program that exceeds it is killed, and the run fails.
const PATIENCE: Duration = Duration::from_secs(60);

const INITIALIZE: &str = r#""method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcpzip-bench","version":"1"}}"#;
const INITIALIZED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

/// A running program, killed on drop.
#[derive(Debug)]
pub(crate) struct Peer {
    name: String,
    child: Arc<Mutex<Child>>,
    id: u32,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    buffer: Vec<u8>,
    /// The unread bytes of the buffer.
    pending: std::ops::Range<usize>,
    next_id: u64,
    request: Vec<u8>,
    started: Instant,
    waiting: Arc<Mutex<Option<Instant>>>,
}

/// A request without its id, so that it can be sent many times.
#[derive(Debug, Clone)]
pub(crate) struct Request(String);

impl Request {
    /// A tool call. `params` has the name and the arguments.
    pub(crate) fn call(params: &Value) -> Self {
        Self(format!(r#""method":"tools/call","params":{params}}}"#))
    }

    pub(crate) fn method(method: &str) -> Self {
        Self(format!(r#""method":"{method}"}}"#))
    }

    fn write(&self, id: u64, to: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        let _ = writeln!(to, r#"{{"jsonrpc":"2.0","id":{id},{}"#, self.0);
    }
}

impl Peer {
    pub(crate) fn start(name: &str, command: &mut Command, is_verbose: bool) -> Result<Self> {
        let stderr = if is_verbose {
            Stdio::inherit()
        } else {
            Stdio::null()
        };
        let started = Instant::now();
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn();
        let mut child = spawned.with_context(|| format!("starting {command:?}"))?;
        let (stdin, stdout) = (
            child.stdin.take(),
            child.stdout.take().context("stdout is piped")?,
        );
        let id = child.id();
        let child = Arc::new(Mutex::new(child));
        let waiting = Arc::new(Mutex::new(None));
        watch(&child, &waiting);
        Ok(Self {
            name: name.to_owned(),
            child,
            id,
            stdin,
            stdout,
            buffer: vec![0; 256 * 1024],
            pending: 0..0,
            next_id: 1,
            request: Vec::new(),
            started,
            waiting,
        })
    }

    /// The process id.
    pub(crate) fn process(&self) -> u32 {
        self.id
    }

    /// The time since its start.
    pub(crate) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Does the handshake. Returns the time from the program's start to the answer.
    pub(crate) fn initialize(&mut self) -> Result<Duration> {
        self.ask(&Request(format!("{INITIALIZE}}}")))?;
        let age = self.age();
        self.stdin
            .as_mut()
            .context("stdin is open")?
            .write_all(INITIALIZED)?;
        Ok(age)
    }

    /// Sends a request and returns the line of its answer. A failure is an error.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<&[u8]> {
        let line = self.try_ask(request)?;
        let (start, end) = (line.start, line.end);
        let name = self.name.clone();
        let line = &self.buffer[start..end];
        if is_failure(line) {
            bail!("{name} answered: {}", shown(line));
        }
        Ok(line)
    }

    /// Sends a request and returns the position of its answer in the buffer. A failure is an answer, too.
    fn try_ask(&mut self, request: &Request) -> Result<std::ops::Range<usize>> {
        let id = self.next_id;
        self.next_id += 1;
        self.request.clear();
        request.write(id, &mut self.request);
        self.set_waiting(true);
        self.stdin
            .as_mut()
            .context("stdin is open")?
            .write_all(&self.request)?;
        let wanted = format!(r#""id":{id}"#);
        loop {
            let line = self.line()?;
            if is_answer_to(&self.buffer[line.clone()], wanted.as_bytes()) {
                self.set_waiting(false);
                return Ok(line);
            }
        }
    }

    /// Repeats a request until the answer is good.
    pub(crate) fn ask_until_good(&mut self, request: &Request) -> Result<()> {
        let start = Instant::now();
        loop {
            let line = self.try_ask(request)?;
            if !is_failure(&self.buffer[line.clone()]) {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                bail!(
                    "{} has no answer but: {}",
                    self.name,
                    shown(&self.buffer[line])
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the text of an answer.
    pub(crate) fn text(&mut self, request: &Request) -> Result<String> {
        let answer: Value = serde_json::from_slice(self.ask(request)?)?;
        let content = answer["result"]["content"]
            .as_array()
            .context("no content")?;
        Ok(content
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"))
    }

    /// The time until the answer to a request.
    pub(crate) fn time(&mut self, request: &Request) -> Result<Duration> {
        let start = Instant::now();
        self.ask(request)?;
        Ok(start.elapsed())
    }

    /// Sends a request without waiting. Its answer is skipped later.
    pub(crate) fn send(&mut self, request: &Request) -> Result<()> {
        let mut line = Vec::new();
        request.write(self.next_id, &mut line);
        self.next_id += 1;
        Ok(self
            .stdin
            .as_mut()
            .context("stdin is open")?
            .write_all(&line)?)
    }

    /// Keeps `window` requests in flight, in rotation, until a time or a number is reached. Returns the number of
    /// answers. The requests in flight must fit into a pipe.
    pub(crate) fn flood(
        &mut self,
        requests: &[Request],
        window: usize,
        limit: Duration,
        most: usize,
    ) -> Result<usize> {
        let (mut sent, mut answered) = (0, 0);
        let start = Instant::now();
        let mut lines = Vec::new();
        let mut room = window.min(most);
        loop {
            lines.clear();
            for _ in 0..room {
                requests[sent % requests.len()].write(self.next_id, &mut lines);
                self.next_id += 1;
                sent += 1;
            }
            self.set_waiting(true);
            self.stdin
                .as_mut()
                .context("stdin is open")?
                .write_all(&lines)?;
            let came = self.answers()?;
            self.set_waiting(false);
            answered += came;
            // The time is checked once, because with two checks the second could end the sending with nothing in
            // flight.
            let is_over = start.elapsed() > limit;
            if answered == most || (is_over && answered == sent) {
                return Ok(answered);
            }
            room = if is_over { 0 } else { came.min(most - sent) };
        }
    }

    /// Sends all `requests` at once and waits for their answers. Returns the number of failures.
    pub(crate) fn burst(&mut self, requests: &[Request]) -> Result<usize> {
        let mut lines = Vec::new();
        for request in requests {
            request.write(self.next_id, &mut lines);
            self.next_id += 1;
        }
        self.set_waiting(true);
        self.stdin
            .as_mut()
            .context("stdin is open")?
            .write_all(&lines)?;
        let (mut answered, mut failed) = (0, 0);
        while answered < requests.len() {
            let line = self.line()?;
            let line = &self.buffer[line];
            // A message with a method is not an answer.
            if memmem::find(&line[..line.len().min(64)], br#""method":"#).is_none() {
                answered += 1;
                failed += usize::from(is_failure(line));
            }
        }
        self.set_waiting(false);
        Ok(failed)
    }

    /// Kills the program.
    pub(crate) fn kill(&mut self) {
        // The program may have ended already.
        let _ = locked(&self.child).kill();
    }

    /// Reads available bytes, at least one. Returns the number of complete answers.
    fn answers(&mut self) -> Result<usize> {
        if self.pending.is_empty() {
            self.pending = 0..0;
        }
        self.fill()?;
        let bytes = &self.buffer[self.pending.clone()];
        let (mut count, mut start) = (0, 0);
        for end in memchr_iter(b'\n', bytes) {
            let line = &bytes[start..end];
            if is_failure(line) {
                bail!("{} answered: {}", self.name, shown(line));
            }
            count += usize::from(memmem::find(line, b"\"result\"").is_some());
            start = end + 1;
        }
        self.pending.start += start;
        Ok(count)
    }

    /// The position of the next line in the buffer.
    fn line(&mut self) -> Result<std::ops::Range<usize>> {
        let mut scanned = self.pending.start;
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[scanned..self.pending.end]) {
                let line = self.pending.start..scanned + at;
                self.pending.start = line.end + 1;
                return Ok(line);
            }
            let known = self.pending.len();
            self.fill()?;
            scanned = self.pending.start + known;
        }
    }

    fn fill(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            self.pending = 0..0;
        } else if self.pending.end == self.buffer.len() {
            self.buffer.copy_within(self.pending.clone(), 0);
            self.pending = 0..self.pending.len();
            if self.pending.end > self.buffer.len() / 2 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        let length = self.stdout.read(&mut self.buffer[self.pending.end..])?;
        if length == 0 {
            bail!("{} has closed its output", self.name);
        }
        self.pending.end += length;
        Ok(())
    }

    fn set_waiting(&self, is_waiting: bool) {
        *locked(&self.waiting) = is_waiting.then(Instant::now);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let start = Instant::now();
        let mut child = locked(&self.child);
        while start.elapsed() < Duration::from_secs(3) {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // The program may have ended already.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Kills a program that does not answer in time, so that the run fails instead of hanging.
fn watch(child: &Arc<Mutex<Child>>, waiting: &Arc<Mutex<Option<Instant>>>) {
    let (child, waiting): (Weak<Mutex<Child>>, _) =
        (Arc::downgrade(child), Arc::downgrade(waiting));
    std::thread::spawn(move || {
        while let (Some(child), Some(waiting)) = (child.upgrade(), waiting.upgrade()) {
            if locked(&waiting).is_some_and(|since| since.elapsed() > PATIENCE) {
                // The program may have ended already.
                let _ = locked(&child).kill();
                return;
            }
            drop((child, waiting));
            std::thread::sleep(Duration::from_secs(1));
        }
    });
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a line is the answer with this id, which may be at either end of the line.
fn is_answer_to(line: &[u8], id: &[u8]) -> bool {
    let (start, end) = (
        &line[..line.len().min(96)],
        &line[line.len().saturating_sub(96)..],
    );
    let has = |part: &[u8]| {
        memmem::find_iter(part, id)
            .any(|at| !part.get(at + id.len()).is_some_and(u8::is_ascii_digit))
    };
    has(start) || has(end)
}

fn is_failure(line: &[u8]) -> bool {
    let ends = [
        &line[..line.len().min(256)],
        &line[line.len().saturating_sub(256)..],
    ];
    ends.iter().any(|part| {
        memmem::find(part, br#""isError":true"#).is_some()
            || memmem::find(part, br#""error":{"#).is_some()
    })
}

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(600)]).into_owned()
}
