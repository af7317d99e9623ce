//! Skills of servers (extension `io.modelcontextprotocol/skills`): each becomes a tool of its server that reads it, so that it is found,
//! ruled, approved and logged as tools are. Only the front matter is known before a skill is read.

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::mcp::Object;
use crate::mcp::object::quoted;
use crate::tool::{FAULT, SKILL, ServerName};

/// The extension.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The length of a tool's name, in characters.
const LONGEST_NAME: usize = 64;

/// Adds a tool for each skill, after the server's own `tools`. One of these that claims to be a skill is left out.
pub(super) fn add(server: &ServerName, tools: &mut Vec<Bytes>, skills: &[Bytes]) {
    tools.retain(|entry| {
        let is_claimed = of_definition(entry).is_some();
        if is_claimed {
            tracing::warn!(%server, "a tool that claims to be a skill is left out");
        }
        !is_claimed
    });
    if skills.is_empty() {
        return;
    }
    let names = tools.iter().filter_map(|entry| {
        let raw: &RawValue = serde_json::from_slice(entry).ok()?;
        Object::parse(raw).ok()?.text("name")
    });
    let mut taken: HashSet<String> = names.collect();
    for entry in skills {
        if is_fault(entry) {
            tools.push(entry.clone());
            continue;
        }
        match definition(entry, &mut taken) {
            Ok(definition) => tools.push(definition.into()),
            Err(problem) => tracing::warn!(%server, problem, "a skill is left out"),
        }
    }
}

/// The entry of `skills/list` that a tool's definition stands for.
pub(crate) fn of_definition(definition: &[u8]) -> Option<&RawValue> {
    let raw: &RawValue = serde_json::from_slice(definition).ok()?;
    let meta = Object::parse(raw).ok()?.get("_meta")?;
    Object::parse(meta).ok()?.get(SKILL)
}

/// Whether an entry only says why a skill is none, for `mcpzip doctor`, as an entry of a list of tools can.
fn is_fault(entry: &[u8]) -> bool {
    let raw: Option<&RawValue> = serde_json::from_slice(entry).ok();
    raw.and_then(|raw| Object::parse(raw).ok())
        .is_some_and(|entry| entry.text(FAULT).is_some())
}

fn definition(entry: &[u8], taken: &mut HashSet<String>) -> Result<String, &'static str> {
    let raw: &RawValue = serde_json::from_slice(entry).map_err(|_| "it is not JSON")?;
    let object = Object::parse(raw).map_err(|_| "it is not an object")?;
    let uri = object.text("uri").ok_or("it has no `uri`")?;
    if !uri.ends_with("/SKILL.md") {
        return Err("its `uri` does not end with `/SKILL.md`");
    }
    let front = object
        .get("frontmatter")
        .and_then(|raw| Object::parse(raw).ok());
    let front = front.ok_or("it has no front matter")?;
    let name = front.text("name").filter(|name| !name.is_empty());
    let name = unique(&name.ok_or("its front matter has no `name`")?, taken);
    let description = front.text("description").unwrap_or_default();
    let schema = json!({
        "type": "object",
        "properties": { "file": { "type": "string", "description": "One of its files; without it, its instructions" } }
    });
    Ok(format!(
        r#"{{"name":{},"description":{},"inputSchema":{schema},"annotations":{{"readOnlyHint":true}},"_meta":{{"{SKILL}":{raw}}}}}"#,
        quoted(&name),
        quoted(&format!("Skill: {description}")),
    ))
}

/// A tool's name for a skill, which no other tool of the server has.
fn unique(name: &str, taken: &mut HashSet<String>) -> String {
    let legal = |c: char| match c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') {
        true => c,
        false => '-',
    };
    let plain: String = name.chars().map(legal).take(LONGEST_NAME - 12).collect();
    let numbered = (2..).map(|number| format!("skill-{plain}-{number}"));
    let names = [plain.clone(), format!("skill-{plain}")];
    let mut names = names.into_iter().chain(numbered);
    names
        .find(|name| taken.insert(name.clone()))
        .expect("there are more numbers than tools")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = r#"{"uri":"skill://a/refunds/SKILL.md","frontmatter":{"name":"refunds","description":"Refunds an order.","x": 1e400},"resources":"dynamic"}"#;

    fn tools(own: &[&'static str], skills: &[&'static str]) -> Vec<Bytes> {
        let bytes = |texts: &[&'static str]| -> Vec<Bytes> {
            texts
                .iter()
                .map(|text| Bytes::from_static(text.as_bytes()))
                .collect()
        };
        let mut tools = bytes(own);
        add(&ServerName::new("s").unwrap(), &mut tools, &bytes(skills));
        tools
    }

    #[test]
    fn a_skill_is_a_tool_with_its_entry_in_its_own_bytes() {
        let tools = tools(&[r#"{"name":"refunds"}"#], &[ENTRY, ENTRY]);
        let names: Vec<_> = tools
            .iter()
            .map(|tool| serde_json::from_slice::<&RawValue>(tool).unwrap())
            .map(|raw| Object::parse(raw).unwrap().text("name").unwrap())
            .collect();
        assert_eq!(names, ["refunds", "skill-refunds", "skill-refunds-2"]);
        assert_eq!(of_definition(&tools[1]).unwrap().get(), ENTRY);
        assert!(of_definition(&tools[0]).is_none());
    }

    #[test]
    fn what_is_no_skill_is_left_out() {
        for entry in [
            "[]",
            r#"{"uri":"skill://a/SKILL.md"}"#,
            r#"{"frontmatter":{"name":"x"}}"#,
            r#"{"uri":"skill://a/README.md","frontmatter":{"name":"x"}}"#,
            r#"{"uri":"skill://a/SKILL.md","frontmatter":{"name":""}}"#,
        ] {
            assert!(tools(&[], &[entry]).is_empty(), "{entry}");
        }
        let claimed = r#"{"name":"x","_meta":{"mcpzip/skill":{"uri":"skill://a/SKILL.md"}}}"#;
        assert!(tools(&[claimed], &[]).is_empty());
    }
}
