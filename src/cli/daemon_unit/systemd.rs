//! User units of systemd, which listens on the daemon's socket and starts the daemon on demand.

use std::path::PathBuf;

use super::super::diagnostics::Exit;
use super::service::{
    Encoding, Installed, MARK, Program, Service, ServiceFile, directory_of, homeless, text,
};
use crate::config::{Environment, Paths, env};
use crate::daemon;

const SOCKET: &str = "mcpzip.socket";
const SERVICE: &str = "mcpzip.service";

/// # Errors
/// When there is no directory for units or for the socket, or a path cannot be written into a unit.
pub(super) fn service(
    program: &Program<'_>,
    paths: &Paths,
    environment: &Environment,
) -> Result<Service, Exit> {
    let listens_at = daemon::socket(paths, environment).map_err(anyhow::Error::from)?;
    let socket = format!(
        "# {MARK}\n[Unit]\nDescription=Socket of the mcpzip daemon\n\n[Socket]\nListenStream={}\nSocketMode=0600\nDirectoryMode=0700\nRemoveOnStop=yes\n\n[Install]\nWantedBy=sockets.target\n",
        specifiers_escaped(text(&listens_at)?)
    );
    let words = program.words(&["daemon", "run"]);
    let words: Vec<String> = words.into_iter().map(quoted).collect();
    let service = format!(
        "# {MARK}\n[Unit]\nDescription=mcpzip daemon: one set of servers for all sessions\nRequires={SOCKET}\nAfter={SOCKET}\n\n[Service]\nType=exec\nExecStart={}\nStandardInput=socket\nStandardOutput=journal\nStandardError=journal\nKillMode=mixed\n",
        words.join(" ")
    );
    let directory = directory(environment)?;
    let file = |name: &str, text| ServiceFile {
        path: directory.join(name),
        text,
        encoding: Encoding::Utf8,
    };
    Ok(Service {
        files: vec![file(SOCKET, socket), file(SERVICE, service)],
        socket: Some(listens_at),
        log_directory: None,
        start: "`systemctl --user daemon-reload && systemctl --user enable --now mcpzip.socket` starts it; install it again after each update of mcpzip".to_owned(),
    })
}

/// # Errors
/// When there is no directory for units.
pub(super) fn installed(environment: &Environment) -> Result<Installed, Exit> {
    let directory = directory(environment)?;
    Ok(Installed {
        files: [SOCKET, SERVICE].map(|name| directory.join(name)).into(),
        end: "`systemctl --user stop mcpzip.socket mcpzip.service; systemctl --user daemon-reload` ends what runs".to_owned(),
    })
}

/// The directory of the user's units.
fn directory(environment: &Environment) -> Result<PathBuf, Exit> {
    let configuration = directory_of(environment, env::XDG_CONFIG_HOME.name)
        .map(PathBuf::from)
        .or_else(|| Some(directory_of(environment, "HOME")?.join(".config")));
    let configuration = configuration.ok_or_else(homeless)?;
    Ok(configuration.join("systemd/user"))
}

/// A word of a command line in a unit; a plain one stays as it is.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if word.bytes().all(is_plain) {
        return word.to_owned();
    }
    let text = specifiers_escaped(word)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('$', "$$");
    format!("\"{text}\"")
}

/// Text in which `%` names nothing.
fn specifiers_escaped(text: &str) -> String {
    text.replace('%', "%%")
}
