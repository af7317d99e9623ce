//! The optional last stage: a language model reorders the best hits, and may give words for one more search.
//!
//! The model gets the same data as an agent, a signature and a sentence per tool. It answers with numbers and at
//! most one text, which is used only as a query. Any other output is ignored. If the model fails or is late, the
//! hits keep their order.

mod order;
mod provider;

pub(crate) use order::Ranking;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::redirect::Policy;
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::config::{LanguageModel, NoCertificates};
use crate::secret::Secret;
use crate::tls;

/// The number of hits that it orders, or the number requested if that is larger.
pub(crate) const CANDIDATES: usize = 20;

/// The number of orders in the cache.
const CAPACITY: usize = 1_000;

/// After this many failures in a row, searches do not wait for the model for a while.
const MOST_FAILURES: u32 = 2;
const REST: Duration = Duration::from_secs(60);

/// A language model as a stage of the search. It caches its orders by need and hits.
pub(crate) struct Reranker {
    model: LanguageModel,
    key: Option<Secret<String>>,
    client: reqwest::Client,
    // Both are locked for a look-up only.
    known: Mutex<Known>,
    health: Mutex<Health>,
}

/// The cached orders by request, the newest last.
#[derive(Default)]
struct Known {
    orders: HashMap<Key, Order>,
    ages: VecDeque<Key>,
}

type Key = [u8; 32];
/// Empty until the answer has arrived. All requests with the same key wait for one answer.
type Order = Arc<OnceCell<Arc<Ranking>>>;

#[derive(Default)]
struct Health {
    failures: u32,
    rests_until: Option<Instant>,
}

/// An order that could not be obtained.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The HTTP client cannot be made.
    #[error("no HTTP client can be made")]
    Client {
        /// The library's error.
        source: reqwest::Error,
    },
    /// There are no certificates to trust.
    #[error(transparent)]
    Certificates(#[from] NoCertificates),
    /// The model cannot be reached, or the exchange broke off.
    #[error("the language model cannot be reached")]
    Exchange {
        /// The library's error, without the URL.
        source: reqwest::Error,
    },
    /// The model's server refused.
    #[error("the language model answered HTTP {status}")]
    Status {
        /// The status.
        status: u16,
    },
    /// No answer within the time limit.
    #[error("the language model gave no answer within {limit:?}")]
    Late {
        /// The time limit.
        limit: Duration,
    },
    /// The answer is over the limit.
    #[error("the language model's answer is too long")]
    TooLong,
    /// The answer contains neither numbers nor words.
    #[error("the language model's answer has neither numbers of tools nor words to search for")]
    Unreadable,
}

impl Reranker {
    /// Creates a stage that asks `model`, with `key` if it needs one. Sends nothing yet.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub(crate) fn new(model: LanguageModel, key: Option<Secret<String>>) -> Result<Self, Error> {
        let builder = tls::begin()
            .user_agent(concat!("mcpzip/", env!("CARGO_PKG_VERSION")))
            // The key is sent to no other host.
            .redirect(Policy::none())
            .referer(false);
        let builder = model.network.with_proxies(builder);
        // Certificates are loaded only for HTTPS.
        let builder = if model.base_url.starts_with("http://") {
            tls::plain(builder)
        } else {
            model.network.with_certificates(builder, None)?
        };
        let client = builder.build().map_err(|source| Error::Client { source })?;
        Ok(Self {
            model,
            key,
            client,
            known: Mutex::default(),
            health: Mutex::default(),
        })
    }

    /// The model that it asks.
    #[must_use]
    pub(crate) fn model(&self) -> &LanguageModel {
        &self.model
    }

    /// The model's answer about `tools`, each a signature with a sentence, for a need. `None` if their order should
    /// stay. Equal requests at the same time share one request to the model.
    pub(crate) async fn ranking(&self, query: &str, tools: &[String]) -> Option<Arc<Ranking>> {
        let order = self.known(query, tools);
        if let Some(known) = order.get() {
            return Some(known.clone());
        }
        if self.is_resting() {
            return None;
        }
        let limit = self.model.timeout;
        let asked =
            tokio::time::timeout(limit, order.get_or_try_init(|| self.ask(query, tools))).await;
        match asked.unwrap_or(Err(Error::Late { limit })) {
            Ok(order) => {
                *self.health() = Health::default();
                Some(order.clone())
            }
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    async fn ask(&self, query: &str, tools: &[String]) -> Result<Arc<Ranking>, Error> {
        let said = provider::ask(
            &self.client,
            &self.model,
            self.key.as_ref(),
            &order::question(query, tools),
        )
        .await?;
        order::parse(&said, tools.len())
            .map(Arc::new)
            .ok_or(Error::Unreadable)
    }

    /// The cache entry of the order. Its key has everything that the model would see, so no entry of an older catalog
    /// matches; letter case and spacing make no difference.
    fn known(&self, query: &str, tools: &[String]) -> Order {
        let mut hash = Sha256::new();
        for word in query.split_whitespace() {
            hash.update(word.to_lowercase());
            hash.update(" ");
        }
        for tool in tools {
            hash.update([0]);
            hash.update(tool);
        }
        let key: Key = hash.finalize().into();
        let mut known = self.known.lock();
        if let Some(order) = known.orders.get(&key) {
            return order.clone();
        }
        if known.ages.len() >= CAPACITY
            && let Some(oldest) = known.ages.pop_front()
        {
            known.orders.remove(&oldest);
        }
        known.ages.push_back(key);
        known.orders.entry(key).or_default().clone()
    }

    fn is_resting(&self) -> bool {
        self.health()
            .rests_until
            .is_some_and(|until| Instant::now() < until)
    }

    fn failed(&self, error: &Error) {
        let mut health = self.health();
        health.failures += 1;
        if health.failures >= MOST_FAILURES {
            health.rests_until = Some(Instant::now() + REST);
        }
        let is_first = health.failures == 1;
        drop(health);
        let source = std::error::Error::source(error)
            .map(ToString::to_string)
            .unwrap_or_default();
        if is_first {
            tracing::warn!(%error, source, "hits stay in the local order");
        } else {
            tracing::debug!(%error, source, "hits stay in the local order");
        }
    }

    fn health(&self) -> parking_lot::MutexGuard<'_, Health> {
        self.health.lock()
    }
}

impl std::fmt::Debug for Reranker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reranker")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
