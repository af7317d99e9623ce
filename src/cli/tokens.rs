//! Counts tokens with the encoding o200k_base.

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tiktoken_rs::CoreBPE;

use crate::mcp::Object;
use crate::tool::shown_to_models;

/// Name of the encoding.
pub(in crate::cli) const ENCODING: &str = "o200k_base";

/// The tokenizer.
pub(in crate::cli) struct Tokens(CoreBPE);

/// Tokens of a list of tools.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::cli) struct ListCost {
    pub(in crate::cli) tools: usize,
    /// Name, description and input schema of each tool, which every client sends to the model.
    pub(in crate::cli) definitions: usize,
    /// The whole list, with output schemas, annotations and the rest.
    pub(in crate::cli) listing: usize,
}

impl Tokens {
    /// Loads the encoding's table, which takes a moment.
    pub(in crate::cli) fn load() -> anyhow::Result<Self> {
        tiktoken_rs::o200k_base()
            .map(Self)
            .context("the tokenizer could not be loaded")
    }

    pub(in crate::cli) fn count(&self, text: &str) -> usize {
        self.0.encode_ordinary(text).len()
    }

    /// Tokens of one definition as a client sends it to the model.
    pub(in crate::cli) fn cost_of_definition(&self, tool: &Value) -> usize {
        self.count(&shown_to_models(tool))
    }

    /// Tokens of the result of a `tools/list`.
    pub(in crate::cli) fn cost_of(&self, listing: &RawValue) -> anyhow::Result<ListCost> {
        let tools: Vec<Value> = tools_of(listing)?;
        let definitions = tools.iter().map(|tool| self.cost_of_definition(tool)).sum();
        Ok(ListCost {
            tools: tools.len(),
            definitions,
            listing: self.count(listing.get()),
        })
    }
}

/// The tools in the result of a `tools/list`.
pub(in crate::cli) fn tools_of<'a, T: Deserialize<'a>>(
    listing: &'a RawValue,
) -> anyhow::Result<Vec<T>> {
    let tools = Object::parse(listing)?
        .get("tools")
        .context("a list of tools has no `tools`")?;
    Ok(serde_json::from_str(tools.get())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_counted_without_what_clients_keep_from_the_model() {
        let tokens = Tokens::load().unwrap();
        let short = r#"{"description":"Add.","inputSchema":{"type":"object"},"name":"add"}"#;
        let long = r#"{"name":"add","description":"Add.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}"#;
        let listing = RawValue::from_string(format!(r#"{{"tools":[{short},{long}]}}"#)).unwrap();
        let cost = tokens.cost_of(&listing).unwrap();
        assert_eq!((cost.tools, cost.definitions), (2, 2 * tokens.count(short)));
        assert_eq!(cost.listing, tokens.count(listing.get()));
        assert!(
            tokens
                .cost_of(&RawValue::from_string("{}".to_owned()).unwrap())
                .is_err()
        );
    }
}
