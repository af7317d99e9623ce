//! Converts references to variables from each client's syntax to ours, `${NAME}`. It never expands them.

use super::Client;
use super::model::Unmovable;

/// The role of a text in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Part of a command line, which a shell may expand.
    Command,
    /// The value of a variable or a header, or a URL.
    Value,
}

/// A client's syntax of references.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `${NAME}`, `${NAME:-default}`
    Shell,
    /// These, and `$NAME`.
    Dollar,
    /// `${env:NAME}`, and others that only the client can expand.
    Colon,
    /// `{env:NAME}`
    Braces,
    /// The client expands none.
    None,
}

/// `text` with its references in our syntax. Text that is not a reference for the client becomes literal.
///
/// # Errors
/// When it has a reference that only the client can expand.
pub(super) fn translate(client: Client, text: &str, role: Role) -> Result<String, Unmovable> {
    let style = style(client);
    let only_there = |written: &str| Unmovable::Reference {
        written: written.to_owned(),
        client,
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(inner) = rest.strip_prefix("${") {
            if rest.starts_with("${{") {
                let end = rest.find("}}").map_or(rest.len(), |end| end + 2);
                return Err(only_there(&rest[..end]));
            }
            let (written, inner, after) = match inner.find('}') {
                Some(end) => (&rest[..end + 3], &inner[..end], &inner[end + 1..]),
                None => (rest, "", ""),
            };
            // Codex has a format of its own and fills in nothing. Files of other clients that fill in nothing are often copies of files in
            // which the reference was filled in.
            let is_whole = client != Client::Codex || out.is_empty() && written.len() == text.len();
            match reference(style, inner, role, is_whole) {
                Reading::Variable(reference) => {
                    if out.ends_with('$') {
                        return Err(Unmovable::Dollar(written.to_owned()));
                    }
                    out.push_str(&format!("${{{reference}}}"));
                }
                Reading::ClientOnly => return Err(only_there(written)),
                Reading::Literal => {
                    if out.ends_with('$') {
                        return Err(Unmovable::Dollar(written.to_owned()));
                    }
                    out.push('$');
                    out.push_str(written);
                }
            }
            rest = after;
        } else if let Some(inner) = rest.strip_prefix("{").filter(|_| style == Style::Braces) {
            let end = inner.find('}');
            let name = end
                .and_then(|end| inner[..end].strip_prefix("env:"))
                .filter(|name| is_name(name));
            if let (Some(name), Some(end)) = (name, end) {
                // opencode puts an empty text where the variable is not set.
                out.push_str(&format!("${{{name}:-}}"));
                rest = &inner[end + 1..];
            } else if inner.starts_with("file:") {
                return Err(only_there(end.map_or(rest, |end| &rest[..end + 2])));
            } else {
                out.push('{');
                rest = inner;
            }
        } else {
            let name_length = match style {
                Style::Dollar => rest[1..]
                    .find(|c: char| !is_name_character(c))
                    .unwrap_or(rest.len() - 1),
                _ => 0,
            };
            let name = rest
                .get(1..=name_length)
                .filter(|name| rest.starts_with('$') && is_name(name));
            match name {
                Some(name) => out.push_str(&format!("${{{name}}}")),
                None => out.push_str(&rest[..1]),
            }
            rest = &rest[1 + name.map_or(0, str::len)..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// A text without references, in our syntax.
pub(super) fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// The names of the variables in a text in our syntax.
pub(super) fn variables(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let inner = &rest[at + 2..];
        let name: String = inner
            .chars()
            .take_while(|c| is_name_character(*c))
            .collect();
        let after = &inner[name.len()..];
        let is_variable = !after.starts_with(':') || after.starts_with(":-");
        if !rest[..at].ends_with('$') && is_name(&name) && is_variable {
            names.push(name);
        }
        rest = inner;
    }
    names
}

/// A text in our syntax in which each reference to the variable `name` is `reference`. `None` if it has none.
pub(super) fn replaced(text: &str, name: &str, reference: &str) -> Option<String> {
    let (mut out, mut rest, mut is_changed) = (String::new(), text, false);
    while let Some(at) = rest.find("${") {
        let (before, inner) = (&rest[..at], &rest[at + 2..]);
        let end = inner.find('}').unwrap_or(inner.len());
        let written = inner[..end]
            .split_once(":-")
            .map_or(&inner[..end], |(name, _)| name);
        out.push_str(before);
        rest = match inner.get(end + 1..) {
            Some(after) if written == name && !before.ends_with('$') => {
                out.push_str(reference);
                is_changed = true;
                after
            }
            _ => {
                out.push_str("${");
                inner
            }
        };
    }
    out.push_str(rest);
    is_changed.then_some(out)
}

enum Reading {
    Variable(String),
    ClientOnly,
    Literal,
}

/// The meaning of `${inner}`, which may have to be the whole text.
fn reference(style: Style, inner: &str, role: Role, is_whole: bool) -> Reading {
    let name = inner.split_once(":-").map_or(inner, |(name, _)| name);
    if inner.starts_with("input:") || name == "CLAUDE_PLUGIN_ROOT" || name == "CLAUDE_PLUGIN_DATA" {
        return Reading::ClientOnly;
    }
    if style == Style::Colon {
        if let Some(name) = inner.strip_prefix("env:").filter(|name| is_name(name)) {
            return Reading::Variable(name.to_owned());
        }
        if inner == "userHome" {
            return Reading::Variable(
                if cfg!(windows) { "USERPROFILE" } else { "HOME" }.to_owned(),
            );
        }
        let is_own = inner.contains(':') && !inner.contains(":-")
            || inner.starts_with("workspaceFolder")
            || matches!(inner, "pathSeparator" | "/" | "cwd");
        if is_own {
            return Reading::ClientOnly;
        }
    }
    match style {
        // A value that is only a reference is meant as one, even if the client does not expand it. A command line may
        // be a shell's, which expands it.
        _ if !is_name(name) => Reading::Literal,
        Style::Shell | Style::Dollar => Reading::Variable(inner.to_owned()),
        // A part of a longer text is what the server got.
        Style::None if !is_whole => Reading::Literal,
        _ if role == Role::Value => Reading::Variable(inner.to_owned()),
        _ => Reading::Literal,
    }
}

fn style(client: Client) -> Style {
    match client {
        Client::ClaudeCode | Client::Kiro | Client::CopilotCli => Style::Shell,
        Client::GeminiCli => Style::Dollar,
        Client::Cursor | Client::VsCode | Client::Windsurf | Client::Roo | Client::LmStudio => {
            Style::Colon
        }
        Client::OpenCode => Style::Braces,
        Client::ClaudeDesktop
        | Client::Codex
        | Client::Zed
        | Client::Cline
        | Client::Continue
        | Client::Goose => Style::None,
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(is_name_character)
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
