//! A scripted MCP server on stdin and stdout, for tests: it answers, stalls, fails, vanishes or floods as it is told.
//!
//! `fake_server SCRIPT LOG` reads what to do from the JSON file `SCRIPT` and appends to `LOG` one line per start and per
//! received message. A script is an object; every member may be left out:
//!
//! - `tools`, `prompts`, `resources`, `templates`: the entries of these lists, sent in their own bytes; `page_size`: how
//!   many there are on a page
//! - `version`: the protocol revision to agree on; `modern`: refuse `initialize` and serve 2026-07-28 only
//! - `instructions`, `capabilities`: what `initialize` or `server/discover` says; without the second, what there are lists of
//! - `start`: steps before anything is read; `end`: steps at the end of stdin
//! - `methods`, `calls`, `gets`, `reads`: steps by method, by tool name, by prompt name and by URI
//! - `ignore_term`: whether SIGTERM is ignored
//!
//! Steps run one after the other, those of each request on a thread of their own. In texts, `$id` stands for the
//! request's id, `$token` for its progress token, `$params` for its parameters, as they came, and `$answer` for what the
//! client last answered to a request of the server's. A step is an object with one member, or a word; [`Step`] has them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

/// How long a step waits for the client at most.
const PATIENCE: Duration = Duration::from_secs(20);

/// The argument of one that does nothing for long but hold a lock, on the file `LOG.alive`.
const LINGER: &str = "linger";

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Script {
    tools: Vec<Box<RawValue>>,
    prompts: Vec<Box<RawValue>>,
    resources: Vec<Box<RawValue>>,
    templates: Vec<Box<RawValue>>,
    page_size: Option<usize>,
    version: Option<String>,
    modern: bool,
    instructions: Option<String>,
    capabilities: Option<Box<RawValue>>,
    start: Vec<Step>,
    end: Vec<Step>,
    methods: HashMap<String, Vec<Step>>,
    calls: HashMap<String, Vec<Step>>,
    gets: HashMap<String, Vec<Step>>,
    reads: HashMap<String, Vec<Step>>,
    ignore_term: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    /// Answers with a result, in its own bytes.
    Result(Box<RawValue>),
    /// Answers with a JSON-RPC error object, in its own bytes.
    Error(Box<RawValue>),
    /// Answers with the request's `params`, as they came, in `structuredContent`.
    Echo,
    /// Answers with what it can notice of whom it works for: an object of its process id, its directory, `PATH` and other variables.
    Surroundings,
    /// Answers with how often the process has run this step, which is all that it keeps in memory.
    Count,
    /// Answers with the argument `result`, in its own bytes.
    Given,
    /// Waits so many milliseconds.
    Sleep(u64),
    /// Never goes on.
    Hang,
    /// Writes a line.
    Line(String),
    /// Writes a text without a line end.
    Part(String),
    /// Writes bytes given in hexadecimal digits.
    Hex(String),
    /// Writes the first text, so many times `x`, and the second text with a line end.
    Fill(String, usize, String),
    /// Writes so many bytes to stderr, in lines.
    FloodStderr(usize),
    /// Writes a line to stderr.
    Say(String),
    /// Appends a line to the log.
    Note(String),
    /// Ends the process.
    Exit(i32),
    /// Closes stdout.
    CloseStdout,
    /// Reads nothing more from stdin.
    Deafen,
    /// Has other tools from now on, and says so.
    ChangeTools(Vec<Box<RawValue>>),
    /// Has other `prompts`, `resources` or `templates` from now on, and says so of the first two.
    Change(String, Vec<Box<RawValue>>),
    /// Sends a `ping` and waits for its answer.
    Ping(String),
    /// Sends a request, by name, method and parameters, and waits for its answer.
    Ask(String, String, Box<RawValue>),
    /// Runs the first steps where the parameters hold this text, else the others.
    IfParams(String, Vec<Step>, Vec<Step>),
    /// Waits until the request was cancelled.
    AwaitCancel,
    /// Starts a process that ignores signals and keeps our stdout.
    Fork,
    /// Runs the first steps while the log has at most so many lines with the text, then the others.
    UpTo(usize, String, Vec<Step>, Vec<Step>),
}

/// What the process can notice of whom it works for.
fn surroundings() -> io::Result<serde_json::Value> {
    let variables: HashMap<String, String> = std::env::vars().collect();
    Ok(serde_json::json!({
        "process": std::process::id(),
        "directory": std::env::current_dir()?,
        "variables": variables,
    }))
}

#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    uri: Option<String>,
    cursor: Option<String>,
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

/// The parameters of a call that gives its own result.
#[derive(Debug, Deserialize)]
struct Given<'a> {
    #[serde(borrow)]
    arguments: GivenArguments<'a>,
}

#[derive(Debug, Deserialize)]
struct GivenArguments<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

#[derive(Debug, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

/// A request that steps are run for; empty texts outside of one.
#[derive(Debug, Default)]
struct Request {
    id: String,
    token: String,
    params: String,
    answer: RefCell<String>,
}

struct Server {
    script: &'static Script,
    /// The lists as they are now, by the member of their results.
    lists: Mutex<HashMap<&'static str, Vec<Box<RawValue>>>>,
    log: Mutex<File>,
    log_path: String,
    /// Ids of answered and of cancelled requests, with the answers.
    heard: Mutex<HashMap<String, String>>,
    hearing: Condvar,
    deaf: AtomicBool,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [program, script_path, log_path, rest @ ..] = &arguments[..] else {
        return Err("usage: fake_server SCRIPT LOG".into());
    };
    // It is needed as long as the process lives.
    let script: &'static Script = Box::leak(Box::new(serde_json::from_str(
        &std::fs::read_to_string(script_path)?,
    )?));
    if script.ignore_term && rest.is_empty() {
        ignore_term(program, script_path, log_path)?;
    }
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log_path)?;
    if rest == [LINGER] {
        // The system lets go of it with the process, whatever ends that.
        let alive = File::create(format!("{log_path}.alive"))?;
        alive.lock()?;
        writeln!(&log, "lingering")?;
        std::thread::sleep(Duration::from_secs(600));
        return Ok(ExitCode::SUCCESS);
    }
    let server = Arc::new(Server {
        script,
        lists: Mutex::new(HashMap::from([
            ("tools", script.tools.clone()),
            ("prompts", script.prompts.clone()),
            ("resources", script.resources.clone()),
            ("resourceTemplates", script.templates.clone()),
        ])),
        log: Mutex::new(log),
        log_path: log_path.clone(),
        heard: Mutex::default(),
        hearing: Condvar::new(),
        deaf: AtomicBool::new(false),
    });
    server.note(&format!("start {}", std::process::id()));
    server.run(&script.start, &Request::default())?;
    for line in io::stdin().lock().lines() {
        server.receive(&line?);
        // The step runs on the thread of its request.
        std::thread::sleep(if script.calls.contains_key("deafen") {
            Duration::from_millis(20)
        } else {
            Duration::ZERO
        });
        while server.deaf.load(Ordering::Relaxed) {
            std::thread::park();
        }
    }
    server.note("end of input");
    server.run(&script.end, &Request::default())?;
    Ok(ExitCode::SUCCESS)
}

/// Starts over with SIGTERM ignored: a shell can ask for that, and what is ignored stays so in the program it becomes.
#[cfg(unix)]
fn ignore_term(program: &str, script: &str, log: &str) -> io::Result<()> {
    use std::os::unix::process::CommandExt as _;
    let become_us = r#"trap '' TERM; exec "$0" "$@""#;
    Err(Command::new("sh")
        .args(["-c", become_us, program, script, log, "ignoring"])
        .exec())
}

#[cfg(not(unix))]
fn ignore_term(_program: &str, _script: &str, _log: &str) -> io::Result<()> {
    Ok(())
}

/// A process that outlives us by far, unless somebody ends it.
#[cfg(unix)]
fn lingering() -> io::Result<Command> {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' TERM HUP INT; sleep 600; sleep 600"]);
    Ok(command)
}

#[cfg(not(unix))]
fn lingering() -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args().skip(1)).arg(LINGER);
    Ok(command)
}

impl Server {
    fn receive(self: &Arc<Self>, line: &str) {
        self.note(&format!("< {line}"));
        let Ok(message) = serde_json::from_str::<Message<'_>>(line) else {
            return;
        };
        let params: Params<'_> = message
            .params
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        let id = message.id.map(|id| id.get().to_owned());
        match (message.method, id) {
            (Some(method), None) => {
                if let Some(id) = params
                    .request_id
                    .filter(|_| method == "notifications/cancelled")
                {
                    self.hear(id.get(), "");
                }
            }
            (None, Some(id)) => self.hear(
                &id,
                message.result.or(message.error).map_or("", RawValue::get),
            ),
            (None, None) => {}
            (Some(method), Some(id)) => {
                let token = params
                    .meta
                    .as_ref()
                    .and_then(|meta| meta.token)
                    .map_or("null", RawValue::get)
                    .to_owned();
                let params_text = message.params.map_or("{}", RawValue::get).to_owned();
                let request = Request {
                    id,
                    token,
                    params: params_text,
                    answer: RefCell::default(),
                };
                self.answer(&method, &params, request);
            }
        }
    }

    fn answer(self: &Arc<Self>, method: &str, params: &Params<'_>, request: Request) {
        let name: String = params
            .name
            .and_then(|name| serde_json::from_str(name.get()).ok())
            .unwrap_or_default();
        let scripted = match method {
            "tools/call" => self.script.calls.get(&name),
            "prompts/get" if self.script.gets.contains_key(&name) => self.script.gets.get(&name),
            "resources/read"
                if params
                    .uri
                    .as_ref()
                    .is_some_and(|uri| self.script.reads.contains_key(uri)) =>
            {
                params
                    .uri
                    .as_ref()
                    .and_then(|uri| self.script.reads.get(uri))
            }
            method => self.script.methods.get(method),
        };
        if let Some(steps) = scripted {
            let server = self.clone();
            std::thread::spawn(move || server.run(steps, &request));
            return;
        }
        let stamped = params
            .meta
            .as_ref()
            .is_some_and(|meta| meta.version.as_deref() == Some("2026-07-28"));
        let outcome = match method {
            _ if self.script.modern && !stamped => Err(
                r#"{"code":-32022,"message":"unsupported","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}"#
                    .to_owned(),
            ),
            "initialize" => Ok(self.introduction()),
            "server/discover" if self.script.modern => Ok(format!(
                r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}"#,
                self.capabilities()
            )),
            "ping" | "logging/setLevel" => Ok("{}".to_owned()),
            "tools/list" => Ok(self.page("tools", params.cursor.as_deref())),
            "prompts/list" if self.has("prompts") => Ok(self.page("prompts", params.cursor.as_deref())),
            "resources/list" if self.has("resources") => Ok(self.page("resources", params.cursor.as_deref())),
            "resources/templates/list" if self.has("resources") => {
                Ok(self.page("resourceTemplates", params.cursor.as_deref()))
            }
            "resources/subscribe" | "resources/unsubscribe" if self.has("resources") => Ok("{}".to_owned()),
            "resources/read" if self.has("resources") => Err(r#"{"code":-32002,"message":"no such resource"}"#.to_owned()),
            _ => Err(r#"{"code":-32601,"message":"unknown method"}"#.to_owned()),
        };
        let member = if outcome.is_ok() { "result" } else { "error" };
        let (Ok(payload) | Err(payload)) = outcome;
        // A client that is gone needs no answer.
        let _ = self.write(
            &format!(
                r#"{{"jsonrpc":"2.0","id":{},"{member}":{payload}}}"#,
                request.id
            ),
            true,
        );
    }

    fn introduction(&self) -> String {
        let version = self.script.version.as_deref().unwrap_or("2025-11-25");
        let instructions = self.script.instructions.as_ref().map(|text| {
            format!(
                r#","instructions":{}"#,
                serde_json::to_string(text).expect("a text is JSON")
            )
        });
        format!(
            r#"{{"protocolVersion":"{version}","capabilities":{},"serverInfo":{{"name":"fake","version":"1"}}{}}}"#,
            self.capabilities(),
            instructions.unwrap_or_default()
        )
    }

    fn capabilities(&self) -> String {
        if let Some(capabilities) = &self.script.capabilities {
            return capabilities.get().to_owned();
        }
        let prompts = if self.has("prompts") {
            r#","prompts":{"listChanged":true}"#
        } else {
            ""
        };
        let resources = if self.has("resources") {
            r#","resources":{"subscribe":true,"listChanged":true}"#
        } else {
            ""
        };
        let logging = if self.script.modern {
            ""
        } else {
            r#","logging":{}"#
        };
        format!(r#"{{"tools":{{"listChanged":true}}{logging}{prompts}{resources}}}"#)
    }

    /// Whether the script has prompts, or resources or templates.
    fn has(&self, feature: &str) -> bool {
        match feature {
            "prompts" => !self.script.prompts.is_empty(),
            _ => !self.script.resources.is_empty() || !self.script.templates.is_empty(),
        }
    }

    fn page(&self, list: &str, cursor: Option<&str>) -> String {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let all = &lists[list];
        let start = cursor
            .and_then(|cursor| cursor.parse().ok())
            .unwrap_or(0)
            .min(all.len());
        let end = self
            .script
            .page_size
            .map_or(all.len(), |size| (start + size).min(all.len()));
        let entries: Vec<&str> = all[start..end].iter().map(|entry| entry.get()).collect();
        let next = if end < all.len() {
            format!(r#","nextCursor":"{end}""#)
        } else {
            String::new()
        };
        let modern = if self.script.modern {
            r#""resultType":"complete","ttlMs":0,"cacheScope":"private","#
        } else {
            ""
        };
        format!(r#"{{{modern}"{list}":[{}]{next}}}"#, entries.join(","))
    }

    fn run(&self, steps: &[Step], request: &Request) -> io::Result<()> {
        steps.iter().try_for_each(|step| self.step(step, request))
    }

    fn step(&self, step: &Step, request: &Request) -> io::Result<()> {
        let id = &request.id;
        let fill_in = |text: &str| {
            let text = text
                .replace("$id", id)
                .replace("$token", &request.token)
                .replace("$params", &request.params);
            text.replace("$answer", &request.answer.borrow())
        };
        match step {
            Step::Result(raw) => {
                self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, raw.get()), true)?;
            }
            Step::Error(raw) => self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, raw.get()), true)?,
            Step::Echo => self.write(
                &fill_in(r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[],"structuredContent":$params}}"#),
                true,
            )?,
            Step::Surroundings => {
                let text = serde_json::to_string(&surroundings()?.to_string())?;
                self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{text}}}]}}}}"#), true)?;
            }
            Step::Count => {
                static COUNT: AtomicU64 = AtomicU64::new(0);
                let count = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
                self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{count}"}}]}}}}"#), true)?;
            }
            Step::Given => {
                let params: Given<'_> = serde_json::from_str(&request.params)?;
                let result = params.arguments.result.get();
                self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#), true)?;
            }
            Step::Sleep(milliseconds) => std::thread::sleep(Duration::from_millis(*milliseconds)),
            Step::Hang => loop {
                std::thread::park();
            },
            Step::Line(text) => self.write(&fill_in(text), true)?,
            Step::Part(text) => self.write(&fill_in(text), false)?,
            Step::Hex(digits) => self.write_bytes(&bytes_of(digits))?,
            Step::Fill(before, count, after) => {
                self.write(&format!("{}{}{}", fill_in(before), "x".repeat(*count), fill_in(after)), true)?;
            }
            Step::FloodStderr(count) => {
                let line = [b"e".repeat(199).as_slice(), b"\n"].concat();
                let mut stderr = io::stderr().lock();
                (0..count.div_ceil(200)).try_for_each(|_| stderr.write_all(&line))?;
            }
            Step::Say(text) => writeln!(io::stderr(), "{text}")?,
            Step::Note(text) => self.note(&fill_in(text)),
            Step::Exit(code) => std::process::exit(*code),
            Step::CloseStdout => close_stdout()?,
            Step::Deafen => self.deaf.store(true, Ordering::Relaxed),
            Step::ChangeTools(tools) => {
                self.set("tools", tools);
                self.write(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, true)?;
            }
            Step::Change(list, entries) => {
                let member = match list.as_str() {
                    "prompts" => "prompts",
                    "resources" => "resources",
                    _ => "resourceTemplates",
                };
                self.set(member, entries);
                if member != "resourceTemplates" {
                    self.write(&format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#), true)?;
                }
            }
            Step::Ping(id) => {
                self.write(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#), true)?;
                let _ = self.await_heard(&format!("\"{id}\""));
            }
            Step::Ask(name, method, params) => {
                let params = fill_in(params.get());
                let id = format!("{name}-{id}");
                let message = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}","params":{params}}}"#);
                self.write(&message, true)?;
                *request.answer.borrow_mut() = self.await_heard(&format!("\"{id}\""));
            }
            Step::IfParams(text, then, otherwise) => {
                self.run(if request.params.contains(text.as_str()) { then } else { otherwise }, request)?;
            }
            Step::AwaitCancel => _ = self.await_heard(id),
            Step::Fork => _ = lingering()?.stdin(Stdio::null()).spawn()?,
            Step::UpTo(count, text, first, then) => {
                let mut log = String::new();
                File::open(&self.log_path)?.read_to_string(&mut log)?;
                let seen = log.lines().filter(|line| line.contains(text.as_str())).count();
                self.run(if seen <= *count { first } else { then }, request)?;
            }
        }
        Ok(())
    }

    fn set(&self, list: &'static str, entries: &[Box<RawValue>]) {
        self.lists
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(list, entries.to_vec());
    }

    fn write(&self, text: &str, ends_line: bool) -> io::Result<()> {
        let line = if ends_line {
            format!("{text}\n")
        } else {
            text.to_owned()
        };
        self.write_bytes(line.as_bytes())
    }

    fn write_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    fn note(&self, text: &str) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // A test whose directory is gone reads no log.
        let _ = log.write_all(format!("{text}\n").as_bytes());
    }

    fn hear(&self, id: &str, answer: &str) {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.to_owned(), answer.to_owned());
        self.hearing.notify_all();
    }

    /// Waits until `id` was answered or cancelled, and gives the answer.
    fn await_heard(&self, id: &str) -> String {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .hearing
            .wait_timeout_while(heard, PATIENCE, |heard| !heard.contains_key(id));
        let answer = waited.ok().and_then(|(mut heard, _)| heard.remove(id));
        self.note(&format!(
            "{} {id}",
            if answer.is_some() {
                "heard"
            } else {
                "never heard"
            }
        ));
        answer.unwrap_or_default()
    }
}

fn bytes_of(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
            .unwrap_or(0)
    };
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, next| byte << 4 | digit(*next)))
        .collect()
}

#[cfg(unix)]
fn close_stdout() -> io::Result<()> {
    // The pipe ends with its last handle; there is no closing a standard stream itself.
    Ok(rustix::stdio::dup2_stdout(File::open("/dev/null")?)?)
}

#[cfg(not(unix))]
fn close_stdout() -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
