//! Every environment variable that `mcpzip` reads or passes on, with its meaning.
//!
//! The rest of the program gets an [`Environment`] as an argument. Only [`Environment::process`] reads the real one,
//! so a test never has to set a variable of its process.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use directories::BaseDirs;

use super::keyring::Keyring;
use crate::secret::Secret;
use crate::store::{Records, State};

/// The variable that has the user's home directory.
const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

/// A variable and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variable {
    /// Its name; a trailing `*` stands for any suffix.
    pub name: &'static str,
    /// One sentence for the reference page.
    pub doc: &'static str,
}

/// The configuration file.
pub(crate) const CONFIG: Variable = Variable {
    name: "MCPZIP_CONFIG",
    doc: "The configuration file, if `--config` does not name one.",
};
/// A whole configuration.
pub(crate) const CONFIG_JSON: Variable = Variable {
    name: "MCPZIP_CONFIG_JSON",
    doc: "A whole configuration as text, for containers; it is used in place of a file if `--config` does not name one.",
};
/// The cache directory.
pub(crate) const CACHE_DIR: Variable = Variable {
    name: "MCPZIP_CACHE_DIR",
    doc: "The directory of the lists of tools and the search index.",
};
/// The state directory.
pub(crate) const STATE_DIR: Variable = Variable {
    name: "MCPZIP_STATE_DIR",
    doc: "The directory of logs, logins, stored results and all else that must survive a restart.",
};
/// The log filter.
pub(crate) const LOG: Variable = Variable {
    name: "MCPZIP_LOG",
    doc: "The log level: error, warn, info, debug or trace.",
};
/// The form of log lines.
pub(crate) const LOG_FORMAT: Variable = Variable {
    name: "MCPZIP_LOG_FORMAT",
    doc: "The form of log lines: `text` or `json`; it takes precedence over `logs.format` in the configuration.",
};
/// Whether sessions share a daemon.
pub(crate) const DAEMON: Variable = Variable {
    name: "MCPZIP_DAEMON",
    doc: "Whether `serve` shares one set of servers with other sessions: `auto` or `off`; it takes precedence over `daemon` in the configuration.",
};
/// The profile of a session.
pub(crate) const PROFILE: Variable = Variable {
    name: "MCPZIP_PROFILE",
    doc: "The profile of the session or command, if `--profile` does not name one.",
};
/// The usual log filter of Rust programs.
pub(crate) const RUST_LOG: Variable = Variable {
    name: "RUST_LOG",
    doc: "The log level if `MCPZIP_LOG` is not set, as in mcpzip 0.1: `debug`, or `mcpzip=debug`.",
};
/// The configuration of avelino/mcp.
pub(crate) const MCP_CONFIG_PATH: Variable = Variable {
    name: "MCP_CONFIG_PATH",
    doc: "The file that `migrate --from avelino` reads, in place of `~/.config/mcp/servers.json`.",
};
/// The directory of avelino/mcp.
pub(crate) const MCP_CONFIG_DIR: Variable = Variable {
    name: "MCP_CONFIG_DIR",
    doc: "The directory of the file `servers.json` that `migrate --from avelino` reads, if `MCP_CONFIG_PATH` is not set.",
};
/// The token that HTTP clients must send.
pub(crate) const TOKEN: Variable = Variable {
    name: "MCPZIP_TOKEN",
    doc: "The token that HTTP clients have to send, if `--token-file` is not given.",
};
/// The key of people's logins.
pub(crate) const LOGIN_KEY: Variable = Variable {
    name: "MCPZIP_LOGIN_KEY",
    doc: "The key that encrypts the logins of people at servers with `\"identity\": \"per_user\"`, and of which the key for the ids of tasks is made: 32 bytes in base64url, in place of the files `people.key` and `tasks.key` of the state directory; after a comma, earlier keys that still decrypt.",
};
/// The store.
pub(crate) const STORE: Variable = Variable {
    name: "MCPZIP_STORE",
    doc: "The URL of the database that replicas share; it takes precedence over `store` in the configuration.",
};
/// The key of the store.
pub(crate) const STORE_KEY: Variable = Variable {
    name: "MCPZIP_STORE_KEY",
    doc: "The key that encrypts secrets in the store: 32 bytes in base64url, the same for all replicas.",
};
/// The file of that key.
pub(crate) const STORE_KEY_FILE: Variable = Variable {
    name: "MCPZIP_STORE_KEY_FILE",
    doc: "A file with the key of the store, if `MCPZIP_STORE_KEY` is not set.",
};
/// The key of the store before that one.
pub(crate) const STORE_KEY_PREVIOUS: Variable = Variable {
    name: "MCPZIP_STORE_KEY_PREVIOUS",
    doc: "The previous key of the store, which still decrypts.",
};
/// The file of the key before.
pub(crate) const STORE_KEY_PREVIOUS_FILE: Variable = Variable {
    name: "MCPZIP_STORE_KEY_PREVIOUS_FILE",
    doc: "A file with the previous key, if `MCPZIP_STORE_KEY_PREVIOUS` is not set.",
};
/// The address of the HTTP server.
pub(crate) const HTTP_ADDRESS: Variable = Variable {
    name: "MCPZIP_HTTP_ADDRESS",
    doc: "The address of `serve --http` without a value, of HTTP clients of the daemon, and of `healthcheck`; it takes precedence over `http.address` in the configuration.",
};
/// Web origins that may call the HTTP server.
pub(crate) const HTTP_ORIGINS: Variable = Variable {
    name: "MCPZIP_HTTP_ORIGINS",
    doc: "Web origins that may call the HTTP server, separated by spaces, in addition to those of `--allow-origin` and of `http.origins` in the configuration.",
};
/// The key of the file of secrets.
pub(crate) const SECRET_KEY: Variable = Variable {
    name: "MCPZIP_SECRET_KEY",
    doc: "The key of the encrypted file of secrets, which `mcpzip secret key` makes.",
};
/// The user's editor.
pub(crate) const VISUAL: Variable = Variable {
    name: "VISUAL",
    doc: "The editor of `config edit`, a command to which the file is appended.",
};
/// The user's editor, where `VISUAL` is not set.
pub(crate) const EDITOR: Variable = Variable {
    name: "EDITOR",
    doc: "The editor of `config edit`, if `VISUAL` is not set.",
};
/// The browser.
pub(crate) const BROWSER: Variable = Variable {
    name: "MCPZIP_BROWSER",
    doc: "The command that opens a page in the browser, to which the URL is appended; `none` only prints the URL.",
};
/// The shell for which the command line is completed.
pub(crate) const COMPLETE: Variable = Variable {
    name: "MCPZIP_COMPLETE",
    doc: "Set by the script of `mcpzip completions` when it asks mcpzip for completions: the name of the shell.",
};
/// Gemini's key.
pub(crate) const GEMINI_API_KEY: Variable = Variable {
    name: "GEMINI_API_KEY",
    doc: "Gemini's key for `search.llm`, if that has no `api_key`.",
};
/// Gemini's key, under its other name.
pub(crate) const GOOGLE_API_KEY: Variable = Variable {
    name: "GOOGLE_API_KEY",
    doc: "Gemini's key for `search.llm`, if `GEMINI_API_KEY` is not set either.",
};
/// Anthropic's key.
pub(crate) const ANTHROPIC_API_KEY: Variable = Variable {
    name: "ANTHROPIC_API_KEY",
    doc: "Anthropic's key for `search.llm`, if that has no `api_key`.",
};
/// OpenAI's key.
pub(crate) const OPENAI_API_KEY: Variable = Variable {
    name: "OPENAI_API_KEY",
    doc: "OpenAI's key for `search.llm`, if that has no `api_key`.",
};
/// The directory of Claude Code.
pub(crate) const CLAUDE_CONFIG_DIR: Variable = Variable {
    name: "CLAUDE_CONFIG_DIR",
    doc: "The directory of Claude Code's files, including the session logs that `gain --discover` reads.",
};
/// The project that Claude Code works in.
pub(crate) const CLAUDE_PROJECT_DIR: Variable = Variable {
    name: "CLAUDE_PROJECT_DIR",
    doc: "The project that Claude Code works in, which decides the servers with `projects`. Servers inherit it.",
};
/// The directory of Codex.
pub(crate) const CODEX_HOME: Variable = Variable {
    name: "CODEX_HOME",
    doc: "The directory of Codex's files.",
};
/// A further file of opencode.
pub(crate) const OPENCODE_CONFIG: Variable = Variable {
    name: "OPENCODE_CONFIG",
    doc: "A further configuration file of opencode, whose rules `migrate` reads.",
};
/// Settings of opencode themselves.
pub(crate) const OPENCODE_CONFIG_CONTENT: Variable = Variable {
    name: "OPENCODE_CONFIG_CONTENT",
    doc: "Settings of opencode as JSON, whose rules `migrate` reads.",
};
/// The directory of Copilot CLI.
pub(crate) const COPILOT_HOME: Variable = Variable {
    name: "COPILOT_HOME",
    doc: "The directory of Copilot CLI's files.",
};
/// The administrator's settings of Gemini CLI.
pub(crate) const GEMINI_CLI_SYSTEM_SETTINGS_PATH: Variable = Variable {
    name: "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
    doc: "The file with an administrator's settings for Gemini CLI.",
};
/// The directory of configurations.
pub(crate) const XDG_CONFIG_HOME: Variable = Variable {
    name: "XDG_CONFIG_HOME",
    doc: "Linux: where programs keep their configuration.",
};
/// The storage of logins.
pub(crate) const CREDENTIALS: Variable = Variable {
    name: "MCPZIP_CREDENTIALS",
    doc: "How logins are stored: `auto`, `keychain` or `file`; it takes precedence over `credentials` in the configuration.",
};
/// The registry of servers.
pub(crate) const REGISTRY: Variable = Variable {
    name: "MCPZIP_REGISTRY",
    doc: "The URL of the registry of servers; it takes precedence over `registry` in the configuration.",
};
/// The directory in which `mcp-remote` keeps its logins.
pub(crate) const MCP_REMOTE_CONFIG_DIR: Variable = Variable {
    name: "MCP_REMOTE_CONFIG_DIR",
    doc: "The directory in which `login --from mcp-remote` looks for logins, in place of `~/.mcp-auth`.",
};
/// OpenTelemetry: switches everything off.
pub(crate) const OTEL_SDK_DISABLED: Variable = Variable {
    name: "OTEL_SDK_DISABLED",
    doc: "`true` sends no traces and no metrics.",
};
/// OpenTelemetry: the exporter of traces.
pub(crate) const OTEL_TRACES_EXPORTER: Variable = Variable {
    name: "OTEL_TRACES_EXPORTER",
    doc: "`otlp` sends traces; any other value sends none.",
};
/// OpenTelemetry: the collector's address for all signals.
pub(crate) const OTEL_EXPORTER_OTLP_ENDPOINT: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    doc: "The URL of the collector of traces, to which `/v1/traces` is appended; it takes precedence over `otlp.endpoint` in the configuration.",
};
/// OpenTelemetry: the collector's address for traces.
pub(crate) const OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    doc: "The whole URL that traces go to.",
};
/// OpenTelemetry: the protocol for all signals.
pub(crate) const OTEL_EXPORTER_OTLP_PROTOCOL: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_PROTOCOL",
    doc: "The collector's protocol: with `grpc`, which mcpzip does not speak, the variables of the endpoint are ignored.",
};
/// OpenTelemetry: the protocol for traces.
pub(crate) const OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    doc: "The collector's protocol for traces alone.",
};
/// OpenTelemetry: the headers for all signals.
pub(crate) const OTEL_EXPORTER_OTLP_HEADERS: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_HEADERS",
    doc: "Headers for the collector: `name=value,name=value`.",
};
/// OpenTelemetry: the headers for traces.
pub(crate) const OTEL_EXPORTER_OTLP_TRACES_HEADERS: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    doc: "Headers for traces alone.",
};
/// OpenTelemetry: the time limit for all signals.
pub(crate) const OTEL_EXPORTER_OTLP_TIMEOUT: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_TIMEOUT",
    doc: "How long the collector has for an answer, in milliseconds.",
};
/// OpenTelemetry: the time limit for traces.
pub(crate) const OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    doc: "How long the collector has for an answer to traces, in milliseconds.",
};
/// OpenTelemetry: the delay before a batch is sent.
pub(crate) const OTEL_BSP_SCHEDULE_DELAY: Variable = Variable {
    name: "OTEL_BSP_SCHEDULE_DELAY",
    doc: "How long spans wait for others before they are sent, in milliseconds.",
};
/// OpenTelemetry: the name of this service.
pub(crate) const OTEL_SERVICE_NAME: Variable = Variable {
    name: "OTEL_SERVICE_NAME",
    doc: "The name of this process in traces; it takes precedence over `otlp.service_name` in the configuration.",
};
/// OpenTelemetry: the attributes of this service.
pub(crate) const OTEL_RESOURCE_ATTRIBUTES: Variable = Variable {
    name: "OTEL_RESOURCE_ATTRIBUTES",
    doc: "Further attributes of this process in traces: `key=value,key=value`.",
};
/// OpenTelemetry: the sampler.
pub(crate) const OTEL_TRACES_SAMPLER: Variable = Variable {
    name: "OTEL_TRACES_SAMPLER",
    doc: "Which traces are recorded: `parentbased_always_on` and the others of OpenTelemetry.",
};
/// OpenTelemetry: the sampler's argument.
pub(crate) const OTEL_TRACES_SAMPLER_ARG: Variable = Variable {
    name: "OTEL_TRACES_SAMPLER_ARG",
    doc: "The share of traces for `traceidratio`, from 0 to 1.",
};
/// OpenTelemetry, for metrics.
pub(crate) const OTEL_METRICS_EXPORTER: Variable = Variable {
    name: "OTEL_METRICS_EXPORTER",
    doc: "`otlp` sends metrics, `none` does not; it takes precedence over `otlp.metrics` in the configuration.",
};
/// OpenTelemetry, for metrics.
pub(crate) const OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    doc: "The whole URL that metrics go to.",
};
/// OpenTelemetry, for metrics.
pub(crate) const OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
    doc: "The collector's protocol for metrics alone.",
};
/// OpenTelemetry, for metrics.
pub(crate) const OTEL_EXPORTER_OTLP_METRICS_HEADERS: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    doc: "Headers for metrics alone.",
};
/// OpenTelemetry, for metrics.
pub(crate) const OTEL_EXPORTER_OTLP_METRICS_TIMEOUT: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT",
    doc: "How long the collector has for an answer to metrics, in milliseconds.",
};
/// OpenTelemetry, for metrics.
pub(crate) const OTEL_METRIC_EXPORT_INTERVAL: Variable = Variable {
    name: "OTEL_METRIC_EXPORT_INTERVAL",
    doc: "The time between two exports of metrics, in milliseconds.",
};
/// OpenTelemetry, for logs.
pub(crate) const OTEL_LOGS_EXPORTER: Variable = Variable {
    name: "OTEL_LOGS_EXPORTER",
    doc: "`none` keeps the audit log from a collector, even if `audit.to` has `otlp`.",
};
/// OpenTelemetry, for logs.
pub(crate) const OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
    doc: "The whole URL that the audit log goes to.",
};
/// OpenTelemetry, for logs.
pub(crate) const OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL",
    doc: "The collector's protocol for the audit log alone.",
};
/// OpenTelemetry, for logs.
pub(crate) const OTEL_EXPORTER_OTLP_LOGS_HEADERS: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
    doc: "Headers for the audit log alone.",
};
/// OpenTelemetry, for logs.
pub(crate) const OTEL_EXPORTER_OTLP_LOGS_TIMEOUT: Variable = Variable {
    name: "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT",
    doc: "How long the collector has for an answer to the audit log, in milliseconds.",
};
/// Switches colours off; the crate `console` reads it.
#[cfg(test)]
pub(crate) const NO_COLOR: Variable = Variable {
    name: "NO_COLOR",
    doc: "If this is not empty, the output has no colours.",
};

/// The variables that `mcpzip` itself reads; a test compares them with the documentation.
#[cfg(test)]
pub(crate) const VARIABLES: &[Variable] = &[
    CONFIG,
    CONFIG_JSON,
    CACHE_DIR,
    STATE_DIR,
    LOG,
    LOG_FORMAT,
    RUST_LOG,
    DAEMON,
    PROFILE,
    TOKEN,
    LOGIN_KEY,
    STORE,
    STORE_KEY,
    STORE_KEY_FILE,
    STORE_KEY_PREVIOUS,
    STORE_KEY_PREVIOUS_FILE,
    HTTP_ADDRESS,
    HTTP_ORIGINS,
    SECRET_KEY,
    VISUAL,
    EDITOR,
    BROWSER,
    COMPLETE,
    CREDENTIALS,
    REGISTRY,
    MCP_REMOTE_CONFIG_DIR,
    MCP_CONFIG_PATH,
    MCP_CONFIG_DIR,
    CLAUDE_CONFIG_DIR,
    GEMINI_API_KEY,
    GOOGLE_API_KEY,
    ANTHROPIC_API_KEY,
    OPENAI_API_KEY,
    CODEX_HOME,
    OPENCODE_CONFIG,
    OPENCODE_CONFIG_CONTENT,
    COPILOT_HOME,
    GEMINI_CLI_SYSTEM_SETTINGS_PATH,
    XDG_CONFIG_HOME,
    NO_COLOR,
    OTEL_SDK_DISABLED,
    OTEL_TRACES_EXPORTER,
    OTEL_EXPORTER_OTLP_ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    OTEL_EXPORTER_OTLP_PROTOCOL,
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL,
    OTEL_EXPORTER_OTLP_HEADERS,
    OTEL_EXPORTER_OTLP_TRACES_HEADERS,
    OTEL_EXPORTER_OTLP_TIMEOUT,
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT,
    OTEL_BSP_SCHEDULE_DELAY,
    OTEL_SERVICE_NAME,
    OTEL_RESOURCE_ATTRIBUTES,
    OTEL_TRACES_SAMPLER,
    OTEL_TRACES_SAMPLER_ARG,
    OTEL_METRICS_EXPORTER,
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT,
    OTEL_EXPORTER_OTLP_METRICS_PROTOCOL,
    OTEL_EXPORTER_OTLP_METRICS_HEADERS,
    OTEL_EXPORTER_OTLP_METRICS_TIMEOUT,
    OTEL_METRIC_EXPORT_INTERVAL,
    OTEL_LOGS_EXPORTER,
    OTEL_EXPORTER_OTLP_LOGS_ENDPOINT,
    OTEL_EXPORTER_OTLP_LOGS_PROTOCOL,
    OTEL_EXPORTER_OTLP_LOGS_HEADERS,
    OTEL_EXPORTER_OTLP_LOGS_TIMEOUT,
];

/// Windows: the settings that move with the user.
pub(crate) const APPDATA: Variable = Variable {
    name: "APPDATA",
    doc: "Windows: settings that move with the user.",
};
/// Windows: the settings of this machine.
pub(crate) const LOCALAPPDATA: Variable = Variable {
    name: "LOCALAPPDATA",
    doc: "Windows: settings of this machine.",
};

/// The directory of the user's sockets, and the one of temporary files.
#[cfg(unix)]
pub(crate) const RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";
#[cfg(unix)]
pub(crate) const TEMPORARY_DIR: &str = "TMPDIR";

/// All that a daemon gets of the environment of the process that starts it: where its own files are, and how much it logs.
#[cfg(unix)]
pub(crate) const OF_DAEMON: &[&str] = &["HOME", TEMPORARY_DIR, RUNTIME_DIR, LOG.name];
#[cfg(windows)]
pub(crate) const OF_DAEMON: &[&str] = &[
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "USERPROFILE",
    APPDATA.name,
    LOCALAPPDATA.name,
    "TEMP",
    "TMP",
    LOG.name,
];

/// The variables that a server's process inherits; it gets all others from its `env` only. The variables of proxies
/// and certificates also apply to `mcpzip` itself, for connections to HTTP servers.
pub(crate) const INHERITED: &[Variable] = &[
    Variable {
        name: "PATH",
        doc: "The directories in which programs are found.",
    },
    Variable {
        name: "HOME",
        doc: "The home directory.",
    },
    Variable {
        name: "USER",
        doc: "The user's name.",
    },
    Variable {
        name: "LOGNAME",
        doc: "The user's name.",
    },
    Variable {
        name: "SHELL",
        doc: "The user's shell.",
    },
    Variable {
        name: "TERM",
        doc: "The kind of terminal.",
    },
    Variable {
        name: "TMPDIR",
        doc: "The directory for temporary files.",
    },
    Variable {
        name: "LANG",
        doc: "The language.",
    },
    Variable {
        name: "LC_*",
        doc: "Parts of the language settings.",
    },
    Variable {
        name: "TZ",
        doc: "The time zone.",
    },
    CLAUDE_PROJECT_DIR,
    Variable {
        name: "XDG_*",
        doc: "Places of configuration, cache, data and state.",
    },
    Variable {
        name: "HTTP_PROXY",
        doc: "The proxy for http, also in lower case.",
    },
    Variable {
        name: "HTTPS_PROXY",
        doc: "The proxy for https, also in lower case.",
    },
    Variable {
        name: "ALL_PROXY",
        doc: "The proxy for everything, also in lower case.",
    },
    Variable {
        name: "NO_PROXY",
        doc: "The hosts reached without a proxy, also in lower case.",
    },
    Variable {
        name: "http_proxy",
        doc: "The proxy for http.",
    },
    Variable {
        name: "https_proxy",
        doc: "The proxy for https.",
    },
    Variable {
        name: "all_proxy",
        doc: "The proxy for everything.",
    },
    Variable {
        name: "no_proxy",
        doc: "The hosts reached without a proxy.",
    },
    Variable {
        name: "SSL_CERT_FILE",
        doc: "A file of trusted certificates.",
    },
    Variable {
        name: "SSL_CERT_DIR",
        doc: "A directory of trusted certificates.",
    },
    Variable {
        name: "NODE_EXTRA_CA_CERTS",
        doc: "Certificates that Node.js trusts in addition to its own.",
    },
    Variable {
        name: "SYSTEMROOT",
        doc: "Windows: where the system is.",
    },
    Variable {
        name: "SYSTEMDRIVE",
        doc: "Windows: the drive of the system.",
    },
    Variable {
        name: "WINDIR",
        doc: "Windows: where the system is.",
    },
    Variable {
        name: "COMSPEC",
        doc: "Windows: the command interpreter.",
    },
    Variable {
        name: "PATHEXT",
        doc: "Windows: the endings of programs.",
    },
    Variable {
        name: "PROCESSOR_ARCHITECTURE",
        doc: "Windows: the processor.",
    },
    Variable {
        name: "NUMBER_OF_PROCESSORS",
        doc: "Windows: how many processors there are.",
    },
    Variable {
        name: "OS",
        doc: "Windows: the system's name.",
    },
    Variable {
        name: "USERNAME",
        doc: "Windows: the user's name.",
    },
    Variable {
        name: "USERPROFILE",
        doc: "Windows: the home directory.",
    },
    Variable {
        name: "HOMEDRIVE",
        doc: "Windows: the drive of the home directory.",
    },
    Variable {
        name: "HOMEPATH",
        doc: "Windows: the home directory on its drive.",
    },
    APPDATA,
    LOCALAPPDATA,
    Variable {
        name: "PROGRAMDATA",
        doc: "Windows: settings of all users.",
    },
    Variable {
        name: "PROGRAMFILES*",
        doc: "Windows: where programs are installed.",
    },
    Variable {
        name: "TEMP",
        doc: "Windows: where temporary files go.",
    },
    Variable {
        name: "TMP",
        doc: "Windows: where temporary files go.",
    },
];

/// Variables whose values hold for as long as a login or a terminal: a server that several sessions share is started with those of the
/// newest one, where its entry names them.
pub(crate) const AGEING: [&str; 4] = [
    "SSH_AUTH_SOCK",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// The variables of this process, or those that a test gives.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
    /// The secrets of `${keyring:NAME}`.
    keyring: Option<Arc<dyn Keyring>>,
    /// The store that replicas share, once it is open.
    store: Option<Arc<dyn Records>>,
}

impl Environment {
    /// Reads the variables of this process, with the account's home directory if none is set. One whose value is a reference to itself is unset: Gemini CLI passes `${NAME}` on as it
    /// is written if it has no value for it. Invalid Unicode in a value becomes `U+FFFD`, so that one odd directory in
    /// `PATH` does not hide the others.
    #[must_use]
    pub(crate) fn process() -> Self {
        let variables: Self = std::env::vars_os()
            .map(|(name, value)| {
                (
                    name.to_string_lossy().into_owned(),
                    value.to_string_lossy().into_owned(),
                )
            })
            .filter(|(name, value)| *value != format!("${{{name}}}"))
            .collect();
        match (variables.home(), BaseDirs::new()) {
            (None, Some(account)) => {
                let home = account.home_dir().to_string_lossy().into_owned();
                variables.with([(HOME.to_owned(), home)])
            }
            _ => variables,
        }
    }

    /// The value of `name`; on Windows in any letter case.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        if cfg!(windows) {
            self.iter()
                .find(|(known, _)| is_same(known, name))
                .map(|(_, value)| value)
        } else {
            self.variables.get(name).map(String::as_str)
        }
    }

    /// These variables, with others that replace those of the same names.
    #[must_use]
    pub(crate) fn with(&self, others: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut all = self.clone();
        all.variables.extend(others);
        all
    }

    /// These variables, with the secrets of `keyring` for `${keyring:NAME}`.
    #[must_use]
    pub(crate) fn with_keyring(self, keyring: Arc<dyn Keyring>) -> Self {
        Self {
            keyring: Some(keyring),
            ..self
        }
    }

    /// The secrets of `${keyring:NAME}`.
    #[must_use]
    pub(crate) fn keyring(&self) -> Option<&Arc<dyn Keyring>> {
        self.keyring.as_ref()
    }

    /// The user's runtime directory, which ends with the session. Codex starts its servers without the variable that names it, so
    /// that the fallback is the directory of systemd below `system` (`/run/user`). An empty variable means that there is none.
    #[cfg(unix)]
    #[must_use]
    pub(crate) fn runtime_directory(&self, system: &Path) -> Option<PathBuf> {
        match self.get(RUNTIME_DIR) {
            Some("") => None,
            Some(directory) => Some(directory.into()),
            None => {
                let own = system.join(rustix::process::geteuid().as_raw().to_string());
                Some(own).filter(|directory| directory.is_dir())
            }
        }
    }

    /// These variables, with the open store that replicas share.
    #[must_use]
    pub(crate) fn with_store(self, store: Arc<dyn Records>) -> Self {
        Self {
            store: Some(store),
            ..self
        }
    }

    /// The open store that replicas share.
    #[must_use]
    pub(crate) fn store(&self) -> Option<&Arc<dyn Records>> {
        self.store.as_ref()
    }

    /// The state of a run with this state directory.
    #[must_use]
    pub(crate) fn state(&self, directory: &Path) -> State {
        State {
            directory: directory.to_owned(),
            shared: self.store.clone(),
        }
    }

    /// All variables, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The user's home directory, if it is known.
    #[must_use]
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.get(HOME)
            .filter(|home| !home.is_empty())
            .map(PathBuf::from)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self {
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            keyring: None,
            store: None,
        }
    }
}

/// Prints names only: a value may be a secret.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

/// Whether a server's process inherits the variable `name`.
#[must_use]
pub(crate) fn is_inherited(name: &str) -> bool {
    INHERITED
        .iter()
        .any(|variable| match variable.name.strip_suffix('*') {
            Some(start) => name
                .get(..start.len())
                .is_some_and(|head| is_same(head, start)),
            None => is_same(name, variable.name),
        })
}

/// Whether a variable of an entry is one that ages, with the value that the session has.
#[must_use]
pub(crate) fn is_ageing(name: &str, value: &str, session: &Environment) -> bool {
    AGEING.contains(&name) && session.get(name) == Some(value)
}

/// The variables of a server's process: the inherited ones, overridden by those of its entry, sorted by name.
///
/// A value that starts with `()` is a function that some shells export, which a server might run as code; it is left
/// out.
#[must_use]
pub(crate) fn child_environment(
    environment: &Environment,
    configured: &BTreeMap<String, Secret<String>>,
) -> Vec<(String, String)> {
    let is_configured = |name: &str| configured.keys().any(|own| is_same(own, name));
    let mut variables: BTreeMap<String, String> = environment
        .iter()
        .filter(|(name, value)| {
            is_inherited(name) && !is_configured(name) && !value.starts_with("()")
        })
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    variables.extend(
        configured
            .iter()
            .map(|(name, value)| (name.clone(), value.expose().clone())),
    );
    variables.into_iter().collect()
}

/// Compares names; Windows ignores their letter case.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    if cfg!(windows) {
        one.eq_ignore_ascii_case(other)
    } else {
        one == other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configured(pairs: &[(&str, &str)]) -> BTreeMap<String, Secret<String>> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Secret::new((*value).to_owned())))
            .collect()
    }

    #[test]
    fn a_child_inherits_what_is_listed_and_nothing_else() {
        let environment = Environment::from_iter([
            ("PATH", "/bin"),
            ("HOME", "/home/me"),
            ("LC_ALL", "C"),
            ("XDG_RUNTIME_DIR", "/run/me"),
            ("https_proxy", "http://proxy:3128"),
            ("SHELL", "() { :; }; echo"),
            ("AWS_SECRET_ACCESS_KEY", "no"),
            ("GITHUB_TOKEN", "no"),
            ("LCX", "no"),
            ("MCPZIP_CONFIG", "no"),
            ("MCPZIP_TOKEN", "no"),
        ]);
        let child = child_environment(
            &environment,
            &configured(&[("TOKEN", "t"), ("HOME", "/elsewhere")]),
        );
        let pairs: Vec<_> = child
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("HOME", "/elsewhere"),
                ("LC_ALL", "C"),
                ("PATH", "/bin"),
                ("TOKEN", "t"),
                ("XDG_RUNTIME_DIR", "/run/me"),
                ("https_proxy", "http://proxy:3128"),
            ]
        );
    }

    #[test]
    fn an_environment_prints_names_only() {
        assert_eq!(
            format!("{:?}", Environment::from_iter([("TOKEN", "abc")])),
            r#"{"TOKEN"}"#
        );
    }

    #[test]
    fn each_variable_is_listed_once_and_explained() {
        for (position, variable) in VARIABLES.iter().chain(INHERITED).enumerate() {
            let before = VARIABLES.iter().chain(INHERITED).take(position);
            assert!(
                before.into_iter().all(|other| other.name != variable.name),
                "{} twice",
                variable.name
            );
            assert!(variable.doc.ends_with('.'), "{}", variable.name);
        }
    }

    #[test]
    fn the_process_has_a_path() {
        assert!(Environment::process().get("PATH").is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_client_that_drops_the_runtime_directory_finds_the_daemon_of_one_that_does_not() {
        let system = tempfile::TempDir::new().unwrap();
        let id = rustix::process::geteuid().as_raw();
        let own = system.path().join(id.to_string());
        let without = Environment::default();
        assert_eq!(without.runtime_directory(system.path()), None);
        std::fs::create_dir(&own).unwrap();
        let with = Environment::from_iter([(RUNTIME_DIR, own.to_str().unwrap())]);
        assert_eq!(with.runtime_directory(system.path()), Some(own.clone()));
        assert_eq!(without.runtime_directory(system.path()), Some(own));
        let none = Environment::from_iter([(RUNTIME_DIR, "")]);
        assert_eq!(none.runtime_directory(system.path()), None);
    }
}
