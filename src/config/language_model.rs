//! The language model that reorders the hits of a search.

use std::time::Duration;

use super::Network;
use super::env::{self, Variable};
use crate::secret::Secret;

/// A language model and the way to call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LanguageModel {
    /// The API protocol.
    pub provider: Provider,
    /// The model's name at the provider.
    pub model: String,
    /// The address, without a trailing `/`.
    pub base_url: String,
    /// The credential.
    pub key: ModelKey,
    /// The time limit for a search.
    pub timeout: Duration,
    /// By which proxies it is reached.
    pub network: Network,
}

/// The credential for a language model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelKey {
    /// No credential, as for most local models.
    None,
    /// A given key.
    Given(Secret<String>),
    /// The key that the keychain has under [`Provider::keychain_name`].
    Keychain,
}

/// The API protocol of a language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    /// Gemini's `generateContent`.
    Gemini,
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's chat completions, which many other providers and local servers use.
    OpenAi,
}

impl Provider {
    /// The word in the file.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// The name of the key in the keychain.
    #[must_use]
    pub(crate) fn keychain_name(self) -> String {
        format!("search.llm.{}", self.as_str())
    }

    pub(super) fn base_url(self) -> &'static str {
        match self {
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::OpenAi => "https://api.openai.com/v1",
        }
    }

    /// The variables from which the provider's own tools read the key.
    pub(super) fn variables(self) -> &'static [Variable] {
        match self {
            Self::Gemini => &[env::GEMINI_API_KEY, env::GOOGLE_API_KEY],
            Self::Anthropic => &[env::ANTHROPIC_API_KEY],
            Self::OpenAi => &[env::OPENAI_API_KEY],
        }
    }
}
