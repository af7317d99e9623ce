//! What a walk has shown, as `--json` prints it.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

/// The whole walk.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// What tokens are counted in.
    pub(super) encoding: &'static str,
    pub(super) steps: Vec<Step>,
    pub(super) totals: Totals,
}

/// One thing shown.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) title: String,
    /// What was sent at once, and what came back.
    pub(super) exchanges: Vec<Exchange>,
    /// What is to be seen in it.
    pub(super) note: String,
}

/// A request and its answer.
#[derive(Debug, Serialize)]
pub(super) struct Exchange {
    /// The tool as the client calls it, or another method.
    pub(super) tool: &'static str,
    pub(super) arguments: Box<RawValue>,
    /// The text that the agent gets.
    pub(super) answer: String,
    pub(super) is_error: bool,
    #[serde(rename = "milliseconds", serialize_with = "milliseconds")]
    pub(super) took: Duration,
    /// Those of the request and of the answer.
    pub(super) tokens: usize,
    /// The tokens of the same call without the gateway; none for what only the gateway needs.
    #[serde(skip)]
    pub(super) tokens_without: usize,
}

/// What it comes to.
#[derive(Debug, Serialize)]
pub(super) struct Totals {
    pub(super) servers: usize,
    pub(super) tools: usize,
    /// Tokens with the gateway.
    pub(super) with: Cost,
    /// Tokens without it: all definitions, and the same calls without searching.
    pub(super) without: Cost,
    #[serde(rename = "first_answer_milliseconds", serialize_with = "milliseconds")]
    pub(super) first_answer: Duration,
    #[serde(rename = "first_search_milliseconds", serialize_with = "milliseconds")]
    pub(super) first_search: Duration,
    #[serde(rename = "call_milliseconds", serialize_with = "milliseconds")]
    pub(super) call: Duration,
    #[serde(rename = "direct_call_milliseconds", serialize_with = "milliseconds")]
    pub(super) direct_call: Duration,
}

/// Tokens of one way to reach the tools.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
    /// Name, description and input schema of each tool, with every request to the model.
    pub(super) definitions: usize,
    /// The whole answers to `tools/list`.
    pub(super) listing: usize,
    /// The walk's requests and answers.
    pub(super) exchanges: usize,
}

impl Step {
    pub(super) fn tokens(&self) -> usize {
        self.exchanges.iter().map(|exchange| exchange.tokens).sum()
    }

    /// From the request to the last answer.
    pub(super) fn took(&self) -> Duration {
        self.exchanges
            .iter()
            .map(|exchange| exchange.took)
            .max()
            .unwrap_or_default()
    }
}

impl Cost {
    pub(super) fn sum(&self) -> usize {
        self.definitions + self.exchanges
    }
}

/// To the microsecond; finer figures say nothing.
#[expect(clippy::cast_precision_loss, reason = "a demo takes seconds")]
fn milliseconds<S: serde::Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_micros() as f64 / 1e3)
}
