//! `mcpzip add`: writes a server's entry to the configuration and connects to the server once.

use std::cell::RefCell;
use std::io::Read as _;
use std::path::{Path, is_separator};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::completions;
use super::diagnostics::Exit;
use super::migrate::{diff_lines, older_note};
use super::output::{Output, faint, good, strong};
use super::printable::printable;
use super::setup::{refusal_hint, warnings_about};
use super::trial::Trial;
use crate::clients::{BeforeChange, Journal, starts_mcpzip};
use crate::config::find_program;
use crate::config::{
    Change, Config, Document, EntryText, Environment, PackageRun, Paths, Refusal, Transport, Trust,
    change_servers, kept_restrictions, restrictions, secret_arguments, secret_parameters,
};
use crate::files;
use crate::sandbox::{Named, Proposal, known};
use crate::secret::is_secret_name;
use crate::sources::described_servers;
use crate::text::variable_name;
use crate::tool::ServerName;

/// Prefixes of the API keys of well-known services.
const KEY_STARTS: &[&str] = &[
    "sk-",
    "ghp_",
    "github_pat_",
    "gho_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "hf_",
];

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip add files -- npx -y @modelcontextprotocol/server-filesystem ~/work
  mcpzip add time --sandbox strict -- uvx mcp-server-time
  mcpzip add github -e 'TOKEN=${GITHUB_TOKEN}' -- github-mcp-server stdio
  mcpzip add kubectl --cli -- kubectl
  mcpzip add linear https://mcp.linear.app/mcp
  mcpzip add shop --openapi https://shop.example.com/api.json -H 'Key: ${KEY}'
  mcpzip add notes --json '{\"command\": \"notes-mcp\", \"args\": [\"stdio\"]}'
  mcpzip add weather --from-registry io.github.user/weather --set units=metric

`${VARIABLE}` is replaced when the server starts. Put it in single quotes, so that the shell does not replace it. If the server fails, the entry stays and the exit code is 4; a missing login, variable or secret does not count.")]
pub(super) struct Arguments {
    /// Name of the server
    pub(super) name: String,
    /// A URL, or a command and its arguments after `--`, or the entry as JSON; `-` reads the entry from stdin
    #[arg(value_name = "TARGET", required_unless_present_any = ["from_registry", "openapi", "graphql", "skills"])]
    target: Vec<String>,
    /// Environment variable for the command; may be given several times
    #[arg(long, short, value_name = "NAME=VALUE")]
    pub(super) env: Vec<String>,
    /// HTTP header for the URL; may be given several times
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub(super) header: Vec<String>,
    /// Transport of the server [default: detected]
    #[arg(
        long = "type",
        short = 't',
        visible_alias = "transport",
        value_name = "TYPE"
    )]
    pub(super) kind: Option<Kind>,
    /// Make tools of the command's subcommands, for a program that is not an MCP server
    #[arg(long)]
    pub(super) cli: bool,
    /// Make tools of the operations of an HTTP API, by its OpenAPI description: a URL or a file
    #[arg(long, value_name = "LOCATION")]
    pub(super) openapi: Option<String>,
    /// Make tools of the queries and mutations of a GraphQL API
    #[arg(long, value_name = "URL", conflicts_with = "openapi")]
    pub(super) graphql: Option<String>,
    /// Make tools of the skills in a folder, each with a `SKILL.md`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["openapi", "graphql"])]
    pub(super) skills: Option<String>,
    /// URL of the API, if the description is a file or on another server
    #[arg(long, value_name = "URL", requires = "openapi")]
    pub(super) base_url: Option<String>,
    /// Working directory of the command
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<String>,
    /// Sandbox of the command: `strict`, `project`, or an object with the keys of `sandbox`
    #[arg(long, value_name = "SANDBOX", add = completions::of_sandboxes())]
    pub(super) sandbox: Option<String>,
    /// Description of the server, shown to agents
    #[arg(long, value_name = "TEXT")]
    pub(super) description: Option<String>,
    /// Time limit for a call: `90s`, `2m`, or seconds
    #[arg(long, value_name = "TIME")]
    pub(super) timeout: Option<String>,
    /// Install from the registry; ID defaults to NAME
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", help_heading = "From the registry")]
    pub(super) from_registry: Option<String>,
    /// Version to install [default: the newest]
    #[arg(long, value_name = "VERSION", help_heading = "From the registry")]
    pub(super) version: Option<String>,
    /// Value of an input that the server asks for; may be given several times
    #[arg(long, value_name = "NAME=VALUE", help_heading = "From the registry")]
    pub(super) set: Vec<String>,
    /// Package or remote to use, if the server offers several
    #[arg(long = "use", value_name = "WAY", value_parser = ["npm", "pypi", "oci", "nuget", "remote"], help_heading = "From the registry")]
    pub(super) way: Option<String>,
    /// Add the server without asking
    #[arg(long, short, help_heading = "From the registry")]
    pub(super) yes: bool,
    /// Replace an existing server of this name
    #[arg(long, visible_alias = "replace")]
    pub(super) force: bool,
    /// Write the entry without connecting to the server
    #[arg(long)]
    pub(super) no_check: bool,
}

/// The transports that `--type` accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    Stdio,
    Http,
    Sse,
}

pub(super) async fn run(
    arguments: &Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    if !arguments.set.is_empty()
        || arguments.version.is_some()
        || arguments.way.is_some()
        || arguments.yes
    {
        if arguments.yes && !arguments.target.is_empty() {
            let command = arguments.target.join(" ");
            return Err(Exit::bad_usage(format!(
                "`-y` before `--` is a flag of `mcpzip add`, for the registry alone: put the command after `--`, with all of its \
                 flags, as in `mcpzip add {} -- {command} …`",
                arguments.name
            )));
        }
        return Err(Exit::bad_usage(
            "`--set`, `--version`, `--use` and `--yes` go with `--from-registry`",
        ));
    }
    let (entry, hints) = arguments.entry(environment)?;
    let addition = Addition {
        name: &arguments.name,
        entry,
        force: arguments.force,
        check: !arguments.no_check,
        hints,
    };
    addition.carry_out(paths, environment, output).await
}

/// An entry to be written to the configuration.
pub(super) struct Addition<'a> {
    pub(super) name: &'a str,
    /// The entry as JSON.
    pub(super) entry: String,
    /// Whether an existing entry of this name is replaced.
    pub(super) force: bool,
    /// Whether the server is connected to after the entry is written.
    pub(super) check: bool,
    /// Advice for the user, such as where to put a secret.
    pub(super) hints: Vec<String>,
}

impl Addition<'_> {
    /// Writes the entry, tries the server and prints the result.
    pub(super) async fn carry_out(
        self,
        paths: &Paths,
        environment: &Environment,
        output: &Output,
    ) -> Result<(), Exit> {
        let (name, file) = (self.name, paths.config_file.as_path());
        let older = older_note(file, environment);
        if starts_mcpzip(&self.entry) {
            return Err(Exit::failed(format!(
                "`{name}` would be mcpzip itself, which would start itself without end; `mcpzip connect CLIENT` adds mcpzip to a client"
            )));
        }
        let change = if self.force {
            Change::Put(self.entry.clone())
        } else {
            Change::Add(self.entry.clone())
        };
        let changes = [(name.to_owned(), change)];
        let whole = BeforeChange::of(file);
        let before = RefCell::new(Vec::new());
        let kept = RefCell::new(Vec::new());
        let new = Document::parse(&self.entry).ok();
        let changed = change_servers(
            file,
            &changes,
            environment,
            true,
            |change, name, document| {
                let is_taken = document.keys(&["mcpServers"]).iter().any(|key| key == name);
                *before.borrow_mut() = restrictions(document, name);
                let stays = |new| kept_restrictions(document, name, new);
                *kept.borrow_mut() = new.as_ref().map(stays).unwrap_or_default();
                match change {
                    Change::Add(_) if is_taken => Err(Refusal::NotPermitted(
                        "there is a server of this name already; `--force` replaces it, and `mcpzip undo` puts it back".into(),
                    )),
                    _ => Ok(()),
                }
            },
        )?;
        let done = if changed.was_there[0] {
            "replaced"
        } else {
            "added"
        };
        if !output.is_json() {
            output.line(format!(
                "{} {done} {}  {}",
                good("✓"),
                strong(name),
                faint(file.display())
            ));
        }
        let replaced = match changed.was_there[0] {
            true => whole.edit_of(name, file),
            false => None,
        };
        let run = replaced.as_ref().map(|replaced| {
            let journal = Journal::new(&paths.state_dir);
            replaced.record(&format!("add {name} --force"), &journal)
        });
        let run = run.transpose().map_err(anyhow::Error::from)?;
        if let (Some(replaced), Some(run)) = (&replaced, &run)
            && !output.is_json()
        {
            diff_lines(&replaced.diff(), output);
            output.line(faint(format!(
                "`mcpzip undo` puts the replaced entry back (run {run})"
            )));
        }
        let mut hints = self.hints;
        let before = before.into_inner();
        if let Some(new) = &new {
            let kept = kept.into_inner();
            hints.extend(kept_hint(name, &kept, file));
            hints.extend(gone_hint(&before, &kept, new));
            hints.extend(replaced_hint(&before, new));
        }
        let was_off = before.iter().any(|it| *it == ("disabled", "true".into()));
        let mut servers = changed.config.servers.iter();
        let entry = servers.find(|(it, _)| it.as_str() == name);
        let entry = entry.map(|(_, entry)| entry);
        if was_off && entry.is_some_and(|entry| !entry.disabled) {
            hints.extend(refusal_hint(name, paths));
        }
        if let Some(Transport::Stdio(stdio)) = entry.map(|entry| &entry.transport) {
            hints.extend(stdio.kept_data().map(|data| data.to_string()));
        }
        hints.extend(changed.config.warnings_about(name));
        hints.extend(approval_hint(name, &changed.config));
        hints.extend(warnings_about(name, paths, environment));
        if !self.check {
            let mut faults = changed.config.faults.iter();
            let fault = faults.find(|fault| fault.name == name);
            hints.extend(fault.map(|fault| fault.fault.to_string()));
        }
        hints.extend(older);
        hints
            .iter()
            .for_each(|hint| output.note(&format!("hint: {hint}")));
        let trial = if self.check {
            Some(Trial::run(name, paths, environment, output).await?)
        } else {
            None
        };
        if output.is_json() {
            let check = trial.as_ref().map(Trial::to_json);
            output.json(&json!({ "server": name, "file": file.display().to_string(), "change": done, "undo": run, "check": check, "hints": hints }));
        } else if let Some(trial) = &trial {
            trial.show(name, output);
        }
        match trial.filter(Trial::is_failure) {
            // The result of the trial is printed above.
            Some(_) if !output.is_json() => Err(Exit::unavailable("").printed()),
            Some(_) => Err(Exit::unavailable(format!(
                "server `{name}` is {done}, but does not work yet"
            ))),
            None => Ok(()),
        }
    }
}

/// Tells which restrictions of the replaced entry stay.
fn kept_hint(name: &str, kept: &[(&'static str, String)], file: &Path) -> Option<String> {
    let keys: Vec<&str> = kept.iter().map(|(key, _)| *key).collect();
    let (apply, them) = match keys[..] {
        [] => return None,
        [_] => ("applies; remove it", "it"),
        _ => ("apply; remove them", "them"),
    };
    Some(format!(
        "`{}` of the replaced entry still {apply} in {} if `{name}` no longer needs {them}",
        keys.join("`, `"),
        file.display(),
    ))
}

/// Tells which restrictions of the replaced entry cannot apply to the new one.
fn gone_hint(
    before: &[(&'static str, String)],
    kept: &[(&'static str, String)],
    new: &Document,
) -> Option<String> {
    let is_gone = |it: &&(&'static str, String)| !kept.contains(it) && new.get(&[it.0]).is_none();
    let gone: Vec<&str> = before.iter().filter(is_gone).map(|(key, _)| *key).collect();
    let (are, they) = match gone[..] {
        [] => return None,
        [_] => ("is", "it does"),
        _ => ("are", "they do"),
    };
    Some(format!(
        "`{}` of the replaced entry {are} gone, because {they} not apply to the new one",
        gone.join("`, `")
    ))
}

/// Tells which restrictions of the replaced entry the new one has in another form.
fn replaced_hint(before: &[(&'static str, String)], new: &Document) -> Option<String> {
    let is_replaced = |(key, value): &&(&'static str, String)| {
        let is_one = !matches!(*key, "placement") && value != "false";
        is_one && new.get(&[*key]).is_some_and(|now| now != *value)
    };
    let replaced = before.iter().filter(is_replaced);
    let shown: Vec<String> = replaced.map(shown_restriction).collect();
    (!shown.is_empty()).then(|| {
        format!(
            "the new entry has no longer {} of the replaced one, but its own; `mcpzip undo` puts the replaced entry back",
            shown.join(" and ")
        )
    })
}

/// A restriction in a hint: its key, and its value unless that may have credentials.
pub(super) fn shown_restriction((key, value): &(&'static str, String)) -> String {
    match *key {
        "base_url" | "identity" | "oauth" | "proxy" => format!("`{key}`"),
        _ => format!("`{key}` ({})", printable(value)),
    }
}

/// Whether a target is an entry in JSON.
fn is_json(target: &str) -> bool {
    target.trim_start().starts_with('{')
}

/// The entry on stdin, which other users cannot read as they can a command line.
fn entry_of_stdin() -> Result<String, Exit> {
    const LARGEST: u64 = 1024 * 1024;
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(LARGEST)
        .read_to_string(&mut text)?;
    match is_json(&text) {
        true => Ok(text),
        false => Err(Exit::bad_usage(
            "stdin has no entry in JSON, such as `{\"url\": \"https://…\"}`",
        )),
    }
}

/// A hint if tools of the server `name` wait for a person.
pub(super) fn approval_hint(name: &str, config: &Config) -> Option<String> {
    let server = ServerName::new(name).ok()?;
    let is_held = config.servers.get(&server)?.trust == Trust::Quarantine;
    is_held.then(|| {
        format!("agents get its tools once you have approved them: `mcpzip approve {name}`")
    })
}

impl Arguments {
    /// Whether `--json` precedes an entry. Otherwise it selects the output format.
    pub(super) fn has_json(&self) -> bool {
        self.target.first().is_some_and(|first| is_json(first))
    }

    /// Rejects words that were meant for the option before them, such as the second of `--env A=1 B=2`.
    ///
    /// # Errors
    /// When there is such a word, or a target in addition to `--from-registry`.
    pub(super) fn check_target(&self) -> Result<(), Exit> {
        let is_pair = |word: &&String| {
            let name = word.split_once('=').map(|(name, _)| name);
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
            name.is_some_and(|name| !name.is_empty() && name.chars().all(legal))
        };
        let words: Vec<&String> = self.target.iter().take_while(is_pair).collect();
        let option = match self.from_registry {
            Some(_) => "--set",
            None => "--env",
        };
        // The message omits the values, because they may be secrets.
        if let Some((name, _)) = words.first().and_then(|word| word.split_once('=')) {
            return Err(Exit::bad_usage(format!(
                "`{name}=…` stands where the command or URL belongs; each value needs its own `{option}`: write `{option} {name}=…`"
            )));
        }
        match self.from_registry.is_some() && !self.target.is_empty() {
            true => Err(Exit::bad_usage(
                "give either `--from-registry` or a command or URL, not both",
            )),
            false => Ok(()),
        }
    }

    /// The entry as JSON, and hints about secrets in it.
    fn entry(&self, environment: &Environment) -> Result<(String, Vec<String>), Exit> {
        if let Some(folder) = &self.skills {
            return self.skills(folder);
        }
        if let Some(location) = self.openapi.as_ref().or(self.graphql.as_ref()) {
            return self.interface(location);
        }
        let (first, rest) = self.target.split_first().expect("clap asks for one");
        let read;
        let first = match first.as_str() {
            "-" => {
                read = entry_of_stdin()?;
                &read
            }
            _ => first,
        };
        if is_json(first) {
            if self.has_own_members() || !rest.is_empty() {
                return Err(Exit::bad_usage(
                    "an entry in JSON has all settings; remove the other options",
                ));
            }
            return Ok((given_entry(first)?, Vec::new()));
        }
        let is_url = first.contains("://");
        let mut entry = EntryText::default();
        let mut hints = Vec::new();
        if is_url {
            let scheme = first.split("://").next().unwrap_or_default();
            let is_web = ["http", "https"]
                .iter()
                .any(|known| scheme.eq_ignore_ascii_case(known));
            if !is_web && !scheme.contains('$') {
                return Err(Exit::bad_usage(format!(
                    "`url` must begin with `http://` or `https://`, not with `{}://`",
                    printable(scheme)
                )));
            }
            if !rest.is_empty() {
                return Err(Exit::bad_usage(format!(
                    "`{}`: a URL takes no arguments",
                    rest.join(" ")
                )));
            }
            if !self.env.is_empty()
                || self.cwd.is_some()
                || self.cli
                || self.kind == Some(Kind::Stdio)
            {
                return Err(Exit::bad_usage(
                    "`--env`, `--cwd`, `--cli` and `--type stdio` are for commands, not for URLs",
                ));
            }
            entry.text("type", self.kind.map(Kind::word));
            entry.text("url", Some(first));
            self.add_headers(&mut entry, &mut hints)?;
            hints.extend(secret_in_url(first));
        } else {
            if !self.header.is_empty() || matches!(self.kind, Some(Kind::Http | Kind::Sse)) {
                return Err(Exit::bad_usage(
                    "`--header` and `--type http` or `sse` are for URLs, not for commands",
                ));
            }
            check_program(first, environment)?;
            entry.text("type", self.kind.map(Kind::word));
            entry.text("command", Some(&absolute(first)?));
            entry.texts("args", rest);
            if let Some(path) = rest
                .iter()
                .find(|argument| is_relative(argument))
                .filter(|_| self.cwd.is_none())
            {
                hints.push(format!(
                    "`{path}` is relative to the directory in which each client starts; write the whole path, or set `--cwd`, if one directory is meant"
                ));
            }
            let env = pairs(&self.env, '=', "--env NAME=VALUE")?;
            entry.map("env", &env);
            entry.text("cwd", self.absolute_cwd()?.as_deref());
            if self.cli {
                entry.json("cli", json!(true).to_string());
            }
            let cwd = self.absolute_cwd()?;
            hints.extend(self.sandbox_hint(first, rest, (&env, cwd.as_deref()), environment));
            hints.extend(env.iter().filter(|(name, value)| is_plain_secret(name, value)).map(|(name, _)| {
                format!("the value of {name} is in the file as you typed it. To keep it out, run `mcpzip secret set {name}`, and use --env '{name}=${{keyring:{name}}}'")
            }));
            let has_secret = secret_arguments("", rest)
                .iter()
                .any(|secret| is_plain(secret.expose()))
                || rest.iter().any(|argument| has_key_start(argument));
            if has_secret {
                hints.push("the arguments contain a secret, which is in the file as you typed it. Use `${VARIABLE}` to keep it out".to_owned());
            }
        }
        self.common(&mut entry);
        Ok((entry.to_json(), hints))
    }

    /// The entry of an HTTP interface, and hints.
    fn interface(&self, location: &str) -> Result<(String, Vec<String>), Exit> {
        if let Some(target) = self.target.first() {
            return Err(Exit::bad_usage(format!(
                "`{target}`: `--openapi` and `--graphql` take no command or other URL; `--base-url` is the URL of the API"
            )));
        }
        if !self.env.is_empty() || self.cwd.is_some() || self.cli || self.kind.is_some() {
            return Err(Exit::bad_usage(
                "`--env`, `--cwd`, `--cli` and `--type` are not for `--openapi` and `--graphql`",
            ));
        }
        let (mut entry, mut hints) = (EntryText::default(), Vec::new());
        if self.graphql.is_some() || location.contains("://") {
            let key = if self.graphql.is_some() {
                "graphql"
            } else {
                "openapi"
            };
            entry.text(key, Some(location));
            hints.extend(secret_in_url(location));
        } else {
            let path = absolute_directory(location)?;
            if self.base_url.is_none() {
                return Err(Exit::failed(without_base_url(&path)));
            }
            entry.text("openapi", Some(&path));
        }
        entry.text("base_url", self.base_url.as_deref());
        hints.extend(self.base_url.as_deref().and_then(secret_in_url));
        self.add_headers(&mut entry, &mut hints)?;
        self.common(&mut entry);
        Ok((entry.to_json(), hints))
    }

    /// The entry of a folder of skills.
    fn skills(&self, folder: &str) -> Result<(String, Vec<String>), Exit> {
        let has_others = !self.target.is_empty() || !self.env.is_empty() || !self.header.is_empty();
        if has_others || self.cwd.is_some() || self.cli || self.kind.is_some() {
            return Err(Exit::bad_usage(
                "`--skills` takes a folder and nothing of a command or URL",
            ));
        }
        let mut entry = EntryText::default();
        entry.text("skills", Some(&absolute_directory(folder)?));
        self.common(&mut entry);
        Ok((entry.to_json(), Vec::new()))
    }

    fn add_headers(&self, entry: &mut EntryText, hints: &mut Vec<String>) -> Result<(), Exit> {
        let headers = pairs(&self.header, ':', "--header 'NAME: VALUE'")?;
        entry.map("headers", &headers);
        hints.extend(headers.iter().filter(|(name, value)| is_plain_secret(name, value)).map(|(name, value)| {
            let variable = variable_name(&format!("{} {name}", self.name));
            // A word such as `Bearer` before the secret is none.
            let scheme = value.split_once(' ').map(|(scheme, _)| scheme);
            let scheme = scheme.filter(|scheme| scheme.chars().all(char::is_alphabetic));
            let (after, scheme) = match scheme {
                Some(scheme) => (format!(" with what follows `{scheme}`"), format!("{scheme} ")),
                None => (String::new(), String::new()),
            };
            format!("the value of the header {name} is in the file as you typed it. To keep it out, run `mcpzip secret set {variable}`{after}, and use --header '{name}: {scheme}${{keyring:{variable}}}'")
        }));
        Ok(())
    }

    /// The absolute path of `--cwd`.
    pub(super) fn absolute_cwd(&self) -> Result<Option<String>, Exit> {
        self.cwd.as_deref().map(absolute_directory).transpose()
    }

    /// Adds the members that both kinds of server share: description and timeout.
    pub(super) fn common(&self, entry: &mut EntryText) {
        if let Some(sandbox) = &self.sandbox {
            let sandbox = match sandbox.trim_start().starts_with('{') {
                true => sandbox.clone(),
                false => json!(sandbox).to_string(),
            };
            entry.json("sandbox", sandbox);
        }
        entry.text("description", self.description.as_deref());
        if let Some(timeout) = &self.timeout {
            // A number of seconds is written as a JSON number.
            entry.json(
                "timeout",
                timeout
                    .parse::<u64>()
                    .map_or_else(|_| json!(timeout), |seconds| json!(seconds))
                    .to_string(),
            );
        }
    }

    /// A hint that the tools of a package need the network, or files that the entry names, which its sandbox does not have.
    fn sandbox_hint(
        &self,
        command: &str,
        args: &[String],
        (env, cwd): (&[(String, String)], Option<&str>),
        environment: &Environment,
    ) -> Option<String> {
        let sandbox = self.sandbox.as_deref()?;
        let package = PackageRun::of(command, args)?;
        let known = known(&package)?;
        let values: Vec<&str> = env.iter().map(|(_, value)| value.as_str()).collect();
        let named = Named {
            args: &package.args,
            values: &values,
            cwd: cwd.map(Path::new),
        };
        let home = environment.home();
        let proposal = known.proposal(named, home.as_deref(), &[])?;
        let missing = missing_in(sandbox, &proposal, home.as_deref());
        (!missing.is_empty()).then(|| {
            format!(
                "the tools of `{}` need {}, which its sandbox does not have; `--sandbox '{proposal}'` gives it",
                known.package,
                missing.join(" and ")
            )
        })
    }

    fn has_own_members(&self) -> bool {
        let has_any = !self.env.is_empty() || !self.header.is_empty();
        has_any
            || self.kind.is_some()
            || self.cli
            || self.cwd.is_some()
            || self.sandbox.is_some()
            || self.openapi.is_some()
            || self.graphql.is_some()
            || self.skills.is_some()
            || self.description.is_some()
            || self.timeout.is_some()
    }
}

/// The parts of `proposal` that the written `sandbox` does not open.
fn missing_in(sandbox: &str, proposal: &Proposal, home: Option<&Path>) -> Vec<String> {
    let written = serde_json::from_str(sandbox).unwrap_or(Value::Null);
    let preset = written["preset"].as_str().unwrap_or(sandbox);
    let lists = ["read", "write"].into_iter();
    let opened = lists.flat_map(|key| written[key].as_array().into_iter().flatten());
    let opened = opened.filter_map(|path| {
        let path = path.as_str()?;
        Some(match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => std::path::absolute(path).ok()?,
        })
    });
    let mut opened: Vec<std::path::PathBuf> = opened.collect();
    let mut missing = Vec::new();
    if proposal.has_network && written["network"] != "all" {
        missing.push("the network".to_owned());
    }
    if preset == "project" {
        opened.extend(std::path::absolute("."));
    } else if proposal.has_project {
        missing.push("the directory of the session".to_owned());
    }
    let is_closed = |file: &&std::path::PathBuf| !opened.iter().any(|path| file.starts_with(path));
    let files = proposal.files().filter(is_closed);
    missing.extend(files.map(|file| format!("`{}`", file.display())));
    missing
}

/// The advice to name the URL of the interface that a file describes, with the URLs that it names.
fn without_base_url(path: &str) -> String {
    let advice = "a description in a file does not decide where requests and credentials go; name the URL of the API with `--base-url`";
    let bytes = files::read_regular(Path::new(path), 64 * 1024 * 1024);
    match bytes.map(|bytes| described_servers(&bytes)) {
        Err(error) => format!("{path} cannot be read: {error}"),
        Ok(Err(reason)) => format!("{path} cannot be used: {reason}"),
        Ok(Ok(servers)) => match servers.iter().find(|url| url.contains("://")) {
            Some(url) => format!("{advice}. It says {}", printable(url)),
            None => advice.to_owned(),
        },
    }
}

/// A hint if a URL has a secret in it.
fn secret_in_url(url: &str) -> Option<String> {
    let secrets = secret_parameters(url);
    let is_plain_there = secrets.iter().any(|secret| is_plain(secret.expose()));
    is_plain_there.then(|| {
        "the URL contains a secret, which is in the file as you typed it. Use `${VARIABLE}` to keep it out"
            .to_owned()
    })
}

/// Whether an argument is a path relative to the working directory. A name without `./` is one if it looks like a path and is there.
fn is_relative(argument: &str) -> bool {
    let path = Path::new(argument);
    let looks_like_path = || argument.contains('/') || path.extension().is_some();
    matches!(argument, "." | "..")
        || argument.starts_with("./")
        || argument.starts_with("../")
        || (path.is_relative() && looks_like_path() && path.exists())
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

/// Takes the entry out of `text`, which may also be a whole `mcpServers` object copied from a README.
fn given_entry(text: &str) -> Result<String, Exit> {
    let document = Document::parse(text)
        .map_err(|error| Exit::failed(format!("the entry is not JSON: {error}")))?;
    let whole = |path: &[&str]| document.get(path).unwrap_or_default();
    match document.keys(&["mcpServers"]).as_slice() {
        [] => Ok(text.to_owned()),
        [one] => Ok(whole(&["mcpServers", one])),
        _ => Err(Exit::failed(
            "there are several servers in `mcpServers`; add one at a time",
        )),
    }
}

/// Splits `NAME=VALUE` or `NAME: VALUE` pairs. A later pair replaces an earlier one of the same name.
pub(super) fn pairs(
    written: &[String],
    separator: char,
    form: &str,
) -> Result<Vec<(String, String)>, Exit> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for text in written {
        let (name, value) = text
            .split_once(separator)
            .map(|(name, value)| {
                (
                    name.trim(),
                    if separator == ':' {
                        value.trim()
                    } else {
                        value
                    },
                )
            })
            .filter(|(name, _)| !name.is_empty())
            // The message omits the text, because a pair without a name may be a secret.
            .ok_or_else(|| Exit::bad_usage(format!("a value has no name; write {form}")))?;
        match pairs.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = value.to_owned(),
            None => pairs.push((name.to_owned(), value.to_owned())),
        }
    }
    Ok(pairs)
}

/// Rejects a URL without its scheme, such as `mcp.linear.app/mcp`, which would be a program of that name.
fn check_program(program: &str, environment: &Environment) -> Result<(), Exit> {
    let host = program.split_once('/').map_or(program, |(host, _)| host);
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && is_number(port) => (host, Some(port)),
        _ => (host, None),
    };
    let is_there = |program: &str| {
        let path = environment.get("PATH").unwrap_or_default();
        Path::new(program).exists() || find_program(program, path, environment).is_some()
    };
    if let Some((first, _)) = program.trim().split_once(char::is_whitespace)
        && !is_there(program)
    {
        return Err(Exit::bad_usage(format!(
            "`{program}` is a whole command line in quotes; write its words without them, after `--`: `mcpzip add NAME -- {first} …`"
        )));
    }
    // The last part of a host is a word, that of `python3.12` is not.
    let is_word = |last: &str| !last.is_empty() && last.chars().all(char::is_alphabetic);
    let last = host.rsplit_once('.').map(|(_, last)| last);
    let is_host = port.is_some() || host == "localhost" || last.is_some_and(is_word);
    if !is_host || host.starts_with(['.', '~', '$']) || is_there(program) {
        return Ok(());
    }
    let scheme = match is_here(host) {
        true => "http",
        false => "https",
    };
    Err(Exit::bad_usage(format!(
        "there is no program `{program}`; if it is a URL, write `{scheme}://{program}`"
    )))
}

/// Whether a host is this machine, whose servers seldom have a certificate.
fn is_here(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let address = address.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Makes a program's path absolute. A relative path means the user's directory here, but the file's directory in the
/// configuration.
fn absolute(program: &str) -> Result<String, Exit> {
    if program.contains(is_separator) {
        absolute_directory(program)
    } else {
        Ok(program.to_owned())
    }
}

fn absolute_directory(path: &str) -> Result<String, Exit> {
    if path.starts_with('~') || path.starts_with("${") {
        return Ok(path.to_owned());
    }
    let path: std::path::PathBuf = std::path::absolute(Path::new(path))?.components().collect();
    Ok(path.to_string_lossy().into_owned())
}

fn is_plain_secret(name: &str, value: &str) -> bool {
    is_plain(value) && (is_secret_name(name) || has_key_start(value))
}

fn is_plain(value: &str) -> bool {
    !value.is_empty() && !value.contains("${")
}

fn has_key_start(value: &str) -> bool {
    value.len() > 12 && KEY_STARTS.iter().any(|start| value.starts_with(start))
}
