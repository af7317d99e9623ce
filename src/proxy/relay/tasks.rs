//! Tools that servers of revision 2025-11-25 run as tasks only (`execution.taskSupport: "required"`): the call makes a task, and
//! its result is waited for. A client needs to know nothing of it.

use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::instrument::InstrumentedPool;
use super::{Relay, Relayed, RequestContext};
use crate::catalog::Tool;
use crate::mcp::{Frame, Object};
use crate::shutdown::Tasks;
use crate::telemetry::trace::{Hop, Trace};
use crate::tool::ServerName;
use crate::upstream::{CallError, ServerCall, ServerReply};

/// The time limit for cancelling a task whose call was given up.
const CANCELLING: Duration = Duration::from_secs(5);

impl Relay {
    /// [`Self::request`] for a call of `tool`, which may have to be a task.
    pub(in crate::proxy) async fn call(
        &self,
        tool: &Tool,
        relayed: Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        let server = tool.server().name();
        match tool.needs_task() {
            false => self.request(server, relayed, context).await,
            true => Box::pin(self.call_as_task(server, relayed, context)).await,
        }
    }

    async fn call_as_task(
        &self,
        server: &ServerName,
        mut relayed: Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        let (start, limit) = (Instant::now(), relayed.limit);
        let wish = format!(r#","task":{{"ttl":{}}}"#, limit.as_millis());
        relayed.params.tail.extend_from_slice(wish.as_bytes());
        let reply = self.request(server, relayed, context).await?;
        let Some(id) = task_of(&reply) else {
            return Ok(reply);
        };
        let params = Frame::from(format!(r#"{{"taskId":{id}"#));
        let mut task = Task {
            pool: self.instrumented(),
            tasks: self.tasks.clone(),
            server: server.clone(),
            params: params.clone(),
            is_over: false,
        };
        let result = Relayed {
            method: "tasks/result",
            name: None,
            params,
            limit: limit.saturating_sub(start.elapsed()),
            is_repeatable: false,
        };
        let reply = self.request(server, result, context).await?;
        task.is_over = true;
        Ok(reply)
    }
}

/// A task at a server, which is cancelled when its call is given up.
struct Task {
    pool: InstrumentedPool,
    tasks: Tasks,
    server: ServerName,
    /// The parameters of requests about it.
    params: Frame,
    is_over: bool,
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (pool, server) = (self.pool.clone(), self.server.clone());
        let params = std::mem::take(&mut self.params);
        self.tasks.spawn(async move {
            let call = ServerCall {
                method: "tasks/cancel",
                name: None,
                params: &params,
                meta: "",
                limit: CANCELLING,
                hop: Hop::default(),
                host: None,
                agreed: None,
            };
            if let Err(error) = pool.call(&server, call, &Trace::None, false).await {
                tracing::debug!(%server, %error, "a task could not be cancelled");
            }
        });
    }
}

/// The id of the task that a call has made, as JSON.
fn task_of(reply: &ServerReply) -> Option<String> {
    let ServerReply::Result(result) = reply else {
        return None;
    };
    let raw: &RawValue = serde_json::from_slice(result).ok()?;
    let task = Object::parse(raw).ok()?.get("task")?;
    let id = Object::parse(task).ok()?.get("taskId")?;
    Some(id.get().to_owned())
}
