//! The packages that are known to work in a sandbox: each is fetched, started, listed and called in `"strict"`, at the version of the
//! table.

use std::sync::Mutex;
use std::time::Instant;

use serde_json::{Value, json};

use super::{announce, peers, table};
use crate::support::{Setup, tool};

const KNOWN: &str = include_str!("../../../src/sandbox/known.tsv");

/// The number of servers that are tried at once.
const AT_ONCE: usize = 2;

/// The arguments, variables and call of a package.
struct Trial {
    args: &'static [&'static str],
    env: Value,
    tool: &'static str,
    arguments: Value,
    /// Part of the answer; for a package whose tools need the network it is any answer of its own.
    answers: &'static str,
}

fn trial(package: &str) -> Trial {
    let made = |args, env, tool, arguments, answers| Trial {
        args,
        env,
        tool,
        arguments,
        answers,
    };
    let none = || json!({});
    let key = |name: &str| json!({ name: "dummy" });
    match package {
        "@brightdata/mcp" => made(
            &[],
            key("API_TOKEN"),
            "search_engine",
            json!({ "query": "x" }),
            "",
        ),
        "@modelcontextprotocol/server-brave-search" => made(
            &[],
            key("BRAVE_API_KEY"),
            "brave_web_search",
            json!({ "query": "x" }),
            "",
        ),
        "@modelcontextprotocol/server-everything" => made(
            &[],
            none(),
            "echo",
            json!({ "message": "from inside" }),
            "from inside",
        ),
        "@modelcontextprotocol/server-filesystem" => {
            let arguments = json!({ "path": "note.txt", "content": "x" });
            made(
                &["."],
                none(),
                "write_file",
                arguments,
                "Successfully wrote",
            )
        }
        "@modelcontextprotocol/server-github" => {
            let env = key("GITHUB_PERSONAL_ACCESS_TOKEN");
            made(&[], env, "search_repositories", json!({ "query": "x" }), "")
        }
        "@modelcontextprotocol/server-memory" => {
            let env = json!({ "MEMORY_FILE_PATH": "/tmp/memory.jsonl" });
            let entity = json!({ "name": "a", "entityType": "b", "observations": ["c"] });
            made(
                &[],
                env,
                "create_entities",
                json!({ "entities": [entity] }),
                "entityType",
            )
        }
        "@modelcontextprotocol/server-sequential-thinking" => {
            let thought = json!({ "thought": "x", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1 });
            made(
                &[],
                none(),
                "sequentialthinking",
                thought,
                "thoughtHistoryLength",
            )
        }
        "@modelcontextprotocol/server-slack" => {
            let env = json!({ "SLACK_BOT_TOKEN": "xoxb-dummy", "SLACK_TEAM_ID": "T0" });
            made(&[], env, "slack_list_channels", none(), "")
        }
        "@notionhq/notion-mcp-server" => made(
            &[],
            json!({ "NOTION_TOKEN": "ntn_dummy" }),
            "API-get-self",
            none(),
            "",
        ),
        "@sentry/mcp-server" => made(
            &[],
            key("SENTRY_ACCESS_TOKEN"),
            "execute_sentry_tool",
            json!({ "name": "whoami", "arguments": {} }),
            "",
        ),
        "@upstash/context7-mcp" => {
            let arguments = json!({ "libraryName": "tokio", "query": "x" });
            made(&[], none(), "resolve-library-id", arguments, "")
        }
        "@zereight/mcp-gitlab" => {
            let env = json!({ "GITLAB_PERSONAL_ACCESS_TOKEN": "glpat-dummy", "GITLAB_API_URL": "http://127.0.0.1:9/api/v4" });
            made(&[], env, "list_projects", none(), "")
        }
        "exa-mcp-server" => made(
            &[],
            key("EXA_API_KEY"),
            "web_search_exa",
            json!({ "query": "x" }),
            "",
        ),
        "figma-developer-mcp" => {
            let arguments = json!({ "fileKey": "abc" });
            made(
                &["--stdio"],
                key("FIGMA_API_KEY"),
                "get_figma_data",
                arguments,
                "",
            )
        }
        "firecrawl-mcp" => {
            let arguments = json!({ "url": "https://example.com" });
            made(
                &[],
                json!({ "FIRECRAWL_API_KEY": "fc-dummy" }),
                "firecrawl_scrape",
                arguments,
                "",
            )
        }
        "mcp-server-kubernetes" => made(
            &[],
            none(),
            "kubectl_get",
            json!({ "resourceType": "pods" }),
            "",
        ),
        "n8n-mcp" => {
            let env = json!({ "MCP_MODE": "stdio", "LOG_LEVEL": "error", "DISABLE_CONSOLE_OUTPUT": "true", "N8N_MCP_TELEMETRY_DISABLED": "true" });
            made(
                &[],
                env,
                "search_nodes",
                json!({ "query": "slack" }),
                "slack",
            )
        }
        "tavily-mcp" => made(
            &[],
            json!({ "TAVILY_API_KEY": "tvly-dummy" }),
            "tavily_search",
            json!({ "query": "x" }),
            "",
        ),
        "arxiv-mcp-server" => made(&[], none(), "search_papers", json!({ "query": "x" }), ""),
        "awslabs.aws-documentation-mcp-server" => {
            let env = json!({ "FASTMCP_LOG_LEVEL": "ERROR" });
            made(
                &[],
                env,
                "search_documentation",
                json!({ "search_phrase": "x" }),
                "",
            )
        }
        "duckduckgo-mcp-server" => made(&[], none(), "search", json!({ "query": "x" }), ""),
        "markitdown-mcp" => {
            let arguments = json!({ "uri": "data:text/plain,from%20inside" });
            made(&[], none(), "convert_to_markdown", arguments, "from inside")
        }
        "mcp-atlassian" => {
            let env = json!({ "JIRA_URL": "http://127.0.0.1:9", "JIRA_USERNAME": "a@example.invalid", "JIRA_API_TOKEN": "dummy" });
            made(
                &[],
                env,
                "jira_get_issue",
                json!({ "issue_key": "AB-1" }),
                "",
            )
        }
        "mcp-server-calculator" => made(
            &[],
            none(),
            "calculate",
            json!({ "expression": "6*7" }),
            "42",
        ),
        "mcp-server-fetch" => made(
            &[],
            none(),
            "fetch",
            json!({ "url": "https://example.com" }),
            "",
        ),
        "mcp-server-git" => made(
            &[],
            none(),
            "git_status",
            json!({ "repo_path": "." }),
            "On branch",
        ),
        "mcp-server-sqlite" => {
            let arguments = json!({ "query": "SELECT 6*7 AS x" });
            made(
                &["--db-path", "test.db"],
                none(),
                "read_query",
                arguments,
                "42",
            )
        }
        "mcp-server-time" => made(
            &["--local-timezone", "UTC"],
            none(),
            "get_current_time",
            json!({ "timezone": "UTC" }),
            "datetime",
        ),
        _ => panic!("there is no call for `{package}`: add one"),
    }
}

#[test]
fn known_packages_start_list_and_answer_in_a_strict_sandbox() {
    let Some(peers) = peers() else { return };
    if !tool::has("bwrap", "bubblewrap") {
        return;
    }
    let packages = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers/packages");
    std::fs::create_dir_all(&packages).unwrap();
    let uv = peers.python(2, "uv");
    let programs = uv.parent().unwrap().to_str().unwrap().to_owned();
    let rows: Vec<Vec<&str>> = KNOWN
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').collect())
        .collect();
    let ahead = Mutex::new(rows.iter());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(row) = ahead.lock().unwrap().next() else {
                        return;
                    };
                    let outcome = one(row, &packages, &programs);
                    done.lock().unwrap().push(outcome);
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort();
    let failed: Vec<String> = done
        .iter()
        .filter(|row| row[2] == "FAILED")
        .map(|row| row.join(" "))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let heads = [
        "package",
        "version",
        "tools",
        "network",
        "start and list",
        "answer",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(done);
    announce(&format!("In the sandbox \"strict\"\n{}", table(&rows)));
}

/// Starts, lists and calls one package. A row of the table, or one whose third cell says that it failed, and how.
fn one(row: &[&str], packages: &std::path::Path, programs: &str) -> Vec<String> {
    let [ecosystem, package, version, network, _files] = row else {
        panic!("a row of known.tsv has five columns: {row:?}");
    };
    let trial = trial(package);
    let setup = Setup::new().alone();
    std::os::unix::fs::symlink(packages, setup.cache_path().join("packages")).unwrap();
    let (command, spec) = match *ecosystem {
        "npm" => ("npx", format!("{package}@{version}")),
        _ => ("uvx", format!("{package}=={version}")),
    };
    let mut args = Vec::new();
    if *ecosystem == "npm" {
        args.push("-y".to_owned());
    }
    if *package == "mcp-server-sqlite" {
        // It does not bound its SDK, whose second generation it does not know.
        args.push("--with=mcp<2".to_owned());
    }
    args.push(spec);
    args.extend(trial.args.iter().map(|arg| (*arg).to_owned()));
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration of their own"
    )]
    let path = std::env::var("PATH").unwrap();
    let entry = json!({ "command": command, "args": args, "env": trial.env, "sandbox": "strict" });
    let setup = setup
        .variable("PATH", &format!("{programs}:{path}"))
        // The machine may have certificates of its own.
        .variable("UV_SYSTEM_CERTS", "1")
        .entry("s", &entry.to_string());
    if *package == "mcp-server-git" {
        let repository = setup.home().path("state/sandboxes/s");
        let made = std::process::Command::new("git")
            .args(["init", "-q"])
            .arg(&repository)
            .status();
        assert!(made.unwrap().success());
    }
    let failed = |said: String| {
        let cells = [*package, version, "FAILED", &said];
        cells.map(str::to_owned).to_vec()
    };
    // Fetched before, so that the time is that of a start.
    let _ = setup.run(&["servers"]);
    let start = Instant::now();
    let listed = setup.run(&["servers", "--json"]);
    let time = start.elapsed();
    if listed.code != Some(0) {
        return failed(listed.to_string());
    }
    let tools = listed.json()["tools"].as_u64().unwrap_or(0);
    let mut client = setup.connect();
    let answer = client.execute_with(&format!("s__{}", trial.tool), &trial.arguments.to_string());
    let said = answer.as_str().to_owned();
    client.finish();
    // Words of mcpzip for a call that has no answer of the server.
    let is_lost = [
        "went away",
        "no answer within",
        "was not called",
        "no tool",
        "did not start",
        "ended during",
    ]
    .iter()
    .any(|part| said.contains(part));
    if tools == 0 || is_lost || !said.contains(trial.answers) {
        return failed(said.chars().take(600).collect());
    }
    let is_error = answer.result().contains("\"isError\":true");
    let answer = match (is_error, *network) {
        (false, "none") => "works",
        (true, "none") => return failed(said.chars().take(600).collect()),
        (_, _) => "answers that it has no network",
    };
    [
        (*package).to_owned(),
        (*version).to_owned(),
        tools.to_string(),
        (*network).to_owned(),
        format!("{:.1} s", time.as_secs_f64()),
        answer.to_owned(),
    ]
    .to_vec()
}
