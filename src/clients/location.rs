//! The locations of each client's servers, by platform.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::listed::{FILE_LIMIT, MOST_ENTRIES, files, listed, may_be_there};
use super::{Client, Platform, Surroundings, Syntax, Text};
use crate::config::env;
use crate::files::read_regular;

/// The default name of the entry.
pub(super) const NAME: &str = "mcpzip";

/// The file of settings that are laid over those of Codex.
const CODEX_OVERLAY: &str = "managed_config.toml";

/// The users that a client's servers are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// The user, in all directories.
    User,
    /// The user, in one project.
    Local,
    /// All users who work in a project.
    Project,
}

/// A file, and the position of the servers in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigLocation {
    /// The client.
    pub client: Client,
    /// The scope.
    pub scope: Scope,
    /// The file; it need not exist.
    pub path: PathBuf,
    /// The syntax of the file.
    pub syntax: Syntax,
    /// The path of keys to the servers.
    pub container: Vec<String>,
    /// The project, for a file of one project.
    pub project: Option<PathBuf>,
}

impl Scope {
    /// Its name on the command line.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Local => "local",
            Self::Project => "project",
        }
    }

    /// The scope with this name.
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::User, Self::Local, Self::Project]
            .into_iter()
            .find(|scope| scope.name() == name)
    }
}

impl ConfigLocation {
    /// The path of keys to the server `name`.
    #[must_use]
    pub(crate) fn path_of(&self, name: &str) -> Vec<String> {
        self.container
            .iter()
            .cloned()
            .chain([name.to_owned()])
            .collect()
    }
}

impl Client {
    /// The path of keys to the client's servers.
    fn container(self) -> &'static [&'static str] {
        match self {
            Self::VsCode => &["servers"],
            Self::Codex => &["mcp_servers"],
            Self::Zed => &["context_servers"],
            Self::OpenCode => &["mcp"],
            Self::Goose => &["extensions"],
            Self::ClaudeCode
            | Self::ClaudeDesktop
            | Self::Cursor
            | Self::Windsurf
            | Self::GeminiCli
            | Self::Cline
            | Self::Roo
            | Self::Continue
            | Self::Kiro
            | Self::CopilotCli
            | Self::LmStudio => &["mcpServers"],
        }
    }

    fn syntax(self) -> Syntax {
        match self {
            Self::Codex => Syntax::Toml,
            Self::Continue | Self::Goose => Syntax::Yaml,
            Self::ClaudeCode
            | Self::ClaudeDesktop
            | Self::Cursor
            | Self::VsCode
            | Self::Windsurf
            | Self::GeminiCli
            | Self::Zed
            | Self::OpenCode
            | Self::Cline
            | Self::Roo
            | Self::Kiro
            | Self::CopilotCli
            | Self::LmStudio => Syntax::Json,
        }
    }

    /// The file of the user's own servers.
    #[must_use]
    pub(crate) fn user_location(self, around: &Surroundings) -> ConfigLocation {
        let home = |path: &str| around.home.join(path);
        let path = match self {
            Self::ClaudeCode => claude_code(around),
            Self::ClaudeDesktop => claude_desktop(around),
            Self::Cursor => home(".cursor/mcp.json"),
            Self::VsCode => around.vs_code().join("mcp.json"),
            Self::Windsurf => home(".codeium/windsurf/mcp_config.json"),
            Self::Codex => around
                .named(env::CODEX_HOME)
                .unwrap_or(home(".codex"))
                .join("config.toml"),
            Self::GeminiCli => home(".gemini/settings.json"),
            Self::Zed => match around.platform {
                Platform::Windows => around.roaming().join("Zed/settings.json"),
                Platform::Mac => home(".config/zed/settings.json"),
                Platform::Linux => around.config().join("zed/settings.json"),
            },
            Self::OpenCode => own_file(opencode_files(&around.config().join("opencode"))),
            Self::Cline => around
                .extension("saoudrizwan.claude-dev")
                .join("cline_mcp_settings.json"),
            Self::Roo => around
                .extension("rooveterinaryinc.roo-cline")
                .join("mcp_settings.json"),
            Self::Continue => Some(home(".continue/config.yaml"))
                .filter(|path| may_be_there(path))
                .unwrap_or_else(|| continue_own(&around.home)),
            Self::Goose => match around.platform {
                Platform::Windows => around.roaming().join("Block/goose/config/config.yaml"),
                _ => around.config().join("goose/config.yaml"),
            },
            Self::Kiro => home(".kiro/settings/mcp.json"),
            Self::CopilotCli => around
                .named(env::COPILOT_HOME)
                .unwrap_or(home(".copilot"))
                .join("mcp-config.json"),
            Self::LmStudio => home(".lmstudio/mcp.json"),
        };
        let mut location = self.location(Scope::User, path, None);
        if self == Self::ClaudeCode {
            location.syntax = Syntax::ClaudeJson;
        }
        location
    }

    /// Whether it merges the files of the user's servers, so that one entry of mcpzip is enough.
    pub(crate) fn merges_files(self) -> bool {
        matches!(self, Self::OpenCode | Self::Continue)
    }

    /// Whether an entry of mcpzip in the file `one` serves what has left `other`: it is that file, or the client merges both.
    pub(super) fn serves(self, one: &Path, other: &Path, around: &Surroundings) -> bool {
        let is_of_user = |path: &Path| {
            let others = self.other_places(around).into_iter();
            let mut all = others.chain([self.user_location(around)]);
            all.any(|known| known.path == path)
        };
        one == other || self.merges_files() && is_of_user(one) && is_of_user(other)
    }

    /// The existing files of the user's servers other than [`Client::user_location`]: those of profiles, and those that the client merges.
    pub(super) fn other_places(self, around: &Surroundings) -> Vec<ConfigLocation> {
        let files: Vec<PathBuf> = match self {
            Self::VsCode => {
                let profiles = around.vs_code_profile_directories().into_iter();
                profiles.map(|profile| profile.join("mcp.json")).collect()
            }
            Self::OpenCode => {
                let own = self.user_location(around).path;
                let mut files = opencode_files(&around.config().join("opencode"));
                files.retain(|path| *path != own);
                files
            }
            Self::Continue => {
                let own = self.user_location(around).path;
                let mut files = continue_files(&around.home);
                files.retain(|path| *path != own);
                files
            }
            _ => Vec::new(),
        };
        let files = files.into_iter();
        files
            .filter(|path| may_be_there(path))
            .map(|path| self.location(Scope::User, path, None))
            .collect()
    }

    /// The file of a project's servers in `directory`, for clients with such files.
    #[must_use]
    pub(crate) fn project_location(self, directory: &Path) -> Option<ConfigLocation> {
        let path = match self {
            Self::ClaudeCode => directory.join(".mcp.json"),
            Self::Cursor => directory.join(".cursor/mcp.json"),
            Self::VsCode => directory.join(".vscode/mcp.json"),
            Self::Codex => directory.join(".codex/config.toml"),
            Self::GeminiCli => directory.join(".gemini/settings.json"),
            Self::Zed => directory.join(".zed/settings.json"),
            Self::OpenCode => own_file(opencode_files(directory).split_off(1)),
            Self::Roo => directory.join(".roo/mcp.json"),
            Self::Continue => continue_own(directory),
            Self::Kiro => directory.join(".kiro/settings/mcp.json"),
            Self::CopilotCli => directory.join(".github/mcp.json"),
            Self::ClaudeDesktop | Self::Windsurf | Self::Cline | Self::Goose | Self::LmStudio => {
                return None;
            }
        };
        Some(self.location(Scope::Project, path, Some(directory.to_owned())))
    }

    /// The location of the user's servers for one project in Claude Code.
    #[must_use]
    pub(crate) fn local_location(
        self,
        around: &Surroundings,
        project: &Path,
    ) -> Option<ConfigLocation> {
        if self != Self::ClaudeCode {
            return None;
        }
        let mut location = self.user_location(around);
        let key = project.to_string_lossy().into_owned();
        location.container = vec!["projects".to_owned(), key, "mcpServers".to_owned()];
        (location.scope, location.project) = (Scope::Local, Some(project.to_owned()));
        Some(location)
    }

    /// All existing files with servers of projects that apply in the current directory.
    pub(super) fn project_locations(self, around: &Surroundings) -> Vec<ConfigLocation> {
        let Some(directory) = &around.directory else {
            return Vec::new();
        };
        match self {
            // It also reads those of all parent directories.
            Self::ClaudeCode => directory
                .ancestors()
                .filter_map(|above| self.project_location(above))
                .filter(|location| may_be_there(&location.path))
                .collect(),
            Self::Continue => {
                let files = continue_files(directory).into_iter();
                let of = |path| self.location(Scope::Project, path, Some(directory.clone()));
                files.map(of).collect()
            }
            // It merges both.
            Self::OpenCode => {
                let files = opencode_files(directory).split_off(1).into_iter();
                let files = files.filter(|path| may_be_there(path));
                let of = |path| self.location(Scope::Project, path, Some(directory.clone()));
                files.map(of).collect()
            }
            Self::ClaudeDesktop
            | Self::Cursor
            | Self::VsCode
            | Self::Windsurf
            | Self::Codex
            | Self::GeminiCli
            | Self::Zed
            | Self::Cline
            | Self::Roo
            | Self::Goose
            | Self::Kiro
            | Self::CopilotCli
            | Self::LmStudio => self
                .project_location(directory)
                .into_iter()
                .filter(|location| may_be_there(&location.path))
                .collect(),
        }
    }

    /// Whether this machine has any trace of the client.
    #[must_use]
    pub(crate) fn is_installed(self, around: &Surroundings) -> bool {
        let location = self.user_location(around);
        let directory = location
            .path
            .parent()
            .filter(|directory| *directory != around.home);
        location.path.exists()
            || directory.is_some_and(Path::is_dir)
            || self == Self::ClaudeCode && around.home.join(".claude").is_dir()
            || self == Self::Continue && around.home.join(".continue").is_dir()
    }

    /// The servers in the file at `path`, where they usually are in one of this client.
    pub(super) fn location(
        self,
        scope: Scope,
        path: PathBuf,
        project: Option<PathBuf>,
    ) -> ConfigLocation {
        let container = self
            .container()
            .iter()
            .map(|key| (*key).to_owned())
            .collect();
        let is_json = path.extension().is_some_and(|ending| ending == "json");
        ConfigLocation {
            client: self,
            scope,
            syntax: match self {
                Self::Continue if is_json => Syntax::Json,
                _ => self.syntax(),
            },
            path,
            container,
            project,
        }
    }
}

impl Surroundings {
    /// The root of the current project: its repository, or else the directory itself.
    #[must_use]
    pub(crate) fn project(&self) -> Option<PathBuf> {
        let directory = self.directory.as_deref()?;
        let root = directory
            .ancestors()
            .find(|above| above.join(".git").exists());
        Some(root.unwrap_or(directory).to_owned())
    }

    /// Claude Code's settings directory.
    pub(super) fn claude_directory(&self) -> PathBuf {
        self.named(env::CLAUDE_CONFIG_DIR)
            .unwrap_or_else(|| self.home.join(".claude"))
    }

    /// The files of an administrator's settings for Claude Code, and its copy of those that come from a server.
    pub(super) fn managed_settings(&self) -> Vec<PathBuf> {
        let copy = self.claude_directory().join("remote-settings.json");
        let Some(managed) = &self.managed else {
            return vec![copy];
        };
        let parts = managed.join("managed-settings.d");
        let mut files = files(&parts, "json");
        files.insert(0, managed.join("managed-settings.json"));
        files.push(copy);
        files
    }

    /// The file of an administrator's requirements for Codex. Those of a device profile or of an account are not in files.
    pub(super) fn codex_requirements(&self) -> Option<PathBuf> {
        let directory = self.codex_managed.as_ref()?;
        Some(directory.join("requirements.toml"))
    }

    /// The files of settings that are laid over those of Codex.
    pub(super) fn codex_overlays(&self) -> Vec<PathBuf> {
        let user = Client::Codex.user_location(self).path;
        let own = user.with_file_name(CODEX_OVERLAY);
        let managed = self.codex_managed.iter();
        let managed = managed.map(|directory| directory.join(CODEX_OVERLAY));
        [own].into_iter().chain(managed).collect()
    }

    /// The directory of an administrator's settings for opencode.
    pub(super) fn opencode_managed(&self) -> PathBuf {
        PathBuf::from(match self.platform {
            Platform::Linux => "/etc/opencode",
            Platform::Mac => "/Library/Application Support/opencode",
            Platform::Windows => r"C:\ProgramData\opencode",
        })
    }

    /// The directory of an administrator's settings for Gemini CLI.
    pub(super) fn gemini_system(&self) -> PathBuf {
        let named = self.named(env::GEMINI_CLI_SYSTEM_SETTINGS_PATH);
        let named = named.and_then(|file| file.parent().map(Path::to_owned));
        named.unwrap_or_else(|| {
            PathBuf::from(match self.platform {
                Platform::Linux => "/etc/gemini-cli",
                Platform::Mac => "/Library/Application Support/GeminiCli",
                Platform::Windows => r"C:\ProgramData\gemini-cli",
            })
        })
    }

    /// The files of permissions of Cursor's command line agent, which are in the home or in the configuration directory.
    pub(super) fn cursor_permissions(&self) -> [PathBuf; 2] {
        [
            self.home.join(".cursor/cli-config.json"),
            self.config().join("cursor/cli-config.json"),
        ]
    }

    /// An administrator's settings and defaults for Gemini CLI; the former may be in a file of any name.
    pub(super) fn gemini_system_files(&self) -> [PathBuf; 2] {
        let directory = self.gemini_system();
        let settings = self
            .named(env::GEMINI_CLI_SYSTEM_SETTINGS_PATH)
            .unwrap_or_else(|| directory.join("settings.json"));
        [settings, directory.join("system-defaults.json")]
    }

    /// The file of the directories that the user trusts in Gemini CLI.
    pub(super) fn gemini_trusted_folders(&self) -> PathBuf {
        let settings = Client::GeminiCli.user_location(self).path;
        settings.with_file_name("trustedFolders.json")
    }

    /// Copilot CLI's file of settings, which switches servers off.
    pub(super) fn copilot_settings(&self) -> PathBuf {
        let user = Client::CopilotCli.user_location(self).path;
        user.with_file_name("settings.json")
    }

    /// The file of the servers that an administrator sets for Claude Code. If it is there, Claude Code loads no others.
    pub(super) fn managed_list(&self) -> Option<PathBuf> {
        Some(self.managed.as_ref()?.join("managed-mcp.json"))
    }

    /// The directory in a variable.
    fn named(&self, variable: env::Variable) -> Option<PathBuf> {
        self.environment
            .get(variable.name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    }

    fn config(&self) -> PathBuf {
        self.named(env::XDG_CONFIG_HOME)
            .unwrap_or_else(|| self.home.join(".config"))
    }

    fn roaming(&self) -> PathBuf {
        self.named(env::APPDATA)
            .unwrap_or_else(|| self.home.join("AppData/Roaming"))
    }

    pub(super) fn vs_code(&self) -> PathBuf {
        match self.platform {
            Platform::Linux => self.config().join("Code/User"),
            Platform::Mac => self.home.join("Library/Application Support/Code/User"),
            Platform::Windows => self.roaming().join("Code/User"),
        }
    }

    /// The directory of VS Code's profiles other than the default one.
    pub(super) fn vs_code_profiles(&self) -> PathBuf {
        self.vs_code().join("profiles")
    }

    /// The directories of these profiles.
    pub(super) fn vs_code_profile_directories(&self) -> Vec<PathBuf> {
        let profiles = self.vs_code_profiles();
        let mut directories = listed(&profiles, usize::MAX);
        directories.retain(|directory| *directory != profiles);
        directories
    }

    fn extension(&self, id: &str) -> PathBuf {
        self.vs_code()
            .join("globalStorage")
            .join(id)
            .join("settings")
    }
}

/// The file that the user names, otherwise Claude Code's own; early releases had it at another path.
fn claude_code(around: &Surroundings) -> PathBuf {
    if let Some(named) = &around.claude_config {
        return named.clone();
    }
    if let Some(directory) = around.named(env::CLAUDE_CONFIG_DIR) {
        return directory.join(".claude.json");
    }
    let (now, early) = (
        around.home.join(".claude.json"),
        around.home.join(".claude/config.json"),
    );
    match early.is_file() && !now.exists() {
        true => early,
        false => now,
    }
}

fn claude_desktop(around: &Surroundings) -> PathBuf {
    const FILE: &str = "Claude/claude_desktop_config.json";
    match around.platform {
        Platform::Linux => around.config().join(FILE),
        Platform::Mac => around.home.join("Library/Application Support").join(FILE),
        Platform::Windows => {
            let local = around
                .named(env::LOCALAPPDATA)
                .unwrap_or_else(|| around.home.join("AppData/Local"));
            // Since February 2026 it is a package, with its own view of the user's directory.
            let packages = std::fs::read_dir(local.join("Packages"))
                .into_iter()
                .flatten()
                .flatten();
            let mut own =
                packages.filter(|entry| entry.file_name().to_string_lossy().starts_with("Claude_"));
            let packaged = own
                .next()
                .map(|entry| entry.path().join("LocalCache/Roaming").join(FILE));
            packaged.unwrap_or_else(|| around.roaming().join(FILE))
        }
    }
}

/// The files in which a project has servers of Continue, or the user has in the home directory. The folder itself stands for those that cannot
/// be listed, or are too many: it cannot be read as a file, so its content counts as unknown.
pub(super) fn continue_files(directory: &Path) -> Vec<PathBuf> {
    let folder = directory.join(".continue/mcpServers");
    let mut files = listed(&folder, MOST_ENTRIES + 1);
    if files.len() > MOST_ENTRIES {
        return vec![folder];
    }
    let is_list = |path: &Path| {
        let ending = path.extension().and_then(OsStr::to_str);
        path == folder || matches!(ending, Some("yaml" | "yml" | "json"))
    };
    files.retain(|path| is_list(path));
    files
}

/// The file for mcpzip's entry where there is no `config.yaml`: a new one would hide the user's `config.json`. In JSON it needs no header.
fn continue_own(directory: &Path) -> PathBuf {
    directory.join(".continue/mcpServers/mcpzip.json")
}

/// The files that opencode merges in a directory, each over those before it. It reads the first in the user's directory alone.
pub(super) fn opencode_files(directory: &Path) -> Vec<PathBuf> {
    let names = ["config.json", "opencode.json", "opencode.jsonc"];
    names.map(|name| directory.join(name)).into()
}

/// The file among those that a client merges which has mcpzip's entry, or that gets it: the last that exists, or a new one in JSON.
fn own_file(files: Vec<PathBuf>) -> PathBuf {
    let has_entry = |path: &&PathBuf| {
        // Others report a file that cannot be read.
        let text = read_regular(path, FILE_LIMIT).unwrap_or_default();
        let text = Text::parse(Syntax::Json, &String::from_utf8_lossy(&text)).ok();
        text.is_some_and(|text| text.node().at(&["mcp", NAME]).is_some())
    };
    let there = files.iter().filter(|path| may_be_there(path));
    let there: Vec<PathBuf> = there.cloned().collect();
    let several = there.len() > 1;
    let own = several.then(|| there.iter().find(has_entry)).flatten();
    let new = || {
        files
            .into_iter()
            .find(|path| path.ends_with("opencode.json"))
    };
    own.or(there.last())
        .cloned()
        .or_else(new)
        .unwrap_or_default()
}
