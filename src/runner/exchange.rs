//! The messages between the proxy and the application's handler, while a request runs and outside of any request.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::handler::AnyHandler;
use crate::mcp::{Envelope, Frame, Message, Object, Outbox, Outcome, RequestId};
use crate::proxy::Client;

/// Passes what `outbox` receives to the handler.
pub(super) struct Exchange {
    pub(super) outbox: Outbox,
    pub(super) client: Arc<Client>,
    pub(super) handler: Arc<dyn AnyHandler>,
    /// The tool whose call it is.
    pub(super) tool: Option<String>,
}

impl Exchange {
    /// Runs `work` and answers the questions that it causes. The messages of the request are passed on before it ends.
    pub(super) async fn around<T>(&self, work: impl Future<Output = T>) -> T {
        let outcome = tokio::select! {
            biased;
            outcome = work => outcome,
            () = self.serve() => unreachable!("the outbox is open"),
        };
        self.outbox.close();
        while let Some(frame) = self.outbox.next().await {
            if let Some(Received::Notice { method, params }) = read(&frame) {
                self.handler.notice(&method, params, self.tool.as_deref());
            }
        }
        outcome
    }

    /// Serves the handler until the outbox is closed.
    pub(super) async fn serve(&self) {
        let mut answers = FuturesUnordered::new();
        let mut open: HashMap<String, AbortHandle> = HashMap::new();
        loop {
            let frame = tokio::select! {
                biased;
                frame = self.outbox.next() => frame,
                Some(answered) = answers.next(), if !answers.is_empty() => {
                    if let Ok(id) = answered {
                        let id: String = id;
                        open.remove(&id);
                    }
                    continue;
                }
            };
            let Some(frame) = frame else {
                return;
            };
            match read(&frame) {
                Some(Received::Question { id, method, params }) => {
                    let (handle, registration) = AbortHandle::new_pair();
                    open.insert(id.as_json().to_owned(), handle);
                    answers.push(Abortable::new(
                        self.answer(id, method, params),
                        registration,
                    ));
                }
                Some(Received::Notice { method, params })
                    if method == "notifications/cancelled" =>
                {
                    if let Some(handle) = open.remove(&params["requestId"].to_string()) {
                        handle.abort();
                    }
                }
                Some(Received::Notice { method, params }) => {
                    self.handler.notice(&method, params, self.tool.as_deref());
                }
                None => {}
            }
        }
    }

    /// Answers one question and returns its id.
    async fn answer(&self, id: RequestId, method: String, mut params: Value) -> String {
        let server = params["_meta"]["mcpzip/server"]
            .as_str()
            .unwrap_or_default();
        let server = server.to_owned();
        if let Some(meta) = params["_meta"].as_object_mut() {
            meta.remove("mcpzip/server");
        }
        let answer = self.handler.answer(&method, &server, params).await;
        let number = id.as_integer().and_then(|id| u64::try_from(id).ok());
        if let Some(number) = number {
            let raw = |value: &Value| RawValue::from_string(value.to_string()).ok();
            match answer {
                Ok(result) => {
                    if let Some(raw) = raw(&result) {
                        self.client.answered(number, &Outcome::Result(&raw));
                    }
                }
                Err(error) => {
                    let error = json!({ "code": -32603, "message": error.to_string() });
                    if let Some(raw) = raw(&error) {
                        self.client.answered(number, &Outcome::Error(&raw));
                    }
                }
            }
        }
        id.as_json().to_owned()
    }
}

/// A message for the handler.
enum Received {
    Question {
        id: RequestId,
        method: String,
        params: Value,
    },
    Notice {
        method: String,
        params: Value,
    },
}

fn read(frame: &Frame) -> Option<Received> {
    let line = Bytes::from([&frame.head[..], &frame.body, &frame.tail].concat());
    let value = |raw: Option<&RawValue>| {
        let value = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
        value.unwrap_or_else(|| json!({}))
    };
    match Envelope::parse(&line).ok()? {
        Envelope::Single(Message::Request(request)) => Some(Received::Question {
            params: value(request.params),
            method: request.method.into_owned(),
            id: request.id,
        }),
        Envelope::Single(Message::Notification { method, params }) => Some(Received::Notice {
            method: method.into_owned(),
            params: value(params),
        }),
        _ => None,
    }
}

/// The parameters of a request that asks for progress.
pub(super) fn object(raw: &RawValue) -> Object<'_> {
    Object::parse(raw).unwrap_or_default()
}
