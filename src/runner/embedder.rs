//! The application's own model for search by meaning.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use super::error::{Error, ErrorKind};
use crate::search::{self, Unavailable};

/// The vectors of a search have a multiple of this many numbers; the rest is filled with zeros.
const STEP: usize = 16;

/// The largest number of dimensions. Models have a few thousand at most.
const MOST_DIMENSIONS: usize = 65_536;

/// A model for search by meaning, for [`Builder::embedder`](crate::Builder::embedder). It takes the place of the bundled one, and also
/// works without the feature `semantic`.
///
/// ```
/// use mcpzip::{Embedder, Error, Runner};
///
/// /// Counts letters, where a program has a model.
/// struct Letters;
///
/// impl Embedder for Letters {
///     fn model(&self) -> String {
///         "letters-1".to_owned()
///     }
///
///     fn dimensions(&self) -> usize {
///         26
///     }
///
///     fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
///         let count = |text: &str, letter: char| text.matches(letter).count() as f32;
///         let vector = |text: &&str| ('a'..='z').map(|letter| count(text, letter)).collect();
///         Ok(texts.iter().map(vector).collect())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let runner = Runner::builder().embedder(Letters).build().await?;
/// # Ok(())
/// # }
/// ```
pub trait Embedder: Send + Sync + 'static {
    /// The name and version of the model. Vectors that are kept on disk are those of one model. It is asked for once, when the runner
    /// is built.
    fn model(&self) -> String;

    /// The numbers in a vector: 1 to 65,536. It is asked for once, when the runner is built.
    fn dimensions(&self) -> usize;

    /// A vector for each text; texts with a similar meaning have a similar direction. It may block, and is called on a thread for
    /// that. With an error, or after a panic, words alone decide.
    ///
    /// # Errors
    /// When the model fails.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error>;
}

/// A model of the program, as the search uses it.
pub(super) struct Own {
    embedder: Arc<dyn Embedder>,
    model: String,
    dimensions: usize,
}

impl Own {
    /// Asks the model for its name and dimensions, so that they stay the same.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when it does not say them, or the dimensions cannot be used.
    pub(super) fn of(embedder: Arc<dyn Embedder>) -> Result<Self, Error> {
        let unusable = |message| Error::new(ErrorKind::Config, message);
        let told = std::panic::catch_unwind(AssertUnwindSafe(|| {
            (embedder.model(), embedder.dimensions())
        }));
        let (model, dimensions) = told.map_err(|_| unusable("the embedder panicked".to_owned()))?;
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            let message = format!(
                "the embedder has {dimensions} dimensions; 1 to {MOST_DIMENSIONS} can be used"
            );
            return Err(unusable(message));
        }
        Ok(Self {
            embedder,
            model,
            dimensions,
        })
    }
}

impl search::Embedder for Own {
    fn name(&self) -> String {
        self.model.clone()
    }

    fn width(&self) -> usize {
        self.dimensions.next_multiple_of(STEP)
    }

    fn is_word(&self, _: &str) -> bool {
        false
    }

    fn embed(&self, texts: &[&str], _: usize) -> Result<Vec<Vec<f32>>, Unavailable> {
        let unavailable = |reason: String| Unavailable { reason };
        let (dimensions, width) = (self.dimensions, self.width());
        let embedded = std::panic::catch_unwind(AssertUnwindSafe(|| self.embedder.embed(texts)));
        let vectors = embedded
            .map_err(|_| unavailable("the model panicked".to_owned()))?
            .map_err(|error| unavailable(error.to_string()))?;
        if vectors.len() != texts.len() || vectors.iter().any(|vector| vector.len() != dimensions) {
            let reason =
                format!("the model did not give a vector of {dimensions} numbers for each text");
            return Err(unavailable(reason));
        }
        Ok(vectors
            .into_iter()
            .map(|vector| unit(vector, width))
            .collect())
    }
}

/// `vector` with the length 1, and zeros up to `width` numbers.
fn unit(mut vector: Vec<f32>, width: usize) -> Vec<f32> {
    let length = vector.iter().map(|one| one * one).sum::<f32>().sqrt();
    if length.is_finite() && length > 0.0 {
        vector.iter_mut().for_each(|one| *one /= length);
    } else {
        vector.fill(0.0);
    }
    vector.resize(width, 0.0);
    vector
}
