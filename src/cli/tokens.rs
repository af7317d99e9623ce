//! What texts cost, counted exactly as models of the encoding o200k_base do.
//!
//! The encoding's table is ours to unpack: the crate that counts has it as text, four times as large.

use std::io::Read as _;

use anyhow::Context as _;
use flate2::read::DeflateDecoder;
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;
use tiktoken_rs::{CoreBPE, O200K_BASE_PAT_STR, Rank};

use crate::mcp::Object;

/// The encoding that tokens are counted in.
pub(in crate::cli) const ENCODING: &str = "o200k_base";

/// Counts tokens.
pub(in crate::cli) struct Tokens(CoreBPE);

/// The tokens with their ranks; `tools/tokens/build.py` says how they lie there.
static TABLE: &[u8] = include_bytes!("tokens.bin");

/// What a list of tools costs.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::cli) struct ListCost {
    pub(in crate::cli) tools: usize,
    /// Name, description and input schema of each tool: what every client puts before the model.
    pub(in crate::cli) definitions: usize,
    /// The whole list, with output schemas, annotations and what else there is.
    pub(in crate::cli) listing: usize,
}

impl Tokens {
    /// Reads the encoding's table, which takes a moment.
    pub(in crate::cli) fn load() -> anyhow::Result<Self> {
        let ranks = ranks(TABLE).context("the tokenizer's table is damaged")?;
        CoreBPE::new(ranks, FxHashMap::default(), O200K_BASE_PAT_STR)
            .map(Self)
            .context("the tokenizer could not be loaded")
    }

    pub(in crate::cli) fn count(&self, text: &str) -> usize {
        self.0.encode_ordinary(text).len()
    }

    /// What clients put before the model of a tool: its name, description and input schema.
    pub(in crate::cli) fn cost_of_definition(&self, tool: &Object<'_>) -> usize {
        let members: Vec<String> = ["name", "description", "inputSchema"]
            .into_iter()
            .filter_map(|key| tool.get(key).map(|value| format!("\"{key}\":{value}")))
            .collect();
        self.count(&format!("{{{}}}", members.join(",")))
    }

    /// What the result of a `tools/list` costs.
    pub(in crate::cli) fn cost_of(&self, listing: &RawValue) -> anyhow::Result<ListCost> {
        let tools = tools_of(listing)?;
        let definitions = tools.iter().map(|tool| self.cost_of_definition(tool)).sum();
        Ok(ListCost {
            tools: tools.len(),
            definitions,
            listing: self.count(listing.get()),
        })
    }
}

/// Unpacks the table.
fn ranks(table: &[u8]) -> Option<FxHashMap<Vec<u8>, Rank>> {
    let ([a, b, c], packed) = table.split_first_chunk()?;
    let count = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
    let mut columns = Vec::new();
    DeflateDecoder::new(packed).read_to_end(&mut columns).ok()?;
    let (shared, columns) = columns.split_at_checked(count)?;
    let (lengths, columns) = columns.split_at_checked(count)?;
    let (mut rest, ranks) = columns.split_at_checked(columns.len().checked_sub(3 * count)?)?;
    let (low, ranks) = ranks.split_at(count);
    let (middle, high) = ranks.split_at(count);
    let mut table = FxHashMap::with_capacity_and_hasher(count, rustc_hash::FxBuildHasher);
    let mut token = Vec::new();
    for at in 0..count {
        let (own, after) = rest.split_at_checked(usize::from(lengths[at]))?;
        rest = after;
        token.truncate(usize::from(shared[at]));
        token.extend(own);
        table.insert(
            token.clone(),
            Rank::from_le_bytes([low[at], middle[at], high[at], 0]),
        );
    }
    Some(table)
}

/// The tools in the result of a `tools/list`.
pub(in crate::cli) fn tools_of(listing: &RawValue) -> anyhow::Result<Vec<Object<'_>>> {
    let tools = Object::parse(listing)?
        .get("tools")
        .context("a list of tools has no `tools`")?;
    Ok(serde_json::from_str(tools.get())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_that_of_the_encoding() {
        let (ours, theirs) = (ranks(TABLE).unwrap(), tiktoken_rs::o200k_base().unwrap());
        assert_eq!(ours.len(), 199_998);
        for (token, rank) in &ours {
            assert_eq!(
                theirs.decode_bytes(&[*rank]).unwrap(),
                *token,
                "rank {rank}"
            );
        }
        let tokens = Tokens::load().unwrap();
        for text in [
            "",
            "Create a new issue in a repository.",
            "naïve 天气预报 🦀\n\n  fn main() {}",
            "<|endoftext|>",
        ] {
            assert_eq!(
                tokens.count(text),
                theirs.encode_ordinary(text).len(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_damaged_table_is_refused() {
        assert!(
            ranks(&[]).is_none() && ranks(&TABLE[..1_000]).is_none() && ranks(&[1, 0, 0]).is_none()
        );
    }

    #[test]
    fn a_definition_is_counted_without_what_clients_keep_from_the_model() {
        let tokens = Tokens::load().unwrap();
        let short = r#"{"name":"add","description":"Add.","inputSchema":{"type":"object"}}"#;
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
