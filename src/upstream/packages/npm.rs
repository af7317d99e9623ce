//! Packages of npm.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::record::is_version;
use super::{Fetch, FetchError, INSTALL_LIMIT, LOOKUP_LIMIT};
use crate::files;

const NPM: (&str, &str) = ("npm", "Node.js with npm");

/// The size limit of a `package.json`, and of the list of installed packages, in bytes.
const MANIFEST: u64 = 1024 * 1024;
const INSTALLED: u64 = 64 * 1024 * 1024;

/// Options for a sandbox.
const WITHOUT_CODE: [&str; 6] = [
    "--ignore-scripts",
    "--allow-directory=none",
    "--allow-file=none",
    "--allow-git=none",
    "--allow-remote=none",
    "--git=/bin/false",
];

impl Fetch<'_> {
    /// The newest version that the entry permits.
    pub(super) async fn newest_npm(&self) -> Result<String, FetchError> {
        let wanted = self.package.version.as_deref().unwrap_or("latest");
        let spec = format!("{}@{wanted}", self.package.name);
        let args = [
            "view",
            &spec,
            "version",
            "--json",
            "--fetch-retries=0",
            "--fetch-timeout=15000",
        ];
        let printed = self.run(NPM, &args, &self.home, None, LOOKUP_LIMIT).await?;
        // A range has several, the newest one last.
        let version = match serde_json::from_str(&printed) {
            Ok(Value::String(version)) => Some(version),
            Ok(Value::Array(mut versions)) => match versions.pop() {
                Some(Value::String(version)) => Some(version),
                _ => None,
            },
            _ => None,
        };
        version
            .filter(|version| is_version(version))
            .ok_or_else(|| FetchError::Failed {
                command: "npm view".to_owned(),
                said: format!("there is no version `{spec}`"),
            })
    }

    pub(super) async fn install_npm(
        &self,
        directory: &Path,
        version: &str,
    ) -> Result<(), FetchError> {
        // Keeps npm from looking for a project above.
        std::fs::write(directory.join("package.json"), "{\"private\": true}\n")?;
        let spec = format!("{}@{version}", self.package.name);
        let mut args = vec![
            "install",
            &spec,
            "--save-exact",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--loglevel=error",
        ];
        if !self.has_scripts() {
            args.extend(WITHOUT_CODE);
        }
        self.run(NPM, &args, directory, None, INSTALL_LIMIT).await?;
        match self.has_scripts() {
            true => Ok(()),
            false => check_sources(directory),
        }
    }

    /// The program of an installed package, and the directory of all programs.
    pub(super) fn npm_program(&self, directory: &Path) -> Result<(PathBuf, PathBuf), FetchError> {
        let modules = directory.join("node_modules");
        let programs = modules.join(".bin");
        let name = match &self.package.program {
            Some(program) => program.clone(),
            None => own_program(&self.package.name, &modules)?,
        };
        let program = programs.join(&name);
        // The name is the entry's or the package's: neither leads elsewhere.
        if name.contains(['/', '\\']) || name.starts_with('.') || !program.is_file() {
            return Err(FetchError::NoEntryPoint {
                package: self.package.name.clone(),
                program: name,
            });
        }
        Ok((program, programs))
    }
}

/// The program that `npx` takes: the only one, or the one with the package's name.
fn own_program(package: &str, modules: &Path) -> Result<String, FetchError> {
    let own = package.rsplit('/').next().unwrap_or(package).to_owned();
    let manifest = files::read_regular(&modules.join(package).join("package.json"), MANIFEST)?;
    let manifest: Value = serde_json::from_slice(&manifest).map_err(std::io::Error::from)?;
    let Some(programs) = manifest["bin"].as_object() else {
        return Ok(own);
    };
    let mut files: Vec<&Value> = programs.values().collect();
    files.dedup();
    // npm gives a program the last part of a name with a scope.
    let last = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    match programs.keys().next() {
        Some(only) if files.len() == 1 => Ok(last(only)),
        _ if programs.keys().any(|name| last(name) == own) => Ok(own),
        _ => Err(FetchError::SeveralEntryPoints(package.to_owned())),
    }
}

/// Refuses an installation with a part that is not of the registry: a dependency may name a file of this machine or a URL of its network.
/// npm before 11 does not know the options that exclude those.
fn check_sources(directory: &Path) -> Result<(), FetchError> {
    let list = directory.join("node_modules/.package-lock.json");
    let list = files::read_regular(&list, INSTALLED).map_err(|_| FetchError::Failed {
        command: "npm install".to_owned(),
        said: "it left no list of what it installed; npm 7 or later is needed".to_owned(),
    })?;
    let list: Value = serde_json::from_slice(&list).map_err(std::io::Error::from)?;
    let packages = list["packages"].as_object().into_iter().flatten();
    for (package, installed) in packages {
        let refuse = |dependency: &str| {
            Err(FetchError::Outside {
                package: package.trim_start_matches("node_modules/").to_owned(),
                dependency: dependency.to_owned(),
            })
        };
        let resolved = installed["resolved"].as_str();
        let is_download = |url: &&str| url.starts_with("https://") || url.starts_with("http://");
        if let Some(resolved) = resolved.filter(|resolved| !is_download(resolved)) {
            return refuse(resolved);
        }
        if installed["link"] == true {
            return refuse("a link");
        }
        for kind in ["dependencies", "optionalDependencies", "peerDependencies"] {
            let wanted = installed[kind].as_object().into_iter().flatten();
            for (name, version) in wanted {
                let version = version.as_str().unwrap_or_default();
                if !is_of_registry(version) {
                    return refuse(&format!("{name}@{version}"));
                }
            }
        }
    }
    Ok(())
}

/// Whether the version of a dependency is a range or a tag, or that of another package: anything else is a path, an archive, a URL or a repository.
fn is_of_registry(version: &str) -> bool {
    let version = match version.strip_prefix("npm:") {
        Some(alias) => {
            let name = alias.strip_prefix('@').unwrap_or(alias);
            name.split_once('@').map_or("", |(_, version)| version)
        }
        None => version,
    };
    let is_archive = [".tgz", ".tar.gz", ".tar"]
        .iter()
        .any(|end| version.to_ascii_lowercase().ends_with(end));
    !is_archive && !version.contains([':', '/', '\\']) && !version.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::is_of_registry;

    #[test]
    fn a_dependency_is_of_the_registry_or_refused() {
        for version in [
            "",
            "*",
            "latest",
            "1.2.3",
            "^1.2 || ~2",
            ">=1 <2",
            "1.0 - 2.0",
            "npm:other",
            "npm:@scope/other@^1",
        ] {
            assert!(is_of_registry(version), "{version}");
        }
        for version in [
            "file:../private.tgz",
            "private.tgz",
            "./x",
            "..",
            "../x",
            "/etc/x",
            "~/x",
            "link:x",
            "http://127.0.0.1/x",
            "https://host/x.tgz",
            "git+ssh://host/x",
            "github:me/x",
            "me/x",
            "C:\\x",
            "npm:other@file:x",
        ] {
            assert!(!is_of_registry(version), "{version}");
        }
    }
}
