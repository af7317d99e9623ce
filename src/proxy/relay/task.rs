//! A task at a server that a call waits for.

use std::sync::Arc;
use std::time::Duration;

use super::Relayed;
use super::instrument::InstrumentedPool;
use crate::mcp::Frame;
use crate::proxy::callers::caller::CallHost;
use crate::shutdown::Tasks;
use crate::telemetry::trace::{Hop, Trace};
use crate::tool::ServerName;
use crate::upstream::{Host, ServerCall};

/// The time limit for cancelling a task whose call was given up.
const CANCELLING: Duration = Duration::from_secs(5);

/// A task at a server, which is cancelled when its call is given up.
pub(super) struct Task {
    pub(super) pool: InstrumentedPool,
    pub(super) tasks: Tasks,
    pub(super) server: ServerName,
    /// The parameters of requests about it.
    pub(super) params: Frame,
    /// Its id, if it is a task of the extension.
    pub(super) name: Option<String>,
    /// The client of its call, whose connection knows the task.
    pub(super) host: Option<Arc<CallHost>>,
    pub(super) is_over: bool,
}

impl Task {
    /// A request about it.
    pub(super) fn request<'a>(&'a self, method: &'a str, limit: Duration) -> Relayed<'a> {
        Relayed {
            method,
            name: self.name.as_deref(),
            params: self.params.clone(),
            limit,
            is_repeatable: true,
            takes_task: true,
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (pool, server) = (self.pool.clone(), self.server.clone());
        let (params, name) = (std::mem::take(&mut self.params), self.name.take());
        let host = self.host.take().map(|host| host as Arc<dyn Host>);
        self.tasks.spawn(async move {
            let call = ServerCall {
                method: "tasks/cancel",
                name: name.as_deref(),
                params: &params,
                meta: "",
                limit: CANCELLING,
                hop: Hop::default(),
                host,
                agreed: None,
                takes_task: name.is_some(),
            };
            if let Err(error) = pool.call(&server, call, &Trace::None, false).await {
                tracing::debug!(%server, %error, "a task could not be cancelled");
            }
        });
    }
}
