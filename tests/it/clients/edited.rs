//! An undo takes back our part only, whatever others wrote in the meantime.

use serde_json::json;

use super::case::{Machine, user_file};

const CLAUDE: &str = "{\n  \"numStartups\": 1,\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"a-mcp\"\n    },\n    \"b\": {\n      \"command\": \"b-mcp\"\n    }\n  },\n  \"tips\": {\n    \"seen\": 1\n  }\n}\n";

#[test]
fn what_others_wrote_beside_it_stays() {
    let machine = Machine::new();
    machine.put(".claude.json", CLAUDE);
    machine.migrate(&[]);
    let now = machine.read(".claude.json");
    machine.put(
        ".claude.json",
        &now.replace("\"numStartups\": 1", "\"numStartups\": 2")
            .replace("\"seen\": 1", "\"seen\": 7,\n    \"more\": []"),
    );
    let undone = machine.undo();
    assert_eq!(undone["files"][0]["outcome"], "partly", "{undone:#}");
    let expected = CLAUDE
        .replace("\"numStartups\": 1", "\"numStartups\": 2")
        .replace("\"seen\": 1", "\"seen\": 7,\n    \"more\": []");
    assert_eq!(machine.read(".claude.json"), expected);
    assert!(!machine.setup().config_path().exists());
}

#[test]
fn a_file_written_anew_gets_its_servers_back() {
    let machine = Machine::new();
    machine.put(".claude.json", CLAUDE);
    machine.migrate(&[]);
    let mut value: serde_json::Value = serde_json::from_str(&machine.read(".claude.json")).unwrap();
    value["mcpServers"]["new"] = json!({ "command": "new-mcp" });
    machine.put(".claude.json", &value.to_string());
    machine.undo();
    let restored: serde_json::Value = serde_json::from_str(&machine.read(".claude.json")).unwrap();
    let expected = json!({ "a": { "command": "a-mcp" }, "b": { "command": "b-mcp" }, "new": { "command": "new-mcp" } });
    assert_eq!(restored["mcpServers"], expected);
}

#[test]
fn what_is_not_ours_any_more_is_left_and_named() {
    let machine = Machine::new();
    machine.put(".claude.json", CLAUDE);
    machine.migrate(&[]);
    let mut value: serde_json::Value = serde_json::from_str(&machine.read(".claude.json")).unwrap();
    value["mcpServers"]["a"] = json!({ "command": "another-a" });
    value["mcpServers"]["mcpzip"]["timeout"] = json!(5);
    machine.put(
        ".claude.json",
        &serde_json::to_string_pretty(&value).unwrap(),
    );
    let undone = machine.undo();
    let kept = undone["files"][0]["kept"].as_array().unwrap();
    assert_eq!(kept.len(), 2, "{undone:#}");
    let restored: serde_json::Value = serde_json::from_str(&machine.read(".claude.json")).unwrap();
    assert_eq!(restored["mcpServers"]["a"]["command"], "another-a");
    assert_eq!(restored["mcpServers"]["b"]["command"], "b-mcp");
    assert_eq!(restored["mcpServers"]["mcpzip"]["timeout"], 5);
}

#[test]
fn toml_and_yaml_are_taken_back_in_part_too() {
    for (client, before, from, to) in [
        (
            "codex",
            "model = \"m\"\n\n[mcp_servers.x]\ncommand = \"x\"\n\n[tui]\na = 1\n",
            "a = 1",
            "a = 2 # mine",
        ),
        (
            "goose",
            "A: 1\nextensions:\n  x:\n    type: stdio\n    cmd: x\nB: 2\n",
            "A: 1\n",
            "A: 1\nC: 3\n",
        ),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), before);
        machine.migrate(&[]);
        let now = machine.read(user_file(client));
        machine.put(user_file(client), &now.replace(from, to));
        machine.undo();
        assert_eq!(
            machine.read(user_file(client)),
            before.replace(from, to),
            "{client}"
        );
    }
}

#[test]
fn the_configuration_keeps_what_was_added_since() {
    let machine = Machine::new();
    machine
        .setup()
        .save_text("{\n  // mine\n  \"mcpServers\": {}\n}\n");
    machine.put(".claude.json", CLAUDE);
    machine.migrate(&[]);
    let now = std::fs::read_to_string(machine.setup().config_path()).unwrap();
    machine
        .setup()
        .save_text(&now.replace("  // mine\n", "  // mine\n  \"call_timeout\": \"9s\",\n"));
    machine.undo();
    let now = std::fs::read_to_string(machine.setup().config_path()).unwrap();
    assert_eq!(
        now,
        "{\n  // mine\n  \"call_timeout\": \"9s\",\n  \"mcpServers\": {}\n}\n"
    );
}

#[test]
fn runs_are_listed_and_taken_back_by_name() {
    let machine = Machine::new();
    let _ = machine.run(&["connect", "kiro"]).code(0);
    let _ = machine.run(&["connect", "cursor"]).code(0);
    let runs = machine.run(&["undo", "--list"]).code(0).json();
    let first = runs[1]["id"].as_str().unwrap();
    assert_eq!(
        (&runs[0]["state"], runs[1]["command"].as_str().unwrap()),
        (&json!("done"), "connect kiro --scope user")
    );
    let _ = machine.run(&["undo", first]).code(0);
    assert!(
        !machine.home(user_file("kiro")).exists() && machine.home(user_file("cursor")).exists()
    );
    let _ = machine.run(&["undo", "no-such-run"]).code(1);
    machine.undo();
    assert!(!machine.home(user_file("cursor")).exists());
    let runs = machine.run(&["undo", "--list"]).code(0).json();
    assert!(
        runs.as_array()
            .unwrap()
            .iter()
            .all(|run| run["state"] == "undone"),
        "{runs:#}"
    );
}
