//! Decides how each client sees the servers' tools, once for its session.
//!
//! A decision of `auto` is kept in the state directory by client and configuration file, so that a client's next sessions see
//! the tools in the same way. It changes with the settings, or when the servers' tools have changed by half. A session that
//! goes on in another process keeps its own.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Client;
use super::callers::Callers;
use super::inventory::{Inventory, ToolsSize, counted};
use super::view::{LONGEST_NAME, Mode, SessionSurface};
use crate::config::{Config, ReadTool, Shown, Surface, SurfaceRequest, SurfaceSource, is_client};
use crate::day::Day;
use crate::files;

/// The directory of the decisions, below the state directory.
pub(crate) const SURFACES: &str = "surfaces";

/// The directory of the surfaces of single sessions, below it.
const SESSIONS: &str = "sessions";

/// The version of a decision's file.
const VERSION: u32 = 1;

/// The number of decisions that are kept. Clients over HTTP choose their names, and more are decided without being kept.
const MOST_DECISIONS: usize = 200;

/// The longest name of a client that is kept, in characters.
const LONGEST_CLIENT: usize = 80;

/// The bits of a surface in the id of a session.
const DIRECT: u8 = 1;
const READ_TOOL: u8 = 2;

/// The largest file of a decision that is read.
const LARGEST: u64 = 16 * 1024;

/// When the surface of a session that goes on in other processes is forgotten.
const SESSION_AGE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// The clients that were seen to need a read-only tool next to `execute_tool`; see docs/surfaces.md.
const NEED_READ_TOOL: &[&str] = &["codex"];

/// The clients that got each surface since the process started. One whose requests belong to no session counts once a request.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) tools: AtomicU64,
    pub(super) direct: AtomicU64,
}

/// Decides surfaces.
#[derive(Debug)]
pub(super) struct Surfaces {
    pub(super) figures: Arc<Figures>,
    inventory: Arc<Inventory>,
    callers: Arc<Callers>,
    request: SurfaceRequest,
    directory: Option<PathBuf>,
    /// The random name of the session, if several processes may serve it.
    session: Option<String>,
    /// The surfaces of clients whose requests belong to no session, by name.
    without_session: Mutex<HashMap<String, SessionSurface>>,
}

/// A decision of `auto`, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Decision {
    version: u32,
    /// The client's name, as it gives it.
    pub(crate) client: String,
    /// The configuration file.
    pub(crate) configuration: String,
    /// The profiles of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) profiles: Vec<String>,
    /// `tools` or `direct`.
    pub(crate) surface: String,
    /// Whether `execute_read_tool` is listed.
    #[serde(default)]
    pub(crate) read_tool: bool,
    /// The number of tools at that time.
    pub(crate) tools: usize,
    /// The tokens of their definitions.
    pub(crate) tokens: usize,
    /// The limit that was configured.
    pub(crate) small: usize,
    /// The setting that asked for it: `flag`, `profile`, `client`, `http` or `file`.
    pub(crate) asked_by: String,
    /// The day of the decision.
    pub(crate) since: String,
}

impl Decision {
    /// The reason for it, in a few words.
    #[must_use]
    pub(crate) fn reason(&self) -> String {
        let relation = match self.surface.as_str() {
            "direct" => "at most",
            _ => "more than",
        };
        format!(
            "{} with {} tokens of definitions, {relation} {}",
            counted(self.tools, "tool"),
            self.tokens,
            self.small
        )
    }

    /// Whether it still applies to a set of this size.
    fn applies(&self, size: Option<ToolsSize>, small: usize) -> bool {
        let Some(size) = size else { return true };
        self.small == small && !is_other_by_half(self.tokens, size.tokens)
    }
}

impl SessionSurface {
    /// The part of it that does not follow from the client's name and the configuration, in less than 7 bits.
    pub(super) fn bits(&self) -> u8 {
        let direct = if self.mode == Mode::Direct { DIRECT } else { 0 };
        direct | if self.has_read_tool { READ_TOOL } else { 0 }
    }
}

/// Whether a set has grown or shrunk by half or more.
fn is_other_by_half(before: usize, now: usize) -> bool {
    2 * before.abs_diff(now) >= before.max(1)
}

impl Surfaces {
    pub(super) fn new(
        inventory: Arc<Inventory>,
        callers: Arc<Callers>,
        request: SurfaceRequest,
        directory: Option<PathBuf>,
        session: Option<String>,
        figures: Arc<Figures>,
    ) -> Self {
        Self {
            figures,
            inventory,
            callers,
            request,
            directory,
            session,
            without_session: Mutex::default(),
        }
    }

    /// Decides how `client` sees the tools, unless that was decided before.
    pub(super) fn settle(&self, client: &Client) {
        if client.has_surface() {
            return;
        }
        let name = client.software_name().unwrap_or_default().to_owned();
        let surface = match client.is_without_session() {
            false => self.of_session(client, &name),
            true => {
                let known = self.without_session.lock().get(&name).cloned();
                let mut surface = known.unwrap_or_else(|| {
                    let surface = self.decide(client, &name);
                    let mut known = self.without_session.lock();
                    if known.len() < MOST_DECISIONS {
                        known.insert(name.clone(), surface.clone());
                    }
                    surface
                });
                surface.shown = shown(surface.mode, &self.callers.view(client).config(), &name);
                surface.shows_interfaces = client.shows_interfaces();
                surface
            }
        };
        let figure = match surface.mode {
            Mode::MetaTools => &self.figures.tools,
            Mode::Direct => &self.figures.direct,
        };
        figure.fetch_add(1, Ordering::Relaxed);
        client.show(surface);
    }

    /// Shows `client` the tools as another replica has decided; `surface` is of [`SessionSurface::bits`].
    pub(super) fn continue_with(&self, client: &Client, surface: u8) {
        let name = client.software_name().unwrap_or_default();
        let mode = match surface & DIRECT {
            0 => Mode::MetaTools,
            _ => Mode::Direct,
        };
        client.show(SessionSurface {
            mode,
            has_read_tool: surface & READ_TOOL != 0,
            shown: shown(mode, &self.callers.view(client).config(), name),
            shows_interfaces: client.shows_interfaces(),
            longest_name: longest_name(name),
        });
    }

    /// The surface of a session, which stays when another process takes it over.
    fn of_session(&self, client: &Client, name: &str) -> SessionSurface {
        let Some(path) = self.session_file() else {
            return self.decide(client, name);
        };
        if let Some(kept) = read(&path).and_then(|text| of_text(&text, name)) {
            return kept;
        }
        static SWEPT: Once = Once::new();
        let surface = self.decide(client, name);
        SWEPT.call_once(|| forget_sessions(&path));
        if let Err(error) = keep_session(&path, &surface) {
            tracing::warn!(path = %path.display(), %error, "the session's surface cannot be kept");
        }
        surface
    }

    /// Removes the surface that is kept for the session, which has ended in every process.
    pub(super) fn forget_session(&self) {
        if let Some(path) = self.session_file() {
            // There is none if the client never said what it is.
            let _ = std::fs::remove_file(path);
        }
    }

    fn session_file(&self) -> Option<PathBuf> {
        let directory = self.directory.as_ref()?.join(SESSIONS);
        Some(directory.join(self.session.as_ref()?))
    }

    fn decide(&self, client: &Client, name: &str) -> SessionSurface {
        let config = self.callers.view(client).config();
        let (surface, source) = config.surface.of_client(name, self.request);
        let (mode, is_kept) = match surface {
            Surface::Tools => (Mode::MetaTools, false),
            Surface::Direct => (Mode::Direct, false),
            Surface::Auto => (self.automatic(client, &config, name, source), true),
        };
        let surface = SessionSurface {
            mode,
            has_read_tool: mode == Mode::MetaTools
                && has_read_tool(config.surface.read_tool, is_kept, name),
            shown: shown(mode, &config, name),
            shows_interfaces: client.shows_interfaces(),
            longest_name: longest_name(name),
        };
        tracing::debug!(client = name, ?surface, ?source, "the surface is decided");
        surface
    }

    /// The decision of `auto`: the kept one if it still applies, otherwise a new one. Unknown sizes mean the meta-tools, which
    /// is not kept.
    fn automatic(
        &self,
        client: &Client,
        config: &Config,
        name: &str,
        source: SurfaceSource,
    ) -> Mode {
        let path = self.decision_file(config, name);
        let kept: Option<Decision> = path
            .as_deref()
            .and_then(read)
            .and_then(|text| serde_json::from_str(&text).ok())
            // Earlier versions decided about no tools.
            .filter(|kept: &Decision| kept.version == VERSION && kept.tools > 0);
        let size = self.inventory.size(&self.callers.view(client).config());
        let small = config.surface.small;
        if let Some(kept) = kept.filter(|kept| kept.applies(size, small)) {
            return mode_named(&kept.surface);
        }
        let Some(size) = size else {
            return Mode::MetaTools;
        };
        let mode = match size.tokens <= small {
            true => Mode::Direct,
            false => Mode::MetaTools,
        };
        if let Some(path) = path {
            let is_new = !path.exists();
            let decision = Decision {
                version: VERSION,
                client: name.chars().take(LONGEST_CLIENT).collect(),
                configuration: configuration(config),
                profiles: config.profile_names().map(str::to_owned).collect(),
                surface: name_of(mode).to_owned(),
                read_tool: mode == Mode::MetaTools
                    && has_read_tool(config.surface.read_tool, true, name),
                tools: size.tools,
                tokens: size.tokens,
                small,
                asked_by: source_name(source).to_owned(),
                since: Day::today().to_string(),
            };
            keep(&path, &decision, is_new);
        }
        mode
    }

    fn decision_file(&self, config: &Config, name: &str) -> Option<PathBuf> {
        // People see different tools, and come and go.
        if config.is_for_person() {
            return None;
        }
        let mut key = format!("{}\0{name}", configuration(config));
        for profile in config.profile_names() {
            key.push_str(&format!("\0{profile}"));
        }
        let id = Sha256::digest(key);
        let file = format!("{}.json", HEXLOWER.encode(&id[..12]));
        Some(self.directory.as_ref()?.join(file))
    }
}

/// The decisions that are kept for a configuration file, by client.
#[must_use]
pub(crate) fn decisions(state: &Path, config: &Config) -> Vec<Decision> {
    let own = configuration(config);
    let http = config.http.as_ref().ok().and_then(|http| http.surface);
    let files = std::fs::read_dir(state.join(SURFACES))
        .into_iter()
        .flatten();
    let mut decisions: Vec<Decision> = files
        .flatten()
        .filter_map(|file| serde_json::from_str(&read(&file.path())?).ok())
        .filter(|decision: &Decision| decision.version == VERSION && decision.configuration == own)
        .filter(|decision| {
            let request = SurfaceRequest {
                flag: None,
                http: http.filter(|_| decision.asked_by == source_name(SurfaceSource::Http)),
            };
            let Ok(part) = config.narrowed(&decision.profiles) else {
                return false;
            };
            let (surface, _) = part.surface.of_client(&decision.client, request);
            surface == Surface::Auto || decision.asked_by == source_name(SurfaceSource::Flag)
        })
        .collect();
    decisions.sort_by(|one, other| one.client.cmp(&other.client));
    decisions
}

fn configuration(config: &Config) -> String {
    let path = config.path.as_deref().unwrap_or(Path::new(""));
    path.display().to_string()
}

fn source_name(source: SurfaceSource) -> &'static str {
    match source {
        SurfaceSource::Flag => "flag",
        SurfaceSource::Profile => "profile",
        SurfaceSource::Client => "client",
        SurfaceSource::Http => "http",
        SurfaceSource::File => "file",
    }
}

fn has_read_tool(option: ReadTool, is_automatic: bool, client: &str) -> bool {
    match option {
        ReadTool::On => true,
        ReadTool::Off => false,
        ReadTool::Auto => {
            is_automatic && NEED_READ_TOOL.iter().any(|known| is_client(known, client))
        }
    }
}

/// The tools that a client sees next to the meta-tools.
fn shown(mode: Mode, config: &Config, client: &str) -> Shown {
    match mode {
        Mode::MetaTools => config.surface.shown_to(client),
        Mode::Direct => Shown::default(),
    }
}

/// The longest name of a tool for a client: some put the entry's name before it and cut the whole (docs/surfaces.md).
fn longest_name(client: &str) -> usize {
    let cuts = ["gemini-cli", "vscode"];
    match cuts.iter().any(|known| is_client(known, client)) {
        true => LONGEST_NAME - 18,
        false => LONGEST_NAME,
    }
}

fn keep(path: &Path, decision: &Decision, is_new: bool) {
    let others = path
        .parent()
        .and_then(|directory| std::fs::read_dir(directory).ok());
    if is_new && others.is_some_and(|files| files.count() > MOST_DECISIONS) {
        tracing::warn!("too many clients have a surface; that of another one is not kept");
        return;
    }
    let json = serde_json::to_vec(decision).expect("text is JSON");
    if let Err(error) = files::replace(path, &[&json]) {
        tracing::warn!(path = %path.display(), %error, "the decision on a client's surface cannot be kept");
    }
}

/// Keeps a session's surface for the process that may take the session over. The client waits for its first answer
/// meanwhile, so nothing is synced: no session survives a power failure.
fn keep_session(path: &Path, surface: &SessionSurface) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    files::private(&mut options);
    let opened = match files::open_with(&mut options, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = path.parent().ok_or(error)?;
            files::create_private_directory(directory)?;
            files::open_with(&mut options, path)
        }
        opened => opened,
    };
    opened?.write_all(text_of(surface).as_bytes())
}

/// Removes the surfaces of old sessions, which no process has removed.
fn forget_sessions(path: &Path) {
    let now = SystemTime::now();
    let directory = path
        .parent()
        .and_then(|parent| std::fs::read_dir(parent).ok());
    for file in directory.into_iter().flatten().flatten() {
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        let is_old = modified
            .ok()
            .and_then(|at| now.duration_since(at).ok())
            .is_some_and(|age| age > SESSION_AGE);
        if is_old {
            // It is tried again with the next session.
            let _ = std::fs::remove_file(file.path());
        }
    }
}

fn read(path: &Path) -> Option<String> {
    String::from_utf8(files::read_regular(path, LARGEST).ok()?).ok()
}

fn name_of(mode: Mode) -> &'static str {
    match mode {
        Mode::MetaTools => Surface::Tools.text(),
        Mode::Direct => Surface::Direct.text(),
    }
}

fn mode_named(name: &str) -> Mode {
    match Surface::parse(name) {
        Some(Surface::Direct) => Mode::Direct,
        _ => Mode::MetaTools,
    }
}

/// A session's surface as text: its mode, whether it has the read-only tool, and whether its client shows interfaces; in a
/// second line, the tools next to the meta-tools as JSON.
fn text_of(surface: &SessionSurface) -> String {
    let read = if surface.has_read_tool { " read" } else { "" };
    let ui = if surface.shows_interfaces { " ui" } else { "" };
    let shown = serde_json::to_string(surface.shown.patterns()).expect("texts are JSON");
    format!("{}{read}{ui}\n{shown}\n", name_of(surface.mode))
}

fn of_text(text: &str, client: &str) -> Option<SessionSurface> {
    let (surface, shown) = text.split_once('\n').unwrap_or((text, ""));
    let shown: Vec<String> = serde_json::from_str(shown).unwrap_or_default();
    let surface = surface.trim();
    let (surface, shows_interfaces) = match surface.strip_suffix(" ui") {
        Some(surface) => (surface, true),
        None => (surface, false),
    };
    let (mode, has_read_tool) = match surface {
        "tools" => (Mode::MetaTools, false),
        "tools read" => (Mode::MetaTools, true),
        "direct" => (Mode::Direct, false),
        _ => return None,
    };
    Some(SessionSurface {
        mode,
        has_read_tool,
        shown: Shown::parse(&shown).unwrap_or_default(),
        shows_interfaces,
        longest_name: longest_name(client),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_changed_by_half_when_that_much_came_or_went() {
        for (before, now, expected) in [
            (1000, 1499, false),
            (1000, 1500, true),
            (1000, 501, false),
            (1000, 500, true),
            (0, 1, true),
            (0, 0, false),
        ] {
            assert_eq!(is_other_by_half(before, now), expected, "{before} {now}");
        }
    }

    #[test]
    fn a_session_keeps_its_surface_as_text() {
        for (has_read_tool, shows_interfaces) in [(true, false), (true, true), (false, true)] {
            let surface = SessionSurface {
                has_read_tool,
                shows_interfaces,
                shown: Shown::parse(&["a__b c*".to_owned()]).unwrap(),
                ..SessionSurface::default()
            };
            assert_eq!(of_text(&text_of(&surface), "x"), Some(surface));
        }
        assert_eq!(of_text("later kind", "x"), None);
    }
}
