//! `surface` and `clients`: how clients see the servers' tools.

use std::collections::{BTreeMap, BTreeSet};

use jsonc_parser::ast::Value;

use super::error::EntryError;
use super::keys;
use super::options::result_form;
use super::profiles::UNREADABLE;
use super::reader::{At, Field, Members, Read, Report};
use super::sections::SurfaceEntry;
use super::shown::{Shown, shown};
use super::surface::{ReadTool, Surface, SurfaceRequest, SurfaceSource, surface_name};
use super::{ResultForm, setting, simple_setting};

/// The default of `surface.small`, in tokens.
const SMALL: usize = 2000;

const SURFACE_OBJECT_EXPECTED: &str =
    "\"auto\", \"tools\" or \"direct\", or an object with `mode`, `small` and `read_tool`";

/// The options of the surface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SurfaceOptions {
    /// The surface of clients without a setting of their own.
    pub mode: Surface,
    /// The tokens of definitions up to which `auto` shows tools directly.
    pub small: usize,
    /// Whether clients get `execute_read_tool`.
    pub read_tool: ReadTool,
    /// The tools that clients see next to the meta-tools.
    pub show: Shown,
    /// The settings of some clients, by the names in the file.
    pub clients: BTreeMap<String, ClientOptions>,
    /// The surface of the profiles that the configuration is narrowed to.
    pub of_profiles: Option<Surface>,
    /// Whether `clients` cannot be read, so that it is unknown which clients have profiles.
    pub is_unreadable: bool,
}

/// The settings of one client; `None` leaves the file's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientOptions {
    /// The client's surface.
    pub surface: Option<Surface>,
    /// The tools that it sees next to the meta-tools.
    pub show: Option<Shown>,
    /// The form of its results.
    pub form: Option<ResultForm>,
    /// The client's profile.
    pub profile: Option<String>,
    /// Whether its entry is there twice, or has an unknown key or a key twice: a profile may be meant.
    pub is_unclear: bool,
}

/// The settings of one client as written.
pub(super) struct ClientEntry {
    surface: Read<Surface>,
    show: Read<Shown>,
    form: Read<ResultForm>,
    profile: Read<At<String>>,
    is_unclear: bool,
}

impl Default for SurfaceOptions {
    fn default() -> Self {
        Self {
            mode: Surface::default(),
            small: SMALL,
            read_tool: ReadTool::default(),
            show: Shown::default(),
            clients: BTreeMap::new(),
            of_profiles: None,
            is_unreadable: false,
        }
    }
}

impl SurfaceOptions {
    /// The options as written, with defaults for the others.
    pub(super) fn of(
        read: Read<SurfaceEntry>,
        show: Read<Shown>,
        clients: Read<Vec<(String, ClientEntry)>>,
        report: &Report,
    ) -> Self {
        let default = Self::default();
        let text = |surface: Surface| surface.text().to_owned();
        let mut options = match report.value(read, text(default.mode)).flatten() {
            None => default,
            Some(written) => Self {
                mode: setting(written.mode, default.mode, text, report),
                small: simple_setting(written.small, default.small, report),
                read_tool: setting(written.read_tool, default.read_tool, ReadTool::text, report),
                ..default
            },
        };
        options.show = (report
            .value(show, "no tool is listed next to the three")
            .flatten())
        .unwrap_or_default();
        options.is_unreadable = clients.is_err();
        let clients = clients.unwrap_or_else(|fault| {
            let consequence =
                "no client has settings of its own, and with `profiles` every session is refused";
            report.refuse(fault, consequence);
            None
        });
        for (name, entry) in clients.unwrap_or_default() {
            let own = ClientOptions {
                surface: (report.value(entry.surface, text(options.mode))).flatten(),
                show: (report.value(entry.show, "the `show` of all clients")).flatten(),
                form: (report.value(entry.form, "`results.form`")).flatten(),
                profile: (entry.profile.unwrap_or_else(|fault| {
                    // The client must not get more than the profile would show.
                    let unreadable = At::new(fault.offset, UNREADABLE.to_owned());
                    report.refuse(fault, "sessions of the client are refused");
                    Some(unreadable)
                }))
                .map(|profile| profile.value),
                is_unclear: entry.is_unclear,
            };
            options.clients.insert(name, own);
        }
        options
    }

    /// The surface of the client with this name (`clientInfo`), and the setting that decides it.
    #[must_use]
    pub(crate) fn of_client(
        &self,
        client: &str,
        request: SurfaceRequest,
    ) -> (Surface, SurfaceSource) {
        let own = || self.own(client, |own| own.surface);
        None.or_else(|| Some((request.flag?, SurfaceSource::Flag)))
            .or_else(|| Some((self.of_profiles?, SurfaceSource::Profile)))
            .or_else(|| Some((own()?, SurfaceSource::Client)))
            .or_else(|| Some((request.http?, SurfaceSource::Http)))
            .unwrap_or((self.mode, SurfaceSource::File))
    }

    /// The tools that the client with this name sees next to the meta-tools.
    #[must_use]
    pub(crate) fn shown_to(&self, client: &str) -> Shown {
        let own = self.own(client, |own| own.show.clone());
        own.unwrap_or_else(|| self.show.clone())
    }

    /// The form of results that the entry of the client with this name asks for.
    #[must_use]
    pub(crate) fn form_for(&self, client: &str) -> Option<ResultForm> {
        self.own(client, |own| own.form)
    }

    /// The profiles of the client with this name, by all entries that name it.
    pub(super) fn profiles_of(&self, client: &str) -> impl Iterator<Item = &str> {
        let entries = self.clients.iter();
        let own = entries.filter(move |(name, _)| is_client(name, client));
        own.filter_map(|(_, own)| own.profile.as_deref())
    }

    /// Whether it is unknown which profile the client with this name has.
    pub(super) fn is_unclear(&self, client: &str) -> bool {
        let mut clients = self.clients.iter();
        clients.any(|(name, own)| own.is_unclear && is_client(name, client))
    }

    /// A setting of the first entry that names `client` and has it.
    fn own<T>(&self, client: &str, of: impl Fn(&ClientOptions) -> Option<T>) -> Option<T> {
        let mut clients = self.clients.iter();
        clients.find_map(|(name, own)| of(own).filter(|_| is_client(name, client)))
    }
}

/// The names by which clients introduce themselves, by the names that `mcpzip connect` uses.
const INTRODUCED: &[(&str, &[&str])] = &[
    ("claude-code", &["claude-code"]),
    ("claude-desktop", &["claude-ai"]),
    ("cursor", &["cursor-vscode"]),
    ("vscode", &["Visual Studio Code"]),
    ("codex", &["codex-mcp-client"]),
    ("gemini-cli", &["gemini-cli-mcp-client"]),
    ("opencode", &["opencode"]),
    ("copilot-cli", &["copilot-cli", "github-copilot-developer"]),
    ("goose", &["goose"]),
    ("zed", &["Zed"]),
    ("chatgpt", &["openai-mcp"]),
];

/// Whether a key of `clients` names the client that introduces itself as `introduced`.
#[must_use]
pub(crate) fn is_client(key: &str, introduced: &str) -> bool {
    if key.eq_ignore_ascii_case(introduced) {
        return true;
    }
    let known = INTRODUCED
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(key));
    known.is_some_and(|(_, names)| {
        names.iter().any(|name| {
            // Newer versions of Gemini CLI append the server's name.
            introduced.eq_ignore_ascii_case(name)
                || *name == "gemini-cli-mcp-client" && introduced.starts_with(name)
        })
    })
}

/// The name by which the client with this key of `clients` introduces itself; others are names of that kind already.
#[must_use]
pub(crate) fn introduced(key: &str) -> &str {
    let known = INTRODUCED
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(key));
    known.map_or(key, |(_, names)| names[0])
}

/// Whether a client is known that introduces itself like this.
#[must_use]
pub(crate) fn is_known_client(introduced: &str) -> bool {
    let mut keys = INTRODUCED.iter().map(|(key, _)| key);
    keys.any(|key| is_client(key, introduced))
}

/// Reads `surface`: a word stands for an object with that `mode`.
pub(super) fn surface(field: &Field<'_>) -> Result<SurfaceEntry, At<EntryError>> {
    match field.word() {
        None => SurfaceEntry::read(field),
        Some(word) => {
            let mode = Surface::parse(word).ok_or_else(|| field.wrong(SURFACE_OBJECT_EXPECTED))?;
            Ok(SurfaceEntry {
                mode: Ok(Some(mode)),
                small: Ok(None),
                read_tool: Ok(None),
            })
        }
    }
}

/// Reads `clients`.
pub(super) fn clients(field: &Field<'_>) -> Result<Vec<(String, ClientEntry)>, At<EntryError>> {
    field.members(|name, field| {
        let scope = format!("clients.{name}.");
        let object = field.object()?;
        let mut known = BTreeSet::new();
        let is_unclear = object.properties.iter().any(|property| {
            let key = property.name.as_str();
            let is_null = matches!(property.value, Value::NullKeyword(_));
            is_null || !known.insert(key) || keys::CLIENT.iter().all(|one| one.name != key)
        });
        let mut members = Members::new(object, keys::CLIENT, &scope, "", field.report());
        let entry = ClientEntry {
            surface: members.read("surface", surface_name),
            show: members.read("show", shown),
            form: members.read("form", result_form),
            profile: members.read("profile", Field::text),
            is_unclear,
        };
        members.finish();
        Ok((name.to_owned(), entry))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_setting_decides_the_surface() {
        let mut options = SurfaceOptions::default();
        let request = SurfaceRequest::default();
        assert_eq!(
            options.of_client("claude-code", request),
            (Surface::Tools, SurfaceSource::File)
        );
        let http = SurfaceRequest {
            http: Some(Surface::Auto),
            ..request
        };
        assert_eq!(options.of_client("x", http).1, SurfaceSource::Http);
        let own = ClientOptions {
            surface: Some(Surface::Direct),
            ..ClientOptions::default()
        };
        options.clients.insert("Codex".to_owned(), own);
        assert_eq!(
            options.of_client("codex-mcp-client", http),
            (Surface::Direct, SurfaceSource::Client)
        );
        assert_eq!(
            options.of_client("codex-other", http).1,
            SurfaceSource::Http
        );
        let flag = SurfaceRequest {
            flag: Some(Surface::Tools),
            ..http
        };
        assert_eq!(
            options.of_client("codex-mcp-client", flag),
            (Surface::Tools, SurfaceSource::Flag)
        );
    }

    #[test]
    fn a_client_is_named_as_it_introduces_itself_or_as_connect_calls_it() {
        assert!(is_client("gemini-cli", "gemini-cli-mcp-client-zip"));
        assert!(is_client("vscode", "Visual Studio Code"));
        assert!(is_client("my-agent", "My-Agent"));
        assert!(!is_client("claude-code", "claude-code-2"));
    }
}
