//! Rules that name a tool which no server has, such as misspelt ones.

use crate::catalog::ServerTools;
use crate::config::{BUILT_IN_SERVER, Config, ListedRule};
use crate::text::nearest;
use crate::tool::{QualifiedName, ServerName};

/// The remark on a rule of `server`, or of all servers, that is about no tool of the `lists`. `None` if it is about one,
/// or while a list that it may be about is not known.
pub(in crate::cli) fn remark(
    rule: &ListedRule<'_>,
    server: Option<&ServerName>,
    config: &Config,
    lists: &[ServerTools],
) -> Option<String> {
    let written = rule.name()?;
    let meant: Vec<&ServerTools> = lists
        .iter()
        .filter(|list| server.is_none_or(|server| list.name() == server))
        .collect();
    let mut used = config
        .servers
        .iter()
        .filter(|(name, entry)| !entry.disabled && server.is_none_or(|server| *name == server));
    let is_known = used.all(|(name, _)| meant.iter().any(|list| list.name() == name));
    if !is_known || meant.is_empty() || server.is_none() && written.starts_with(BUILT_IN_SERVER) {
        return None;
    }
    let names: Vec<QualifiedName> = meant
        .iter()
        .flat_map(|list| {
            list.entries().iter().map(|entry| QualifiedName {
                server: list.name().clone(),
                tool: entry.name.clone(),
            })
        })
        .collect();
    if names.iter().any(|name| rule.is_about(name)) {
        return None;
    }
    if let Some((own, shown)) = renamed(&names, config).find(|(_, shown)| rule.is_about(shown)) {
        // Rules that restrict may use either name.
        return (!rule.restricts()).then(|| {
            format!(
                "rule `{}` {} permits nothing: agents see `{}` as `{}`, but a rule that permits a tool must use the server's own name; write `{}`",
                rule.list, rule.text, own, shown.tool, own.tool
            )
        });
    }
    let of = server.map_or_else(|| "any server".to_owned(), |server| format!("`{server}`"));
    let own: Vec<&str> = names.iter().map(|name| name.tool.as_str()).collect();
    let full: Vec<String> = names.iter().map(ToString::to_string).collect();
    let near = match written.contains(crate::tool::SEPARATOR) {
        true => nearest(written, full.iter().map(String::as_str)),
        false => nearest(written, own.iter().copied()),
    };
    let advice = near.map(|near| format!("; did you mean `{near}`?"));
    Some(format!(
        "rule `{}` {} matches no tool of {of}{}",
        rule.list,
        rule.text,
        advice.unwrap_or_default()
    ))
}

/// Those of the tools that agents see by another name, with that name.
fn renamed<'n>(
    names: &'n [QualifiedName],
    config: &Config,
) -> impl Iterator<Item = (&'n QualifiedName, QualifiedName)> {
    names.iter().filter_map(|own| {
        let entry = config.servers.get(&own.server)?;
        let wanted = entry.overrides.get(own.tool.as_str())?;
        let shown = QualifiedName {
            server: own.server.clone(),
            tool: wanted.name.clone()?,
        };
        Some((own, shown))
    })
}

/// The remarks on all rules with plain names, each with the server whose entry has the rule.
pub(in crate::cli) fn remarks(
    config: &Config,
    lists: &[ServerTools],
) -> Vec<(Option<ServerName>, String)> {
    super::all(config)
        .into_iter()
        .filter(|(_, rule)| !rule.name().is_some_and(|name| name.contains(['*', '?'])))
        .filter_map(|(place, rule)| {
            let server = place.server();
            Some((server.cloned(), remark(&rule, server, config, lists)?))
        })
        .collect()
}
