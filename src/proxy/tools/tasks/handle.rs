//! The ids of tasks as clients know them: sealed, with everything that a later request about the task needs, so that nothing is kept
//! here and an id is valid after a restart. It is bound to its caller, because the server's own id in it may be all that is needed to
//! use the task.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::config::{Config, Environment, env};
use crate::files;
use crate::proxy::Caller;
use crate::proxy::view::View;
use crate::sealing::{Key, Sealed};
use crate::secret::Secret;
use crate::tool::{QualifiedName, ServerName, ToolName};

/// The beginning of our ids.
const PREFIX: &str = "mcpzip-";

/// The largest file of a key, in bytes.
const LARGEST: u64 = 4096;

/// The largest id of a server, in bytes. It is in the client's id, which is repeated in a header.
pub(super) const LONGEST_ID: usize = 1024;

/// The longest arguments that are kept, in bytes.
pub(super) const LONGEST_ARGUMENTS: usize = 1024;

/// The longest selection of a call that may become a task, in bytes.
pub(super) const LONGEST_SELECT: usize = 512;

/// A task of a server.
#[derive(Serialize, Deserialize)]
pub(super) struct Handle {
    server: String,
    /// The hash of the server's transport: under its name there may be another server later.
    entry: String,
    /// The tool, by its server's own name.
    tool: String,
    /// The server's own id.
    pub(super) id: String,
    /// The arguments of the call, for rules about them; `None` if they are too long.
    pub(super) arguments: Option<Box<RawValue>>,
    /// The caller's selection.
    pub(super) select: Option<String>,
    /// Whether the tool was called by its own name.
    pub(super) is_direct: bool,
}

/// The keys that seal ids, and the kind of callers that they are for.
pub(in crate::proxy) struct TaskIds {
    /// The value of the variable with the gateway's own key.
    given: Option<Secret<String>>,
    path: Option<PathBuf>,
    is_over_http: bool,
    /// The first one seals.
    keys: Mutex<Vec<Key>>,
}

impl fmt::Debug for TaskIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskIds")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Handle {
    /// A task that a call of `tool` became.
    pub(super) fn new(
        (tool, entry): (&QualifiedName, String),
        id: String,
        arguments: &RawValue,
        (select, is_direct): (Option<&str>, bool),
    ) -> Self {
        let fits = arguments.get().len() <= LONGEST_ARGUMENTS;
        Self {
            server: tool.server.to_string(),
            entry,
            tool: tool.tool.to_string(),
            id,
            arguments: fits.then(|| arguments.to_owned()),
            select: select.map(str::to_owned),
            is_direct,
        }
    }

    /// Whether the server is the one that made the task.
    pub(super) fn is_of(&self, config: &Config, server: &ServerName) -> bool {
        entry_of(config, server).as_ref() == Some(&self.entry)
    }

    /// The tool, by its server's own name.
    pub(super) fn tool(&self) -> Option<QualifiedName> {
        Some(QualifiedName {
            server: ServerName::new(&self.server).ok()?,
            tool: ToolName::new(&self.tool).ok()?,
        })
    }
}

/// The hash of the transport of a server.
pub(super) fn entry_of(config: &Config, server: &ServerName) -> Option<String> {
    let entry = config.servers.get(server)?;
    Some(entry.hash.to_string())
}

impl TaskIds {
    pub(in crate::proxy) fn new(
        path: Option<PathBuf>,
        variables: &Environment,
        is_over_http: bool,
    ) -> Self {
        let given = variables.get(env::LOGIN_KEY.name);
        let given = given.filter(|text| !text.trim().is_empty());
        Self {
            given: given.map(|text| Secret::new(text.to_owned())),
            path,
            is_over_http,
            keys: Mutex::default(),
        }
    }

    /// The id of a task for its caller.
    ///
    /// # Errors
    /// When the key cannot be read or made.
    pub(super) fn seal(&self, view: &View, caller: &Caller, handle: &Handle) -> io::Result<String> {
        let plain = serde_json::to_vec(handle)?;
        let keys = self.keys()?;
        let sealed = keys[0].seal(&self.caller(view, caller), &plain).to_text();
        Ok(format!("{PREFIX}{sealed}"))
    }

    /// The task that an id of a caller means; `None` if it means none of this caller.
    ///
    /// # Errors
    /// When the key cannot be read or made.
    pub(super) fn open(
        &self,
        view: &View,
        caller: &Caller,
        id: &str,
    ) -> io::Result<Option<Handle>> {
        let Some(sealed) = id.strip_prefix(PREFIX).and_then(Sealed::parse) else {
            return Ok(None);
        };
        let (keys, caller) = (self.keys()?, self.caller(view, caller));
        let mut plain = keys.iter().filter_map(|key| key.open(&caller, &sealed));
        Ok(plain
            .next()
            .and_then(|plain| serde_json::from_slice(&plain).ok()))
    }

    /// Whether ids can be made. The log has the reason if not.
    pub(super) fn is_ready(&self) -> bool {
        let keys = self.keys();
        if let Err(error) = &keys {
            tracing::error!(%error, "no call becomes a task, because the key for their ids cannot be used");
        }
        keys.is_ok()
    }

    /// The part of a caller that stays the same after a restart: its identity and profiles. A session ends with its process.
    fn caller(&self, view: &View, caller: &Caller) -> String {
        let config = view.config();
        let profiles: Vec<_> = config.profile_names().collect();
        let person = caller.client.person();
        let way = if self.is_over_http { "http" } else { "local" };
        format!("mcpzip task\n{way}\n{person:?}\n{profiles:?}")
    }

    fn keys(&self) -> io::Result<Vec<Key>> {
        let mut known = self.keys.lock();
        if known.is_empty() {
            *known = match (&self.given, &self.path) {
                (Some(given), _) => derived(given.expose())?,
                (None, Some(path)) => vec![kept(path)?],
                (None, None) => vec![Key::random()],
            };
        }
        Ok(known.clone())
    }
}

/// Keys for this purpose from those that the user gave, so that several processes have the same.
fn derived(given: &str) -> io::Result<Vec<Key>> {
    let own = |text: &str| {
        let key = Key::parse(text.trim().as_bytes())?;
        let mut hash = Sha256::new();
        hash.update(b"mcpzip task ids");
        hash.update(key.bytes());
        Some(Key::of(hash.finalize().into()))
    };
    let keys: Option<Vec<Key>> = given.split(',').map(own).collect();
    keys.ok_or_else(|| io::Error::other(format!("`{}` has no key", env::LOGIN_KEY.name)))
}

/// The key in a file, which is made when it is first needed.
fn kept(path: &Path) -> io::Result<Key> {
    let read = || {
        let text = files::read_private(path, LARGEST)?;
        let unusable = || io::Error::other(format!("`{}` has no key", path.display()));
        Key::parse(text.trim_ascii()).ok_or_else(unusable)
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read,
    }
    if let Some(directory) = path.parent() {
        files::create_private_directory(directory)?;
    }
    // Another process may make it at the same time.
    let lock = files::open_lock(&path.with_extension("lock"))?;
    lock.lock()?;
    if !path.exists() {
        let text = Key::random().to_text();
        files::replace(path, &[text.expose().as_bytes(), b"\n"])?;
    }
    read()
}
