//! A client of `mcpzip serve`: it writes lines and waits for messages.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use super::message::{Message, start};
use super::setup::Home;

/// Time limit for anything in a test, far above the usual time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Time limit for an answer that must not wait for something that hangs. A busy machine may need most of it.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// A running `mcpzip serve`. It is killed on drop. A test that fails prints all output.
#[derive(Debug)]
pub(crate) struct Client {
    home: Arc<Home>,
    child: Child,
    stdin: Option<ChildStdin>,
    received: Arc<Received>,
    readers: Vec<JoinHandle<()>>,
    sent: Vec<String>,
    next_id: u64,
}

#[derive(Debug, Default)]
struct Received {
    state: Mutex<ReceivedState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ReceivedState {
    /// Lines of stdout that no test has taken yet. `all` has every line.
    waiting: Vec<Message>,
    all: Vec<String>,
    stderr: String,
    ended: bool,
    /// Whether reading stdout is paused.
    is_held: bool,
}

impl Client {
    #[track_caller]
    pub(super) fn start(home: Arc<Home>, mut command: Command) -> Self {
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let received = Arc::new(Received::default());
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = child.stderr.take().expect("stderr is piped");
        let readers = vec![
            std::thread::spawn({
                let received = received.clone();
                move || received.read_stdout(stdout)
            }),
            std::thread::spawn({
                let received = received.clone();
                move || received.read_stderr(stderr)
            }),
        ];
        let stdin = child.stdin.take();
        Self {
            home,
            child,
            stdin,
            received,
            readers,
            sent: Vec::new(),
            next_id: 1,
        }
    }

    /// Pauses reading stdout until [`Client::read_on`]. A read in progress still ends.
    pub(crate) fn stop_reading(&self) {
        self.received.state().is_held = true;
    }

    /// Continues reading stdout.
    pub(crate) fn read_on(&self) {
        self.received.state().is_held = false;
        self.received.changed.notify_all();
    }

    /// Opens the connection as a client of `version`. Returns the answer to `initialize`.
    #[track_caller]
    pub(crate) fn shake_hands(&mut self, version: &str) -> Message {
        self.shake_hands_as(version, "{}")
    }

    /// Opens the connection as a client with these capabilities, a JSON text.
    #[track_caller]
    pub(crate) fn shake_hands_as(&mut self, version: &str, capabilities: &str) -> Message {
        let info = r#"{"name":"test","version":"1"}"#;
        let id = self.request(
            "initialize",
            &format!(r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{info}}}"#),
        );
        let answer = self.answer(id);
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Opens the connection as a client with this name.
    #[track_caller]
    pub(crate) fn shake_hands_named(&mut self, name: &str) -> Message {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": name, "version": "1" },
        });
        let answer = self.ask("initialize", &params.to_string());
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Writes a line.
    #[track_caller]
    pub(crate) fn send(&mut self, line: &str) {
        self.send_bytes(format!("{line}\n").as_bytes());
    }

    /// Writes any bytes.
    #[track_caller]
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.sent.push(start(&String::from_utf8_lossy(
            &bytes[..bytes.len().min(4000)],
        )));
        let stdin = self.stdin.as_mut().expect("stdin was not closed");
        stdin
            .write_all(bytes)
            .and_then(|()| stdin.flush())
            .expect("mcpzip reads its stdin");
    }

    /// Sends a request with `params`, a JSON text. Returns its id.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: &str) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
        ));
        id
    }

    /// Sends a request and returns its answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &str) -> Message {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Sends a request of revision 2026-07-28 with these members in its `params`, and returns its answer.
    #[track_caller]
    pub(crate) fn ask_modern(&mut self, method: &str, members: &str) -> Message {
        let id = self.begin_modern(method, members, "{}", "");
        self.answer(id)
    }

    /// Sends a request of revision 2026-07-28 from a client with these capabilities, a JSON text. `meta` are additional
    /// members of its `_meta`.
    #[track_caller]
    pub(crate) fn begin_modern(
        &mut self,
        method: &str,
        members: &str,
        capabilities: &str,
        meta: &str,
    ) -> u64 {
        let comma = |text: &str| if text.is_empty() { "" } else { "," };
        let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        let declared = format!(r#""io.modelcontextprotocol/clientCapabilities":{capabilities}"#);
        let meta = format!("{{{version},{declared}{}{meta}}}", comma(meta));
        self.request(
            method,
            &format!(r#"{{{members}{}"_meta":{meta}}}"#, comma(members)),
        )
    }

    /// Starts a call of a meta-tool. `arguments` is a JSON text.
    #[track_caller]
    pub(crate) fn begin(&mut self, tool: &str, arguments: &str) -> u64 {
        self.request(
            "tools/call",
            &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#),
        )
    }

    /// Calls a meta-tool. `arguments` is a JSON text.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &str) -> Message {
        let id = self.begin(tool, arguments);
        self.answer(id)
    }

    /// Starts a call of a tool without arguments.
    #[track_caller]
    pub(crate) fn begin_execute(&mut self, name: &str) -> u64 {
        self.begin("execute_tool", &json!({ "name": name }).to_string())
    }

    /// Executes a tool without arguments.
    #[track_caller]
    pub(crate) fn execute(&mut self, name: &str) -> Message {
        let id = self.begin_execute(name);
        self.answer(id)
    }

    /// Executes a tool. `arguments` is a JSON text.
    #[track_caller]
    pub(crate) fn execute_with(&mut self, name: &str, arguments: &str) -> Message {
        self.call(
            "execute_tool",
            &format!(r#"{{"name":"{name}","arguments":{arguments}}}"#),
        )
    }

    /// Searches. Returns the text of the answer.
    #[track_caller]
    pub(crate) fn search(&mut self, query: &str) -> String {
        self.call("search_tools", &json!({ "query": query }).to_string())
            .text()
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub(crate) fn answer(&mut self, id: u64) -> Message {
        self.answer_to(&id.to_string())
    }

    /// Waits for the answer with this id, as it is written.
    #[track_caller]
    pub(crate) fn answer_to(&mut self, id: &str) -> Message {
        self.expect(&format!("an answer to {id}"), |message| {
            message.is_answer() && message.id() == id
        })
    }

    /// Waits for the first message that `wanted` accepts.
    #[track_caller]
    pub(crate) fn expect(&mut self, what: &str, wanted: impl Fn(&Message) -> bool) -> Message {
        // Messages are checked once. Otherwise a flood of messages would take the test longer than the program.
        let mut looked_at = 0;
        let message = self.received.wait(|state| {
            let new = state.waiting.get(looked_at..).unwrap_or_default();
            let found = new.iter().position(&wanted).map(|at| looked_at + at);
            looked_at = state.waiting.len();
            found.map(|at| state.waiting.remove(at))
        });
        message.unwrap_or_else(|| panic!("{what} did not come"))
    }

    /// Waits for the next message of any kind.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Message {
        self.expect("a message", |_| true)
    }

    /// Asserts that the answer to `first` came before that to `second`. Both must have been waited for.
    #[track_caller]
    pub(crate) fn check_order(&self, first: u64, second: u64) {
        let state = self.received.state();
        let position = |id: u64| {
            let mut messages = state.all.iter().map(|line| Message::new(line.clone()));
            messages
                .position(|message| message.is_answer() && message.id() == id.to_string())
                .expect("it was answered")
        };
        assert!(
            position(first) < position(second),
            "{first} had to wait for {second}"
        );
    }

    /// The messages that no test has taken.
    pub(crate) fn left_over(&self) -> Vec<Message> {
        self.received.state().waiting.clone()
    }

    /// Waits until stderr contains this text.
    #[track_caller]
    pub(crate) fn wait_for_stderr(&self, text: &str) {
        let found = self
            .received
            .wait(|state| state.stderr.contains(text).then_some(()));
        found.unwrap_or_else(|| panic!("stderr never said `{text}`"));
    }

    /// The output on stderr so far.
    pub(crate) fn stderr(&self) -> String {
        self.received.state().stderr.clone()
    }

    /// The output on stdout so far.
    pub(crate) fn stdout(&self) -> String {
        self.received.state().all.join("\n")
    }

    /// The process id.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The home of the process.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Closes stdin.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal to the process.
    #[cfg(unix)]
    #[track_caller]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        super::process::signal(self.child.id(), signal);
    }

    /// Sends a signal to the process if it is still running.
    #[cfg(unix)]
    #[track_caller]
    pub(crate) fn try_signal(&mut self, signal: rustix::process::Signal) {
        if self.child.try_wait().expect("it is our child").is_none() {
            super::process::signal(self.child.id(), signal);
        }
    }

    /// Kills the process.
    #[track_caller]
    #[cfg(windows)]
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it is our child");
    }

    /// Waits for the end of the process and of its output.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let status = until("mcpzip to end", || {
            self.child.try_wait().expect("it is our child")
        });
        self.received
            .wait(|state| state.ended.then_some(()))
            .expect("stdout ends with the process");
        status
    }

    /// Closes stdin and waits for a successful exit.
    #[track_caller]
    pub(crate) fn finish(mut self) {
        self.close_stdin();
        let status = self.wait();
        assert!(status.success(), "{status}");
    }
}

impl Received {
    fn state(&self) -> MutexGuard<'_, ReceivedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `found` returns a value.
    fn wait<T>(&self, mut found: impl FnMut(&mut ReceivedState) -> Option<T>) -> Option<T> {
        let start = Instant::now();
        let mut state = self.state();
        loop {
            if let Some(value) = found(&mut state) {
                return Some(value);
            }
            let left = PATIENCE
                .checked_sub(start.elapsed())
                .filter(|_| !state.ended)?;
            state = self
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn read_stdout(&self, stdout: impl Read) {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { break };
            let mut state = self.state();
            state.all.push(line.clone());
            state.waiting.push(Message::new(line));
            self.changed.notify_all();
            while state.is_held {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
        self.state().ended = true;
        self.changed.notify_all();
    }

    fn read_stderr(&self, mut stderr: impl Read) {
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = stderr.read(&mut chunk) {
            self.state()
                .stderr
                .push_str(&String::from_utf8_lossy(&chunk[..length]));
            self.changed.notify_all();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.read_on();
        self.stdin = None;
        // The test may have ended the process already.
        let _ = self.child.kill();
        let status = self.child.wait();
        if std::thread::panicking() {
            let state = self.received.state();
            let lines: Vec<String> = state.all.iter().map(|line| start(line)).collect();
            eprintln!(
                "=== sent\n{}\n=== received\n{}\n=== stderr\n{}\n=== servers\n{}=== files\n{}\n=== ended with {status:?}",
                self.sent.join(""),
                lines.join("\n"),
                state.stderr,
                self.home.logs(),
                self.home.listing(),
            );
            return;
        }
        for reader in self.readers.drain(..) {
            // A separate test finds processes that keep the pipe open. This must not hang.
            if reader.is_finished() {
                reader.join().expect("reading does not panic");
            }
        }
    }
}

/// Waits until `condition` returns a value.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
