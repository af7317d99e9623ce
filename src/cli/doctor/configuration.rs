//! Checks of the configuration: whether it exists, and which parts of it cannot be used.

use super::super::migrate::older_note;
use super::super::printable::printable;
use super::super::setup::Machine;
use super::super::twins::listed;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::clients::{RunState, Summary, literal_secrets};
use crate::config::{
    Config, ConfigWarning, EntryError, Error, SecretFault, any_program, older_config_file,
};

/// Reads the configuration and reports its faults. `None` if it cannot be used.
pub(super) fn examine(
    machine: &Machine,
    only: Option<&str>,
    examination: &mut Examination,
) -> Option<Config> {
    let path = machine.paths.config_file.display().to_string();
    let environment = &machine.around.environment;
    let is_over = |run: &Summary| {
        run.state == RunState::Done && run.command.starts_with("migrate --from mcpzip-0.1")
    };
    let older = older_config_file(environment).filter(|_| only.is_none());
    // Another finding says so if the runs cannot be read.
    let runs = machine.journal().list().unwrap_or_default();
    if let Some(older) = older.filter(|_| !runs.iter().any(is_over)) {
        let older = older.display().to_string();
        examination.add(Finding::new(
            &kinds::CONFIG_OLDER,
            older.clone(),
            format!("`{older}` is there"),
        ));
    }
    let config = match Config::load(&machine.paths, environment) {
        Ok(config) => config,
        Err(error) => {
            let kind = match error {
                Error::Missing { .. } | Error::NoHome { .. } | Error::Path { .. } => {
                    &kinds::CONFIG_MISSING
                }
                Error::Read { .. } | Error::Encoding { .. } | Error::Secrets { .. } => {
                    &kinds::CONFIG_UNREADABLE
                }
                Error::Empty { .. }
                | Error::Syntax { .. }
                | Error::Shape { .. }
                | Error::Profile(_) => &kinds::CONFIG_SYNTAX,
            };
            let older = matches!(error, Error::Missing { .. })
                .then(|| older_note(&machine.paths.config_file, environment))
                .flatten();
            let older = older.map(|note| format!("; {note}")).unwrap_or_default();
            // `{:#}` adds the causes, such as the system's error text.
            examination.add(Finding::new(
                kind,
                path,
                format!("{:#}{older}", anyhow::Error::from(error)),
            ));
            return None;
        }
    };
    let masked = |text: String| config.masker.mask(&text).into_owned();
    for fault in config
        .faults
        .iter()
        .filter(|fault| only.is_none_or(|only| only == fault.name))
    {
        let kind = match &fault.fault {
            EntryError::MissingVariable { .. } => &kinds::VARIABLE_MISSING,
            EntryError::Secret { fault, .. } => match fault {
                SecretFault::Unset(_) => &kinds::SECRET_UNSET,
                SecretFault::Unavailable { .. } | SecretFault::Absent => &kinds::SECRET_LOCKED,
            },
            _ => &kinds::SERVER_ENTRY,
        };
        examination.add(Finding::new(
            kind,
            fault.name.clone(),
            masked(format!("{path}:{fault}")),
        ));
    }
    let any = any_program();
    let is_unknown = |name| {
        let server = config.servers.get(name);
        server.is_some_and(|server| server.transport.programs().contains(&any))
    };
    let raised = config.raised_trust.iter();
    for (name, by) in raised.filter(|(name, _)| only.is_none_or(|only| only == name.as_str())) {
        let trust = config
            .servers
            .get(name)
            .map_or("", |entry| entry.trust.text());
        let cause = match is_unknown(name) {
            true => format!("it may start the program of `{by}`"),
            false => format!("`{by}` is the same program or URL"),
        };
        examination.add(Finding::new(
            &kinds::SERVER_TRUST_SHARED,
            name.to_string(),
            format!("its `trust` is \"{trust}\", because {cause}"),
        ));
    }
    for name in config.servers.keys() {
        let is_meant = only.is_none_or(|only| only == name.as_str());
        if is_meant && is_unknown(name) {
            let what = "it cannot be told from its entry which program it starts";
            examination.add(Finding::new(
                &kinds::SERVER_PROGRAM_UNKNOWN,
                name.to_string(),
                what,
            ));
        }
    }
    if only.is_none() {
        let literals = literal_secrets(&machine.paths.config_file);
        if !literals.is_empty() {
            let what = masked(printable(&listed(&literals)));
            examination.add(Finding::new(&kinds::SECRET_LITERAL, path.clone(), what));
        }
        for warning in &config.warnings {
            let kind = match warning.kind {
                ConfigWarning::UnknownKey { .. } => &kinds::CONFIG_UNKNOWN_KEY,
                ConfigWarning::Refused { .. } => &kinds::CONFIG_REFUSED,
                // Nothing is missing while the server is off.
                ConfigWarning::NoServers
                | ConfigWarning::Disabled {
                    fault: EntryError::MissingVariable { .. },
                    ..
                } => continue,
                _ => &kinds::CONFIG_ODD,
            };
            examination.add(Finding::new(
                kind,
                path.clone(),
                masked(format!("{path}:{warning}")),
            ));
        }
        if config.servers.is_empty() && config.faults.is_empty() {
            examination.add(Finding::new(
                &kinds::CONFIG_NO_SERVERS,
                path.clone(),
                format!("`{path}` names no server"),
            ));
        }
    }
    Some(config)
}
