//! The language model that may put a search's hits in order.

use std::time::Duration;

use super::env::{self, Variable};
use crate::secret::Secret;

/// A language model, and how it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LanguageModel {
    /// Whose protocol it speaks.
    pub provider: Provider,
    /// The model's name there.
    pub model: String,
    /// Where it is, without a last `/`.
    pub base_url: String,
    /// What lets us in.
    pub key: ModelKey,
    /// How long a search waits for it.
    pub timeout: Duration,
}

/// What lets us in to a language model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelKey {
    /// Nothing is needed, as with most on this machine.
    None,
    /// This.
    Given(Secret<String>),
    /// What the keychain has under [`Provider::keychain_name`].
    Keychain,
}

/// Whose protocol a language model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    /// Gemini's `generateContent`.
    Gemini,
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's chat completions, which many others and local ones speak, too.
    OpenAi,
}

impl Provider {
    /// As the file has it.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// Under which name the keychain keeps its key.
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

    /// The variables that its own tools read the key from.
    pub(super) fn variables(self) -> &'static [Variable] {
        match self {
            Self::Gemini => &[env::GEMINI_API_KEY, env::GOOGLE_API_KEY],
            Self::Anthropic => &[env::ANTHROPIC_API_KEY],
            Self::OpenAi => &[env::OPENAI_API_KEY],
        }
    }
}
