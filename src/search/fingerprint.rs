//! The identity of a set of tools, by which a stored index is matched to its catalog.

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::tool::{ServerName, ToolHash, ToolName};

/// The identity of a set of tools. Two catalogs with the same tools, in any order, have the same fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fingerprint(String);

/// The bytes that are hashed at once.
const PART: usize = 4096;

impl Fingerprint {
    /// Computes the fingerprint of these tools.
    pub fn of<'a>(
        tools: impl IntoIterator<Item = (&'a ServerName, &'a ToolName, ToolHash)>,
    ) -> Self {
        let mut tools: Vec<(&ServerName, &ToolName, ToolHash)> = tools.into_iter().collect();
        // The catalog lists them in this order already.
        tools.sort_unstable();
        let mut digest = Sha256::new();
        // Ten thousand tools would be fifty thousand small pieces.
        let mut part = Vec::with_capacity(2 * PART);
        for (server, tool, hash) in tools {
            part.extend_from_slice(hash.as_bytes());
            for name in [server.as_str(), tool.as_str()] {
                // The length separates the names, so that two names never read as two others.
                part.extend_from_slice(&(name.len() as u64).to_le_bytes());
                part.extend_from_slice(name.as_bytes());
            }
            if part.len() >= PART {
                digest.update(&part);
                part.clear();
            }
        }
        digest.update(&part);
        Self(HEXLOWER.encode(&digest.finalize()[..16]))
    }

    /// The fingerprint as a file name: 32 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_count_but_every_part_does() {
        let tool = |s: &str, t: &str, h: &str| {
            (
                ServerName::new(s).unwrap(),
                ToolName::new(t).unwrap(),
                ToolHash::of(h.as_bytes()),
            )
        };
        let of = |tools: &[(ServerName, ToolName, ToolHash)]| {
            Fingerprint::of(tools.iter().map(|(s, t, h)| (s, t, *h)))
        };
        let (a, b) = (tool("s", "a", "1"), tool("s", "b", "2"));
        assert_eq!(of(&[a.clone(), b.clone()]), of(&[b.clone(), a.clone()]));
        let fingerprints = [
            of(&[]),
            of(std::slice::from_ref(&a)),
            of(&[a.clone(), b]),
            of(&[a.clone(), tool("s", "b", "3")]),
            of(&[a.clone(), tool("t", "b", "2")]),
            of(&[a, tool("s", "c", "2")]),
        ];
        let distinct: std::collections::HashSet<_> = fingerprints.iter().collect();
        assert_eq!(distinct.len(), fingerprints.len());
    }
}
