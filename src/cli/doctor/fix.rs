//! The repairs of `--fix`. They are safe, and each is reported.

use std::io;
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::AsRawFd as _;
#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use super::super::output::Output;
use super::super::setup::Machine;
use super::Examination;
use super::finding::Fix;
use crate::app::App;
use crate::clients::{OwnEntry, repair};

/// Time limit for computing vectors.
const EMBEDDING: Duration = Duration::from_secs(120);

pub(super) async fn all(
    app: Option<&App>,
    machine: &Machine,
    examination: &mut Examination,
    output: &Output,
) {
    for finding in &mut examination.findings {
        let Some(fix) = &finding.fix else { continue };
        let fixed = match fix {
            #[cfg(unix)]
            Fix::Close(paths) => close(paths),
            Fix::RemoveFile(path) => outcome(std::fs::remove_file(path), "it is removed"),
            Fix::RemoveDirectory(path) => outcome(std::fs::remove_dir_all(path), "it is removed"),
            Fix::Entry { entry, is_dead } => complete(machine, entry, *is_dead),
            Fix::Embed => embed(app, output).await,
        };
        finding.fixed = Some(fixed);
    }
}

/// Plans on the file's current content, because an earlier repair may have changed it.
fn complete(machine: &Machine, entry: &OwnEntry, is_dead: bool) -> anyhow::Result<String> {
    let launch = machine
        .launch()
        .map_err(|exit| anyhow::Error::msg(exit.to_string()))?;
    let planned = repair(entry, is_dead, &launch, &machine.paths.config_file);
    let Some(edit) = planned? else {
        return Ok("nothing is left to do".to_owned());
    };
    let run = machine
        .journal()
        .apply("doctor --fix", std::slice::from_ref(&edit))?;
    Ok(format!(
        "`{}` is edited; `mcpzip undo {run}` reverts it",
        edit.path.display()
    ))
}

async fn embed(app: Option<&App>, output: &Output) -> anyhow::Result<String> {
    let app = app.context("there is no configuration")?;
    {
        let _spinner = output.spinner("computing missing vectors");
        app.proxy().inventory.vectors_made(EMBEDDING).await;
    }
    let proxy = app.proxy();
    match proxy.inventory.status(&proxy.unscoped()).search_by_meaning {
        Some(coverage) if coverage.embedded < coverage.tools => {
            Err(anyhow::anyhow!("not in time: {coverage}"))
        }
        _ => Ok("every tool is ready now".to_owned()),
    }
}

fn outcome(done: io::Result<()>, words: &str) -> anyhow::Result<String> {
    done?;
    Ok(words.to_owned())
}

/// Removes the permissions of group and others. Follows no link, also if a program makes one meanwhile.
#[cfg(unix)]
fn close(paths: &[PathBuf]) -> anyhow::Result<String> {
    use rustix::io::Errno;

    let mut left = Vec::new();
    for path in paths {
        match close_one(path) {
            // An earlier repair may have removed some of them.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::LOOP | Errno::MLINK | Errno::NOTDIR) => {
                left.push(format!("`{}`", path.display()));
            }
            Err(error) => return Err(error).with_context(|| format!("`{}`", path.display())),
        }
    }
    match &left[..] {
        [] => Ok("only you can open it now".to_owned()),
        left => Err(anyhow::anyhow!(
            "{} became a link meanwhile, and links are not followed: run this again",
            left.join(", ")
        )),
    }
}

#[cfg(unix)]
fn close_one(path: &Path) -> rustix::io::Result<()> {
    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
    use rustix::io::Errno;

    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let flags = flags | OFlags::PATH;
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL);
    };
    let mut directory = None;
    for part in above.components() {
        let from = directory.as_ref().map_or(CWD, AsFd::as_fd);
        let next = openat(
            from,
            part.as_os_str(),
            flags | OFlags::DIRECTORY,
            Mode::empty(),
        )?;
        directory = Some(next);
    }
    let directory = directory.ok_or(Errno::INVAL)?;
    // On Linux, the file that is looked at is held open, and it is the one that is changed.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let held = openat(&directory, name, flags, Mode::empty())?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let found = statat(&held, "", AtFlags::EMPTY_PATH)?;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let found = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    if found.st_uid != rustix::process::getuid().as_raw() {
        return Err(Errno::PERM);
    }
    let mode = Mode::from_raw_mode(found.st_mode) & Mode::RWXU;
    // A descriptor of this kind has no `fchmod`.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let changed = rustix::fs::chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), mode)
        // Without `/proc`.
        .map_err(|error| match error {
            Errno::NOENT => Errno::OPNOTSUPP,
            other => other,
        });
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let changed = rustix::fs::chmodat(&directory, name, mode, AtFlags::SYMLINK_NOFOLLOW);
    changed
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn no_repair_follows_a_link() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let mode = |name: &str| {
            let found = root.join(name).metadata().unwrap();
            found.permissions().mode() & 0o777
        };
        let open = |name: &str| {
            let permissions = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(root.join(name), permissions).unwrap();
        };
        std::fs::create_dir_all(root.join("other/inner")).unwrap();
        std::fs::create_dir(root.join("own")).unwrap();
        std::fs::write(root.join("own/file"), "").unwrap();
        for name in ["other", "other/inner", "own", "own/file"] {
            open(name);
        }
        symlink(root.join("other"), root.join("link")).unwrap();
        let close = |names: &[&str]| {
            let paths: Vec<PathBuf> = names.iter().map(|name| root.join(name)).collect();
            super::close(&paths)
        };
        for name in ["link", "link/inner"] {
            let error = close(&[name, "own/file"]).unwrap_err().to_string();
            assert!(error.contains("became a link meanwhile"), "{error}");
            assert_eq!((mode("other"), mode("other/inner")), (0o755, 0o755));
            // The others are closed.
            assert_eq!(mode("own/file"), 0o700);
            open("own/file");
        }
        let _socket = std::os::unix::net::UnixListener::bind(root.join("own/socket")).unwrap();
        open("own/socket");
        close(&["own/gone", "own", "own/file", "own/socket"]).unwrap();
        for name in ["own", "own/file", "own/socket"] {
            assert_eq!(mode(name), 0o700);
        }
    }
}
