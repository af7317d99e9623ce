//! What the user wants: which servers there are, and how `mcpzip` behaves.
//!
//! A configuration has two shapes. `file` is what may be written; [`Config`] is what the program uses: complete, typed,
//! with absolute paths and variables filled in. What is wrong with one server costs that server alone, so a [`Config`]
//! also carries the faults and the warnings that were found. Nothing here is written back, and nothing is started.

mod certificates;
mod change;
mod document;
mod duration;
mod edit;
mod entry;
mod entry_text;
pub mod env;
mod error;
mod expand;
mod file;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod hash;
mod keys;
mod language_model;
mod llm;
mod management;
mod names;
mod nearest;
mod oauth;
mod options;
mod paths;
mod policy;
mod projects;
mod reader;
mod results;
mod runner;
mod schema;
mod secrets;
mod server;
mod settings;
#[cfg(test)]
mod tests;
mod traces;
mod transport;
mod watch;

pub use certificates::Certificates;
pub use change::{Change, ChangeError, Changed, change_servers};
pub use document::{Document, DocumentError};
pub use edit::{EditError, FileLock, edit, link_target};
pub use entry::Server;
pub use entry_text::EntryText;
pub use env::Environment;
pub use error::{ConfigWarning, EntryError, Error, Position, ServerFault, Warning};
pub use hash::ConfigHash;
pub use language_model::{LanguageModel, ModelKey, Provider};
pub use management::Management;
pub(crate) use names::safe_name;
pub use nearest::distance;
pub use oauth::{Grant, HeadersCommand, OAuth, PrivateKey, SigningAlgorithm};
pub use options::{
    Credentials, Duplicates, Era, Exposure, IdleTimeout, LOG_LEVELS, Lifetime, Origin, OwnExposure,
    SearchOptions, Trust, log_level,
};
pub use paths::{PathFlags, Paths, older_config_file};
pub use policy::{Policy, Verdict};
pub use projects::{Projects, real};
pub use results::ResultOptions;
pub use runner::program_name;
pub use schema::json_schema;
pub use settings::Config;
pub use traces::{Sampler, Traces};
pub use transport::{Proxy, Remote, Stdio, Transport};
pub use watch::ConfigWatch;

use options::CREDENTIALS_EXPECTED;
use settings::{lower_first, setting};

pub(crate) use secrets::{secret_arguments, secret_parameters};

/// The name of the built-in server, which no entry may take, in whatever letter case.
pub const BUILT_IN_SERVER: &str = "mcpzip";
