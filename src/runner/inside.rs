//! Tools inside the application.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::contained::{Panicked, contained};
use super::error::{Error, ErrorKind};
use super::tool::{Tool, ToolResult};
use crate::upstream::{Introduction, Source, SourceError};

/// A future on the heap, as methods of traits return it: `Box::pin(async move { … })` makes one.
///
/// ```
/// let answer: mcpzip::BoxFuture<'_, u8> = Box::pin(async { 42 });
/// # let _ = answer;
/// ```
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A server inside the program, for [`Server::inside`](crate::Server::inside). Rules, search and limits hold for its tools as for
/// all others. [`Tools`] implements it for closures.
///
/// ```
/// use mcpzip::{BoxFuture, Error, Runner, Server, Tool, ToolResult, ToolSource};
/// use serde_json::{Value, json};
///
/// struct Notes(Vec<&'static str>);
///
/// impl ToolSource for Notes {
///     fn tools(&self) -> Vec<Tool> {
///         vec![Tool::new("list_notes", "Lists the notes", json!({ "type": "object" }))]
///     }
///
///     fn call<'a>(&'a self, _tool: &'a str, _arguments: Value) -> BoxFuture<'a, Result<ToolResult, Error>> {
///         Box::pin(async { ToolResult::of(&self.0.join(", ")) })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let server = Server::inside(Notes(vec!["milk", "bread"]));
/// let runner = Runner::builder().server("notes", server).build().await?;
/// let result = runner.execute("notes__list_notes", json!({})).await?;
/// assert_eq!(result.text(), "milk, bread");
/// # Ok(())
/// # }
/// ```
pub trait ToolSource: Send + Sync + 'static {
    /// The tools. They are asked for whenever the server is listed: at its start, and after [`Runner::restart`](crate::Runner::restart).
    fn tools(&self) -> Vec<Tool>;

    /// Calls one of the tools. Arguments that do not fit its schema do not come here. A call is cancelled by the drop of the
    /// future; its error, or a panic, is the result of a tool that failed.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Value,
    ) -> BoxFuture<'a, Result<ToolResult, Error>>;
}

/// Tools from closures, for [`Server::inside`](crate::Server::inside).
///
/// ```
/// use mcpzip::{Runner, Server, Tool, Tools};
/// use serde::Deserialize;
/// use serde_json::json;
///
/// #[derive(Deserialize)]
/// struct Terms { a: i64, b: i64 }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mcpzip::Error> {
/// let schema = json!({
///     "type": "object",
///     "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
///     "required": ["a", "b"],
/// });
/// let tools = Tools::new().tool(Tool::new("add", "Adds two numbers", schema), async |terms: Terms| {
///     terms.a.checked_add(terms.b).ok_or("the sum is too large")
/// });
/// let runner = Runner::builder().server("sums", Server::inside(tools)).build().await?;
/// let sum: i64 = runner.client("sums")?.call("add", &json!({ "a": 1, "b": 2 })).await?;
/// assert_eq!(sum, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Tools {
    tools: BTreeMap<String, (Tool, Run)>,
}

type Run = Box<dyn Fn(Value) -> BoxFuture<'static, Result<ToolResult, Error>> + Send + Sync>;

impl Tools {
    /// No tools.
    ///
    /// ```
    /// let server = mcpzip::Server::inside(mcpzip::Tools::new());
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. It replaces one of the same name. Its result is a text if it serializes as a string, and structured content if
    /// it serializes as an object.
    ///
    /// ```
    /// use mcpzip::{Tool, Tools};
    /// use serde_json::{Value, json};
    ///
    /// let tool = Tool::new("now", "Says the time", json!({ "type": "object" }));
    /// let tools = Tools::new().tool(tool, async |_: Value| Ok::<_, String>("12:30"));
    /// # let _ = tools;
    /// ```
    #[must_use]
    pub fn tool<A, R, E, F>(
        mut self,
        tool: Tool,
        run: impl Fn(A) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned,
        R: Serialize,
        E: Display,
        F: Future<Output = Result<R, E>> + Send + 'static,
    {
        let run = move |arguments| -> BoxFuture<'static, Result<ToolResult, Error>> {
            let arguments = serde_json::from_value(arguments);
            let running = arguments.map(&run);
            Box::pin(async move {
                let running = running.map_err(|error| {
                    let message = format!("the arguments do not fit the tool: {error}");
                    Error::new(ErrorKind::Arguments, message).with_source(error)
                })?;
                let result = running.await;
                ToolResult::of(
                    &result.map_err(|error| Error::new(ErrorKind::Tool, error.to_string()))?,
                )
            })
        };
        self.tools.insert(tool.name.clone(), (tool, Box::new(run)));
        self
    }
}

impl ToolSource for Tools {
    fn tools(&self) -> Vec<Tool> {
        self.tools.values().map(|(tool, _)| tool.clone()).collect()
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: Value,
    ) -> BoxFuture<'a, Result<ToolResult, Error>> {
        match self.tools.get(tool) {
            Some((_, run)) => run(arguments),
            None => Box::pin(async move {
                let message = format!("there is no tool `{tool}`");
                Err(Error::new(ErrorKind::UnknownTool, message))
            }),
        }
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}

/// A source of the program, as a connection reaches it.
pub(super) struct Inside(pub(super) Arc<dyn ToolSource>);

impl Inside {
    /// The definitions. A panic is an error.
    pub(super) fn definitions(&self) -> Result<Vec<String>, String> {
        let listed = std::panic::catch_unwind(AssertUnwindSafe(|| self.0.tools()));
        let tools = listed.map_err(|_| "the list of tools panicked".to_owned())?;
        Ok(tools.iter().map(Tool::definition).collect())
    }
}

impl Source for Inside {
    fn introduction(&self) -> Introduction {
        Introduction::of_source(r#"{"tools":{}}"#)
    }

    fn tools(&self) -> BoxFuture<'_, Result<Vec<String>, SourceError>> {
        Box::pin(async { self.definitions().map_err(SourceError::Arguments) })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a RawValue,
    ) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(async move {
            let arguments = serde_json::from_str(arguments.get())
                .map_err(|error| SourceError::Arguments(error.to_string()))?;
            // The method itself may panic, before there is a future.
            let call = contained(async { self.0.call(tool, arguments).await });
            let result = match call.await {
                Ok(Ok(result)) => result,
                Ok(Err(error)) if error.kind() == ErrorKind::UnknownTool => {
                    return Err(SourceError::UnknownTool);
                }
                Ok(Err(error)) => ToolResult::failed(&error.to_string()),
                Err(Panicked) => ToolResult::failed("the tool panicked"),
            };
            Ok(result.into_value().to_string())
        })
    }
}

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inside").finish_non_exhaustive()
    }
}
