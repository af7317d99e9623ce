//! Secrets of `${keyring:NAME}`: set by a person, used by servers, and shown to no one.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::command::{self, Outcome};
use crate::support::script::{answer, surroundings};
use crate::support::{Server, Setup, until};

/// Keys as `mcpzip secret key` prints them.
const KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";
const OTHER_KEY: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI";

const VALUE: &str = "hunter2-first-value";
const NEXT: &str = "hunter2-second-value";

fn server() -> Server {
    Server::new()
        .tool("look", [surroundings()])
        .tool("t", [answer("fine")])
}

/// A server that uses a secret, and one that does not, with a key for the file of secrets.
fn setup() -> Setup {
    Setup::new()
        .server_with(
            "with",
            server(),
            json!({ "env": { "GIVEN": "${keyring:git/hub}" } }),
        )
        .server("without", server())
        .variable("MCPZIP_SECRET_KEY", KEY)
}

#[track_caller]
fn run(setup: &Setup, arguments: &[&str], input: &str) -> Outcome {
    setup.save();
    command::run(setup.command(arguments), input)
}

#[track_caller]
fn set(setup: &Setup, name: &str, value: &str) -> Outcome {
    run(setup, &["secret", "set", name], value).code(0)
}

fn file(setup: &Setup) -> PathBuf {
    setup.home().path("state/secrets.json")
}

fn read(setup: &Setup) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file(setup)).unwrap()).unwrap()
}

/// The variables of a server's process.
#[track_caller]
fn given(text: &str) -> Value {
    let mut seen: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"));
    if let Some(inner) = seen["content"][0]["text"].as_str() {
        seen = serde_json::from_str(inner).unwrap_or_else(|_| panic!("{text}"));
    }
    seen["variables"].clone()
}

#[test]
fn a_secret_reaches_its_server_and_nothing_else() {
    let setup = setup().entry(
        "web",
        r#"{"url":"http://127.0.0.1:9/${keyring:git/hub}","headers":{"X":"Bearer ${keyring:git/hub}"},"oauth":{"client_id":"me","client_secret":"${keyring:git/hub}"}}"#,
    );
    let mut said = vec![set(&setup, "git/hub", VALUE)];
    assert_eq!(
        said[0].json(),
        json!({ "name": "git/hub", "store": "file" })
    );
    let mut client = setup.connect();
    let variables = given(&client.execute("with__look").text());
    assert_eq!(variables["GIVEN"], VALUE);
    assert_eq!(variables["MCPZIP_SECRET_KEY"], Value::Null);
    let variables = given(&client.execute("without__look").text());
    assert!(!variables.to_string().contains("hunter2"), "{variables}");
    let mut told = client.execute_with("mcpzip__servers", "{}").text();
    told.push_str(&client.stderr());
    client.finish();
    for arguments in [
        &["secret", "list"][..],
        &["secret", "list", "--json"],
        &["status"],
        &["list", "--json"],
        &["servers", "--json"],
        &["doctor", "--json"],
        &["logs"],
        &["audit"],
    ] {
        said.push(run(&setup, arguments, ""));
    }
    let listed = said[2].json();
    let used = listed[0]["used_by"].as_array().unwrap();
    assert_eq!(listed[0]["name"], "git/hub");
    assert_eq!(listed[0]["store"], "file");
    assert!(
        used.contains(&json!("mcpServers.with.env.GIVEN")),
        "{listed}"
    );
    assert!(
        used.contains(&json!("mcpServers.web.oauth.client_secret")),
        "{listed}"
    );
    let status = said[3].json();
    assert_eq!(
        status["keyring"],
        json!({ "in_keychain": 0, "in_file": 1, "file_is_open": true })
    );
    let doctor = said[6].json().to_string();
    assert!(doctor.contains("secrets-store"), "{doctor}");
    told.extend(
        said.iter()
            .flat_map(|said| [said.stdout.clone(), said.stderr.clone()]),
    );
    for file in ["state/secrets.json", "config.json", "state/logs/mcpzip.log"] {
        told.push_str(&std::fs::read_to_string(setup.home().path(file)).unwrap_or_default());
    }
    assert!(!told.contains("hunter2"), "{told}");
    assert!(!told.contains(KEY), "{told}");
    let removed = run(&setup, &["secret", "rm", "git/hub"], "").code(0);
    assert!(
        removed.stderr.contains("mcpServers.with.env.GIVEN"),
        "{removed}"
    );
    let said = run(&setup, &["call", "with__t"], "");
    assert!(
        said.to_string().contains(
            "needs the secret `git/hub`, which is not set; `mcpzip secret set git/hub` sets it"
        ),
        "{said}"
    );
    let _ = run(&setup, &["call", "without__t"], "").code(0);
    let _ = run(&setup, &["secret", "rm", "git/hub"], "").code(1);
}

#[test]
fn an_entry_is_added_before_its_secret() {
    let setup = Setup::new();
    let header = "Authorization: Bearer ${keyring:later}";
    for (name, more) in [("a", &[][..]), ("b", &["--no-check"])] {
        let mut arguments = vec!["add", name, "http://127.0.0.1:9/mcp", "-H", header];
        arguments.extend(more);
        let added = run(&setup, &arguments, "").code(0);
        let written = std::fs::read_to_string(setup.config_path()).unwrap();
        assert!(written.contains(&format!("\"{name}\": {{")), "{written}");
        assert!(
            more.is_empty()
                == (added.json()["check"] == json!({ "state": "unset", "secret": "later" })),
            "{added}"
        );
        assert!(
            !more.is_empty() || added.json()["hints"] == json!([]),
            "{added}"
        );
    }
}

#[test]
fn the_list_has_the_file_of_secrets_too() {
    let setup = setup();
    setup.save();
    let config = std::fs::read_to_string(setup.config_path()).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    let env = json!({ "A": "${IN_FILE}", "B": "$${UNUSED}" });
    config["mcpServers"]["plain"] = json!({ "command": "x", "disabled": true, "env": env });
    std::fs::write(setup.config_path(), config.to_string()).unwrap();
    let path = setup.config_path().with_extension("secrets.json");
    let values = json!({ "IN_FILE": "hidden-value-1", "UNUSED": "hidden-value-2" });
    std::fs::write(&path, values.to_string()).unwrap();
    let listed = command::run(setup.command(&["secret", "list", "--json"]), "").code(0);
    assert!(!listed.to_string().contains("hidden-value"), "{listed}");
    let listed = listed.json();
    let of = |name: &str| {
        let all = listed.as_array().unwrap().iter();
        let mut found = all.filter(|secret| secret["name"] == name);
        found.next().unwrap_or_else(|| panic!("{listed}")).clone()
    };
    let used = of("IN_FILE");
    assert_eq!(used["store"], "plain");
    assert_eq!(used["used_by"], json!(["mcpServers.plain.env.A"]));
    assert_eq!(of("UNUSED")["used_by"], json!([]));
    let refused = command::run(setup.command(&["secret", "rm", "IN_FILE"]), "").code(1);
    assert!(refused.stderr.contains("config.secrets.json"), "{refused}");
    let told = command::run(
        setup.command(&["secret", "set", "IN_FILE"]),
        "another-value",
    )
    .code(0);
    assert!(
        told.stderr.contains("`${IN_FILE}` is still the value in"),
        "{told}"
    );
}

#[test]
fn a_secret_that_the_configuration_takes_from_the_environment_says_what_to_write() {
    let setup = setup();
    setup.save();
    let config = std::fs::read_to_string(setup.config_path()).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["mcpServers"]["plain"] =
        json!({ "command": "x", "disabled": true, "env": { "A": "${TOKEN}" } });
    std::fs::write(setup.config_path(), config.to_string()).unwrap();
    let advice = "write `${keyring:TOKEN}` there";
    let told = command::run(setup.command(&["secret", "set", "TOKEN"]), VALUE).code(0);
    assert!(told.stderr.contains(advice), "{told}");
    assert!(told.stderr.contains("`mcpServers.plain.env.A`"), "{told}");
    let listed = command::run(setup.command(&["secret", "list"]), "").code(0);
    assert!(listed.stderr.contains(advice), "{listed}");
    let told = command::run(setup.command(&["secret", "set", "git/hub"]), VALUE).code(0);
    assert!(!told.stderr.contains("environment variable"), "{told}");
}

#[test]
fn values_and_names_have_rules() {
    let setup = setup();
    let pem = "-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----";
    let _ = set(&setup, "git/hub", &format!("{pem}\n"));
    assert_eq!(
        given(&run(&setup, &["call", "with__look"], "").code(0).stdout)["GIVEN"],
        pem
    );
    let _ = set(&setup, "git/hub", "ends in one\r\n");
    let seen = run(&setup, &["call", "with__look"], "").code(0);
    assert_eq!(given(&seen.stdout)["GIVEN"], "ends in one");
    let huge = "h".repeat(64 * 1024);
    let _ = set(&setup, "huge", &huge);
    for (value, words) in [
        ("", "no value was given"),
        ("\n", "no value was given"),
        ("a\0b", "NUL"),
        (&format!("{huge}x")[..], "larger than 64 kB"),
    ] {
        let refused = run(&setup, &["secret", "set", "git/hub"], value).code(1);
        assert!(refused.stderr.contains(words), "{refused}");
        assert!(!refused.to_string().contains("a\0b"), "{refused}");
    }
    let long = "n".repeat(129);
    for name in [
        "", "-x", "a b", "a:b", "a}b", "ü", ".a", "/a", "a\nb", &long,
    ] {
        let refused = run(&setup, &["secret", "set", "--", name], "value-of-it").code(2);
        assert!(
            refused.stderr.contains("the name of a secret has"),
            "{name}: {refused}"
        );
    }
    let refused = run(&setup, &["secret", "set", "name", "value-of-it"], "").code(2);
    assert!(refused.stdout.is_empty(), "{refused}");
    for (written, words) in [
        ("${keyring:a b}", "the name of a secret has"),
        ("${keyring:x:-default}", "takes no default"),
        ("${keyring:}", "the name of a secret has"),
        ("${keychain:x}", "write `${keyring:x}`"),
    ] {
        let entry = json!({ "command": "x", "args": [written] }).to_string();
        let said = setup.clone().entry("odd", &entry).run(&["servers", "odd"]);
        assert!(said.to_string().contains(words), "{written}: {said}");
    }
    let literal = json!({ "command": "x", "args": ["$${keyring:x}"] }).to_string();
    let shown = setup.entry("odd", &literal).run(&["doctor", "--json"]);
    assert!(!shown.to_string().contains("secret-unset"), "{shown}");
}

#[test]
fn a_wrong_key_or_a_damaged_file_costs_the_servers_that_use_it() {
    let setup = setup();
    let _ = set(&setup, "git/hub", VALUE);
    let _ = set(&setup, "slack", NEXT);
    let good = std::fs::read_to_string(file(&setup)).unwrap();
    let fails = |setup: &Setup, words: &str| {
        let said = run(setup, &["call", "with__t"], "");
        assert!(said.code != Some(0), "{said}");
        let said = said.to_string();
        assert!(
            said.contains(words) && !said.contains("hunter2"),
            "{words}: {said}"
        );
        let _ = run(setup, &["call", "without__t"], "").code(0);
        let status = run(setup, &["status"], "").code(0);
        assert!(!status.to_string().contains("hunter2"), "{status}");
    };
    let with = |key: &str| setup.clone().variable("MCPZIP_SECRET_KEY", key);
    fails(
        &with(OTHER_KEY),
        "this is not the key of the file of secrets",
    );
    fails(
        &with("short"),
        "the key is not one that `mcpzip secret key` makes",
    );
    fails(&with(""), "set MCPZIP_SECRET_KEY");
    let write = |text: &str| std::fs::write(file(&setup), text).unwrap();
    for (text, words) in [
        (&good[..good.len() / 2], "are damaged"),
        ("", "are damaged"),
        ("[]", "are damaged"),
        ("{\"version\": 1}", "are damaged"),
        ("{\"version\": -1, \"secrets\": {}}", "are damaged"),
        ("\u{feff}{\"version\": 1, \"secrets\": {}}", "are damaged"),
        (
            &good.replace("\"version\": 1", "\"version\": 2"),
            "form 2 of a newer mcpzip",
        ),
        (&good.replace("\"slack\"", "\"a b\""), "are damaged"),
        (
            &good.replace("\"changed\"", "\"odd\": 1, \"changed\""),
            "are damaged",
        ),
        (
            &good.replace("\"nonce\"", "\"odd\": 1, \"nonce\""),
            "are damaged",
        ),
    ] {
        write(text);
        fails(&setup, words);
        // Nothing overwrites a file that was not understood.
        let _ = run(&setup, &["secret", "set", "new"], "value-of-it").code(1);
        assert_eq!(std::fs::read_to_string(file(&setup)).unwrap(), text);
        let doctor = run(&setup, &["doctor", "--json"], "").to_string();
        assert!(doctor.contains("secrets-unreadable"), "{doctor}");
    }
    // A value of another name, and one with a changed bit.
    let mut swapped: Value = serde_json::from_str(&good).unwrap();
    swapped["secrets"]["git/hub"]["sealed"] = swapped["secrets"]["slack"]["sealed"].clone();
    write(&swapped.to_string());
    fails(&setup, "the encrypted value of `git/hub` is damaged");
    write(&good);
    let _ = run(&setup, &["call", "with__t"], "").code(0);
    // A passphrase that would take all memory.
    let mut costly: Value = serde_json::from_str(&good).unwrap();
    let sealed = costly["key"]["sealed"].clone();
    costly["key"] = json!({ "by": "passphrase", "id": "x", "salt": "AAAAAAAAAAAAAAAAAAAAAA", "sealed": sealed,
        "argon2id": { "memory_kib": 4_000_000_000_u32, "passes": 1, "lanes": 1 } });
    write(&costly.to_string());
    fails(&setup, "would cost too much");
    costly["key"]["argon2id"] =
        json!({ "memory_kib": 8192, "passes": 1, "lanes": 1, "threads": 1 });
    write(&costly.to_string());
    fails(&setup, "does not have the form of its version");
}

#[cfg(target_os = "linux")]
#[test]
fn a_key_that_others_can_reach_does_not_block_the_variable() {
    use std::os::unix::fs::PermissionsExt as _;

    let runtime = tempfile::tempdir().unwrap();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(runtime.path(), 0o700);
    let setup = setup().variable("XDG_RUNTIME_DIR", runtime.path().to_str().unwrap());
    let _ = set(&setup, "git/hub", VALUE);
    let _ = run(&setup, &["secret", "unlock"], KEY).code(0);
    mode(&runtime.path().join("mcpzip"), 0o755);
    let _ = run(&setup, &["call", "with__t"], "").code(0);
    let without = setup.variable("MCPZIP_SECRET_KEY", "");
    let said = run(&without, &["call", "with__t"], "").to_string();
    assert!(said.contains("other users can reach it"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_the_file_stays_a_link() {
    let setup = setup();
    let _ = set(&setup, "git/hub", VALUE);
    let target = setup.home().path("elsewhere/own.json");
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    std::fs::rename(file(&setup), &target).unwrap();
    std::os::unix::fs::symlink(&target, file(&setup)).unwrap();
    let _ = set(&setup, "slack", NEXT);
    assert!(file(&setup).is_symlink());
    let written: Value = serde_json::from_slice(&std::fs::read(&target).unwrap()).unwrap();
    assert!(written["secrets"]["slack"].is_object(), "{written}");
    let _ = run(&setup, &["call", "with__t"], "").code(0);
    // One that leads nowhere is not replaced either.
    std::fs::remove_file(&target).unwrap();
    let _ = run(&setup, &["secret", "set", "other"], VALUE).code(1);
    assert!(file(&setup).is_symlink());
}

#[test]
fn no_server_gets_the_key_of_the_secrets() {
    let setup = setup().server_with(
        "greedy",
        server(),
        json!({ "env": { "GIVEN": "x${MCPZIP_SECRET_KEY}" } }),
    );
    let said = run(&setup, &["call", "greedy__t"], "");
    assert!(said.code != Some(0), "{said}");
    assert!(said.stderr.contains("opens all stored secrets"), "{said}");
    let told = format!("{}{}", said.stdout, said.stderr);
    assert!(!told.contains(KEY), "{said}");
    let _ = run(&setup, &["call", "without__t"], "").code(0);
}

#[test]
fn a_new_value_restarts_the_connections_that_use_it() {
    let setup = setup();
    let _ = set(&setup, "git/hub", VALUE);
    let mut client = setup.connect();
    assert_eq!(given(&client.execute("with__look").text())["GIVEN"], VALUE);
    assert_eq!(client.execute("without__t").text(), "fine");
    let (with, without) = (setup.home().starts("with"), setup.home().starts("without"));
    let _ = command::run(setup.command(&["secret", "set", "git/hub"]), NEXT).code(0);
    until("the new value to arrive", || {
        let seen = client.execute("with__look").text();
        (seen.contains(NEXT)).then_some(())
    });
    assert_eq!(client.execute("without__t").text(), "fine");
    assert_eq!(setup.home().starts("without"), without);
    assert!(setup.home().starts("with") > with);
    let said = client.stderr();
    assert!(!said.contains("hunter2"), "{said}");
    client.finish();
}

#[cfg(target_os = "linux")]
#[test]
fn a_new_value_reaches_sessions_of_a_daemon_and_clients_over_http() {
    use crate::daemon::Shared;

    let shared = Shared::new(setup());
    let _ = command::run(shared.command(&["secret", "set", "git/hub"]), VALUE).code(0);
    let mut client = shared.connect();
    assert_eq!(given(&client.execute("with__look").text())["GIVEN"], VALUE);
    assert_eq!(client.execute("without__t").text(), "fine");
    let without = shared.home().starts("without");
    let _ = command::run(shared.command(&["secret", "set", "git/hub"]), NEXT).code(0);
    until("the new value to arrive", || {
        client
            .execute("with__look")
            .text()
            .contains(NEXT)
            .then_some(())
    });
    assert_eq!(client.execute("without__t").text(), "fine");
    assert_eq!(shared.home().starts("without"), without);
    client.finish();
    drop(shared);

    let setup = setup();
    let _ = set(&setup, "git/hub", VALUE);
    let gateway = setup.serve(&[]);
    let look = || gateway.modern_execute("with__look", "").send().body;
    let seen = look();
    assert!(seen.contains(VALUE), "{seen}");
    let _ = command::run(setup.command(&["secret", "set", "git/hub"]), NEXT).code(0);
    until("the new value to arrive", || {
        look().contains(NEXT).then_some(())
    });
}

#[test]
fn writers_side_by_side_and_killed_writers_lose_nothing() {
    let setup = setup();
    let _ = set(&setup, "git/hub", VALUE);
    let start = |name: &str| {
        let mut child = setup.command(&["secret", "set", name]).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), NEXT.as_bytes()).unwrap();
        child
    };
    let writers: Vec<_> = (0..6).map(|number| start(&format!("n{number}"))).collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let all = read(&setup);
    assert_eq!(all["secrets"].as_object().unwrap().len(), 7, "{all}");
    for delay in [0, 2, 5, 10, 20, 40, 80] {
        let mut writer = start("killed");
        std::thread::sleep(std::time::Duration::from_millis(delay));
        let _ = writer.kill();
        let _ = writer.wait();
        let _ = run(&setup, &["call", "with__t"], "").code(0);
        assert!(read(&setup)["secrets"]["n5"].is_object());
    }
}

#[cfg(unix)]
#[test]
fn a_passphrase_opens_the_file_for_the_session() {
    use std::os::unix::fs::PermissionsExt as _;

    use crate::support::terminal::Terminal;

    let runtime = tempfile::tempdir().unwrap();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(runtime.path(), 0o700);
    let setup = Setup::new()
        .server_with(
            "with",
            server(),
            json!({ "env": { "GIVEN": "${keyring:git/hub}" } }),
        )
        .server("without", server())
        .variable("XDG_RUNTIME_DIR", runtime.path().to_str().unwrap());
    setup.save();
    // Without a terminal there is no passphrase.
    let refused = run(&setup, &["secret", "set", "git/hub"], VALUE).code(1);
    assert!(
        refused.stderr.contains("export MCPZIP_SECRET_KEY="),
        "{refused}"
    );
    let Some(terminal) = Terminal::run(&setup.command(&["secret", "set", "git/hub"])) else {
        return;
    };
    for (question, answer) in [
        ("value of git/hub (not shown)", VALUE),
        (
            "new passphrase of at least 8 characters (not shown)",
            "correct horse",
        ),
        ("the same again (not shown)", "correct horse"),
    ] {
        terminal.shows(question);
        terminal.types(answer);
    }
    let screen = terminal.shows("[exit 0]");
    assert!(
        !screen.contains("hunter2") && !screen.contains("correct"),
        "{screen}"
    );
    let mut client = setup.connect();
    assert_eq!(given(&client.execute("with__look").text())["GIVEN"], VALUE);
    let _ = command::run(setup.command(&["secret", "lock"]), "").code(0);
    until("the lock to count", || {
        let said = client.execute("with__look");
        said.is_tool_error().then_some(())
    });
    assert_eq!(client.execute("without__t").text(), "fine");
    let wrong = command::run(setup.command(&["secret", "unlock"]), "wrong horse").code(1);
    assert!(
        wrong.stderr.contains("this is not the passphrase"),
        "{wrong}"
    );
    let _ = command::run(setup.command(&["secret", "unlock"]), "correct horse\n").code(0);
    until("the server to be back", || {
        (!client.execute("with__look").is_tool_error()).then_some(())
    });
    client.finish();
    // A key that others could have read or written is not used.
    let key = std::fs::read_dir(runtime.path().join("mcpzip"))
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "key"))
        .unwrap();
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    for (path, open, shut) in [
        (key.as_path(), 0o644, 0o600),
        (key.parent().unwrap(), 0o755, 0o700),
    ] {
        mode(path, open);
        let said = run(&setup, &["call", "with__t"], "").to_string();
        assert!(said.contains("other users can reach it"), "{said}");
        mode(path, shut);
    }
    let _ = run(&setup, &["call", "with__t"], "").code(0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_locked_keychain_costs_those_servers_only() {
    use crate::support::keyring::Keyring;

    let Some(mut keyring) = Keyring::start() else {
        return;
    };
    let plain = setup();
    let setup = keyring.around(&plain);
    assert_eq!(set(&setup, "git/hub", VALUE).json()["store"], "keychain");
    let all = read(&setup);
    assert!(all["secrets"]["git/hub"]["sealed"].is_null(), "{all}");
    assert_eq!(
        given(&run(&setup, &["call", "with__look"], "").code(0).stdout)["GIVEN"],
        VALUE
    );
    let refused = run(
        &setup,
        &["secret", "set", "git/hub", "--store", "file"],
        NEXT,
    )
    .code(1);
    assert!(refused.stderr.contains("is in the keychain"), "{refused}");
    keyring.open(false);
    let mut client = setup.connect();
    let said = client.execute("with__t").tool_error();
    assert!(said.contains("the keychain is locked"), "{said}");
    assert_eq!(client.execute("without__t").text(), "fine");
    let doctor = run(&setup, &["doctor", "--json"], "").to_string();
    assert!(doctor.contains("secret-locked"), "{doctor}");
    let refused = run(&setup, &["secret", "set", "new"], NEXT).code(1);
    assert!(refused.stderr.contains("--store file"), "{refused}");
    // It is noticed when the keychain is open again.
    keyring.open(true);
    until("the server to be back", || {
        let said = client.execute("with__look");
        (!said.is_tool_error()).then_some(())
    });
    let without = setup.home().starts("without");
    let _ = command::run(setup.command(&["secret", "set", "git/hub"]), NEXT).code(0);
    until("the new value to arrive", || {
        client
            .execute("with__look")
            .text()
            .contains(NEXT)
            .then_some(())
    });
    assert_eq!(setup.home().starts("without"), without);
    client.finish();
    let _ = run(&setup, &["secret", "rm", "git/hub"], "").code(0);
    // Where no keychain answers, the file is used.
    keyring.close();
    let kept = set(&setup, "git/hub", VALUE);
    assert_eq!(kept.json()["store"], "file");
    assert!(kept.stderr.contains("the encrypted file is used"), "{kept}");
    assert_eq!(
        given(&run(&setup, &["call", "with__look"], "").code(0).stdout)["GIVEN"],
        VALUE
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_secret_that_cannot_be_stored_is_unchanged_in_the_keychain_and_in_the_file() {
    use crate::support::keyring::Keyring;

    let Some(mut keyring) = Keyring::start() else {
        return;
    };
    let setup = keyring.around(&setup());
    assert_eq!(set(&setup, "git/hub", VALUE).json()["store"], "keychain");
    // No file can grow, as on a disk that is full.
    let full = |arguments: &[&str], input: &str| {
        let plain = setup.command(arguments);
        let mut command = command::through("sh", &plain);
        command
            .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""])
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(plain.get_current_dir().unwrap());
        command::run(command, input).code(1)
    };
    let value = || given(&run(&setup, &["call", "with__look"], "").code(0).stdout)["GIVEN"].clone();
    for (arguments, input) in [
        (["secret", "set", "git/hub"], NEXT),
        (["secret", "rm", "git/hub"], ""),
    ] {
        let said = full(&arguments, input);
        assert!(said.stderr.contains("cannot be written"), "{said}");
        assert_eq!(value(), VALUE, "{arguments:?}");
    }
    keyring.open(false);
    let before = read(&setup);
    let _ = run(&setup, &["secret", "set", "git/hub"], NEXT).code(1);
    let _ = run(&setup, &["secret", "rm", "git/hub"], "").code(1);
    assert_eq!(read(&setup), before);
    keyring.open(true);
    assert_eq!(value(), VALUE);
}

#[test]
fn an_agent_with_full_management_sends_no_secret_elsewhere() {
    let setup = setup().setting("management", json!("full"));
    let _ = set(&setup, "git/hub", VALUE);
    let before = std::fs::read_to_string(setup.config_path()).unwrap();
    let mut client = setup.connect();
    for entry in [
        json!({ "url": "http://127.0.0.1:9/?${keyring:git/hub}" }),
        json!({ "command": "cat", "env": { "X": "${keyring:git/hub}" } }),
        json!({ "command": "cat", "args": ["$${keyring:git/hub}"] }),
    ] {
        for (operation, name) in [("add", "new"), ("update", "without")] {
            let arguments = json!({ "operation": operation, "servers": { name: entry } });
            let said = client.execute_with("mcpzip__servers", &arguments.to_string());
            let said = said.tool_error();
            assert!(
                said.contains("a person has to write them"),
                "{operation}: {said}"
            );
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
    let redirect = json!({ "with": { "url": "http://127.0.0.1:9/", "command": null } });
    let redirect = json!({ "operation": "update", "servers": redirect }).to_string();
    let said = client
        .execute_with("mcpzip__servers", &redirect)
        .tool_error();
    assert!(said.contains("credentials"), "{said}");
    client.finish();
    assert_eq!(
        std::fs::read_to_string(setup.config_path()).unwrap(),
        before
    );
}

#[cfg(unix)]
#[test]
fn where_a_secret_cannot_be_stored_it_is_not_asked_for() {
    use crate::support::terminal::Terminal;
    let bare = || Setup::new().server("without", server());
    for (setup, why) in [
        (
            bare().variable("MCPZIP_CREDENTIALS", "keychain"),
            "keychain",
        ),
        (bare(), "XDG_RUNTIME_DIR"),
    ] {
        setup.save();
        let Some(terminal) = Terminal::run(&setup.command(&["secret", "set", "x"])) else {
            return;
        };
        let screen = terminal.shows("[exit 1]");
        assert!(
            screen.contains(why) && !screen.contains("not shown"),
            "{screen}"
        );
        let literal = r#"{"command": "x", "env": {"API_TOKEN": "hunter2-first-value"}}"#;
        let setup = setup.entry("literal", literal);
        setup.save();
        let terminal = Terminal::run(&setup.command(&["secret", "migrate"])).unwrap();
        let screen = terminal.shows("[exit 1]");
        assert!(
            screen.contains(why) && !screen.contains("[y/N]"),
            "{screen}"
        );
    }
}
