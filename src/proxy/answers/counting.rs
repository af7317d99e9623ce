//! Statistics of calls and answers.

use std::time::Duration;

use serde_json::value::RawValue;

use super::Answers;
use super::projection::texts_of;
use super::reply::is_error;
use crate::mcp::Object;
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply};
pub(in crate::proxy) use crate::statistics::Answer;
use crate::statistics::{CallOutcome, CallPath};
use crate::tool::{QualifiedName, tokens_of};
use crate::upstream::{RawResult, Word};

impl Answers {
    /// Counts a client's first request for the tools, the definitions it gets, and the servers whose definitions it
    /// does not get.
    pub(in crate::proxy) fn count_listing(
        &self,
        view: &View,
        caller: &Caller,
        shown: impl FnOnce() -> usize,
    ) {
        if caller.client.lists() {
            let config = view.config();
            let servers = config.servers.iter().filter(|(_, entry)| !entry.disabled);
            self.statistics
                .listed(servers.map(|(name, _)| name.as_str()));
            self.statistics.answered(Answer::Own, shown());
        }
    }

    /// Counts an answer of mcpzip's own and returns it.
    pub(in crate::proxy) fn counted(&self, answer: Answer, reply: Reply) -> Reply {
        if let Reply::Result(body) = &reply {
            let raw: Option<&RawValue> = serde_json::from_slice(body).ok();
            let object = raw
                .and_then(|raw| Object::parse(raw).ok())
                .unwrap_or_default();
            let tokens = texts_of(&object).iter().map(|text| tokens_of(text)).sum();
            self.statistics.answered(answer, tokens);
        }
        reply
    }

    /// Counts a call with `sent` bytes of arguments, and its result, if there is one.
    pub(in crate::proxy) fn count_call(
        &self,
        name: &QualifiedName,
        latency: Duration,
        sent: usize,
        result: Option<&RawResult>,
        path: CallPath,
    ) {
        let outcome = CallOutcome {
            failed: result.is_none_or(|result| result.may_have(Word::IsError) && is_error(result)),
            latency,
            sent,
            received: result.map_or(0, |result| result.len()),
            path,
        };
        self.statistics
            .called(name.server.as_str(), name.tool.as_str(), &outcome);
    }
}
