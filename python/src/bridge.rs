//! Between the tasks of the runtime and the event loop of Python.
//!
//! *Invariant*: of the threads of this package, one alone takes Python's lock, and it has ended before the interpreter ends. A thread that
//! holds the lock at that moment would abort the process.
//!
//! A fork copies one thread of a process, and locks as they are, held or not. So a new process has a runtime and a thread of its own, and
//! takes no lock of the process that it was forked from.

use std::future::Future;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use pyo3::prelude::*;
use pyo3::types::PyCFunction;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

type Job = Box<dyn FnOnce(Python<'_>) + Send>;

/// The parts of one process.
struct Process {
    id: u32,
    /// The thread that has Python's lock for its jobs, until the interpreter ends.
    thread: Mutex<Option<(Sender<Job>, JoinHandle<()>)>>,
    runtime: OnceLock<Runtime>,
    /// Those of a process that was forked from this one.
    forked: OnceLock<Box<Process>>,
}

static FIRST: OnceLock<Process> = OnceLock::new();

impl Process {
    /// The parts of this process.
    fn current() -> &'static Self {
        let id = std::process::id();
        let mut process = FIRST.get_or_init(|| Self::new(id));
        while process.id != id {
            process = process.forked.get_or_init(|| Box::new(Self::new(id)));
        }
        process
    }

    /// Those that [`Self::current`] has made.
    fn known() -> Option<&'static Self> {
        let id = std::process::id();
        let mut process = FIRST.get()?;
        while process.id != id {
            process = process.forked.get()?;
        }
        Some(process)
    }

    /// Takes the thread, which ends when its sender is dropped.
    fn take_thread(&self) -> Option<(Sender<Job>, JoinHandle<()>)> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.take()
    }

    fn new(id: u32) -> Self {
        let (sender, jobs) = channel::<Job>();
        let run = move || jobs.iter().for_each(|job| Python::attach(job));
        let thread = std::thread::Builder::new()
            .name("mcpzip-python".to_owned())
            .spawn(run);
        Self {
            id,
            // Without a thread, nothing is answered, as while the interpreter ends.
            thread: Mutex::new(thread.ok().map(|thread| (sender, thread))),
            runtime: OnceLock::new(),
            forked: OnceLock::new(),
        }
    }

    fn runtime(&self) -> PyResult<&Runtime> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let made = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        Ok(self.runtime.get_or_init(|| made))
    }
}

/// A value of the process that made it. In a process forked from that one it cannot be used, and is not dropped.
pub(crate) struct OfProcess<T> {
    id: u32,
    value: Option<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            id: std::process::id(),
            value: Some(value),
        }
    }

    /// The value, in its own process.
    pub(crate) fn get(&self) -> Option<&T> {
        let is_own = self.id == std::process::id();
        self.value.as_ref().filter(|_| is_own)
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.id != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}

/// An object of Python that any thread may drop: the one with Python's lock does so.
pub(crate) struct Held(Option<Py<PyAny>>);

impl Held {
    pub(crate) fn new(object: Bound<'_, PyAny>) -> Arc<Self> {
        Arc::new(Self(Some(object.unbind())))
    }

    fn bind<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        let object = self.0.as_ref();
        object.expect("it is taken by the drop alone").bind(py)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let object = self.0.take();
        with_python(move |_| drop(object));
    }
}

/// Starts the thread, and ends it when the interpreter does.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    Process::current();
    let end = wrap_pyfunction!(end, module)?;
    module
        .py()
        .import("atexit")?
        .call_method1("register", (end,))?;
    Ok(())
}

#[pyfunction]
fn end(py: Python<'_>) {
    let Some(process) = Process::known() else {
        return;
    };
    py.detach(|| {
        let thread = process.take_thread();
        if let Some((sender, thread)) = thread {
            drop(sender);
            // A job that panicked has printed why.
            let _ = thread.join();
        }
    });
}

/// Runs `job` with Python's lock. While the interpreter ends, it is dropped.
fn with_python(job: impl FnOnce(Python<'_>) + Send + 'static) {
    let process = Process::current();
    let thread = process.thread.lock();
    if let Some((sender, _)) = &*thread.unwrap_or_else(PoisonError::into_inner) {
        // The thread receives as long as there is a sender.
        let _ = sender.send(Box::new(job));
    }
}

/// Runs `work` as an awaitable of the running event loop. Its result makes the value or the exception. A cancelled awaitable drops
/// `work`.
pub(crate) fn awaitable<'py, W, V>(py: Python<'py>, work: W) -> PyResult<Bound<'py, PyAny>>
where
    W: Future<Output = V> + Send + 'static,
    V: FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static,
{
    let runs_in = Loop::running(py)?;
    let future = runs_in.0.bind(py).call_method0("create_future")?;
    let waiting = Held::new(future.clone());
    let task = Process::current().runtime()?.spawn(async move {
        let outcome = work.await;
        with_python(move |py| {
            let future = waiting.bind(py);
            let set = Py::new(py, Set).and_then(|set| {
                let (value, error) = match outcome(py) {
                    Ok(value) => (Some(value), None),
                    Err(error) => (None, Some(error.into_value(py))),
                };
                runs_in
                    .0
                    .bind(py)
                    .call_method1("call_soon_threadsafe", (set, future, value, error))
            });
            // In a closed loop nothing waits for the result.
            drop(set);
        });
    });
    future.call_method1(
        "add_done_callback",
        (Abort(OfProcess::new(task.abort_handle())),),
    )?;
    Ok(future)
}

/// Gives a future its result, in its event loop.
#[pyclass(frozen)]
struct Set;

#[pymethods]
impl Set {
    fn __call__(
        &self,
        future: &Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        error: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if future.call_method0("done")?.is_truthy()? {
            return Ok(());
        }
        match error {
            Some(error) => future.call_method1("set_exception", (error,))?,
            None => future.call_method1("set_result", (value,))?,
        };
        Ok(())
    }
}

/// Ends the task of a future that was cancelled.
#[pyclass(frozen)]
struct Abort(OfProcess<AbortHandle>);

#[pymethods]
impl Abort {
    fn __call__(&self, future: &Bound<'_, PyAny>) -> PyResult<()> {
        if future.call_method0("cancelled")?.is_truthy()? {
            let _ = self.0.get().map(AbortHandle::abort);
        }
        Ok(())
    }
}

/// An event loop of the program.
pub(crate) struct Loop(Arc<Held>);

impl Loop {
    /// The one that runs now.
    pub(crate) fn running(py: Python<'_>) -> PyResult<Self> {
        let running = py.import("asyncio")?.call_method0("get_running_loop")?;
        Ok(Self(Held::new(running)))
    }

    /// Awaits `object.method(*arguments)` in the loop. An exception is its text.
    pub(crate) async fn ask(
        &self,
        object: Arc<Held>,
        method: &'static str,
        arguments: [String; 2],
    ) -> Result<String, String> {
        let (sender, receiver) = oneshot::channel::<Result<String, String>>();
        let runs_in = self.0.clone();
        let begun = Arc::new(OnceLock::new());
        let cancel = Cancel(Some(begun.clone()));
        with_python(move |py| {
            let asked = begin(py, &runs_in, &object, (method, arguments), sender);
            match asked {
                // Nothing else sets it.
                Ok(future) => drop(begun.set(future)),
                Err(error) => error.write_unraisable(py, Some(object.bind(py))),
            }
        });
        let answer = receiver
            .await
            .unwrap_or_else(|_| Err("the program did not answer".to_owned()));
        cancel.answered();
        answer
    }

    /// Calls `object.method(argument)` in the loop.
    pub(crate) fn tell(&self, object: Arc<Held>, method: &'static str, argument: String) {
        let runs_in = self.0.clone();
        with_python(move |py| {
            let called = object.bind(py).getattr(method).and_then(|method| {
                runs_in
                    .bind(py)
                    .call_method1("call_soon_threadsafe", (method, argument))
            });
            // A closed loop takes no calls.
            drop(called);
        });
    }
}

/// Cancels what the program was asked, unless it has answered.
struct Cancel(Option<Arc<OnceLock<Arc<Held>>>>);

impl Cancel {
    fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        let Some(begun) = self.0.take() else {
            return;
        };
        // The thread takes its jobs in turn, so the question has begun by then, or failed.
        with_python(move |py| {
            let cancelled = begun.get().map(|future| {
                let future = future.bind(py);
                future.call_method0("cancel")
            });
            // In a closed loop nothing runs that could be cancelled.
            drop(cancelled);
        });
    }
}

/// Begins `object.method(*arguments)` in the loop; `sender` gets the answer.
fn begin(
    py: Python<'_>,
    runs_in: &Held,
    object: &Held,
    (method, [first, second]): (&str, [String; 2]),
    sender: oneshot::Sender<Result<String, String>>,
) -> PyResult<Arc<Held>> {
    let coroutine = object.bind(py).call_method1(method, (first, second))?;
    let future = py
        .import("asyncio")?
        .call_method1("run_coroutine_threadsafe", (coroutine, runs_in.bind(py)))?;
    let sender = OfProcess::new(Mutex::new(Some(sender)));
    let done = PyCFunction::new_closure(py, None, None, move |arguments, _| {
        let answer = arguments.get_item(0)?.call_method0("result");
        let answer = answer.and_then(|answer| answer.extract::<String>());
        let sender = sender.get().and_then(|sender| {
            let mut sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
            sender.take()
        });
        // The call that asked may be gone.
        let _ = sender.map(|sender| {
            sender.send(answer.map_err(|error| error.value(arguments.py()).to_string()))
        });
        PyResult::Ok(())
    })?;
    future.call_method1("add_done_callback", (done,))?;
    Ok(Held::new(future))
}
