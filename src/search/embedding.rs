//! Embeddings: the vectors of texts, and the text that represents a tool.
//!
//! Vectors are stored as bytes, a quarter of the size; a cosine changes in the third digit only.

use sha2::{Digest, Sha256};

use super::Document;
use super::tokenizer::split;
use crate::tool::{ServerName, ToolHash};

/// Maps texts to vectors of length 1, so that texts with a similar meaning have a high cosine.
///
/// Equal texts have equal vectors, in every process with the same [`Embedder::name`]. An implementation may take
/// milliseconds per text; it is never called on a thread that passes messages.
pub trait Embedder: Send + Sync {
    /// The model's name. Vectors of different models cannot be compared.
    fn name(&self) -> String;

    /// The numbers in a vector, a multiple of 16.
    fn width(&self) -> usize;

    /// Whether this is a word of the language, and so not a misspelling of another.
    fn is_word(&self, word: &str) -> bool;

    /// One vector per text. Texts longer than `longest` pieces (about as many words) are cut.
    ///
    /// # Errors
    /// When the model fails; search then uses words alone.
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

/// The embedder could not give a vector.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the embedding is not available: {reason}")]
pub struct Unavailable {
    /// The reason.
    pub reason: String,
}

/// The identity of a tool's vector: its server, whose name is part of the text, and the hash of its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VectorKey(pub(super) u64);

impl VectorKey {
    /// Computes the key of a tool.
    #[must_use]
    pub fn of(server: &ServerName, hash: ToolHash) -> Self {
        let digest = Sha256::digest(format!("{hash} {server}"));
        Self(u64::from_le_bytes(
            *digest.first_chunk().expect("a digest has 32 bytes"),
        ))
    }
}

/// The number of a tool's pieces that are embedded. The purpose of a tool stands first; more text makes rankings
/// worse.
pub(super) const TOOL_PIECES: usize = 48;
/// The number of a query's pieces that are embedded.
pub(super) const QUERY_PIECES: usize = 64;

/// The text of a tool that is embedded. A change here needs a new [`super::vectors::VERSION`].
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

/// The model in the binary, opened at first use.
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
