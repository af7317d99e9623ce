//! `mcpzip login` and `mcpzip logout`: logging in to remote servers and out again.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::browser::Browser;
use super::completions;
use super::diagnostics::Exit;
use super::output::{Output, good, strong};
use super::recorder::Recorder;
use super::written_entry::{WrittenEntry, WrittenProvider};
use crate::audit::{Kind, Outcome};
use crate::config::{Config, Environment, Paths, SessionEnv, Transport};
use crate::secret::Secret;
use crate::shutdown::{Tasks, spawn_thread};
use crate::telemetry;
use crate::tool::ServerName;
use crate::upstream;
use crate::upstream::oauth::{
    Account, DIRECTORY, Flow, IssuerChange, LoggedOut, LoginError, LoginRequest, LoginStatus,
    LoginStorage, RedirectAnswer, SharedLogins, Vault, at_server, forget, forget_shared,
};

#[derive(Debug, clap::Args)]
#[command(
    override_usage = "mcpzip login [OPTIONS] <SERVER>\n       mcpzip login [OPTIONS] --all",
    after_help = "Examples:
  mcpzip login linear
  mcpzip login --all
  mcpzip login linear --from mcp-remote
  mcpzip login github --with-token < token.txt
  mcpzip login linear --no-browser

`mcpzip login` alone lists the servers that can be named. With `--no-browser`, open the printed URL in a browser \
anywhere, and paste the URL of the page where it ends."
)]
pub(super) struct LoginArguments {
    /// Remote server, by its name in the configuration
    #[arg(conflicts_with = "all", add = completions::of_servers())]
    server: Option<String>,
    /// Log in to every remote server that needs a login and has none
    #[arg(long)]
    all: bool,
    /// Print the URL without opening a browser
    #[arg(long)]
    no_browser: bool,
    /// Scopes to request, separated by commas [default: those that the server names]
    #[arg(long, value_delimiter = ',', value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Store a token that you made at the server, read from stdin; for servers without OAuth
    #[arg(long, conflicts_with_all = ["all", "scopes", "no_browser", "from"])]
    with_token: bool,
    /// Take over the login that another program has at the same URL
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["all", "scopes", "no_browser"])]
    from: Option<Source>,
}

/// Programs whose logins can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Source {
    McpRemote,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  mcpzip logout linear
  mcpzip logout linear --json")]
pub(super) struct LogoutArguments {
    /// Name of the server in the configuration
    #[arg(add = completions::of_servers())]
    server: String,
}

/// The accounts of a configuration, with the context that they need.
pub(super) struct Accounts {
    config: Config,
    /// The configuration as it is written.
    text: String,
    environment: Arc<upstream::UpstreamContext>,
    tasks: Tasks,
    recorder: Recorder,
    /// The directory of the logins, without a store.
    directory: PathBuf,
}

impl Accounts {
    pub(super) fn new(paths: &Paths, variables: Environment) -> Result<Self, Exit> {
        let text = Config::text(paths, &variables)?;
        let config = Config::parse(&text, &paths.config_file, &variables)?;
        telemetry::hide(&config.masker);
        let tasks = Tasks::new();
        let directory = paths.state_dir.join(DIRECTORY);
        let vault = match variables.store() {
            Some(store) => {
                let place = LoginStorage::of_program(SharedLogins::new(store.clone()));
                Vault::of_store(place, store.keys(), tasks.clone())
            }
            None => Vault::new(
                LoginStorage::Directory(directory.clone()),
                config.credentials,
                &variables,
                tasks.clone(),
            ),
        };
        let mut environment = upstream::UpstreamContext::new(
            upstream::SharedServers::of_one(tasks.clone()),
            SessionEnv::here(variables),
            None,
        );
        environment.logins = Some(Arc::new(vault));
        Ok(Self {
            recorder: Recorder::new(config.clone(), paths),
            config,
            text,
            environment: Arc::new(environment),
            tasks,
            directory,
        })
    }

    /// The environment variables of this process.
    pub(super) fn variables(&self) -> &Environment {
        &self.environment.variables
    }

    /// Why the entry of a server in the configuration cannot be used.
    fn unusable(&self, WrittenEntry { name, key, .. }: &WrittenEntry) -> Option<String> {
        let is_read = |server: &ServerName| server.as_str() == name;
        let is_there = self.config.names.contains(name);
        match self.config.faults.iter().find(|fault| fault.name == *key) {
            Some(fault) => Some(fault.fault.to_string()),
            // The faults of a disabled server are not kept.
            None if is_there && !self.config.servers.keys().any(is_read) => {
                Some("its entry cannot be used".to_owned())
            }
            None => None,
        }
    }

    /// Deletes the logins at a server and at its identity provider, also if its entry cannot be used. Returns whether there was one.
    async fn forget(&self, entry: &WrittenEntry) -> Result<bool, Exit> {
        let provider = match &entry.provider {
            Some(WrittenProvider::Known(issuer, client)) => Some((&**issuer, &**client)),
            _ => None,
        };
        let is_wanted = at_server(&entry.name, provider);
        let forgotten = match self.variables().store() {
            Some(store) => forget_shared(store.as_ref(), is_wanted).await,
            None => forget(&self.directory, is_wanted).await,
        };
        let forgotten = forgotten
            .map_err(|error| Exit::failed(format!("the login cannot be removed: {error}")))?;
        Ok(forgotten > 0)
    }

    /// The account at one server.
    fn of(&self, name: &str) -> Result<Account, Exit> {
        let fault = self.config.faults.iter().find(|fault| fault.name == name);
        if let Some(fault) = fault {
            return Err(Exit::failed(fault.to_string()));
        }
        let entry = self
            .config
            .servers
            .iter()
            .find(|(server, _)| server.as_str() == name);
        let (server, entry) = entry.ok_or_else(|| Exit::unknown_server(name, &self.config))?;
        let account = Account::of_entry(server, entry, &self.environment).map_err(exit)?;
        account.ok_or_else(|| {
            Exit::failed(format!(
                "server `{name}` needs no login: {}; `mcpzip auth status` shows the servers that take one",
                match entry.transport {
                    Transport::Stdio(_) => "it is a local program",
                    _ => "its `headers` have an `Authorization`, which goes before a login; remove it first if the server refuses it",
                }
            ))
        })
    }

    /// The accounts of all enabled servers that may have one.
    pub(super) fn all(&self) -> impl Iterator<Item = (&ServerName, Account)> {
        let used = self
            .config
            .servers
            .iter()
            .filter(|(_, entry)| !entry.disabled);
        used.filter_map(|(server, entry)| {
            Some((
                server,
                Account::of_entry(server, entry, &self.environment).ok()??,
            ))
        })
    }

    /// The error for a missing server name, with the servers that can be named.
    async fn without_server(&self) -> Exit {
        let mut servers = Vec::new();
        for (server, account) in self.all() {
            let state = match account.status().await {
                Ok(Some(_)) => "logged in",
                Ok(None) => "no login",
                Err(_) => "its login cannot be read",
            };
            servers.push(format!("{server} ({state})"));
        }
        Exit::bad_usage(match servers.as_slice() {
            [] => "name a remote server; the configuration has none that takes a login. `mcpzip add NAME URL` adds one"
                .to_owned(),
            servers => format!(
                "name the server, or give `--all`: {}",
                servers.join(", ")
            ),
        })
    }

    /// Writes a login, or its end, to the audit log.
    async fn record(&self, server: &str, outcome: Outcome, detail: &str, output: &Output) {
        let event = (Kind::Login, outcome);
        let server = Some(server);
        self.recorder.note(event, server, detail, output).await;
    }

    /// Shows how a login ended, writes it to the audit log, and tries its token at the server.
    ///
    /// # Errors
    /// When the login failed, or the server refuses its token. A login that could not be tried is not an error.
    async fn conclude(
        &self,
        account: &Account,
        outcome: Result<LoginStatus, LoginError>,
        output: &Output,
    ) -> Result<(), LoginError> {
        let server = account.server().as_str();
        match outcome {
            Ok(status) => {
                let detail = format!("logged in by a command at {}", status.issuer);
                self.record(server, Outcome::Ok, &detail, output).await;
                show(&status, output);
            }
            Err(error) => {
                let detail = "a login by a command failed";
                self.record(server, Outcome::Failed, detail, output).await;
                return Err(error);
            }
        }
        let tried = {
            let _spinner = output.spinner(format!("trying the login at {server}"));
            account.try_login().await
        };
        match tried {
            Err(error @ LoginError::NotAccepted { .. }) => {
                let detail = "the server refused the token of a new login";
                self.record(server, Outcome::Failed, detail, output).await;
                Err(error)
            }
            Err(error) => {
                output.note(&format!("the login could not be tried: {error}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Waits for requests in progress. A renewed token is stored first.
    pub(super) async fn finish(&self) {
        self.tasks.finish().await;
    }
}

pub(super) async fn log_in(
    arguments: &LoginArguments,
    accounts: &Accounts,
    output: &Output,
) -> Result<(), Exit> {
    if arguments.server.is_none() && !arguments.all {
        return Err(accounts.without_server().await);
    }
    let browser = if arguments.no_browser {
        Browser::None
    } else {
        Browser::of(&accounts.environment.variables)
    };
    let request = LoginRequest {
        scopes: arguments.scopes.clone(),
        issuer: match arguments.server {
            Some(_) => IssuerChange::Allowed,
            None => IssuerChange::Refused,
        },
    };
    // A server that is named gets a new login even if it has one, because the old one may lack scopes.
    if let Some(name) = &arguments.server {
        if let Some(Source::McpRemote) = arguments.from {
            return take_over(name, accounts, output).await;
        }
        let account = accounts.of(name)?;
        let status = if arguments.with_token {
            with_token(&account, output).await
        } else {
            match one(account.clone(), &request, &browser, output).await {
                Err(error) if error.may_take_token() && output.can_ask() => {
                    output.notable(&error.to_string());
                    with_token(&account, output).await
                }
                outcome => outcome,
            }
        };
        return accounts
            .conclude(&account, status, output)
            .await
            .map_err(exit);
    }
    let (mut failed, mut are_unreachable, mut is_idle) = (Vec::new(), true, true);
    let mut without_login = Vec::new();
    for (server, account) in accounts.all() {
        if account.has_command() {
            continue;
        }
        match account.status().await {
            Ok(Some(status)) if status.missing_scopes.is_empty() => continue,
            Ok(_) => {}
            // A login that cannot be opened is replaced only if its server is named.
            Err(error) => {
                are_unreachable = false;
                failed.push(format!("{server}: {error}"));
                continue;
            }
        }
        match one(account.clone(), &request, &browser, output).await {
            Err(LoginError::NotOffered { .. }) => {}
            Err(error @ LoginError::NoOAuth { .. }) => without_login.push(error.to_string()),
            Err(error) if error.may_take_token() => without_login.push(format!(
                "server `{server}`: {error}. Or `mcpzip login {server} --with-token` keeps a token that you make there"
            )),
            outcome => {
                is_idle = false;
                let concluded = accounts.conclude(&account, outcome, output).await;
                if let Err(error) = concluded {
                    are_unreachable &= matches!(error, LoginError::Fetch { .. });
                    failed.push(format!("{server}: {:#}", anyhow::Error::from(error)));
                }
            }
        }
    }
    // Only a person can do something about these.
    for server in &without_login {
        output.note(server);
    }
    if failed.is_empty() && without_login.is_empty() && is_idle {
        output
            .note("no server needs a login; `mcpzip auth status` shows the logins that there are");
    }
    match (failed.is_empty(), are_unreachable) {
        (true, _) => Ok(()),
        (false, true) => Err(Exit::unavailable(failed.join("\n"))),
        (false, false) => Err(Exit::failed(failed.join("\n"))),
    }
}

async fn take_over(name: &str, accounts: &Accounts, output: &Output) -> Result<(), Exit> {
    let account = accounts.of(name)?;
    let Some(inherited) = account.inherited() else {
        return Err(Exit::failed(format!(
            "no login of mcp-remote was found for the URL of `{name}`"
        )));
    };
    output.note(&format!(
        "taking over the login in {}",
        inherited.path.display()
    ));
    let status = account.take_over(inherited).await;
    let concluded = accounts.conclude(&account, status, output).await;
    concluded.map_err(exit)?;
    output.note("do not start mcp-remote for this server any more: when one of the two renews the login, the other may be logged out");
    Ok(())
}

pub(super) async fn log_out(
    arguments: &LogoutArguments,
    accounts: &Accounts,
    output: &Output,
) -> Result<(), Exit> {
    let entry = WrittenEntry::of(&arguments.server, &accounts.text);
    let name = &entry.name;
    let mut fault = accounts.unusable(&entry);
    let (ended, provider) = match fault.is_none().then(|| accounts.of(name)) {
        Some(Ok(account)) => {
            let ended = account.log_out().await.map_err(exit)?;
            (ended, account.identity_provider().map(str::to_owned))
        }
        // Without its entry, or values that it lacks, a login can be deleted, but not revoked.
        no_account => {
            let was_there = accounts.forget(&entry).await?;
            if let Some(Err(error)) = no_account {
                if !was_there {
                    return Err(error);
                }
                fault = Some(error.to_string());
            }
            let ended = LoggedOut {
                was_there,
                ..LoggedOut::default()
            };
            let provider = match &entry.provider {
                Some(WrittenProvider::Known(issuer, _)) => Some(issuer.clone()),
                Some(WrittenProvider::Unknown) => {
                    output.note("a login at its identity provider is kept: `oauth.idp` of the entry needs a value that is not known");
                    None
                }
                None => None,
            };
            (ended, provider)
        }
    };
    let was_there = ended.was_there;
    if let Some(provider) = provider.filter(|_| was_there) {
        output.note(&format!(
            "the login at {provider} is removed, too; other servers that use it go on until their tokens end"
        ));
    }
    if was_there {
        let detail = "logged out by a command";
        accounts.record(name, Outcome::Ok, detail, output).await;
    }
    let mut reasons = ended.reasons();
    reasons.extend(fault.clone().filter(|_| was_there));
    if output.is_json() {
        let revoked = was_there && reasons.is_empty();
        output.json(&serde_json::json!({ "server": name, "logged_out": was_there, "revoked": revoked, "not_revoked": reasons }));
    } else if was_there {
        output.line(format!("{} logged out of {}", good("✓"), strong(name)));
    } else {
        output.line(format!("there was no login at {}", strong(name)));
    }
    if reasons.is_empty() {
        return Ok(());
    }
    let told = LoggedOut::still_valid(name, &reasons);
    let mut unrevoked = ended.unrevoked.iter();
    let is_offered = |error: &LoginError| !matches!(error, LoginError::NoRevocation { .. });
    if fault.is_none() && !unrevoked.clone().any(is_offered) {
        output.note(&told);
        return Ok(());
    }
    let is_away = unrevoked.any(|error| matches!(error, LoginError::Fetch { .. }));
    Err(match is_away {
        true => Exit::unavailable(told),
        false => Exit::failed(told),
    })
}

async fn one(
    account: Account,
    request: &LoginRequest,
    browser: &Browser,
    output: &Output,
) -> Result<LoginStatus, LoginError> {
    if account.logs_in_alone() {
        match account.log_in_alone(request.issuer).await {
            Err(error) if error.wants_person() => {}
            outcome => return outcome.inspect(|status| note_move(status, output)),
        }
    }
    let server = account.server().clone();
    let flow = Flow::begin(account, request).await?;
    if let Some(before) = flow.moved_from() {
        output.note(&moved(before, flow.issuer()));
    }
    let opened = browser.open(flow.url());
    output.note(&match opened {
        true => {
            format!(
                "opening the browser to log in to {server} at {}; if no page opens, open this URL:",
                flow.issuer()
            )
        }
        false => format!(
            "to log in to {server} at {}, open this URL in any browser:",
            flow.issuer()
        ),
    });
    // The URL has lines of its own and the default colour, so that it is easy to copy.
    output.notable(&format!("\n{}\n", flow.url()));
    let mut pasted = lines().unwrap_or_else(|error| {
        output.note(&format!("a URL cannot be pasted here: {error}"));
        mpsc::channel(1).1
    });
    if !opened || std::io::stdin().is_terminal() {
        output.note("waiting; if the browser ends at a page that does not load, paste the URL of that page here:");
    }
    let answer = loop {
        tokio::select! {
            answer = flow.answer() => break answer?,
            Some(line) = pasted.recv() => match take(&flow, &line, output) {
                Some(answer) => break answer,
                None => continue,
            },
        }
    };
    let status = flow.finish(answer).await?;
    note_move(&status, output);
    Ok(status)
}

/// Notes that a login has sent the configured credentials to another issuer than before.
fn note_move(status: &LoginStatus, output: &Output) {
    if let Some(before) = &status.moved_from {
        output.note(&moved(before, &status.issuer));
    }
}

/// Stores a token that is read from the terminal or a pipe.
async fn with_token(account: &Account, output: &Output) -> Result<LoginStatus, LoginError> {
    let server = account.server().to_string();
    let unread = |error: std::io::Error| LoginError::TokenRefused {
        server: server.clone(),
        reason: format!("it cannot be read: {error}"),
    };
    let token = if std::io::stdin().is_terminal() {
        output.notable(&format!("{}; Ctrl-C gives up", account.token_hint()));
        output
            .ask_secret(&format!("Token for {server} (not shown)"))
            .map_err(unread)?
    } else {
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .read_line(&mut text)
            .map_err(unread)?;
        text.trim().to_owned()
    };
    account.keep_token(Secret::new(token)).await
}

/// The note that the configured credentials will be sent to another issuer than before.
fn moved(before: &str, now: &str) -> String {
    format!(
        "the configured credentials were sent to {before} so far; this login sends them to {now}"
    )
}

fn take(flow: &Flow, line: &str, output: &Output) -> Option<RedirectAnswer> {
    if line.trim().is_empty() {
        return None;
    }
    flow.pasted(line)
        .map_err(|error| {
            output.note(&format!(
                "{error}: paste the whole URL, as {}?…",
                flow.redirect()
            ));
        })
        .ok()
}

/// Reads lines of stdin on a thread of its own, because a read of the terminal may never end.
///
/// # Errors
/// When the system cannot start a thread.
fn lines() -> std::io::Result<mpsc::Receiver<String>> {
    let (sender, receiver) = mpsc::channel(1);
    spawn_thread("lines", move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

fn show(status: &LoginStatus, output: &Output) {
    if output.is_json() {
        output.json(status);
        return;
    }
    let scopes = if status.scopes.is_empty() {
        String::new()
    } else {
        format!(", for {}", status.scopes.join(", "))
    };
    let provider = match &status.identity_provider {
        Some(provider) => format!(" by the login at {provider}"),
        None => String::new(),
    };
    output.line(format!(
        "{} logged in to {} at {}{provider}{scopes}",
        good("✓"),
        strong(&status.server),
        status.issuer
    ));
}

fn exit(error: LoginError) -> Exit {
    match error {
        LoginError::Fetch { .. } => Exit::unavailable(format!(
            "{:#}\nhint: check the `url` of the server in the configuration, whether the server runs there, and what is between: VPN, \
             firewall, proxy (`HTTPS_PROXY`)",
            anyhow::Error::from(error)
        )),
        error => Exit::from(anyhow::Error::from(error)),
    }
}
