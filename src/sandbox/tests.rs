use std::path::{Path, PathBuf};

use parking_lot::RwLock;

use super::mounts::{Around, Mounts, project};
use super::runtime::Needs;
use super::{Sandboxes, lookup, seatbelt};
use crate::config::{Config, Sandbox, SessionEnv};

fn sandbox(read: &[&Path], write: &[&Path]) -> Sandbox {
    let owned = |paths: &[&Path]| paths.iter().map(|path| (*path).to_owned()).collect();
    Sandbox {
        read: owned(read),
        write: owned(write),
        ..Sandbox::default()
    }
}

fn opened(data: &Path, closed: &[PathBuf], sandbox: &Sandbox) -> Result<Vec<PathBuf>, String> {
    let around = Around {
        closed: closed.to_vec(),
        changeable: RwLock::default(),
    };
    opened_around(data, &around, sandbox)
}

fn opened_around(data: &Path, around: &Around, sandbox: &Sandbox) -> Result<Vec<PathBuf>, String> {
    let mut mounts = Mounts::new(data, around);
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
    std::fs::write(home.join("venv/pyvenv.cfg"), "").unwrap();
    std::fs::create_dir_all(home.join("pythons/3.12/lib/python3.12")).unwrap();
    let of = |program: &Path, path: &str| needs(path, &[&home], None, program);
    let expected = [home.join("pythons/3.12"), home.join("venv")];
    assert_eq!(of(&venv.join("server"), ""), expected);
    // A program in the home directory's own `bin` brings itself only.
    let own = home.join(".local/bin/tool");
    write(&own, "#!/usr/bin/env -S node --x\n");
    let node = home.join("node/20/bin/node");
    write(&node, "");
    std::fs::create_dir_all(home.join("node/20/lib/node_modules")).unwrap();
    let path = node.parent().unwrap().to_str().unwrap();
    assert_eq!(of(&own, path), [own.clone(), home.join("node/20")]);
    // A file that the server may change names no other one.
    let needs = Needs {
        path,
        homes: vec![home.clone()],
        package: None,
    };
    assert!(needs.of(&own, |file| file == own).is_empty());
    // A directory of settings with a `bin` is not an installation, nor is one that belongs to many programs.
    let configured = home.join(".config/bin/server");
    write(&configured, "");
    std::fs::create_dir_all(home.join(".config/lib/python3.12")).unwrap();
    std::fs::create_dir_all(home.join(".local/lib/python3.12")).unwrap();
    assert_eq!(of(&configured, ""), std::slice::from_ref(&configured));
    let other = home.join("app/bin/server");
    write(&other, "");
    assert_eq!(of(&other, ""), std::slice::from_ref(&other));
}

/// The needs of a program, as a list.
fn needs(path: &str, homes: &[&Path], package: Option<&Path>, program: &Path) -> Vec<PathBuf> {
    let homes = homes.iter().map(|home| (*home).to_owned()).collect();
    let needs = Needs {
        path,
        homes,
        package,
    };
    needs.of(program, |_| false).into_iter().collect()
}

#[cfg(unix)]
#[test]
fn a_program_in_a_home_behind_a_link_does_not_open_the_home() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let (real, home) = (root.join("disk/me"), root.join("home"));
    // The home would look like an installation.
    std::fs::create_dir_all(real.join("bin")).unwrap();
    std::fs::create_dir_all(real.join("lib/python3.12")).unwrap();
    std::fs::write(real.join("bin/tool"), "").unwrap();
    std::os::unix::fs::symlink(&real, &home).unwrap();
    let opened = needs("", &[&home, &real], None, &home.join("bin/tool"));
    assert_eq!(opened, [real.join("bin/tool"), home.join("bin/tool")]);
}

#[cfg(unix)]
#[test]
fn a_script_of_a_package_names_no_file_outside_of_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let (package, console) = (home.join("package"), home.join("app/bin/console"));
    let script = package.join("node_modules/.bin/server");
    for file in [&console, &script] {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "").unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let own = [package.join("node_modules")];
    let path = console.parent().unwrap().to_str().unwrap();
    let outside = console.display();
    let through = format!("{}/../app/bin/console", package.display());
    for line in [
        format!("#!{outside}\n"),
        format!("#!{through}\n"),
        format!("#!/usr/bin/env {outside}\n"),
        format!("#!/usr/bin/env -S -u {outside} x\n"),
    ] {
        std::fs::write(&script, &line).unwrap();
        assert_eq!(
            needs(path, &[&home], Some(&package), &script),
            own,
            "{line}"
        );
    }
    // A name is found in the `PATH`; a script of the user's own may name any interpreter, but not by `env`.
    std::fs::write(&script, "#!/usr/bin/env -S console --x\n").unwrap();
    let found = needs(path, &[&home], Some(&package), &script);
    assert_eq!(found, [console.clone(), own[0].clone()]);
    std::fs::write(&script, format!("#!{outside}\n")).unwrap();
    assert_eq!(needs(path, &[&home], None, &script).len(), 2);
}

#[cfg(unix)]
#[test]
fn no_link_on_the_way_to_a_file_of_mcpzip_can_be_changed() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let at = |name: &str| home.join(name);
    for name in ["data", "config", "dotfiles/mcpzip", "other"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    std::fs::write(at("dotfiles/mcpzip/config.json"), "{}").unwrap();
    let (file, hop) = (at("config/config.json"), at("other/hop"));
    std::os::unix::fs::symlink(at("dotfiles/mcpzip/config.json"), &hop).unwrap();
    std::os::unix::fs::symlink(&hop, &file).unwrap();
    let closed = [file];
    for name in ["config", "other", "dotfiles", "dotfiles/mcpzip"] {
        let refusal = opened(&at("data"), &closed, &sandbox(&[], &[&at(name)]));
        let refusal = refusal.expect_err(name);
        assert!(refusal.contains("files of mcpzip"), "{name}: {refusal}");
    }
}

#[cfg(unix)]
#[test]
fn a_project_is_no_directory_of_keys_and_not_a_link_to_one() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    for name in [
        "work",
        ".ssh/deep",
        ".config/tool",
        ".config/gh/deep",
        ".config/gcloud",
        ".local/share/keyrings",
        ".local/share/tool",
        ".worktrees/x",
    ] {
        std::fs::create_dir_all(home.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(home.join(".ssh"), home.join("swapped")).unwrap();
    let refused = |name: &str| {
        let refusal = project(&home.join(name), Some(&home)).expect_err(name);
        refusal.to_string()
    };
    assert!(refused("swapped").contains("through a link"));
    for name in [
        ".ssh",
        ".ssh/deep",
        ".config",
        ".config/gh",
        ".config/gh/deep",
        ".config/gcloud",
        ".local/share",
        ".local/share/keyrings",
    ] {
        assert!(refused(name).contains("settings or keys"), "{name}");
    }
    for name in ["work", ".config/tool", ".local/share/tool", ".worktrees/x"] {
        assert!(project(&home.join(name), Some(&home)).is_ok(), "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_project_is_no_directory_of_the_system_and_needs_a_known_home() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    for path in ["/", "/etc", "/usr", "/var", "/home", "/usr/bin", "/dev"] {
        let refusal = project(Path::new(path), Some(&home)).expect_err(path);
        let refusal = refusal.to_string();
        // One of them may be a link.
        let words = ["belongs to the system", "through a link"];
        assert!(words.iter().any(|word| refusal.contains(word)), "{refusal}");
    }
    let work = home.join("work");
    std::fs::create_dir(&work).unwrap();
    for unknown in [None, Some(home.join("missing"))] {
        let refusal = project(&work, unknown.as_deref()).expect_err("no home");
        assert!(refusal.to_string().contains("is not known"), "{refusal}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_that_another_server_could_have_made_is_never_followed() {
    use std::os::unix::fs::symlink;
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let at = |name: &str| home.join(name);
    for name in ["data/own", "data/other", "others/part", "secret", "both"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    symlink(at("secret"), at("others/planted")).unwrap();
    symlink(at("others"), at("alias")).unwrap();
    let around = Around {
        closed: Vec::new(),
        changeable: RwLock::new([at("data"), at("others"), at("both")].into()),
    };
    let own = at("data/own");
    let open =
        |read: &[&Path], write: &[&Path]| opened_around(&own, &around, &sandbox(read, write));
    for path in [
        "others/planted",
        "others/part",
        "alias/planted",
        "data/other/x",
    ] {
        for refusal in [open(&[&at(path)], &[]), open(&[], &[&at(path)])] {
            let refusal = refusal.expect_err(path);
            assert!(refusal.contains("could put a link"), "{path}: {refusal}");
        }
    }
    // No other server puts a link in the place of the directory itself, and below one that both may change nothing is followed.
    assert_eq!(
        open(&[&at("others")], &[]).unwrap(),
        [own.clone(), at("others")]
    );
    let both = open(&[], &[&at("both"), &at("both/x")]).unwrap();
    assert_eq!(both, [at("both"), own.clone()]);
    let mut mounts = Mounts::new(&own, &around);
    let refusal = mounts.project(Some(&at("others/part")), Some(&at("secret")));
    let refusal = refusal.unwrap_err().to_string();
    assert!(refusal.contains("could put a link"), "{refusal}");
    // A program there is another server's as well, unless this one may change it itself.
    let (foreign, shared) = (at("others/tool"), at("both/tool"));
    mounts.named(&sandbox(&[], &[&at("both")])).unwrap();
    assert!(mounts.is_foreign(&foreign) && !mounts.is_foreign(&shared));
}

#[cfg(unix)]
#[test]
fn the_directories_that_servers_may_change_are_those_of_all_entries() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    for name in ["state/sandboxes", "write", "project"] {
        std::fs::create_dir_all(home.join(name)).unwrap();
    }
    let session = SessionEnv {
        directory: Some(home.join("project")),
        environment: [("HOME", home.to_str().unwrap())].into_iter().collect(),
        open_files: None,
    };
    let changeable = |preset: &str| {
        let path = home.join("write");
        let text = serde_json::json!({ "mcpServers": {
            "a": { "command": "x", "sandbox": { "preset": preset, "write": [path, home] } },
        } });
        let config = Config::parse(
            &text.to_string(),
            &home.join("config.json"),
            &session.environment,
        );
        let config = config.unwrap();
        let data = Some(home.join("state/sandboxes"));
        let sandboxes = Sandboxes::new(data, vec![home.join("state")], &config, &session);
        let paths = sandboxes.around.changeable.read().clone();
        Vec::from_iter(paths)
    };
    // The home directory has files of mcpzip, so no server may change it.
    let (data, write) = (home.join("state/sandboxes"), home.join("write"));
    assert_eq!(changeable("strict"), [data.clone(), write.clone()]);
    assert_eq!(changeable("project"), [home.join("project"), data, write]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_bubblewrap_that_makes_no_sandbox_is_refused_with_what_to_do() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let tool = home.path().join("bwrap");
    for (said, advice) in [
        ("bwrap: setting up uid map: Permission denied", "AppArmor"),
        ("bwrap: Unknown option --disable-userns", "0.8 or later"),
    ] {
        std::fs::write(&tool, format!("#!/bin/sh\necho '{said}' >&2; exit 1\n")).unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        let refusal = super::bubblewrap::check(&tool)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            refusal.contains(said) && refusal.contains(advice),
            "{refusal}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_tool_that_a_server_could_have_made_is_not_found() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let tool = |at: &str| {
        let file = home.join(at).join("mcpzip-test-tool");
        std::fs::create_dir_all(home.join(at)).unwrap();
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file
    };
    let (planted, own) = (tool("project/.venv/bin"), tool("own"));
    std::os::unix::fs::symlink(home.join("project"), home.join("alias")).unwrap();
    let project = home.join("project");
    let session = SessionEnv {
        directory: Some(project),
        environment: [("HOME", home.to_str().unwrap())].into_iter().collect(),
        open_files: None,
    };
    let sandboxes = Sandboxes::new(None, Vec::new(), &Config::default(), &session);
    let alias = home.join("alias/.venv/bin");
    let path = [planted.parent().unwrap(), &alias, own.parent().unwrap()];
    let path = std::env::join_paths(path).unwrap().into_string().unwrap();
    let found = lookup::tool("mcpzip-test-tool", &path, |file| {
        sandboxes.is_changeable(file)
    });
    assert_eq!(found, Some(own.clone()));
    assert_eq!(Path::new(&sandboxes.trusted(&path)), own.parent().unwrap());
    // One of the system goes before that of the `PATH`.
    std::fs::copy(&own, home.join("own/sh")).unwrap();
    let shell = lookup::tool("sh", &path, |_| false).unwrap();
    assert!(!shell.starts_with(&home), "{shell:?}");
}

#[test]
fn a_data_directory_is_one_of_the_directory_of_all() {
    let home = tempfile::tempdir().unwrap();
    let sandboxes = Sandboxes {
        data: Some(home.path().join("state/sandboxes")),
        ..Sandboxes::default()
    };
    assert!(sandboxes.data_of("a").is_ok());
    for name in [".", "..", "a/b", "/"] {
        let refusal = sandboxes.data_of(name).map_err(|error| error.to_string());
        assert!(refusal.unwrap_err().contains("of its own"), "{name}");
    }
}

#[test]
fn a_profile_of_macos_opens_what_is_named_and_denies_the_rest() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("da\"ta");
    std::fs::create_dir(&data).unwrap();
    let around = Around::default();
    let mounts = Mounts::new(&data, &around);
    let none = seatbelt::profile(&Sandbox::default(), &mounts);
    assert!(none.starts_with("(version 1)\n(deny default)\n"));
    assert!(none.contains(r#"da\"ta"))"#), "{none}");
    assert!(!none.contains("network"), "{none}");
    // Files of mcpzip in a directory that is open are not; those of the server come after them.
    let root = home.path().canonicalize().unwrap();
    let closed = Around {
        closed: vec![root.clone()],
        changeable: RwLock::default(),
    };
    let mut mounts_of_all = Mounts::new(&root.join("da\"ta"), &closed);
    let above = root.parent().unwrap();
    mounts_of_all.named(&sandbox(&[above], &[])).unwrap();
    let profile = seatbelt::profile(&Sandbox::default(), &mounts_of_all);
    let hidden = profile.find(&format!(
        "(deny file-read* (subpath \"{}\"))",
        root.display()
    ));
    let own = profile.find("(allow file-read* file-write* (subpath");
    assert!(hidden.unwrap() < own.unwrap(), "{profile}");
    let all = Sandbox {
        has_network: true,
        ..Sandbox::default()
    };
    assert!(seatbelt::profile(&all, &mounts).contains("(allow network-outbound (remote ip)"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_descriptor_that_children_inherit_becomes_an_empty_file() {
    use std::os::fd::AsRawFd as _;
    let home = tempfile::tempdir().unwrap();
    let open = |is_inherited: bool| {
        let directory = std::fs::File::open("/").unwrap();
        if is_inherited {
            rustix::io::fcntl_setfd(&directory, rustix::io::FdFlags::empty()).unwrap();
        }
        directory
    };
    let (left_open, own) = (open(true), open(false));
    let sandboxes = Sandboxes {
        data: Some(home.path().join("sandboxes")),
        ..Sandboxes::default()
    };
    let tool = sandboxes.bubblewrap.get_or_init(|| "/usr/bin/bwrap".into());
    assert!(tool.is_absolute());
    let sandbox = Sandbox::default();
    let stdio = crate::config::Stdio {
        command: "/bin/sh".to_owned(),
        args: Vec::new(),
        env: std::collections::BTreeMap::new(),
        cwd: None,
        command_line: None,
        sandbox: Some(Box::new(sandbox.clone())),
        fetch: None,
    };
    let session = crate::config::Environment::default();
    let start = super::Start {
        name: "a",
        stdio: &stdio,
        package: None,
        variables: &session,
        session: &session,
        directory: None,
        mark: None,
    };
    let launch = sandboxes.launch(&sandbox, &start).unwrap();
    let number = left_open.as_raw_fd();
    assert!(launch.descriptors.iter().any(|(own, _)| *own == number));
    let inherited = super::bubblewrap::inherited().unwrap();
    assert!(inherited.contains(&number) && !inherited.contains(&own.as_raw_fd()));
}
