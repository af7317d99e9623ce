//! `mcpzip migrate`: takes over servers from clients or from another proxy's configuration.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::diagnostics::Exit;
use super::login::Accounts;
use super::output::{Output, bad, faint, good, strong};
use super::setup::{
    Machine, approvals, ask_for_approval, below_home, client_names, clients_of, scope_names,
    surface_warnings,
};
use super::twins::{self, SecretFlags};
use super::undo::interrupted;
use super::unknown::shown;
use crate::clients::{
    Carried, Choice, Client, Clients, CodexApproval, Edit, Import, Item, JournalError, Known,
    Launch, Origin, Plan, Rule, Scope, Survey, Verdict, Wanted,
};
use crate::config::{Config, Environment, older_config_file, safe_name};
use crate::secret::Masker;
use crate::text::{nearest, shell_word};
use crate::upstream::oauth::{Account, Inherited};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip migrate --dry-run
  mcpzip migrate --client claude-code --client cursor --only github --yes
  mcpzip migrate --yes --merge github --extract-secrets
  mcpzip migrate --from mcpzip-0.1
  mcpzip migrate --from mcpproxy-go --dry-run
  mcpzip migrate --from mcp-runner ./config.json")]
pub(super) struct Arguments {
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Make the changes without asking
    #[arg(long, short)]
    yes: bool,
    /// Only servers of this client; may be given several times
    #[arg(long, value_name = "CLIENT", value_parser = client_names())]
    client: Vec<String>,
    /// Leave out this client with its servers; may be given several times
    #[arg(long, value_name = "CLIENT", value_parser = client_names(), conflicts_with = "client")]
    without: Vec<String>,
    /// Only servers of this scope; may be given several times
    #[arg(long, value_name = "SCOPE", value_parser = scope_names())]
    scope: Vec<String>,
    /// Only the server of this name, even if it is a proxy; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Go on although protecting rules cannot be carried over: their servers move, and these rules stop working
    #[arg(long)]
    drop_rules: bool,
    /// Codex's approval mode for mcpzip's tools: ask before each call (`auto`), or call without asking (`approve`)
    #[arg(long, value_name = "MODE", value_parser = approvals())]
    codex_approval: Option<String>,
    #[command(flatten)]
    secrets: SecretFlags,
    /// Claude Code's file, if it is not at its usual path
    #[arg(long, value_name = "FILE", conflicts_with_all = ["client", "without"])]
    claude_config: Option<PathBuf>,
    /// Import the configuration of another proxy instead of the clients' servers
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["client", "without", "scope", "codex_approval", "claude_config"])]
    from: Option<Source>,
    /// Configuration to import, if it is not at its usual path
    #[arg(value_name = "FILE", requires = "from")]
    file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Source {
    /// mcpzip 0.1: ~/.config/compressed-mcp-proxy/config.json
    #[value(name = "mcpzip-0.1")]
    Older,
    /// avelino/mcp: ~/.config/mcp/servers.json
    Avelino,
    /// mcpproxy-go: ~/.mcpproxy/mcp_config.json
    #[value(name = "mcpproxy-go")]
    McpProxy,
    /// mcp-runner; its file must be given
    McpRunner,
}

impl Source {
    fn origin(self) -> Origin {
        match self {
            Self::Older => Origin::Older,
            Self::Avelino => Origin::Avelino,
            Self::McpProxy => Origin::McpProxy,
            Self::McpRunner => Origin::McpRunner,
        }
    }
}

impl Arguments {
    /// The absolute path of `--claude-config`.
    ///
    /// # Errors
    /// When the file does not exist, or its path cannot be made absolute.
    pub(super) fn claude_config(&self) -> Result<Option<PathBuf>, Exit> {
        let Some(path) = &self.claude_config else {
            return Ok(None);
        };
        existing(path).map(Some)
    }

    /// The options that choose clients and scopes, as they were given.
    fn selection(&self) -> String {
        let option = |name: &str, values: &[String]| -> String {
            let values = values.iter();
            values
                .map(|value| format!(" --{name} {}", shell_word(value)))
                .collect()
        };
        let file = self.claude_config.iter();
        let file: Vec<String> = file
            .map(|file| file.to_string_lossy().into_owned())
            .collect();
        [
            option("client", &self.client),
            option("without", &self.without),
            option("scope", &self.scope),
            option("claude-config", &file),
        ]
        .concat()
    }

    fn clients(&self) -> Vec<Client> {
        match self.claude_config {
            Some(_) => vec![Client::ClaudeCode],
            None => {
                let mut clients = clients_of(&self.client);
                clients.retain(|client| !self.without.iter().any(|name| name == client.name()));
                clients
            }
        }
    }
}

/// The absolute path of an existing file.
fn existing(path: &Path) -> Result<PathBuf, Exit> {
    if !path.is_file() {
        return Err(Exit::failed(format!(
            "there is no file `{}`",
            path.display()
        )));
    }
    Ok(std::path::absolute(path)?)
}

pub(super) async fn run(
    arguments: &Arguments,
    machine: &Machine,
    output: &Output,
) -> Result<(), Exit> {
    if let Some(source) = arguments.from {
        return import(source, arguments, machine, output).await;
    }
    let survey = Survey::for_moving(&arguments.clients(), &machine.around);
    let mut choice = Choice {
        scopes: arguments
            .scope
            .iter()
            .filter_map(|scope| Scope::named(scope))
            .collect(),
        only: arguments.only.clone(),
        drop_rules: arguments.drop_rules,
        history: machine.journal().history(),
        ..Choice::default()
    };
    arguments.secrets.choose(&mut choice);
    let mut launch = machine.launch()?;
    launch.approval = arguments
        .codex_approval
        .as_deref()
        .and_then(CodexApproval::named);
    let connected = survey.found.iter().filter(|found| found.is_mcpzip);
    let connected: BTreeSet<Client> = connected.map(|found| found.location.client).collect();
    let plan = |choice: &Choice, launch: &Launch| -> anyhow::Result<Plan> {
        let file = &machine.paths.config_file;
        let mut plan = Plan::new(&survey, choice, file, launch, &machine.around)?;
        plan.warnings.extend(twins::notes(&plan.secrets, machine));
        let mut clients = connected.clone();
        clients.extend(plan.edits.iter().filter_map(|edit| edit.client));
        plan.warnings.extend(surface_warnings(&clients, machine));
        Ok(plan)
    };
    let mut made = plan(&choice, &launch)?;
    let is_open = !arguments.yes && !arguments.dry_run;
    let can_ask = is_open && !output.is_json() && output.can_ask();
    if can_ask {
        show(&survey, &made, machine, output);
        // Before any question.
        check_rules(&made, arguments)?;
        let mut is_other = false;
        if launch.approval.is_none() && made.asks_for_approval {
            output.line("");
            launch.approval = ask_for_approval(None, machine, output)?;
            made = plan(&choice, &launch)?;
        }
        if twins::ask_to_merge(&made.secrets, &mut choice, output)? {
            (made, is_other) = (plan(&choice, &launch)?, true);
        }
        if twins::ask_to_extract(&made.secrets, &mut choice, machine, output)? {
            (made, is_other) = (plan(&choice, &launch)?, true);
        }
        if is_other {
            output.line("");
            show(&survey, &made, machine, output);
        }
    }
    let plan = made;
    for name in &arguments.only {
        check_server(name, &survey, machine)?;
    }
    if !output.is_json() && !can_ask {
        show(&survey, &plan, machine, output);
        if plan.blocking.is_empty() {
            show_edits(&plan, machine, output);
        }
    }
    mention_older(machine, output);
    let outcome = carry_out(arguments, &plan, machine, output);
    let logins = match &outcome {
        Ok(Some(_)) => take_over_logins(&plan.unwrapped, machine, output).await,
        _ => Vec::new(),
    };
    let report = || report(&survey, &plan, &machine.paths.config_file);
    let later = twins::next_step(&plan.secrets, machine);
    tell(
        outcome,
        &logins,
        report,
        ("restart the clients", later),
        output,
    )?;
    if survey.unreadable.is_empty() {
        Ok(())
    } else {
        Err(Exit::found(false))
    }
}

/// Rejects a server that neither a client nor the configuration has.
fn check_server(name: &str, survey: &Survey, machine: &Machine) -> Result<(), Exit> {
    let mut names = survey.candidates().map(|found| found.name.as_str());
    let ours = Config::load(&machine.paths, &machine.around.environment);
    if names.any(|known| known == name) || ours.is_ok_and(|ours| ours.names.contains(name)) {
        return Ok(());
    }
    let names = survey.candidates().map(|found| found.name.as_str());
    let advice = match nearest(name, names) {
        _ if name.contains(',') => {
            "`--only` takes one name, and may be given several times".to_owned()
        }
        Some(near) => format!("did you mean `{near}`?"),
        None => "`mcpzip migrate --dry-run` shows those that they have".to_owned(),
    };
    Err(Exit::failed(format!(
        "no client has a server `{}`; {advice}",
        shown(name)
    )))
}

/// Prints the result, with the next step of the user and the journal's run for `undo` if something was changed.
fn tell(
    outcome: Result<Option<String>, Exit>,
    logins: &[Value],
    report: impl FnOnce() -> Value,
    (next, later): (&str, Option<(String, String)>),
    output: &Output,
) -> Result<(), Exit> {
    if output.is_json() {
        let mut report = report();
        report["undo"] = outcome
            .as_ref()
            .ok()
            .and_then(Option::as_ref)
            .map_or(Value::Null, |run| json!(run));
        report["logins"] = json!(logins);
        output.json(&report);
    } else if let Ok(Some(run)) = &outcome {
        output.line(format!("{}; {next}", good("done")));
        if let Some((command, text)) = later {
            output.line(format!("{} {text}", strong(command)));
        }
        output.line(faint(format!("`mcpzip undo` reverts it (run {run})")));
    }
    outcome.map(drop)
}

/// Mentions runs that were interrupted, and a configuration of mcpzip 0.1 if there is no current one.
pub(super) fn mention_older(machine: &Machine, output: &Output) {
    for (_, text) in interrupted(machine) {
        output.notable(&text);
    }
    if let Some(note) = older_note(&machine.paths.config_file, &machine.around.environment) {
        output.note(&note);
    }
}

/// The note about a configuration of mcpzip 0.1, if there is one and no current one.
pub(super) fn older_note(config_file: &Path, environment: &Environment) -> Option<String> {
    let older = older_config_file(environment).filter(|_| !config_file.exists())?;
    Some(format!(
        "there is a configuration of mcpzip 0.1 at {}, whose servers are not used any more once there is another; \
         `mcpzip migrate --from mcpzip-0.1` imports them",
        older.display()
    ))
}

/// Makes the changes, unless rules block them. Returns the name of the journal's run.
fn carry_out(
    arguments: &Arguments,
    plan: &Plan,
    machine: &Machine,
    output: &Output,
) -> Result<Option<String>, Exit> {
    check_rules(plan, arguments)?;
    let changes = (plan.edits.as_slice(), &plan.masker);
    apply(arguments, changes, "migrate", machine, output)
}

/// The options that select these servers.
fn only(servers: &[&str]) -> String {
    let servers: BTreeSet<&str> = servers.iter().copied().collect();
    let options = servers.into_iter();
    options
        .map(|name| format!(" --only {}", shell_word(name)))
        .collect()
}

/// Stops if rules cannot be carried over.
fn check_rules(plan: &Plan, arguments: &Arguments) -> Result<(), Exit> {
    if plan.blocking.is_empty() {
        return Ok(());
    }
    let protected: Vec<&str> = plan
        .blocking
        .iter()
        .map(|rule| rule.server.as_str())
        .collect();
    let moving = plan.items.iter();
    let moving = moving.filter(|item| !matches!(item.verdict, Verdict::Stays(_)));
    let moving = moving.map(|item| item.server.as_str());
    let others: Vec<&str> = moving.filter(|name| !protected.contains(name)).collect();
    let is_near = |name: &&&str| {
        protected
            .iter()
            .any(|it| it != *name && safe_name(it) == safe_name(name))
    };
    let near = others.iter().find(is_near);
    let near = near.map(|name| format!(" (`{name}` is another one)"));
    let (others, near) = (only(&others), near.unwrap_or_default());
    let selection = arguments.selection();
    let others = match others.is_empty() {
        true => String::new(),
        false => {
            format!("`mcpzip migrate{selection}{others}` moves the other servers alone{near}. ")
        }
    };
    Err(Exit::failed(format!(
        "nothing was done: rules of the clients that protect {} cannot be carried over, and would stop working.\n\
         {others}`mcpzip migrate{selection}{} --drop-rules` moves these, and the rules listed above no longer protect them",
        names(&protected),
        only(&protected)
    )))
}

fn apply(
    arguments: &Arguments,
    (edits, masker): (&[Edit], &Masker),
    command: &str,
    machine: &Machine,
    output: &Output,
) -> Result<Option<String>, Exit> {
    // The journal names each file as text.
    let mut files = edits.iter().map(|edit| edit.path.as_path());
    if let Some(path) = files.find(|path| path.to_str().is_none()) {
        let path = path.display();
        return Err(Exit::failed(format!(
            "nothing was done: the path `{path}` is not Unicode, and `mcpzip undo` could not name it"
        )));
    }
    if arguments.dry_run || edits.is_empty() {
        return Ok(None);
    }
    if !arguments.yes {
        if output.is_json() || !output.can_ask() {
            return Err(Exit::failed(
                "nothing was done: pass `--yes` to do it without asking, or `--dry-run` for a preview",
            ));
        }
        let screen = Screen {
            output,
            masker,
            home: &machine.around.home,
        };
        if !screen.confirm(edits)? {
            output.note("nothing was done");
            return Ok(None);
        }
    }
    let run = machine.journal().apply(command, edits);
    let without = |client: Client| Some(format!("mcpzip migrate --without {}", client.name()));
    let run = run.map_err(|error| not_applied(error, edits, without))?;
    output.made(&run);
    Ok(Some(run))
}

/// The error of changes that could not be made. If all files are as before, it says so, and how to leave out the client whose file it is.
/// `without` makes that command, if there is one.
pub(super) fn not_applied(
    error: JournalError,
    edits: &[Edit],
    without: impl Fn(Client) -> Option<String>,
) -> Exit {
    let path = match &error {
        JournalError::Disk { path, .. } if edits.iter().all(Edit::is_undone) => path,
        _ => return anyhow::Error::from(error).into(),
    };
    let edit = edits.iter().find(|edit| edit.path == *path);
    let way = edit.and_then(|edit| edit.client).and_then(|client| {
        let (command, title) = (without(client)?, client.title());
        Some(format!(". `{command}` leaves {title} out"))
    });
    Exit::failed(format!(
        "{error}; nothing was changed{}",
        way.unwrap_or_default()
    ))
}

/// Takes over the logins of `mcp-remote` for servers that are now reached without it. Returns the outcomes as JSON.
pub(super) async fn take_over_logins(
    servers: &[String],
    machine: &Machine,
    output: &Output,
) -> Vec<Value> {
    take_over(servers, ("mcp-remote", Account::inherited), machine, output).await
}

/// Takes over another program's logins for some servers.
async fn take_over(
    servers: &[String],
    (program, inherited): (&str, fn(&Account) -> Option<Inherited>),
    machine: &Machine,
    output: &Output,
) -> Vec<Value> {
    if servers.is_empty() {
        return Vec::new();
    }
    // Without a usable configuration there are no accounts; `serve` reports the reason.
    let Ok(accounts) = Accounts::new(&machine.paths, machine.around.environment.clone()) else {
        return Vec::new();
    };
    let mut logins = Vec::new();
    for (server, account) in accounts
        .all()
        .filter(|(server, _)| servers.iter().any(|name| name == server.as_str()))
    {
        let Some(inherited) = inherited(&account) else {
            continue;
        };
        let outcome = match account.take_over(inherited).await {
            Ok(_) => "taken over".to_owned(),
            Err(error) => {
                format!(
                    "not taken over: {:#}; `mcpzip login {server}` logs in again",
                    anyhow::Error::from(error)
                )
            }
        };
        if !output.is_json() {
            output.line(format!("{} login of {program} {outcome}", strong(server)));
        }
        logins.push(json!({ "server": server.as_str(), "outcome": outcome }));
    }
    accounts.finish().await;
    logins
}

async fn import(
    source: Source,
    arguments: &Arguments,
    machine: &Machine,
    output: &Output,
) -> Result<(), Exit> {
    let origin = source.origin();
    let from = source_file(source, arguments.file.as_deref(), machine)?;
    let mut choice = Choice {
        only: arguments.only.clone(),
        history: machine.journal().history(),
        ..Choice::default()
    };
    arguments.secrets.choose(&mut choice);
    let survey = Survey::of(&Client::ALL, &machine.around);
    let launch = machine.launch()?;
    let plan = |choice: &Choice| {
        let wanted = Wanted {
            origin,
            file: &from,
            choice,
        };
        let file = &machine.paths.config_file;
        let environment = &machine.around.environment;
        let clients = Clients {
            survey: &survey,
            launch: &launch,
            around: &machine.around,
        };
        Import::new(wanted, file, environment, Some(clients)).map_err(anyhow::Error::from)
    };
    let mut import = plan(&choice)?;
    let is_open = !arguments.yes && !arguments.dry_run;
    let can_ask = is_open && !output.is_json() && output.can_ask();
    if can_ask && twins::ask_to_merge(&import.secrets, &mut choice, output)? {
        import = plan(&choice)?;
    }
    if can_ask && twins::ask_to_extract(&import.secrets, &mut choice, machine, output)? {
        import = plan(&choice)?;
    }
    import.notes.extend(twins::notes(&import.secrets, machine));
    import.notes.extend(logins_left(origin, &from));
    for name in &arguments.only {
        if !import.items.iter().any(|item| item.server == *name) {
            return Err(Exit::failed(format!(
                "`{}` has no server `{name}`",
                from.display()
            )));
        }
    }
    if !output.is_json() {
        show_import(
            origin,
            (&from, arguments.drop_rules),
            &import,
            machine,
            output,
        );
        if !can_ask {
            let screen = Screen {
                output,
                masker: &import.masker,
                home: &machine.around.home,
            };
            import.edits.iter().for_each(|edit| screen.edit(edit));
        }
    }
    let name = value_name(source);
    let outcome = if import.blocking.is_empty() || arguments.drop_rules {
        let command = format!("migrate --from {name}");
        let changes = (import.edits.as_slice(), &import.masker);
        apply(arguments, changes, &command, machine, output)
    } else if import.items.is_empty() {
        let why = import.blocking.join("; ");
        Err(Exit::failed(format!("nothing was done: {why}")))
    } else {
        let of_a_server = |why: &String| {
            let mut names = import.items.iter().map(|item| &item.server);
            names.any(|name| why.starts_with(&format!("`{name}`: ")))
        };
        Err(Exit::failed(format!(
            "nothing was done: protections of {} cannot be carried over, and would stop working.\n\
             {}import everything without these protections with `--drop-rules`, and write rules for them here (`tools`)",
            origin.title(),
            match import.blocking.iter().all(of_a_server) {
                true => {
                    "Move other servers alone with `--only NAME`, one of these without its protections with `--only NAME --drop-rules`, or "
                }
                false => "Take the keys above out of a copy of the file, or ",
            }
        )))
    };
    let logins = match &outcome {
        Ok(Some(_)) if origin == Origin::Older => {
            let of_older = (
                "mcpzip 0.1",
                Account::inherited_from_older as fn(&Account) -> Option<Inherited>,
            );
            take_over(&moved(&import.items), of_older, machine, output).await
        }
        _ => Vec::new(),
    };
    let masked = |texts: &[String]| -> Vec<String> {
        let masked = texts
            .iter()
            .map(|text| import.masker.mask(text).into_owned());
        masked.collect()
    };
    let report = || {
        json!({
            "servers": import.items.iter().map(|item| server(item, &import.masker, &name)).collect::<Vec<_>>(),
            "blocking": masked(&import.blocking),
            "notes": masked(&import.notes),
            "secrets": twins::to_json(&import.secrets, &machine.paths.config_file),
            "files": import.edits.iter().map(|edit| file(edit, &import.masker)).collect::<Vec<_>>(),
        })
    };
    let is_moved = |item: &&Item| !matches!(item.verdict, Verdict::Stays(_));
    let mut moved = import.items.iter().filter(is_moved).peekable();
    let all_are_off = moved.peek().is_some() && moved.all(|item| item.is_off);
    let next = match origin {
        Origin::Older => "restart the clients".to_owned(),
        _ if all_are_off => format!(
            "clients that start {} still do. All servers are disabled: `mcpzip enable NAME` starts one, and `mcpzip approve NAME` shows its tools; \
             then `mcpzip connect CLIENT` adds mcpzip to a client",
            origin.title()
        ),
        _ => format!(
            "clients that start {} still do. `mcpzip servers` shows whether the servers work here; then `mcpzip connect CLIENT` adds mcpzip to a client",
            origin.title()
        ),
    };
    let later = twins::next_step(&import.secrets, machine);
    tell(outcome, &logins, report, (&next, later), output)
}

/// The note about logins that another program keeps next to its file `from`, if it has any.
fn logins_left(origin: Origin, from: &Path) -> Option<String> {
    let logins = from.parent()?.join("auth.json");
    (origin == Origin::Avelino && logins.is_file()).then(|| {
        format!(
            "the logins in {} do not come over: `mcpzip login SERVER` logs in here",
            logins.display()
        )
    })
}

/// The file to import: the given one, or the one at the usual path.
fn source_file(source: Source, named: Option<&Path>, machine: &Machine) -> Result<PathBuf, Exit> {
    let (origin, name) = (source.origin(), value_name(source));
    if let Some(named) = named {
        return existing(named);
    }
    let usual = origin.usual_file(&machine.around.environment);
    match usual {
        Some(usual) if usual.is_file() => Ok(usual),
        Some(usual) => Err(Exit::failed(format!(
            "there is no configuration of {} at {}; name its file: `mcpzip migrate --from {name} FILE`",
            origin.title(),
            usual.display()
        ))),
        None if origin == Origin::Older => Err(Exit::failed(
            "there is no configuration of mcpzip 0.1 at ~/.config/compressed-mcp-proxy/config.json; name its file: \
             `mcpzip migrate --from mcpzip-0.1 FILE`",
        )),
        None => Err(Exit::failed(format!(
            "{} has no usual path; name its file: `mcpzip migrate --from {name} FILE`",
            origin.title()
        ))),
    }
}

fn value_name(source: Source) -> String {
    source
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

/// Prints the preview of an import.
fn show_import(
    origin: Origin,
    (from, drops): (&Path, bool),
    import: &Import,
    machine: &Machine,
    output: &Output,
) {
    let screen = Screen {
        output,
        masker: &import.masker,
        home: &machine.around.home,
    };
    output.line(format!(
        "{} {}",
        strong(origin.title()),
        faint(screen.path(from))
    ));
    import.items.iter().for_each(|item| screen.item(item));
    screen.notes(
        match drops {
            true => "These protections stop working:",
            false => "These protections cannot be carried over:",
        },
        &import.blocking,
    );
    screen.notes("Notes:", &import.notes);
}

/// The names under which servers were taken over.
fn moved(items: &[Item]) -> Vec<String> {
    let name = |item: &Item| match &item.verdict {
        Verdict::Moves { name, .. } | Verdict::Conflicts { name } => Some(name.to_string()),
        Verdict::Stays(_) => None,
    };
    items.iter().filter_map(name).collect()
}

/// Prints the preview of a plan.
pub(super) fn show(survey: &Survey, plan: &Plan, machine: &Machine, output: &Output) {
    Screen {
        output,
        masker: &plan.masker,
        home: &machine.around.home,
    }
    .show(survey, plan);
}

/// Prints the changes of a plan as diffs.
pub(super) fn show_edits(plan: &Plan, machine: &Machine, output: &Output) {
    let screen = Screen {
        output,
        masker: &plan.masker,
        home: &machine.around.home,
    };
    plan.edits.iter().for_each(|edit| screen.edit(edit));
}

/// Prints the files that edits change, with the number of lines that each adds and removes.
pub(super) fn show_files(edits: &[Edit], masker: &Masker, machine: &Machine, output: &Output) {
    let screen = Screen {
        output,
        masker,
        home: &machine.around.home,
    };
    screen.files(edits);
}

/// Prints previews with secrets masked and paths shortened.
struct Screen<'a> {
    output: &'a Output,
    masker: &'a Masker,
    home: &'a Path,
}

impl Screen<'_> {
    pub(super) fn show(&self, survey: &Survey, plan: &Plan) {
        for (path, problem) in &survey.unreadable {
            self.output.line(format!(
                "{} {}: {problem}",
                bad("not read"),
                self.path(path)
            ));
        }
        let mut last: Option<(Client, Scope, &PathBuf)> = None;
        for item in &plan.items {
            let location = (item.client, item.scope, &item.path);
            if last != Some(location) {
                let scope = if item.scope == Scope::User {
                    String::new()
                } else {
                    format!(", {}", item.scope.name())
                };
                self.output.line(format!(
                    "{}{scope} {}",
                    strong(item.client.title()),
                    faint(self.path(&item.path))
                ));
                last = Some(location);
            }
            self.item(item);
        }
        if survey.candidates().next().is_none() && plan.items.is_empty() {
            self.output
                .line(faint("no client has a server that could move"));
        }
        self.rules(
            "These protect a server and cannot be carried over:",
            &plan.blocking,
        );
        self.rules("These become rules of mcpzip:", &plan.carried);
        self.stops_working(plan);
        self.notes("Notes:", &plan.warnings);
    }

    /// Prints a masked text at an indentation.
    fn say(&self, indent: usize, text: &str) {
        let text = self.masker.mask(text);
        self.output.line(format!("{:indent$}{text}", ""));
    }

    fn path(&self, path: &Path) -> String {
        below_home(path, self.home)
    }

    fn item(&self, item: &Item) {
        self.say(2, &line(item));
        for note in &item.notes {
            self.say(6, &faint(note));
        }
    }

    fn rules(&self, title: &str, rules: &[Rule]) {
        if rules.is_empty() {
            return;
        }
        self.output.line(format!("\n{}", strong(title)));
        let mut last = None;
        // A rule about a server that a client has in two places counts for both, and is shown once.
        let mut shown = BTreeSet::new();
        for rule in rules {
            let parts = (
                &rule.server,
                &rule.path,
                &rule.key,
                &rule.text,
                &rule.project,
            );
            if !shown.insert((rule.client, parts)) {
                continue;
            }
            if last != Some((rule.client, &rule.server)) {
                self.output.line(format!(
                    "  {} of {}",
                    strong(&rule.server),
                    rule.client.title()
                ));
                last = Some((rule.client, &rule.server));
            }
            let becomes = match rule.is_carried() {
                true => good(rule.becomes()),
                false if rule.is_blocking() => bad(rule.becomes()),
                false => faint(rule.becomes()),
            };
            let arrow = if rule.is_carried() {
                "becomes"
            } else {
                "is lost:"
            };
            // A list of the only permitted tools is stored as a denial of all others.
            let kind = match &rule.carried {
                Carried::Only(_) => "only",
                _ => rule.kind.name(),
            };
            // A switch says nothing without its key.
            let text = match rule.text.as_str() {
                "true" | "false" => &rule.key,
                text => text,
            };
            self.say(4, &format!("{kind} {text} {arrow} {becomes}"));
            let wider = rule.project.as_ref().filter(|_| rule.is_carried());
            let wider = wider
                .map(|project| format!(", which applied only to {}", self.path(project)))
                .unwrap_or_default();
            self.say(
                6,
                &faint(format!("{} in {}{wider}", rule.key, self.path(&rule.path))),
            );
        }
    }

    /// Prints the rules that are lost, and what other clients lose by the rules of one.
    fn stops_working(&self, plan: &Plan) {
        self.rules("These stop working:", &plan.lost);
        self.notes("These limits count for all clients:", &plan.tightened);
    }

    fn notes(&self, title: &str, notes: &[String]) {
        if notes.is_empty() {
            return;
        }
        self.output.line(format!("\n{}", strong(title)));
        for note in notes {
            self.say(2, &format!("- {note}"));
        }
    }

    fn files(&self, edits: &[Edit]) {
        for edit in edits {
            let diff = edit.diff(self.masker);
            let count = |mark: char| diff.lines().filter(|line| line.starts_with(mark)).count();
            let new = if edit.before.is_none() { "  new" } else { "" };
            self.output.line(format!(
                "  {}  {} {}{new}",
                self.path(&edit.path),
                good(format!("+{}", count('+'))),
                bad(format!("-{}", count('-')))
            ));
        }
    }

    /// Asks whether to make the changes, after a list of the files. An empty answer is no.
    fn confirm(&self, edits: &[Edit]) -> Result<bool, Exit> {
        self.output
            .line(format!("\n{}", strong("Files that change:")));
        self.files(edits);
        loop {
            let answer = self.output.ask_text("Do this? [y/N, d: show the changes]");
            let answer = match answer {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                answer => answer?,
            };
            match answer.to_ascii_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "d" => edits.iter().for_each(|edit| self.edit(edit)),
                "" | "n" | "no" => return Ok(false),
                _ => self
                    .output
                    .notable("Please answer `y`, `n`, or `d` for the changes; Enter alone is no."),
            }
        }
    }

    fn edit(&self, edit: &Edit) {
        self.output
            .line(format!("\n{}", strong(self.path(&edit.path))));
        diff_lines(&edit.diff(self.masker), self.output);
    }
}

/// Prints a diff.
pub(super) fn diff_lines(diff: &str, output: &Output) {
    for line in diff.lines() {
        output.line(match line.as_bytes().first() {
            Some(b'+') => good(line),
            Some(b'-') => bad(line),
            _ => faint(line),
        });
    }
}

pub(super) fn line(item: &Item) -> String {
    let mut left = match item.left_behind.as_slice() {
        [] => String::new(),
        keys => faint(format!(" (without {})", keys.join(", "))),
    };
    if let Some(state) = item.state() {
        left += &faint(format!(", {state}"));
    }
    let server = strong(&item.server);
    match &item.verdict {
        Verdict::Moves {
            name,
            known: Known::Before,
        } => {
            format!(
                "{} {server}, which mcpzip has as `{name}`{left}",
                good("moves")
            )
        }
        Verdict::Moves {
            name,
            known: Known::InThisRun,
        } => format!(
            "{} {server}, the same server as `{name}` above{left}",
            good("moves")
        ),
        Verdict::Moves { name, .. } if *name == item.server => {
            format!("{} {server}{left}", good("moves"))
        }
        Verdict::Moves { name, .. } => format!("{} {server} as `{name}`{left}", good("moves")),
        Verdict::Conflicts { name } => {
            format!(
                "{} {server}: mcpzip has another server of this name, or gets one in this run, so it becomes `{name}`{left}",
                bad("conflicts")
            )
        }
        Verdict::Stays(reason) => format!("{} {server}: {reason}", faint("stays")),
    }
}

fn file(edit: &Edit, masker: &Masker) -> Value {
    json!({ "file": edit.path.display().to_string(), "diff": edit.diff(masker) })
}

fn server(item: &Item, masker: &Masker, client: &str) -> Value {
    let (verdict, name, reason) = match &item.verdict {
        Verdict::Moves { name, .. } => ("moves", Some(name), None),
        Verdict::Conflicts { name } => ("conflicts", Some(name), None),
        Verdict::Stays(reason) => ("stays", None, Some(masker.mask(reason).into_owned())),
    };
    json!({
        "client": client,
        "scope": item.scope.name(),
        "file": item.path.display().to_string(),
        "server": item.server,
        "verdict": verdict,
        "name": name,
        "reason": reason,
        "disabled": item.is_off,
        "disabled_in_client": item.is_off_there,
        "project": item.project.as_ref().map(|project| project.display().to_string()),
        "left_behind": item.left_behind,
        "notes": item.notes,
    })
}

pub(super) fn report(survey: &Survey, plan: &Plan, config_file: &Path) -> Value {
    let masked = |text: &str| plan.masker.mask(text).into_owned();
    let rules = |rules: &[Rule]| -> Vec<Value> {
        let rule = |rule: &Rule| {
            json!({
                "client": rule.client.name(),
                "server": rule.server,
                "kind": rule.kind.name(),
                "rule": masked(&rule.text),
                "becomes": masked(&match rule.is_carried() {
                    true if !rule.is_idle => rule.carried.text(),
                    _ => rule.becomes(),
                }),
                "outcome": rule.outcome().name(),
                "file": rule.path.display().to_string(),
                "key": rule.key,
                "project": rule.project.as_ref().map(|project| project.display().to_string()),
            })
        };
        rules.iter().map(rule).collect()
    };
    let unreadable = survey
        .unreadable
        .iter()
        .map(|(path, problem)| json!({ "file": path.display().to_string(), "problem": problem.to_string() }));
    json!({
        "servers": plan.items.iter().map(|item| server(item, &plan.masker, item.client.name())).collect::<Vec<_>>(),
        "blocking_rules": rules(&plan.blocking),
        "carried_rules": rules(&plan.carried),
        "lost_rules": rules(&plan.lost),
        "tightened": plan.tightened.iter().map(|text| masked(text)).collect::<Vec<_>>(),
        "warnings": plan.warnings.iter().map(|text| masked(text)).collect::<Vec<_>>(),
        "secrets": twins::to_json(&plan.secrets, config_file),
        "unreadable": unreadable.collect::<Vec<_>>(),
        "files": plan.edits.iter().map(|edit| file(edit, &plan.masker)).collect::<Vec<_>>(),
    })
}

fn names(servers: &[&str]) -> String {
    let mut quoted: Vec<String> = servers.iter().map(|server| format!("`{server}`")).collect();
    quoted.sort();
    quoted.dedup();
    quoted.join(", ")
}
