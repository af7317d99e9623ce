use std::path::{Path, PathBuf};

use super::mounts::Mounts;
use super::{runtime, seatbelt};
use crate::config::Sandbox;

fn sandbox(read: &[&Path], write: &[&Path]) -> Sandbox {
    let owned = |paths: &[&Path]| paths.iter().map(|path| (*path).to_owned()).collect();
    Sandbox {
        read: owned(read),
        write: owned(write),
        ..Sandbox::default()
    }
}

fn opened(data: &Path, closed: &[PathBuf], sandbox: &Sandbox) -> Result<Vec<PathBuf>, String> {
    let mut mounts = Mounts::new(data, closed);
    mounts.named(sandbox).map_err(|error| error.to_string())?;
    Ok(mounts.opened.into_keys().collect())
}

#[cfg(unix)]
#[test]
fn a_link_that_a_server_could_have_made_is_never_followed() {
    use std::os::unix::fs::symlink;
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let at = |name: &str| home.join(name);
    for name in ["data", "work", "secret", "plain"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    symlink(at("secret"), at("work/planted")).unwrap();
    symlink(at("work"), at("alias")).unwrap();
    symlink(at("plain"), at("link")).unwrap();
    let (data, work) = (at("data"), at("work"));
    let refused = |read: &[&Path], write: &[&Path]| {
        opened(&data, &[], &sandbox(read, write)).expect_err("it is refused")
    };
    // By its own path, by another name of the directory, and where the directory comes later.
    assert!(refused(&[&at("work/planted")], &[&work]).contains("could put a link"));
    assert!(refused(&[&at("alias/planted")], &[&work]).contains("could put a link"));
    assert!(refused(&[], &[&at("alias/planted"), &work]).contains("could put a link"));
    assert!(refused(&[&at("data/x")], &[]).contains("could put a link"));
    // Below a directory that is open already, nothing is followed, and nothing more is opened.
    let below = opened(&data, &[], &sandbox(&[], &[&work, &at("work/planted")])).unwrap();
    assert_eq!(below, [data.clone(), work]);
    // A link of the user's own is followed.
    let own = opened(&data, &[], &sandbox(&[&at("link")], &[])).unwrap();
    assert_eq!(own, [data.clone(), at("link"), at("plain")]);
    assert!(refused(&[&at("missing")], &[]).contains("does not exist"));
}

#[test]
fn no_server_may_change_what_its_sandbox_is_made_of() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let (data, config) = (home.join("data"), home.join("config"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::create_dir_all(config.join("x")).unwrap();
    let closed = [config.clone()];
    for path in [home.as_path(), &config, &config.join("x")] {
        let refusal = opened(&data, &closed, &sandbox(&[], &[path])).unwrap_err();
        assert!(refusal.contains("files of mcpzip"), "{refusal}");
        assert!(opened(&data, &closed, &sandbox(&[path], &[])).is_ok());
    }
}

#[cfg(unix)]
#[test]
fn sockets_and_devices_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let socket = home.join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let data = home.join("data");
    std::fs::create_dir(&data).unwrap();
    for path in [
        socket.as_path(),
        Path::new("/proc/1"),
        Path::new("/dev/null"),
    ] {
        assert!(
            opened(&data, &[], &sandbox(&[path], &[])).is_err(),
            "{path:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_program_brings_its_installation_and_its_interpreter() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let write = |path: &Path, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let python = home.join("pythons/3.12/bin/python3.12");
    write(&python, "");
    let venv = home.join("venv/bin");
    std::fs::create_dir_all(&venv).unwrap();
    symlink(&python, venv.join("python")).unwrap();
    write(
        &venv.join("server"),
        &format!("#!{}\n", venv.join("python").display()),
    );
    let found = runtime::of(&venv.join("server"), "", Some(&home), |_| false);
    let expected = [home.join("pythons/3.12"), home.join("venv")];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    // A program in the home directory's own `bin` brings itself only.
    let own = home.join(".local/bin/tool");
    write(&own, "#!/usr/bin/env -S node --x\n");
    let node = home.join("node/20/bin/node");
    write(&node, "");
    let path = node.parent().unwrap().to_str().unwrap();
    let found = runtime::of(&own, path, Some(&home), |_| false);
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        [own.clone(), home.join("node/20")]
    );
    // A file that the server may change names no other one.
    let found = runtime::of(&own, path, Some(&home), |file| file == own);
    assert!(found.is_empty());
}

#[test]
fn a_profile_of_macos_opens_what_is_named_and_denies_the_rest() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("da\"ta");
    std::fs::create_dir(&data).unwrap();
    let mounts = Mounts::new(&data, &[]);
    let none = seatbelt::profile(&Sandbox::default(), &mounts);
    assert!(none.starts_with("(version 1)\n(deny default)\n"));
    assert!(none.contains(r#"da\"ta"))"#), "{none}");
    assert!(!none.contains("network"), "{none}");
    let all = Sandbox {
        has_network: true,
        ..Sandbox::default()
    };
    assert!(seatbelt::profile(&all, &mounts).contains("(allow network-outbound (remote ip)"));
}
