//! MCP clients and their files: the servers in them, mcpzip's own entry, and the migration of the other entries.
//!
//! [`Client`] knows where each client keeps its servers; `reading` converts their entries to one form, [`Entry`],
//! and `entry` writes mcpzip's own. A [`Plan`] describes a migration; [`Journal`] applies and undoes it. This module
//! does not read the environment of the process: home directory and variables are passed as [`Surroundings`], so
//! that tests use their own.

mod allowed;
mod approval;
mod astray;
mod barrier;
mod cache;
mod came_over;
mod client_edits;
mod connection;
mod desktop;
mod diff;
mod edit;
mod entry;
mod extension;
mod extraction;
mod fixed;
mod found;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod history;
mod import;
mod inspection;
mod journal;
mod listed;
mod location;
mod lock;
mod model;
mod model_key;
mod names;
mod nearness;
mod node;
mod plan;
mod reading;
mod references;
mod remote;
mod replaced;
mod rules;
mod secrets;
mod servers;
mod sharing;
mod stored;
mod survey;
#[cfg(test)]
mod tests;
mod text;
mod warnings;
mod withheld;

use std::path::PathBuf;

pub(crate) use astray::{Started, other_config};
pub(crate) use barrier::barrier;
pub(crate) use connection::{Connected, Disconnected, connect, disconnect};
pub(crate) use desktop::desktop_path;
pub(crate) use edit::{Edit, PlanError};
pub(crate) use entry::{CodexApproval, Launch};
pub(crate) use extension::Connection;
pub(crate) use extraction::{Extraction, client_literals, literal_secrets};
pub(crate) use history::History;
pub(crate) use import::{Clients, Import, Origin, Wanted};
pub(crate) use inspection::{OwnEntry, own_entries, repair};
pub(crate) use journal::{
    CutOff, Journal, JournalError, Kept, KeptFor, NO_RUNS, Restored, RunState, Summary, Undone,
    Unreturned, Whereabouts,
};
pub(crate) use location::{ConfigLocation, Scope};
pub(crate) use model::{Carried, Entry, Fixed, Found, Item, Known, Rule, Survey, Target, Verdict};
pub(crate) use node::Node;
pub(crate) use plan::{Choice, Plan, SecretsPlan};
pub(crate) use replaced::BeforeChange;
pub(crate) use servers::Twin;
pub(crate) use stored::Destination;
pub(crate) use text::{Syntax, Text, TextError};
pub(crate) use withheld::{Guards, running};

use crate::config::Environment;

/// Whether a server's entry in JSON starts mcpzip with the user's own configuration.
pub(crate) fn starts_mcpzip(entry: &str) -> bool {
    let Ok(text) = Text::parse(Syntax::Json, entry) else {
        return false;
    };
    let is_command_line = text.node().get("cli") == Some(&Node::Flag(true));
    let entry = reading::read(Client::ClaudeCode, text.node(), None);
    !is_command_line && entry.is_ok_and(|entry| entry.is_mcpzip() && entry.config().is_none())
}

/// A program that uses MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Client {
    /// Anthropic's command line agent.
    ClaudeCode,
    /// Anthropic's desktop program.
    ClaudeDesktop,
    /// An editor.
    Cursor,
    /// The agent of the editor.
    VsCode,
    /// An editor.
    Windsurf,
    /// OpenAI's command line agent and its editor extension.
    Codex,
    /// Google's command line agent.
    GeminiCli,
    /// An editor.
    Zed,
    /// A command line agent.
    OpenCode,
    /// An extension of VS Code.
    Cline,
    /// An extension of VS Code.
    Roo,
    /// An extension of several editors.
    Continue,
    /// An agent.
    Goose,
    /// An editor.
    Kiro,
    /// GitHub's command line agent.
    CopilotCli,
    /// A runner of local models.
    LmStudio,
}

/// The platforms, by the locations of programs' files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    /// Linux and similar systems.
    Linux,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

/// The environment in which a client's files are found.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// The user's home directory.
    pub home: PathBuf,
    /// The platform whose locations are used.
    pub platform: Platform,
    /// The environment variables, some of which contain locations.
    pub environment: Environment,
    /// The directory whose project files are read as well.
    pub directory: Option<PathBuf>,
    /// The directory of an administrator's settings for Claude Code.
    pub managed: Option<PathBuf>,
    /// The directory of an administrator's settings for Codex.
    pub codex_managed: Option<PathBuf>,
    /// Claude Code's file, if the user names it.
    pub claude_config: Option<PathBuf>,
}

impl Platform {
    /// The platform of this program.
    #[must_use]
    pub(crate) const fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::Mac
        } else {
            Self::Linux
        }
    }

    /// The directory of an administrator's settings for Claude Code.
    #[must_use]
    pub(crate) fn managed(self) -> PathBuf {
        PathBuf::from(match self {
            Self::Linux => "/etc/claude-code",
            Self::Mac => "/Library/Application Support/ClaudeCode",
            Self::Windows => r"C:\Program Files\ClaudeCode",
        })
    }

    /// The directory of an administrator's settings for Codex.
    #[must_use]
    pub(crate) fn codex_managed(self) -> PathBuf {
        PathBuf::from(match self {
            Self::Linux | Self::Mac => "/etc/codex",
            Self::Windows => r"C:\ProgramData\OpenAI\Codex",
        })
    }
}

impl Client {
    /// All clients.
    pub(crate) const ALL: [Self; 16] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Codex,
        Self::GeminiCli,
        Self::Zed,
        Self::OpenCode,
        Self::Cline,
        Self::Roo,
        Self::Continue,
        Self::Goose,
        Self::Kiro,
        Self::CopilotCli,
        Self::LmStudio,
    ];

    /// Its name on the command line.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Zed => "zed",
            Self::OpenCode => "opencode",
            Self::Cline => "cline",
            Self::Roo => "roo",
            Self::Continue => "continue",
            Self::Goose => "goose",
            Self::Kiro => "kiro",
            Self::CopilotCli => "copilot-cli",
            Self::LmStudio => "lm-studio",
        }
    }

    /// Its name in a sentence.
    #[must_use]
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Codex => "Codex",
            Self::GeminiCli => "Gemini CLI",
            Self::Zed => "Zed",
            Self::OpenCode => "opencode",
            Self::Cline => "Cline",
            Self::Roo => "Roo Code",
            Self::Continue => "Continue",
            Self::Goose => "Goose",
            Self::Kiro => "Kiro",
            Self::CopilotCli => "Copilot CLI",
            Self::LmStudio => "LM Studio",
        }
    }

    /// The client with this name.
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }

    /// Whether it shows interfaces of tools (MCP Apps), and says so to servers.
    #[must_use]
    pub(crate) const fn shows_interfaces(self) -> bool {
        matches!(
            self,
            Self::ClaudeDesktop | Self::Cursor | Self::VsCode | Self::Goose
        )
    }

    /// Whether it is started from a desktop, with another `PATH` than a shell's.
    #[must_use]
    pub(crate) const fn is_graphical(self) -> bool {
        !matches!(
            self,
            Self::ClaudeCode | Self::Codex | Self::GeminiCli | Self::OpenCode | Self::CopilotCli
        )
    }
}
