//! Literal secrets in the configuration: they are named, and one command moves them to the file next to it.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::command::{self, Outcome};
use crate::support::script::surroundings;
use crate::support::{Server, Setup};

const TOKEN: &str = "tok-0123456789abcdefABCDEF";
const KEY: &str = "key-0123456789abcdefABCDEF";

/// A configuration with two secrets and a comment, as a person left it.
fn setup() -> Setup {
    let setup = Setup::new().log_level("error").server_with(
        "notes",
        Server::new().tool("look", [surroundings()]),
        json!({ "env": { "NOTES_TOKEN": TOKEN } }),
    );
    setup.save();
    let written = text(&setup).replacen('{', "{\n  // mine\n", 1);
    let mut setup = setup;
    let web = json!({ "url": "http://127.0.0.1:9/mcp", "headers": { "Authorization": format!("Bearer {KEY}") }, "disabled": true });
    let at = written.find("\"mcpServers\"").unwrap();
    let open = at + written[at..].find('{').unwrap() + 1;
    let written = format!("{}\"web\": {web},{}", &written[..open], &written[open..]);
    setup.save_text(&written);
    setup = setup.variable("UNRELATED", "1");
    setup
}

#[track_caller]
fn run(setup: &Setup, arguments: &[&str]) -> Outcome {
    command::run(setup.command(arguments), "")
}

fn text(setup: &Setup) -> String {
    std::fs::read_to_string(setup.config_path()).unwrap()
}

fn secrets(setup: &Setup) -> PathBuf {
    setup.config_path().with_extension("secrets.json")
}

fn stored(setup: &Setup) -> Value {
    let text = std::fs::read_to_string(secrets(setup)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

fn has_finding(setup: &Setup, code: &str) -> bool {
    let report = run(setup, &["doctor", "--json"]).json();
    let findings = report["findings"].as_array().unwrap().clone();
    findings.iter().any(|finding| finding["code"] == code)
}

#[test]
fn literal_secrets_of_the_configuration_move_and_come_back() {
    let setup = setup();
    let before = text(&setup);
    assert!(has_finding(&setup, "secret-literal"));
    let looked = run(&setup, &["config", "extract-secrets", "--dry-run"]).code(0);
    assert_eq!(looked.json()["changed"], false);
    assert_eq!(text(&setup), before);
    let refused = run(&setup, &["config", "extract-secrets"]).code(1);
    assert!(refused.stderr.contains("`--yes`"), "{refused}");
    let moved = run(&setup, &["config", "extract-secrets", "--yes"]).code(0);
    for outcome in [&looked, &moved] {
        let all = format!("{outcome}");
        assert!(!all.contains(TOKEN) && !all.contains(KEY), "{all}");
    }
    let after = text(&setup);
    assert!(!after.contains(TOKEN) && !after.contains(KEY), "{after}");
    assert!(after.contains("// mine"), "{after}");
    assert!(after.contains("Bearer ${WEB_AUTHORIZATION}"), "{after}");
    assert_eq!(
        stored(&setup),
        json!({ "NOTES_TOKEN": TOKEN, "WEB_AUTHORIZATION": KEY })
    );
    assert!(!has_finding(&setup, "secret-literal"));
    let status = run(&setup, &["status", "--json"]).code(0).json();
    assert_eq!(status["secrets"]["count"], 2, "{status}");
    assert_eq!(status["secrets"]["is_open"], false, "{status}");
    let called = run(&setup, &["call", "notes__look", "{}"]).code(0);
    assert!(called.stdout.contains("NOTES_TOKEN"), "{called}");
    let again = run(&setup, &["config", "extract-secrets", "--yes"]).code(0);
    assert_eq!(again.json()["changed"], false);
    let _ = run(&setup, &["undo"]).code(0);
    assert_eq!(text(&setup), before);
    assert!(!secrets(&setup).exists());
}

#[cfg(unix)]
#[test]
fn a_file_of_secrets_that_others_can_read_is_closed() {
    use std::os::unix::fs::PermissionsExt as _;
    let setup = setup();
    let file = secrets(&setup);
    let set = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode));
    let mode = || file.metadata().unwrap().permissions().mode() & 0o777;
    std::fs::write(&file, r#"{ "MINE": "kept" } // end"#).unwrap();
    set(0o644).unwrap();
    std::fs::set_permissions(
        file.parent().unwrap(),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let status = run(&setup, &["status", "--json"]).code(0).json();
    assert_eq!(status["secrets"]["is_open"], true, "{status}");
    assert!(has_finding(&setup, "file-open"));
    let _ = run(&setup, &["doctor", "--fix", "--json"]);
    assert_eq!(mode(), 0o600, "the doctor closes it");
    set(0o644).unwrap();
    let _ = run(&setup, &["config", "extract-secrets", "--yes"]).code(0);
    assert_eq!(mode(), 0o600, "a new secret closes it");
    assert_eq!(stored(&setup), Value::Null, "the comment is kept");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("kept") && text.contains(TOKEN), "{text}");
}

#[cfg(unix)]
#[test]
fn a_file_of_secrets_behind_a_link_is_written_there_if_it_is_there() {
    let setup = setup();
    let before = text(&setup);
    let behind = setup.home().path("behind.json");
    std::os::unix::fs::symlink(&behind, secrets(&setup)).unwrap();
    // Its disk may not be mounted.
    let refused = run(&setup, &["config", "extract-secrets", "--yes"]).code(1);
    assert!(refused.stderr.contains("is a link to"), "{refused}");
    assert!(!behind.exists() && text(&setup) == before, "{refused}");
    std::fs::write(&behind, "{}").unwrap();
    let _ = run(&setup, &["config", "extract-secrets", "--yes"]).code(0);
    assert!(std::fs::read_to_string(&behind).unwrap().contains(TOKEN));
    let _ = run(&setup, &["undo"]).code(0);
    assert_eq!(std::fs::read_to_string(&behind).unwrap(), "{}");
    assert!(secrets(&setup).is_symlink(), "the link is the user's");
    assert_eq!(text(&setup), before);
}

#[test]
fn of_commands_at_once_one_moves_the_secrets_and_none_is_lost() {
    let setup = setup();
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let start = |_| scope.spawn(|| run(&setup, &["config", "extract-secrets", "--yes"]));
        let started: Vec<_> = (0..6).map(start).collect();
        started.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let changed = |outcome: &&Outcome| outcome.stdout.contains("\"changed\": true");
    assert_eq!(outcomes.iter().filter(changed).count(), 1, "{outcomes:#?}");
    assert_eq!(
        stored(&setup),
        json!({ "NOTES_TOKEN": TOKEN, "WEB_AUTHORIZATION": KEY })
    );
    assert!(!text(&setup).contains(TOKEN));
}

#[test]
fn a_secret_that_stands_several_times_in_the_arguments_moves_everywhere() {
    let setup = Setup::new().log_level("error").server_with(
        "notes",
        Server::new().tool("look", [surroundings()]),
        json!({}),
    );
    setup.save();
    let mut config: Value = serde_json::from_str(&text(&setup)).unwrap();
    config["mcpServers"]["remote"] = json!({
        "command": "mcp-remote",
        "args": ["--api-key", TOKEN, "--header", format!("X-Key: {TOKEN}"), format!("a={TOKEN}&b={TOKEN}")],
        "disabled": true,
    });
    setup.save_text(&config.to_string());
    let report = run(&setup, &["config", "extract-secrets", "--yes", "--json"]).code(0);
    assert!(!text(&setup).contains(TOKEN), "{}", text(&setup));
    let report = report.json();
    assert_eq!(report["stored"], json!(["REMOTE_API_KEY"]), "{report}");
    assert_eq!(
        report["literal"][0]["secrets"],
        json!(["--api-key"]),
        "{report}"
    );
    let written: Value = serde_json::from_str(&text(&setup)).unwrap();
    assert_eq!(
        written["mcpServers"]["remote"]["args"],
        json!([
            "--api-key",
            "${REMOTE_API_KEY}",
            "--header",
            "X-Key: ${REMOTE_API_KEY}",
            "a=${REMOTE_API_KEY}&b=${REMOTE_API_KEY}"
        ])
    );
}

#[test]
fn no_name_of_a_secret_has_a_secret_in_it() {
    const HUSH: &str = "hush4key9abcdefgh";
    const WORD: &str = "pw4word8stuvwxyz";
    let database = format!("postgresql://u:{WORD}@h/db");
    for (command, first, names) in [
        ("x", format!("--token={HUSH}"), Some(["--token", "secret"])),
        (
            "x",
            format!("--api-key={HUSH}"),
            Some(["--api-key", "secret"]),
        ),
        ("x", format!("-HAuthorization:{HUSH}"), None),
        ("x", format!("-HAuthorization: Basic {HUSH}=="), None),
        ("x", format!("-eAPI_TOKEN={HUSH}"), None),
        ("mysql", format!("-p{HUSH}"), None),
        ("mysql", format!("-p{HUSH}=="), None),
        ("x", format!("--token: {HUSH}"), None),
    ] {
        let setup = Setup::new().log_level("error");
        setup.save();
        let entry = json!({ "command": command, "args": [first, database], "disabled": true });
        let client = setup.home().path("home").join(".cursor/mcp.json");
        std::fs::create_dir_all(client.parent().unwrap()).unwrap();
        let servers = json!({ "mcpServers": { "cursors": entry } });
        std::fs::write(&client, servers.to_string()).unwrap();
        setup.save_text(&json!({ "mcpServers": { "remote": entry } }).to_string());
        let mut shown = String::new();
        for arguments in [
            ["doctor", "--json"].as_slice(),
            &["migrate", "--dry-run"],
            &["migrate", "--dry-run", "--json", "--extract-secrets"],
            &["config", "extract-secrets", "--dry-run"],
        ] {
            shown.push_str(&run(&setup, arguments).to_string());
        }
        let moved = run(&setup, &["config", "extract-secrets", "--yes", "--json"]).code(0);
        shown.push_str(&moved.to_string());
        shown.push_str(&text(&setup));
        // A name may have it in capitals, and `_` for other characters.
        let plain = shown.to_lowercase();
        assert!(
            !plain.contains(HUSH) && !plain.contains(WORD),
            "{first}: {shown}"
        );
        let report = moved.json();
        assert_eq!(
            stored(&setup).as_object().unwrap().len(),
            2,
            "{first}: {report}"
        );
        if let Some(names) = names {
            assert_eq!(report["literal"][0]["secrets"], json!(names), "{report}");
        }
    }
}
