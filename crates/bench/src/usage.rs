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

/// The number of descendants of `id`.
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
