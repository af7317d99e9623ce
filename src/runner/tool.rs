//! Tools and their results.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::{Error, ErrorKind};

/// A tool, as its server defines it. It serializes as in the protocol, for a model.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// The name of the server that has the tool.
    #[serde(skip)]
    pub server: String,
    /// The name on its server.
    pub name: String,
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of the arguments.
    #[serde(default)]
    pub input_schema: Value,
    /// The JSON Schema of the structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Hints on what it does, such as `readOnlyHint`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub annotations: Value,
}

impl Tool {
    /// A tool of the program, for [`Tools`](crate::Tools) and [`ToolSource`](crate::ToolSource). Its other fields can be set.
    ///
    /// ```
    /// let schema = serde_json::json!({ "type": "object" });
    /// let mut tool = mcpzip::Tool::new("time", "Says what time it is", schema);
    /// tool.annotations = serde_json::json!({ "readOnlyHint": true });
    /// ```
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
    ) -> Self {
        Self {
            server: String::new(),
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema,
            output_schema: None,
            annotations: Value::Null,
        }
    }

    /// The definition for `tools/list`.
    pub(super) fn definition(&self) -> String {
        json!(self).to_string()
    }

    /// The name for [`Runner::execute`](crate::Runner::execute): `server__tool`.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// assert_eq!(runner.describe("notes__add").await?.qualified_name(), "notes__add");
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn qualified_name(&self) -> String {
        format!("{}{}{}", self.server, crate::tool::SEPARATOR, self.name)
    }
}

/// The result of a search.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mcpzip::Error> {
/// # let runner = mcpzip::Runner::builder().build().await?;
/// let search = runner.search("create an issue", 5).await?;
/// for found in search.found {
///     println!("{:.2} {}", found.score, found.signature);
/// }
/// for server in search.not_searched {
///     eprintln!("not searched: {server}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SearchResult {
    /// The tools, best first.
    pub found: Vec<Found>,
    /// The servers whose tools are not known, each with the reason: `github (still being listed)`.
    pub not_searched: Vec<String>,
}

/// A tool that a search found: [`SearchResult`].
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// The result of a tool of the program: a text if `value` serializes as a string, otherwise its JSON as a text, with an object
    /// also as structured content.
    ///
    /// ```
    /// let result = mcpzip::ToolResult::of(&serde_json::json!({ "degrees": 21 }))?;
    /// assert_eq!(result.structured().unwrap()["degrees"], 21);
    /// # Ok::<(), mcpzip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Answer`] when it cannot be serialized.
    pub fn of<R: Serialize + ?Sized>(value: &R) -> Result<Self, Error> {
        let value = serde_json::to_value(value).map_err(|error| {
            let message = format!("the result of the tool is not JSON: {error}");
            Error::new(ErrorKind::Answer, message).with_source(error)
        })?;
        let text = match &value {
            Value::Null => return Ok(Self(json!({ "content": [] }))),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut result = json!({ "content": [{ "type": "text", "text": text }] });
        if value.is_object() {
            result["structuredContent"] = value;
        }
        Ok(Self(result))
    }

    /// A result with any content, as the protocol has it: images, links, several blocks.
    ///
    /// ```
    /// let image = serde_json::json!({ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" });
    /// let result = mcpzip::ToolResult::from_value(serde_json::json!({ "content": [image] }))?;
    /// assert_eq!(result.content().len(), 1);
    /// # Ok::<(), mcpzip::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Answer`] when it is not an object with a list of `content`.
    pub fn from_value(value: Value) -> Result<Self, Error> {
        match value.get("content") {
            Some(Value::Array(_)) => Ok(Self(value)),
            _ => {
                let message = "the result of a tool is an object with a list of `content`";
                Err(Error::new(ErrorKind::Answer, message))
            }
        }
    }

    /// The result of a tool that failed.
    pub(super) fn failed(message: &str) -> Self {
        let content = json!([{ "type": "text", "text": message }]);
        Self(json!({ "content": content, "isError": true }))
    }

    /// Whether the tool says that it failed.
    ///
    /// ```
    /// let result = mcpzip::ToolResult::of("done")?;
    /// assert!(!result.is_error());
    /// # Ok::<(), mcpzip::Error>(())
    /// ```
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.0["isError"] == true
    }

    /// The text blocks, joined by line ends.
    ///
    /// ```
    /// let result = mcpzip::ToolResult::of("done")?;
    /// assert_eq!(result.text(), "done");
    /// # Ok::<(), mcpzip::Error>(())
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self
            .content()
            .iter()
            .filter_map(|block| block["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The blocks of the content: texts, images, links and others.
    ///
    /// ```
    /// let result = mcpzip::ToolResult::of("done")?;
    /// assert_eq!(result.content()[0]["type"], "text");
    /// # Ok::<(), mcpzip::Error>(())
    /// ```
    #[must_use]
    pub fn content(&self) -> &[Value] {
        self.0["content"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The structured content.
    ///
    /// ```
    /// let result = mcpzip::ToolResult::of("a text")?;
    /// assert!(result.structured().is_none());
    /// # Ok::<(), mcpzip::Error>(())
    /// ```
    #[must_use]
    pub fn structured(&self) -> Option<&Value> {
        self.0
            .get("structuredContent")
            .filter(|value| !value.is_null())
    }

    /// Reads the structured content as `R`; without any, the text as JSON, or as a string; and an empty result as `()` or `None`.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// # use serde_json::json;
    /// let result = runner.execute("notes__add", json!({ "text": "milk" })).await?;
    /// let note: std::collections::BTreeMap<String, String> = result.parse()?;
    /// assert_eq!(note["text"], "milk");
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Tool`] when the tool says that it failed, and [`ErrorKind::Answer`] when the content is no `R`.
    pub fn parse<R: DeserializeOwned>(&self) -> Result<R, Error> {
        if self.is_error() {
            return Err(Error::new(ErrorKind::Tool, self.text()));
        }
        let unfit = |error: serde_json::Error| {
            let message = format!("the result of the tool has another form: {error}");
            Error::new(ErrorKind::Answer, message).with_source(error)
        };
        if let Some(structured) = self.structured() {
            return R::deserialize(structured).map_err(unfit);
        }
        let text = self.text();
        let nothing = || R::deserialize(Value::Null).ok().filter(|_| text.is_empty());
        serde_json::from_str(&text)
            .or_else(|error| nothing().ok_or(error))
            .or_else(|error| R::deserialize(Value::String(text.clone())).map_err(|_| error))
            .map_err(unfit)
    }

    /// The result as the server sent it. Whole numbers beyond 64 bits are rounded, unless the program builds `serde_json` with the
    /// feature `arbitrary_precision`.
    ///
    /// ```
    /// let result = mcpzip::ToolResult::of("done")?;
    /// assert_eq!(result.into_value()["content"][0]["text"], "done");
    /// # Ok::<(), mcpzip::Error>(())
    /// ```
    #[must_use]
    pub fn into_value(self) -> Value {
        self.0
    }
}

/// A prompt of a server.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mcpzip::Error> {
/// # async fn example(client: mcpzip::Client) -> Result<(), mcpzip::Error> {
/// for prompt in client.list_prompts().await? {
///     println!("{}: {}", prompt.name, prompt.description.unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mcpzip::Error> {
/// # async fn example(client: mcpzip::Client) -> Result<(), mcpzip::Error> {
/// let resources = client.list_resources().await?;
/// let images = resources.iter().filter(|one| one.mime_type.as_deref() == Some("image/png"));
/// println!("{} images", images.count());
/// # Ok(())
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
