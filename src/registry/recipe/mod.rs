//! Converts a registry's data on a server to an entry of the configuration.
//!
//! The registry's values are literal: a `${` in them is escaped, because otherwise an author of a registry entry could
//! have the user's variables sent to it. The program is one of a few package runners, never one that the registry
//! names. Its package is checked to be a name, so that it cannot be an option, and only options on a list may precede
//! it.

mod check;
mod fill;
mod input;
mod runner;

use crate::config::EntryText;
use crate::registry::wire::{self, Argument, Detail, Package};

pub(crate) use input::{Given, Input};

use fill::Fill;

/// A way to run a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A package of npm, by `npx`.
    Npm,
    /// A package of PyPI, by `uvx`.
    Pypi,
    /// A container, by `docker`.
    Oci,
    /// A package of NuGet, by `dnx`.
    Nuget,
    /// A remote server, which is not started.
    Remote,
}

/// A server that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    /// It offers no way that `mcpzip` supports.
    #[error("mcpzip cannot run it: {0}")]
    NoWay(String),
    /// Its data do not pass the checks.
    #[error("what the registry says of it cannot be used: {0}")]
    Odd(String),
}

/// The reason that there is no entry with what was given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecipeError {
    /// An input has another value than it may have.
    #[error("`{name}` must be {expected}")]
    Input {
        /// The input.
        name: String,
        /// The values that it may have.
        expected: String,
    },
    /// An option of the package's runner that is not known to be harmless.
    #[error(
        "the registry would have `{program}` run with `{option}`, which mcpzip does not pass on; if you trust it, add it with `mcpzip add NAME -- {program} …`"
    )]
    Option {
        /// The runner.
        program: String,
        /// The option, made printable.
        option: String,
    },
}

/// One way to run one version of a server.
#[derive(Debug)]
pub(crate) struct Recipe<'a> {
    way: Way,
    source: Source<'a>,
}

#[derive(Debug)]
enum Source<'a> {
    Package(&'a Package),
    Remote(&'a wire::Remote),
}

/// An entry made from the registry's data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    kind: Option<&'static str>,
    command: Option<&'static str>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    url: Option<String>,
    headers: Vec<(String, String)>,
}

impl Way {
    /// All ways.
    pub(crate) const ALL: [Self; 5] = [Self::Npm, Self::Pypi, Self::Oci, Self::Nuget, Self::Remote];

    /// The word for this way on the command line.
    #[must_use]
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Oci => "oci",
            Self::Nuget => "nuget",
            Self::Remote => "remote",
        }
    }

    /// The way with this word.
    #[must_use]
    pub(crate) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.word() == word)
    }

    /// The programs that run it, the usual one first.
    fn runners(self) -> &'static [&'static str] {
        match self {
            Self::Npm => &["npx"],
            Self::Pypi => &["uvx"],
            Self::Oci => &["docker", "podman"],
            Self::Nuget => &["dnx"],
            Self::Remote => &[],
        }
    }

    fn of(package: &Package) -> Option<Self> {
        Self::named(&package.registry_type).filter(|way| *way != Self::Remote)
    }
}

/// The ways to use a server.
pub(super) fn ways(detail: &Detail) -> Vec<&'static str> {
    let packages = detail
        .packages
        .iter()
        .flatten()
        .filter(|package| is_stdio(package))
        .filter_map(Way::of);
    let remotes = detail.remotes.iter().flatten().map(|_| Way::Remote);
    let mut words: Vec<&'static str> = packages.chain(remotes).map(Way::word).collect();
    words.dedup();
    words
}

impl<'a> Recipe<'a> {
    pub(super) fn of(detail: &'a Detail, wanted: Option<Way>) -> Result<Self, Unusable> {
        let packages = detail.packages.iter().flatten();
        let usable = packages
            .filter(|package| is_stdio(package))
            .filter_map(|package| Some((Way::of(package)?, package)));
        let mut usable = usable.filter(|(way, _)| wanted.is_none_or(|wanted| wanted == *way));
        let recipe = match usable.next() {
            Some((way, package)) => Self {
                way,
                source: Source::Package(package),
            },
            None => {
                let of_kind = |kind: &str| {
                    detail
                        .remotes
                        .iter()
                        .flatten()
                        .find(|remote| remote.kind == kind)
                };
                let remote = of_kind("streamable-http")
                    .or_else(|| of_kind("http"))
                    .or_else(|| of_kind("sse"));
                let remote = remote.filter(|_| wanted.is_none_or(|wanted| wanted == Way::Remote));
                let remote = remote.ok_or_else(|| no_way(detail, wanted))?;
                Self {
                    way: Way::Remote,
                    source: Source::Remote(remote),
                }
            }
        };
        recipe.check()?;
        Ok(recipe)
    }

    /// The way of this recipe.
    #[must_use]
    pub(crate) fn way(&self) -> Way {
        self.way
    }

    /// The inputs for a server with the name `name`.
    #[must_use]
    pub(crate) fn inputs(&self, name: &str) -> Vec<Input> {
        let mut inputs: Vec<Input> = Vec::new();
        for (label, input, is_repeated, is_env) in self.slots() {
            let mut add = |label: &str,
                           input: &wire::Input,
                           is_required: bool,
                           is_repeated: bool,
                           is_env: bool| {
                if !label.is_empty() && !inputs.iter().any(|known| known.name == label) {
                    inputs.push(Input::new(
                        label,
                        input,
                        is_required,
                        is_repeated,
                        is_env,
                        name,
                    ));
                }
            };
            let is_required = input.is_required == Some(true);
            match &input.value {
                None => add(&label, &input, is_required, is_repeated, is_env),
                Some(value) => {
                    for (variable, inner) in input.variables.iter().flatten() {
                        if inner.value.is_none() && value.contains(&format!("{{{variable}}}")) {
                            let is_required = is_required || inner.is_required == Some(true);
                            add(variable, inner, is_required, false, false);
                        }
                    }
                }
            }
        }
        inputs
    }

    /// The entry of a server with the name `name`, with the values in `given`.
    ///
    /// # Errors
    /// When something that is given is not what it may be, or the program that runs the package would get an option that is
    /// not known to be harmless; missing inputs are left out.
    pub(crate) fn entry(&self, name: &str, given: &Given) -> Result<Entry, RecipeError> {
        let inputs = self.inputs(name);
        for input in &inputs {
            for value in given.get(&input.name).into_iter().flatten() {
                input.check(value)?;
            }
        }
        let fill = Fill {
            inputs: &inputs,
            given,
        };
        let mut entry = Entry::default();
        match &self.source {
            Source::Package(package) => {
                entry.command = Some(self.runner(package));
                entry.env =
                    fill.named(package.environment_variables.as_deref().unwrap_or_default());
                let runtime =
                    fill.arguments(package.runtime_arguments.as_deref().unwrap_or_default());
                runner::check(self.way, self.runner(package), &runtime)?;
                let own = fill.arguments(package.package_arguments.as_deref().unwrap_or_default());
                entry.args = self.command_line(package, runtime, own, &entry.env);
            }
            Source::Remote(remote) => {
                entry.kind = (remote.kind == "sse").then_some("sse");
                entry.url = fill.value(&url_input(remote));
                entry.headers = fill.named(remote.headers.as_deref().unwrap_or_default());
            }
        }
        Ok(entry)
    }

    /// All inputs: name, definition, whether it can be repeated, and whether it is an environment variable.
    fn slots(&self) -> Vec<(String, wire::Input, bool, bool)> {
        match &self.source {
            Source::Package(package) => {
                let env = package.environment_variables.iter().flatten();
                let arguments = package
                    .runtime_arguments
                    .iter()
                    .flatten()
                    .chain(package.package_arguments.iter().flatten());
                let env = env
                    .map(|variable| (variable.name.clone(), variable.input.clone(), false, true));
                let arguments = arguments
                    .filter(|argument| !is_bare(argument))
                    .map(|argument| {
                        (
                            label(argument),
                            argument.input.clone(),
                            argument.is_repeated == Some(true),
                            false,
                        )
                    });
                env.chain(arguments).collect()
            }
            Source::Remote(remote) => {
                let headers = remote.headers.iter().flatten();
                let headers =
                    headers.map(|header| (header.name.clone(), header.input.clone(), false, false));
                std::iter::once((String::new(), url_input(remote), false, false))
                    .chain(headers)
                    .collect()
            }
        }
    }

    fn runner(&self, package: &Package) -> &'static str {
        let runners = self.way.runners();
        let hinted = package
            .runtime_hint
            .as_deref()
            .and_then(|hint| runners.iter().find(|runner| **runner == hint));
        hinted
            .or(runners.first())
            .expect("every package has a runner")
    }

    fn command_line(
        &self,
        package: &Package,
        runtime: Vec<String>,
        own: Vec<String>,
        env: &[(String, String)],
    ) -> Vec<String> {
        let version = package
            .version
            .as_deref()
            .filter(|version| !version.is_empty());
        let identifier = |mark: &str| match version {
            Some(version) => format!("{}{mark}{version}", package.identifier),
            None => package.identifier.clone(),
        };
        let has = |flags: &[&str]| {
            runtime
                .iter()
                .any(|argument| flags.contains(&argument.as_str()))
        };
        let mut line: Vec<String> = Vec::new();
        let mut put = |texts: &[&str]| line.extend(texts.iter().map(|text| (*text).to_owned()));
        match self.way {
            Way::Npm => {
                // Without it the program would ask at a terminal, and there is none.
                if !has(&["-y", "--yes"]) {
                    put(&["-y"]);
                }
                line.extend(runtime);
                line.push(identifier("@"));
            }
            Way::Pypi => {
                line.extend(runtime);
                line.push(identifier("@"));
            }
            Way::Nuget => {
                line.push(identifier("@"));
                if !has(&["--yes", "-y"]) {
                    line.push("--yes".to_owned());
                }
                line.extend(runtime);
                if !own.is_empty() && own.first().is_none_or(|first| first != "--") {
                    line.push("--".to_owned());
                }
            }
            Way::Oci => {
                put(&["run"]);
                if !has(&["-i", "--interactive", "-it"]) {
                    put(&["-i"]);
                }
                if !has(&["--rm"]) {
                    put(&["--rm"]);
                }
                // The container gets only the variables that are named.
                for (name, _) in env {
                    let is_there = runtime
                        .iter()
                        .any(|text| text == name || text.starts_with(&format!("{name}=")));
                    if !is_there {
                        put(&["-e", name]);
                    }
                }
                let is_command = runtime.first().is_some_and(|first| first == "run");
                line.extend(runtime.into_iter().skip(usize::from(is_command)));
                line.push(image(package));
            }
            Way::Remote => {}
        }
        line.extend(own);
        line
    }
}

impl Entry {
    /// The members of the entry.
    #[must_use]
    pub(crate) fn text(&self) -> EntryText {
        let mut text = EntryText::default();
        text.text("type", self.kind);
        text.text("command", self.command);
        text.texts("args", &self.args);
        text.map("env", &self.env);
        text.text("url", self.url.as_deref());
        text.map("headers", &self.headers);
        text
    }

    /// The command or the URL, for display.
    #[must_use]
    pub(crate) fn target(&self) -> String {
        let command = self
            .command
            .into_iter()
            .chain(self.args.iter().map(String::as_str));
        self.url
            .clone()
            .unwrap_or_else(|| command.collect::<Vec<_>>().join(" "))
    }

    /// Its environment variables, or its headers.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = &(String, String)> {
        self.env.iter().chain(&self.headers)
    }
}

fn url_input(remote: &wire::Remote) -> wire::Input {
    wire::Input {
        value: Some(remote.url.clone()),
        is_required: Some(true),
        variables: remote.variables.clone(),
        ..wire::Input::default()
    }
}

/// The name of an argument.
fn label(argument: &Argument) -> String {
    let name = argument
        .name
        .as_deref()
        .map(|name| name.trim_start_matches('-'));
    let label = match argument.kind.as_str() {
        "named" => name.or(argument.value_hint.as_deref()),
        _ => argument.value_hint.as_deref().or(name),
    };
    label.map(wire::clean).unwrap_or_default()
}

/// Whether a named argument is a flag without a value.
fn is_bare(argument: &Argument) -> bool {
    let input = &argument.input;
    let asks = input.value.is_some()
        || input.default.is_some()
        || input.choices.is_some()
        || argument.value_hint.is_some();
    argument.kind == "named" && !asks && input.format.is_none() && input.description.is_none()
}

fn is_stdio(package: &Package) -> bool {
    package
        .transport
        .as_ref()
        .is_none_or(|transport| transport.kind == "stdio")
}

fn is_identifier(way: Way, identifier: &str) -> bool {
    let is_word = |word: &str, more: &str| {
        word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && !word.contains("..")
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let is_right = match way {
        Way::Npm => match identifier.strip_prefix('@') {
            Some(scoped) => scoped
                .split_once('/')
                .is_some_and(|(scope, name)| is_word(scope, "-._~") && is_word(name, "-._~")),
            None => is_word(identifier, "-._~"),
        },
        Way::Pypi | Way::Nuget => is_word(identifier, "-._"),
        Way::Oci => is_word(identifier, "-._/:@"),
        Way::Remote => true,
    };
    is_right && identifier.len() <= 300
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.len() <= 200
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// An image with its tag; in the older form the registry and the version are separate.
fn image(package: &Package) -> String {
    let identifier = &package.identifier;
    let has_host = identifier
        .split_once('/')
        .is_some_and(|(first, _)| first.contains(['.', ':']));
    let base = package
        .registry_base_url
        .as_deref()
        .and_then(|base| base.split_once("://"))
        .map(|(_, host)| host);
    let base = base
        .map(|host| host.trim_end_matches('/'))
        .filter(|host| !has_host && is_identifier(Way::Oci, host));
    let place = match base {
        Some(host) if host != "docker.io" => format!("{host}/{identifier}"),
        _ => identifier.clone(),
    };
    let has_tag = identifier.contains('@')
        || identifier
            .rsplit('/')
            .next()
            .is_some_and(|last| last.contains(':'));
    match package
        .version
        .as_deref()
        .filter(|version| !version.is_empty())
    {
        Some(version) if !has_tag => format!("{place}:{version}"),
        _ => place,
    }
}

fn no_way(detail: &Detail, wanted: Option<Way>) -> Unusable {
    let kinds = detail
        .packages
        .iter()
        .flatten()
        .map(|package| match is_stdio(package) {
            true => wire::clean(&package.registry_type),
            false => format!(
                "{} as a server of its own",
                wire::clean(&package.registry_type)
            ),
        });
    let kinds: Vec<String> = kinds
        .chain(detail.remotes.iter().flatten().map(|_| "remote".to_owned()))
        .collect();
    let there = if kinds.is_empty() {
        "nothing".to_owned()
    } else {
        kinds.join(", ")
    };
    Unusable::NoWay(match wanted {
        Some(way) => format!("there is no {} among what it has: {there}", way.word()),
        None => format!("what it has is {there}"),
    })
}

#[cfg(test)]
mod tests;
