//! The worker process that runs one script.
//!
//! The engine has no files, no network, no clock to wait for and no modules. A script reaches the parent only, by lines of
//! JSON on stdout, and gets lines of JSON on stdin.

use std::cell::Cell;
use std::io::{self, BufRead as _, Write as _};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Function, Object, Promise, Runtime, Value};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The name of the script in stacks: `MARK` of the parent without the colon.
const FILE: &str = "your-script";

const PRELUDE: &str = include_str!("prelude.js");

/// The limits of the engine, in bytes.
const MEMORY: usize = 128 * 1024 * 1024;
const STACK: usize = 256 * 1024;

/// The time that a script may compute, without the time that it waits for calls.
const COMPUTING: Duration = Duration::from_secs(2);

/// The limits that the system enforces: memory in bytes, processor time in seconds.
#[cfg(unix)]
const ADDRESS_SPACE: u64 = 1024 * 1024 * 1024;
#[cfg(unix)]
const PROCESSOR_SECONDS: u64 = 3;

/// The first line from the parent.
#[derive(Deserialize)]
struct Start {
    code: String,
    args: Option<Box<RawValue>>,
}

/// The time that the script has computed.
struct Clock {
    end: Cell<Instant>,
    left: Cell<Duration>,
    is_over: Cell<bool>,
}

impl Clock {
    fn start(&self) {
        self.end.set(Instant::now() + self.left.get());
    }

    fn stop(&self) {
        self.left
            .set(self.end.get().saturating_duration_since(Instant::now()));
    }
}

/// Runs the script on the first line of stdin.
///
/// # Errors
/// When stdin or stdout fails, or the engine cannot start.
pub(crate) fn run() -> io::Result<i32> {
    limit()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let start: Start = serde_json::from_str(&line)?;
    let clock = Rc::new(Clock {
        end: Cell::new(Instant::now()),
        left: Cell::new(COMPUTING),
        is_over: Cell::new(false),
    });
    let engine = |error: rquickjs::Error| io::Error::other(error.to_string());
    let runtime = Runtime::new().map_err(engine)?;
    runtime.set_memory_limit(MEMORY);
    runtime.set_max_stack_size(STACK);
    let watched = clock.clone();
    runtime.set_interrupt_handler(Some(Box::new(move || {
        let is_over = Instant::now() >= watched.end.get();
        if is_over {
            watched.is_over.set(true);
        }
        is_over
    })));
    let context = Context::full(&runtime).map_err(engine)?;
    context.with(|ctx| {
        let ended = Script {
            ctx: ctx.clone(),
            clock,
        }
        .run(&start);
        match ended {
            Ok(()) => Ok(0),
            Err(Stopped::Output(error)) => Err(error),
            Err(Stopped::Script { message, stack }) => {
                send(&failure(&message, &stack))?;
                Ok(0)
            }
        }
    })
}

/// Why a script ended without a message of its own.
enum Stopped {
    Script { message: String, stack: String },
    Output(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

struct Script<'js> {
    ctx: Ctx<'js>,
    clock: Rc<Clock>,
}

impl<'js> Script<'js> {
    fn run(&self, start: &Start) -> Result<(), Stopped> {
        let is_settled = Rc::new(Cell::new(false));
        let settled = is_settled.clone();
        let sender = Function::new(self.ctx.clone(), move |line: String| {
            settled.set(settled.get() || is_last(&line));
            // A broken pipe ends the process at the next read.
            let _ = send(&line);
        });
        self.clock.start();
        let prelude: Function<'js> = self.checked(self.ctx.eval(PRELUDE))?;
        let functions: Object<'js> =
            self.checked(sender.and_then(|sender| prelude.call((sender,))))?;
        let (deliver, pending, settle): (Function<'js>, Function<'js>, Function<'js>) = (
            self.checked(functions.get("deliver"))?,
            self.checked(functions.get("pending"))?,
            self.checked(functions.get("settle"))?,
        );
        if let Some(args) = &start.args {
            let args = self.checked(self.ctx.json_parse(args.get()))?;
            self.checked(self.ctx.globals().set("args", args))?;
        }
        let promise = self.begun(&start.code)?;
        self.checked(settle.call::<_, ()>((promise,)))?;
        let mut input = io::stdin().lock();
        for delivered in 0u64.. {
            self.jobs()?;
            self.clock.stop();
            if is_settled.get() {
                return Ok(());
            }
            if self.checked(pending.call::<_, usize>(()))? == 0 {
                return Err(Stopped::Script {
                    message: "the script waits for a promise that nothing settles".to_owned(),
                    stack: String::new(),
                });
            }
            // The parent asks the user about all calls that the script makes together, so it must know when there are no more.
            send(&format!(r#"{{"waits":{delivered}}}"#))?;
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                return Ok(());
            }
            self.clock.start();
            self.checked(deliver.call::<_, ()>((line,)))?;
        }
        Ok(())
    }

    /// Starts the script as a program, whose value is that of its last expression, or as the body of a function if it has a
    /// `return` outside of functions.
    fn begun(&self, code: &str) -> Result<Promise<'js>, Stopped> {
        if let Ok(promise) = self.evaluated(code) {
            return Ok(promise);
        }
        // Nothing has run: the code of a program fails inside its promise.
        if self.clock.is_over.get() {
            return Err(self.over());
        }
        drop(self.ctx.catch());
        // On one line, so that lines keep their numbers.
        let body = format!("(async () => {{{code}\n}})()");
        self.checked(self.evaluated(&body))
    }

    fn evaluated(&self, code: &str) -> rquickjs::Result<Promise<'js>> {
        let mut options = EvalOptions::default();
        options.strict = false;
        options.promise = true;
        options.filename = Some(FILE.to_owned());
        self.ctx.eval_with_options(code, options)
    }

    fn jobs(&self) -> Result<(), Stopped> {
        while self.ctx.execute_pending_job() {
            if self.clock.is_over.get() {
                break;
            }
        }
        match self.clock.is_over.get() {
            true => Err(self.over()),
            false => Ok(()),
        }
    }

    fn checked<T>(&self, result: rquickjs::Result<T>) -> Result<T, Stopped> {
        let error = match result {
            Ok(value) => return Ok(value),
            Err(_) if self.clock.is_over.get() => return Err(self.over()),
            Err(error) => error,
        };
        if !matches!(error, rquickjs::Error::Exception) {
            return Err(Stopped::Script {
                message: error.to_string(),
                stack: String::new(),
            });
        }
        let thrown = self.ctx.catch();
        let text = |key: &str| property(&thrown, key);
        Err(Stopped::Script {
            message: format!("{}: {}", text("name"), text("message")),
            stack: text("stack"),
        })
    }

    /// The script was interrupted; the exception of that has the line.
    fn over(&self) -> Stopped {
        Stopped::Script {
            message: format!("the script computed for more than {COMPUTING:?} and was ended"),
            stack: property(&self.ctx.catch(), "stack"),
        }
    }
}

fn property(thrown: &Value<'_>, key: &str) -> String {
    let object = thrown.as_object();
    object
        .and_then(|object| object.get::<_, String>(key).ok())
        .unwrap_or_default()
}

/// Whether a line to the parent ends the script.
fn is_last(line: &str) -> bool {
    line.starts_with(r#"{"done""#) || line.starts_with(r#"{"failed""#)
}

fn failure(message: &str, stack: &str) -> String {
    serde_json::json!({ "failed": message, "stack": stack }).to_string()
}

fn send(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(line.as_bytes())?;
    output.write_all(b"\n")?;
    output.flush()
}

#[cfg(unix)]
fn limit() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let to = |limit: u64| Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(Resource::As, to(ADDRESS_SPACE))?;
    setrlimit(Resource::Cpu, to(PROCESSOR_SECONDS))?;
    setrlimit(Resource::Core, to(0))?;
    Ok(())
}

#[cfg(not(unix))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "as on Unix; here the engine's limits and the parent's clock have to do"
)]
fn limit() -> io::Result<()> {
    Ok(())
}
