//! The sentence embedding of mcpzip: texts with similar meanings get vectors with similar directions.
//!
//! A [`Model`] is a BERT with six small layers and its vocabulary. It is part of the program's file, with 4 bits per
//! weight. The kernels are our own, because a query needs only a few products of a vector and a matrix, and a
//! framework has a hundred times as much code. The crate uses no network, disk or clock, and no unsafe code.

mod asset;
mod kernel;
mod simd;
mod similarity;
mod tokenizer;
mod transformer;

pub use asset::Malformed;
pub use similarity::products;

use asset::Asset;

/// A sentence embedding.
#[derive(Debug)]
pub struct Model {
    asset: Asset<'static>,
}

#[cfg(feature = "asset")]
static BYTES: &[u8] = include_bytes!("../model.bin");

/// The length of a vector of the bundled model.
#[cfg(feature = "asset")]
pub const BUNDLED_WIDTH: usize = 384;

/// The identity of the bundled model. This does not open it.
#[cfg(feature = "asset")]
#[must_use]
pub fn bundled_name() -> String {
    format!("{:08x}", asset::checksum(BYTES).unwrap_or_default())
}

impl Model {
    /// The model in the program. Opening it takes less than a millisecond, because its weights are read in place when
    /// they are used.
    ///
    /// # Errors
    /// When the asset is of another version than this code.
    #[cfg(feature = "asset")]
    pub fn bundled() -> Result<Self, Malformed> {
        Self::new(BYTES)
    }

    /// A model in memory.
    ///
    /// # Errors
    /// When it is of another version than this code.
    pub fn new(bytes: &'static [u8]) -> Result<Self, Malformed> {
        Ok(Self {
            asset: Asset::open(bytes)?,
        })
    }

    /// The length of a vector.
    #[must_use]
    pub fn width(&self) -> usize {
        self.asset.width
    }

    /// The ids of a text's pieces as the model sees them: cut to `longest`, including those of the beginning and the
    /// end.
    #[must_use]
    pub fn pieces(&self, text: &str, longest: usize) -> Vec<u32> {
        tokenizer::pieces(
            &self.asset.vocabulary,
            text,
            longest.min(self.asset.longest()),
        )
    }

    /// Whether `word`, in lower case, is a single piece: a common word, or part of a name.
    #[must_use]
    pub fn is_piece(&self, word: &str) -> bool {
        self.asset.vocabulary.find(word).is_some()
    }

    /// The vectors of some texts. Each has length 1 and covers the text's first `longest` pieces. Several texts at once
    /// take less time than one after the other, but memory for all of them.
    #[must_use]
    pub fn embed(&self, texts: &[&str], longest: usize) -> Vec<Vec<f32>> {
        let pieces: Vec<Vec<u32>> = texts
            .iter()
            .map(|text| self.pieces(text, longest))
            .collect();
        let vectors = transformer::run(&self.asset, &pieces);
        vectors
            .chunks_exact(self.asset.width)
            .map(<[f32]>::to_vec)
            .collect()
    }
}
