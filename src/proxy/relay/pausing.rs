//! The user's pause: nothing new reaches a server, and what a server has begun goes on.

use super::{Relay, RequestContext};
use crate::pause::Paused;
use crate::upstream::{CallError, SCHEMA_REQUEST};

/// Requests that go on while mcpzip is paused: those about a task that its server has begun, and for a part of a definition.
const GOING_ON: [&str; 5] = [
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "tasks/result",
    SCHEMA_REQUEST,
];

impl Relay {
    /// Whether the user has paused mcpzip.
    pub(in crate::proxy) fn paused(&self) -> Option<Paused> {
        self.pause.as_ref()?.state()
    }

    /// The pause that holds a call with this context. A call that its server has begun and that waits for an answer of the client is
    /// not held: its token is ours, and is valid for that call only.
    pub(in crate::proxy) fn holds(&self, context: Option<&RequestContext>) -> Option<Paused> {
        let paused = match context {
            Some(context) => self.pause.as_ref()?.state_for(context.caller.received),
            None => self.paused(),
        }?;
        // Only these requests answer a question; others are new calls.
        let may_answer =
            |context: &&RequestContext| context.is_askable && context.caller.revision.is_modern();
        let context = context.filter(may_answer);
        let state = context.and_then(|context| context.state.as_deref());
        let is_begun = state.is_some_and(|state| self.open_calls.has(state));
        (!is_begun).then_some(paused)
    }

    /// Whether a request may be sent.
    pub(super) fn may_begin(
        &self,
        method: &str,
        context: Option<&RequestContext>,
    ) -> Result<(), CallError> {
        if GOING_ON.contains(&method) {
            return Ok(());
        }
        match self.holds(context) {
            Some(paused) => Err(CallError::Paused(paused)),
            None => Ok(()),
        }
    }
}
