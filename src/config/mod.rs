//! The configuration: the user's servers and settings.
//!
//! A configuration has two forms. `file` is the written form; [`Config`] is the form that the program uses:
//! complete, typed, with absolute paths and expanded variables. An error in one server's entry affects that server
//! only, so a [`Config`] also has the faults and warnings that were found. Reading changes no file and starts
//! nothing; only `edit` writes.

mod access_tokens;
mod adaptation;
mod advice;
mod approvals;
mod audit;
mod authorization;
mod authorization_server;
mod certificates;
mod change;
mod command_line;
mod daemon;
mod difference;
mod document;
mod duration;
mod edit;
mod entitlement;
mod entry;
mod entry_text;
pub(crate) mod env;
mod error;
mod expand;
mod file;
mod folder;
mod foreign;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod hash;
mod hidden;
mod http;
mod http_auth;
mod identity_provider;
mod key;
mod keyring;
mod keys;
mod language_model;
mod launched;
mod limits;
mod listen;
mod llm;
mod logs;
mod management;
mod names;
mod narrowing;
mod nearest;
mod network;
mod oauth;
mod openapi;
mod options;
mod override_values;
mod package;
mod paths;
mod person;
mod policy;
mod profiles;
pub(crate) mod program;
mod projects;
mod reader;
mod remote_server;
mod resource_server;
mod results;
mod roles;
mod rule_entry;
mod runner;
mod sandbox;
mod saved_scripts;
mod schema;
mod scripts;
mod secret_uses;
mod secrets;
mod secrets_file;
mod sections;
mod server;
mod session_env;
mod settings;
mod sharing;
mod shown;
mod startup;
mod store;
mod subject;
mod surface;
mod surface_options;
#[cfg(test)]
mod tests;
mod tls;
mod tool_scopes;
mod traces;
mod transport;
mod upstream_identity;
mod watch;

pub(crate) use access_tokens::{Introspection, ResourceServer, is_protected};
pub(crate) use adaptation::{Override, Overrides, Preset};
pub(crate) use advice::{command_with_options, remember_options, with_options, without_commands};
pub(crate) use approvals::ApprovalOptions;
pub(crate) use audit::{AuditCopies, AuditOptions, Syslog};
pub(crate) use authorization::{AuthorizationServer, LoginProvider};
pub(crate) use certificates::Certificates;
pub(crate) use change::{
    Change, ChangeError, Refusal, change_servers, kept_restrictions, restrictions,
};
pub(crate) use command_line::{CommandLine, CommandTool};
pub(crate) use daemon::{DaemonMode, DaemonOptions};
pub(crate) use document::{Document, DocumentError};
pub(crate) use edit::{EditError, FileLock, LARGEST_FILE, edit, link_target};
pub(crate) use entitlement::{Claims, Entitlement, SubjectToken};
pub(crate) use entry::Server;
pub(crate) use entry_text::EntryText;
pub(crate) use env::Environment;
pub(crate) use error::{
    ConfigWarning, EntryError, Error, Position, ProfileRefusal, SYNTAX_HINT, Warning, how_to_set,
};
pub(crate) use folder::{Folder, Holds};
pub(crate) use hash::{ConfigHash, addresses_of, any_program, programs_in, programs_of};
pub(crate) use hidden::Hidden;
pub(crate) use http::HttpOptions;
pub(crate) use http_auth::{Forwarded, HttpAuth};
pub(crate) use identity_provider::IdentityProvider;
pub(crate) use keyring::{Keyring, NAME_RULE, SecretFault, SecretName};
pub(crate) use language_model::{LanguageModel, ModelKey, Provider};
pub(crate) use launched::{arguments_of, script_of, way};
pub(crate) use limits::{Limit, Limits, Measure};
pub(crate) use listen::{LISTEN_EXPECTED, ListenAddress, NoAddress};
pub(crate) use logs::LogOptions;
pub(crate) use management::Management;
pub(crate) use names::{safe_name, safe_names, written_name};
pub(crate) use network::{Network, NoCertificates};
pub(crate) use oauth::{Grant, HeadersCommand, OAuth, PrivateKey};
pub(crate) use openapi::{DescriptionLocation, OpenApi, OperationPattern};
pub(crate) use options::{
    AuditedArguments, Credentials, Duplicates, Durability, Era, Exposure, HealthCheck, IdleBounds,
    IdleTimeout, LOG_FORMATS, LOG_LEVELS, Lifetime, LogFormat, Origin, OwnExposure, OwnIdleBounds,
    Placement, ResultForm, Scope, SearchOptions, Share, Trust, log_level,
};
pub(crate) use package::{Ecosystem, PackageRun};
pub(crate) use paths::{PathFlags, Paths, is_inline, older_config_file};
pub(crate) use policy::{Inspected, ListedRule, Policy, RuleList, Verdict, arguments};
pub(crate) use profiles::{Profile, ProfileRequest, Profiles, is_profile_name};
pub(crate) use program::find as find_program;
pub(crate) use projects::{Projects, real};
pub(crate) use remote_server::RemoteServer;
pub(crate) use results::ResultOptions;
pub(crate) use roles::Roles;
pub(crate) use runner::program_name;
pub(crate) use sandbox::{Sandbox, SandboxPreset};
pub(crate) use saved_scripts::scripts_folder;
pub(crate) use schema::json_schema;
pub(crate) use scripts::{ScriptOptions, ScriptTools};
pub(crate) use secret_uses::{SecretUse, secret_uses, variable_uses};
pub(crate) use secrets_file::{filled_in, secrets_file, stored_secrets};
pub(crate) use session_env::SessionEnv;
pub(crate) use settings::{Config, StandIn};
pub(crate) use sharing::{KeptData, KnownPackage, Sharing};
pub(crate) use shown::Shown;
pub(crate) use store::{StoreKey, StoreOptions};
pub(crate) use subject::{LOCAL, Subject};
pub(crate) use surface::{ReadTool, Surface, SurfaceRequest, SurfaceSource};
pub(crate) use surface_options::{SurfaceOptions, introduced, is_client, is_known_client};
pub(crate) use tls::TlsOptions;
pub(crate) use traces::{Collector, MetricsExport, Sampler, Traces};
pub(crate) use transport::{Proxy, Remote, Stdio, Transport};
pub(crate) use upstream_identity::{Forward, TokenExchange, UpstreamIdentity};
pub(crate) use watch::{ConfigWatch, Stamp};

use options::CREDENTIALS_EXPECTED;
use settings::{lower_first, setting, simple_setting};

pub(crate) use secrets::{
    is_known_token, secret_arguments, secret_parameters, secrets_by_argument, shown_command,
    shown_url, without_tokens,
};

/// The name of the built-in server, which no entry may use, in any letter case.
pub(crate) const BUILT_IN_SERVER: &str = "mcpzip";

/// The names of all keys of a server's entry.
#[cfg(test)]
pub(crate) fn entry_keys() -> Vec<&'static str> {
    keys::ENTRY.iter().map(|key| key.name).collect()
}
