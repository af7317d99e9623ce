//! `mcpzip init`: the set-up from nothing to a working configuration.
//!
//! It asks questions, tries the chosen servers and shows the changes before it writes anything. The configuration and
//! the clients' files are written in one run of the journal: an interruption leaves all or nothing, and `mcpzip undo`
//! reverts the run.

mod dialog;
mod popular;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::demo::poll_once;
use super::diagnostics::Exit;
use super::migrate;
use super::output::{Output, bad, faint, good, strong};
use super::printable::printable;
use super::setup::{Machine, approvals, ask_for_approval, client_names, clients_of, rule_warnings};
use super::twins::{self, SecretFlags};
use crate::clients::{
    Choice, Client, CodexApproval, Connection, Found, Item, Known, Launch, Plan, PlanError, Scope,
    Surroundings, Survey, Verdict, barrier,
};
use crate::config::{Config, command_with_options};
use crate::proxy::counted;
use crate::shutdown;
use crate::text::chain;
use dialog::{Answer, Line};
use popular::Popular;
use trial::Tried;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip init
  mcpzip init --yes --client claude-code --server git --server fetch
  mcpzip init --dry-run --yes --no-migrate

Ends with 1 if nothing was set up.")]
pub(super) struct Arguments {
    /// Ask nothing: take all installed clients with all their servers, and those of `--server`
    #[arg(long, short)]
    yes: bool,
    /// Set up only this client; may be given several times
    #[arg(long, value_name = "CLIENT", value_parser = client_names())]
    client: Vec<String>,
    /// Add this server, which needs no account; may be given several times
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(popular::names()))]
    server: Vec<String>,
    /// Leave the clients' own servers where they are
    #[arg(long)]
    no_migrate: bool,
    /// Do not connect to servers before they are taken over
    #[arg(long)]
    no_test: bool,
    /// Also take servers that do not work
    #[arg(long, conflicts_with = "no_test")]
    keep_failing: bool,
    #[command(flatten)]
    secrets: SecretFlags,
    /// Let Codex ask before each call, or let it run every tool [default: as its `approval_policy`]
    #[arg(long, value_name = "MODE", value_parser = approvals())]
    codex_approval: Option<String>,
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
}

/// How long a pending signal is waited for before anything is written.
const LAST_LOOK: Duration = Duration::from_millis(10);

/// The clients' servers to take over.
#[derive(Debug, Default, Clone)]
struct Moving {
    /// Their names.
    names: BTreeSet<String>,
    /// Servers of these names that stay: their files and names.
    without: BTreeSet<(PathBuf, String)>,
    /// The servers that cannot move, with the reasons, if they are not printed before.
    staying: Vec<String>,
}

/// The user's choices.
#[derive(Debug)]
struct Selection {
    clients: Vec<Client>,
    moving: Moving,
    /// The choices about their secrets.
    secrets: Choice,
    popular: Vec<Popular>,
    /// The approval mode of Codex. `None` lets its file decide.
    approval: Option<CodexApproval>,
}

/// The changes that follow from a selection.
#[derive(Debug)]
struct Draft {
    survey: Survey,
    plan: Plan,
    /// Servers that are new in the configuration, by mcpzip's names for them.
    new: Vec<String>,
    connections: Vec<(Client, Connection)>,
}

pub(super) async fn run(
    arguments: &Arguments,
    machine: &Machine,
    output: &Output,
) -> Result<(), Exit> {
    let mut signal = std::pin::pin!(shutdown::signal());
    // The signal handler is installed first. Then Ctrl-C in a dialog ends the dialog, which restores the terminal.
    if let Some(signal) = poll_once(signal.as_mut()).await {
        return Err(Exit::interrupted(signal));
    }
    migrate::mention_older(machine, output);
    let (draft, trials) = prepare(arguments, machine, output).await?;
    // Ctrl-C may have been pressed while a dialog was reading. The runtime notices the signal only while it waits.
    tokio::select! {
        biased;
        signal = signal.as_mut() => return Err(Exit::interrupted(signal)),
        () = tokio::time::sleep(LAST_LOOK) => {}
    }
    let is_writing = !draft.plan.edits.is_empty() && !arguments.dry_run;
    if is_writing && is_asking(arguments, output) && !is_agreed(&draft, machine, output)? {
        output.note("nothing was changed");
        return Ok(());
    }
    let undo = match is_writing {
        true => {
            let run = machine.journal().apply("init", &draft.plan.edits);
            let edits = &draft.plan.edits;
            let without = |client| {
                let others = edits.iter().filter_map(|edit| edit.client);
                let others: BTreeSet<Client> = others.filter(|other| *other != client).collect();
                let words = others
                    .iter()
                    .map(|other| format!(" --client {}", other.name()));
                let words = words.collect::<String>();
                (!words.is_empty()).then(|| format!("mcpzip init{words}"))
            };
            let run = run.map_err(|error| migrate::not_applied(error, edits, without))?;
            output.made(&run);
            Some(run)
        }
        false => None,
    };
    let logins = match &undo {
        Some(_) => migrate::take_over_logins(&draft.plan.unwrapped, machine, output).await,
        None => Vec::new(),
    };
    if !is_nothing(&draft, machine) || output.is_json() {
        report(
            arguments,
            &draft,
            &trials,
            (undo.as_deref(), &logins),
            (machine, output),
        );
    }
    if is_nothing(&draft, machine) && draft.survey.unreadable.is_empty() {
        return Err(Exit::failed(nothing(machine)));
    }
    match missing(&draft, machine) {
        Some(what) if draft.plan.edits.is_empty() => Err(Exit::failed(what)),
        _ => Ok(()),
    }
}

/// Why a set-up is not complete, with the remedy.
fn missing(draft: &Draft, machine: &Machine) -> Option<String> {
    if let Some((path, _)) = draft.survey.unreadable.first() {
        let path = path.display();
        return Some(format!(
            "{path} cannot be read: correct it, and run `mcpzip init` again"
        ));
    }
    if draft.connections.is_empty() {
        return Some("no client is connected: `mcpzip connect CLIENT` connects one".to_owned());
    }
    let config = Config::load(&machine.paths, &machine.around.environment);
    let has_servers = config.is_ok_and(|config| !config.names.is_empty());
    (!has_servers).then(|| "no server is configured: `mcpzip add` adds one".to_owned())
}

/// The error if no configuration was made. It names only a server that can start here.
fn nothing(machine: &Machine) -> String {
    let popular = popular::all(&machine.around.environment);
    let usable = popular.iter().find(|popular| popular.lacks.is_none());
    let usable = usable.map(|popular| format!(" or `mcpzip init --server {}`", popular.name));
    let mut clients = Client::ALL.iter();
    let client = match clients.any(|client| client.is_installed(&machine.around)) {
        true => "no client and no server was chosen",
        false => "no MCP client was found, no server was chosen",
    };
    format!(
        "nothing was set up: {client}, and there is no configuration.\n\
         Add a server with `mcpzip add NAME -- COMMAND`{}, and connect a client with \
         `mcpzip connect CLIENT`; `mcpzip demo` shows everything without either",
        usable.unwrap_or_default()
    )
}

/// Whether there would still be no configuration.
fn is_nothing(draft: &Draft, machine: &Machine) -> bool {
    draft.plan.edits.is_empty() && !machine.paths.config_file.exists()
}

/// Whether questions are asked.
fn is_asking(arguments: &Arguments, output: &Output) -> bool {
    !arguments.yes && !output.is_json() && output.can_ask()
}

/// Everything before the first write: asks, tries the servers, and shows the changes.
async fn prepare(
    arguments: &Arguments,
    machine: &Machine,
    output: &Output,
) -> Result<(Draft, Vec<Tried>), Exit> {
    let is_asking = is_asking(arguments, output);
    if !is_asking && !arguments.yes && !arguments.dry_run {
        let why = if output.is_json_asked() {
            "`--json` asks no questions"
        } else {
            "questions need a terminal on stdin and stdout"
        };
        return Err(Exit::failed(format!(
            "nothing was done: {why}; pass `--yes` to do it without asking, or `--dry-run` for a preview"
        )));
    }
    if !output.is_json() {
        output.line(format!(
            "{} {}",
            strong("mcpzip init"),
            faint(machine.paths.config_file.display())
        ));
    }
    let mut selection = select(arguments, machine, is_asking, output)?;
    let mut draft = draft(&selection, machine)?;
    let mut trials = Vec::new();
    if !arguments.no_test && !draft.new.is_empty() {
        let text = draft
            .plan
            .configuration(&machine.paths.config_file)
            .map_err(anyhow::Error::from)?;
        trials = trial::run(&draft, &text, machine, output).await?;
        if !output.is_json() {
            trials
                .iter()
                .for_each(|trial| output.line(format!("  {}", trial.line())));
        }
        let dropped = dropped(arguments, &trials, is_asking)?;
        if !dropped.is_empty() {
            leave_out(&mut selection, &draft.plan, &dropped);
            draft = self::draft(&selection, machine)?;
            if !output.is_json() {
                let names: Vec<&str> = dropped.iter().map(String::as_str).collect();
                let reason = match names.len() {
                    1 => "it does not work now",
                    _ => "they do not work now",
                };
                output.line(format!(
                    "  {} {}, because {reason}",
                    faint("not moving after all:"),
                    printable(&listed(&names))
                ));
            }
        }
    }
    if !output.is_json() {
        migrate::show(&draft.survey, &draft.plan, machine, output);
        // With questions, a summary follows, and the changes only on request.
        if !is_asking {
            migrate::show_edits(&draft.plan, machine, output);
        }
    }
    Ok((draft, trials))
}

/// Makes the selection, from the flags or by asking.
fn select(
    arguments: &Arguments,
    machine: &Machine,
    is_asking: bool,
    output: &Output,
) -> Result<Selection, Exit> {
    let around = &machine.around;
    let installed: Vec<Client> = Client::ALL
        .into_iter()
        .filter(|client| client.is_installed(around))
        .collect();
    let named = clients_of(&arguments.client);
    let mut clients = if arguments.client.is_empty() {
        installed.clone()
    } else {
        named
    };
    if is_asking && arguments.client.is_empty() {
        if installed.is_empty() {
            output.line("no MCP client found; `mcpzip connect CLIENT` adds mcpzip to one later");
        }
        let survey = Survey::of(&installed, around);
        let lines: Vec<Line> = installed
            .iter()
            .map(|client| client_line(*client, &survey, around))
            .collect();
        let chosen = dialog::choose("Which clients should use mcpzip?", &lines)?;
        clients = chosen.into_iter().map(|at| installed[at]).collect();
        let titles: Vec<&str> = clients.iter().map(|client| client.title()).collect();
        output.line(format!("  {} {}", faint("clients:"), listed(&titles)));
    }
    let moving = if arguments.no_migrate {
        Moving::default()
    } else {
        moving(&clients, machine, is_asking, output)?
    };
    let mut secrets = Choice {
        history: machine.journal().history(),
        ..Choice::default()
    };
    arguments.secrets.choose(&mut secrets);
    if is_asking && !moving.names.is_empty() {
        ask_about_secrets(&clients, &moving, &mut secrets, machine, output)?;
    }
    let known = draft(
        &Selection {
            clients: clients.clone(),
            moving: moving.clone(),
            secrets: secrets.clone(),
            popular: Vec::new(),
            approval: None,
        },
        machine,
    )?;
    let text = known
        .plan
        .configuration(&machine.paths.config_file)
        .map_err(anyhow::Error::from)?;
    let offered: Vec<Popular> = popular::all(&around.environment)
        .into_iter()
        .filter(|popular| !popular.is_in(&text))
        .collect();
    let popular = if is_asking && arguments.server.is_empty() {
        let (usable, lacking): (Vec<Popular>, Vec<Popular>) = offered
            .into_iter()
            .partition(|popular| popular.lacks.is_none());
        let lines: Vec<Line> = usable
            .iter()
            .map(|popular| Line {
                text: format!("{:20} {}", popular.name, popular.purpose),
                is_chosen: false,
            })
            .collect();
        let mut programs: Vec<&str> = lacking
            .iter()
            .filter_map(|popular| popular.lacks.as_deref())
            .collect();
        programs.dedup();
        if !programs.is_empty() {
            output.line(faint(format!(
                "more servers could be offered if {} were installed",
                programs.join(" and ")
            )));
        }
        let chosen = dialog::choose("Add servers that need no account?", &lines)?;
        chosen.into_iter().map(|at| usable[at].clone()).collect()
    } else {
        offered
            .into_iter()
            .filter(|popular| arguments.server.iter().any(|name| name == popular.name))
            .collect()
    };
    let named = arguments.codex_approval.as_deref();
    let mut approval = named.and_then(CodexApproval::named);
    // An entry that is there keeps its mode.
    let has_entry = || {
        let survey = Survey::of(&[Client::Codex], around);
        survey.found.iter().any(|found| found.is_mcpzip)
    };
    if is_asking && approval.is_none() && clients.contains(&Client::Codex) && !has_entry() {
        approval = ask_for_approval(None, machine, output)?;
    }
    Ok(Selection {
        clients,
        moving,
        secrets,
        popular,
        approval,
    })
}

/// Asks which servers are one, and whether literal secrets move.
fn ask_about_secrets(
    clients: &[Client],
    moving: &Moving,
    secrets: &mut Choice,
    machine: &Machine,
    output: &Output,
) -> Result<(), Exit> {
    let survey = Survey::for_moving(clients, &machine.around);
    let made = plan(&survey, &choice(clients, moving, secrets), None, machine)?;
    let lines: Vec<Line> = made
        .secrets
        .twins
        .iter()
        .map(|twin| Line {
            text: twins::in_short(twin),
            is_chosen: twin.is_complement && twin.server == twin.known,
        })
        .collect();
    let chosen = dialog::choose("Which of these are one server?", &lines)?;
    let names = chosen
        .into_iter()
        .map(|at| made.secrets.twins[at].server.clone());
    secrets.merged.extend(names);
    if !made.secrets.twins.is_empty() {
        let merged: Vec<&str> = secrets.merged.iter().map(String::as_str).collect();
        output.line(format!(
            "  {} {}",
            faint("one server:"),
            printable(&listed(&merged))
        ));
    }
    let made = plan(&survey, &choice(clients, moving, secrets), None, machine)?;
    if let Some(question) = twins::question(&made.secrets, machine) {
        output.line(format!(
            "  {} {}",
            faint("literal secrets:"),
            printable(&twins::listed(&made.secrets.literals))
        ));
        secrets.extracts_secrets = dialog::agree(&question)?;
        output.line(faint(
            "  `mcpzip secret migrate` moves secrets to the keychain or an encrypted file, at any time",
        ));
    }
    Ok(())
}

/// The servers of `clients` to take over.
fn moving(
    clients: &[Client],
    machine: &Machine,
    is_asking: bool,
    output: &Output,
) -> Result<Moving, Exit> {
    if clients.is_empty() {
        return Ok(Moving::default());
    }
    let survey = Survey::for_moving(clients, &machine.around);
    let any = Choice {
        history: machine.journal().history(),
        ..Choice::default()
    };
    let any = choice(clients, &Moving::default(), &any);
    let plan = plan(&survey, &any, None, machine)?;
    let stays = |item: &Item| matches!(item.verdict, Verdict::Stays(_));
    let movable: Vec<&Item> = plan.items.iter().filter(|item| !stays(item)).collect();
    let staying = plan
        .items
        .iter()
        .filter(|item| stays(item) && !is_mcpzip(&survey, item));
    if output.is_json() {
        let staying = staying.filter_map(|item| match &item.verdict {
            Verdict::Stays(reason) => Some((item, reason)),
            _ => None,
        });
        let staying = staying.map(|(item, reason)| {
            let (server, client) = (&item.server, item.client.title());
            format!("`{server}` of {client} stays: {reason}")
        });
        return Ok(Moving {
            staying: staying.chain(plan.leaving.clone()).collect(),
            ..Moving::of(&movable, &plan, |_| true)
        });
    }
    for item in staying {
        output.line(format!(
            "  {} {}",
            faint(item.client.title()),
            plan.masker.mask(&migrate::line(item))
        ));
    }
    if let Some(leaving) = &plan.leaving {
        output.line(format!("  {}", plan.masker.mask(leaving)));
    }
    let is_planned = |found: &Found| {
        let mut items = plan.items.iter();
        items.any(|item| item.path == found.location.path && item.server == found.name)
    };
    let apart = survey
        .candidates()
        .filter(|found| found.scope() == Scope::Project && !found.is_mcpzip && !is_planned(found));
    let apart: Vec<String> = apart.map(|found| format!("`{}`", found.name)).collect();
    if !apart.is_empty() {
        output.line(printable(&format!(
            "  servers of this project stay in its files: {}; `mcpzip migrate` offers them, too",
            apart.join(", ")
        )));
    }
    if !is_asking {
        return Ok(Moving::of(&movable, &plan, |_| true));
    }
    let widest = movable
        .iter()
        .map(|item| item.server.chars().count())
        .max()
        .unwrap_or(0)
        .clamp(12, 36);
    let lines: Vec<Line> = movable
        .iter()
        .map(|item| server_line(item, widest))
        .collect();
    let chosen = dialog::choose("Which servers should move here?", &lines)?;
    let names: Vec<String> = chosen
        .iter()
        .map(|at| {
            let item = movable[*at];
            // One of its name may stay.
            let mut namesakes = plan.items.iter().filter(|it| it.server == item.server);
            let client = namesakes.nth(1).map(|_| item.client.title());
            let client = client.map(str::to_owned).into_iter();
            let which: Vec<String> = client.chain(item.state()).collect();
            match which.is_empty() {
                true => item.server.clone(),
                false => format!("{} ({})", item.server, which.join(", ")),
            }
        })
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if !movable.is_empty() {
        output.line(format!(
            "  {} {}",
            faint("moving here:"),
            printable(&listed(&names))
        ));
    }
    Ok(Moving::of(&movable, &plan, |at| chosen.contains(&at)))
}

impl Moving {
    /// Those of `movable` whose positions are chosen. The servers that stay in `plan` are left, also if others of their names are among them.
    fn of(movable: &[&Item], plan: &Plan, is_chosen: impl Fn(usize) -> bool) -> Self {
        let mut moving = Self::default();
        let staying = plan.items.iter();
        let staying = staying.filter(|item| matches!(item.verdict, Verdict::Stays(_)));
        staying.for_each(|item| moving.leave(item));
        for (at, item) in movable.iter().enumerate() {
            match is_chosen(at) {
                true => {
                    moving.names.insert(item.server.clone());
                }
                false => moving.leave(item),
            }
        }
        moving
    }

    /// Leaves a server where it is.
    fn leave(&mut self, item: &Item) {
        self.without
            .insert((item.path.clone(), item.server.clone()));
    }
}

/// Plans the changes for a selection.
fn draft(selection: &Selection, machine: &Machine) -> Result<Draft, Exit> {
    let survey = Survey::for_moving(&selection.clients, &machine.around);
    let mut choice = choice(&selection.clients, &selection.moving, &selection.secrets);
    if selection.moving.names.is_empty() {
        let all = survey.candidates();
        choice.without = all
            .map(|found| (found.location.path.clone(), found.name.clone()))
            .collect();
    }
    let mut plan = plan(&survey, &choice, selection.approval, machine)?;
    plan.warnings.extend(twins::notes(&plan.secrets, machine));
    plan.warnings.extend(selection.moving.staying.clone());
    let config_file = &machine.paths.config_file;
    let mut new: Vec<String> = plan
        .items
        .iter()
        .filter_map(|item| match &item.verdict {
            Verdict::Moves {
                name,
                known: Known::New,
            }
            | Verdict::Conflicts { name } => Some(name.clone()),
            _ => None,
        })
        .collect();
    let popular: Vec<(String, String)> = selection
        .popular
        .iter()
        .map(|popular| (popular.name.to_owned(), popular.entry.clone()))
        .collect();
    let launch = launch(machine, selection.approval)?;
    let barriers: BTreeMap<Client, String> = selection
        .clients
        .iter()
        .filter_map(|client| {
            let reason = barrier(*client, &survey, &launch, &machine.around)?;
            Some((*client, reason))
        })
        .collect();
    let connects = selection.clients.len() > barriers.len() + plan.apart.len();
    // The servers of mcpzip 0.1 are served as long as there is no other configuration.
    let has_older = migrate::older_note(config_file, &machine.around.environment).is_some();
    let is_first = !config_file.exists() && new.is_empty() && connects && !has_older;
    if !popular.is_empty() || is_first {
        new.extend(
            plan.add_servers(config_file, &popular)
                .map_err(anyhow::Error::from)?,
        );
    }
    let mut connections = Vec::new();
    for client in &selection.clients {
        let location = client.user_location(&machine.around);
        if let Some(reason) = barriers.get(client).or(plan.apart.get(client)) {
            let title = client.title();
            let warning = format!("{title} is not connected: {reason}");
            plan.warnings.push(warning);
            continue;
        }
        let connection = match plan.add_connection(&location, &launch, config_file, &machine.around)
        {
            Err(error @ PlanError::Unwritable { .. }) => {
                let warning = format!("{} is not connected: {}", client.title(), chain(&error));
                plan.warnings.push(warning);
                continue;
            }
            connection => connection.map_err(anyhow::Error::from)?,
        };
        // The entry may be one that the plan adds in place of the client's servers.
        let is_there = |found: &Found| {
            let is_merged = client.merges_files() && found.location.client == *client;
            found.location.path == location.path || is_merged && found.scope() == Scope::User
        };
        let mut found = survey.found.iter();
        let had_entry = found.any(|found| found.is_mcpzip && is_there(found));
        let connection = match connection {
            Connection::Already(name) if !had_entry => Connection::New(name),
            connection => connection,
        };
        if matches!(connection, Connection::New(_)) {
            plan.warnings.extend(launch.path_note(*client));
        }
        connections.push((*client, connection));
    }
    let failed = anyhow::Error::from;
    let text = plan.configuration(config_file).map_err(failed)?;
    for (client, _) in &connections {
        let warnings = rule_warnings(*client, None, Some(&text), machine);
        let is_new = |warning: &String| !plan.warnings.contains(warning);
        let warnings: Vec<String> = warnings.into_iter().filter(is_new).collect();
        plan.warnings.extend(warnings);
    }
    Ok(Draft {
        survey,
        plan,
        new,
        connections,
    })
}

/// Chooses the user's own servers. Those that a project shares are left to `migrate`, because others use them, too.
fn choice(clients: &[Client], moving: &Moving, secrets: &Choice) -> Choice {
    Choice {
        connecting: clients.iter().copied().collect(),
        scopes: vec![Scope::User, Scope::Local],
        only: moving.names.iter().cloned().collect(),
        without: moving.without.clone(),
        ..secrets.clone()
    }
}

fn launch(machine: &Machine, approval: Option<CodexApproval>) -> Result<Launch, Exit> {
    Ok(Launch {
        approval,
        ..machine.launch()?
    })
}

fn plan(
    survey: &Survey,
    choice: &Choice,
    approval: Option<CodexApproval>,
    machine: &Machine,
) -> Result<Plan, Exit> {
    let launch = launch(machine, approval)?;
    let made = Plan::new(
        survey,
        choice,
        &machine.paths.config_file,
        &launch,
        &machine.around,
    );
    Ok(made.map_err(anyhow::Error::from)?)
}

/// The servers that failed and are left out, by mcpzip's names for them.
fn dropped(arguments: &Arguments, trials: &[Tried], is_asking: bool) -> Result<Vec<String>, Exit> {
    let failing: Vec<&Tried> = trials.iter().filter(|trial| trial.fails()).collect();
    if arguments.keep_failing || failing.is_empty() {
        return Ok(Vec::new());
    }
    let mut kept = BTreeSet::new();
    if is_asking {
        let lines: Vec<Line> = failing
            .iter()
            .map(|trial| Line {
                text: trial.name.clone(),
                is_chosen: false,
            })
            .collect();
        kept.extend(dialog::choose(
            "These don't work now. Take them anyway?",
            &lines,
        )?);
    }
    let names = failing
        .iter()
        .enumerate()
        .filter(|(at, _)| !kept.contains(at));
    Ok(names.map(|(_, trial)| trial.name.clone()).collect())
}

/// Removes servers from the selection, by mcpzip's names for them.
fn leave_out(selection: &mut Selection, plan: &Plan, dropped: &[String]) {
    for item in &plan.items {
        if let Verdict::Moves { name, .. } | Verdict::Conflicts { name } = &item.verdict
            && dropped.contains(name)
        {
            selection.moving.leave(item);
        }
    }
    selection
        .popular
        .retain(|popular| !dropped.iter().any(|name| name == popular.name));
}

/// Prints the changes in a few lines.
fn summary(draft: &Draft, machine: &Machine, output: &Output) {
    let plan = &draft.plan;
    let clients = plan.edits.iter().filter(|edit| edit.client.is_some());
    let mut parts = vec![
        format!("{} new here", counted(draft.new.len(), "server")),
        format!("{} of clients", counted(clients.count(), "file")),
    ];
    if !plan.carried.is_empty() {
        let rules = counted(plan.carried.len(), "rule");
        parts.push(format!("{rules} carried over"));
    }
    output.line(strong(parts.join(", ")));
    migrate::show_files(&plan.edits, &plan.masker, machine, output);
}

/// Whether the user agrees to the changes, which are shown on request.
fn is_agreed(draft: &Draft, machine: &Machine, output: &Output) -> Result<bool, Exit> {
    output.line("");
    summary(draft, machine, output);
    loop {
        match dialog::decide("Write this?")? {
            Answer::Yes => return Ok(true),
            Answer::No => return Ok(false),
            Answer::Show => migrate::show_edits(&draft.plan, machine, output),
        }
    }
}

fn report(
    arguments: &Arguments,
    draft: &Draft,
    trials: &[Tried],
    (undo, logins): (Option<&str>, &[Value]),
    (machine, output): (&Machine, &Output),
) {
    if output.is_json() {
        let clients = draft.connections.iter().map(|(client, connection)| {
            let (state, name) = match connection {
                Connection::New(name) => ("connected", name),
                Connection::Already(name) => ("already", name),
            };
            json!({ "client": client.name(), "state": state, "entry": name })
        });
        output.json(&json!({
            "plan": migrate::report(&draft.survey, &draft.plan, &machine.paths.config_file),
            "new_servers": draft.new,
            "tests": trials.iter().map(Tried::to_json).collect::<Vec<_>>(),
            "clients": clients.collect::<Vec<_>>(),
            "logins": logins,
            "changed": undo.is_some(),
            "undo": undo,
        }));
        return;
    }
    output.line("");
    if draft.plan.edits.is_empty() {
        output.line(match missing(draft, machine) {
            None => good("everything is set up already; nothing was changed"),
            Some(_) => "nothing was changed".into(),
        });
    } else if arguments.dry_run {
        output.line(faint("nothing was changed, because of `--dry-run`"));
        return;
    } else {
        output.line(good("done"));
    }
    let later = twins::next_step(&draft.plan.secrets, machine);
    next(draft, trials, undo, later, output);
}

/// Prints the next steps for the user.
fn next(
    draft: &Draft,
    trials: &[Tried],
    undo: Option<&str>,
    later: Option<(String, String)>,
    output: &Output,
) {
    let new = draft
        .connections
        .iter()
        .filter(|(_, connection)| matches!(connection, Connection::New(_)));
    let moved = draft.plan.edits.iter().filter_map(|edit| edit.client);
    let mut restart: Vec<&str> = new
        .map(|(client, _)| client.title())
        .chain(moved.map(Client::title))
        .collect();
    restart.sort_unstable();
    restart.dedup();
    if undo.is_some() && !restart.is_empty() {
        output.line(format!("  restart {}", restart.join(", ")));
    }
    if draft.connections.is_empty() {
        output.line(format!(
            "  {} adds mcpzip to a client",
            strong(command_with_options("mcpzip connect CLIENT"))
        ));
    }
    for trial in trials.iter().filter(|trial| trial.needs_login()) {
        output.line(format!(
            "  {} logs in to {}",
            strong(command_with_options(&format!(
                "mcpzip login {}",
                trial.name
            ))),
            trial.name
        ));
    }
    for (trial, reason) in trials.iter().filter_map(|t| Some((t, t.fault()?))) {
        let is_here = draft.new.contains(&trial.name);
        let what = if is_here {
            "is taken over but does not work yet"
        } else {
            "was left where it is"
        };
        output.line(format!(
            "  {} {what}: {}",
            bad(printable(&trial.name)),
            printable(&reason)
        ));
    }
    if let Some((line, text)) = later {
        output.line(format!("  {} {text}", strong(line)));
    }
    output.line(format!(
        "  {} shows the current state",
        strong(command_with_options("mcpzip status"))
    ));
    if let Some(run) = undo {
        output.line(format!(
            "  {} reverts all of this {}",
            strong(command_with_options("mcpzip undo")),
            faint(format!("(run {run})"))
        ));
    }
}

fn listed(words: &[&str]) -> String {
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join(", ")
    }
}

fn client_line(client: Client, survey: &Survey, around: &Surroundings) -> Line {
    let file = client.user_location(around).path;
    let is_unreadable = survey.unreadable.iter().any(|(path, _)| *path == file);
    let own = survey
        .found
        .iter()
        .filter(|found| found.location.client == client);
    let (count, is_connected) = own.fold((0, false), |(count, is_own), found| {
        (
            count + usize::from(!found.is_mcpzip),
            is_own || found.is_mcpzip,
        )
    });
    let servers = match count {
        _ if is_unreadable => "its file cannot be read, see `mcpzip doctor`".to_owned(),
        0 => "no servers".to_owned(),
        1 => "1 server".to_owned(),
        count => format!("{count} servers"),
    };
    let connected = if is_connected { ", uses mcpzip" } else { "" };
    Line {
        text: format!("{:16} {servers}{connected}", client.title()),
        is_chosen: !is_unreadable,
    }
}

fn server_line(item: &Item, widest: usize) -> Line {
    let scope = if item.scope == Scope::User {
        String::new()
    } else {
        format!(", {}", item.scope.name())
    };
    let location = format!("{}{scope}", item.client.title());
    let note = match &item.verdict {
        Verdict::Moves {
            known: Known::Before,
            ..
        } => ", which mcpzip has".to_owned(),
        Verdict::Moves {
            name,
            known: Known::InThisRun,
        } => format!(", the same as {name}"),
        Verdict::Conflicts { name } => format!(", becomes {name}"),
        Verdict::Moves { name, .. } if *name != item.server => format!(", becomes {name}"),
        _ => String::new(),
    };
    let state = item.state().map(|state| format!(", {state}"));
    let off = state.unwrap_or_default();
    Line {
        text: format!("{:widest$}  {location}{note}{off}", printable(&item.server)),
        is_chosen: true,
    }
}

fn is_mcpzip(survey: &Survey, item: &Item) -> bool {
    let same = |found: &&Found| found.location.path == item.path && found.name == item.server;
    survey
        .found
        .iter()
        .filter(same)
        .any(|found| found.is_mcpzip)
}
