//! The packages that are known to work in a sandbox: `known.tsv`, each of which a test starts, lists and calls inside.

use crate::config::PackageRun;

const TABLE: &str = include_str!("known.tsv");

/// A package that works in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// `npm` or `pypi`.
    pub ecosystem: &'static str,
    pub package: &'static str,
    /// The version with which it was seen to work.
    pub version: &'static str,
    /// Whether its tools need the network.
    pub needs_network: bool,
}

impl Known {
    /// The value of `sandbox` with which its tools work.
    pub(crate) fn value(self) -> &'static str {
        if self.needs_network {
            "{\"network\": \"all\"}"
        } else {
            "\"strict\""
        }
    }
}

/// The row of a package.
pub(crate) fn known(package: &PackageRun) -> Option<Known> {
    rows().find(|row| {
        row.ecosystem == package.ecosystem.word() && row.package.eq_ignore_ascii_case(&package.name)
    })
}

fn rows() -> impl Iterator<Item = Known> {
    TABLE.lines().filter_map(|line| {
        let mut columns = line.split('\t');
        let ecosystem = columns.next().filter(|kind| !kind.starts_with('#'))?;
        Some(Known {
            ecosystem,
            package: columns.next()?,
            version: columns.next()?,
            needs_network: columns.next()? == "all",
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_whole_and_the_rows_are_sorted() {
        let lines: Vec<&str> = TABLE
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert_eq!(rows().count(), lines.len());
        assert!(lines.is_sorted(), "sort known.tsv");
        for row in rows() {
            assert!(["npm", "pypi"].contains(&row.ecosystem), "{row:?}");
        }
    }
}
