//! The last stage of a search: reordering by a language model, if one is configured.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::config::{Environment, LanguageModel, ModelKey};
use crate::keychain::Keychain;
use crate::proxy::view::View;
use crate::search::rerank::Reranker;
use crate::secret::Secret;
use crate::shutdown::Tasks;

/// The configured language model; created on first use, and again when the configuration names another one.
#[derive(Debug)]
pub(super) struct Reranking {
    reranker: RwLock<Option<Arc<Reranker>>>,
    variables: Environment,
    tasks: Tasks,
}

impl Reranking {
    pub(super) fn new(variables: Environment, tasks: Tasks) -> Self {
        Self {
            reranker: RwLock::default(),
            variables,
            tasks,
        }
    }

    fn known(&self, model: &LanguageModel) -> Option<Arc<Reranker>> {
        let current = self.reranker.read();
        current
            .as_ref()
            .filter(|reranker| reranker.model() == model)
            .cloned()
    }

    /// The reranker, if a model is configured and has the key that it needs.
    pub(in crate::proxy) async fn reranker(&self, view: &View) -> Option<Arc<Reranker>> {
        let config = view.config();
        let model = config.search.llm.as_ref()?;
        self.reranker_of(model).await
    }

    /// The reranker with `model`, created on first use; `None` without a required key.
    async fn reranker_of(&self, model: &LanguageModel) -> Option<Arc<Reranker>> {
        if let Some(known) = self.known(model) {
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
        // If two were created in parallel, the last one is kept; both work.
        *self.reranker.write() = Some(made.clone());
        Some(made)
    }
}
