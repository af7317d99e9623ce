//! The instructions for the client's model: the servers with their most telling words first.
//!
//! Some clients show only 250 characters of them until a tool is called, so there is no preamble. The words come from
//! the servers' tool names. They are stored in a file, because a handshake is answered before the catalog is read.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::catalog::{Catalog, ToolEntry};
use crate::config::Config;
use crate::files;
use crate::proxy::view::Mode;
use crate::tool::ServerName;

const LONGEST: usize = 2000;
const WORDS_PER_SERVER: usize = 4;
/// How an agent uses the meta-tools.
pub(super) const HOW: &str =
    "Search here first for any of this: search_tools finds the tool, execute_tool calls it.";

/// Common first words of tool names: they name the action, not the subject.
const VERBS: &[&str] = &[
    "add",
    "all",
    "append",
    "apply",
    "batch",
    "by",
    "calculate",
    "cancel",
    "check",
    "clear",
    "close",
    "copy",
    "count",
    "create",
    "delete",
    "describe",
    "disable",
    "do",
    "download",
    "edit",
    "enable",
    "execute",
    "export",
    "extract",
    "fetch",
    "find",
    "for",
    "from",
    "get",
    "import",
    "info",
    "insert",
    "is",
    "list",
    "load",
    "make",
    "manage",
    "move",
    "new",
    "of",
    "open",
    "post",
    "print",
    "put",
    "query",
    "read",
    "remove",
    "rename",
    "reset",
    "resolve",
    "run",
    "save",
    "search",
    "select",
    "send",
    "set",
    "show",
    "start",
    "status",
    "stop",
    "submit",
    "sync",
    "test",
    "the",
    "to",
    "toggle",
    "tool",
    "update",
    "upload",
    "upsert",
    "use",
    "validate",
    "verify",
    "view",
    "wait",
    "with",
    "write",
];

/// A few words for each server, from the names of its tools.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Topics {
    path: Option<PathBuf>,
    words: Mutex<BTreeMap<String, Vec<String>>>,
    /// Held while words are counted, so that an older catalog never has the last word.
    turn: Mutex<()>,
    /// The number of times that all servers were to be counted.
    asked: AtomicU64,
}

impl Topics {
    /// Reads the words stored in the cache directory.
    pub(in crate::proxy) fn load(cache: Option<&Path>) -> Self {
        let path = cache.map(|cache| cache.join("catalog").join("topics.json"));
        // A missing or damaged file does no harm: the next listing writes it again.
        let words = path
            .as_deref()
            .and_then(|path| serde_json::from_slice(&files::read_any(path).ok()?).ok());
        Self {
            path,
            words: Mutex::new(words.unwrap_or_default()),
            turn: Mutex::new(()),
            asked: AtomicU64::new(0),
        }
    }

    /// Announces that all servers will be counted, which takes the place of an earlier announcement.
    pub(in crate::proxy) fn take_turn(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether nothing was announced since `turn`.
    pub(in crate::proxy) fn is_latest(&self, turn: u64) -> bool {
        self.asked.load(Ordering::Relaxed) == turn
    }

    /// Updates the words of the catalog's servers, or of one of them. Takes about a microsecond per tool.
    pub(in crate::proxy) fn note(&self, catalog: &Catalog, only: Option<&ServerName>) {
        let _turn = self.turn.lock();
        let snapshot = catalog.snapshot();
        let servers = snapshot.servers();
        let servers = servers.filter(|server| only.is_none_or(|only| server.name() == only));
        let mut words: BTreeMap<_, _> = servers
            .map(|server| {
                let is_held = snapshot.hold(server.name()).everything;
                let entries = server.entries().iter();
                let shown = entries
                    .filter(|tool| !is_held && snapshot.tool(server.name(), &tool.name).is_some());
                (server.name().to_string(), topics(server.name(), shown))
            })
            .collect();
        words.remove(crate::config::BUILT_IN_SERVER);
        let (changed, json) = {
            let mut known = self.words.lock();
            let changed = words
                .iter()
                .any(|(server, words)| known.get(server) != Some(words));
            // The words of servers that are not visible here stay: another process updates them.
            known.extend(words);
            (changed, serde_json::to_vec(&*known).expect("text is JSON"))
        };
        if let Some(path) = self.path.as_deref().filter(|_| changed)
            && let Err(error) = files::replace(path, &[&json])
        {
            tracing::warn!(path = %path.display(), %error, "the servers' topics cannot be stored");
        }
    }

    /// The instructions in the handshake. Servers that wait for a person have no words: those that are stored may be of tools
    /// that are held since.
    pub(in crate::proxy) fn instructions(
        &self,
        config: &Config,
        mode: Mode,
        waiting: &[ServerName],
    ) -> String {
        let words = self.words.lock();
        let mut text = String::new();
        let servers: Vec<_> = config
            .servers
            .iter()
            .filter(|(_, entry)| !entry.disabled)
            .collect();
        for (at, (name, entry)) in servers.iter().enumerate() {
            let about = entry.description.clone().unwrap_or_else(|| {
                words
                    .get(name.as_str())
                    // They may be those of a tool that does not exist here.
                    .filter(|_| !config.has_profile_rules() && !waiting.contains(name))
                    .map(|words| words.join(", "))
                    .unwrap_or_default()
            });
            let item = if about.is_empty() {
                name.to_string()
            } else {
                format!("{name} ({about})")
            };
            if text.len() + item.len() + HOW.len() + 40 > LONGEST {
                text.push_str(&format!("and {} more", servers.len() - at));
                break;
            }
            text.push_str(&item);
            text.push_str(if at + 1 < servers.len() { "; " } else { "" });
        }
        let text = match mode {
            _ if text.is_empty() && config.stand_in.is_some() => String::new(),
            _ if text.is_empty() && !config.faults.is_empty() => {
                "No MCP server can be used: the entries in the configuration have faults, which `mcpzip doctor` shows a person."
                    .to_owned()
            }
            _ if text.is_empty() && !config.servers.is_empty() => {
                "All MCP servers are switched off.".to_owned()
            }
            _ if text.is_empty() => "No MCP server is configured yet.".to_owned(),
            Mode::MetaTools => format!("{text}. {HOW}"),
            Mode::Direct => format!("{text}."),
        };
        match config.advice() {
            Some(advice) => format!("{text} {advice}").trim_start().to_owned(),
            None => text,
        }
    }
}

/// The most frequent words in a server's tool names.
fn topics<'a>(server: &ServerName, tools: impl Iterator<Item = &'a ToolEntry>) -> Vec<String> {
    let own: Vec<String> = words(server.as_str()).collect();
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    let all = tools.flat_map(|tool| words(tool.name.as_str()));
    for (at, word) in all.enumerate() {
        if word.len() > 2 && !VERBS.contains(&word.as_str()) && !own.contains(&word) {
            counts.entry(singular(&word)).or_insert((0, at)).0 += 1;
        }
    }
    let mut ranked: Vec<_> = counts.into_iter().collect();
    ranked.sort_by_key(|(_, (count, first))| (std::cmp::Reverse(*count), *first));
    ranked
        .into_iter()
        .take(WORDS_PER_SERVER)
        .map(|(word, _)| word)
        .collect()
}

/// The singular of a word, by simple rules; a misspelled word is still understood.
fn singular(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) if stem.len() > 2 => format!("{stem}y"),
        _ => word
            .strip_suffix('s')
            .filter(|one| one.len() > 3 && !one.ends_with('s'))
            .unwrap_or(word)
            .to_owned(),
    }
}

/// The words of an identifier, in lower case.
fn words(name: &str) -> impl Iterator<Item = String> + '_ {
    let mut spaced = String::with_capacity(name.len() + 8);
    let mut lower_before = false;
    for character in name.chars() {
        if character.is_uppercase() && lower_before {
            spaced.push(' ');
        }
        lower_before = character.is_lowercase();
        spaced.extend(
            if character.is_alphanumeric() {
                character
            } else {
                ' '
            }
            .to_lowercase(),
        );
    }
    spaced
        .split_whitespace()
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Cache, Key, Listed};
    use std::sync::Arc;

    #[test]
    fn plurals_become_one() {
        for (word, one) in [
            ("issues", "issue"),
            ("entities", "entity"),
            ("class", "class"),
            ("bus", "bus"),
            ("ties", "ties"),
        ] {
            assert_eq!(singular(word), one);
        }
    }

    #[test]
    fn topics_are_what_the_tools_are_about() {
        let server = ServerName::new("github").unwrap();
        let names = [
            "create_issue",
            "list_issues",
            "getPullRequest",
            "mergePullRequest",
            "github_star",
            "x",
        ];
        let tools = names
            .iter()
            .map(|name| format!(r#"{{"name":"{name}"}}"#).into())
            .collect();
        let listed = Listed {
            tools,
            ..Listed::default()
        };
        let key = Key {
            server: server.clone(),
            configuration: String::new(),
        };
        let catalog = Catalog::new();
        catalog.update(|servers| {
            servers.insert(server, Arc::new(Cache::new(None).store(&key, &listed)));
        });
        let directory = tempfile::tempdir().unwrap();
        Topics::load(Some(directory.path())).note(&catalog, None);
        let words = Topics::load(Some(directory.path())).words.into_inner();
        assert_eq!(words["github"], ["issue", "pull", "request", "merge"]);
    }
}
