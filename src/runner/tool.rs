//! Tools and their results.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{Error, ErrorKind};

/// A tool, as its server defines it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mcpzip::Error> {
/// # let runner = mcpzip::Runner::builder().build().await?;
/// for server in runner.servers() {
///     for tool in runner.client(&server)?.list_tools().await? {
///         println!("{}: {}", tool.qualified_name(), tool.description);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The server.
    #[serde(skip)]
    pub server: String,
    /// The name on its server.
    pub name: String,
    /// The title.
    pub title: Option<String>,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of the arguments.
    #[serde(default)]
    pub input_schema: Value,
    /// The JSON Schema of the structured result.
    pub output_schema: Option<Value>,
    /// Hints on what it does, such as `readOnlyHint`.
    #[serde(default)]
    pub annotations: Value,
}

impl Tool {
    /// The name for [`Runner::execute`](crate::Runner::execute): `server__tool`.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        format!("{}{}{}", self.server, crate::tool::SEPARATOR, self.name)
    }
}

/// A tool that a search found.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mcpzip::Error> {
/// # let runner = mcpzip::Runner::builder().build().await?;
/// for found in runner.search("create an issue", 5).await? {
///     println!("{:.2} {}", found.score, found.signature);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The name for [`Runner::execute`](crate::Runner::execute): `server__tool`.
    pub name: String,
    /// The score; higher is better.
    pub score: f32,
    /// The signature and the first sentence of the description, in few tokens.
    pub signature: String,
}

/// The result of a call.
///
/// ```no_run
/// # async fn example(runner: mcpzip::Runner) -> Result<(), mcpzip::Error> {
/// let result = runner.execute("time__get_current_time", serde_json::json!({ "timezone": "UTC" })).await?;
/// if !result.is_error() {
///     println!("{}", result.text());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult(pub(super) Value);

impl ToolResult {
    /// Whether the tool says that it failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.0["isError"] == true
    }

    /// The text blocks, joined by line ends.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self
            .content()
            .iter()
            .filter_map(|block| block["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The blocks of the content: texts, images, links and others.
    #[must_use]
    pub fn content(&self) -> &[Value] {
        self.0["content"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The structured content.
    #[must_use]
    pub fn structured(&self) -> Option<&Value> {
        self.0
            .get("structuredContent")
            .filter(|value| !value.is_null())
    }

    /// Reads the structured content as `R`; without any, the text as JSON, or as a string.
    ///
    /// # Errors
    /// [`ErrorKind::Tool`] when the tool says that it failed, and [`ErrorKind::Answer`] when the content is no `R`.
    pub fn parse<R: DeserializeOwned>(&self) -> Result<R, Error> {
        if self.is_error() {
            return Err(Error::new(ErrorKind::Tool, self.text()));
        }
        let unfit = |error: serde_json::Error| {
            let message = format!("the result of the tool has another form: {error}");
            Error::new(ErrorKind::Answer, message).with(error)
        };
        if let Some(structured) = self.structured() {
            return R::deserialize(structured).map_err(unfit);
        }
        let text = self.text();
        serde_json::from_str(&text)
            .or_else(|error| R::deserialize(Value::String(text)).map_err(|_| error))
            .map_err(unfit)
    }

    /// The result as the server sent it.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.0
    }
}

/// A prompt of a server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Prompt {
    /// The name.
    pub name: String,
    /// The title.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The arguments, each with its `name`, `description` and whether it is `required`.
    #[serde(default)]
    pub arguments: Vec<Value>,
}

/// A resource of a server, or a template of its URIs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// The URI, or the URI template.
    #[serde(alias = "uriTemplate")]
    pub uri: String,
    /// The name.
    #[serde(default)]
    pub name: String,
    /// The title.
    pub title: Option<String>,
    /// The description.
    pub description: Option<String>,
    /// The type of the content.
    pub mime_type: Option<String>,
}
