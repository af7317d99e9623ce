//! What a search hit is worth, on the tools of real servers.

use mcpzip::internals::tool::{Definition, ServerName, render_hit};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::support::{Server, Setup, corpus};

#[test]
fn real_tools_can_be_called_from_their_hits_which_are_short() {
    let Some(tools) = corpus::tools("dev/corpus.json") else {
        return;
    };
    let o200k = tiktoken_rs::o200k_base().unwrap();
    let (mut tokens, mut small, mut callable) = (0, 0, 0);
    for tool in &tools {
        let name: String = tool
            .server
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(64)
            .collect();
        let raw = RawValue::from_string(tool.definition.to_string()).unwrap();
        let definition = Definition::parse(&raw).unwrap();
        let hit = render_hit(&ServerName::new(&name).unwrap(), &definition);
        tokens += o200k.encode_ordinary(&hit).len();
        if definition.parameters.len() <= 6 {
            small += 1;
            callable += usize::from(is_callable(&tool.definition, hit.lines().next().unwrap()));
        }
    }
    let mean = tokens as f64 / tools.len() as f64;
    let share = callable as f64 / small as f64;
    eprintln!(
        "{} tools: {mean:.1} tokens a hit, {:.1} % of {small} callable",
        tools.len(),
        share * 100.0
    );
    assert!(
        tools.len() >= 2_240 && small >= 1_000,
        "{} tools, {small} small",
        tools.len()
    );
    assert!(mean <= 70.0, "{mean} tokens a hit");
    assert!(share >= 0.9, "{share} callable");
}

#[test]
fn an_answer_of_five_hits_costs_400_tokens_at_most() {
    let Some(mut tools) = corpus::tools("dev/corpus.json") else {
        return;
    };
    // Those with the most to say.
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.definition.to_string().len()));
    tools.truncate(80);
    let server = |name: &str, tools: &[corpus::CorpusTool]| {
        let all = tools.iter().fold(Server::new(), |all, tool| {
            all.entry(&tool.definition.to_string())
        });
        (name.to_owned(), all)
    };
    let (one, other) = (server("one", &tools[..40]), server("other", &tools[40..]));
    let mut client = Setup::new()
        .server(&one.0, one.1)
        .server(&other.0, other.1)
        .connect();
    let o200k = tiktoken_rs::o200k_base().unwrap();
    let costs: Vec<usize> = tools
        .iter()
        .map(|tool| {
            let found = client.search(tool.definition["name"].as_str().unwrap());
            let cost = o200k.encode_ordinary(&found).len();
            assert!(cost <= 400, "{cost} tokens: {found}");
            cost
        })
        .collect();
    let most = costs.iter().max().copied().unwrap_or_default();
    assert!(
        most >= 250,
        "the largest tools cost {most} tokens: this shows nothing"
    );
    client.finish();
}

/// Whether `line` has every required parameter, with a type that says something and all values of its enum. Judged by the
/// schema, not by the code that wrote the line.
fn is_callable(definition: &Value, line: &str) -> bool {
    let schema = &definition["inputSchema"];
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    required
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| schema["properties"].get(*name).is_some())
        .all(|name| {
            let labels = [format!("{name}: "), format!("{}: ", Value::from(name))];
            let shown = labels.iter().find_map(|label| {
                ["(", ", "].iter().find_map(|before| {
                    line.split_once(&format!("{before}{label}"))
                        .map(|(_, after)| after)
                })
            });
            let Some(shown) = shown else { return false };
            let schema = &schema["properties"][name];
            let values = schema["enum"]
                .as_array()
                .or_else(|| schema["items"]["enum"].as_array());
            let says_nothing = ["any", "…", "{…}"]
                .iter()
                .any(|word| shown.starts_with(word));
            !says_nothing
                && values.is_none_or(|values| {
                    values
                        .iter()
                        .all(|value| shown.contains(&value.to_string()))
                })
        })
}
