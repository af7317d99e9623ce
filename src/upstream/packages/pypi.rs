//! Packages of PyPI, by `uv`.

use std::path::{Path, PathBuf};

use super::record::is_version;
use super::{Fetch, FetchError, INSTALL_LIMIT, LOOKUP_LIMIT};

const UV: (&str, &str) = ("uv", "uv");

/// Options for a sandbox: a source package is built by its own code, and a `.pth` file has code that Python runs when it compiles. A
/// file of settings may say otherwise.
const WITHOUT_CODE: [&str; 2] = ["--no-build", "--no-compile-bytecode"];

impl Fetch<'_> {
    /// The newest version that the entry permits.
    pub(super) async fn newest_pypi(&self) -> Result<String, FetchError> {
        let wanted = match self.package.version.as_deref() {
            None => String::new(),
            Some(version) if version.starts_with(['=', '<', '>', '~', '!']) => version.to_owned(),
            Some(version) => format!("=={version}"),
        };
        let requirement = format!("{}{wanted}\n", self.package.name);
        let mut args = vec![
            "pip",
            "compile",
            "-",
            "--no-deps",
            "--no-header",
            "--no-annotate",
            "-q",
        ];
        if !self.has_scripts() {
            // The description of a source package comes from its own code.
            args.push("--no-build");
        }
        if let Some(python) = &self.package.python {
            args.extend(["--python-version", python]);
        }
        let printed = self
            .run(UV, &args, &self.home, Some(&requirement), LOOKUP_LIMIT)
            .await?;
        let version = printed
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .find_map(|line| line.split_once("=="))
            .map(|(_, version)| version.trim().to_owned());
        version
            .filter(|version| is_version(version))
            .ok_or_else(|| FetchError::Failed {
                command: "uv pip".to_owned(),
                said: format!("there is no version `{}`", requirement.trim()),
            })
    }

    pub(super) async fn install_pypi(
        &self,
        directory: &Path,
        version: &str,
    ) -> Result<(), FetchError> {
        let environment = directory.join("venv");
        let environment = environment.to_string_lossy().into_owned();
        let mut args = vec!["venv", "-q", &environment];
        if let Some(python) = &self.package.python {
            args.extend(["--python", python]);
        }
        self.run(UV, &args, directory, None, INSTALL_LIMIT).await?;
        let spec = format!("{}{}=={version}", self.package.name, self.package.extras);
        let mut args = vec!["pip", "install", "-q", "--python", &environment];
        match self.has_scripts() {
            true => args.push("--compile-bytecode"),
            false => args.extend(WITHOUT_CODE),
        }
        args.push(&spec);
        args.extend(self.package.with.iter().map(String::as_str));
        let installed = self.run(UV, &args, directory, None, INSTALL_LIMIT);
        installed.await.map(drop)
    }

    /// The program of an installed package, and the directory of all programs.
    pub(super) fn pypi_program(&self, directory: &Path) -> Result<(PathBuf, PathBuf), FetchError> {
        let programs = directory.join("venv").join("bin");
        let name = self.package.program.as_ref().unwrap_or(&self.package.name);
        let program = programs.join(name);
        if name.contains(['/', '\\']) || name.starts_with('.') || !program.is_file() {
            return Err(FetchError::NoEntryPoint {
                package: self.package.name.clone(),
                program: name.clone(),
            });
        }
        Ok((program, programs))
    }
}
