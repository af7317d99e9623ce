//! `mcpzip auth`: shows logins, and stores API keys in the keychain.

use std::io::IsTerminal as _;

use console::Term;

use super::diagnostics::Exit;
use super::login::Accounts;
use super::output::{Output, bad, faint, good, strong};
use crate::config::Provider;
use crate::keychain::Keychain;
use crate::upstream::oauth::LoginStatus;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show the login at each remote server: issuer, account, scopes and expiry
    #[command(after_help = "Examples:
  mcpzip auth status
  mcpzip auth status --json")]
    Status,
    /// Store the API key of a language model in the keychain (`search.llm` with `"api_key": "keychain"`)
    #[command(after_help = "Examples:
  mcpzip auth key gemini
  pass show anthropic | mcpzip auth key anthropic")]
    Key {
        /// Provider of the key: gemini, anthropic or openai; the key is read from the terminal or from stdin
        #[arg(value_parser = provider)]
        provider: Provider,
    },
}

fn provider(word: &str) -> Result<Provider, String> {
    let known = [Provider::Gemini, Provider::Anthropic, Provider::OpenAi];
    let found = known.into_iter().find(|provider| provider.as_str() == word);
    found.ok_or_else(|| "use gemini, anthropic or openai".to_owned())
}

pub(super) async fn run(
    command: &Command,
    accounts: &Accounts,
    output: &Output,
) -> Result<(), Exit> {
    if let Command::Key { provider } = command {
        return keep_key(*provider, accounts, output);
    }
    let (mut known, mut by_command) = (Vec::new(), Vec::new());
    for (server, account) in accounts.all() {
        known.push((server.to_string(), account.status().await));
        by_command.extend(account.has_command().then(|| server.to_string()));
    }
    if output.is_json() {
        output.json(
            &known
                .iter()
                .filter_map(|(_, status)| status.as_ref().ok()?.as_ref())
                .collect::<Vec<_>>(),
        );
        for (server, error) in known
            .iter()
            .filter_map(|(server, status)| Some((server, status.as_ref().err()?)))
        {
            output.note(&format!("{server}: {error}"));
        }
        return Ok(());
    }
    if known.is_empty() {
        output.line(faint(
            "no remote server that may need a login is configured",
        ));
    }
    for (server, status) in &known {
        match status {
            Ok(Some(status)) => show(status, output),
            Ok(None) if by_command.contains(server) => {
                output.line(format!(
                    "{}  {}",
                    strong(server),
                    faint("no login, but a `headers_command`")
                ));
            }
            Ok(None) => output.line(format!("{}  {}", strong(server), faint("no login"))),
            Err(error) => output.line(format!("{}  {}", strong(server), bad(error))),
        }
    }
    Ok(())
}

fn keep_key(provider: Provider, accounts: &Accounts, output: &Output) -> Result<(), Exit> {
    let name = provider.as_str();
    let keychain = Keychain::of(accounts.variables());
    let keychain = keychain.ok_or_else(|| {
        Exit::failed("there is no keychain on this machine; set the key in a variable instead")
    })?;
    let key = if std::io::stdin().is_terminal() {
        output.note(&format!("key for {name} (not shown):"));
        Term::stderr().read_secure_line()?
    } else {
        let mut text = String::new();
        std::io::stdin().read_line(&mut text)?;
        text
    };
    let key = key.trim();
    if key.is_empty() {
        return Err(Exit::failed("no key was given"));
    }
    let label = format!("mcpzip: key for {name}");
    keychain
        .set(&provider.keychain_name(), &label, key.as_bytes())
        .map_err(anyhow::Error::from)?;
    output.line(good(format!("the keychain has the key for {name}")));
    Ok(())
}

fn show(status: &LoginStatus, output: &Output) {
    let life = match (status.expires_in, status.refreshable) {
        (Some(0), false) => bad("expired"),
        (Some(0), true) => good("logged in, renewed at the next call"),
        (Some(seconds), true) => good(format!(
            "logged in, renewed automatically within {}",
            time(seconds)
        )),
        (Some(seconds), false) => good(format!(
            "logged in for {}, then a new login is needed",
            time(seconds)
        )),
        (None, _) => good("logged in until the server says otherwise"),
    };
    output.line(format!("{}  {life}", strong(&status.server)));
    let client = status
        .client_id
        .as_deref()
        .map(|id| format!(", client {id}"))
        .unwrap_or_default();
    let storage = if status.sealed {
        ", sealed by the keychain"
    } else {
        ", in a file"
    };
    let provider = status.identity_provider.as_deref();
    let provider = provider
        .map(|provider| format!(", by the login at {provider}"))
        .unwrap_or_default();
    output.line(faint(format!(
        "  at {}{client}{provider}{storage}",
        status.issuer
    )));
    if !status.scopes.is_empty() {
        output.line(faint(format!("  for {}", status.scopes.join(", "))));
    }
    if !status.missing_scopes.is_empty() {
        let missing = status.missing_scopes.join(", ");
        output.line(format!(
            "  {} {missing}: run `mcpzip login {}`",
            bad("lacks"),
            status.server
        ));
    }
}

/// A duration in its largest unit.
fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
