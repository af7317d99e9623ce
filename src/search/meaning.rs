//! The vectors of one index's tools, by document id, and the similarity of each to a query.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use super::Semantic;
use super::embedding::{Embedder, QUERY_PIECES, Unavailable, VectorKey};
use super::query::Query;
use super::vectors::Table;

/// The vectors of the index's tools.
pub(super) struct Meaning {
    table: Arc<Table>,
    /// The row of each document in the table. `None` if it has no vector yet.
    rows: Vec<Option<u32>>,
}

/// The cosine similarity of each document to the query; NaN without a vector.
pub(super) struct Similarity {
    /// The similarity to the whole query.
    pub(super) whole: Vec<f32>,
    /// The similarity to each need; empty if there is only one.
    pub(super) needs: Vec<Vec<f32>>,
}

/// The vectors of a query.
pub(super) struct Embedded {
    whole: Vec<f32>,
    /// The vectors of each need; empty if there is only one.
    needs: Vec<Vec<f32>>,
}

impl Embedded {
    /// Embeds `query` with its misspelt words replaced. Several needs are embedded at the same time as the whole:
    /// together they are as long, and the queries with the most words are those with several needs.
    pub(super) fn of(
        semantic: &Semantic,
        query: &Query,
        repairs: &[(String, String)],
    ) -> Result<Self, Unavailable> {
        let embed = |texts: &[String]| {
            semantic.embedder.embed(
                &texts.iter().map(String::as_str).collect::<Vec<_>>(),
                QUERY_PIECES,
            )
        };
        let whole = || semantic.embed(&repaired(&query.text(), repairs));
        let needs: Vec<String> = query
            .needs
            .iter()
            .map(|need| repaired(&need.text, repairs))
            .collect();
        let (needs, whole) = match &needs[..] {
            [] | [_] => (Ok(Vec::new()), whole()),
            needs => in_parallel(|| embed(needs), whole),
        };
        Ok(Self {
            whole: whole?,
            needs: needs?,
        })
    }
}

/// Runs both at once, the first on its own thread if one can be started.
pub(super) fn in_parallel<A: Send, B>(
    first: impl Fn() -> A + Sync,
    second: impl FnOnce() -> B,
) -> (A, B) {
    thread::scope(|scope| {
        let running = thread::Builder::new().spawn_scoped(scope, &first);
        let second = second();
        let first = match running {
            Ok(running) => running.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => first(),
        };
        (first, second)
    })
}

impl Meaning {
    /// Finds the vectors of `keys`, the documents of an index, in a table. `None` if there are none.
    pub(super) fn new(keys: impl Iterator<Item = VectorKey>, table: Arc<Table>) -> Option<Self> {
        let mut rows: Vec<Option<u32>> = keys.map(|key| table.find(key)).collect();
        // Every row is multiplied with each query, including those of other clients' tools.
        let is_much_spare = table.len() > rows.len() * 3 / 2;
        let table = if is_much_spare {
            Arc::new(table.only(&mut rows))
        } else {
            table
        };
        rows.iter()
            .any(Option::is_some)
            .then_some(Self { table, rows })
    }

    /// Compares every tool with the query.
    pub(super) fn compare(&self, embedder: &dyn Embedder, asked: &Embedded) -> Similarity {
        Similarity {
            whole: self.similarity(embedder, &asked.whole),
            needs: asked
                .needs
                .iter()
                .map(|need| self.similarity(embedder, need))
                .collect(),
        }
    }

    fn similarity(&self, embedder: &dyn Embedder, vector: &[f32]) -> Vec<f32> {
        let products = embedder.products(vector, self.table.rows());
        let cosine = |row: u32| self.table.scale(row) * products[row as usize];
        self.rows
            .iter()
            .map(|row| row.map_or(f32::NAN, cosine))
            .collect()
    }
}

/// `text` with each misspelt word replaced.
fn repaired(text: &str, repairs: &[(String, String)]) -> String {
    if repairs.is_empty() {
        return text.to_owned();
    }
    let repair = |word: &str| {
        let letters = word.trim_matches(|c: char| !c.is_alphanumeric());
        let found = repairs
            .iter()
            .find(|(wrong, _)| letters.to_lowercase() == *wrong);
        found.map_or_else(
            || word.to_owned(),
            |(_, right)| word.replacen(letters, right, 1),
        )
    };
    text.split_whitespace()
        .map(repair)
        .collect::<Vec<_>>()
        .join(" ")
}
