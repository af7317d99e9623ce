//! A rule for tools as it is written in the file.

use super::error::EntryError;
use super::reader::{At, Field};

/// A rule: a text, or an object with `tool` and `when`.
#[derive(Debug)]
pub(super) struct RuleEntry {
    pub(super) tool: String,
    /// Arguments with the patterns of their values.
    pub(super) when: Vec<(String, Vec<String>)>,
}

impl RuleEntry {
    /// A rule about every call of some tools.
    pub(super) fn of_tool(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            when: Vec::new(),
        }
    }

    /// As it is written, on one line.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\"{}\"", self.tool);
        for (index, (argument, values)) in self.when.iter().enumerate() {
            let word = if index == 0 { "when" } else { "and" };
            text += &format!(" {word} {argument} is {}", values.join(" or "));
        }
        text
    }
}

/// Reads a list of rules.
pub(super) fn rules(field: &Field<'_>) -> Result<Vec<At<RuleEntry>>, At<EntryError>> {
    let rule = |field: Field<'_>| {
        if field.object().is_ok() {
            return conditional_rule(&field);
        }
        let text = field.text_as("a tool's name, or an object with `tool` and `when`")?;
        Ok(At::new(text.offset, RuleEntry::of_tool(&text.value)))
    };
    field
        .elements("a list of rules like [\"delete_*\"]")?
        .map(rule)
        .collect()
}

/// A rule about some calls. A key that is not known could narrow it, so the rule as a whole is a fault.
fn conditional_rule(field: &Field<'_>) -> Result<At<RuleEntry>, At<EntryError>> {
    let expected = "a rule like {\"tool\": \"files__write\", \"when\": {\"path\": \"/etc/**\"}}";
    let (mut tool, mut when) = (None, Vec::new());
    field.members(|name, member| {
        match name {
            "tool" => tool = Some(member.text().map_err(|_| field.wrong(expected))?.value),
            "when" => when = conditions(member).map_err(|_| field.wrong(expected))?,
            _ => return Err(field.wrong(expected)),
        }
        Ok(())
    })?;
    let tool = tool.filter(|_| !when.is_empty());
    let tool = tool.ok_or_else(|| field.wrong(expected))?;
    Ok(At::new(field.offset(), RuleEntry { tool, when }))
}

/// The patterns of each argument: a text, or a list of texts.
fn conditions(field: &Field<'_>) -> Result<Vec<(String, Vec<String>)>, At<EntryError>> {
    field.members(|name, field| {
        let texts = match field.is_list() {
            true => field.texts()?,
            false => vec![field.text()?],
        };
        let texts = texts.into_iter().map(|text| text.value).collect();
        Ok((name.to_owned(), texts))
    })
}
