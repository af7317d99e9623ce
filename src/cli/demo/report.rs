//! The demo's report, printed with `--json`.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

/// The whole demo.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Name of the tokenizer.
    pub(super) encoding: &'static str,
    pub(super) steps: Vec<Step>,
    pub(super) totals: Totals,
}

/// One step of the demo.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) title: String,
    /// The requests sent at once, with their answers.
    pub(super) exchanges: Vec<Exchange>,
    /// The point of the step, in a sentence.
    pub(super) note: String,
}

/// A request and its answer.
#[derive(Debug, Serialize)]
pub(super) struct Exchange {
    /// The name of the tool, or the method `tools/list`.
    pub(super) tool: &'static str,
    pub(super) arguments: Box<RawValue>,
    /// The text that the agent gets.
    pub(super) answer: String,
    pub(super) is_error: bool,
    #[serde(rename = "milliseconds", serialize_with = "milliseconds")]
    pub(super) took: Duration,
    /// Tokens of the request and the answer.
    pub(super) tokens: usize,
    /// Tokens of the direct call without the gateway. 0 for searches and descriptions.
    #[serde(skip)]
    pub(super) tokens_without: usize,
}

/// The sums of the demo.
#[derive(Debug, Serialize)]
pub(super) struct Totals {
    pub(super) servers: usize,
    pub(super) tools: usize,
    /// Tokens with the gateway.
    pub(super) with: Cost,
    /// Tokens without it: all definitions and the direct calls.
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
    /// Name, description and input schema of each tool. A client sends them with every request to the model.
    pub(super) definitions: usize,
    /// The complete answers to `tools/list`.
    pub(super) listing: usize,
    /// The demo's requests and answers.
    pub(super) exchanges: usize,
}

impl Step {
    pub(super) fn tokens(&self) -> usize {
        self.exchanges.iter().map(|exchange| exchange.tokens).sum()
    }

    /// Time from sending the requests to the last answer.
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

/// A duration in milliseconds, to the microsecond.
#[expect(clippy::cast_precision_loss, reason = "a demo takes seconds")]
fn milliseconds<S: serde::Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_micros() as f64 / 1e3)
}
