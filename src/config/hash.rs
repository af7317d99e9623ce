//! A hash of a server's entry, by which its cached tools are found.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::launched::{self, Program, programs};
use super::{DescriptionLocation, Folder, Remote, Stdio, Transport};
use crate::secret::Secret;

/// Changes with everything that may change which server answers. The order of keys, comments, times, descriptions and
/// proxies do not count.
///
/// Prints as 64 hexadecimal digits: approvals are bound to it, so no two entries may be found that have the same one. Secrets are part
/// of it and cannot be derived from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ConfigHash([u8; 32]);

impl ConfigHash {
    /// Computes the hash of a transport with its variables expanded.
    #[must_use]
    pub(crate) fn of(transport: &Transport) -> Self {
        let mut parts = Parts(Sha256::new());
        // The first part is the version of this encoding.
        parts.text("1");
        match transport {
            Transport::Stdio(Stdio {
                command,
                args,
                env,
                cwd,
                command_line,
                sandbox,
                // How it is started, not what.
                fetch: _,
            }) => {
                parts.text("stdio");
                parts.text(command);
                parts.count(args.len());
                args.iter().for_each(|arg| parts.text(arg));
                parts.map(env);
                parts.count(usize::from(cwd.is_some()));
                cwd.iter()
                    .for_each(|cwd| parts.text(&cwd.to_string_lossy()));
                if let Some(command_line) = command_line {
                    // Every key of it decides which tools there are.
                    parts.text(&format!("{command_line:?}"));
                }
                // An approved server is another one without its sandbox.
                if let Some(sandbox) = sandbox {
                    parts.text(&format!("{sandbox:?}"));
                }
            }
            Transport::Http(remote) => parts.remote("http", remote),
            Transport::Sse(remote) => parts.remote("sse", remote),
            Transport::Folder(folder) => parts.folder(folder),
        }
        Self(parts.0.finalize().into())
    }
}

impl Transport {
    /// Hashes of the programs and arguments that this entry may start, or of its URL. Entries that differ only in variables, headers,
    /// package versions, plain flags, the runner or `cwd` have a hash in common. Two entries with a hash in common may be the same
    /// server. An interface is hashed by the location of its description, which has all its texts.
    #[must_use]
    pub(crate) fn programs(&self) -> BTreeSet<String> {
        match self {
            Self::Stdio(stdio) => {
                let mut all = programs_of(&stdio.command, &stdio.args);
                if let Some(cwd) = &stdio.cwd {
                    all.extend(programs_in(cwd, &stdio.command, &stdio.args));
                }
                all
            }
            Self::Http(remote) | Self::Sse(remote) => {
                let description = remote.openapi.as_ref().map(|it| &it.description);
                let url = match description {
                    Some(DescriptionLocation::Url(url)) => url.clone(),
                    Some(DescriptionLocation::File(path)) => path.display().to_string(),
                    Some(DescriptionLocation::Introspection) | None => remote.url.clone(),
                };
                addresses_of(&url)
            }
            Self::Folder(folder) => {
                let mut parts = Parts(Sha256::new());
                parts.folder(folder);
                BTreeSet::from([parts.short()])
            }
        }
    }

    /// The value of [`Transport::programs`] as records of approvals have it, with a space between two hashes.
    #[must_use]
    pub(crate) fn program(&self) -> String {
        Vec::from_iter(self.programs()).join(" ")
    }
}

/// The hash among those of [`Transport::programs`] of a command line whose program is not known: it may be each one.
#[must_use]
pub(crate) fn any_program() -> String {
    hash_of(&Program::any())
}

/// The value of [`Transport::programs`] for a command line.
#[must_use]
pub(crate) fn programs_of(command: &str, args: &[String]) -> BTreeSet<String> {
    programs(command, args).iter().map(hash_of).collect()
}

/// The further programs of a command line in a directory: those that are found there, as after `cd`.
#[must_use]
pub(crate) fn programs_in(directory: &Path, command: &str, args: &[String]) -> BTreeSet<String> {
    let found = launched::programs_in(&directory.to_string_lossy(), command, args);
    found.iter().map(hash_of).collect()
}

/// The value of [`Transport::programs`] for a URL.
#[must_use]
pub(crate) fn addresses_of(url: &str) -> BTreeSet<String> {
    Program::at(url).map(|program| hash_of(&program)).collect()
}

fn hash_of(program: &Program) -> String {
    let mut parts = Parts(Sha256::new());
    program.texts().for_each(|text| parts.text(text));
    parts.short()
}

impl fmt::Display for ConfigHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

/// Writes each part with its length, so that two different entries never read alike.
struct Parts(Sha256);

impl Parts {
    fn short(self) -> String {
        HEXLOWER.encode(&self.0.finalize()[..16])
    }

    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.update(text);
    }

    fn map(&mut self, map: &BTreeMap<String, Secret<String>>) {
        self.count(map.len());
        for (name, value) in map {
            self.text(name);
            self.text(value.expose());
        }
    }

    fn folder(&mut self, folder: &Folder) {
        self.text(folder.holds.word());
        self.text(&folder.path.to_string_lossy());
    }

    fn remote(&mut self, kind: &str, remote: &Remote) {
        self.text(kind);
        self.text(&remote.url);
        self.map(&remote.headers);
        // An entry without one adds nothing, so that existing hashes stay.
        if let Some(command) = &remote.headers_command {
            self.text(&command.program);
            command.args.iter().for_each(|word| self.text(word));
        }
        if let Some(openapi) = &remote.openapi {
            // Every key of it decides which tools there are.
            self.text(&format!("{openapi:?}"));
        }
        if !remote.identity.is_shared() {
            self.text(&format!("{:?}", remote.identity));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{OAuth, Proxy};

    fn stdio(command: &str, args: &[&str], env: &[(&str, &str)], cwd: Option<&str>) -> ConfigHash {
        ConfigHash::of(&Transport::Stdio(Stdio {
            command: command.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned().into()))
                .collect(),
            cwd: cwd.map(Into::into),
            command_line: None,
            sandbox: None,
            fetch: None,
        }))
    }

    fn remote(url: &str, sse: bool) -> ConfigHash {
        let (url, headers) = (url.to_owned(), BTreeMap::new());
        let (proxy, oauth) = (Proxy::default(), OAuth::default());
        let remote = Remote {
            url,
            headers,
            headers_command: None,
            openapi: None,
            proxy,
            certificates: None,
            oauth,
            identity: crate::config::UpstreamIdentity::Shared,
            masker: crate::secret::Masker::default(),
        };
        ConfigHash::of(&if sse {
            Transport::Sse(remote)
        } else {
            Transport::Http(remote)
        })
    }

    #[test]
    fn every_part_counts() {
        let all = [
            stdio("a", &[], &[], None),
            stdio("b", &[], &[], None),
            stdio("a", &["b"], &[], None),
            stdio("a", &["b", "c"], &[], None),
            stdio("a", &["c", "b"], &[], None),
            stdio("a", &["bc"], &[], None),
            stdio("a", &[], &[("b", "c")], None),
            stdio("a", &[], &[("b", "d")], None),
            stdio("a", &[], &[], Some("/b")),
            remote("http://a", false),
            remote("http://a", true),
            remote("http://b", false),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }

    /// A change here loses what was approved and rejected under another name of a program.
    #[test]
    fn the_hashes_of_programs_that_older_versions_wrote_are_among_them() {
        for (line, known) in [
            (
                "npx -y @a/b@1.2 /home --ro",
                "64aa23c21d9ede1a678d4c84202d0f04",
            ),
            (
                "npx -y @a/b@1.2 /home --ro",
                "adf9b00bf8f48401459d15f6cda337d0",
            ),
            ("uvx --from A_b==1 a-b", "e6ea97d582e6a38698161ac94648854b"),
            (
                "docker run -i --rm -e T docker.io/x/y:2 stdio",
                "48d5fb166d7880a7e417167a9315010c",
            ),
            (
                "docker run -i x/y:2 stdio",
                "674cbb281b306183cef593c2f6a139d3",
            ),
            (
                "env A=1 timeout 9 sh -c npx~-y~pkg",
                "792e7dc8f55c72a1eaf1af738e741ea9",
            ),
            (
                "npx --unheard-of pkg@1 x",
                "f890062e59f68ea12bfab353bc5da87b",
            ),
            ("python3 s.py -v", "670e57e36783410d4835e3bba306a446"),
        ] {
            let mut words = line.split(' ').map(|word| word.replace('~', " "));
            let (command, args) = (words.next().unwrap(), words.collect::<Vec<_>>());
            assert!(programs_of(&command, &args).contains(known), "{line}");
        }
        let url = addresses_of("https://A.example:443/Mcp/?x");
        assert!(url.contains("c15f13e69fa1939ac1a76a6f50c988f3"));
    }

    /// A change here discards the cache of every user, so it must be intended.
    #[test]
    fn the_encoding_is_stable() {
        assert_eq!(
            stdio("npx", &["-y", "x"], &[("A", "b")], None).to_string(),
            "5f63028c42cbbb9b6033a329647c29efb6527ad52127fb138e47055a74dec990"
        );
    }
}
