//! `mcp-remote`: a program that stands before a remote server for clients that know none. Here the URL is enough.

use super::Node;
use super::reading::{Target, ToolRule};
use super::rules::Carried;
use crate::config::program_name;

/// What was behind it.
pub(super) struct Unwrapped {
    pub(super) target: Target,
    pub(super) tool_rules: Vec<ToolRule>,
}

/// The server that `mcp-remote` stands before, where all that it was told has a word here.
pub(super) fn unwrapped(target: &Target) -> Option<Unwrapped> {
    let Target::Local {
        command, args, env, ..
    } = target
    else {
        return None;
    };
    let mut words = [command.as_str()]
        .into_iter()
        .chain(args.iter().map(String::as_str))
        .peekable();
    if program_name(words.peek()?) == "cmd" {
        words.next();
        words.next_if(|word| word.eq_ignore_ascii_case("/c"))?;
    }
    if matches!(program_name(words.peek()?), "npx" | "bunx" | "pnpx") {
        words.next();
        while words
            .next_if(|word| matches!(*word, "-y" | "--yes" | "-q" | "--quiet"))
            .is_some()
        {}
    }
    words
        .next()
        .filter(|word| program_name(word) == "mcp-remote")?;
    let url = words
        .next_if(|word| word.starts_with("https://") || word.starts_with("http://"))?
        .to_owned();
    let (mut headers, mut oauth, mut tool_rules) = (Vec::new(), Vec::new(), Vec::new());
    let mut transport = "http-first";
    while let Some(word) = words.next() {
        match word {
            "--header" => {
                let (name, value) = words.next()?.split_once(':')?;
                headers.push((name.trim().to_owned(), filled_in(value.trim(), env)));
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
            // How it talks to the browser and to its log.
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
    Some(Unwrapped {
        target: Target::Remote {
            url,
            is_sse,
            headers,
            headers_helper: None,
            oauth,
        },
        tool_rules,
    })
}

/// It fills in `${NAME}` itself, from the entry's variables; our form of a text that the client leaves alone is `$${NAME}`.
fn filled_in(text: &str, env: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("$${") {
        let Some((name, behind)) = after.split_once('}') else {
            break;
        };
        let value = env
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone());
        out.push_str(before);
        out.push_str(&value.unwrap_or_else(|| format!("${{{name}}}")));
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A URL, whether it is of the older transport, and headers.
    type Reached<'a> = (&'a str, bool, &'a [(&'a str, &'a str)]);

    fn check(args: &[&str], expected: Option<Reached<'_>>) {
        let (command, args) = args.split_first().unwrap();
        let target = Target::Local {
            command: (*command).to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: vec![("AUTH".to_owned(), "Bearer ${TOKEN}".to_owned())],
            cwd: None,
        };
        let found = unwrapped(&target).map(|unwrapped| unwrapped.target);
        let expected = expected.map(|(url, is_sse, headers)| Target::Remote {
            url: url.to_owned(),
            is_sse,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            headers_helper: None,
            oauth: Vec::new(),
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
