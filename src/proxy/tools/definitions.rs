//! The definitions of the three meta-tools. They are the same for a whole session, because clients cache prompts by
//! their bytes: constants, and the names of the configured servers.

use std::borrow::Cow;

use crate::config::Config;
use crate::executable;
use crate::mcp::object::quoted;
use crate::mcp::{INTERFACES, Revision, TASKS};
use crate::proxy::answers::reply::server_info;
use crate::proxy::extensions::Offered;
use crate::proxy::view::View;
use crate::upstream::SKILLS;

/// The result of `tools/list`, with a marker for the names of the servers.
const DEFINITIONS: &str = concat!(
    r#"{"tools":["#,
    r#"{"name":"search_tools","description":"Find tools of all connected servers by what you need done. A hit shows how to call it with execute_tool: `x?` is optional, `…` means describe_tool has more.$SERVERS","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"The need, in a few words"},"limit":{"type":"integer","minimum":1,"maximum":50,"default":5},"server":{"type":"string","description":"Only this server"}},"required":["query"]},"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false},"_meta":{"anthropic/alwaysLoad":true}},"#,
    r#"{"name":"describe_tool","description":"Full schemas and notes of tools, where a hit is not enough.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"server__tool"},"names":{"type":"array","items":{"type":"string"}}$AS}},"annotations":{"readOnlyHint":true,"destructiveHint":false,"openWorldHint":false},"_meta":{"anthropic/alwaysLoad":true}},"#,
    "$READ",
    r#"{"name":"execute_tool","description":"Call a tool that search_tools found, or several side by side; returns their own results.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"server__tool"},"arguments":{"type":"object","description":"The tool's arguments","additionalProperties":true},"select":{"type":"string","description":"A jq filter: only this part of the result. For text: `grep(\"regex\")`, `head(20)`"},"timeout":{"type":"number","description":"Seconds"},"calls":{"type":"array","description":"Instead: up to 32 calls at once","maxItems":32,"items":{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object","additionalProperties":true},"select":{"type":"string"}},"required":["name"]}}}},"_meta":{"anthropic/alwaysLoad":true}}"#,
    r"]}"
);

/// The definition of the tool that calls read-only tools, for clients that permit tools by their annotations.
const READ_TOOL: &str = r#"{"name":"execute_read_tool","description":"execute_tool for tools that declare readOnlyHint; others are refused.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"server__tool"},"arguments":{"type":"object","additionalProperties":true},"select":{"type":"string","description":"As in execute_tool"}},"required":["name"]},"annotations":{"readOnlyHint":true},"_meta":{"anthropic/alwaysLoad":true}},"#;

/// The words of these definitions, and of that of `read_result`, about filters, which only a process of mcpzip runs.
const FILTERS: [&str; 5] = [
    r#","select":{"type":"string","description":"A jq filter: only this part of the result. For text: `grep(\"regex\")`, `head(20)`"}"#,
    r#","select":{"type":"string","description":"As in execute_tool"}"#,
    r#","select":{"type":"string","description":"A jq filter over the result's JSON or text"}"#,
    r#","select":{"type":"string"}"#,
    "a part by jq filter, ",
];

/// A definition without what it says about filters, if this program is not mcpzip.
pub(super) fn offered(definition: &str) -> Cow<'_, str> {
    match executable::is_mcpzip() {
        true => definition.into(),
        false => without_filters(definition).into(),
    }
}

pub(super) fn without_filters(definition: &str) -> String {
    let parts = FILTERS.iter();
    parts.fold(definition.to_owned(), |text, part| text.replace(part, ""))
}

/// The argument of `describe_tool` for agents that can run scripts.
const AS_TYPES: &str = r#","as":{"enum":["types"],"description":"TypeScript types for scripts"}"#;

/// The maximum length of the servers' names, in bytes.
const SERVERS: usize = 200;

/// The result of `tools/list` for a client with this view.
pub(in crate::proxy) fn meta_tools(view: &View) -> String {
    defined(&view.config(), view.surface().has_read_tool)
}

fn defined(config: &Config, has_read_tool: bool) -> String {
    let read_tool = if has_read_tool { READ_TOOL } else { "" };
    let types = if config.scripts.is_on { AS_TYPES } else { "" };
    let definitions = DEFINITIONS.replacen("$READ", read_tool, 1);
    let definitions = definitions.replacen("$AS", types, 1);
    let definitions = offered(&definitions).into_owned();
    definitions.replacen("$SERVERS", &servers(config), 1)
}

/// A sentence with the names of the enabled servers, for clients that show no instructions. They come from the
/// configuration, so they do not depend on which servers are connected.
fn servers(config: &Config) -> String {
    let enabled = config.servers.iter().filter(|(_, entry)| !entry.disabled);
    let names: Vec<_> = enabled.map(|(name, _)| name.as_str()).collect();
    let mut length = 0;
    let shown = names
        .iter()
        .take_while(|name| {
            length += name.len() + 2;
            length <= SERVERS
        })
        .count();
    match (shown, names.len() - shown) {
        (0, _) => String::new(),
        (_, 0) => format!(" Servers: {}.", names.join(", ")),
        (_, more) => format!(" Servers: {} and {more} more.", names[..shown].join(", ")),
    }
}

/// The capabilities that mcpzip declares (specification, `ServerCapabilities`): exactly what it relays.
fn capabilities(view: &View, is_modern: bool, others: &Offered) -> String {
    let exposed = view.config().exposes_any();
    let tools = match view.surface().lists_tools_of_servers() {
        // The three constants never change.
        false => "{}",
        true => r#"{"listChanged":true}"#,
    };
    let parts = [
        // Without a handshake, each request has its own level.
        (!is_modern, r#","logging":{}"#),
        (exposed.prompts, r#","prompts":{"listChanged":true}"#),
        (
            exposed.resources,
            r#","resources":{"subscribe":true,"listChanged":true}"#,
        ),
        (exposed.prompts || exposed.resources, r#","completions":{}"#),
    ];
    let parts: String = parts
        .into_iter()
        .filter(|(is_there, _)| *is_there)
        .map(|(_, part)| part)
        .collect();
    let extensions = [
        (
            view.surface().shows_interfaces,
            format!(r#""{INTERFACES}":{{}}"#),
        ),
        (
            // A handshake does not wait for the lists that say which servers have skills.
            exposed.resources,
            format!(r#""{SKILLS}":{{"directoryRead":true}}"#),
        ),
    ];
    let others = others
        .iter()
        .map(|(name, (_, settings))| (true, format!("{}:{settings}", quoted(name))));
    let tasks = (is_modern, format!(r#""{TASKS}":{{}}"#));
    let extensions: Vec<String> = extensions
        .into_iter()
        .chain([tasks])
        .chain(others)
        .filter_map(|(is_there, part)| is_there.then_some(part))
        .collect();
    let extensions = match extensions.is_empty() {
        true => String::new(),
        false => format!(r#","extensions":{{{}}}"#, extensions.join(",")),
    };
    format!(r#"{{"tools":{tools}{parts}{extensions}}}"#)
}

/// The result of `initialize` (up to 2025-11-25, basic/lifecycle).
pub(in crate::proxy) fn initialize(
    revision: Revision,
    view: &View,
    instructions: &str,
    others: &Offered,
) -> String {
    format!(
        r#"{{"protocolVersion":"{revision}","capabilities":{},"serverInfo":{},"instructions":{}}}"#,
        capabilities(view, false, others),
        server_info(),
        quoted(instructions)
    )
}

/// The result of `server/discover` (2026-07-28, server/discover), without the members of every modern result.
pub(in crate::proxy) fn discover(view: &View, instructions: &str, others: &Offered) -> String {
    format!(
        r#"{{"supportedVersions":["{}"],"capabilities":{},"instructions":{}}}"#,
        Revision::V2026_07_28,
        capabilities(view, true, others),
        quoted(instructions)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tool::shown_to_models;

    /// The definitions for a configuration with these servers, and the tokens that a model gets.
    fn defined(servers: &[&str]) -> (serde_json::Value, usize) {
        with_read_tool(servers, false)
    }

    fn with_read_tool(servers: &[&str], has_read_tool: bool) -> (serde_json::Value, usize) {
        let entries: Vec<_> = servers
            .iter()
            .map(|name| format!(r#""{name}":{{"command":"x"}}"#))
            .collect();
        let text = format!(r#"{{"mcpServers":{{{}}}}}"#, entries.join(","));
        let path = std::path::Path::new("/config.json");
        let config = Config::parse(&text, path, &crate::config::Environment::default())
            .expect("the text is a configuration");
        let text = super::defined(&config, has_read_tool);
        assert!(
            text.len() <= if has_read_tool { 2600 } else { 2000 },
            "{} bytes",
            text.len()
        );
        let tools: serde_json::Value = serde_json::from_str(&text).unwrap();
        let o200k = tiktoken_rs::o200k_base().unwrap();
        let tokens = tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| o200k.encode_ordinary(&shown_to_models(tool)).len())
            .sum();
        (tools, tokens)
    }

    #[test]
    fn without_filters_nothing_is_said_of_them() {
        for definition in [DEFINITIONS, READ_TOOL] {
            assert!(definition.contains("select"));
            let without = without_filters(definition);
            let words = ["select", "jq", "filter"];
            assert!(
                !words.iter().any(|word| without.contains(word)),
                "{without}"
            );
        }
    }

    #[test]
    fn the_definitions_name_the_servers_up_to_a_limit() {
        let description = |servers: &[&str]| {
            let (tools, _) = defined(servers);
            tools["tools"][0]["description"]
                .as_str()
                .unwrap()
                .rsplit_once("more.")
                .map(|(_, line)| line.to_owned())
                .unwrap()
        };
        assert_eq!(description(&[]), "");
        assert_eq!(
            description(&["github", "notes"]),
            " Servers: github, notes."
        );
        let names: Vec<String> = (0..40).map(|n| format!("server-{n:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (tools, tokens) = defined(&names);
        let line = tools["tools"][0]["description"].as_str().unwrap();
        assert!(line.ends_with("server-17 and 22 more."), "{line}");
        let (_, alone) = defined(&[]);
        assert!(
            tokens <= alone + 80,
            "{tokens} tokens, {alone} without names"
        );
        let long = "x".repeat(64);
        let (_, tokens) = defined(&[&long, &format!("{long}y")[1..]]);
        assert!(tokens <= alone + 80, "{tokens} tokens");
    }

    /// The servers of docs/answers.md.
    const TEN: [&str; 10] = [
        "calculator",
        "everything",
        "fetch",
        "filesystem",
        "git",
        "memory",
        "n8n",
        "sequential-thinking",
        "sqlite",
        "time",
    ];

    #[test]
    fn the_three_definitions_cost_what_the_documentation_says() {
        let (tools, tokens) = defined(&TEN);
        let names: Vec<_> = tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].clone())
            .collect();
        assert_eq!(names, ["search_tools", "describe_tool", "execute_tool"]);
        assert!(tokens <= 400, "{tokens} tokens");
        let (four, with_twin) = with_read_tool(&TEN, true);
        assert_eq!(four["tools"][2]["name"], "execute_read_tool");
        assert_eq!(four["tools"][2]["annotations"]["readOnlyHint"], true);
        assert!(with_twin <= 560, "{with_twin} tokens");
        // Those of `mcpzip-bench`, in their order.
        let servers: BTreeSet<String> = (0..20).map(|number| format!("server{number}")).collect();
        let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
        let (_, measured) = defined(&servers);
        for (page, figure) in [
            (
                "docs/answers.md",
                format!("| **mcpzip** | **3** | **{tokens}** |"),
            ),
            ("docs/surfaces.md", format!("| {with_twin} |")),
            ("docs/performance.md", format!("| – | {measured} | met |")),
            ("README.md", format!("{tokens} tokens")),
            (
                "website/src/content/docs/introduction.mdx",
                format!("{tokens} tokens"),
            ),
            (
                "website/src/content/docs/project/comparison.md",
                format!("{tokens} tokens"),
            ),
        ] {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
            let text = std::fs::read_to_string(path).unwrap();
            assert!(text.contains(&figure), "{page} has not {figure:?}");
        }
    }
}
