//! The search's last stage, where a language model is configured.

use std::sync::{Arc, PoisonError, RwLock};

use super::Proxy;
use crate::catalog::Snapshot;
use crate::config::LanguageModel;
use crate::search::Hit;
use crate::search::rerank::{CANDIDATES, Reranker};

/// The language model in use; made when it is first needed, and anew when the configuration names another.
#[derive(Debug, Default)]
pub(super) struct Reranking(RwLock<Option<Arc<Reranker>>>);

impl Reranking {
    fn of(&self, model: Option<&LanguageModel>) -> Option<Arc<Reranker>> {
        let model = model?;
        let is_same = |reranker: &&Arc<Reranker>| reranker.model() == model;
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().filter(is_same).cloned();
        if known.is_some() {
            return known;
        }
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(reranker) = current.as_ref().filter(is_same) {
            return Some(reranker.clone());
        }
        let made = Reranker::new(model.clone());
        let made = made.inspect_err(|error| tracing::error!(%error, "the language model is not asked")).ok();
        *current = made.map(Arc::new);
        current.clone()
    }
}

impl Proxy {
    /// The hits for a need, the best `limit` of them, ordered by the language model if there is one.
    ///
    /// # Errors
    /// As [`crate::search::Search::search`].
    pub(super) async fn hits(
        &self,
        snapshot: &Snapshot,
        query: &str,
        limit: usize,
        server: Option<&str>,
    ) -> Result<Arc<[Hit]>, crate::search::Error> {
        let config = self.config();
        let Some(reranker) = self.reranking.of(config.search.llm.as_ref()) else {
            return self.index.search(query, limit, server).await;
        };
        let hits = self.index.search(query, limit.max(CANDIDATES), server).await?;
        let shown: Vec<_> = self.render(snapshot, &hits).into_iter().map(|found| found.text).collect();
        // A hit that cannot be shown has no number.
        let order = if shown.len() == hits.len() { reranker.order(query, &shown).await } else { None };
        Ok(match order {
            Some(order) => order.iter().take(limit).map(|at| hits[*at].clone()).collect(),
            None => hits.iter().take(limit).cloned().collect(),
        })
    }
}
