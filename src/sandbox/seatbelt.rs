//! The sandbox of macOS: a profile for `sandbox-exec`.
//!
//! Programs need Mach services whose names differ between versions of the system. Only the lookup of the services
//! that Node.js and Python use is permitted.

use std::path::Path;
#[cfg(target_os = "macos")]
use std::{ffi::OsString, path::PathBuf};

use super::mounts::{Access, Mounts};
#[cfg(target_os = "macos")]
use super::{Launch, Refusal, Start};
use crate::config::Sandbox;

#[cfg(target_os = "macos")]
const TOOL: &str = "/usr/bin/sandbox-exec";

/// The beginning of every profile.
const START: &str = r#"(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (literal "/"))
(allow file-read* (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System") (subpath "/Library/Apple")
  (subpath "/Library/Preferences/Logging") (subpath "/private/etc/ssl") (subpath "/private/var/db/timezone") (subpath "/private/var/db/dyld")
  (literal "/private/etc/hosts") (literal "/private/etc/localtime") (subpath "/opt/homebrew") (subpath "/dev"))
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/dtracehelper"))
(allow file-ioctl (literal "/dev/null") (literal "/dev/dtracehelper"))
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.logger")
  (global-name "com.apple.trustd.agent") (global-name "com.apple.SecurityServer") (global-name "com.apple.system.notification_center"))
(allow ipc-posix-shm-read* (ipc-posix-name "apple.shm.notification_center"))
"#;

/// The rules for the network. Sockets in the file system are those of other programs; that of the resolver is the one
/// by which names are resolved.
const NETWORK: &str = r#"(allow network-outbound (remote ip) (literal "/private/var/run/mDNSResponder"))
(allow network-inbound (local ip))
(allow network-bind (local ip))
(allow system-socket)
(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd"))
(allow file-read* (literal "/private/etc/resolv.conf") (literal "/private/var/run/resolv.conf"))
"#;

/// The profile of a sandbox.
pub(super) fn profile(sandbox: &Sandbox, mounts: &Mounts<'_>) -> String {
    let mut profile = START.to_owned();
    if sandbox.has_network {
        profile.push_str(NETWORK);
    }
    for (path, access) in &mounts.opened {
        // Of several rules for a path the last one counts, and a directory comes before what is in it.
        let action = match access {
            Access::None => "deny file-read*",
            Access::Read => "allow file-read*",
            Access::Write => "allow file-read* file-write*",
        };
        let kind = if path.is_dir() { "subpath" } else { "literal" };
        profile.push_str(&format!("({action} ({kind} {}))\n", quoted(path)));
    }
    profile
}

/// A path as a text of the profile's language.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(target_os = "macos")]
pub(super) fn find() -> Result<(), Refusal> {
    if Path::new(TOOL).exists() {
        Ok(())
    } else {
        Err(Refusal::NoTool {
            tool: "sandbox-exec",
            advice: "it is a part of macOS; name an `image` for a container",
        })
    }
}

#[cfg(target_os = "macos")]
pub(super) fn launch(
    sandbox: &Sandbox,
    start: &Start<'_>,
    program: &Path,
    mounts: &Mounts<'_>,
    mut variables: Vec<(String, String)>,
    directory: PathBuf,
) -> Result<Launch, Refusal> {
    let temporary = mounts.data.join("tmp");
    crate::files::create_private_directory(&temporary)?;
    variables.push((
        "TMPDIR".to_owned(),
        temporary.to_string_lossy().into_owned(),
    ));
    let mut args: Vec<OsString> = vec!["-p".into(), profile(sandbox, mounts).into()];
    args.push(program.into());
    args.extend(start.stdio.args.iter().map(OsString::from));
    Ok(Launch {
        program: PathBuf::from(TOOL),
        args,
        variables,
        directory,
        container: None,
    })
}
