//! The definitions that every client gets. They are constants, because clients cache prompts by their bytes.

use crate::mcp::Revision;
use crate::mcp::object::quoted;
use crate::proxy::answers::reply::server_info;
use crate::proxy::view::{Mode, View};

/// The result of `tools/list`.
pub(crate) const DEFINITIONS: &str = concat!(
    r#"{"tools":["#,
    r#"{"name":"search_tools","description":"Find tools of all connected servers by what you need done. A hit shows how to call it with execute_tool: `x?` is optional, `…` means describe_tool has more.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"The need, in a few words"},"limit":{"type":"integer","minimum":1,"maximum":50,"default":5},"server":{"type":"string","description":"Only this server"}},"required":["query"]},"annotations":{"readOnlyHint":true},"_meta":{"anthropic/alwaysLoad":true}},"#,
    r#"{"name":"describe_tool","description":"Full schemas and notes of tools, where a hit is not enough.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"server__tool"},"names":{"type":"array","items":{"type":"string"}}}},"annotations":{"readOnlyHint":true},"_meta":{"anthropic/alwaysLoad":true}},"#,
    r#"{"name":"execute_tool","description":"Call a tool that search_tools found, or several side by side; returns their own results.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"server__tool"},"arguments":{"type":"object","description":"The tool's arguments","additionalProperties":true},"select":{"type":"string","description":"A jq filter: only this part of the result's JSON"},"timeout":{"type":"number","description":"Seconds"},"calls":{"type":"array","description":"Instead: up to 32 calls at once","maxItems":32,"items":{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object","additionalProperties":true},"select":{"type":"string"}},"required":["name"]}}}},"_meta":{"anthropic/alwaysLoad":true}}"#,
    r"]}"
);

/// The capabilities that mcpzip declares (specification, `ServerCapabilities`): exactly what it relays.
fn capabilities(view: &View, is_modern: bool) -> String {
    let exposed = view.config().exposes_any();
    let tools = match view.mode() {
        // The three constants never change.
        Mode::MetaTools => "{}",
        Mode::Direct => r#"{"listChanged":true}"#,
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
    format!(r#"{{"tools":{tools}{parts}}}"#)
}

/// The result of `initialize` (up to 2025-11-25, basic/lifecycle).
pub(in crate::proxy) fn initialize(revision: Revision, view: &View, instructions: &str) -> String {
    format!(
        r#"{{"protocolVersion":"{revision}","capabilities":{},"serverInfo":{},"instructions":{}}}"#,
        capabilities(view, false),
        server_info(),
        quoted(instructions)
    )
}

/// The result of `server/discover` (2026-07-28, server/discover), without the members of every modern result.
pub(in crate::proxy) fn discover(view: &View, instructions: &str) -> String {
    format!(
        r#"{{"supportedVersions":["{}"],"capabilities":{},"instructions":{}}}"#,
        Revision::V2026_07_28,
        capabilities(view, true),
        quoted(instructions)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::shown_to_models;

    #[test]
    fn the_three_definitions_cost_what_the_documentation_says() {
        let tools: serde_json::Value = serde_json::from_str(DEFINITIONS).unwrap();
        let names: Vec<_> = tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].clone())
            .collect();
        assert_eq!(names, ["search_tools", "describe_tool", "execute_tool"]);
        let o200k = tiktoken_rs::o200k_base().unwrap();
        let tokens: usize = tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| o200k.encode_ordinary(&shown_to_models(tool)).len())
            .sum();
        assert!(tokens <= 400, "{tokens} tokens");
        for (page, figure) in [
            (
                "docs/answers.md",
                format!("| **mcpzip** | **3** | **{tokens}** |"),
            ),
            ("docs/performance.md", format!("| – | {tokens} | met |")),
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
        assert!(DEFINITIONS.len() <= 1800, "{} bytes", DEFINITIONS.len());
    }
}
