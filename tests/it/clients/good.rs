//! Well-kept files: one of each client, and the bytes that come of it.

use serde_json::json;

use super::case::Case;

#[test]
fn claude_code() {
    Case::new(
        "claude-code",
        r#"{
  "numStartups": 12,
  "mcpServers": {
    "github": {
      "type": "stdio",
      "command": "github-mcp-server",
      "args": [
        "stdio"
      ],
      "env": {
        "GITHUB_TOKEN": "${GITHUB_TOKEN}"
      }
    },
    "linear": {
      "type": "http",
      "url": "https://mcp.linear.example/mcp",
      "headers": {
        "Authorization": "Bearer ${LINEAR_TOKEN:-none}"
      },
      "timeout": 60000
    }
  },
  "projects": {}
}
"#,
    )
    .moves(
        "github",
        json!({ "command": "github-mcp-server", "args": ["stdio"], "env": { "GITHUB_TOKEN": "${GITHUB_TOKEN}" } }),
    )
    .moves(
        "linear",
        json!({
            "url": "https://mcp.linear.example/mcp",
            "headers": { "Authorization": "Bearer ${LINEAR_TOKEN:-none}" },
            "timeout": "60000ms"
        }),
    )
    .after(
        r#"{
  "numStartups": 12,
  "mcpServers": {
    "mcpzip": {
      "type": "stdio",
      "command": "MCPZIP",
      "args": ["serve"],
      "env": {},
      "alwaysLoad": true
    }
  },
  "projects": {}
}
"#,
    )
    .check();
}

#[test]
fn claude_desktop() {
    Case::new(
        "claude-desktop",
        "{\n  \"globalShortcut\": \"\",\n  \"mcpServers\": {\n    \"files\": {\"command\": \"npx\", \"args\": [\"-y\", \"server-files\", \"/data\"]}\n  }\n}",
    )
    .moves("files", json!({ "command": "npx", "args": ["-y", "server-files", "/data"] }))
    .after("{\n  \"globalShortcut\": \"\",\n  \"mcpServers\": {\n    \"mcpzip\": {\n      \"command\": \"MCPZIP\",\n      \"args\": [\"serve\"]\n    }\n  }\n}")
    .check();
}

#[test]
fn cursor() {
    Case::new(
        "cursor",
        r#"{"mcpServers": {"db": {"command": "db-mcp", "args": ["--url", "${env:DB_URL}"], "env": {"HOMEDIR": "${userHome}/x"}}, "web": {"url": "https://web.example/mcp", "headers": {"X-Key": "${env:WEB_KEY}"}}}}"#,
    )
    .moves("db", json!({ "command": "db-mcp", "args": ["--url", "${DB_URL}"], "env": { "HOMEDIR": "${HOME}/x" } }))
    .moves("web", json!({ "url": "https://web.example/mcp", "headers": { "X-Key": "${WEB_KEY}" } }))
    .after(r#"{"mcpServers": {"mcpzip": {"command": "MCPZIP", "args": ["serve"]}}}"#)
    .check();
}

#[test]
fn vs_code() {
    Case::new(
        "vscode",
        "{\n\t// servers of mine\n\t\"servers\": {\n\t\t\"docs\": {\n\t\t\t\"type\": \"http\",\n\t\t\t\"url\": \"https://docs.example/mcp\",\n\t\t},\n\t},\n\t\"inputs\": [],\n}\n",
    )
    .moves("docs", json!({ "url": "https://docs.example/mcp" }))
    .after("{\n\t// servers of mine\n\t\"servers\": {\n\t\t\"mcpzip\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"MCPZIP\",\n\t\t\t\"args\": [\"serve\"]\n\t\t},\n\t},\n\t\"inputs\": [],\n}\n")
    .check();
}

#[test]
fn windsurf() {
    Case::new(
        "windsurf",
        "{\n  \"mcpServers\": {\n    \"remote\": {\n      \"serverUrl\": \"https://r.example/mcp\",\n      \"headers\": { \"K\": \"${env:K_TOKEN}\" }\n    }\n  }\n}\n",
    )
    .moves("remote", json!({ "url": "https://r.example/mcp", "headers": { "K": "${K_TOKEN}" } }))
    .check();
}

#[test]
fn codex() {
    Case::new(
        "codex",
        r#"# mine
model = "gpt-5.5"   # fast

[mcp_servers.github]
command = "github-mcp-server"
args = ["stdio"]
env_vars = ["GITHUB_TOKEN"]
tool_timeout_sec = 90.5

[mcp_servers.github.env]
HOST = "example.com"

[mcp_servers.docs]
url = "https://docs.example/mcp"
bearer_token_env_var = "DOCS_TOKEN"
http_headers = { "X-Team" = "blue" }
env_http_headers = { "X-Key" = "DOCS_KEY" }

[profiles.fast] # stays
model = "small"
"#,
    )
    .moves(
        "github",
        json!({
            "command": "github-mcp-server",
            "args": ["stdio"],
            "env": { "HOST": "example.com", "GITHUB_TOKEN": "${GITHUB_TOKEN:-}" },
            "timeout": "90500ms"
        }),
    )
    .moves(
        "docs",
        json!({
            "url": "https://docs.example/mcp",
            "headers": { "X-Team": "blue", "X-Key": "${DOCS_KEY}", "Authorization": "Bearer ${DOCS_TOKEN}" }
        }),
    )
    .after(
        r#"# mine
model = "gpt-5.5"   # fast

[mcp_servers.mcpzip]
command = "MCPZIP"
args = ["serve"]
env_vars = ["DOCS_KEY", "DOCS_TOKEN", "GITHUB_TOKEN"]
default_tools_approval_mode = "auto"

[profiles.fast] # stays
model = "small"

[features.code_mode]
direct_only_tool_namespaces = ["mcp__mcpzip"]
"#,
    )
    .check();
}

#[test]
fn gemini_cli() {
    Case::new(
        "gemini-cli",
        "{\n  \"theme\": \"Dark\",\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a-mcp\", \"env\": { \"T\": \"$A_TOKEN\" }, \"timeout\": 30000 },\n    \"b\": { \"httpUrl\": \"https://b.example/mcp\" },\n    \"c\": { \"url\": \"https://c.example/sse\" },\n    \"d\": { \"url\": \"https://d.example/mcp\", \"type\": \"http\" }\n  }\n}\n",
    )
    .moves("a", json!({ "command": "a-mcp", "env": { "T": "${A_TOKEN}" }, "timeout": "30000ms" }))
    .moves("b", json!({ "url": "https://b.example/mcp" }))
    .moves("c", json!({ "type": "sse", "url": "https://c.example/sse" }))
    .moves("d", json!({ "url": "https://d.example/mcp" }))
    .after("{\n  \"theme\": \"Dark\",\n  \"mcpServers\": {\n    \"mcpzip\": {\n      \"command\": \"MCPZIP\",\n      \"args\": [\"serve\"],\n      \"env\": {\n        \"A_TOKEN\": \"${A_TOKEN}\"\n      }\n    }\n  }\n}\n")
    .check();
}

#[test]
fn zed() {
    Case::new(
        "zed",
        "// Zed settings\n{\n  \"theme\": \"One\",\n  \"context_servers\": {\n    \"pg\": {\n      \"command\": \"pg-mcp\",\n      \"args\": [],\n      \"env\": {},\n      \"timeout\": 30\n    }\n  },\n  \"vim_mode\": true\n}\n",
    )
    .moves("pg", json!({ "command": "pg-mcp", "timeout": "30000ms" }))
    .after("// Zed settings\n{\n  \"theme\": \"One\",\n  \"context_servers\": {\n    \"mcpzip\": {\n      \"command\": \"MCPZIP\",\n      \"args\": [\"serve\"],\n      \"env\": {}\n    }\n  },\n  \"vim_mode\": true\n}\n")
    .check();
}

#[test]
fn opencode() {
    Case::new(
        "opencode",
        "{\n  \"$schema\": \"https://opencode.example/config.json\",\n  \"mcp\": {\n    \"local\": { \"type\": \"local\", \"command\": [\"npx\", \"-y\", \"local-mcp\"], \"environment\": { \"T\": \"{env:T_TOKEN}\" } },\n    \"far\": { \"type\": \"remote\", \"url\": \"https://far.example/mcp\", \"enabled\": false }\n  }\n}\n",
    )
    .moves("local", json!({ "command": "npx", "args": ["-y", "local-mcp"], "env": { "T": "${T_TOKEN:-}" } }))
    .moves("far", json!({ "url": "https://far.example/mcp", "disabled": true }))
    .after("{\n  \"$schema\": \"https://opencode.example/config.json\",\n  \"mcp\": {\n    \"mcpzip\": {\n      \"type\": \"local\",\n      \"command\": [\"MCPZIP\", \"serve\"],\n      \"enabled\": true\n    }\n  }\n}\n")
    .check();
}

#[test]
fn cline() {
    Case::new(
        "cline",
        r#"{ "mcpServers": { "w": { "command": "w-mcp", "args": ["a"], "disabled": true, "timeout": 120, "autoApprove": ["get"] } } }"#,
    )
    .moves("w", json!({ "command": "w-mcp", "args": ["a"], "timeout": "120000ms", "disabled": true }))
    .check();
}

#[test]
fn roo() {
    Case::new(
        "roo",
        r#"{ "mcpServers": { "w": { "type": "streamable-http", "url": "https://w.example/mcp", "alwaysAllow": [] }, "s": { "type": "sse", "url": "https://s.example" } } }"#,
    )
    .moves("w", json!({ "url": "https://w.example/mcp" }))
    .moves("s", json!({ "type": "sse", "url": "https://s.example" }))
    .check();
}

#[test]
fn continue_() {
    Case::new(
        "continue",
        "name: Mine\nversion: 0.0.1\n# models\nmodels:\n  - name: A\n    provider: openai\nmcpServers:\n  - name: My SQLite\n    command: npx\n    args:\n      - \"-y\"\n      - mcp-sqlite\n    env:\n      DB: /data/x.db\n  - name: far\n    type: streamable-http\n    url: https://far.example/mcp # over there\nrules: []\n",
    )
    .moves("My-SQLite", json!({ "command": "npx", "args": ["-y", "mcp-sqlite"], "env": { "DB": "/data/x.db" } }))
    .moves("far", json!({ "url": "https://far.example/mcp" }))
    .check();
}

#[test]
fn goose() {
    Case::new(
        "goose",
        "GOOSE_PROVIDER: openai\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n    name: developer\n  fetch:\n    enabled: true\n    type: stdio\n    name: fetch\n    cmd: uvx\n    args:\n    - mcp-server-fetch\n    envs: {}\n    env_keys: []\n    timeout: 300\n  far:\n    enabled: false\n    type: streamable_http\n    name: far\n    uri: https://far.example/mcp\nGOOSE_MODE: auto\n",
    )
    .moves("fetch", json!({ "command": "uvx", "args": ["mcp-server-fetch"], "timeout": "300000ms" }))
    .moves("far", json!({ "url": "https://far.example/mcp", "disabled": true }))
    .stays("developer", "is a part of Goose")
    .after("GOOSE_PROVIDER: openai\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n    name: developer\n  mcpzip:\n    name: mcpzip\n    type: stdio\n    enabled: true\n    cmd: MCPZIP\n    args: [serve]\n    envs: {}\n    timeout: 300\nGOOSE_MODE: auto\n")
    .check();
}

#[test]
fn kiro() {
    Case::new(
        "kiro",
        "{\n    \"mcpServers\": {\n        \"aws\": {\n            \"command\": \"uvx\",\n            \"args\": [\"aws-docs\"],\n            \"env\": { \"LEVEL\": \"${LOG_LEVEL}\" },\n            \"disabled\": false,\n            \"autoApprove\": []\n        }\n    }\n}\n",
    )
    .moves("aws", json!({ "command": "uvx", "args": ["aws-docs"], "env": { "LEVEL": "${LOG_LEVEL}" } }))
    .after("{\n    \"mcpServers\": {\n        \"mcpzip\": {\n            \"command\": \"MCPZIP\",\n            \"args\": [\"serve\"]\n        }\n    }\n}\n")
    .check();
}

#[test]
fn copilot_cli() {
    Case::new(
        "copilot-cli",
        "{\n  \"mcpServers\": {\n    \"l\": { \"type\": \"local\", \"command\": \"l-mcp\", \"args\": [], \"tools\": [\"*\"], \"env\": { \"K\": \"${K}\" } },\n    \"r\": { \"type\": \"http\", \"url\": \"https://r.example/\", \"tools\": [\"*\"], \"headers\": {} }\n  }\n}\n",
    )
    .moves("l", json!({ "command": "l-mcp", "env": { "K": "${K}" } }))
    .moves("r", json!({ "url": "https://r.example/" }))
    .after("{\n  \"mcpServers\": {\n    \"mcpzip\": {\n      \"type\": \"local\",\n      \"command\": \"MCPZIP\",\n      \"args\": [\"serve\"],\n      \"tools\": [\"*\"]\n    }\n  }\n}\n")
    .check();
}

#[test]
fn lm_studio() {
    Case::new(
        "lm-studio",
        r#"{"mcpServers": {"hf": {"url": "https://hf.example/mcp", "headers": {"Authorization": "Bearer abc"}}}}"#,
    )
    .moves("hf", json!({ "url": "https://hf.example/mcp", "headers": { "Authorization": "Bearer abc" } }))
    .after(r#"{"mcpServers": {"mcpzip": {"command": "MCPZIP", "args": ["serve"]}}}"#)
    .check();
}
