use anyhow::Context as _;
use serde_json::value::RawValue;
use tiktoken_rs::CoreBPE;

use crate::mcp::Object;

/// The encoding that tokens are counted in.
pub(super) const ENCODING: &str = "o200k_base";

/// Counts tokens.
pub(super) struct Tokens(CoreBPE);

/// What a list of tools costs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ListCost {
    pub(super) tools: usize,
    /// Name, description and input schema of each tool: what every client puts before the model.
    pub(super) definitions: usize,
    /// The whole list, with output schemas, annotations and what else there is.
    pub(super) listing: usize,
}

impl Tokens {
    /// Reads the encoding's table, which takes a moment.
    pub(super) fn load() -> anyhow::Result<Self> {
        tiktoken_rs::o200k_base().map(Self).context("the tokenizer could not be loaded")
    }

    pub(super) fn count(&self, text: &str) -> usize {
        self.0.encode_ordinary(text).len()
    }

    /// What the result of a `tools/list` costs.
    pub(super) fn cost_of(&self, listing: &RawValue) -> anyhow::Result<ListCost> {
        let tools = tools_of(listing)?;
        let mut definitions = 0;
        for tool in &tools {
            let members: Vec<String> = ["name", "description", "inputSchema"]
                .into_iter()
                .filter_map(|key| tool.get(key).map(|value| format!("\"{key}\":{value}")))
                .collect();
            definitions += self.count(&format!("{{{}}}", members.join(",")));
        }
        Ok(ListCost { tools: tools.len(), definitions, listing: self.count(listing.get()) })
    }
}

/// The tools in the result of a `tools/list`.
pub(super) fn tools_of(listing: &RawValue) -> anyhow::Result<Vec<Object<'_>>> {
    let tools = Object::parse(listing)?.get("tools").context("a list of tools has no `tools`")?;
    Ok(serde_json::from_str(tools.get())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_counted_without_what_clients_keep_from_the_model() {
        let tokens = Tokens::load().unwrap();
        let short = r#"{"name":"add","description":"Add.","inputSchema":{"type":"object"}}"#;
        let long =
            r#"{"name":"add","description":"Add.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}"#;
        let listing = RawValue::from_string(format!(r#"{{"tools":[{short},{long}]}}"#)).unwrap();
        let cost = tokens.cost_of(&listing).unwrap();
        assert_eq!((cost.tools, cost.definitions), (2, 2 * tokens.count(short)));
        assert_eq!(cost.listing, tokens.count(listing.get()));
        assert!(tokens.cost_of(&RawValue::from_string("{}".to_owned()).unwrap()).is_err());
    }
}
