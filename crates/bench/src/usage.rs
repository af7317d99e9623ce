//! What a process takes of the machine, as Linux tells in `/proc`.

use std::path::Path;

use anyhow::{Context as _, Result};

/// One of the bytes that systems count in.
const MEGABYTE: f64 = 1024.0 * 1024.0;

/// A process at one moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Usage {
    /// In megabytes.
    pub(crate) resident: f64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    /// Those it started, and those that they did, without itself.
    pub(crate) processes: usize,
}

impl Usage {
    /// What the process `id` takes now.
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

/// How many processes come of `id`.
fn descendants(id: u32) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = ids
        .filter_map(|child| Some((child, parent(child)?)))
        .collect();
    let (mut found, mut at) = (vec![id], 0);
    while at < found.len() {
        let own = found[at];
        found.extend(
            parents
                .iter()
                .filter(|(_, parent)| *parent == own)
                .map(|(child, _)| *child),
        );
        at += 1;
    }
    found.len() - 1
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
