//! The settings of the HTTP server, from arguments, variables and the configuration, in this order.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Origin;
use crate::config::{
    EntryError, Environment, HttpAuth, HttpOptions, ListenAddress, TlsOptions, env,
};
use crate::secret::Secret;

/// The settings of the HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// The address to listen on; port 0 chooses a free one.
    pub address: ListenAddress,
    /// The token that every client must send; required unless the address is loopback only.
    pub token: Option<Secret<String>>,
    /// The origins whose pages may send requests, in addition to those of the server's own host.
    pub origins: Vec<Origin>,
    /// How clients show who they are; `None` without identities.
    pub auth: Option<HttpAuth>,
    /// The configured URL by which people reach the server.
    pub public_url: Option<String>,
    /// The configured URL by which other replicas reach the server.
    pub peer: Option<String>,
    /// The server's certificate; `None` without TLS.
    pub tls: Option<Box<TlsOptions>>,
    /// How long the end waits for calls in progress.
    pub drain: Option<Duration>,
    /// Whether the window is served to people who log in.
    pub ui: bool,
}

impl Options {
    /// Whether clients need no token and no identity.
    #[must_use]
    pub(crate) fn is_open(&self) -> bool {
        self.token.is_none() && self.auth.is_none()
    }
}

/// The arguments of the command line.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub address: Option<ListenAddress>,
    pub token_file: Option<PathBuf>,
    pub origins: Vec<Origin>,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OptionsError {
    /// A key of the configuration is invalid.
    #[error("{0}")]
    Setting(EntryError),
    /// The setting has a text that is not an origin.
    #[error("`{setting}`: `{text}`: {reason}")]
    Origin {
        /// The key or the variable.
        setting: &'static str,
        /// The text.
        text: String,
        /// The problem.
        reason: String,
    },
    /// `MCPZIP_HTTP_ADDRESS` is not an address.
    #[error("{} {source}", env::HTTP_ADDRESS.name)]
    Variable {
        /// The problem.
        source: crate::config::NoAddress,
    },
    /// The token file cannot be read.
    #[error("the token file `{}` cannot be read: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A client with the one token would have no identity.
    #[error(
        "`http.auth` asks for identities, which a client with the one token of {origin} does not have: remove it, and make \
         tokens with `mcpzip token create`"
    )]
    TokenAndIdentities {
        /// The setting that names the token.
        origin: &'static str,
    },
    /// The token is empty, or cannot stand in a header.
    #[error("the token in {origin} must be one word of printable ASCII, and not empty")]
    Token {
        /// The file or the variable.
        origin: String,
    },
}

impl Options {
    /// The settings of a server that is wanted in any case. `open_file` gets the path of a token file that other users
    /// can read.
    ///
    /// # Errors
    /// When a setting is invalid, or the token cannot be read.
    pub(crate) fn new(
        arguments: Arguments,
        environment: &Environment,
        configured: &Result<HttpOptions, EntryError>,
        open_file: impl FnOnce(&Path),
    ) -> Result<Self, OptionsError> {
        let configured = configured.as_ref();
        let configured = configured.map_err(|error| OptionsError::Setting(error.clone()))?;
        let address = match arguments.address {
            Some(address) => Some(address),
            None => address(environment, configured)?,
        };
        let variable = environment.get(env::TOKEN.name).unwrap_or_default();
        let file = match (arguments.token_file, variable) {
            (None, "") => configured.token_file.clone(),
            (file, _) => file,
        };
        if configured.auth.is_some() && (file.is_some() || !variable.is_empty()) {
            let origin = match file {
                Some(_) => "`--token-file` or `http.token_file`",
                None => "`MCPZIP_TOKEN`",
            };
            return Err(OptionsError::TokenAndIdentities { origin });
        }
        let token = match (file, variable) {
            (Some(path), _) => Some(token(
                &read(&path, open_file)?,
                format!("`{}`", path.display()),
            )?),
            (None, "") => None,
            (None, text) => Some(token(text, env::TOKEN.name.to_owned())?),
        };
        let mut origins = arguments.origins;
        let variable = environment.get(env::HTTP_ORIGINS.name).unwrap_or_default();
        for text in variable.split_whitespace() {
            origins.push(origin(text, env::HTTP_ORIGINS.name)?);
        }
        for text in &configured.origins {
            origins.push(origin(text, "http.origins")?);
        }
        Ok(Self {
            address: address.unwrap_or_default(),
            token,
            origins,
            auth: configured.auth.clone(),
            public_url: configured.public_url.clone(),
            peer: configured.peer.clone(),
            tls: configured.tls.clone(),
            drain: configured.drain,
            ui: configured.ui,
        })
    }
}

/// The origin in `text`, which is from `setting`.
fn origin(text: &str, setting: &'static str) -> Result<Origin, OptionsError> {
    text.parse::<Origin>()
        .map_err(|error| OptionsError::Origin {
            setting,
            text: text.to_owned(),
            reason: error.to_string(),
        })
}

/// The address of `MCPZIP_HTTP_ADDRESS` or of the configuration.
///
/// # Errors
/// When the variable is not an address.
pub(crate) fn address(
    environment: &Environment,
    configured: &HttpOptions,
) -> Result<Option<ListenAddress>, OptionsError> {
    match of_variable(environment)? {
        None => Ok(configured.address.clone()),
        address => Ok(address),
    }
}

/// The address of `MCPZIP_HTTP_ADDRESS`, if it is set.
///
/// # Errors
/// When it is not an address.
pub(crate) fn of_variable(
    environment: &Environment,
) -> Result<Option<ListenAddress>, OptionsError> {
    let text = environment.get(env::HTTP_ADDRESS.name);
    text.filter(|text| !text.trim().is_empty())
        .map(|text| {
            text.parse()
                .map_err(|source| OptionsError::Variable { source })
        })
        .transpose()
}

fn read(path: &Path, open_file: impl FnOnce(&Path)) -> Result<String, OptionsError> {
    let failed = |source| OptionsError::File {
        path: path.to_owned(),
        source,
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if metadata.permissions().mode() & 0o077 != 0 {
            open_file(path);
        }
    }
    #[cfg(not(unix))]
    drop(open_file);
    std::fs::read_to_string(path).map_err(failed)
}

/// The token in `text`, which was read from `origin`.
///
/// # Errors
/// When it is empty, or cannot stand in a header.
pub(crate) fn token(text: &str, origin: String) -> Result<Secret<String>, OptionsError> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(OptionsError::Token { origin });
    }
    Ok(Secret::new(text.to_owned()))
}
