//! Checks of the daemon: its sockets, its HTTP address, the servers that it could share, and the room for processes.

use super::super::daemon;
use super::super::setup::Machine;
use super::Examination;
use super::finding::Finding;
#[cfg(unix)]
use super::finding::Fix;
use super::kinds;
use crate::app::App;
use crate::config::{DaemonMode, Scope, Transport};
use crate::proxy::counted;

pub(super) fn examine(machine: &Machine, app: Option<&App>, examination: &mut Examination) {
    let environment = &machine.around.environment;
    #[cfg(unix)]
    for fault in crate::daemon::survey(&machine.paths, environment) {
        examination.add(finding(fault));
    }
    if let Ok(Some(status)) = daemon::status(&machine.paths, environment)
        && let Some(fault) = daemon::http_fault(&status)
    {
        examination.add(Finding::new(&kinds::DAEMON_HTTP, "http", fault));
    }
    #[cfg(target_os = "linux")]
    if let Some(finding) = process_limit() {
        examination.add(finding);
    }
    if let Some(app) = app {
        examination.findings.extend(shareable(app));
        let servers = daemon::servers(&machine.paths, environment);
        examination
            .findings
            .extend(with_several_processes(app, servers));
    }
}

#[cfg(unix)]
fn finding(fault: crate::daemon::SocketFault) -> Finding {
    use crate::daemon::SocketFault;
    match fault {
        SocketFault::Directory { path, reason } => {
            let subject = path.display().to_string();
            let what = format!("`{subject}` is not used for the daemon's socket: {reason}");
            Finding::new(&kinds::DAEMON_DIRECTORY, subject, what)
        }
        SocketFault::Open { path, mode } => {
            let subject = path.display().to_string();
            let what = format!("`{subject}` has the mode {mode:o}");
            Finding::new(&kinds::DAEMON_SOCKET_OPEN, subject, what)
                .with_fix(Fix::Close(vec![super::files::placed(&path)]))
        }
        SocketFault::Orphan { path } => {
            let subject = path.display().to_string();
            let what = format!("nothing listens on `{subject}`");
            Finding::new(&kinds::DAEMON_ORPHAN, subject, what).with_fix(Fix::RemoveFile(path))
        }
        SocketFault::Other {
            path,
            process,
            version,
            sessions,
        } => {
            let what = format!(
                "process {process} (mcpzip {version}) serves {} over `{}`",
                counted(sessions, "session"),
                path.display()
            );
            Finding::new(&kinds::DAEMON_OTHER, format!("process {process}"), what)
        }
    }
}

/// The servers that sessions would share if there were a daemon.
fn shareable(app: &App) -> Option<Finding> {
    let config = app.proxy().unscoped().config();
    // Elsewhere the daemon was not tried enough to propose it.
    if config.daemon.mode == DaemonMode::Auto || !cfg!(target_os = "linux") {
        return None;
    }
    let servers = config.servers.iter();
    let names: Vec<&str> = servers
        .filter(|(_, entry)| {
            !entry.disabled
                && matches!(entry.transport, Transport::Stdio(_))
                && entry.sharing(app.session(), false).scope != Scope::Session
        })
        .map(|(name, _)| name.as_str())
        .collect();
    // One process is not worth a setting.
    if names.len() < 2 {
        return None;
    }
    let what = format!(
        "each session runs processes of its own for {}: {}. With a daemon, each further session of a directory has {} fewer",
        counted(names.len(), "server"),
        names.join(", "),
        names.len(),
    );
    Some(Finding::new(&kinds::DAEMON_SHARE, "daemon", what))
}

/// The local servers of the running daemon that have several processes because clients differ in what they can be asked.
fn with_several_processes(app: &App, servers: Vec<daemon::Server>) -> Vec<Finding> {
    let config = app.proxy().unscoped().config();
    let mut findings = Vec::new();
    for daemon::Server {
        server,
        connections,
        sessions,
    } in servers
    {
        let entry = config
            .servers
            .iter()
            .find(|(name, _)| name.as_str() == server);
        let is_local =
            entry.is_some_and(|(_, entry)| matches!(entry.transport, Transport::Stdio(_)));
        if connections > 1 && is_local {
            let what = format!(
                "{} share `{server}`, which has {connections} processes",
                counted(sessions.len(), "session")
            );
            findings.push(Finding::new(&kinds::DAEMON_CAPABILITIES, server, what));
        }
    }
    findings
}

#[cfg(target_os = "linux")]
/// Whether the user's processes and threads are near the limit of the system.
fn process_limit() -> Option<Finding> {
    use rustix::process::{Resource, getrlimit, getuid};
    let limit = getrlimit(Resource::Nproc).current?;
    let user = getuid().as_raw().to_string();
    let threads = |status: &str| -> Option<u64> {
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()
        };
        (value("Uid:")? == user).then(|| value("Threads:")?.parse().ok())?
    };
    let processes = std::fs::read_dir("/proc").ok()?;
    let used: u64 = processes
        .flatten()
        .filter_map(|process| std::fs::read_to_string(process.path().join("status")).ok())
        .filter_map(|status| threads(&status))
        .sum();
    // A tenth is left for the servers of one session or two.
    if used.saturating_mul(10) < limit.saturating_mul(9) {
        return None;
    }
    let what = format!("{used} of at most {limit} processes and threads of this user run");
    Some(Finding::new(&kinds::PROCESS_LIMIT, "processes", what))
}
