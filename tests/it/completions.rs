//! Completions: what real shells offer, servers and tools from the cache among it.
#![cfg(unix)]

use std::process::Command;

use serde_json::json;

use crate::support::command::{self, Outcome};
use crate::support::script::echo;
use crate::support::terminal::Terminal;
use crate::support::{Server, Setup, tool};

fn known() -> Setup {
    let setup = Setup::new()
        .server(
            "notes",
            Server::new()
                .tool("create_note", [echo()])
                .tool("find", [echo()])
                .tool("secret", [echo()]),
        )
        .server("other", Server::new().tool("find", [echo()]))
        .setting("tools", json!({ "deny": ["secret"] }))
        .log_level("error");
    let _ = setup.run(&["tools"]).code(0);
    setup
}

/// Runs a shell in the home, `mcpzip` on its path.
fn shell(setup: &Setup, program: &str, arguments: &[&str]) -> Outcome {
    let ours = setup.command(&[]);
    let mut command = Command::new(program);
    let directory = crate::support::program::mcpzip()
        .parent()
        .unwrap()
        .display()
        .to_string();
    command
        .args(arguments)
        .env_clear()
        .current_dir(setup.home().path("home"));
    command.envs(
        ours.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command
        .env("PATH", format!("{directory}:/usr/local/bin:/usr/bin:/bin"))
        .env("TERM", "dumb");
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command::run(command, "")
}

/// What bash offers for the words.
fn bash(setup: &Setup, words: &[&str]) -> Vec<String> {
    let quoted = words
        .iter()
        .map(|word| format!("'{word}'"))
        .collect::<Vec<_>>()
        .join(" ");
    let script = format!(
        "source <(mcpzip completions bash)\n\
         COMP_WORDS=({quoted}); COMP_CWORD={}; COMP_TYPE=9\n\
         _clap_complete_mcpzip mcpzip '{}' ''\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.len() - 1,
        words.last().unwrap(),
    );
    let outcome = shell(setup, "bash", &["--norc", "-c", &script]).code(0);
    outcome
        .stdout
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

const CREATE: &str = r#"{"name":"create_issue","inputSchema":{"type":"object","properties":{"title":{"type":"string","description":"What it is about"},"labels":{"type":"array"},"kind":{"enum":["bug","task"]},"json":{"type":"string"}}}}"#;

#[test]
fn bash_completes_the_parameters_of_a_tool_and_their_values() {
    if !tool::has("bash", "bash") {
        return;
    }
    let setup = Setup::new()
        .server(
            "hub",
            Server::new().tool_as("create_issue", CREATE, [echo()]),
        )
        .log_level("error");
    let _ = setup.run(&["tools"]).code(0);
    let call = ["mcpzip", "call", "hub__create_issue"];
    assert_eq!(
        bash(&setup, &[&call[..], &["--ti"]].concat()),
        ["--timeout", "--title"]
    );
    assert_eq!(
        bash(&setup, &[&call[..], &["--title", "x", "--la"]].concat()),
        ["--labels"]
    );
    assert_eq!(
        bash(&setup, &[&call[..], &["--kind", ""]].concat()),
        ["bug", "task"]
    );
}

#[test]
fn bash_completes_commands_servers_and_tools() {
    if !tool::has("bash", "bash") {
        return;
    }
    let setup = known();
    let starts = setup.home().starts("notes");
    assert_eq!(bash(&setup, &["mcpzip", "doc"]), ["doctor"]);
    assert_eq!(
        bash(&setup, &["mcpzip", "call", "notes__c"]),
        ["notes__create_note"]
    );
    assert_eq!(
        bash(&setup, &["mcpzip", "describe", "notes__"]),
        ["notes__create_note", "notes__find"]
    );
    assert_eq!(bash(&setup, &["mcpzip", "call", "ot"]), ["other__find"]);
    assert_eq!(
        bash(&setup, &["mcpzip", "search", "--server", "n"]),
        ["notes"]
    );
    assert_eq!(bash(&setup, &["mcpzip", "doctor", "o"]), ["other"]);
    assert_eq!(
        bash(&setup, &["mcpzip", "connect", "claude-d"]),
        ["claude-desktop"]
    );
    assert_eq!(setup.home().starts("notes"), starts, "a server was started");
    // Of many servers, the names come first.
    let many = (0..6)
        .map(|number| format!("\"m{number}\": {{\"command\": \"x\"}}"))
        .collect::<Vec<_>>()
        .join(",");
    setup.save_text(&format!("{{\"mcpServers\": {{{many}}}}}"));
    assert_eq!(
        bash(&setup, &["mcpzip", "call", "m"]),
        ["m0__", "m1__", "m2__", "m3__", "m4__", "m5__"]
    );
    // Another configuration is the one that counts when it is typed.
    let other = setup.home().path("other.json");
    std::fs::write(&other, r#"{"mcpServers": {"nobody": {"command": "x"}}}"#).unwrap();
    let other = other.display().to_string();
    assert_eq!(
        bash(&setup, &["mcpzip", "--config", &other, "doctor", "n"]),
        ["nobody"]
    );
    // A broken one offers nothing, and says nothing in the middle of a line.
    setup.save_text("{");
    assert_eq!(
        bash(&setup, &["mcpzip", "doctor", "n"]),
        Vec::<String>::new()
    );
}

#[test]
fn fish_completes_tools() {
    if !tool::has("fish", "fish") {
        return;
    }
    let setup = known();
    let script = "mcpzip completions fish | source\ncomplete --do-complete 'mcpzip call notes__'";
    let outcome = shell(&setup, "fish", &["--no-config", "-c", script]).code(0);
    let offered: Vec<&str> = outcome
        .stdout
        .lines()
        .map(|line| line.split('\t').next().unwrap_or(line))
        .collect();
    assert_eq!(offered, ["notes__create_note", "notes__find"], "{outcome}");
}

#[test]
fn zsh_takes_the_script_and_asks_us() {
    if !tool::has("zsh", "zsh") {
        return;
    }
    let setup = known();
    // The completion system draws on a terminal; what it would show is what the function hands to it.
    let script = "autoload -U compinit; compinit -u -D\n\
        source <(mcpzip completions zsh)\n\
        _describe() { shift $(($# - 1)); print -l -- ${(P)1}; }\n\
        words=(mcpzip call notes__c); CURRENT=3\n\
        _clap_dynamic_completer_mcpzip";
    let outcome = shell(&setup, "zsh", &["-f", "-c", script]);
    assert!(outcome.stdout.contains("notes__create_note"), "{outcome}");
}

#[test]
fn the_source_of_a_manual_page_is_not_printed_to_a_terminal() {
    let setup = Setup::new();
    let Some(terminal) = Terminal::run(&setup.command(&["man"])) else {
        return;
    };
    let screen = terminal.shows("[exit 1]");
    assert!(
        screen.contains("man -l -") && !screen.contains(".TH"),
        "{screen}"
    );
}

#[test]
fn each_shell_has_its_script_and_each_command_its_page() {
    let setup = Setup::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = setup.run(&["completions", shell]).code(0);
        assert!(
            script.stdout.contains("MCPZIP_COMPLETE") && script.stdout.contains("mcpzip"),
            "{script}"
        );
    }
    let page = setup.run(&["man"]).code(0);
    assert!(
        page.stdout.contains(".TH mcpzip 1") && page.stdout.contains("mcpzip\\-doctor(1)"),
        "{page}"
    );
    let misspelt = setup.run(&["man", "serach"]).code(2);
    assert!(
        misspelt.stderr.contains("did you mean `search`?"),
        "{misspelt}"
    );
    assert!(!setup.home().path("serach").exists());
    let directory = setup.home().path("man1");
    let _ = setup.run(&["man", directory.to_str().unwrap()]).code(0);
    for name in [
        "mcpzip.1",
        "mcpzip-doctor.1",
        "mcpzip-auth-status.1",
        "mcpzip-init.1",
    ] {
        assert!(directory.join(name).is_file(), "no {name}");
    }
    let pages = std::fs::read_dir(&directory)
        .unwrap()
        .flatten()
        .map(|page| page.file_name());
    assert!(
        !pages
            .into_iter()
            .any(|name| name.to_string_lossy().contains("guard")),
        "a hidden command has a page"
    );
}
