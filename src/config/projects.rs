//! The projects in which a server is visible.
//!
//! They are a list in the server's entry, not a second level of servers by project. So its name, its tools' names, its
//! rules, logins and cached lists are those of any other server, and no other part has to know about projects. Two
//! projects with servers of one name have them under two names here.

use std::path::{Path, PathBuf};

use super::error::EntryError;
use super::expand;
use super::reader::At;

/// The directories in which clients see a server, and those in which they do not. Without any, clients see it
/// everywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Projects {
    within: Vec<PathBuf>,
    outside: Vec<PathBuf>,
}

const EXPECTED: &str = "the absolute path of a directory, or one with `!` before it, where the server is not to be seen";

impl Projects {
    /// The directories where the server is visible. Empty if it is visible everywhere but in some.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.within
    }

    /// Reads the lists; `fill_in` expands each text.
    pub(super) fn read(
        written: Vec<At<String>>,
        home: impl Fn(&str) -> Option<String>,
        mut fill_in: impl FnMut(&str, &At<String>) -> Result<String, At<EntryError>>,
    ) -> Result<Self, At<EntryError>> {
        let mut projects = Self::default();
        for (index, written) in written.into_iter().enumerate() {
            let key = format!("projects[{index}]");
            let text = fill_in(&key, &written)?;
            let (text, paths) = match text.strip_prefix('!') {
                Some(path) => (path, &mut projects.outside),
                None => (text.as_str(), &mut projects.within),
            };
            let path = if expand::home_relative(text).is_some() {
                home(text)
            } else {
                Some(text.to_owned())
            };
            let path = path.map(PathBuf::from).filter(|path| path.is_absolute());
            let wrong = || EntryError::value(&key, EXPECTED, format!("`\"{}\"`", written.value));
            paths.push(real(&path.ok_or_else(|| At::new(written.offset, wrong()))?));
        }
        Ok(projects)
    }

    /// Whether a client in `directories` (without symbolic links) sees the server.
    #[must_use]
    pub(crate) fn admit(&self, directories: &[PathBuf]) -> bool {
        let is_in_any = |projects: &[PathBuf]| {
            directories.iter().any(|directory| {
                projects
                    .iter()
                    .any(|project| directory.starts_with(project))
            })
        };
        (self.within.is_empty() || is_in_any(&self.within)) && !is_in_any(&self.outside)
    }

    /// Whether clients see the server in all directories.
    #[must_use]
    pub(crate) fn is_everywhere(&self) -> bool {
        self.within.is_empty() && self.outside.is_empty()
    }
}

impl std::fmt::Display for Projects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |paths: &[PathBuf]| {
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
                .join(", ")
        };
        match (self.within.as_slice(), self.outside.as_slice()) {
            ([], []) => f.write_str("everywhere"),
            (within, []) => write!(f, "in {} only", list(within)),
            ([], outside) => write!(f, "everywhere but in {}", list(outside)),
            (within, outside) => {
                write!(f, "in {} only, and not in {}", list(within), list(outside))
            }
        }
    }
}

/// The path with its symbolic links resolved; unchanged if nothing exists there.
#[must_use]
pub(crate) fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn projects(written: &[&str]) -> Result<Projects, String> {
        let written = written
            .iter()
            .map(|text| At::new(0, (*text).to_owned()))
            .collect();
        let home = |text: &str| text.strip_prefix('~').map(|rest| format!("/home/me{rest}"));
        Projects::read(written, home, |_, text| Ok(text.value.clone()))
            .map_err(|at| at.value.to_string())
    }

    #[test]
    fn a_client_sees_a_server_of_a_project_that_it_is_in() {
        for (written, directories, is_seen) in [
            (&[][..], &[][..], true),
            (&["/p/a"], &["/p/a"], true),
            (&["/p/a/"], &["/p/a/src/deep"], true),
            (&["/p/a"], &["/p/ab"], false),
            (&["/p/a"], &["/p"], false),
            (&["/p/a"], &[], false),
            (&["/p/a", "/p/b"], &["/p/c", "/p/b"], true),
            (&["~/a"], &["/home/me/a/x"], true),
            (&["!/p/a"], &["/p/b"], true),
            (&["!/p/a"], &[], true),
            (&["!/p/a"], &["/p/b", "/p/a/x"], false),
            (&["/p", "!/p/a"], &["/p/a"], false),
            (&["/p", "!/p/a"], &["/p/b"], true),
        ] {
            let directories: Vec<PathBuf> = directories.iter().map(PathBuf::from).collect();
            assert_eq!(
                projects(written).unwrap().admit(&directories),
                is_seen,
                "{written:?} {directories:?}"
            );
        }
    }

    #[test]
    fn a_path_that_means_another_directory_everywhere_is_a_fault() {
        for wrong in ["a", "./a", "!a", "", "!"] {
            assert!(
                projects(&[wrong])
                    .unwrap_err()
                    .contains("`projects[0]` must be the absolute path"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn links_lead_to_the_project() {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path().join("real");
        std::fs::create_dir(&project).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&project, &link).unwrap();
        let projects = projects(&[link.to_str().unwrap()]).unwrap();
        assert!(projects.admit(&[real(&project)]) && projects.admit(&[real(&link)]));
    }
}
