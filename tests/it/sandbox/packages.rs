//! Packages that are fetched first and then started without their runner, with stand-ins for the package managers.

use serde_json::{Value, json};

use super::has_bubblewrap;
use super::refusals::script;
use crate::support::{Setup, command, program};

/// A stand-in for npm that installs the hostile server as a program. Each call is noted.
const NPM: &str = r#"
echo "npm $*" >> NOTES
[ -e OFFLINE ] && exit 1
case $1 in
  view) echo '"1.2.3"' ;;
  install)
    mkdir -p node_modules/.bin node_modules/pkg
    echo '{"bin":{"pkg":"x"}}' > node_modules/pkg/package.json
    echo '{"packages":{"node_modules/pkg":{"version":"1.0.0"LOCKED}}}' > node_modules/.package-lock.json
    cp SERVER node_modules/.bin/pkg ;;
esac"#;

/// A home with npm's stand-ins; a real `npx` is a link to npm's script.
fn setup() -> Setup {
    setup_of("")
}

/// That with further members in npm's list of what it installed.
fn setup_of(locked: &str) -> Setup {
    let setup = Setup::new().alone();
    let home = setup.home().path("");
    let programs = home.join("programs");
    let text = NPM
        .replace("NOTES", home.join("notes").to_str().unwrap())
        .replace("LOCKED", locked)
        .replace("OFFLINE", home.join("offline").to_str().unwrap())
        .replace("SERVER", program::hostile_server().to_str().unwrap());
    let npm = home.join("lib/node_modules/npm/bin/npm-cli.js");
    script(&npm, &text);
    std::fs::create_dir_all(&programs).unwrap();
    std::os::unix::fs::symlink(&npm, programs.join("npm")).unwrap();
    let runner = home.join("lib/node_modules/npm/bin/npx-cli.js");
    let server = program::hostile_server().to_str().unwrap();
    let text = format!(
        "echo runner >> {}\nexec {server}",
        home.join("notes").display()
    );
    script(&runner, &text);
    std::os::unix::fs::symlink(&runner, programs.join("npx")).unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.display());
    setup.variable("PATH", &path)
}

fn entry(setup: Setup, args: &[&str], more: Value) -> Setup {
    let mut entry = json!({ "command": "npx", "args": args });
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    setup.entry("h", &entry.to_string())
}

fn notes(setup: &Setup) -> Vec<String> {
    let notes = std::fs::read_to_string(setup.home().path("notes")).unwrap_or_default();
    notes.lines().map(str::to_owned).collect()
}

/// Calls the server in a session of its own.
#[track_caller]
fn called(setup: &Setup) -> String {
    let mut client = setup.connect();
    let text = client.execute_with("h__attempt", "{}").as_str().to_owned();
    client.finish();
    text
}

#[test]
fn a_package_is_fetched_once_and_then_started_without_its_runner() {
    let setup = entry(setup(), &["-y", "pkg@1.0.0"], json!({}));
    for _ in 0..2 {
        assert!(called(&setup).contains("{}"));
    }
    let notes = notes(&setup);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("npm install pkg@1.0.0 "), "{notes:?}");
    assert!(!notes[0].contains("--ignore-scripts"), "{notes:?}");
    let status = setup.run(&["status", "--json"]).json();
    assert_eq!(status["servers"][0]["package"], "pkg@1.0.0");
}

#[test]
fn entries_with_other_registries_or_other_rights_share_no_installation() {
    let entry = |registry: &str| json!({ "command": "npx", "args": ["pkg"], "env": { "npm_config_registry": registry, "OTHER": registry } });
    let setup = setup()
        .entry("h", &entry("http://one.example/").to_string())
        .entry("i", &entry("http://two.example/").to_string())
        .variable("npm_config_omit", "optional");
    let installed = |setup: &Setup| {
        let mut client = setup.connect();
        for server in ["h", "i"] {
            let said = client.execute_with(&format!("{server}__attempt"), "{}");
            assert!(said.as_str().contains("{}"), "{said:?}");
        }
        client.finish();
        let seen = notes(setup);
        let count = |word: &str| seen.iter().filter(|note| note.contains(word)).count();
        (count("npm view"), count("npm install"))
    };
    assert_eq!(installed(&setup), (2, 2));
    assert_eq!(installed(&setup), (2, 2));
    // Those of the session that change nothing do not count, as npm sets them for what it starts.
    let home = setup.home().path("home/.npmrc");
    let prefix = setup.home().path("");
    let quiet = [
        ("npm_config_loglevel", "error".to_owned()),
        ("NPM_CONFIG_USER_AGENT", "npm/11.0.0".to_owned()),
        ("npm_config_noproxy", String::new()),
        ("npm_config_userconfig", home.display().to_string()),
        (
            "npm_config_globalconfig",
            prefix.join("etc/npmrc").display().to_string(),
        ),
        ("npm_config_local_prefix", "/anywhere".to_owned()),
    ];
    let quiet = quiet.iter().fold(setup.clone(), |setup, (name, value)| {
        setup.variable(name, value)
    });
    assert_eq!(installed(&quiet), (2, 2));
    // The others do.
    let other = setup.clone().variable("npm_config_omit", "dev");
    assert_eq!(installed(&other), (4, 4));
    let foreign = setup
        .clone()
        .variable("npm_config_userconfig", "/other/.npmrc");
    assert_eq!(installed(&foreign), (6, 6));
    let same = setup.entry("i", &entry("http://one.example/").to_string());
    assert_eq!(installed(&same), (6, 6));
    let status = same.run(&["status", "--json"]).json();
    assert_eq!(status["servers"][0]["package"], "pkg@1.2.3");
}

/// A server that keeps its data in its package, with these variables and further members.
fn memory(env: Value, more: Value) -> Setup {
    let mut more = more;
    more["env"] = env;
    let package = "@modelcontextprotocol/server-memory";
    entry(setup(), &["-y", "-p", package, "pkg"], more)
}

#[test]
fn a_server_with_data_in_its_package_is_started_as_before() {
    for (env, expected) in [
        (json!({}), "runner"),
        // It would be one in the package.
        (json!({ "MEMORY_FILE_PATH": "memory.jsonl" }), "runner"),
        (
            json!({ "MEMORY_FILE_PATH": "/data/memory.jsonl" }),
            "npm install",
        ),
    ] {
        let setup = memory(env.clone(), json!({}));
        assert!(called(&setup).contains("{}"), "{env}");
        let notes = notes(&setup);
        let last = notes.last().unwrap();
        assert!(last.starts_with(expected), "{env}: {notes:?}");
        let shown = setup.run(&["status", "--json"]).json();
        assert_eq!(
            shown["servers"][0]["package"].is_null(),
            expected == "runner"
        );
    }
    let setup = setup();
    let added = setup.run(&[
        "--json",
        "add",
        "m",
        "--no-check",
        "--",
        "npx",
        "-y",
        "@modelcontextprotocol/server-memory",
    ]);
    let hints = added.code(0).json()["hints"].to_string();
    assert!(
        hints.contains("keeps its data in its package") && hints.contains("MEMORY_FILE_PATH"),
        "{hints}"
    );
    // Where it could store nothing, it is not started, and the doctor proposes no such place.
    let report = command::run(setup.command(&["doctor", "--json"]), "").json();
    assert!(!report.to_string().contains("sandbox-possible"), "{report}");
    if has_bubblewrap() {
        let setup = memory(json!({}), json!({ "sandbox": "strict" }));
        let said = called(&setup);
        assert!(said.contains("`MEMORY_FILE_PATH`"), "{said}");
    }
}

#[test]
fn an_old_version_goes_only_without_files_that_its_server_wrote() {
    let home = setup();
    let packages = home.cache_path().join("packages/npm-pkg");
    for version in ["1.0.0", "1.0.1"] {
        called(&entry(
            home.clone(),
            &["pkg@".to_owned() + version].each_ref().map(String::as_str),
            json!({}),
        ));
    }
    let versions: Vec<_> = std::fs::read_dir(&packages)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    assert_eq!(versions.len(), 2, "{versions:?}");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60 * 24 * 3600);
    for version in &versions {
        age(version, long_ago);
    }
    let of = |version: &str| {
        let name = |path: &&std::path::PathBuf| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with(version)
        };
        versions.iter().find(name).unwrap().clone()
    };
    std::fs::write(of("1.0.0-").join("node_modules/pkg/data.json"), "{}").unwrap();
    let newest = entry(home, &["pkg@1.0.2"], json!({}));
    called(&newest);
    crate::support::until("the end of the unused version", || {
        (!of("1.0.1-").exists()).then_some(())
    });
    assert!(of("1.0.0-").join("node_modules/pkg/data.json").exists());
}

/// Makes everything in a directory this old.
fn age(directory: &std::path::Path, time: std::time::SystemTime) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => age(&path, time),
            false => std::fs::File::options()
                .write(true)
                .open(&path)
                .and_then(|file| file.set_modified(time))
                .unwrap(),
        }
    }
}

#[test]
fn what_is_looked_up_for_a_sandbox_is_not_what_another_entry_looked_up() {
    if !has_bubblewrap() {
        return;
    }
    let setup = entry(setup(), &["pkg"], json!({}));
    called(&setup);
    let boxed = entry(setup, &["pkg"], json!({ "sandbox": "strict" }));
    called(&boxed);
    let seen = notes(&boxed);
    let views = seen.iter().filter(|note| note.starts_with("npm view"));
    assert_eq!(views.count(), 2, "{seen:?}");
}

#[test]
fn a_version_that_is_not_fixed_is_looked_up_once_a_day() {
    let setup = entry(setup(), &["pkg"], json!({}));
    called(&setup);
    called(&setup);
    let seen = notes(&setup);
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(
        seen[0].starts_with("npm view pkg@latest version"),
        "{seen:?}"
    );
    assert!(seen[1].starts_with("npm install pkg@1.2.3 "), "{seen:?}");
    // A day later, without the network: the last version is started, and the log says so.
    let packages = setup.cache_path().join("packages/npm-pkg");
    let record = std::fs::read_dir(&packages)
        .unwrap()
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with("wanted-"));
    std::fs::write(record.unwrap().path(), r#"{"version":"1.2.3","until":1}"#).unwrap();
    std::fs::write(setup.home().path("offline"), "").unwrap();
    let mut client = setup.connect();
    assert!(
        client
            .execute_with("h__attempt", "{}")
            .as_str()
            .contains("{}")
    );
    client.wait_for_stderr("the last one is used");
    client.finish();
    assert_eq!(notes(&setup).len(), 3);
}

#[test]
fn what_cannot_be_fetched_is_started_by_its_runner_and_said_in_the_log() {
    let offline = setup();
    std::fs::write(offline.home().path("offline"), "").unwrap();
    let offline = entry(offline, &["pkg@1.0.0"], json!({}));
    let mut client = offline.connect();
    assert!(
        client
            .execute_with("h__attempt", "{}")
            .as_str()
            .contains("{}")
    );
    client.wait_for_stderr("its runner starts it");
    client.finish();
    assert_eq!(notes(&offline).last().unwrap(), "runner");
    // And what is not to be fetched, or is in the project already.
    let own = entry(setup(), &["pkg@1.0.0"], json!({ "fetch": false }));
    called(&own);
    assert_eq!(notes(&own), ["runner"]);
    let local = entry(setup(), &["pkg@1.0.0"], json!({}));
    std::fs::create_dir_all(local.home().path("home/node_modules/pkg")).unwrap();
    called(&local);
    assert_eq!(notes(&local), ["runner"]);
}

#[test]
fn a_sandbox_fetches_without_running_scripts_and_never_falls_back() {
    if !has_bubblewrap() {
        return;
    }
    let boxed = |setup: Setup, args: &[&str], more: Value| {
        let mut members = json!({ "sandbox": "strict", "env": { "API_KEY": "s3cret" } });
        for (key, value) in more.as_object().unwrap() {
            members[key] = value.clone();
        }
        entry(setup, args, members)
    };
    let works = boxed(setup(), &["pkg@1.0.0"], json!({}));
    assert!(called(&works).contains("{}"));
    let seen = notes(&works);
    // A dependency from git would run its scripts, and a program that its `.npmrc` names as git.
    // And one from a file or a URL would bring private files of this machine and its network to the server.
    for option in [
        "--ignore-scripts",
        "--allow-git=none",
        "--git=/bin/false",
        "--allow-directory=none",
        "--allow-file=none",
        "--allow-remote=none",
    ] {
        assert!(seen[0].contains(option), "{seen:?}");
    }
    let offline = boxed(setup(), &["pkg@1.0.0"], json!({}));
    std::fs::write(offline.home().path("offline"), "").unwrap();
    let said = called(&offline);
    assert!(said.contains("its package cannot be fetched"), "{said}");
    for (args, more) in [
        (vec!["--node-options=x", "pkg"], json!({})),
        (vec!["pkg"], json!({ "fetch": false })),
    ] {
        let setup = boxed(setup(), &args, more);
        let said = called(&setup);
        assert!(said.contains("its sandbox has no network"), "{said}");
        assert!(notes(&setup).is_empty());
    }
}

#[test]
fn a_package_with_parts_that_are_not_of_the_registry_is_not_started_in_a_sandbox() {
    if !has_bubblewrap() {
        return;
    }
    for (locked, words) in [
        (r#","resolved":"file:/home/me/private.tgz""#, "private.tgz"),
        (r#","link":true"#, "a link"),
        (
            r#","dependencies":{"zz":"http://127.0.0.1:9/zz"}"#,
            "zz@http",
        ),
        (r#","optionalDependencies":{"zz":"../zz"}"#, "zz@../zz"),
    ] {
        let boxed = entry(
            setup_of(locked),
            &["pkg@1.0.0"],
            json!({ "sandbox": "strict" }),
        );
        let said = called(&boxed);
        assert!(
            said.contains("not of the registry") && said.contains(words),
            "{said}"
        );
        assert!(said.contains("did not start"), "{said}");
        // `npx` would install it, too.
        let plain = entry(setup_of(locked), &["pkg@1.0.0"], json!({}));
        assert!(called(&plain).contains(r#""text":"{}""#));
    }
    let good = r#","resolved":"https://registry.example/pkg.tgz","dependencies":{"a":"^1","b":"npm:@c/d@2"}"#;
    let boxed = entry(
        setup_of(good),
        &["pkg@1.0.0"],
        json!({ "sandbox": "strict" }),
    );
    assert!(called(&boxed).contains(r#""text":"{}""#));
}

/// A stand-in for uv that installs the hostile server as a program. Each call is noted, with the settings that it got.
const UV: &str = r#"
echo "uv $* bytecode=$UV_COMPILE_BYTECODE" >> NOTES
case $1 in
  venv) mkdir -p "$3/bin" ;;
  pip) while [ "$1" != --python ]; do shift; done; cp SERVER "$2/bin/pkg" ;;
esac"#;

/// The setup with a stand-in for uv, too.
fn with_uv() -> Setup {
    let setup = setup();
    let home = setup.home().path("");
    let text = UV
        .replace("NOTES", home.join("notes").to_str().unwrap())
        .replace("SERVER", program::hostile_server().to_str().unwrap());
    for name in ["uv", "uvx"] {
        script(&home.join("programs").join(name), &text);
    }
    setup
}

#[test]
fn no_code_of_a_python_package_runs_while_it_is_fetched_for_a_sandbox() {
    if !has_bubblewrap() {
        return;
    }
    let of = |more: Value| {
        let mut entry = json!({ "command": "uvx", "args": ["pkg==1.0.0"] });
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        let setup = with_uv().entry("h", &entry.to_string());
        let answer = called(&setup);
        assert!(answer.contains(r#""text":"{}""#), "{answer}");
        notes(&setup).pop().unwrap()
    };
    let boxed = of(json!({ "sandbox": "strict", "env": { "UV_COMPILE_BYTECODE": "1" } }));
    assert!(boxed.starts_with("uv pip install "), "{boxed}");
    assert!(boxed.contains(" --no-compile-bytecode "), "{boxed}");
    assert!(
        boxed.contains("--no-build") && boxed.ends_with("bytecode="),
        "{boxed}"
    );
    let plain = of(json!({}));
    assert!(plain.contains(" --compile-bytecode "), "{plain}");
}

/// A program of the shell that leaves a note, in place of a tool that runs outside of sandboxes.
fn escaping(setup: &Setup) -> String {
    format!(
        "echo escaped >> {}; exit 1",
        setup.home().path("escaped").display()
    )
}

#[test]
fn a_program_of_a_package_makes_no_sandbox() {
    if !has_bubblewrap() {
        return;
    }
    let setup = setup();
    let file = setup.home().path("programs/npm");
    let npm = std::fs::read_to_string(&file).unwrap();
    let planted = setup.home().path("planted");
    script(&planted, &escaping(&setup));
    let also = format!(
        "mkdir -p node_modules/.bin; cp {} node_modules/.bin/bwrap",
        planted.display()
    );
    script(&file, &format!("{npm}\n{also}"));
    let setup = entry(setup, &["pkg@1.0.0"], json!({ "sandbox": "strict" }));
    let answer = called(&setup);
    assert!(answer.contains(r#""text":"{}""#), "{answer}");
    assert!(!setup.home().path("escaped").exists());
}

#[test]
fn a_program_in_the_project_makes_no_sandbox_and_fetches_no_package() {
    if !has_bubblewrap() {
        return;
    }
    let setup = setup();
    let project = setup.home().path("home/project");
    let planted = project.join(".venv/bin");
    for name in ["bwrap", "npm", "node"] {
        script(&planted.join(name), &escaping(&setup));
    }
    let programs = setup.home().path("programs");
    let path = format!("{}:{}:/usr/bin:/bin", planted.display(), programs.display());
    let setup = setup.variable("PATH", &path);
    let setup = entry(setup, &["pkg@1.0.0"], json!({ "sandbox": "project" }));
    setup.save();
    let mut command = setup.command(&["serve"]);
    command.current_dir(&project);
    let mut client = setup.start_command(command);
    client.shake_hands("2025-11-25");
    assert_eq!(client.execute_with("h__attempt", "{}").text(), "{}");
    client.finish();
    assert!(!setup.home().path("escaped").exists());
}

#[test]
fn a_sandbox_is_added_by_the_command_line_and_proposed_by_the_doctor() {
    let setup = setup();
    let added = setup.run(&[
        "add",
        "time",
        "--no-check",
        "--sandbox",
        "strict",
        "--",
        "uvx",
        "mcp-server-time",
    ]);
    let _ = added.code(0);
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    assert!(text.contains(r#""sandbox": "strict""#), "{text}");
    let work = setup.home().path("work");
    std::fs::create_dir_all(&work).unwrap();
    let files = "@modelcontextprotocol/server-filesystem";
    let run = |arguments: &[&str]| command::run(setup.command(arguments), "");
    let add = |options: &[&str]| {
        let command = ["--", "npx", "-y", files, work.to_str().unwrap()];
        let words = ["add", "files", "--no-check", "--force"].iter();
        let words = words.copied().collect::<Vec<_>>();
        run(&[words.as_slice(), options, &command].concat())
    };
    let path = json!(work).to_string();
    let told = add(&["--sandbox", "strict"]).code(0).json()["hints"].to_string();
    assert!(told.contains("which its sandbox does not have"), "{told}");
    let value = format!(r#"{{"write": [{path}]}}"#);
    let told = add(&["--sandbox", &value]).code(0).json()["hints"].to_string();
    assert!(!told.contains("does not have"), "{told}");
    // Without a sandbox the doctor proposes one, in which the server can do its work.
    let _ = run(&["remove", "files"]).code(0);
    let _ = add(&[]).code(0);
    let report = run(&["doctor", "--json"]).json();
    let findings = report["findings"].as_array().unwrap().iter();
    let found: Vec<String> = findings
        .filter(|found| found["code"] == "sandbox-possible" && found["subject"] == "files")
        .map(|found| found["what"].as_str().unwrap().to_owned())
        .collect();
    let advice = format!(r#""sandbox": {value}"#);
    assert!(found.iter().any(|what| what.contains(&advice)), "{report}");
    let wrong = setup.run(&["add", "b", "--no-check", "--sandbox", "loose", "--", "x"]);
    assert!(
        wrong.code != Some(0) && wrong.stderr.contains("strict"),
        "{wrong}"
    );
}
