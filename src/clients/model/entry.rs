//! A server of a client in our form.

use super::super::Node;
use super::Carried;
use crate::config::{env, program_name, secret_arguments, secret_parameters};
use crate::secret::{Secret, is_reference, is_secret_name};

/// A server as `mcpzip` can use it; its texts have references in our syntax.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// The way to reach it.
    pub target: Target,
    /// Whether it is switched off.
    pub is_disabled: bool,
    /// The time limit of a call, in milliseconds.
    pub timeout: Option<u64>,
    /// The server's description.
    pub description: Option<String>,
    /// The rules in its entry about single tools.
    pub tool_rules: Vec<ToolRule>,
    /// Whether it was a program that only forwarded to a URL.
    pub is_unwrapped: bool,
    /// The differences after a migration, or the reason why it stays.
    pub notes: Vec<String>,
    /// The keys that have no counterpart and do not change the server.
    pub left_behind: Vec<String>,
}

/// The way to reach a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Target {
    /// A process.
    Local {
        /// The program.
        command: String,
        /// The arguments of the program.
        args: Vec<String>,
        /// The environment variables of the entry.
        env: Vec<(String, String)>,
        /// Its working directory.
        cwd: Option<String>,
    },
    /// A URL.
    Remote {
        /// The endpoint.
        url: String,
        /// Whether the entry says that it speaks the older HTTP+SSE.
        is_sse: bool,
        /// The headers of each request.
        headers: Vec<(String, String)>,
        /// A command that prints further headers.
        headers_helper: Option<Node>,
        /// The settings of a login, in our keys.
        oauth: Vec<(&'static str, Node)>,
        /// The connection settings `ca_file` and `proxy`.
        way: Vec<(&'static str, String)>,
    },
}

/// The command line or URL of a server, by which the policies of clients know it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::clients) enum Invocation {
    /// The words of a command line.
    Command(Vec<Node>),
    /// A URL.
    Url(String),
    /// Neither, or a form that is not known.
    Unknown,
}

impl Target {
    /// The command line or URL of the converted entry.
    pub(in crate::clients) fn invocation(&self) -> Invocation {
        match self {
            Self::Local { command, args, .. } => {
                let words = [command].into_iter().chain(args);
                Invocation::Command(words.map(Node::text).collect())
            }
            Self::Remote { url, .. } => Invocation::Url(url.clone()),
        }
    }
}

/// A part of an entry that decides which tools may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolRule {
    /// The key.
    pub key: String,
    /// Its fate after a migration.
    pub carried: Carried,
    /// The value of the key.
    pub value: String,
}

impl Entry {
    /// The entry in the form of our configuration.
    #[must_use]
    pub(crate) fn to_node(&self) -> Node {
        let pairs = |pairs: &[(String, String)]| {
            Node::map(pairs.iter().map(|(key, value)| (key, Node::text(value))))
        };
        let mut members: Vec<(&str, Node)> = Vec::new();
        match &self.target {
            Target::Local {
                command,
                args,
                env,
                cwd,
            } => {
                members.push(("command", Node::text(command)));
                if !args.is_empty() {
                    members.push(("args", Node::texts(args)));
                }
                if !env.is_empty() {
                    members.push(("env", pairs(env)));
                }
                members.extend(cwd.iter().map(|cwd| ("cwd", Node::text(cwd))));
            }
            Target::Remote {
                url,
                is_sse,
                headers,
                headers_helper,
                oauth,
                way,
            } => {
                if *is_sse {
                    members.push(("type", Node::text("sse")));
                }
                members.push(("url", Node::text(url)));
                if !headers.is_empty() {
                    members.push(("headers", pairs(headers)));
                }
                // These have the same names and meaning there.
                members.extend(
                    headers_helper
                        .iter()
                        .map(|helper| ("headersHelper", helper.clone())),
                );
                members.extend(way.iter().map(|(key, value)| (*key, Node::text(value))));
                if !oauth.is_empty() {
                    members.push(("oauth", Node::map(oauth.iter().cloned())));
                }
            }
        }
        members.extend(
            self.timeout
                .map(|time| ("timeout", Node::Text(format!("{time}ms")))),
        );
        members.extend(
            self.description
                .iter()
                .map(|text| ("description", Node::text(text))),
        );
        if self.is_disabled {
            members.push(("disabled", Node::Flag(true)));
        }
        Node::map(members)
    }

    /// The secrets in the entry.
    #[must_use]
    pub(crate) fn secrets(&self) -> Vec<Secret<String>> {
        let of_pairs = |pairs: &[(String, String)]| {
            let secret = pairs
                .iter()
                .filter(|(name, value)| is_secret_name(name) && !is_reference(value));
            let parts = secret.map(|(_, value)| {
                value
                    .rsplit_once(' ')
                    .map_or(value.as_str(), |(_, last)| last)
            });
            parts
                .filter(|value| !is_reference(value))
                .map(|value| Secret::new(value.to_owned()))
                .collect::<Vec<_>>()
        };
        match &self.target {
            Target::Local {
                command, args, env, ..
            } => [of_pairs(env), secret_arguments(command, args)].concat(),
            Target::Remote { url, headers, .. } => {
                [of_pairs(headers), secret_parameters(url)].concat()
            }
        }
    }

    /// The configuration that it names, if it starts `mcpzip`.
    #[must_use]
    pub(crate) fn config(&self) -> Option<&str> {
        let named = self.setting("--config", env::CONFIG.name);
        named.filter(|named| !named.is_empty())
    }

    /// The profile that it names, if it starts `mcpzip`.
    #[must_use]
    pub(crate) fn profile(&self) -> Option<&str> {
        self.setting("--profile", env::PROFILE.name)
    }

    /// The value of an option in its arguments, or of a variable in its place.
    fn setting(&self, option: &str, variable: &str) -> Option<&str> {
        let Target::Local { args, env, .. } = &self.target else {
            return None;
        };
        // A path may have spaces; the argument of a shell is a line of words.
        let mut words = args.iter().map(String::as_str).chain(self.words());
        let is_end = |rest: &&str| rest.is_empty() || rest.starts_with('=');
        let written = words.find_map(|word| word.strip_prefix(option).filter(is_end));
        let written = match written {
            Some("") => words.next(),
            written => written.map(|value| &value[1..]),
        };
        let set = env.iter().find(|(name, _)| name == variable);
        written.or_else(|| set.map(|(_, value)| value.as_str()))
    }

    /// Whether it starts `mcpzip`, by any command.
    #[must_use]
    pub(crate) fn is_mcpzip(&self) -> bool {
        let words = self.words();
        // A directory of that name is often an argument; a program of that name has a command after it.
        let starts_mcpzip = |pair: &[&str]| {
            let is_own = pair[1] == "serve" || pair[1].starts_with("--config");
            program_name(pair[0]) == "mcpzip" && is_own
        };
        words
            .first()
            .is_some_and(|first| is_own(program_name(first)))
            || words.windows(2).any(starts_mcpzip)
            || words.contains(&"compressed-mcp-proxy")
    }

    /// The name of the other proxy that it is, if it is one: a program in front of several servers.
    #[must_use]
    pub(crate) fn other_proxy(&self) -> Option<&str> {
        const PROXIES: &[&str] = &[
            "mcp-proxy",
            "mcp-proxy-server",
            "mcp-compressor",
            "mcphub",
            "mcp-hub",
            "metamcp",
            "mcpjungle",
            "1mcp",
            "mcp-router",
            "mcp-gateway",
            "mcp-aggregator",
            "mcpproxy",
            "lazy-mcp",
        ];
        let words = self.words();
        let is_path = |word: &str| word.starts_with(['/', '.', '~']) || word.contains('\\');
        let named = words
            .iter()
            .enumerate()
            .filter(|(at, word)| *at == 0 || !is_path(word));
        let named = named
            .map(|(_, word)| program_name(word))
            .find(|name| PROXIES.contains(name));
        let is_gateway =
            |three: &[&str]| program_name(three[0]) == "docker" && three[1..] == ["mcp", "gateway"];
        named.or_else(|| {
            words
                .windows(3)
                .any(is_gateway)
                .then_some("docker mcp gateway")
        })
    }

    fn words(&self) -> Vec<&str> {
        match &self.target {
            // A shell's argument is a command line.
            Target::Local { command, args, .. } => {
                let words = args
                    .iter()
                    .flat_map(|arg| arg.split([' ', '\'', '"', ';', '&', '|']));
                [command.as_str()]
                    .into_iter()
                    .chain(words.filter(|word| !word.is_empty()))
                    .collect()
            }
            Target::Remote { .. } => Vec::new(),
        }
    }
}

/// The names of mcpzip and of its version 0.1.
pub(in crate::clients) const OWN_PROGRAMS: [&str; 2] = ["mcpzip", "compressed-mcp-proxy"];

fn is_own(program: &str) -> bool {
    OWN_PROGRAMS.contains(&program)
}
