//! Routes a server's notifications and requests to the clients that they concern.
//!
//! Over HTTP a message comes on the stream of the request it belongs to. A transport with one stream does not say which
//! request a message belongs to. It goes to the client if only one has requests in flight; if several have, a question is
//! refused, because the wrong user must not be asked.

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use reqwest::Url;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::ServerReply;
use super::host::{Audience, Host, Notice, Question};
use crate::mcp::{ErrorCode, Frame, Object, Outbox, Request, RequestId};
use crate::shutdown::Tasks;
use crate::tool::ServerName;

/// The longest time that a request may wait for its client's responses, in total.
const LONGEST_QUESTION: Duration = Duration::from_secs(60 * 60);

/// The maximum number of open questions of one server.
const MOST_QUESTIONS: usize = 64;

/// The router of one connection: its requests in flight and the server's open questions.
pub(super) struct InboundRouter {
    server: ServerName,
    audience: Arc<dyn Audience>,
    tasks: Tasks,
    /// Whether the server learned in its handshake what its client can be asked.
    may_ask: bool,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// The clients of the requests in flight, by our request id.
    hosts: HashMap<u64, Arc<dyn Host>>,
    /// The server's own requests that are not answered yet.
    questions: HashMap<RequestId, PendingRequest>,
}

struct PendingRequest {
    taken_back: CancellationToken,
    /// The request during which it was asked; it ends with that request.
    within: Option<u64>,
}

/// The client to ask.
enum Addressee {
    One(Arc<dyn Host>, Option<u64>),
    Nobody,
    Several,
}

impl std::fmt::Debug for InboundRouter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InboundRouter")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl InboundRouter {
    pub(super) fn new(
        server: ServerName,
        audience: Arc<dyn Audience>,
        tasks: Tasks,
        may_ask: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            server,
            audience,
            tasks,
            may_ask,
            open: Mutex::default(),
        })
    }

    /// Registers request `id` for `host`, until the guard is dropped.
    pub(super) fn begin(&self, id: u64, host: Option<Arc<dyn Host>>) -> UnderWay<'_> {
        if let Some(host) = host {
            self.open().hosts.insert(id, host);
        }
        UnderWay { inbound: self, id }
    }

    /// The queue for the response to request `id`, if it is known.
    pub(super) fn response_outbox(&self, id: u64) -> Option<Outbox> {
        self.open().hosts.get(&id)?.response_outbox()
    }

    /// Runs the exchange of request `id` for at most `limit`, without the time in which the server waits for the
    /// client, where a person may be reading. `None` when the time is up.
    pub(super) async fn within<T>(
        &self,
        id: u64,
        limit: Duration,
        exchange: impl Future<Output = T>,
    ) -> Option<T> {
        let start = Instant::now();
        tokio::pin!(exchange);
        loop {
            tokio::select! {
                outcome = &mut exchange => return Some(outcome),
                () = tokio::time::sleep(limit) => {
                    let is_asking = self.open().questions.values().any(|asked| asked.within == Some(id));
                    if !is_asking || start.elapsed() > LONGEST_QUESTION.max(limit) {
                        return None;
                    }
                }
            }
        }
    }

    /// Routes a notification; `id` is the request on whose stream it arrived.
    pub(super) fn notified(&self, method: &str, params: Option<&RawValue>, id: Option<u64>) {
        match (method, params) {
            ("notifications/progress", Some(params)) => {
                let token = Object::parse(params)
                    .ok()
                    .and_then(|object| object.get("progressToken")?.get().parse().ok());
                let host = token.and_then(|id: u64| self.open().hosts.get(&id).cloned());
                if let Some(host) = host {
                    host.progress(params);
                }
            }
            ("notifications/message", Some(params)) => self.logged(params, id),
            ("notifications/cancelled", Some(params)) => {
                let id = Object::parse(params)
                    .ok()
                    .and_then(|object| RequestId::parse(object.get("requestId")?));
                if let Some(asked) = id.and_then(|id| self.open().questions.remove(&id)) {
                    asked.taken_back.cancel();
                }
            }
            _ => match Notice::read(method, params) {
                Some(Notice::Extension(method, params)) => self.extension(method, params, id),
                Some(notice) => self.audience.noticed(&self.server, notice),
                None => tracing::debug!(server = %self.server, method, "notification"),
            },
        }
    }

    /// Routes a request of the server, which arrived on the stream of request `id`; `reply` sends the response.
    pub(super) fn asked(
        self: &Arc<Self>,
        request: &Request<'_>,
        id: Option<u64>,
        reply: impl FnOnce(Frame) + Send + 'static,
    ) {
        if request.method == "ping" {
            return reply(Frame::result(&request.id, "", Bytes::from_static(b"{}")));
        }
        if request.method == "roots/list"
            && let Some(directories) = self.audience.roots()
        {
            return reply(Frame::result(&request.id, "", roots(&directories)));
        }
        let refuse = |code, message: &str| Frame::error(Some(&request.id), code, message, None);
        let (host, within) = match self.addressee(&request.method, id) {
            Addressee::One(host, within)
                if self.may_ask
                    && host.is_askable()
                    && host.capabilities().permit(&request.method, request.params) =>
            {
                (host, within)
            }
            Addressee::One(host, _)
                if self.may_ask
                    && host.is_askable()
                    && host.capabilities().allow(&request.method) =>
            {
                let message = format!(
                    "the client does not declare support for this kind of `{}`",
                    request.method
                );
                return reply(refuse(ErrorCode::INVALID_PARAMS, &message));
            }
            Addressee::One(..) | Addressee::Nobody => {
                let message = format!("no client declares support for `{}`", request.method);
                return reply(refuse(ErrorCode::METHOD_NOT_FOUND, &message));
            }
            Addressee::Several => {
                let message = "several clients have requests in progress, so it is unknown which of them to ask";
                return reply(refuse(ErrorCode::INVALID_REQUEST, message));
            }
        };
        let taken_back = CancellationToken::new();
        {
            let mut open = self.open();
            if open.questions.len() >= MOST_QUESTIONS {
                drop(open);
                let message = format!("{MOST_QUESTIONS} requests are open already");
                return reply(refuse(ErrorCode::TOO_MANY_REQUESTS, &message));
            }
            open.questions.insert(
                request.id.clone(),
                PendingRequest {
                    taken_back: taken_back.clone(),
                    within,
                },
            );
        }
        let question = Question {
            server: self.server.clone(),
            method: request.method.to_string(),
            params: request
                .params
                .map(|raw| Bytes::copy_from_slice(raw.get().as_bytes())),
        };
        let (inbound, id) = (self.clone(), request.id.clone());
        self.tasks.spawn(async move {
            let answer = tokio::select! {
                answer = host.ask(question) => Some(answer),
                () = taken_back.cancelled() => None,
                () = inbound.tasks.stopped() => None,
            };
            inbound.open().questions.remove(&id);
            match answer {
                Some(ServerReply::Result(result)) => {
                    reply(Frame::result(&id, "", result.into_bytes()));
                }
                Some(ServerReply::Error(error)) => reply(Frame::relayed_error(&id, error)),
                None => {}
            }
        });
    }

    /// Routes a notification of an extension: to the client of the request, or to all if there is none.
    fn extension(&self, method: &str, params: Option<&RawValue>, id: Option<u64>) {
        match self.hosts_of(id)[..] {
            [] => {
                let notice = Notice::Extension(method, params);
                self.audience.noticed(&self.server, notice);
            }
            [ref host] => host.notified(method, params),
            // It may contain data that only one of these clients may see.
            _ => {
                let server = &self.server;
                tracing::debug!(%server, method, "a notification of several clients' requests goes to none");
            }
        }
    }

    /// The clients that a message concerns which arrived on the stream of request `id`, each once.
    fn hosts_of(&self, id: Option<u64>) -> Vec<Arc<dyn Host>> {
        let mut hosts: Vec<Arc<dyn Host>> = {
            let open = self.open();
            match id {
                Some(id) => open.hosts.get(&id).cloned().into_iter().collect(),
                None => open.hosts.values().cloned().collect(),
            }
        };
        hosts.sort_by_key(|host| host.client());
        hosts.dedup_by_key(|host| host.client());
        hosts
    }

    fn logged(&self, params: &RawValue, id: Option<u64>) {
        let hosts = self.hosts_of(id);
        if hosts.is_empty() {
            self.audience.noticed(&self.server, Notice::Message(params));
        }
        if hosts.len() > 1 {
            // The message may contain data that only one of these clients may see.
            tracing::debug!(server = %self.server, "a log message of several clients' requests goes to none of them");
            return;
        }
        hosts.iter().for_each(|host| host.log(&self.server, params));
    }

    fn addressee(&self, method: &str, id: Option<u64>) -> Addressee {
        let open = self.open();
        if let Some(id) = id
            && let Some(host) = open.hosts.get(&id)
        {
            return Addressee::One(host.clone(), Some(id));
        }
        let Some((latest, host)) = open.hosts.iter().max_by_key(|(id, _)| **id) else {
            drop(open);
            let mut hosts = self.audience.hosts(&self.server, method);
            return match (hosts.pop(), hosts.is_empty()) {
                (Some(host), true) => Addressee::One(host, None),
                (Some(_), false) => Addressee::Several,
                (None, _) => Addressee::Nobody,
            };
        };
        if open
            .hosts
            .values()
            .all(|other| other.client() == host.client())
        {
            Addressee::One(host.clone(), Some(*latest))
        } else {
            Addressee::Several
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // Each change is a single step, so the tables are whole even where a panic would strike.
        self.open.lock()
    }
}

/// The response to `roots/list` (2025-11-25, client/roots).
fn roots(directories: &[PathBuf]) -> Bytes {
    let roots: Vec<_> = directories
        .iter()
        .filter_map(|directory| Url::from_directory_path(directory).ok())
        .map(|url| serde_json::json!({ "uri": url.as_str().trim_end_matches('/') }))
        .collect();
    serde_json::json!({ "roots": roots }).to_string().into()
}

/// A request in flight; when it ends, its open questions end, too.
pub(super) struct UnderWay<'a> {
    inbound: &'a InboundRouter,
    id: u64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut open = self.inbound.open();
        if open.hosts.remove(&self.id).is_some() && !open.questions.is_empty() {
            open.questions.retain(|_, asked| {
                let stays = asked.within != Some(self.id);
                if !stays {
                    asked.taken_back.cancel();
                }
                stays
            });
        }
    }
}
