//! What the index keeps of a tool.

use std::sync::LazyLock;

use tantivy::TantivyDocument;
use tantivy::schema::{
    FAST, Field, IndexRecordOption, STORED, STRING, Schema, SchemaBuilder, TextFieldIndexing, TextOptions,
};

use super::Document;
use super::embedding::VectorKey;
use super::fingerprint::key;
use super::tokenizer::{STEMS, WORDS, compact, split};

/// The schema of every index, built once.
pub(super) static SCHEMA: LazyLock<IndexSchema> = LazyLock::new(IndexSchema::new);

pub(super) struct IndexSchema {
    pub(super) schema: Schema,
    /// Server, tool and hash in one term: tells which state of which tool the index has.
    pub(super) key: Field,
    /// What the tool's vector is found by; see [`VECTOR`].
    vector: Field,
    /// The server's name as one term, to narrow a search.
    pub(super) server: Field,
    pub(super) tool: Field,
    /// The compact tool name, alone and after the server's: what an exact name is looked up in.
    pub(super) exact: Field,
    /// Every word unstemmed: what a typo is repaired against.
    pub(super) vocabulary: Field,
    pub(super) ranked: [RankedField; 5],
}

/// The column of the tools' [`VectorKey`]s.
///
/// [`VectorKey`]: super::embedding::VectorKey
pub(super) const VECTOR: &str = "vector";

/// A field that takes part in ranking.
#[derive(Clone, Copy)]
pub(super) struct RankedField {
    /// As people read it.
    pub(super) name: &'static str,
    pub(super) field: Field,
    /// How much a word counts here.
    pub(super) weight: f32,
    /// How much a field longer than the average is held against its words, 0 to 1.
    pub(super) length: f32,
}

impl IndexSchema {
    fn new() -> Self {
        let mut builder = Schema::builder();
        let key = builder.add_text_field("key", STRING);
        let vector = builder.add_u64_field(VECTOR, FAST);
        let server = builder.add_text_field("server", STRING | STORED);
        let tool = builder.add_text_field("tool", STORED);
        let exact = builder.add_text_field("exact", STRING);
        let vocabulary = builder.add_text_field("vocabulary", text(WORDS, IndexRecordOption::Basic));
        let mut ranked = |name, weight, length| ranked(&mut builder, name, weight, length);
        let ranked = [
            ranked("tool", 3.0, 0.4),
            ranked("server", 2.0, 0.0),
            ranked("title", 1.0, 0.4),
            ranked("description", 1.0, 0.75),
            ranked("parameters", 0.4, 0.75),
        ];
        Self { schema: builder.build(), key, vector, server, tool, exact, vocabulary, ranked }
    }

    /// The words of the server's name, by which a query may hint at it.
    pub(super) fn server_words(&self) -> Field {
        self.ranked[1].field
    }

    /// `document` as tantivy takes it.
    pub(super) fn document(&self, document: &Document) -> TantivyDocument {
        let Document { server, tool, hash, title, description, parameters } = document;
        let mut fields = TantivyDocument::new();
        fields.add_text(self.key, key(server, tool, *hash));
        fields.add_u64(self.vector, VectorKey::of(server, *hash).0);
        fields.add_text(self.server, server.as_str());
        fields.add_text(self.tool, tool.as_str());
        fields.add_text(self.exact, compact(tool.as_str()));
        fields.add_text(self.exact, compact(&format!("{server}{tool}")));
        let names: Vec<&str> = parameters.iter().flat_map(|(name, text)| [name.as_str(), text.as_str()]).collect();
        let parameters = names.join(" ");
        let title = title.as_deref().unwrap_or_default();
        let texts = [tool.as_str(), &telling(server.as_str()), title, description, &parameters];
        for (field, text) in self.ranked.iter().zip(texts) {
            fields.add_text(field.field, text);
            fields.add_text(self.vocabulary, text);
        }
        fields
    }
}

/// A server's name without the words that say only that it is a server; nobody names it by them.
fn telling(server: &str) -> String {
    let is_telling = |word: &String| !matches!(word.as_str(), "mcp" | "server");
    let words: Vec<String> = split(server).into_iter().filter(is_telling).collect();
    if words.is_empty() { server.to_owned() } else { words.join(" ") }
}

fn ranked(builder: &mut SchemaBuilder, name: &'static str, weight: f32, length: f32) -> RankedField {
    let field = builder.add_text_field(&format!("{name}_words"), text(STEMS, IndexRecordOption::WithFreqs));
    RankedField { name, field, weight, length }
}

fn text(analyzer: &str, record: IndexRecordOption) -> TextOptions {
    let has_lengths = record.has_freq();
    let indexing = TextFieldIndexing::default().set_tokenizer(analyzer).set_index_option(record);
    TextOptions::default().set_indexing_options(indexing.set_fieldnorms(has_lengths))
}
