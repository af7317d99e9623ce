//! Skills of servers (extension `io.modelcontextprotocol/skills`): each becomes a tool of its server that reads it,
//! so search, rules, approvals and logs apply to it. Only the front matter is known before a skill is read.

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::mcp::Object;
use crate::mcp::object::{quoted, text};
use crate::tool::{FAULT, SKILL, ServerName};

/// The extension.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The length of a tool's name, in characters.
const LONGEST_NAME: usize = 64;

/// The file with a skill's instructions.
pub(crate) const INSTRUCTIONS: &str = "SKILL.md";

/// The limits of a skill's files (extension's specification): their number, and their size in bytes.
const MOST_FILES: usize = 512;
const LARGEST: u64 = 16 * 1024 * 1024;

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

/// Whether an entry only has the fault of a skill, for `mcpzip doctor`. With a name it would be a tool that no check has seen.
fn is_fault(entry: &[u8]) -> bool {
    let raw: Option<&RawValue> = serde_json::from_slice(entry).ok();
    raw.and_then(|raw| Object::parse(raw).ok())
        .is_some_and(|entry| entry.text(FAULT).is_some() && entry.get("name").is_none())
}

fn definition(entry: &[u8], taken: &mut HashSet<String>) -> Result<String, &'static str> {
    let raw: &RawValue = serde_json::from_slice(entry).map_err(|_| "it is not JSON")?;
    let object = Object::parse(raw).map_err(|_| "it is not an object")?;
    let uri = object.text("uri").ok_or("it has no `uri`")?;
    let front = object
        .get("frontmatter")
        .and_then(|raw| Object::parse(raw).ok());
    let front = front.ok_or("it has no front matter")?;
    let name = front.text("name").filter(|name| !name.is_empty());
    let name = name.ok_or("its front matter has no `name`")?;
    // Everything in its folder is its own, so that must not be a whole host or disk.
    let folder = uri
        .strip_suffix(INSTRUCTIONS)
        .and_then(|folder| folder.strip_suffix('/'));
    let path = folder.and_then(|folder| folder.split_once("://"));
    if path.is_none_or(|(_, path)| path.rsplit('/').next() != Some(&name)) {
        return Err("its `uri` does not end with its name and `/SKILL.md`");
    }
    has_files(&object)?;
    let name = unique(&name, taken);
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

/// Checks the list of files of a skill.
fn has_files(entry: &Object<'_>) -> Result<(), &'static str> {
    let files = entry.get("resources").ok_or("it has no `resources`")?;
    if text(files).as_deref() == Some("dynamic") {
        return Ok(());
    }
    let files: Vec<&RawValue> =
        serde_json::from_str(files.get()).map_err(|_| "its `resources` are not a list")?;
    if files.len() > MOST_FILES {
        return Err("it has too many files");
    }
    let mut size: u64 = 0;
    for file in files {
        let file = Object::parse(file).map_err(|_| "one of its files is not an object")?;
        let own = file.get("size").and_then(|raw| raw.get().parse().ok());
        let is_whole = file.text("uri").is_some() && file.text("digest").is_some();
        let own = own.filter(|_| is_whole);
        size = size.saturating_add(own.ok_or("one of its files has no `uri`, `digest` or `size`")?);
    }
    match size > LARGEST {
        true => Err("its files are too large"),
        false => Ok(()),
    }
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
    fn an_entry_that_is_not_a_skill_is_left_out() {
        let many = format!(
            r#"{{"uri":"skill://x/SKILL.md","frontmatter":{{"name":"x"}},"resources":[{}]}}"#,
            vec![r#"{"uri":"skill://x/a","digest":"","size":1}"#; MOST_FILES + 1].join(",")
        );
        for entry in [
            "[]",
            r#"{"uri":"skill://a/SKILL.md","resources":"dynamic"}"#,
            r#"{"frontmatter":{"name":"x"},"resources":"dynamic"}"#,
            r#"{"uri":"skill://a/README.md","frontmatter":{"name":"x"},"resources":"dynamic"}"#,
            r#"{"uri":"skill://a/SKILL.md","frontmatter":{"name":""},"resources":"dynamic"}"#,
            r#"{"uri":"skill://a/SKILL.md","frontmatter":{"name":"x"},"resources":"dynamic"}"#,
            r#"{"uri":"file:///SKILL.md","frontmatter":{"name":"x"},"resources":"dynamic"}"#,
            r#"{"uri":"skill://SKILL.md","frontmatter":{"name":"skill:"},"resources":"dynamic"}"#,
            r#"{"uri":"x/SKILL.md","frontmatter":{"name":"x"},"resources":"dynamic"}"#,
            r#"{"uri":"skill://x/SKILL.md","frontmatter":{"name":"x"}}"#,
            r#"{"uri":"skill://x/SKILL.md","frontmatter":{"name":"x"},"resources":[{"uri":"skill://x/SKILL.md"}]}"#,
            r#"{"uri":"skill://x/SKILL.md","frontmatter":{"name":"x"},"resources":[{"uri":"skill://x/a","digest":"","size":16777217}]}"#,
            // A fault with a name would be a tool.
            r#"{"mcpzip/fault":"x","name":"free","inputSchema":{},"_meta":{"mcpzip/skill":{"uri":"SKILL.md"}}}"#,
            Box::leak(many.into_boxed_str()),
        ] {
            assert!(tools(&[], &[entry]).is_empty(), "{entry}");
        }
        let claimed = r#"{"name":"x","_meta":{"mcpzip/skill":{"uri":"skill://a/SKILL.md"}}}"#;
        assert!(tools(&[claimed], &[]).is_empty());
    }
}
