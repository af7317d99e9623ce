//! Scripts: chains of calls that an agent writes as JavaScript, so that intermediate results never reach its model.
//!
//! A script is an untrusted program. It runs in a worker: this binary with a hidden command, in a process of its
//! own, with limits that the system enforces, an empty environment, and only its pipes open. Each call is a line to
//! the parent process, which decides whether to make it.
//!
//! *Never*: decides whether a call may be made; trusts a line of a worker.

#[cfg(feature = "cli")]
mod worker;

use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::executable;
use crate::mcp::object::quoted;
#[cfg(feature = "cli")]
pub(crate) use worker::run as run_worker;

/// The hidden command that runs one script.
pub(crate) const COMMAND: &str = "__script";

/// The text before a line of the script in a stack of the worker.
const MARK: &str = "your-script:";

/// The maximum length of a line of a worker and of an answer for it, in bytes.
const LONGEST: usize = 8 * 1024 * 1024;

/// The time in which a worker that waits for no call must write a line.
const SILENCE: Duration = Duration::from_secs(6);

/// The maximum number of a script's calls in flight.
const AT_ONCE: usize = 16;

/// The length of all that a script may log, in bytes.
const LONGEST_LOG: usize = 16 * 1024;

/// The number of scripts of one client, and of all clients, that run at once.
const OF_ONE_CLIENT: usize = 4;
const OF_ALL: usize = 32;

/// The scripts that run, by their client. One more than the limits permit is refused and never waits, so that nothing is
/// held up behind a script.
#[derive(Debug)]
pub(crate) struct Running {
    clients: Mutex<Vec<u64>>,
    figures: Arc<Figures>,
}

/// The figures of scripts.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// The number of those that run.
    pub(crate) running: AtomicUsize,
    /// How many had each end, in the order of [`End::ALL`].
    ends: [AtomicU64; End::ALL.len()],
}

/// The end of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It has a value.
    Answered,
    Failed,
    /// Its user is asked first, and the client repeats the request.
    Asked,
    /// Its request was cancelled, or its client left.
    Cancelled,
    /// It was not started, because too many were running.
    Refused,
}

impl End {
    const ALL: [Self; 5] = [
        Self::Answered,
        Self::Failed,
        Self::Asked,
        Self::Cancelled,
        Self::Refused,
    ];

    /// The word in metrics.
    fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Asked => "asked",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
        }
    }
}

/// A script that runs, until this is dropped.
pub(crate) struct Permit<'a> {
    running: &'a Running,
    client: u64,
    /// Its end; until it has one, that which dropping this means.
    pub(crate) end: End,
}

impl Figures {
    /// How many scripts had each end.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.ends.iter().map(|count| count.load(Relaxed));
        End::ALL.iter().map(|end| end.word()).zip(counts)
    }

    fn count(&self, end: End) {
        let at = End::ALL.iter().position(|known| *known == end);
        if let Some(count) = at.and_then(|at| self.ends.get(at)) {
            count.fetch_add(1, Relaxed);
        }
    }
}

impl Running {
    /// No scripts; those to come are counted in `figures`.
    pub(crate) fn new(figures: Arc<Figures>) -> Self {
        Self {
            clients: Mutex::default(),
            figures,
        }
    }

    /// A permit to run a script of `client`, or the reason why there is none.
    pub(crate) fn permit(&self, client: u64) -> Result<Permit<'_>, String> {
        let mut running = self.clients.lock();
        let own = running.iter().filter(|other| **other == client).count();
        if own >= OF_ONE_CLIENT || running.len() >= OF_ALL {
            self.figures.count(End::Refused);
            return Err(format!(
                "{own} scripts of this client and {} of all clients are running, and that is the limit: run this one when another has ended",
                running.len()
            ));
        }
        running.push(client);
        self.figures.running.fetch_add(1, Relaxed);
        Ok(Permit {
            running: self,
            client,
            end: End::Cancelled,
        })
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let figures = &self.running.figures;
        figures.count(self.end);
        figures.running.fetch_sub(1, Relaxed);
        let mut running = self.running.clients.lock();
        if let Some(at) = running.iter().position(|client| *client == self.client) {
            running.swap_remove(at);
        }
    }
}

/// The functions of a script that this process performs.
pub(crate) trait Host: Sync {
    /// Calls a tool. Returns its value as JSON, or the reason why there is none; `None` if the user must be asked first, by
    /// [`Self::ask`].
    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a RawValue,
    ) -> BoxFuture<'a, Result<Option<String>, String>>;

    /// Asks the user about the calls since the last question that could not be made without one.
    fn ask(&self) -> BoxFuture<'_, Consent>;

    /// Searches for tools. Returns the hits as JSON, or the reason why there are none.
    fn search<'a>(&'a self, need: &'a str) -> BoxFuture<'a, Result<String, String>>;
}

/// The answer to [`Host::ask`].
pub(crate) enum Consent {
    /// The calls can be made.
    Given,
    /// They fail for this reason.
    Refused(String),
    /// The script ends, and the host has an answer for its caller.
    Ended,
}

/// The limits of one script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The number of calls.
    pub(crate) calls: usize,
    /// The time from its start to its end.
    pub(crate) time: Duration,
}

/// A script that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The lines that it logged.
    pub(crate) log: Vec<String>,
    /// Its value as JSON, if it has one, or the reason why it failed.
    pub(crate) value: Result<Option<Box<RawValue>>, Fault>,
}

/// Why a script failed.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) message: String,
    /// The line of the script, from 1.
    pub(crate) line: Option<usize>,
}

impl Fault {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            line: None,
        }
    }
}

/// A line of a worker. Exactly one form has its key.
#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    call: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    search: Option<String>,
    log: Option<String>,
    /// The script waits for the answers to its calls, and has read so many.
    waits: Option<u64>,
    #[serde(default)]
    done: bool,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    failed: Option<String>,
    #[serde(default)]
    stack: String,
}

/// The part of a script's run that its lines change.
#[derive(Default)]
struct Progress {
    calls: AtomicUsize,
    log: Mutex<Vec<String>>,
    logged: AtomicUsize,
}

/// Runs a script to its end, with `args` as its variable of this name. It ends with this future, and so do its calls.
pub(crate) async fn run(
    code: &str,
    args: Option<&RawValue>,
    limits: Limits,
    host: &dyn Host,
) -> Ended {
    let progress = Progress::default();
    let start = match args {
        None => format!("{{\"code\":{}}}\n", quoted(code)),
        // JSON may have line breaks between its values.
        Some(args) => {
            let args = args.get().replace(['\n', '\r'], " ");
            format!("{{\"code\":{},\"args\":{args}}}\n", quoted(code))
        }
    };
    let value = match tokio::time::timeout(
        limits.time,
        conversation(start, limits, host, &progress),
    )
    .await
    {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => Err(Fault::new(format!("the script could not be run: {error}"))),
        Err(_) => Err(Fault::new(format!(
            "the script was ended after {:?}; pass a larger `timeout` to execute_tool, or do less in one script",
            limits.time
        ))),
    };
    Ended {
        log: progress.log.into_inner(),
        value: value.map_err(|fault| explained(fault, code)),
    }
}

type Value = Result<Option<Box<RawValue>>, Fault>;

/// Starts the worker with the line `start`, and exchanges lines with it.
async fn conversation(
    start: String,
    limits: Limits,
    host: &dyn Host,
    progress: &Progress,
) -> io::Result<Value> {
    let mut child = Command::from(executable::command()?)
        .arg(COMMAND)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = child.stdin.take().expect("stdin is piped");
    let output = child.stdout.take().expect("stdout is piped");
    let (to_worker, mut outgoing) = mpsc::unbounded_channel::<String>();
    let (lines, incoming) = mpsc::channel::<Vec<u8>>(AT_ONCE);
    let _ = to_worker.send(start);
    let write = async {
        while let Some(line) = outgoing.recv().await {
            // If the worker has ended, its output says so.
            let _ = input.write_all(line.as_bytes()).await;
        }
    };
    let read = async {
        let mut output = BufReader::new(output);
        loop {
            let mut line = Vec::new();
            let mut limited = (&mut output).take(LONGEST as u64 + 1);
            let length = limited.read_until(b'\n', &mut line).await;
            if !length.is_ok_and(|length| length > 0) || lines.send(line).await.is_err() {
                break;
            }
        }
        drop(lines);
    };
    let pumps = async {
        tokio::join!(write, read);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        value = answers(limits, host, progress, to_worker, incoming) => Ok(value),
        () = pumps => Ok(Err(died())),
    }
}

/// Answers the lines of a worker until its script has ended.
async fn answers(
    limits: Limits,
    host: &dyn Host,
    progress: &Progress,
    to_worker: mpsc::UnboundedSender<String>,
    mut incoming: mpsc::Receiver<Vec<u8>>,
) -> Value {
    let mut under_way = FuturesUnordered::new();
    let mut waiting = std::collections::VecDeque::new();
    // Calls that need a question, answers that were sent, and the number of them that the waiting worker had read.
    let (mut held, mut sent, mut read) = (Vec::new(), 0, None);
    loop {
        while under_way.len() < AT_ONCE
            && let Some(request) = waiting.pop_front()
        {
            under_way.push(answer(request, host));
        }
        let is_idle = under_way.is_empty();
        if is_idle && !held.is_empty() && read == Some(sent) {
            match host.ask().await {
                Consent::Given => waiting.extend(held.drain(..)),
                Consent::Refused(reason) => {
                    for (id, _) in held.drain(..) {
                        let _ = to_worker.send(failure(id, &reason));
                        sent += 1;
                    }
                }
                Consent::Ended => return Err(Fault::new("the user is asked first")),
            }
            continue;
        }
        let line = tokio::select! {
            line = incoming.recv() => line,
            Some(outcome) = under_way.next() => {
                match outcome {
                    Outcome::Line(line) => {
                        let _ = to_worker.send(line);
                        sent += 1;
                    }
                    Outcome::Held(request) => held.push(request),
                }
                continue;
            }
            () = tokio::time::sleep(SILENCE), if is_idle => {
                return Err(Fault::new("the script gave no sign of life while no call was in flight, and was ended"));
            }
        };
        let Some(line) = line else {
            return Err(died());
        };
        if line.len() > LONGEST {
            return Err(Fault::new(format!(
                "the script's value or the arguments of a call are larger than {} MB: return a part",
                LONGEST / 1024 / 1024
            )));
        }
        let Ok(message) = serde_json::from_slice::<Message<'_>>(&line) else {
            return Err(Fault::new("the worker wrote a line that is not a message"));
        };
        if message.done {
            return Ok(message.value.map(RawValue::to_owned));
        }
        if let Some(reason) = message.failed {
            let line = line_of(&message.stack);
            return Err(Fault {
                message: reason,
                line,
            });
        }
        if let Some(text) = message.log {
            progress.note(text);
            continue;
        }
        if let Some(answers) = message.waits {
            read = Some(answers);
            continue;
        }
        match requested(message, limits, progress) {
            Ok(request) => waiting.push_back(request),
            Err(fault) => return Err(fault),
        }
    }
}

/// A request of a script.
enum Asked {
    Call(String, Box<RawValue>),
    Search(String),
    /// The answer is this error.
    Refused(String),
}

fn requested(
    message: Message<'_>,
    limits: Limits,
    progress: &Progress,
) -> Result<(u64, Asked), Fault> {
    let Some(id) = message.id else {
        return Err(Fault::new("the worker wrote a line that is not a message"));
    };
    if progress.calls.fetch_add(1, Relaxed) >= limits.calls {
        return Err(Fault {
            message: format!(
                "the script made more than {} calls, searches among them: do less in one script",
                limits.calls
            ),
            line: None,
        });
    }
    Ok((
        id,
        match (message.call, message.search, message.arguments) {
            (Some(name), None, Some(arguments)) => Asked::Call(name, arguments.to_owned()),
            (None, Some(need), _) => Asked::Search(need),
            _ => Asked::Refused("a call has a name and an object of arguments".to_owned()),
        },
    ))
}

/// The outcome of a request.
enum Outcome {
    /// The line for the worker.
    Line(String),
    /// The user must be asked first.
    Held((u64, Asked)),
}

async fn answer((id, asked): (u64, Asked), host: &dyn Host) -> Outcome {
    let answer = match &asked {
        Asked::Call(name, arguments) => match host.call(name, arguments).await {
            Ok(Some(value)) => Ok(value),
            Ok(None) => return Outcome::Held((id, asked)),
            Err(reason) => Err(reason),
        },
        Asked::Search(need) => host.search(need).await,
        Asked::Refused(reason) => Err(reason.clone()),
    };
    let answer = answer.and_then(|value| match value.len() > LONGEST {
        false => Ok(value),
        true => Err(format!(
            "the answer has {} bytes, and a script takes {LONGEST} at most: ask the tool for less",
            value.len()
        )),
    });
    Outcome::Line(match answer {
        // A line of JSON has no line break outside of texts that matters: JSON may have them as whitespace.
        Ok(value) => format!(
            "{{\"id\":{id},\"value\":{}}}\n",
            value.replace(['\n', '\r'], " ")
        ),
        Err(reason) => failure(id, &reason),
    })
}

fn failure(id: u64, reason: &str) -> String {
    format!("{{\"id\":{id},\"error\":{}}}\n", quoted(reason))
}

impl Progress {
    /// Keeps a line of the log, as long as there is room.
    fn note(&self, text: String) {
        let before = self.logged.fetch_add(text.len() + 1, Relaxed);
        if before > LONGEST_LOG {
            return;
        }
        let room = LONGEST_LOG.saturating_sub(before);
        let kept: String = match text.len() <= room {
            true => text,
            false => format!(
                "{}… (the rest of the log was dropped)",
                text.chars().take(room).collect::<String>()
            ),
        };
        self.log.lock().push(kept);
    }
}

fn died() -> Fault {
    Fault::new(
        "the script's process was ended by the system: it needed too much memory or computed too long",
    )
}

/// The first line of the script in a stack.
fn line_of(stack: &str) -> Option<usize> {
    let (_, rest) = stack.split_once(MARK)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The fault with a sentence about types, if the code looks like TypeScript.
fn explained(mut fault: Fault, code: &str) -> Fault {
    const TYPES: &[&str] = &[
        ": string",
        ": number",
        ": boolean",
        ": any",
        ": unknown",
        ": Record<",
        ": Array<",
        "interface ",
        " as ",
        "[] =",
        "enum ",
        "type ",
    ];
    if fault.message.starts_with("SyntaxError") && TYPES.iter().any(|sign| code.contains(sign)) {
        fault
            .message
            .push_str(". This looks like TypeScript: write plain JavaScript, without types");
    }
    fault
}
