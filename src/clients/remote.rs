//! `mcp-remote`: a program that connects a remote server to clients that support only local ones. Here the URL is
//! enough.

use std::path::Path;

use super::Node;
use super::model::{Carried, Target, ToolRule};
use crate::config::arguments_of;

/// The server behind it.
pub(super) struct Unwrapped {
    pub(super) target: Target,
    pub(super) tool_rules: Vec<ToolRule>,
    /// Notes on its options that are no longer needed.
    pub(super) notes: Vec<String>,
}

/// The kind of a program.
pub(super) enum Outcome {
    /// `mcp-remote`, which is not needed.
    Unwrapped(Unwrapped),
    /// `mcp-remote` that is needed, with the reason.
    Kept(String),
    /// Another program.
    Other,
}

/// The server behind `mcp-remote`, if all of its options have a counterpart here.
pub(super) fn unwrapped(target: &Target) -> Outcome {
    let Target::Local { env, .. } = target else {
        return Outcome::Other;
    };
    let Some((mut unwrapped, used)) = arguments(target) else {
        return Outcome::Other;
    };
    let Target::Remote { url, way, .. } = &mut unwrapped.target else {
        return Outcome::Other;
    };
    let mut dropped = Vec::new();
    for (name, value) in env {
        let proxies: &[&str] = if url.starts_with("https:") {
            &["HTTPS_PROXY", "https_proxy"]
        } else {
            &["HTTP_PROXY", "http_proxy"]
        };
        if used.contains(name) {
        } else if name == "NODE_EXTRA_CA_CERTS" && is_whole_path(value) {
            way.push(("ca_file", value.clone()));
        } else if proxies.contains(&name.as_str())
            && (value.contains("://") || value.starts_with("${"))
            && !way.iter().any(|(key, _)| *key == "proxy")
        {
            way.push(("proxy", value.clone()));
        } else if is_of_node(name) {
            dropped.push(format!("`{name}`"));
        } else {
            return Outcome::Kept(format!(
                "still through mcp-remote, as its variable `{name}` has no counterpart"
            ));
        }
    }
    if !dropped.is_empty() {
        unwrapped.notes.push(format!(
            "without {}, which only mcp-remote needs",
            dropped.join(" and ")
        ));
    }
    Outcome::Unwrapped(unwrapped)
}

/// Whether a variable only affects how the program itself is found and started.
fn is_of_node(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(
        name.as_str(),
        "path" | "home" | "node_no_warnings" | "no_color"
    ) || name.starts_with("npm_config_")
}

fn is_whole_path(path: &str) -> bool {
    Path::new(path).is_absolute() || path.starts_with("~/") || path.starts_with("${")
}

/// The parsed arguments, and the variables that they use.
fn arguments(target: &Target) -> Option<(Unwrapped, Vec<String>)> {
    let Target::Local {
        command, args, env, ..
    } = target
    else {
        return None;
    };
    let mut used = Vec::new();
    let args = arguments_of("mcp-remote", command, args)?.iter();
    let mut words = args.map(String::as_str).peekable();
    let url = words
        .next_if(|word| word.starts_with("https://") || word.starts_with("http://"))?
        .to_owned();
    let (mut headers, mut oauth, mut tool_rules) = (Vec::new(), Vec::new(), Vec::new());
    let mut transport = "http-first";
    while let Some(word) = words.next() {
        match word {
            "--header" => {
                let (name, value) = words.next()?.split_once(':')?;
                headers.push((
                    name.trim().to_owned(),
                    filled_in(value.trim(), env, &mut used),
                ));
            }
            "--transport" => transport = words.next()?,
            "--ignore-tool" => {
                let pattern = words.next()?;
                tool_rules.push(ToolRule {
                    key: "args --ignore-tool".to_owned(),
                    carried: Carried::Deny(vec![pattern.to_owned()]),
                    value: pattern.to_owned(),
                });
            }
            // Options of its browser login and its log.
            "--host" | "--auth-timeout" => drop(words.next()?),
            "--allow-http" | "--debug" | "--silent" => {}
            port if port.parse::<u16>().is_ok() => {
                oauth.push(("redirect_port", Node::Number(port.to_owned())));
            }
            _ => return None,
        }
    }
    let is_sse = match transport {
        "sse-only" => true,
        "http-only" => false,
        "http-first" | "sse-first" => url
            .split(['?', '#'])
            .next()
            .is_some_and(|path| path.ends_with("/sse")),
        _ => return None,
    };
    let unwrapped = Unwrapped {
        target: Target::Remote {
            url,
            is_sse,
            headers,
            headers_helper: None,
            oauth,
            way: Vec::new(),
        },
        tool_rules,
        notes: Vec::new(),
    };
    Some((unwrapped, used))
}

/// Expands references as `mcp-remote` does: it expands `${NAME}` from the entry's variables. In our syntax that text
/// is `$${NAME}` if the client does not expand it, and `${NAME}` if it does; such a variable is added to `used`.
fn filled_in(text: &str, env: &[(String, String)], used: &mut Vec<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else {
            break;
        };
        out.push_str(before.strip_suffix('$').unwrap_or(before));
        match env.iter().find(|(known, _)| known == name) {
            Some((_, value)) => {
                used.push(name.to_owned());
                out.push_str(value);
            }
            None => out.push_str(&format!("${{{name}}}")),
        }
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A URL, whether it uses the older transport, and headers.
    type Reached<'a> = (&'a str, bool, &'a [(&'a str, &'a str)]);

    fn check(args: &[&str], expected: Option<Reached<'_>>) {
        let (command, args) = args.split_first().unwrap();
        let target = Target::Local {
            command: (*command).to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: match args.iter().any(|arg| arg.contains("{AUTH}")) {
                true => vec![("AUTH".to_owned(), "Bearer ${TOKEN}".to_owned())],
                false => Vec::new(),
            },
            cwd: None,
        };
        let found = match unwrapped(&target) {
            Outcome::Unwrapped(unwrapped) => Some(unwrapped.target),
            _ => None,
        };
        let expected = expected.map(|(url, is_sse, headers)| Target::Remote {
            url: url.to_owned(),
            is_sse,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            headers_helper: None,
            oauth: Vec::new(),
            way: Vec::new(),
        });
        assert_eq!(found, expected, "{args:?}");
    }

    #[test]
    fn what_is_behind_it_is_reached_without_it() {
        const URL: &str = "https://a.example/mcp";
        check(&["npx", "-y", "mcp-remote", URL], Some((URL, false, &[])));
        check(
            &["npx", "mcp-remote@latest", URL, "--debug"],
            Some((URL, false, &[])),
        );
        check(
            &["cmd", "/c", "npx", "-y", "mcp-remote", URL],
            Some((URL, false, &[])),
        );
        check(
            &["/usr/bin/mcp-remote", URL, "--transport", "sse-only"],
            Some((URL, true, &[])),
        );
        check(
            &["npx", "mcp-remote", "https://a.example/sse"],
            Some(("https://a.example/sse", true, &[])),
        );
        check(
            &[
                "npx",
                "mcp-remote",
                URL,
                "--header",
                "Authorization:$${AUTH}",
                "--header",
                "X-A: $${B}",
            ],
            Some((
                URL,
                false,
                &[("Authorization", "Bearer ${TOKEN}"), ("X-A", "${B}")],
            )),
        );
        check(
            &[
                "npx",
                "mcp-remote",
                URL,
                "--static-oauth-client-info",
                "@x.json",
            ],
            None,
        );
        check(&["npx", "mcp-remote"], None);
        check(&["npx", "other", URL], None);
    }
}
