//! The packages that are known to work in a sandbox: `known.tsv`, each of which a test starts, lists and calls inside.

use crate::config::{Ecosystem, PackageRun};

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
    let plain = |name: &str| match package.ecosystem {
        Ecosystem::Npm => name.to_owned(),
        // PyPI does not tell these apart.
        Ecosystem::Pypi => name.to_ascii_lowercase().replace(['.', '_'], "-"),
    };
    let name = plain(&package.name);
    rows()
        .filter(|row| row.ecosystem == package.ecosystem.word())
        .find(|row| plain(row.package) == name)
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
