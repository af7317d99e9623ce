//! The sandbox of Linux: bubblewrap.
//!
//! All options, variables and secrets with them reach bubblewrap by a descriptor: a command line can be read by every user of
//! the machine.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{MemfdFlags, OFlags, memfd_create};
use tokio::process::Command;

use super::mounts::{Access, Mounts};
use super::runtime::SYSTEM;
use super::{Launch, Refusal, Start, TRIAL, lookup, syscalls};
use crate::config::Sandbox;

const TOOL: &str = "bubblewrap";

/// Parts of `/etc` that programs read: certificates without their keys, names of the network, and other files without secrets.
const ETC: &[&str] = &[
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "fonts",
    "gai.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "protocols",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];

/// The namespaces of every sandbox. Without a user namespace of its own, none of them could be made by an ordinary user; a
/// further one inside could be used to attack the kernel.
const APART: &[&str] = &[
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--clearenv",
];

/// The numbers of the descriptors in bubblewrap.
const OPTIONS: i32 = 10;
const FILTER: i32 = 11;
const PASSWD: i32 = 12;
const GROUP: i32 = 13;

/// The file of bubblewrap.
pub(super) fn find(path: &str, changeable: impl Fn(&Path) -> bool) -> Result<PathBuf, Refusal> {
    lookup::tool("bwrap", path, changeable).ok_or(Refusal::NoTool {
        tool: TOOL,
        advice: "install the package `bubblewrap`, or name an `image` for a container",
    })
}

/// Makes an empty sandbox once.
///
/// # Errors
/// When bubblewrap is too old, or the system does not let it make one.
pub(super) async fn check(tool: &Path) -> Result<(), Refusal> {
    if syscalls::filter().is_none() {
        return Err(Refusal::System(
            "the system calls of this processor are not known; name an `image` for a container",
        ));
    }
    let Some(nothing) = ["/usr/bin/true", "/bin/true", "/usr/bin/env"]
        .into_iter()
        .find(|program| Path::new(program).exists())
    else {
        // The start of the server will tell.
        return Ok(());
    };
    let mut command = Command::new(tool);
    command
        .args(APART)
        .args([
            "--unshare-net",
            "--ro-bind",
            "/",
            "/",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--",
        ])
        .arg(nothing)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = tokio::time::timeout(TRIAL, command.output());
    let output = output
        .await
        .map_err(|_| io::Error::other("bubblewrap did not end in time"))??;
    if output.status.success() {
        return Ok(());
    }
    let said = super::container::last_line(&output.stderr);
    let advice = if said.contains("Unknown option") || said.contains("disable-userns") {
        ": a newer bubblewrap is needed, 0.8 or later"
    } else if [
        "user namespace",
        "uid map",
        "Permission denied",
        "No permissions",
        "not permitted",
    ]
    .iter()
    .any(|part| said.contains(part))
    {
        ": the system refuses user namespaces. On Ubuntu, install the AppArmor profile for bwrap (package `apparmor-profiles`, then \
         `sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/` and `sudo systemctl reload apparmor`); \
         elsewhere set `kernel.unprivileged_userns_clone=1` and `user.max_user_namespaces` above 0. In a container, it has to be \
         permitted by the container's own options. Or name an `image`"
    } else {
        ""
    };
    Err(Refusal::Tool {
        tool: TOOL,
        said,
        advice,
    })
}

/// How a path of the sandbox comes to be.
enum Mount {
    Open,
    Change,
    Hidden,
    Link(PathBuf),
    Proc,
    Dev,
    Temporary,
}

pub(super) fn launch(
    tool: PathBuf,
    sandbox: &Sandbox,
    start: &Start<'_>,
    program: &Path,
    mounts: &Mounts<'_>,
    variables: &[(String, String)],
    directory: &Path,
) -> Result<Launch, Refusal> {
    let mut options = Options::default();
    options.words(APART);
    options.words(&["--hostname", "sandbox"]);
    if !sandbox.has_network {
        options.words(&["--unshare-net"]);
    }
    let mut hidden = Vec::new();
    for (path, mount) in layout(sandbox, mounts) {
        match mount {
            Mount::Open => options.two("--ro-bind", &path, &path),
            Mount::Change => options.two("--bind", &path, &path),
            Mount::Hidden if path.is_dir() => {
                options.one("--tmpfs", &path);
                hidden.push(path);
            }
            Mount::Hidden => options.two("--ro-bind", Path::new("/dev/null"), &path),
            Mount::Link(target) => options.two("--symlink", &target, &path),
            Mount::Proc => options.one("--proc", &path),
            Mount::Dev => options.one("--dev", &path),
            Mount::Temporary => {
                options.words(&["--perms", "1777"]);
                options.one("--tmpfs", &path);
            }
        }
    }
    // Programs ask who they are; they do not learn of other users.
    let is_own_etc = !mounts.opens(Path::new("/etc"));
    if is_own_etc {
        for (number, file) in [(PASSWD, "/etc/passwd"), (GROUP, "/etc/group")] {
            options.words(&["--ro-bind-data", &number.to_string(), file]);
        }
    }
    // Root may change the kernel's settings in `/proc/sys` without any capability, and with them the machine. And a sandbox could write
    // to directories that exist for a mount only.
    options.words(&["--remount-ro", "/proc", "--remount-ro", "/"]);
    for path in hidden {
        options.one("--remount-ro", &path);
    }
    options.words(&["--seccomp", &FILTER.to_string()]);
    options.one("--chdir", directory);
    for (name, value) in variables {
        options.words(&["--setenv", name, value]);
    }
    let filter = syscalls::filter().ok_or(Refusal::System(
        "the system calls of this processor are not known",
    ))?;
    let (uid, gid) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    let home = mounts.data.to_string_lossy();
    let passwd = format!("user:x:{uid}:{gid}::{home}:/bin/sh\n");
    let group = format!("user:x:{gid}:\n");
    let mut descriptors = vec![(OPTIONS, memory(&options.0)?), (FILTER, memory(&filter)?)];
    if is_own_etc {
        descriptors.push((PASSWD, memory(passwd.as_bytes())?));
        descriptors.push((GROUP, memory(group.as_bytes())?));
    }
    for number in inherited()? {
        if descriptors.iter().all(|(own, _)| *own != number) {
            descriptors.push((number, memory(b"")?));
        }
    }
    let mut args: Vec<OsString> = vec!["--args".into(), OPTIONS.to_string().into(), "--".into()];
    args.push(program.into());
    args.extend(start.stdio.args.iter().map(OsString::from));
    Ok(Launch {
        program: tool,
        args,
        // bubblewrap needs none; the mark is for the guard.
        variables: start.mark.cloned().into_iter().collect(),
        directory: PathBuf::from("/"),
        container: None,
        descriptors,
    })
}

/// All paths of the sandbox, those of a directory after the directory.
fn layout(sandbox: &Sandbox, mounts: &Mounts<'_>) -> BTreeMap<PathBuf, Mount> {
    let mut layout = BTreeMap::new();
    let opened = &mounts.opened;
    if !opened.contains_key(Path::new("/")) {
        for system in SYSTEM.iter().map(PathBuf::from) {
            match std::fs::read_link(&system) {
                Ok(target) => layout.insert(system, Mount::Link(target)),
                Err(_) if system.is_dir() => layout.insert(system, Mount::Open),
                Err(_) => None,
            };
        }
        let of_network = sandbox.has_network.then_some("resolv.conf");
        for name in ETC.iter().copied().chain(of_network) {
            let path = Path::new("/etc").join(name);
            // A link cannot be mounted over, as that in an open directory.
            if path.exists() && !mounts.opens(&path) {
                layout.insert(path, Mount::Open);
            }
        }
    }
    layout.insert("/proc".into(), Mount::Proc);
    layout.insert("/dev".into(), Mount::Dev);
    layout.insert("/tmp".into(), Mount::Temporary);
    for (path, access) in opened {
        let mount = match access {
            Access::None => Mount::Hidden,
            Access::Read => Mount::Open,
            Access::Write => Mount::Change,
        };
        layout.insert(path.clone(), mount);
    }
    layout
}

/// The options of bubblewrap, each with a zero byte after it.
#[derive(Default)]
struct Options(Vec<u8>);

impl Options {
    fn words(&mut self, words: &[&str]) {
        for word in words {
            self.word(OsStr::new(word));
        }
    }

    fn one(&mut self, option: &str, path: &Path) {
        self.word(OsStr::new(option));
        self.word(path.as_os_str());
    }

    fn two(&mut self, option: &str, from: &Path, to: &Path) {
        self.one(option, from);
        self.word(to.as_os_str());
    }

    fn word(&mut self, word: &OsStr) {
        self.0.extend(word.as_bytes());
        self.0.push(0);
    }
}

/// The descriptors that a child of this process inherits. An open directory is a way out of every sandbox, so the server gets an empty file
/// in place of each. The program has none; another one with this library may.
pub(super) fn inherited() -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(number) = number.filter(|number| *number > 2) else {
            continue;
        };
        let state = match std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")) {
            Ok(state) => state,
            // It was closed in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let flags = state.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        if flags.is_none_or(|flags| flags & OFlags::CLOEXEC.bits() == 0) {
            found.push(number);
        }
    }
    Ok(found)
}

/// A file in memory with these bytes, read from its start.
fn memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let descriptor = memfd_create("mcpzip-sandbox", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(descriptor);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}
