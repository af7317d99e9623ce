//! The sentence embedding of mcpzip: texts with like meaning get vectors that point the same way.
//!
//! A [`Model`] is a BERT of six small layers with its vocabulary, in the program's own file, 4 bits for a weight. It is
//! run by kernels of our own: what a query needs are a few products of a vector with a matrix, for which a framework
//! would be a hundred times the code. Nothing here touches the network, the disk or a clock, and nothing is unsafe.

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

/// The numbers in a vector of the bundled model.
#[cfg(feature = "asset")]
pub const BUNDLED_WIDTH: usize = 384;

/// What tells the bundled model from any other; does not open it.
#[cfg(feature = "asset")]
#[must_use]
pub fn bundled_name() -> String {
    format!("{:08x}", asset::checksum(BYTES).unwrap_or_default())
}

impl Model {
    /// The model that the program carries. Opening it takes less than a millisecond; its weights are read where they
    /// lie, when they are used.
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

    /// The numbers in a vector.
    #[must_use]
    pub fn width(&self) -> usize {
        self.asset.width
    }

    /// The ids of a text's pieces, as the model sees it: cut to `longest`, those of the beginning and the end included.
    #[must_use]
    pub fn pieces(&self, text: &str, longest: usize) -> Vec<u32> {
        tokenizer::pieces(
            &self.asset.vocabulary,
            text,
            longest.min(self.asset.longest()),
        )
    }

    /// Whether `word`, in lower case, is a piece by itself: a common word, or part of a name.
    #[must_use]
    pub fn is_piece(&self, word: &str) -> bool {
        self.asset.vocabulary.find(word).is_some()
    }

    /// The vectors of some texts, each of length 1 and of the text's first `longest` pieces. Several at once take less
    /// time than one after another, and memory for all of them.
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
