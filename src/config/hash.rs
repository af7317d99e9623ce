//! A hash of a server's entry, by which its cached tools are found.

use std::collections::BTreeMap;
use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::launched::{Kind, package};
use super::runner::{may_install, program_name, unwrapped};
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
    /// A hash of the program with its arguments, or of the URL: the same for entries that differ in variables, headers, versions of
    /// packages, plain flags, or the directory. For an interface with a description it is the place of that, which has all texts.
    #[must_use]
    pub(crate) fn program(&self) -> String {
        match self {
            Self::Stdio(stdio) => program_of(&stdio.command, &stdio.args),
            Self::Http(remote) | Self::Sse(remote) => {
                let description = remote.openapi.as_ref().map(|it| &it.description);
                let url = match description {
                    Some(DescriptionLocation::Url(url)) => url.clone(),
                    Some(DescriptionLocation::File(path)) => path.display().to_string(),
                    Some(DescriptionLocation::Introspection) | None => remote.url.clone(),
                };
                address_of(&url)
            }
            Self::Folder(folder) => {
                let mut parts = Parts(Sha256::new());
                parts.folder(folder);
                parts.short()
            }
        }
    }
}

/// The value of [`Transport::program`] for a command line. The runner of a package, its options and the programs around it do not
/// count.
#[must_use]
pub(crate) fn program_of(command: &str, args: &[String]) -> String {
    let (command, args) = unwrapped(command, args);
    let mut parts = Parts(Sha256::new());
    let is_flag = |arg: &&String| arg.starts_with('-') && !arg.contains('=');
    let (words, is_package) = match package(&command, &args) {
        Some(package) => {
            parts.text(package.kind.word());
            parts.text(&package.name);
            (package.args, package.kind != Kind::Image)
        }
        None => {
            parts.text("stdio");
            parts.text(&program_name(&command).to_lowercase());
            (args.as_slice(), may_install(&command, &args))
        }
    };
    for word in words.iter().filter(|word| !is_flag(word)) {
        parts.text(if is_package { versionless(word) } else { word });
    }
    parts.short()
}

/// The arguments of a command, without the versions of packages if it is a package runner.
pub(crate) fn without_versions(command: &str, args: &[String]) -> Vec<String> {
    let is_package = may_install(command, args);
    let args = args.iter();
    args.map(|arg| match is_package {
        true => versionless(arg).to_owned(),
        false => arg.clone(),
    })
    .collect()
}

/// The value of [`Transport::program`] for a URL.
#[must_use]
pub(crate) fn address_of(url: &str) -> String {
    let url = url.to_lowercase();
    let address = url.split(['?', '#']).next().unwrap_or_default();
    let (start, path) = match address.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None => ("", address),
    };
    let (host, path) = path.split_at(path.find('/').unwrap_or(path.len()));
    let usual = match start {
        "https" => ":443",
        "http" => ":80",
        _ => "",
    };
    let host = host.strip_suffix(usual).unwrap_or(host);
    let address = format!("{start}://{host}{path}");
    let mut parts = Parts(Sha256::new());
    parts.text("url");
    parts.text(address.trim_end_matches('/'));
    parts.short()
}

/// A package without its version: `@scope/name@1.2`, `name==1.2`.
fn versionless(arg: &str) -> &str {
    let arg = arg.split("==").next().unwrap_or(arg);
    let end = arg.get(1..).and_then(|rest| rest.find('@'));
    end.map_or(arg, |at| &arg[..=at])
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

    #[test]
    fn a_program_is_the_same_with_other_variables_versions_and_flags() {
        let program = |line: &str, env: &[(&str, &str)]| {
            let mut words = line.split(' ').map(str::to_owned);
            let env = env
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned().into()));
            let (command, env) = (words.next().unwrap(), env.collect());
            Transport::Stdio(Stdio {
                command,
                args: words.collect(),
                env,
                cwd: None,
                command_line: None,
                sandbox: None,
                fetch: None,
            })
            .program()
        };
        let plain = program("npx -y @a/b@1.2 /home", &[]);
        assert_eq!(plain, program("/usr/bin/npx @a/b@2.0 /home", &[("X", "y")]));
        assert_ne!(plain, program("npx @a/c /home", &[]));
        assert_ne!(plain, program("npx @a/b /srv", &[]));
        assert_eq!(program("uvx a==1", &[]), program("uvx a@latest", &[]));
        for [one, other] in [
            ["npx -y a", "env -u B A=1 timeout -k 5 99 nice -n 5 npx a"],
            ["npx -y a /x", "cmd /d /c pnpm dlx a@2 /x"],
            ["uvx a", "uv tool run --python 3.12 --from a==2 a"],
            ["docker run -i --rm x/y", "podman run -eA --name b x/y:2"],
        ] {
            assert_eq!(program(one, &[]), program(other, &[]), "{one}, {other}");
        }
        assert_ne!(
            program("docker run x/y", &[]),
            program("docker run x/z", &[])
        );
        assert_ne!(
            program("docker run x/y a", &[]),
            program("docker run x/y b", &[])
        );
        for (port, is_same) in [(":443", true), (":80", false), (":4430", false)] {
            let (plain, with) = ("https://a.b/c", format!("https://A.b{port}/c/"));
            assert_eq!(address_of(plain) == address_of(&with), is_same, "{port}");
        }
        assert_ne!(program("x a@1", &[]), program("x a@2", &[]));
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
