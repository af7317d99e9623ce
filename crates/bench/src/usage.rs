//! The resources that a process uses, from Linux's `/proc`.

use std::path::Path;

use anyhow::{Context as _, Result};

/// A megabyte of 1024 × 1024 bytes.
const MEGABYTE: f64 = 1024.0 * 1024.0;

/// The resources of a process at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Usage {
    /// Resident memory in megabytes.
    pub(crate) resident: f64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    /// The number of its descendants.
    pub(crate) processes: usize,
}

impl Usage {
    /// Reads the current use of the process `id`.
    pub(crate) fn of(id: u32) -> Result<Self> {
        let directory = Path::new("/proc").join(id.to_string());
        let status = std::fs::read_to_string(directory.join("status"))
            .context("memory is read from /proc")?;
        let field = |name: &str| -> Result<f64> {
            let line = status
                .lines()
                .find(|line| line.starts_with(name))
                .context("no such figure")?;
            Ok(line
                .split_whitespace()
                .nth(1)
                .context("no number")?
                .parse()?)
        };
        Ok(Self {
            resident: field("VmRSS:")? * 1024.0 / MEGABYTE,
            descriptors: std::fs::read_dir(directory.join("fd"))?.count(),
            threads: field("Threads:")? as usize,
            processes: descendants(id),
        })
    }
}

/// A process of a home.
#[cfg(target_os = "linux")]
pub(crate) struct Process {
    /// Its arguments, with a space behind each.
    pub(crate) command: String,
    /// Its proportional part of memory, in megabytes.
    pub(crate) memory: f64,
}

/// The processes with `HOME` set to `home`, and their descendants.
#[cfg(target_os = "linux")]
pub(crate) fn processes_of(home: &Path) -> Result<Vec<Process>> {
    let variable = format!("HOME={}\0", home.display());
    let is_of_home = |id: &u32| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        memchr::memmem::find(&environment, variable.as_bytes()).is_some()
    };
    let own: Vec<u32> = ids().filter(is_of_home).collect();
    let mut processes = Vec::new();
    for id in with_descendants(own) {
        // One that has just ended has none.
        let Ok(command) = std::fs::read(format!("/proc/{id}/cmdline")) else {
            continue;
        };
        let Ok(memory) = memory(id, &["Pss:"]) else {
            continue;
        };
        processes.push(Process {
            command: String::from_utf8_lossy(&command).replace('\0', " "),
            memory,
        });
    }
    Ok(processes)
}

/// The memory that a process has written and shares with no other, in megabytes.
#[cfg(target_os = "linux")]
pub(crate) fn private(id: u32) -> Result<f64> {
    memory(id, &["Private_Dirty:"])
}

#[cfg(target_os = "linux")]
fn memory(id: u32, fields: &[&str]) -> Result<f64> {
    let rollup = std::fs::read_to_string(format!("/proc/{id}/smaps_rollup"))?;
    let mut kilobytes = 0.0;
    for line in rollup.lines() {
        let mut words = line.split_whitespace();
        if words.next().is_some_and(|name| fields.contains(&name)) {
            kilobytes += words.next().context("no number")?.parse::<f64>()?;
        }
    }
    Ok(kilobytes * 1024.0 / MEGABYTE)
}

fn ids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The number of descendants of `id`.
fn descendants(id: u32) -> usize {
    with_descendants(vec![id]).len() - 1
}

/// These processes and all their descendants, each once.
fn with_descendants(mut found: Vec<u32>) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = ids()
        .filter_map(|child| Some((child, parent(child)?)))
        .collect();
    let mut at = 0;
    while at < found.len() {
        let own = found[at];
        for (child, parent) in &parents {
            if *parent == own && !found.contains(child) {
                found.push(*child);
            }
        }
        at += 1;
    }
    found
}

fn parent(id: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}
