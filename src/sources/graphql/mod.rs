//! A GraphQL interface whose queries and mutations are tools (`"graphql": URL`).
//!
//! The schema is read by introspection and converted to the form of an OpenAPI description (`schema.rs`), so that
//! definitions are made in one place. A call sends one field with its arguments as variables; `selection.rs` chooses
//! the members that are returned.

mod schema;
mod selection;
mod types;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::HeaderValue;
use parking_lot::Mutex;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::openapi::{Api, Document, Given, LARGEST, introduction, refusal, texts};
use crate::config::{OpenApi, Remote};
use crate::tool::ServerName;
use crate::upstream::{
    ConnectError, Interface, InterfaceAnswer, InterfaceRequest, Introduction, Source, SourceError,
    UpstreamContext,
};
use schema::{INTROSPECTION, Operation, Schema};

/// A GraphQL interface, opened as a server.
#[derive(Debug)]
pub(super) struct GraphQlSource {
    interface: Interface,
    openapi: Arc<OpenApi>,
    context: Arc<UpstreamContext>,
    known: Mutex<Option<Arc<Known>>>,
}

/// The schema, read.
#[derive(Debug)]
struct Known {
    api: Api,
    operations: BTreeMap<(String, String), Operation>,
}

impl GraphQlSource {
    /// Opens an interface. Nothing is sent before its tools are needed.
    ///
    /// # Errors
    /// When the entry cannot be used.
    pub(super) fn open(
        server: &ServerName,
        remote: &Remote,
        openapi: &OpenApi,
        context: &Arc<UpstreamContext>,
    ) -> Result<Arc<Self>, ConnectError> {
        Ok(Arc::new(Self {
            interface: Interface::of(server, remote, &openapi.origins, context)?,
            openapi: Arc::new(openapi.clone()),
            context: context.clone(),
            known: Mutex::default(),
        }))
    }

    /// The schema; for a listing, asked for again.
    async fn known(&self, is_listing: bool) -> Result<Arc<Known>, SourceError> {
        let known = self.known.lock().clone();
        if let Some(known) = known.filter(|_| !is_listing) {
            return Ok(known);
        }
        let answer = self.send(&json!({ "query": INTROSPECTION })).await?;
        let openapi = self.openapi.clone();
        let reading = move || read(&answer, &openapi);
        let read = self.context.tasks.spawn_blocking(reading).await;
        let read = read
            .map_err(|_| "it cannot be read".to_owned())
            .and_then(|read| read);
        let read = read.map_err(|reason| {
            SourceError::Arguments(format!("its schema cannot be used: {reason}"))
        })?;
        let read = Arc::new(read);
        *self.known.lock() = Some(read.clone());
        Ok(read)
    }

    async fn send(&self, body: &Value) -> Result<InterfaceAnswer, SourceError> {
        let json = || HeaderValue::from_static("application/json");
        let request = InterfaceRequest {
            method: Method::POST,
            url: self.interface.url().clone(),
            headers: vec![(CONTENT_TYPE, json()), (ACCEPT, json())],
            body: body.to_string().into(),
        };
        let sent = self.interface.send(request, LARGEST).await;
        sent.map_err(SourceError::Call)
    }

    async fn answer(&self, tool: &str, arguments: &RawValue) -> Result<String, SourceError> {
        let known = self.known(false).await?;
        let described = known.api.operation(tool).ok_or(SourceError::UnknownTool)?;
        let operation = known.operations.get(&(described.method, described.path));
        let operation = operation.ok_or(SourceError::UnknownTool)?;
        let arguments: Map<String, Value> = serde_json::from_str(arguments.get())
            .map_err(|_| SourceError::Arguments("the arguments must be an object".to_owned()))?;
        let body = operation.body(arguments).map_err(SourceError::Arguments)?;
        let answer = self.send(&body).await?;
        Ok(self.interface.masked(&result(&answer)))
    }
}

/// Reads the answer to the introspection.
fn read(answer: &InterfaceAnswer, openapi: &OpenApi) -> Result<Known, String> {
    if !answer.status.is_success() {
        return Err(format!("it answers with HTTP {}", answer.status));
    }
    let mut answer: Value = serde_json::from_slice(&answer.body)
        .map_err(|_| "its answer to an introspection is not JSON".to_owned())?;
    let schema = answer.pointer_mut("/data/__schema").map(Value::take);
    let Some(schema) = schema.filter(|schema| !schema.is_null()) else {
        let said = answer.pointer("/errors/0/message").and_then(Value::as_str);
        return Err(format!(
            "it refuses an introspection: {}",
            said.unwrap_or("it says nothing about it")
        ));
    };
    let schema: Schema = serde_json::from_value(schema).map_err(|error| error.to_string())?;
    let (document, operations) = schema.described();
    let api = Api::of(&Document::made(document), openapi, &Given::default());
    Ok(Known { api, operations })
}

impl Operation {
    /// The body of a request.
    fn body(&self, mut arguments: Map<String, Value>) -> Result<Value, String> {
        let selection = match &self.selection {
            Some(name) => match arguments.remove(name) {
                Some(Value::String(given)) => Some(selection::check(&given)?.to_owned()),
                None | Some(Value::Null) => Some(self.usual.clone()),
                Some(_) => return Err(format!("`{name}` must be a string")),
            },
            None => None,
        };
        let (mut declared, mut passed) = (Vec::new(), Vec::new());
        for name in arguments.keys() {
            let kind = self.types.iter().find(|(known, _)| known == name);
            let (_, kind) = kind.ok_or_else(|| format!("there is no argument `{name}`"))?;
            declared.push(format!("${name}: {kind}"));
            passed.push(format!("{name}: ${name}"));
        }
        let list = |items: Vec<String>| match items.is_empty() {
            true => String::new(),
            false => format!("({})", items.join(", ")),
        };
        let selection = selection.map(|selection| format!(" {{ {selection} }}"));
        let query = format!(
            "{}{} {{ {}{}{} }}",
            self.kind,
            list(declared),
            self.field,
            list(passed),
            selection.unwrap_or_default()
        );
        Ok(json!({ "query": query, "variables": arguments }))
    }
}

/// The result of a call: the data, or an error if there are errors.
fn result(answer: &InterfaceAnswer) -> String {
    let whole = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
    let errors = whole.get("errors").and_then(Value::as_array);
    let said = errors.into_iter().flatten().map(|error| {
        let message = error
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or("an error");
        match error.get("path") {
            Some(path) => format!("{message} (at {path})"),
            None => message.to_owned(),
        }
    });
    let said: Vec<String> = said.collect();
    let data = whole.get("data").filter(|data| data.is_object());
    if !said.is_empty() {
        let data = data.map(|data| format!("\n{data}")).unwrap_or_default();
        return refusal(&format!("{}{data}", said.join("\n")));
    }
    match data {
        Some(data) => {
            let text = data.to_string();
            let raw: Option<&RawValue> = serde_json::from_str(&text).ok();
            texts(&[&text], raw)
        }
        None => refusal(&format!(
            "HTTP {}\n{}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        )),
    }
}

impl Source for GraphQlSource {
    fn introduction(&self) -> Introduction {
        introduction()
    }

    fn tools(&self) -> BoxFuture<'_, Result<Vec<String>, SourceError>> {
        Box::pin(async move {
            let known = self.known(true).await?;
            let defining = move || known.api.definitions();
            let definitions = self.context.tasks.spawn_blocking(defining).await;
            definitions
                .map_err(|_| SourceError::Arguments("its tools cannot be described".to_owned()))
        })
    }

    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a RawValue,
    ) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(self.answer(tool, arguments))
    }

    fn schema<'a>(
        &'a self,
        tool: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(async move {
            let known = self.known(false).await?;
            let operation = known.api.operation(tool).ok_or(SourceError::UnknownTool)?;
            let missing = || SourceError::Arguments(format!("`{tool}` has no schema at `{path}`"));
            known.api.part(&operation, path).ok_or_else(missing)
        })
    }
}
