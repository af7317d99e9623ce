//! The search's last stage, where a language model is configured.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::catalog::Snapshot;
use crate::config::{LanguageModel, ModelKey};
use crate::keychain::Keychain;
use crate::proxy::Proxy;
use crate::proxy::view::View;
use crate::search::rerank::{CANDIDATES, Reranker};
use crate::search::{Hit, Request};
use crate::secret::Secret;

/// The language model in use; made when it is first needed, and anew when the configuration names another.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Reranking(RwLock<Option<Arc<Reranker>>>);

impl Reranking {
    fn known(&self, model: &LanguageModel) -> Option<Arc<Reranker>> {
        let current = self.0.read();
        current
            .as_ref()
            .filter(|reranker| reranker.model() == model)
            .cloned()
    }
}

impl Proxy {
    /// The hits for a need, the best `limit` of them, ordered by the language model if there is one.
    ///
    /// # Errors
    /// As [`crate::search::Search::search`].
    pub(in crate::proxy) async fn hits(
        &self,
        view: &View,
        snapshot: &Snapshot,
        query: &str,
        limit: usize,
        server: Option<&str>,
    ) -> Result<Arc<[Hit]>, crate::search::Error> {
        let without = view.hidden_servers();
        let request = Request {
            query,
            limit,
            server,
            without: &without,
        };
        let Some(reranker) = self.reranker(view).await else {
            return self.index.search(&request).await;
        };
        let hits = self
            .index
            .search(&Request {
                limit: limit.max(CANDIDATES),
                ..request
            })
            .await?;
        Ok(match self.order(&reranker, snapshot, query, &hits).await {
            Some(order) => order
                .iter()
                .take(limit)
                .map(|at| hits[*at].clone())
                .collect(),
            None => hits.iter().take(limit).cloned().collect(),
        })
    }

    /// The order that the language model gives to `hits`, by their places; `None` where the local order stays.
    pub(in crate::proxy) async fn order(
        &self,
        reranker: &Reranker,
        snapshot: &Snapshot,
        query: &str,
        hits: &[Hit],
    ) -> Option<Arc<[usize]>> {
        let shown: Vec<_> = self
            .render(snapshot, hits)
            .into_iter()
            .map(|found| found.text)
            .collect();
        // A hit that cannot be shown has no number.
        if shown.len() == hits.len() {
            reranker.order(query, &shown).await
        } else {
            None
        }
    }

    /// The last stage, where one is configured and has the key that it needs.
    pub(in crate::proxy) async fn reranker(&self, view: &View) -> Option<Arc<Reranker>> {
        let config = view.config();
        let model = config.search.llm.as_ref()?;
        self.reranker_of(model).await
    }

    /// The stage that asks `model`, made if there is none; without a key that it needs there is none.
    async fn reranker_of(&self, model: &LanguageModel) -> Option<Arc<Reranker>> {
        if let Some(known) = self.reranking.known(model) {
            return Some(known);
        }
        let key = match &model.key {
            ModelKey::None => None,
            ModelKey::Given(key) => Some(key.clone()),
            ModelKey::Keychain => {
                let (keychain, name) = (
                    Keychain::of(&self.variables)?,
                    model.provider.keychain_name(),
                );
                let kept = self
                    .tasks
                    .spawn_blocking(move || keychain.get(&name))
                    .await
                    .ok()?;
                let kept = kept
                    .inspect_err(|error| tracing::warn!(%error, "the language model is not asked"))
                    .ok()?;
                if kept.is_none() {
                    let provider = model.provider.as_str();
                    tracing::warn!(
                        "the keychain has no key for {provider}: `mcpzip auth key {provider}` keeps one there"
                    );
                }
                Some(Secret::new(String::from_utf8(kept?).ok()?))
            }
        };
        let made = Reranker::new(model.clone(), key);
        let made = Arc::new(
            made.inspect_err(|error| tracing::error!(%error, "the language model is not asked"))
                .ok()?,
        );
        // Of two that were made at once the last stays; both work.
        *self.reranking.0.write() = Some(made.clone());
        Some(made)
    }
}
