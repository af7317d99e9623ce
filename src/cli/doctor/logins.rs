//! Checks of the logins at remote servers and of the keychain.

use anyhow::Context as _;

use super::super::printable::printable;
use super::super::setup::Machine;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::app::App;
use crate::config::{Credentials, Environment};
use crate::keychain::Keychain;
use crate::text::chain;
use crate::tool::ServerName;
use crate::upstream::oauth::DIRECTORY;

/// A name that no secret has. Asking for it shows whether the keychain works.
const PROBE: &str = "doctor";

pub(super) async fn examine(
    app: &App,
    machine: &Machine,
    only: Option<&ServerName>,
    examination: &mut Examination,
) {
    let proxy = app.proxy();
    let config = proxy.unscoped().config();
    let mut has_account = false;
    for name in config
        .servers
        .keys()
        .filter(|name| only.is_none_or(|only| only == *name))
    {
        let Some(account) = proxy.inventory.account(name) else {
            continue;
        };
        has_account = true;
        match account.status().await {
            Ok(status) => {
                let missing = status
                    .as_ref()
                    .map(|status| status.missing_scopes.join(", "))
                    .unwrap_or_default();
                if !missing.is_empty() {
                    let what = format!("it lacks {}", printable(&missing));
                    examination.add(Finding::new(&kinds::LOGIN_SCOPES, name.as_str(), what));
                }
                if let Some(seen) = examination
                    .servers
                    .iter_mut()
                    .find(|seen| seen.name == name.as_str())
                {
                    seen.login = status;
                }
            }
            Err(error) => {
                examination.add(Finding::new(
                    &kinds::LOGIN_UNREADABLE,
                    name.as_str(),
                    format!("{error:#}"),
                ));
            }
        }
    }
    if only.is_some() {
        return;
    }
    let logins = machine.paths.state_dir.join(DIRECTORY);
    for file in std::fs::read_dir(&logins).into_iter().flatten().flatten() {
        if file
            .path()
            .extension()
            .is_some_and(|ending| ending == "damaged")
        {
            let path = file.path().display().to_string();
            examination.add(Finding::new(
                &kinds::LOGIN_DAMAGED,
                path.clone(),
                format!("`{path}` was set aside"),
            ));
        }
    }
    if has_account && config.credentials != Credentials::File {
        let environment = machine.around.environment.clone();
        // The keychain may take seconds, and other tasks go on meanwhile.
        let asked = app.run_blocking(move || keychain(&environment)).await;
        if let Some(Err(reason)) = asked {
            let kind = match config.credentials {
                Credentials::Keychain => &kinds::KEYCHAIN_UNUSABLE,
                Credentials::Auto | Credentials::File => &kinds::KEYCHAIN_NONE,
            };
            examination.add(Finding::new(kind, "keychain", chain(reason.as_ref())));
        }
    }
}

fn keychain(environment: &Environment) -> anyhow::Result<()> {
    let keychain = Keychain::of(environment).context("there is no keychain on this machine")?;
    keychain.get(PROBE)?;
    Ok(())
}
