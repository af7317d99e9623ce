//! Packages of npm.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::record::is_version;
use super::{Fetch, FetchError, INSTALL_LIMIT, LOOKUP_LIMIT};
use crate::files;

const NPM: (&str, &str) = ("npm", "Node.js with npm");

/// The size limit of a `package.json`, in bytes.
const MANIFEST: u64 = 1024 * 1024;

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
            args.extend(["--ignore-scripts", "--allow-git=none", "--git=/bin/false"]);
        }
        let installed = self.run(NPM, &args, directory, None, INSTALL_LIMIT);
        installed.await.map(drop)
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
