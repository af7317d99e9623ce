//! Settings with types of their own, and their defaults.

use std::ops::RangeInclusive;
use std::time::Duration;

use tracing::level_filters::LevelFilter;

use super::duration;
use super::error::EntryError;
use super::language_model::LanguageModel;
use super::reader::{At, Field};

/// The permitted values of `credentials`.
pub(super) const CREDENTIALS_EXPECTED: &str = "\"auto\", \"keychain\" or \"file\"";

/// The names of log levels, the quietest first.
pub(crate) const LOG_LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The names of the forms of a log line.
pub(crate) const LOG_FORMATS: [&str; 2] = ["text", "json"];

pub(super) const FORMAT_EXPECTED: &str = "\"text\" or \"json\"";

/// The form of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// A JSON object.
    Json,
}

/// The storage of logins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// Files encrypted with a key in the system's keychain if that is usable; otherwise plain files.
    #[default]
    Auto,
    /// Files encrypted with a key in the keychain only.
    Keychain,
    /// Plain files, readable by the user alone.
    File,
}

/// When an unused connection is closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum IdleTimeout {
    /// Later, the more the connection was used.
    #[default]
    Adaptive,
    /// After this time.
    After(Duration),
    /// Never.
    Never,
}

/// How often open connections over HTTP are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HealthCheck {
    /// After this time without use.
    Every(Duration),
    /// Never.
    Never,
}

/// The bounds of an adaptive idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdleBounds {
    /// The idle time of a connection that was used once.
    pub shortest: Duration,
    /// The idle time of a connection in constant use.
    pub longest: Duration,
}

/// The bounds that a server's entry names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OwnIdleBounds {
    /// Its `min_idle_timeout`.
    pub shortest: Option<Duration>,
    /// Its `max_idle_timeout`.
    pub longest: Option<Duration>,
}

/// The options of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchOptions {
    /// The number of hits if the caller gives none; within [`SearchOptions::LIMITS`].
    pub default_limit: usize,
    /// Whether to search by meaning as well, if the program contains the model.
    pub semantic: bool,
    /// Whether tools that were called after a search are raised in later ones.
    pub learn: bool,
    /// The model that reorders the best hits, if there is one.
    pub llm: Option<LanguageModel>,
}

/// The kinds of items that clients see in addition to tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exposure {
    /// The prompts.
    pub prompts: bool,
    /// The resources and their templates.
    pub resources: bool,
}

/// A server of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Its name in the registry.
    pub name: String,
    /// The installed version.
    pub version: String,
}

/// The treatment of a server's tools that no person has approved, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trust {
    /// The entry says nothing: as `Report`, but it ends no quarantine.
    #[default]
    Unset,
    /// The user gets a report of tools that have changed.
    Report,
    /// A tool that has changed, or is new, is held until a person approves it.
    Pin,
    /// Nothing of the server is found or can be called before a person has approved it.
    Quarantine,
    /// An agent has added the server: it is not started before a person has approved its entry, and then in quarantine.
    Unstarted,
}

impl Trust {
    /// As an entry has it.
    #[must_use]
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Unset | Self::Report => "report",
            Self::Pin => "pin",
            // No entry says that it was not started.
            Self::Quarantine | Self::Unstarted => "quarantine",
        }
    }

    /// Whether differences are only reported.
    #[must_use]
    pub(crate) fn is_report(self) -> bool {
        matches!(self, Self::Unset | Self::Report)
    }

    /// Whether only definitions that a person has approved may be used.
    #[must_use]
    pub(crate) fn is_quarantine(self) -> bool {
        matches!(self, Self::Quarantine | Self::Unstarted)
    }
}

/// The sessions that share a server's process, according to its entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Share {
    /// Decided from the server's package and entry.
    #[default]
    Auto,
    /// As configured.
    For(Scope),
}

impl Share {
    /// The words of the configuration.
    pub(super) const WORDS: [&str; 4] = ["auto", "all", "project", "session"];

    pub(super) fn parse(word: &str) -> Option<Self> {
        if word == "auto" {
            Some(Self::Auto)
        } else {
            Scope::parse(word).map(Self::For)
        }
    }
}

/// The replicas that run a server, if the gateway has several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Placement {
    /// A process at each replica.
    #[default]
    Each,
    /// One process at one replica, which the others use.
    One,
}

impl Placement {
    /// The words of the configuration.
    pub(super) const WORDS: [&str; 2] = ["each", "one"];

    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "each" => Some(Self::Each),
            "one" => Some(Self::One),
            _ => None,
        }
    }
}

/// The sessions that share a process, from the fewest to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    /// No others: each session has its own process.
    Session,
    /// Those in one directory.
    Project,
    /// All of them.
    All,
}

impl Scope {
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "all" => Some(Self::All),
            "project" => Some(Self::Project),
            "session" => Some(Self::Session),
            _ => None,
        }
    }

    /// As the configuration has it.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Project => "project",
            Self::All => "all",
        }
    }
}

/// The era of the protocol that a server speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Era {
    /// Detected when connecting.
    #[default]
    Auto,
    /// With a handshake, up to 2025-11-25.
    Legacy,
    /// Without a handshake, since 2026-07-28.
    Modern,
}

/// The treatment of a text block that only serializes a result's structured content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// Leaves out the form that the client does not show its model, if that is known.
    #[default]
    Auto,
    /// Passes both, as the server sent them.
    Keep,
    /// Passes the text.
    Text,
    /// Passes the structured content.
    Structured,
}

/// The form in which results are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ResultForm {
    /// In the server's own bytes.
    #[default]
    AsIs,
    /// JSON without insignificant whitespace, and arrays of like objects as tables.
    Compact,
}

/// The values of `form`.
pub(super) const RESULT_FORMS: &[&str] = &["as_is", "compact"];

/// Reads `form`.
pub(super) fn result_form(field: &Field<'_>) -> Result<ResultForm, At<EntryError>> {
    match field.word() {
        Some("as_is") => Ok(ResultForm::AsIs),
        Some("compact") => Ok(ResultForm::Compact),
        _ => Err(field.wrong("\"as_is\" or \"compact\"")),
    }
}

/// The lifetime of stored results, and who can read them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// For the client that made the call, as long as `mcpzip` runs, and at most a day.
    #[default]
    Session,
    /// For this time, for every client that knows the id.
    For(Duration),
}

/// The place of a line of the audit log before the call that it describes is answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Durability {
    /// In a file; it is sent to the store of several replicas within seconds.
    #[default]
    File,
    /// Committed in that store.
    Store,
}

impl Durability {
    /// Reads the word for it.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "file" => Some(Self::File),
            "store" => Some(Self::Store),
            _ => None,
        }
    }
}

/// The form of a call's arguments in a line of the audit log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum AuditedArguments {
    /// They are left out.
    None,
    /// Their SHA-256.
    #[default]
    Hash,
    /// The arguments, with values under secret names masked and long texts cut.
    Redacted,
}

/// The exposure that a server's entry sets; `None` leaves it to the general setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OwnExposure {
    /// Whether clients see its prompts.
    pub prompts: Option<bool>,
    /// Whether clients see its resources.
    pub resources: Option<bool>,
}

impl AuditedArguments {
    /// Reads the word for it.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "hash" => Some(Self::Hash),
            "redacted" => Some(Self::Redacted),
            _ => None,
        }
    }
}

impl Credentials {
    /// Parses the word in the file.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "keychain" => Some(Self::Keychain),
            "file" => Some(Self::File),
            _ => None,
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Auto => "auto",
            Self::Keychain => "keychain",
            Self::File => "file",
        }
        .to_owned()
    }
}

impl LogFormat {
    /// Reads the word for it.
    #[must_use]
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word.trim().to_ascii_lowercase().as_str() {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
        .to_owned()
    }
}

impl SearchOptions {
    /// The permitted number of hits.
    pub(crate) const LIMITS: RangeInclusive<usize> = 1..=50;
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            default_limit: 5,
            semantic: true,
            learn: true,
            llm: None,
        }
    }
}

impl Exposure {
    pub(super) const NOTHING: Self = Self {
        prompts: false,
        resources: false,
    };
}

impl Default for Exposure {
    fn default() -> Self {
        Self {
            prompts: true,
            resources: true,
        }
    }
}

impl OwnExposure {
    /// Fills in the general setting.
    pub(super) fn or(self, all: Exposure) -> Exposure {
        Exposure {
            prompts: self.prompts.unwrap_or(all.prompts),
            resources: self.resources.unwrap_or(all.resources),
        }
    }
}

impl HealthCheck {
    /// The time between two checks, if there are any.
    #[must_use]
    pub(crate) fn interval(self) -> Option<Duration> {
        match self {
            Self::Every(time) => Some(time),
            Self::Never => None,
        }
    }

    /// As the file would have it.
    pub(super) fn text(self) -> String {
        self.interval()
            .map_or_else(|| "never".to_owned(), duration::text)
    }
}

impl Default for HealthCheck {
    fn default() -> Self {
        Self::Every(Duration::from_secs(60))
    }
}

impl Default for IdleBounds {
    fn default() -> Self {
        Self {
            shortest: Duration::from_secs(60),
            longest: Duration::from_secs(30 * 60),
        }
    }
}

impl IdleBounds {
    /// The idle time of a connection: the more calls lately, the longer it is kept.
    #[must_use]
    pub(crate) fn after(self, calls: f64) -> Duration {
        self.shortest
            .mul_f64(1.0 + calls.min(60.0))
            .min(self.longest)
    }
}

impl OwnIdleBounds {
    /// The bounds of a server where those of all servers are `all`. Of two that contradict each other, the one that is
    /// written in the entry moves the other.
    pub(crate) fn or(self, all: IdleBounds) -> IdleBounds {
        let shortest = self.shortest.unwrap_or(all.shortest);
        let longest = self.longest.unwrap_or(all.longest);
        match (self.shortest, self.longest) {
            (None, Some(_)) => IdleBounds {
                shortest: shortest.min(longest),
                longest,
            },
            _ => IdleBounds {
                shortest,
                longest: longest.max(shortest),
            },
        }
    }
}

impl IdleTimeout {
    /// The word in the file.
    pub(super) fn text(self) -> String {
        match self {
            Self::Adaptive => "adaptive".to_owned(),
            Self::Never => "never".to_owned(),
            Self::After(time) => duration::text(time),
        }
    }
}

/// Parses the name of a log level.
#[must_use]
pub(crate) fn log_level(name: &str) -> Option<LevelFilter> {
    name.to_lowercase()
        .parse()
        .ok()
        .filter(|_| LOG_LEVELS.contains(&name.to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_connection_is_kept_longer_within_bounds() {
        let bounds = IdleBounds::default();
        assert_eq!(bounds.after(0.0), bounds.shortest);
        assert!(bounds.after(5.0) > bounds.after(1.0));
        assert_eq!(bounds.after(1e9), bounds.longest);
    }

    #[test]
    fn a_bound_of_an_entry_moves_the_other_one() {
        let seconds = Duration::from_secs;
        let or = |shortest: Option<u64>, longest: Option<u64>| {
            let own = OwnIdleBounds {
                shortest: shortest.map(seconds),
                longest: longest.map(seconds),
            };
            let bounds = own.or(IdleBounds::default());
            (bounds.shortest.as_secs(), bounds.longest.as_secs())
        };
        assert_eq!(or(None, None), (60, 1800));
        assert_eq!(or(None, Some(5)), (5, 5));
        assert_eq!(or(Some(7200), None), (7200, 7200));
        assert_eq!(or(Some(10), Some(5)), (10, 10));
    }

    #[test]
    fn levels_have_names() {
        assert_eq!(log_level("WARN"), Some(LevelFilter::WARN));
        assert_eq!(log_level("loud"), None);
        assert_eq!(log_level("3"), None);
    }
}
