//! `mcpzip serve`: the main job.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;

use super::diagnostics::Exit;
use super::output::Output;
use crate::app::App;
use crate::config::{Environment, env};
use crate::downstream::http::{Options, Origin};
use crate::proxy::Mode;
use crate::secret::Secret;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip serve
  mcpzip serve --http 127.0.0.1:8080 --token-file ~/.mcpzip-token
  mcpzip serve --direct --config ./mcpzip.json")]
pub(super) struct Arguments {
    /// Serve clients over HTTP at this address, 127.0.0.1:8080 say; port 0 is any free one
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    http: Option<SocketAddr>,
    /// A file with the token that clients over HTTP have to send; without it, MCPZIP_TOKEN is taken
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// Let web pages of this origin call the server; may be given several times
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<Origin>,
    /// List all tools of all servers instead of the three meta-tools, for clients with their own tool search
    #[arg(long)]
    direct: bool,
}

/// Said where no token is asked for.
const OPEN: &str = "without a token, every user and every program of this machine can call all tools; `--token-file` or \
                    `MCPZIP_TOKEN` sets one";

/// How clients reach us.
#[derive(Debug)]
pub(super) enum Way {
    Stdio,
    Http(Options),
}

impl Arguments {
    pub(super) fn mode(&self) -> Mode {
        if self.direct {
            Mode::Direct
        } else {
            Mode::MetaTools
        }
    }

    /// Reads what the arguments name.
    ///
    /// # Errors
    /// When there is no usable token where one is named.
    pub(super) fn way(self, environment: &Environment, output: &Output) -> Result<Way, Exit> {
        let Some(address) = self.http else {
            return Ok(Way::Stdio);
        };
        let token = match (self.token_file, environment.get(env::TOKEN.name)) {
            (Some(path), _) => Some(token(
                &read(&path, output)?,
                &format!("`{}`", path.display()),
            )?),
            (None, Some(text)) if !text.is_empty() => Some(token(text, env::TOKEN.name)?),
            _ => None,
        };
        Ok(Way::Http(Options {
            address,
            token,
            origins: self.allow_origin,
        }))
    }
}

pub(super) async fn run(way: Way, app: App, output: &Output) -> Result<(), Exit> {
    match way {
        Way::Stdio => {
            if std::io::stdin().is_terminal() {
                output
                    .note("waiting for an MCP client on stdin; clients start this command themselves. Ctrl-C ends it.");
            }
            Ok(app.serve_stdio().await?)
        }
        Way::Http(options) => {
            let is_open = options.token.is_none();
            let listening = |url: &str| {
                output.note(&format!("serving MCP on {url}"));
                if is_open {
                    output.note(OPEN);
                }
            };
            Ok(app.serve_http(options, listening).await?)
        }
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "an IP address and a port are needed, as 127.0.0.1:8080 or [::1]:8080".to_owned()
    })
}

fn read(path: &Path, output: &Output) -> Result<String, Exit> {
    let failed = |error: std::io::Error| {
        Exit::failed(format!(
            "the token file `{}` cannot be read: {error}",
            path.display()
        ))
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path)
            .map_err(failed)?
            .permissions()
            .mode();
        if mode & 0o077 != 0 {
            // No refusal: containers get their secrets as files that all of the container may read.
            output.note(&format!(
                "others can read the token file `{}`; `chmod 600` keeps it to you",
                path.display()
            ));
        }
    }
    #[cfg(not(unix))]
    let _ = output;
    std::fs::read_to_string(path).map_err(failed)
}

/// The token in `text`, which comes from `source`.
fn token(text: &str, source: &str) -> Result<Secret<String>, Exit> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Exit::failed(format!(
            "the token in {source} must be one word of printable ASCII, and not empty"
        )));
    }
    Ok(Secret::new(text.to_owned()))
}
