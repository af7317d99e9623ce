//! Finds the file of a command as the system would: to check a configuration before the start, and to start it on
//! Windows.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf, is_separator};

use crate::config::env::Environment;
use crate::files::is_program;

/// The file extensions that Windows starts directly or with its command interpreter, in the order of the system.
/// `PATHEXT` has others, which need another program.
const RUNNABLE: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];

/// The program of `command` in the directories of `path`.
#[must_use]
pub(crate) fn find(command: &str, path: &str, environment: &Environment) -> Option<PathBuf> {
    let endings = if cfg!(windows) {
        endings(command, environment)
    } else {
        vec![String::new()]
    };
    let with_endings = |path: &Path| {
        let text = path.to_string_lossy().into_owned();
        endings
            .iter()
            .map(|ending| PathBuf::from(format!("{text}{ending}")))
            .find(|path| is_program(path))
    };
    if command.contains(is_separator) {
        return with_endings(Path::new(command));
    }
    std::env::split_paths(path).find_map(|directory| with_endings(&directory.join(command)))
}

/// The program to start for `command`, for a process with these variables. On Windows it is the file itself, because
/// the system would not find `npx` (only `npx.cmd` is a program). Otherwise the system does the lookup.
pub(crate) fn to_start<'a>(command: &'a str, variables: &Environment) -> Cow<'a, OsStr> {
    let found = if cfg!(windows) {
        find(
            command,
            variables.get("PATH").unwrap_or_default(),
            variables,
        )
    } else {
        None
    };
    found.map_or(Cow::Borrowed(OsStr::new(command)), |path| {
        Cow::Owned(path.into_os_string())
    })
}

/// The extensions that may follow `command` on Windows: none if it has one already. A file without an extension is
/// never a program there; package managers put a shell script without one next to the program.
fn endings(command: &str, environment: &Environment) -> Vec<String> {
    let is_runnable = |ending: &str| {
        RUNNABLE
            .iter()
            .any(|runnable| runnable.eq_ignore_ascii_case(ending))
    };
    let own = Path::new(command)
        .extension()
        .map(|ending| format!(".{}", ending.to_string_lossy()));
    let written = own
        .filter(|ending| is_runnable(ending))
        .map(|_| String::new());
    let wanted = environment
        .get("PATHEXT")
        .filter(|endings| !endings.is_empty());
    let listed: Vec<String> = match wanted {
        Some(endings) => endings
            .split(';')
            .filter(|ending| is_runnable(ending))
            .map(str::to_owned)
            .collect(),
        None => RUNNABLE.iter().map(|ending| (*ending).to_owned()).collect(),
    };
    written.into_iter().chain(listed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_that_may_not_be_run_is_no_program() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tool");
        std::fs::write(&file, "").unwrap();
        let path = directory.path().to_str().unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(find("tool", path, &Environment::default()), None);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(
            find("tool", path, &Environment::default()),
            Some(file.clone())
        );
        assert_eq!(
            find(file.to_str().unwrap(), "", &Environment::default()),
            Some(file)
        );
        assert_eq!(find("tool", "", &Environment::default()), None);
    }

    #[test]
    fn on_windows_a_command_may_be_written_without_its_ending() {
        let check = |command: &str, pathext: &str, expected: &[&str]| {
            let environment = Environment::from_iter([("PATHEXT", pathext)]);
            assert_eq!(
                endings(command, &environment),
                expected,
                "{command} {pathext}"
            );
        };
        check(
            "npx",
            ".COM;.EXE;.BAT;.CMD;.VBS;.JS",
            &[".COM", ".EXE", ".BAT", ".CMD"],
        );
        check("npx", "", &RUNNABLE);
        check(r"C:\node\npx.cmd", ".EXE", &["", ".EXE"]);
        // It may be `server.js.cmd`; a script alone is started by its interpreter.
        check("server.js", ".CMD;.JS", &[".CMD"]);
        check("python3.12", ".exe", &[".exe"]);
    }

    #[cfg(windows)]
    #[test]
    fn the_script_for_windows_is_found_beside_the_one_for_shells() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["npx", "npx.cmd"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let variables = Environment::from_iter([
            ("Path", directory.path().to_str().unwrap()),
            ("PathExt", ".EXE;.CMD"),
        ]);
        assert_eq!(
            Path::new(&to_start("npx", &variables)),
            directory.path().join("npx.CMD")
        );
        assert_eq!(to_start("uvx", &variables), OsStr::new("uvx"));
    }
}
