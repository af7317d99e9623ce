//! An HTTP interface whose operations are tools (`"openapi": …`).
//!
//! The description is read as plain JSON (`document.rs`, `reading.rs`), an operation at a time, and kept as bytes
//! per operation. `shown.rs` makes definitions from them, `request.rs` makes a request from a call's arguments, and
//! `answer.rs` makes a result from the response.

mod answer;
mod body;
mod description;
mod document;
mod kept;
mod names;
mod operation;
mod reading;
mod request;
mod schema;
mod shown;
mod style;
mod swagger;

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::Url;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::watch::watch;
use crate::config::{OpenApi, Remote};
use crate::tool::ServerName;
use crate::upstream::{
    ConnectError, Interface, Introduction, Source, SourceError, UpstreamContext,
};
pub(super) use answer::{refusal, texts};
use description::Description;
pub(super) use description::Descriptions;
pub(super) use document::Document;
use kept::Kept;
pub(super) use reading::{Api, Given};
use request::Base;

/// The size limit of an answer, in bytes.
pub(super) const LARGEST: usize = 32 * 1024 * 1024;

/// The servers that a description names.
///
/// # Errors
/// The reason why it is none.
pub(crate) fn described_servers(bytes: &[u8]) -> Result<Vec<String>, String> {
    Ok(Document::parse(bytes)?.servers())
}

/// An interface, opened as a server.
#[derive(Debug)]
pub(super) struct OpenApiSource {
    openapi: Arc<OpenApi>,
    interface: Arc<Interface>,
    description: Description,
    given: Arc<Given>,
    context: Arc<UpstreamContext>,
    descriptions: Descriptions,
    /// The server's key in `descriptions`.
    key: String,
    reading: Mutex<()>,
}

impl OpenApiSource {
    /// Opens an interface. Nothing is sent before its tools are needed. `changed` is called when a description in a file changes.
    ///
    /// # Errors
    /// When the entry cannot be used.
    pub(super) fn open(
        server: &ServerName,
        remote: &Remote,
        openapi: &OpenApi,
        changed: Box<dyn Fn() + Send + Sync>,
        descriptions: &Descriptions,
        directory: Option<&Path>,
        context: &Arc<UpstreamContext>,
    ) -> Result<Arc<Self>, ConnectError> {
        let interface = Arc::new(Interface::of(server, remote, &openapi.origins, context)?);
        let key = format!(
            "{server} {} {openapi:?} {:?}",
            remote.url,
            remote.headers.keys()
        );
        // A person may be shown another description than others.
        let person = context
            .person
            .as_ref()
            .filter(|_| !remote.identity.is_shared());
        let person = person.map_or_else(String::new, |person| person.entitlement.account());
        let kept = Kept::of(directory, &format!("{key}{person}"));
        let description = Description::of(server, remote, openapi, &interface, kept, context)?;
        let query = interface
            .url()
            .query_pairs()
            .filter(|_| openapi.has_base_url);
        let given = Given {
            headers: remote
                .headers
                .keys()
                .map(|name| name.to_ascii_lowercase())
                .collect(),
            query: query.map(|(name, _)| name.into_owned()).collect(),
        };
        let source = Arc::new(Self {
            openapi: Arc::new(openapi.clone()),
            interface,
            description,
            given: Arc::new(given),
            context: context.clone(),
            descriptions: descriptions.clone(),
            key,
            reading: Mutex::default(),
        });
        if source.description.file_version().is_some() {
            watch(
                &source,
                |source| source.description.file_version(),
                changed,
                context,
            );
        }
        Ok(source)
    }

    /// The description; for a listing, read again if it has changed.
    async fn api(&self, is_listing: bool) -> Result<Arc<Api>, SourceError> {
        let _reading = self.reading.lock().await;
        let known = self.descriptions.get(&self.key);
        let read = self.description.read(
            known.as_ref(),
            is_listing,
            &self.openapi,
            &self.given,
            &self.context,
        );
        let read = read.await?;
        self.descriptions.insert(&self.key, read.clone());
        Ok(read.api)
    }

    /// The base of all requests: `base_url`, or the first server of the description to which requests are permitted.
    fn base(&self, api: &Api) -> Result<Base, SourceError> {
        if self.openapi.has_base_url {
            let url = self.interface.url().clone();
            let query = url.query().map(str::to_owned);
            return Ok(Base { url, query });
        }
        let own = self
            .description
            .url()
            .unwrap_or_else(|| self.interface.url());
        let mut servers: Vec<Url> = api
            .servers
            .iter()
            .filter_map(|server| own.join(server).ok())
            .collect();
        if api.servers.is_empty() {
            servers.extend(own.join("/").ok());
        }
        let named = servers.first().cloned();
        let permitted = servers.into_iter().find(|url| self.interface.permits(url));
        let url = permitted.ok_or_else(|| {
            let named = named.map_or_else(|| "no usable URL".to_owned(), |url| url.origin().ascii_serialization());
            SourceError::Arguments(format!(
                "its description names {named} as its server, which is elsewhere than the description. Requests and credentials go there \
                 only if its entry has the URL as `base_url`"
            ))
        })?;
        Ok(Base { url, query: None })
    }

    /// The base of an operation that has a server of its own. `base_url` takes the place of it, too, if the description has no other
    /// server.
    fn base_of(&self, server: Option<&str>, base: Base, api: &Api) -> Result<Base, SourceError> {
        let Some(server) = server else {
            return Ok(base);
        };
        let own = self.description.url().unwrap_or(&base.url);
        let url = own.join(server).ok();
        if let Some(url) = url.filter(|url| self.interface.permits(url)) {
            let query = base.query;
            return Ok(Base { url, query });
        }
        if self.openapi.has_base_url && api.servers.is_empty() {
            return Ok(base);
        }
        Err(SourceError::Arguments(format!(
            "the description names another server for this operation, {server}; `origins` in the server's entry permits requests to it"
        )))
    }

    async fn answer(&self, tool: &str, arguments: &RawValue) -> Result<String, SourceError> {
        let api = self.api(false).await?;
        let operation = api.operation(tool).ok_or(SourceError::UnknownTool)?;
        let arguments: Map<String, Value> = serde_json::from_str(arguments.get())
            .map_err(|_| SourceError::Arguments("the arguments must be an object".to_owned()))?;
        let base = self.base_of(operation.server.as_deref(), self.base(&api)?, &api)?;
        let request = operation
            .request(&arguments, &base, &self.given)
            .map_err(SourceError::Arguments)?;
        let url = request.url.clone();
        let answer = self
            .interface
            .send(request, LARGEST)
            .await
            .map_err(SourceError::Call)?;
        let result = answer::result(&answer, &url, &api.logins);
        Ok(self.interface.masked(&result))
    }
}

impl Source for OpenApiSource {
    fn introduction(&self) -> Introduction {
        introduction()
    }

    fn tools(&self) -> BoxFuture<'_, Result<Vec<String>, SourceError>> {
        Box::pin(async move {
            let api = self.api(true).await?;
            // A description that leads elsewhere is a fault now, not at the first call.
            self.base(&api)?;
            let definitions = self.context.tasks.spawn_blocking(move || api.definitions());
            definitions
                .await
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
            let api = self.api(false).await?;
            let operation = api.operation(tool).ok_or(SourceError::UnknownTool)?;
            let missing = || SourceError::Arguments(format!("`{tool}` has no schema at `{path}`"));
            api.part(&operation, path).ok_or_else(missing)
        })
    }
}

/// The introduction of an interface.
pub(super) fn introduction() -> Introduction {
    Introduction::of_source(r#"{"tools":{"listChanged":true}}"#)
}
