//! Reads `search.llm`, the language model that reorders the hits of a search.

use std::time::Duration;

use super::Network;
use super::error::EntryError;
use super::language_model::{LanguageModel, ModelKey};
use super::reader::At;
use super::sections::LlmEntry;
use super::server::{Resolver, is_url};
use crate::secret::Secret;

/// The value of `key` that refers to the keychain.
const KEYCHAIN: &str = "keychain";

const TIMEOUT: Duration = Duration::from_secs(3);

impl Resolver<'_> {
    /// Converts `search.llm` to a language model.
    pub(super) fn language_model(
        &mut self,
        At {
            offset,
            value: entry,
        }: At<LlmEntry>,
    ) -> Result<LanguageModel, At<EntryError>> {
        let offset = entry.model.as_ref().map_or(offset, |model| model.offset);
        let missing = |key: &str, expected: &str| {
            At::new(offset, EntryError::value(key, expected, "nothing"))
        };
        let provider = entry
            .provider
            .ok_or_else(|| missing("llm.provider", "\"gemini\", \"anthropic\" or \"openai\""))?;
        let model = entry
            .model
            .ok_or_else(|| missing("llm.model", "the name of a model"))?;
        let model = self.plain("llm.model", &model)?;
        let base_url = match &entry.base_url {
            None => provider.base_url().to_owned(),
            Some(written) => {
                let url = self
                    .plain("llm.base_url", written)?
                    .trim()
                    .trim_end_matches('/')
                    .to_owned();
                if !is_url(&url, &["http", "https"]) {
                    let problem = "must begin with `http://` or `https://` and name a host";
                    return Err(At::new(
                        written.offset,
                        EntryError::Unusable {
                            key: "llm.base_url".to_owned(),
                            problem,
                        },
                    ));
                }
                url
            }
        };
        let key = match entry.api_key {
            Some(written) if written.value.trim() == KEYCHAIN => {
                let timeout = entry.timeout.unwrap_or(TIMEOUT);
                return Ok(LanguageModel {
                    provider,
                    model,
                    base_url,
                    key: ModelKey::Keychain,
                    timeout,
                    network: Network::of(self.environment),
                });
            }
            Some(written) => Some(self.plain("llm.api_key", &written)?),
            // A key from a variable is sent to its own provider only; another address needs a key in the file.
            None if entry.base_url.is_none() => {
                let known = provider
                    .variables()
                    .iter()
                    .find_map(|variable| self.environment.get(variable.name));
                let known = known.map(str::to_owned);
                let problem = "is missing, and the provider's own variable is not set (GEMINI_API_KEY, ANTHROPIC_API_KEY or \
                               OPENAI_API_KEY)";
                let fault = || EntryError::Unusable {
                    key: "llm.api_key".to_owned(),
                    problem,
                };
                Some(known.ok_or_else(|| At::new(offset, fault()))?)
            }
            None => None,
        };
        let key = key.filter(|key| !key.trim().is_empty()).map(Secret::new);
        self.secrets.extend(key.clone());
        let timeout = entry.timeout.unwrap_or(TIMEOUT);
        let key = key.map_or(ModelKey::None, ModelKey::Given);
        Ok(LanguageModel {
            provider,
            model,
            base_url,
            key,
            timeout,
            network: Network::of(self.environment),
        })
    }
}
