//! The native part of the Python package: each function takes and returns JSON as text, which `mcpzip/__init__.py` gives its types.

mod bridge;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpzip::{
    BoxFuture, Capabilities, Client, Consent, Error, ErrorKind, Event, Handler, HttpOptions,
    LogMessage, Progress, Server, Tool, ToolResult, ToolSource,
};
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::{Map, Value, json};

use bridge::{Held, Loop, OfProcess, awaitable};

/// A Python object whose methods take and return JSON, and the event loop that they run in.
struct Object {
    object: Arc<Held>,
    runs_in: Loop,
}

impl Object {
    fn new(object: Bound<'_, PyAny>) -> PyResult<Self> {
        let runs_in = Loop::running(object.py())?;
        let object = Held::new(object);
        Ok(Self { object, runs_in })
    }

    /// Awaits `object.method(*arguments)`, which is JSON. An exception is a refusal with its text.
    async fn ask(&self, method: &'static str, arguments: [&str; 2]) -> Result<Value, Error> {
        let arguments = arguments.map(str::to_owned);
        let answer = self
            .runs_in
            .ask(self.object.clone(), method, arguments)
            .await;
        let text = answer.map_err(Error::refusal)?;
        serde_json::from_str(&text)
            .map_err(|error| Error::refusal(format!("the answer is not JSON: {error}")))
    }

    /// Calls `object.method(argument)` in the event loop, without waiting for it.
    fn tell(&self, method: &'static str, argument: &Value) {
        self.runs_in
            .tell(self.object.clone(), method, argument.to_string());
    }
}

struct PythonHandler {
    object: Object,
    capabilities: Capabilities,
}

impl Handler for PythonHandler {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    async fn consent(&self, consent: &Consent) -> Result<bool, Error> {
        let (server, tool) = (&consent.server, &consent.tool);
        let asked = json!({
            "server": server, "tool": tool, "arguments": consent.arguments, "question": consent.question,
        });
        let asked = asked.to_string();
        let decision = self.object.ask("consent", [server, &asked]).await?;
        Ok(decision == Value::Bool(true))
    }

    async fn elicit(&self, server: &str, request: Value) -> Result<Value, Error> {
        self.object
            .ask("elicit", [server, &request.to_string()])
            .await
    }

    async fn sample(&self, server: &str, request: Value) -> Result<Value, Error> {
        self.object
            .ask("sample", [server, &request.to_string()])
            .await
    }

    async fn roots(&self, server: &str) -> Result<Vec<PathBuf>, Error> {
        let roots = self.object.ask("roots", [server, "null"]).await?;
        serde_json::from_value(roots).map_err(|error| Error::refusal(error.to_string()))
    }

    fn progress(&self, progress: Progress) {
        let Progress {
            tool,
            progress,
            total,
            message,
            ..
        } = progress;
        self.object.tell(
            "progress",
            &json!({ "tool": tool, "progress": progress, "total": total, "message": message }),
        );
    }

    fn log(&self, message: LogMessage) {
        let LogMessage {
            level,
            logger,
            data,
            ..
        } = message;
        self.object.tell(
            "log",
            &json!({ "level": level, "logger": logger, "data": data }),
        );
    }
}

/// Tools of the Python program: `object.call(name, arguments)` calls one.
struct PythonTools {
    object: Object,
    tools: Vec<Tool>,
}

impl ToolSource for PythonTools {
    fn tools(&self) -> Vec<Tool> {
        self.tools.clone()
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Value,
    ) -> BoxFuture<'a, Result<ToolResult, Error>> {
        Box::pin(async move {
            let answer = self
                .object
                .ask("call", [tool, &arguments.to_string()])
                .await?;
            match answer.as_str() {
                Some(text) => ToolResult::of(text),
                None => ToolResult::of(&answer),
            }
        })
    }
}

/// The exception `mcpzip.Error` for a failure.
fn raised(py: Python<'_>, error: &Error) -> PyErr {
    failure(py, error.kind(), &error.to_string())
}

fn failure(py: Python<'_>, kind: ErrorKind, message: &str) -> PyErr {
    let made = py.import("mcpzip._errors").and_then(|module| {
        module
            .getattr("Error")?
            .call1((format!("{kind:?}"), message))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}

fn parsed(py: Python<'_>, text: &str) -> PyResult<Value> {
    serde_json::from_str(text)
        .map_err(|error| failure(py, ErrorKind::Arguments, &error.to_string()))
}

fn tool(tool: &Tool) -> Value {
    json!({
        "server": tool.server, "name": tool.name, "title": tool.title, "description": tool.description, "input_schema": tool.input_schema,
        "output_schema": tool.output_schema, "annotations": tool.annotations,
    })
}

fn tool_of(value: &Value) -> Tool {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let mut tool = Tool::new(
        text("name"),
        text("description"),
        value["input_schema"].clone(),
    );
    tool.title = value["title"].as_str().map(str::to_owned);
    tool.output_schema = Some(value["output_schema"].clone()).filter(|schema| !schema.is_null());
    tool.annotations = value["annotations"].clone();
    tool
}

/// Settings of the configuration file for a server that Python names.
fn server(entry: &Map<String, Value>) -> Server {
    let server = match entry.contains_key("url") {
        true => Server::http(""),
        false => Server::stdio(""),
    };
    // Also the URL and the command, so that the builder says what is wrong with them.
    entry.iter().fold(server, |server, (key, value)| {
        server.setting(key, value.clone())
    })
}

/// Runs `work` as an awaitable of Python with a JSON text as its result.
fn awaited<'py>(
    py: Python<'py>,
    work: impl Future<Output = Result<Value, Error>> + Send + 'static,
) -> PyResult<Bound<'py, PyAny>> {
    awaitable(py, async move {
        let outcome = work.await;
        move |py: Python<'_>| match outcome {
            Ok(value) => Ok(PyString::new(py, &value.to_string()).into_any().unbind()),
            Err(error) => Err(raised(py, &error)),
        }
    })
}

#[pyclass(frozen, module = "mcpzip._native")]
struct Runner(OfProcess<Arc<mcpzip::Runner>>);

/// The value, unless this process was forked from that of the runner.
fn own<'v, T>(py: Python<'_>, value: &'v OfProcess<T>) -> PyResult<&'v T> {
    let message = "this process was forked from the one that has the runner: make a runner in it";
    value
        .get()
        .ok_or_else(|| failure(py, ErrorKind::Ended, message))
}

impl Runner {
    fn get(&self, py: Python<'_>) -> PyResult<Arc<mcpzip::Runner>> {
        own(py, &self.0).cloned()
    }

    fn client(&self, py: Python<'_>, server: &str) -> PyResult<Client> {
        self.get(py)?
            .client(server)
            .map_err(|error| raised(py, &error))
    }
}

#[pymethods]
impl Runner {
    /// Builds a runner. `settings` is an object; `inside` has `(server, tools, object)` of the program; `handler` is
    /// `(object, elicitation, sampling, roots)`.
    #[staticmethod]
    fn build<'py>(
        py: Python<'py>,
        settings: &str,
        inside: Vec<(String, String, Bound<'py, PyAny>)>,
        handler: Option<(Bound<'py, PyAny>, bool, bool, bool)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let settings = parsed(py, settings)?;
        let mut builder = mcpzip::Runner::builder();
        if let Some(path) = settings["config_file"].as_str() {
            builder = builder.config_file(path);
        }
        if let Some(text) = settings["config_str"].as_str() {
            builder = builder.config_str(text);
        }
        if let Some(path) = settings["working_directory"].as_str() {
            builder = builder.working_directory(path);
        }
        if let [Some(cache), Some(state)] = ["cache", "state"].map(|key| settings[key].as_str()) {
            builder = builder.directories(cache, state);
        }
        let environment = settings["environment"].as_object().into_iter().flatten();
        let environment = environment.map(|(name, value)| match value.as_str() {
            Some(value) => Ok((name.clone(), value)),
            None => {
                let message = format!("the variable `{name}` of the environment is not a string");
                Err(failure(py, ErrorKind::Config, &message))
            }
        });
        builder = builder.environment(environment.collect::<PyResult<Vec<_>>>()?);
        for (name, entry) in settings["servers"].as_object().into_iter().flatten() {
            builder = builder.server(name, server(entry.as_object().unwrap_or(&Map::new())));
        }
        for (name, tools, object) in inside {
            let tools = parsed(py, &tools)?
                .as_array()
                .into_iter()
                .flatten()
                .map(tool_of)
                .collect();
            let object = Object::new(object)?;
            builder = builder.server(name, Server::inside(PythonTools { object, tools }));
        }
        if let Some((object, elicitation, sampling, roots)) = handler {
            let mut capabilities = Capabilities::default();
            if elicitation {
                capabilities = capabilities.elicitation();
            }
            if sampling {
                capabilities = capabilities.sampling();
            }
            if roots {
                capabilities = capabilities.roots();
            }
            let object = Object::new(object)?;
            builder = builder.handler(PythonHandler {
                object,
                capabilities,
            });
        }
        awaitable(py, async move {
            let built = builder.build().await;
            move |py: Python<'_>| {
                let runner = built.map_err(|error| raised(py, &error))?;
                let runner = Self(OfProcess::new(Arc::new(runner)));
                Ok(Py::new(py, runner)?.into_any())
            }
        })
    }

    fn servers(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.get(py)?.servers())
    }

    fn statuses(&self, py: Python<'_>) -> PyResult<String> {
        let statuses = self.get(py)?.statuses();
        let statuses = statuses.into_iter().map(|status| {
            json!({
                "server": status.server, "state": format!("{:?}", status.state).to_lowercase(), "reason": status.reason, "tools": status.tools,
                "software": status.software,
            })
        });
        Ok(Value::from_iter(statuses).to_string())
    }

    fn start<'py>(&self, py: Python<'py>, server: String) -> PyResult<Bound<'py, PyAny>> {
        let runner = self.get(py)?;
        awaited(py, async move {
            runner.start(&server).await.map(|()| Value::Null)
        })
    }

    fn start_all<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let runner = self.get(py)?;
        awaited(py, async move {
            let outcomes = runner.start_all().await.into_iter();
            let outcome = |outcome: Result<(), Error>| {
                let error = outcome.err()?;
                Some(json!([format!("{:?}", error.kind()), error.to_string()]))
            };
            Ok(outcomes
                .map(|(server, result)| (server, json!(outcome(result))))
                .collect::<Map<_, _>>()
                .into())
        })
    }

    fn stop<'py>(&self, py: Python<'py>, server: String) -> PyResult<Bound<'py, PyAny>> {
        let runner = self.get(py)?;
        awaited(
            py,
            async move { runner.stop(&server).await.map(Value::from) },
        )
    }

    fn stop_all<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let runner = self.get(py)?;
        awaited(py, async move {
            runner.stop_all().await;
            Ok(Value::Null)
        })
    }

    fn restart<'py>(&self, py: Python<'py>, server: String) -> PyResult<Bound<'py, PyAny>> {
        let runner = self.get(py)?;
        awaited(py, async move {
            runner.restart(&server).await.map(|()| Value::Null)
        })
    }

    fn search<'py>(
        &self,
        py: Python<'py>,
        need: String,
        limit: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let runner = self.get(py)?;
        awaited(py, async move {
            let search = runner.search(&need, limit).await?;
            let found = search.found.into_iter().map(
                |one| json!({ "name": one.name, "score": one.score, "signature": one.signature }),
            );
            let found = Value::from_iter(found);
            Ok(json!({ "found": found, "not_searched": search.not_searched }))
        })
    }

    fn describe<'py>(&self, py: Python<'py>, name: String) -> PyResult<Bound<'py, PyAny>> {
        let runner = self.get(py)?;
        awaited(py, async move {
            runner.describe(&name).await.map(|found| tool(&found))
        })
    }

    fn execute<'py>(
        &self,
        py: Python<'py>,
        name: String,
        arguments: &str,
        select: Option<String>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (runner, arguments) = (self.get(py)?, parsed(py, arguments)?);
        let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|error| {
            let message = format!("the timeout cannot be used: {error}");
            failure(py, ErrorKind::Arguments, &message)
        })?;
        awaited(py, async move {
            let mut call = runner.execute(&name, &arguments);
            if let Some(filter) = select {
                call = call.select(filter);
            }
            if let Some(limit) = timeout {
                call = call.timeout(limit);
            }
            call.await.map(ToolResult::into_value)
        })
    }

    fn list_tools<'py>(&self, py: Python<'py>, server: &str) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client(py, server)?;
        awaited(py, async move {
            Ok(client.list_tools().await?.iter().map(tool).collect())
        })
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        server: &str,
        name: String,
        arguments: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (client, arguments) = (self.client(py, server)?, parsed(py, arguments)?);
        awaited(py, async move {
            client
                .call_raw(&name, &arguments)
                .await
                .map(ToolResult::into_value)
        })
    }

    fn list_prompts<'py>(&self, py: Python<'py>, server: &str) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client(py, server)?;
        awaited(py, async move {
            let prompts = client.list_prompts().await?.into_iter().map(|one| {
                json!({ "name": one.name, "title": one.title, "description": one.description, "arguments": one.arguments })
            });
            Ok(Value::from_iter(prompts))
        })
    }

    fn get_prompt<'py>(
        &self,
        py: Python<'py>,
        server: &str,
        name: String,
        arguments: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (client, arguments) = (self.client(py, server)?, parsed(py, arguments)?);
        awaited(
            py,
            async move { client.get_prompt(&name, &arguments).await },
        )
    }

    fn list_resources<'py>(
        &self,
        py: Python<'py>,
        server: &str,
        templates: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client(py, server)?;
        awaited(py, async move {
            let resources = match templates {
                true => client.list_resource_templates().await?,
                false => client.list_resources().await?,
            };
            let resources = resources.into_iter().map(|one| {
                json!({
                    "uri": one.uri, "name": one.name, "title": one.title, "description": one.description, "mime_type": one.mime_type,
                })
            });
            Ok(Value::from_iter(resources))
        })
    }

    fn read_resource<'py>(
        &self,
        py: Python<'py>,
        server: &str,
        uri: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client(py, server)?;
        awaited(py, async move { client.read_resource(&uri).await })
    }

    fn complete<'py>(
        &self,
        py: Python<'py>,
        server: &str,
        prompt: bool,
        name: String,
        argument: String,
        value: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client(py, server)?;
        awaited(py, async move {
            let values = match prompt {
                true => client.complete_prompt(&name, &argument, &value).await?,
                false => client.complete_resource(&name, &argument, &value).await?,
            };
            Ok(values.into())
        })
    }

    fn events(&self, py: Python<'_>) -> PyResult<Events> {
        let events = tokio::sync::Mutex::new(self.get(py)?.events());
        Ok(Events(OfProcess::new(Arc::new(events))))
    }

    fn serve_stdio<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let runner = self.get(py)?;
        awaited(py, async move {
            runner.serve_stdio().await.map(|()| Value::Null)
        })
    }

    fn serve_http<'py>(
        &self,
        py: Python<'py>,
        host: String,
        port: u16,
        token: Option<String>,
        origins: Vec<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let runner = self.get(py)?;
        awaitable(py, async move {
            let mut options = HttpOptions::new(host, port);
            if let Some(token) = token {
                options = options.token(token);
            }
            for origin in origins {
                options = options.origin(origin);
            }
            let serving = runner.serve_http(options).await;
            move |py: Python<'_>| {
                let server = serving.map_err(|error| raised(py, &error))?;
                let server = HttpServer {
                    url: server.url(),
                    server: OfProcess::new(Mutex::new(Some(server))),
                };
                Ok(Py::new(py, server)?.into_any())
            }
        })
    }

    fn shutdown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let runner = self.get(py)?;
        awaited(py, async move {
            runner.shutdown().await;
            Ok(Value::Null)
        })
    }
}

#[pyclass(frozen, module = "mcpzip._native")]
struct HttpServer {
    url: String,
    server: OfProcess<Mutex<Option<mcpzip::HttpServer>>>,
}

#[pymethods]
impl HttpServer {
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    fn shutdown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let server = own(py, &self.server)?
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        awaited(py, async move {
            if let Some(server) = server {
                server.shutdown().await;
            }
            Ok(Value::Null)
        })
    }
}

#[pyclass(frozen, module = "mcpzip._native")]
struct Events(OfProcess<Arc<tokio::sync::Mutex<mcpzip::Events>>>);

#[pymethods]
impl Events {
    /// The next event; `null` after the end of the runner.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let events = own(py, &self.0)?.clone();
        awaited(py, async move {
            let event = events.lock().await.next().await;
            Ok(event.map_or(Value::Null, |event| match event {
                Event::Starting { server } => json!({ "kind": "starting", "server": server }),
                Event::Ready { server } => json!({ "kind": "ready", "server": server }),
                Event::Failed { server, reason } => {
                    json!({ "kind": "failed", "server": server, "reason": reason })
                }
                Event::Stopped { server } => json!({ "kind": "stopped", "server": server }),
                Event::ToolsChanged { server } => {
                    json!({ "kind": "tools_changed", "server": server })
                }
                Event::LoginNeeded { server } => {
                    json!({ "kind": "login_needed", "server": server })
                }
                Event::Missed(number) => json!({ "kind": "missed", "missed": number }),
                other => json!({ "kind": format!("{other:?}") }),
            }))
        })
    }
}

/// The module.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Runner>()?;
    module.add_class::<HttpServer>()?;
    module.add_class::<Events>()?;
    bridge::register(module)?;
    module.add(
        "__version__",
        PyString::new(module.py(), env!("CARGO_PKG_VERSION")),
    )
}
