//! Meaning: what turns texts into vectors, and which text stands for a tool.
//!
//! Vectors are kept in bytes, a quarter of the size; a cosine changes in the third digit only.

use sha2::{Digest, Sha256};

use super::Document;
use super::tokenizer::split;
use crate::tool::{ServerName, ToolHash};

/// Turns texts into vectors of length 1 that point the same way when the texts mean the same.
///
/// Callers may rely on equal vectors for equal texts, from every process with the same [`Embedder::name`]. Whoever
/// implements it may take milliseconds for a text; it is never called where messages pass.
pub trait Embedder: Send + Sync {
    /// Names the model. Vectors of models with different names cannot be compared.
    fn name(&self) -> String;

    /// The numbers in a vector, a multiple of 16.
    fn width(&self) -> usize;

    /// Whether this is a word of the language, so that it is no misspelling of another.
    fn is_word(&self, word: &str) -> bool;

    /// A vector for each text; what is longer than `longest` pieces, about as many words, is cut.
    ///
    /// # Errors
    /// When it cannot tell; search then goes by words alone.
    fn embed(&self, texts: &[&str], longest: usize) -> Result<Vec<Vec<f32>>, Unavailable>;

    /// The products of `vector` with each row of signed bytes.
    fn products(&self, vector: &[f32], rows: &[u8]) -> Vec<f32> {
        let product = |row: &[u8]| {
            row.iter()
                .zip(vector)
                .map(|(a, b)| f32::from(a.cast_signed()) * b)
                .sum()
        };
        rows.chunks_exact(vector.len()).map(product).collect()
    }
}

/// There is no telling what a text means.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the embedding is not available: {reason}")]
pub struct Unavailable {
    /// Why.
    pub reason: String,
}

/// Which tool a vector is of: its server, whose name is part of the text, and the hash of its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VectorKey(pub(super) u64);

impl VectorKey {
    /// The key of a tool.
    #[must_use]
    pub fn of(server: &ServerName, hash: ToolHash) -> Self {
        let digest = Sha256::digest(format!("{hash} {server}"));
        Self(u64::from_le_bytes(
            *digest.first_chunk().expect("a digest has 32 bytes"),
        ))
    }
}

/// The pieces of a tool that are looked at: what a tool is for stands in front, and more makes rankings worse.
pub(super) const TOOL_PIECES: usize = 48;
/// The pieces of a query.
pub(super) const QUERY_PIECES: usize = 64;

/// What is embedded of a tool. Whoever changes it changes [`super::vectors::VERSION`].
pub(super) fn text(document: &Document) -> String {
    let Document {
        server,
        tool,
        description,
        ..
    } = document;
    let words = [split(server.as_str()), split(tool.as_str())]
        .concat()
        .join(" ");
    format!("{words}: {description}")
}

/// The model that the binary carries, opened when it is first used.
#[cfg(feature = "semantic")]
#[derive(Debug, Default)]
pub struct Bundled(
    std::sync::OnceLock<Result<mcpzip_embedding::Model, mcpzip_embedding::Malformed>>,
);

#[cfg(feature = "semantic")]
impl Bundled {
    fn model(&self) -> Result<&mcpzip_embedding::Model, Unavailable> {
        let model = self.0.get_or_init(mcpzip_embedding::Model::bundled);
        model.as_ref().map_err(|error| Unavailable {
            reason: error.to_string(),
        })
    }
}

#[cfg(feature = "semantic")]
impl Embedder for Bundled {
    fn name(&self) -> String {
        mcpzip_embedding::bundled_name()
    }

    fn width(&self) -> usize {
        mcpzip_embedding::BUNDLED_WIDTH
    }

    fn is_word(&self, word: &str) -> bool {
        self.model().is_ok_and(|model| model.is_piece(word))
    }

    fn embed(&self, texts: &[&str], longest: usize) -> Result<Vec<Vec<f32>>, Unavailable> {
        Ok(self.model()?.embed(texts, longest))
    }

    fn products(&self, vector: &[f32], rows: &[u8]) -> Vec<f32> {
        mcpzip_embedding::products(vector, rows)
    }
}
