//! Servers of the user that a project's files switch off or limit: they are hidden or limited there behind mcpzip, too.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};
use crate::support::command;

const GH: &str = r#"{"mcpServers": {"gh": {"command": "x"}}}"#;
const CODEX: &str = "[mcp_servers.gh]\ncommand = \"x\"\n";
const ZED: &str = r#"{"context_servers": {"gh": {"command": "x", "args": []}}}"#;
const OPENCODE: &str = r#"{"mcp": {"gh": {"type": "local", "command": ["x"]}}}"#;

const OPENCODE_OFF: &str = r#"{"mcp": {"gh": {"enabled": false}}}"#;
const GEMINI: &str = ".gemini/settings.json";

/// The user's file of a client, a project's file, and what it says.
type Row = (&'static str, &'static str, &'static str, &'static str);

const OFF: &[Row] = &[
    (
        "codex",
        CODEX,
        ".codex/config.toml",
        "[mcp_servers.gh]\nenabled = false\n",
    ),
    // What is not understood may restrict it.
    (
        "codex",
        CODEX,
        ".codex/config.toml",
        "[mcp_servers.gh]\nenabled = \"no\"\n",
    ),
    (
        "codex",
        CODEX,
        ".codex/config.toml",
        "[mcp_servers.gh]\nargs = [\"--read-only\"]\n",
    ),
    ("opencode", OPENCODE, "opencode.json", OPENCODE_OFF),
    (
        "opencode",
        OPENCODE,
        ".opencode/opencode.jsonc",
        OPENCODE_OFF,
    ),
    (
        "zed",
        ZED,
        ".zed/settings.json",
        r#"{"context_servers": {"gh": {"enabled": false}}}"#,
    ),
    (
        "roo",
        GH,
        ".roo/mcp.json",
        r#"{"mcpServers": {"gh": {"disabled": true}}}"#,
    ),
    (
        "kiro",
        GH,
        ".kiro/settings/mcp.json",
        r#"{"mcpServers": {"gh": {"command": "x", "disabled": true}}}"#,
    ),
    ("gemini-cli", GH, GEMINI, r#"{"mcp": {"excluded": ["gh"]}}"#),
    ("gemini-cli", GH, GEMINI, r#"{"excludeMCPServers": ["gh"]}"#),
    (
        "gemini-cli",
        GH,
        GEMINI,
        r#"{"allowMCPServers": ["other"]}"#,
    ),
    (
        "gemini-cli",
        GH,
        GEMINI,
        r#"{"mcp": {"allowed": ["other"]}}"#,
    ),
    (
        "gemini-cli",
        GH,
        GEMINI,
        r#"{"mcp": {"allowed": {"gh": true}}}"#,
    ),
    (
        "gemini-cli",
        GH,
        GEMINI,
        r#"{"mcpServers": {"gh": {"env": {"MODE": "read"}}}}"#,
    ),
    (
        "vscode",
        r#"{"servers": {"gh": {"command": "x"}}}"#,
        ".vscode/settings.json",
        r#"{"chat.mcp.access": "none"}"#,
    ),
];

const LIMITED: &[(Row, &str)] = &[
    (
        (
            "codex",
            CODEX,
            ".codex/config.toml",
            "[mcp_servers.gh]\ndisabled_tools = [\"rm\"]\n",
        ),
        r#"{"deny": ["rm"]}"#,
    ),
    (
        (
            "codex",
            CODEX,
            ".codex/config.toml",
            "[mcp_servers.gh.tools.rm]\napproval_mode = \"prompt\"\n",
        ),
        r#"{"ask": ["rm"]}"#,
    ),
    (
        (
            "roo",
            GH,
            ".roo/mcp.json",
            r#"{"mcpServers": {"gh": {"disabledTools": ["rm"]}}}"#,
        ),
        r#"{"deny": ["rm"]}"#,
    ),
    (
        (
            "gemini-cli",
            GH,
            GEMINI,
            r#"{"mcpServers": {"gh": {"includeTools": ["ls"]}}}"#,
        ),
        r#"{"allow": ["ls"]}"#,
    ),
];

/// Migrates in `directory`, which is below the home, and returns the report.
fn migrate(machine: &Machine, directory: &str) -> Value {
    let mut command = machine.setup().command(&["migrate", "--yes", "--json"]);
    command.current_dir(machine.home(directory));
    command::run(command, "").code(0).json()
}

fn machine((client, user, file, content): &Row) -> (Machine, Value) {
    let machine = Machine::new();
    machine.put(user_file(client), user);
    machine.put(&format!("work/{file}"), content);
    let hidden = format!("!{}", machine.home("work").display());
    (machine, json!([hidden]))
}

#[test]
fn a_server_that_is_switched_off_in_one_project_is_hidden_there() {
    for row in OFF {
        let (machine, hidden) = machine(row);
        let report = migrate(&machine, "work");
        let servers = machine.servers();
        assert_eq!(servers["gh"]["projects"], hidden, "{row:?}: {report:#}");
        assert_ne!(servers["gh"]["disabled"], true, "{row:?}: {report:#}");
    }
}

#[test]
fn a_server_that_is_limited_in_one_project_has_that_limit() {
    for (row, tools) in LIMITED {
        let (machine, _) = machine(row);
        let report = migrate(&machine, "work");
        let expected: Value = serde_json::from_str(tools).unwrap();
        assert_eq!(
            machine.servers()["gh"]["tools"],
            expected,
            "{row:?}: {report:#}"
        );
        let servers = report["servers"].as_array().unwrap();
        let part = servers.iter().find(|server| server["scope"] == "project");
        let reason = part
            .and_then(|part| part["reason"].as_str())
            .unwrap_or_default();
        assert!(
            reason.contains("changes your own `gh`"),
            "{row:?}: {report:#}"
        );
    }
}

#[test]
fn zed_keeps_its_servers_where_it_would_refuse_mcpzips_tools() {
    let machine = Machine::new();
    let agent = r#""agent": {"tool_permissions": {"default": "deny"}}"#;
    machine.put(
        user_file("zed"),
        &ZED.replacen('{', &format!("{{{agent}, "), 1),
    );
    let report = migrate(&machine, "");
    let (said, why) = verdict(&report, "gh");
    assert!(
        said == "stays" && why.contains("tool_permissions.default"),
        "{why}"
    );
}

#[test]
fn projects_that_a_file_of_the_user_names_are_read_from_everywhere() {
    let row = &OFF[0];
    let (machine, hidden) = machine(row);
    let work = machine.home("work");
    let known = format!(
        "{CODEX}[projects.{:?}]\ntrust_level = \"trusted\"\n",
        work.display().to_string()
    );
    machine.put(user_file("codex"), &known);
    let report = migrate(&machine, "");
    assert_eq!(machine.servers()["gh"]["projects"], hidden, "{report:#}");
    machine.undo();
    // Another client's file may name the project.
    machine.put(user_file("codex"), CODEX);
    let projects = json!({ "projects": { work.to_str().unwrap(): {} } });
    machine.put(user_file("claude-code"), &projects.to_string());
    let report = migrate(&machine, "");
    assert_eq!(machine.servers()["gh"]["projects"], hidden, "{report:#}");
}

#[test]
fn a_project_that_only_gemini_cli_trusts_is_read_from_everywhere() {
    let row = OFF.iter().find(|row| row.0 == "gemini-cli").unwrap();
    for (trust, is_read) in [
        ("TRUST_FOLDER", true),
        ("TRUST_PARENT", true),
        ("DO_NOT_TRUST", false),
    ] {
        let (machine, hidden) = machine(row);
        let trusted = json!({ machine.home("work").to_str().unwrap(): trust });
        machine.put(".gemini/trustedFolders.json", &trusted.to_string());
        let report = migrate(&machine, "");
        let projects = machine.servers()["gh"]["projects"].clone();
        assert_eq!(projects == hidden, is_read, "{trust}: {report:#}");
    }
}

/// The file of a project has the server as a whole, and the migration runs elsewhere.
fn migrate_from_home(row: &Row, code: i32) -> (Machine, Value) {
    let (machine, _) = machine(row);
    let work = machine.home("work");
    let known = json!({ "projects": { work.to_str().unwrap(): {} } });
    machine.put(user_file("claude-code"), &known.to_string());
    let report = machine.run(&["migrate", "--yes", "--json"]).code(code);
    (machine, report.json())
}

#[test]
fn a_known_projects_whole_entry_limits_the_same_server_from_everywhere() {
    const ENTRY: &str = r#"{"mcpServers": {"gh": {"command": "x", "disabledTools": ["rm"]}}}"#;
    const ROO: &str = ".roo/mcp.json";
    for (row, tools) in [
        (
            (
                "codex",
                CODEX,
                ".codex/config.toml",
                "[mcp_servers.gh]\ncommand = \"x\"\ndisabled_tools = [\"rm\"]\n",
            ),
            json!({ "deny": ["rm"] }),
        ),
        // Another name does not make it another server, and another client may have it.
        (
            (
                "cursor",
                GH,
                ".codex/config.toml",
                "[mcp_servers.mine]\ncommand = \"x\"\n[mcp_servers.mine.tools.rm]\nenabled = false\n",
            ),
            json!({ "deny": ["rm"] }),
        ),
        (
            (
                "gemini-cli",
                GH,
                GEMINI,
                r#"{"mcpServers": {"gh": {"command": "x", "excludeTools": ["rm"]}}}"#,
            ),
            json!({ "deny": ["rm"] }),
        ),
        (
            (
                "gemini-cli",
                GH,
                GEMINI,
                r#"{"mcpServers": {"gh": {"command": "x", "includeTools": ["ls"]}}}"#,
            ),
            json!({ "allow": ["ls"] }),
        ),
        (("roo", GH, ROO, ENTRY), json!({ "deny": ["rm"] })),
        (
            ("kiro", GH, ".kiro/settings/mcp.json", ENTRY),
            json!({ "deny": ["rm"] }),
        ),
        (
            (
                "copilot-cli",
                GH,
                ".github/mcp.json",
                r#"{"mcpServers": {"gh": {"command": "x", "tools": ["ls"]}}}"#,
            ),
            json!({ "allow": ["ls"] }),
        ),
        // The rules of another program are not about it.
        (
            (
                "roo",
                GH,
                ROO,
                r#"{"mcpServers": {"gh": {"command": "y", "disabledTools": ["rm"]}}}"#,
            ),
            Value::Null,
        ),
    ] {
        let (machine, report) = migrate_from_home(&row, 0);
        assert_eq!(
            machine.servers()["gh"]["tools"],
            tools,
            "{row:?}: {report:#}"
        );
        let work = machine.home("work").display().to_string();
        let cause = format!(" in {work}, which runs the same program");
        let is_named = report["tightened"].to_string().contains(&cause);
        assert_eq!(is_named, !tools.is_null(), "{row:?}: {report:#}");
    }
}

#[test]
fn a_known_projects_whole_entry_that_is_not_understood_restricts() {
    // It cannot run behind mcpzip, but may be the same program.
    let entry =
        r#"{"mcpServers": {"gh": {"command": "x", "envFile": ".env", "disabledTools": ["rm"]}}}"#;
    let (machine, report) = migrate_from_home(&("roo", GH, ".roo/mcp.json", entry), 0);
    let tools = &machine.servers()["gh"]["tools"];
    assert_eq!(*tools, json!({ "deny": ["rm"] }), "{report:#}");
    let entry = r#"{"mcpServers": {"gh": {"command": "x", "includeTools": ["ls*"]}}}"#;
    let (machine, report) = migrate_from_home(&("gemini-cli", GH, GEMINI, entry), 1);
    let (said, why) = verdict(&report, "gh");
    let file = machine.home("work").join(GEMINI).display().to_string();
    assert!(said == "stays" && why.contains(&file), "{report:#}");
}

#[test]
fn a_projects_entry_that_limits_nothing_hides_nothing() {
    for row in [
        (
            "codex",
            CODEX,
            ".codex/config.toml",
            "[mcp_servers.gh]\ntool_timeout_sec = 9\n",
        ),
        (
            "roo",
            GH,
            ".roo/mcp.json",
            r#"{"mcpServers": {"gh": {"command": "x"}}}"#,
        ),
        (
            "gemini-cli",
            GH,
            GEMINI,
            r#"{"mcp": {"allowed": ["gh", "mcpzip"]}}"#,
        ),
        (
            "zed",
            ZED,
            ".zed/settings.json",
            r#"{"context_servers": {"gh": {"enabled": true}}}"#,
        ),
    ] {
        let (machine, _) = machine(&row);
        let report = migrate(&machine, "work");
        assert_eq!(verdict(&report, "gh").0, "moves", "{row:?}: {report:#}");
        assert_eq!(
            machine.servers()["gh"]["projects"],
            Value::Null,
            "{row:?}: {report:#}"
        );
    }
}

#[test]
fn vs_code_keeps_asking_about_the_tools_that_it_always_asks_about() {
    let user = r#"{"servers": {"gh": {"command": "x"}}}"#;
    let settings = ".config/Code/User/settings.json";
    for (content, expected) in [
        (
            r#"{ // mine
                "chat.tools.eligibleForAutoApproval": {"rm": false, "gh/push": false, "other/pull": false, "ls": true}}"#,
            json!({ "ask": ["push", "rm"] }),
        ),
        (
            r#"{"chat": {"tools.eligibleForAutoApproval": {"rm_all": false}}}"#,
            json!({ "ask": ["rm?all", "rm_all"] }),
        ),
        (
            r#"{"chat.tools.eligibleForAutoApproval": {"ls": true}, "chat.mcp.access": "all"}"#,
            Value::Null,
        ),
    ] {
        let machine = Machine::new();
        machine.put(user_file("vscode"), user);
        machine.put(settings, content);
        let report = machine.migrate(&[]);
        assert_eq!(
            machine.servers()["gh"]["tools"],
            expected,
            "{content}: {report:#}"
        );
    }
    for (content, code, reason) in [
        (
            r#"{"chat.tools.eligibleForAutoApproval": {"rm": "never"}}"#,
            1,
            "would stop working",
        ),
        (
            r#"{"chat.tools.eligibleForAutoApproval": ["rm"]}"#,
            0,
            "rules",
        ),
        (r#"{"chat.mcp.access": "none"}"#, 0, "`chat.mcp.access`"),
        (r#"{"chat.mcp.access": "registry"}"#, 0, "`chat.mcp.access`"),
        (r#"{"chat.mcp.enabled": false}"#, 0, "`chat.mcp.enabled`"),
    ] {
        let machine = Machine::new();
        machine.put(user_file("vscode"), user);
        machine.put(settings, content);
        let report = machine
            .run(&["migrate", "--yes", "--json"])
            .code(code)
            .json();
        let (said, why) = verdict(&report, "gh");
        assert!(
            said == "stays" && why.contains(reason),
            "{content}: {why} in {report:#}"
        );
    }
}
