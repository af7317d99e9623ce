//! One server of a runner.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use super::Inner;
use super::error::{Error, ErrorKind};
use super::tool::{Prompt, Resource, Tool, ToolResult};
use crate::catalog::{Entries, ServerTools};
use crate::proxy::told_apart;
use crate::tool::{SEPARATOR, ServerName};

/// One server of a [`Runner`](crate::Runner). It is cheap to clone, and its requests run in parallel. A request whose future is
/// dropped is cancelled at the server.
///
/// ```no_run
/// # async fn example(runner: mcpzip::Runner) -> Result<(), mcpzip::Error> {
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize)]
/// struct Place<'a> { city: &'a str }
/// #[derive(Deserialize)]
/// struct Weather { degrees: f64 }
///
/// let client = runner.client("weather")?;
/// let weather: Weather = client.call("forecast", &Place { city: "Bern" }).await?;
/// println!("{} °C", weather.degrees);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    pub(super) inner: Arc<Inner>,
    pub(super) server: ServerName,
}

impl Client {
    /// The name of the server.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// assert_eq!(runner.client("notes")?.server(), "notes");
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn server(&self) -> &str {
        self.server.as_str()
    }

    /// The tools that the configuration's rules permit.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// let tools = runner.client("notes")?.list_tools().await?;
    /// assert_eq!(tools[0].qualified_name(), "notes__add");
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// When the server cannot be reached or does not list its tools.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, Error> {
        self.inner.known(&self.server).await?;
        let snapshot = self.inner.proxy.unscoped().snapshot();
        let own = snapshot.tools();
        let own = own.filter(|tool| *tool.server().name() == self.server);
        own.map(|tool| self.inner.tool(&tool, || tool.json()))
            .collect()
    }

    /// Calls a tool with typed arguments and reads its result as `R`: the structured content, or else the text.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Note { text: String }
    ///
    /// let milk = Note { text: "milk".to_owned() };
    /// let note: Note = runner.client("notes")?.call("add", &milk).await?;
    /// assert_eq!(note.text, "milk");
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// When there is no result, the tool says that it failed, or the result has another form.
    pub async fn call<A, R>(&self, tool: &str, arguments: &A) -> Result<R, Error>
    where
        A: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        self.call_raw(tool, arguments).await?.parse()
    }

    /// Calls a tool and returns its whole result, also one that says that it failed.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// # use serde_json::json;
    /// let result = runner.client("notes")?.call_raw("add", &json!({ "text": "milk" })).await?;
    /// assert!(!result.is_error());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// When there is no result.
    pub async fn call_raw<A>(&self, tool: &str, arguments: &A) -> Result<ToolResult, Error>
    where
        A: Serialize + ?Sized,
    {
        let arguments = to_raw_value(arguments).map_err(unreadable)?;
        let name = self.joined(tool);
        self.inner.call(&name, &arguments, None, None).await
    }

    /// The prompts.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// assert!(runner.client("notes")?.list_prompts().await?.is_empty());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// When the server cannot be reached or does not list them.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, Error> {
        self.list(ServerTools::prompts).await
    }

    /// Gets a prompt: the result with its `messages`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// # async fn example(client: mcpzip::Client) -> Result<(), mcpzip::Error> {
    /// let review = client.get_prompt("review", &serde_json::json!({ "language": "Rust" })).await?;
    /// println!("{}", review["messages"][0]["content"]["text"]);
    /// # Ok(())
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When there is no such prompt, or the server refuses.
    pub async fn get_prompt<A>(&self, name: &str, arguments: &A) -> Result<Value, Error>
    where
        A: Serialize + ?Sized,
    {
        let arguments = serde_json::to_value(arguments).map_err(unreadable)?;
        let params = json!({ "name": self.joined(name), "arguments": arguments });
        self.request("prompts/get", params).await
    }

    /// The resources.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// assert!(runner.client("notes")?.list_resources().await?.is_empty());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// When the server cannot be reached or does not list them.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, Error> {
        self.list(ServerTools::resources).await
    }

    /// The templates of further resources.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// assert!(runner.client("notes")?.list_resource_templates().await?.is_empty());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// When the server cannot be reached or does not list them.
    pub async fn list_resource_templates(&self) -> Result<Vec<Resource>, Error> {
        self.list(ServerTools::templates).await
    }

    /// Reads a resource: the result with its `contents`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// # async fn example(client: mcpzip::Client) -> Result<(), mcpzip::Error> {
    /// for resource in client.list_resources().await? {
    ///     let read = client.read_resource(&resource.uri).await?;
    ///     println!("{}", read["contents"][0]["text"]);
    /// }
    /// # Ok(())
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When there is no such resource, or the server refuses.
    pub async fn read_resource(&self, uri: &str) -> Result<Value, Error> {
        let params = json!({ "uri": told_apart(&self.server, uri) });
        self.request("resources/read", params).await
    }

    /// Suggests values for the `argument` of a prompt that begin with `value`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// # async fn example(client: mcpzip::Client) -> Result<(), mcpzip::Error> {
    /// let languages = client.complete_prompt("review", "language", "Ru").await?;
    /// println!("{}", languages.join(", "));
    /// # Ok(())
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When there is no such prompt, or the server refuses.
    pub async fn complete_prompt(
        &self,
        prompt: &str,
        argument: &str,
        value: &str,
    ) -> Result<Vec<String>, Error> {
        let reference = json!({ "type": "ref/prompt", "name": self.joined(prompt) });
        self.complete(reference, argument, value).await
    }

    /// Suggests values for the `argument` of a resource template that begin with `value`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// # async fn example(client: mcpzip::Client) -> Result<(), mcpzip::Error> {
    /// let paths = client.complete_resource("file:///{path}", "path", "src/").await?;
    /// println!("{}", paths.join(", "));
    /// # Ok(())
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When there is no such template, or the server refuses.
    pub async fn complete_resource(
        &self,
        template: &str,
        argument: &str,
        value: &str,
    ) -> Result<Vec<String>, Error> {
        let reference = json!({ "type": "ref/resource", "uri": template });
        self.complete(reference, argument, value).await
    }

    async fn complete(
        &self,
        reference: Value,
        argument: &str,
        value: &str,
    ) -> Result<Vec<String>, Error> {
        let argument = json!({ "name": argument, "value": value });
        let params = json!({ "ref": reference, "argument": argument });
        let result = self.request("completion/complete", params).await?;
        let values = result["completion"]["values"].clone();
        serde_json::from_value(values).map_err(|error| {
            let message = format!(
                "server `{}` answered with something else than values: {error}",
                self.server
            );
            Error::new(ErrorKind::Answer, message).with_source(error)
        })
    }

    async fn list<T: DeserializeOwned>(
        &self,
        entries: fn(&ServerTools) -> &Entries,
    ) -> Result<Vec<T>, Error> {
        self.inner.known(&self.server).await?;
        let view = self.inner.proxy.unscoped();
        let snapshot = view.snapshot();
        let known = snapshot.server(&self.server);
        let Some(known) = known.filter(|_| !snapshot.hold(&self.server).everything) else {
            return Ok(Vec::new());
        };
        let entries = entries(known).as_slice().iter();
        entries
            .map(|entry| self.inner.read(known.json_of(entry)))
            .collect()
    }

    async fn request(&self, method: &str, params: Value) -> Result<Value, Error> {
        self.inner.known(&self.server).await?;
        let Value::Object(params) = params else {
            return Ok(Value::Null);
        };
        self.inner.request(method, params).await
    }

    fn joined(&self, name: &str) -> String {
        format!("{}{SEPARATOR}{name}", self.server)
    }
}

/// How long a server may take to start and list its tools.
pub(super) const LIST_LIMIT: Duration = Duration::from_secs(60);

pub(super) fn unreadable(error: serde_json::Error) -> Error {
    Error::new(
        ErrorKind::Arguments,
        format!("the arguments are not JSON: {error}"),
    )
    .with_source(error)
}

/// The parameters of a request, which asks for progress.
pub(super) fn with_progress(mut params: Map<String, Value>) -> String {
    params.insert("_meta".to_owned(), json!({ "progressToken": 1 }));
    Value::Object(params).to_string()
}
