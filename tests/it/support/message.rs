//! A message from `mcpzip` in its original bytes.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A line written by `mcpzip`.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    line: String,
}

#[derive(Debug, Deserialize)]
struct Parts<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    content: Vec<&'a RawValue>,
}

impl Message {
    pub(crate) fn new(line: String) -> Self {
        Self { line }
    }

    /// The whole line.
    pub(crate) fn as_str(&self) -> &str {
        &self.line
    }

    fn parts(&self) -> Parts<'_> {
        serde_json::from_str(&self.line)
            .unwrap_or_else(|error| panic!("no message ({error}): {}", start(&self.line)))
    }

    /// The id as it was written. `null` for a message without an id.
    pub(crate) fn id(&self) -> &str {
        self.parts().id.map_or("null", RawValue::get)
    }

    /// Whether it answers a request.
    pub(crate) fn is_answer(&self) -> bool {
        self.parts().method.is_none()
    }

    /// Whether it is a notification with this method.
    pub(crate) fn is_notification(&self, method: &str) -> bool {
        self.parts()
            .method
            .is_some_and(|raw| raw.get() == format!("\"{method}\""))
    }

    /// The parameters of a notification in their original bytes.
    #[track_caller]
    pub(crate) fn params(&self) -> &str {
        self.parts()
            .params
            .map(RawValue::get)
            .unwrap_or_else(|| panic!("no params: {}", start(&self.line)))
    }

    /// The result in its original bytes.
    #[track_caller]
    pub(crate) fn result(&self) -> &str {
        self.parts()
            .result
            .map(RawValue::get)
            .unwrap_or_else(|| panic!("no result: {}", start(&self.line)))
    }

    /// The result as a value.
    #[track_caller]
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(self.result()).unwrap()
    }

    /// The error as a value.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        let error = self
            .parts()
            .error
            .unwrap_or_else(|| panic!("no error: {}", start(&self.line)));
        serde_json::from_str(error.get()).unwrap()
    }

    /// The code of the error.
    #[track_caller]
    pub(crate) fn error_code(&self) -> i64 {
        self.error()["code"].as_i64().unwrap()
    }

    /// The result's `isError`.
    #[track_caller]
    pub(crate) fn is_tool_error(&self) -> bool {
        self.value()["isError"] == true
    }

    /// The texts of a tool's result.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        let content: Content<'_> = serde_json::from_str(self.result()).unwrap();
        let texts = content.content.iter().filter_map(|block| {
            serde_json::from_str::<Value>(block.get()).ok()?["text"]
                .as_str()
                .map(str::to_owned)
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The text of a tool's result that has `isError`.
    #[track_caller]
    pub(crate) fn tool_error(&self) -> String {
        assert!(self.is_tool_error(), "no tool error: {}", start(&self.line));
        self.text()
    }
}

/// The start of a long text.
pub(crate) fn start(text: &str) -> String {
    let short: String = text.chars().take(2000).collect();
    if short.len() < text.len() {
        format!("{short}… ({} bytes)", text.len())
    } else {
        short
    }
}
