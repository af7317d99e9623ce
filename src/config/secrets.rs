//! Finds secrets in arguments, URLs and values, so that the masker hides them and displayed entries leave them out.
//!
//! It recognizes `--token VALUE`, `--token=VALUE`, `-k VALUE`, `-e NAME=VALUE`, `--header "Name: value"`,
//! `NAME=VALUE`, `Name: value`, connection strings, JSON, the user and the query of a URL, and texts that look like a
//! token. A command line for a shell is read word by word.

use std::collections::BTreeSet;

use serde_json::Value;

use super::launched::package;
use crate::secret::{MASK, Masker, Secret, is_secret_name};

/// Literal values of variables are masked from this length, in characters.
const SHORTEST_VALUE: usize = 8;

/// The length of a run of letters and digits, with both among them, that looks like a token.
const TOKEN_RUN: usize = 16;

/// The prefixes of well-known services' tokens.
const TOKEN_STARTS: &[&str] = &[
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "hf_",
    "npm_",
    "pypi-",
    "dop_v1_",
    "figd_",
    "lin_api_",
    "ntn_",
    "secret_",
];

/// Headers whose values are not secret.
const PLAIN_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "content-type",
    "user-agent",
];

const HEADER_OPTIONS: &[&str] = &["-H", "--header", "--headers"];
const VARIABLE_OPTIONS: &[&str] = &["-e", "--env", "--environment", "--build-arg"];
const USER_OPTIONS: &[&str] = &["-u", "--user"];

/// Short options that mean a key, a token or a password to some programs, and a flag, a transport or a port to others.
const SHORT_OPTIONS: &[&str] = &["-p", "-t"];
const KEY_OPTIONS: &[&str] = &["-k"];

/// Options and variables of secrets that [`is_secret_name`] does not know, because longer names with these words are none.
const SHORT_NAMES: &[&str] = &["session", "sessionid", "sid", "pin", "otp"];

/// Programs with a password after a short option: the option, and whether the value is joined to it.
const PASSWORD_OPTIONS: &[(&[&str], &str, bool)] = &[
    (
        &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlimport",
            "mysqlsh",
            "mariadb",
            "mariadb-dump",
            "mariadb-admin",
        ],
        "-p",
        true,
    ),
    (&["redis-cli", "valkey-cli", "keydb-cli"], "-a", false),
];

/// The secrets in a command's arguments, and in the command if that is a whole line.
pub(crate) fn secret_arguments(command: &str, args: &[String]) -> Vec<Secret<String>> {
    let mut found = in_line(command);
    passwords(&with_command(command, args), &mut found);
    let own = options_of_runner(command, args);
    for (index, arg) in args.iter().enumerate() {
        argument(before(args, index, own), arg, &mut found);
    }
    found.into_iter().map(Secret::new).collect()
}

/// The secrets in a URL: its user's password, values of its query, and parts of its path that look like tokens.
pub(crate) fn secret_parameters(url: &str) -> Vec<Secret<String>> {
    let mut found = Vec::new();
    url_parts(url, &mut found);
    found.into_iter().map(Secret::new).collect()
}

/// The secrets in the value of a variable or a header.
pub(super) fn secret_values(name: &str, value: &str, is_header: bool) -> Vec<Secret<String>> {
    let mut found = Vec::new();
    let is_plain = is_header && is_plain_header(name);
    if is_hidden_name(name) || !is_plain && is_secret_value(value) {
        // `Bearer abc`: the token may also appear alone.
        found.extend(value.rsplit_once(' ').map(|(_, last)| last.to_owned()));
        found.push(value.to_owned());
    }
    parts(value, &mut found);
    found.into_iter().map(Secret::new).collect()
}

/// The secrets in each of a command's arguments.
pub(crate) fn secrets_by_argument(command: &str, args: &[String]) -> Vec<Vec<String>> {
    let mut known = Vec::new();
    passwords(&with_command(command, args), &mut known);
    let own = options_of_runner(command, args);
    let found = args.iter().enumerate().map(|(index, arg)| {
        let plain = arg.trim_matches(['"', '\'']);
        let is_known = |secret: &&String| plain.ends_with(secret.as_str());
        let mut found: Vec<String> = known.iter().filter(is_known).cloned().collect();
        argument(before(args, index, own), arg, &mut found);
        found
    });
    found.collect()
}

/// A command for display, which may be a whole line.
pub(crate) fn shown_command(command: &str) -> String {
    let masker = Masker::of_all(in_line(command));
    masker.mask(command).into_owned()
}

/// A command's arguments for display.
pub(crate) fn shown_arguments(command: &str, args: &[String]) -> Vec<String> {
    let found = secrets_by_argument(command, args).into_iter();
    found
        .zip(args)
        .map(|(secrets, arg)| Masker::of_all(secrets).mask(arg).into_owned())
        .collect()
}

/// A URL for display.
pub(crate) fn shown_url(url: &str) -> String {
    let mut found = Vec::new();
    url_parts(url, &mut found);
    Masker::of_all(found).mask(url).into_owned()
}

/// A text without the words that look like a token, except in references, and without passwords of URLs, which may be short.
pub(crate) fn without_tokens(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.~+".contains(c);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let (before, word) = rest.split_at(start);
        let (word, after) = word.split_at(word.find(|c| !is_part(c)).unwrap_or(word.len()));
        shown.push_str(before);
        let token = word.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        // Names such as `npm_config_registry` have no digit.
        let is_secret = is_token(token) && token.contains(|c: char| c.is_ascii_digit());
        let user = shown
            .strip_suffix(':')
            .filter(|_| after.starts_with('@'))
            .and_then(|shown| Some(shown.rsplit_once("://")?.1));
        if user.is_some_and(|user| !user.contains(['/', '@', '"', ' ', '\n'])) {
            shown.push_str(MASK);
        } else if is_secret && !shown.ends_with("${") && !shown.ends_with("${keyring:") {
            shown.push_str(&word[..word.len() - token.len()]);
            shown.push_str(MASK);
        } else {
            shown.push_str(word);
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// The scheme, the host and the port of a URL.
pub(super) fn origin_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}

/// The argument before another one. A short option among the first `own` is one of the runner, whose `-t` and `-p` are known.
fn before(args: &[String], index: usize, own: usize) -> &str {
    let before = index.checked_sub(1).map(|before| args[before].as_str());
    let before = before.filter(|word| index > own || !SHORT_OPTIONS.contains(word));
    before.unwrap_or_default()
}

/// The number of arguments up to the package or image that a runner starts.
fn options_of_runner(command: &str, args: &[String]) -> usize {
    package(command, args).map_or(0, |package| args.len() - package.args.len())
}

fn in_line(command: &str) -> Vec<String> {
    let mut found = Vec::new();
    if command.contains(char::is_whitespace) || command.contains("://") {
        argument("", command, &mut found);
    }
    found
}

fn with_command<'a>(command: &'a str, args: &'a [String]) -> Vec<&'a str> {
    let args = args.iter().map(String::as_str);
    std::iter::once(command).chain(args).collect()
}

/// The passwords after short options of known programs, among the words of a command.
fn passwords(words: &[&str], found: &mut Vec<String>) {
    let trimmed = |word: &str| word.trim_matches(['"', '\'']).to_owned();
    let (mut all, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for (at, word) in words.iter().enumerate() {
        let program = trimmed(word);
        let program = program.rsplit(['/', '\\']).next().unwrap_or_default();
        let program = program.strip_suffix(".exe").unwrap_or(program);
        let options = PASSWORD_OPTIONS
            .iter()
            .filter(|(programs, ..)| programs.contains(&program));
        for (_, option, is_joined) in options {
            // The first has all values after it.
            if !seen.insert(option) {
                continue;
            }
            let rest = words[at + 1..].iter();
            let values = rest
                .zip(&words[at..])
                .filter_map(|(word, before)| match is_joined {
                    true => word.strip_prefix(option),
                    false => (before == option).then_some(*word),
                });
            all.extend(values.filter(|value| !value.is_empty()).map(trimmed));
        }
    }
    found.extend(all);
}

/// The secrets in an argument; `before` is the previous argument, or empty.
fn argument(before: &str, text: &str, found: &mut Vec<String>) {
    if let Some((option, value)) = joined_option(text) {
        return argument(option, value, found);
    }
    let is_value = |options: &[&str]| options.contains(&before);
    let name_and = |mark: char| {
        text.split_once(mark)
            .map(|(name, value)| (name.trim(), value.trim()))
    };
    if is_value(HEADER_OPTIONS) {
        let secret = name_and(':').filter(|(name, _)| !is_plain_header(name));
        if let Some((_, value)) = secret {
            credential(value, found);
        } else {
            parts(text, found);
        }
        return;
    }
    if is_value(VARIABLE_OPTIONS) {
        let secret =
            name_and('=').filter(|(name, value)| is_hidden_name(name) || is_secret_value(value));
        found.extend(secret.map(|(_, value)| value.to_owned()));
    } else if is_value(USER_OPTIONS) {
        found.extend(name_and(':').map(|(_, password)| password.to_owned()));
    } else if is_secret_option(before) && !is_flag(text) && !text.contains("://") {
        credential(text, found);
    } else if is_value(KEY_OPTIONS) && !is_flag(text) && !is_measure(text) && !text.contains("://")
        || is_value(SHORT_OPTIONS) && is_mixed(text)
    {
        found.push(text.to_owned());
    }
    parts(text, found);
}

/// Splits `--name=value`, `-eNAME=value` and `-HName: value`.
fn joined_option(text: &str) -> Option<(&str, &str)> {
    if !text.starts_with('-') {
        return None;
    }
    for (short, mark) in [("-e", '='), ("-H", ':')] {
        let rest = text.strip_prefix(short).filter(|rest| rest.contains(mark));
        if let Some(rest) =
            rest.filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
        {
            return Some((short, rest));
        }
    }
    text.split_once('=')
        .filter(|(name, _)| !name.contains(char::is_whitespace))
}

fn is_secret_option(option: &str) -> bool {
    option.starts_with('-') && !option.contains(['=', ' ']) && is_hidden_name(option)
}

/// Whether the value of an option or a variable of this name is hidden, also a short one.
fn is_hidden_name(name: &str) -> bool {
    let letters = name.chars().filter(|c| !"-_".contains(*c));
    let plain: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    is_secret_name(name) || SHORT_NAMES.contains(&plain.as_str())
}

/// A number, perhaps with a unit.
fn is_measure(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < text.len() && unit.len() <= 2
}

/// Whether a word has a part of letters and digits or a sign, as keys and passwords have, and is not a number with a unit, a path, a host,
/// a port, an image or package with its version, a reference or a known word.
fn is_mixed(text: &str) -> bool {
    const KNOWN: [&str; 11] = [
        "base64", "es2022", "gpt4o", "http2", "http3", "ipv4", "ipv6", "python3", "sse2", "utf8",
        "x86_64",
    ];
    let is_part = |part: &str| {
        part.contains(|c: char| c.is_ascii_digit()) && part.contains(char::is_alphabetic)
    };
    !is_measure(text)
        && !text.contains(['/', '\\', '.', ':', ' ', '=', '{'])
        && !text.starts_with(['-', '~', '@', '$'])
        && !text.ends_with("@latest")
        && !KNOWN.contains(&text.to_ascii_lowercase().as_str())
        && (text.contains(['!', '#', '$', '%', '^', '&']) || text.split(['-', '_']).any(is_part))
}

/// A value that is secret as a whole, and the token in `Bearer abc`, which may also appear alone.
fn credential(value: &str, found: &mut Vec<String>) {
    found.extend(value.rsplit_once(' ').map(|(_, last)| last.to_owned()));
    found.push(value.to_owned());
}

/// The secrets within any text.
fn parts(text: &str, found: &mut Vec<String>) {
    if text.starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str::<Value>(text)
    {
        return members("", &value, found);
    }
    if let Some((name, value)) = text.split_once(':')
        && is_word(name)
        && is_secret_name(name)
        && !value.starts_with("//")
    {
        credential(value.trim(), found);
    }
    for piece in text.split([';', '&', ',', ' ', '\n', '\t']) {
        if let Some((name, value)) = piece.split_once('=') {
            let value = value.trim_matches(['"', '\'']);
            if is_secret_name(name) || is_token(value) {
                found.push(value.to_owned());
            }
        }
    }
    if is_token(text) {
        found.push(text.to_owned());
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() < 2 {
        return url_parts(text, found);
    }
    passwords(&words, found);
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let own = 1 + options_of_runner(&words[0], &words[1..]);
    for (index, word) in words.iter().enumerate() {
        let before = before(&words, index, own);
        argument(before, word.trim_matches(['"', '\'']), found);
    }
}

/// The texts in JSON under the name of a secret, and the secrets in the others.
fn members(name: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if is_secret_name(name) => credential(text, found),
        Value::String(text) => parts(text, found),
        Value::Array(items) => items.iter().for_each(|item| members(name, item, found)),
        Value::Object(object) => object
            .iter()
            .for_each(|(name, value)| members(name, value, found)),
        _ => {}
    }
}

fn url_parts(text: &str, found: &mut Vec<String>) {
    let Some((before, rest)) = text.split_once("://") else {
        return;
    };
    let scheme = before
        .rsplit(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
        .next()
        .unwrap_or_default();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    if let Some((user, _)) = authority.rsplit_once('@') {
        let (user, password) = user
            .split_once(':')
            .map_or((user, None), |(user, password)| (user, Some(password)));
        let is_web = scheme.to_ascii_lowercase().starts_with("http");
        if is_token(user) || is_web && password.is_none_or(str::is_empty) {
            found.push(user.to_owned());
        }
        found.extend(password.map(str::to_owned));
    }
    let (path, query) = rest.split_once(['?', '#']).unwrap_or((rest, ""));
    found.extend(
        path.split('/')
            .filter(|part| is_token(part))
            .map(str::to_owned),
    );
    let pairs = query
        .split(['&', ';', '#', '?'])
        .filter_map(|pair| pair.split_once('='));
    let secret = pairs.filter(|(name, value)| is_secret_name(name) || is_token(value));
    found.extend(secret.map(|(_, value)| value.to_owned()));
    // Its query may contain another URL.
    url_parts(rest, found);
}

/// Whether a literal value of a variable is masked: every value of eight or more characters, except plain paths and
/// flags.
fn is_secret_value(value: &str) -> bool {
    let value = value.trim();
    let is_flags = value.split_whitespace().all(is_flag);
    value.chars().count() >= SHORTEST_VALUE && !is_plain_path(value) && !is_flags
}

fn is_plain_header(name: &str) -> bool {
    PLAIN_HEADERS
        .iter()
        .any(|plain| name.eq_ignore_ascii_case(plain))
}

/// `-v`, `--verbose`, `--level=5`, `--file=/x`, but not a secret after a dash.
fn is_flag(word: &str) -> bool {
    let (name, value) = word
        .split_once('=')
        .map_or((word, None), |(name, value)| (name, Some(value)));
    let letters = name.trim_start_matches('-');
    let is_short = !name.starts_with("--")
        && letters.len() > 3
        && letters.contains(|c: char| c.is_ascii_digit());
    name.starts_with('-')
        && letters
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && !is_short
        && !is_token(letters)
        && value.is_none_or(|value| {
            !is_secret_name(name) && (value.len() < SHORTEST_VALUE || is_plain_path(value))
        })
}

/// A path, or several with colons between them, without anything that looks like a token.
fn is_plain_path(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "-_.~@ /\\".contains(c);
    let is_plain = |path: &str| {
        let is_start = ["/", "./", "../", "~/", "\\"]
            .iter()
            .any(|start| path.starts_with(start));
        is_start && path.chars().all(is_part) && !path.split(['/', '\\']).any(is_token)
    };
    let bytes = text.as_bytes();
    if bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' {
        return is_plain(&text[2..]);
    }
    text.split(':').all(is_plain)
}

/// Whether a text is a token of a well-known service by its prefix. Names such as `npm_config_registry` have no digit.
pub(crate) fn is_known_token(text: &str) -> bool {
    is_token(text) && has_token_start(text) && text.contains(|c: char| c.is_ascii_digit())
}

fn has_token_start(text: &str) -> bool {
    TOKEN_STARTS.iter().any(|start| text.starts_with(start))
}

/// Whether a text looks like a token: it has the prefix of a known service's tokens, a long run of letters and digits,
/// or is a UUID.
fn is_token(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.~+=".contains(c);
    if text.len() < TOKEN_RUN || !text.chars().all(is_part) {
        return false;
    }
    let is_mixed = |run: &str| {
        run.contains(|c: char| c.is_ascii_digit())
            && run.contains(|c: char| c.is_ascii_alphabetic())
    };
    let is_uuid = text.len() == 36 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    is_uuid
        || has_token_start(text)
        || text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|run| run.len() >= TOKEN_RUN && is_mixed(run))
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn shown(args: &[&str], expected: &[&str]) {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        assert_eq!(shown_arguments("x", &args), expected);
    }

    #[test]
    fn arguments_are_shown_without_their_secrets() {
        shown(
            &["-y", "@scope/package@1.2.3", "--port", "8080"],
            &["-y", "@scope/package@1.2.3", "--port", "8080"],
        );
        shown(
            &["-k", "abc", "--api-key", "x", "-v"],
            &["-k", "***", "--api-key", "***", "-v"],
        );
        shown(
            &[
                "-p",
                "pval66",
                "--session",
                "s1",
                "--session-id=x2",
                "--pin",
                "1234",
            ],
            &[
                "-p",
                "***",
                "--session",
                "***",
                "--session-id=***",
                "--pin",
                "***",
            ],
        );
        shown(
            &[
                "-t",
                "S3CRETdash02",
                "-p",
                "pa$$word",
                "-p=pval66",
                "sh -c 'x -t ab12'",
            ],
            &["-t", "***", "-p", "***", "-p=***", "sh -c 'x -t ***'"],
        );
        let plain = [
            "-p",
            "8080",
            "-t",
            "stdio",
            "-t",
            "http2",
            "-t",
            "gpt4o",
            "-p",
            "x86_64",
            "-k",
            "5s",
            "-p",
            "8080:80",
            "-p",
            "my-profile",
            "-p",
            "us-east-1",
            "-t",
            "30s",
            "-p",
            "./p1",
            "-p",
            "@a/b1",
            "-t",
            "a/b1:2",
            "-p",
            "${P1}",
            "--session-timeout",
            "30",
            "-p",
        ];
        shown(&plain, &plain);
        for (command, line) in [
            ("docker", "run -i -t img1 -p 8080"),
            ("npx", "-y -p pkg1@2 pkg1"),
            ("uvx", "-p py312 pkg1"),
        ] {
            let args = line.split(' ').map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(shown_arguments(command, &args), args);
        }
        shown(
            &["-eTOKEN=abc", "-e", "MODE=fast", "-e", "MODE=long-value"],
            &["-eTOKEN=***", "-e", "MODE=fast", "-e", "MODE=***"],
        );
        shown(
            &["-HX-A: abc", "--header", "Accept: text/html"],
            &["-HX-A: ***", "--header", "Accept: text/html"],
        );
        shown(&["-u", "me:pw"], &["-u", "me:***"]);
        shown(
            &["mysql", "-p3306x", "-uroot", "sh", "-pabc"],
            &["mysql", "-p***", "-uroot", "sh", "-p***"],
        );
        shown(
            &["sh -c 'redis-cli -a hunter2 ping'", "-a", "all", "-p80:80"],
            &["sh -c 'redis-cli -a *** ping'", "-a", "all", "-p80:80"],
        );
        shown(&["Authorization:Bearer abc"], &["Authorization:***"]);
        shown(
            &["sh -c 'TOKEN=abc npx x --key 1234'"],
            &["sh -c 'TOKEN=*** npx x --key ***'"],
        );
        shown(
            &[r#"{"a":{"password":"abc","n":1}}"#],
            &[r#"{"a":{"password":"***","n":1}}"#],
        );
        shown(
            &["/home/me/project", "git@github.com:a/b", "ssh://git@h/x"],
            &["/home/me/project", "git@github.com:a/b", "ssh://git@h/x"],
        );
        shown(
            &["https://mcp.example/s/a1b2c3d4e5f6g7h8i9/mcp"],
            &["https://mcp.example/s/***/mcp"],
        );
        shown(&["0f8fad5b-d9cb-469f-a165-70867728950e"], &["***"]);
    }

    #[test]
    fn words_that_look_like_a_token_are_left_out_of_a_text() {
        for (text, expected) in [
            ("-// key=sk-proj-COMMENTSECRET0000, old", "-// key=***, old"),
            (
                "+  \"npm_config_registry\": \"${keyring:secret_number_1234}\"",
                "+  \"npm_config_registry\": \"${keyring:secret_number_1234}\"",
            ),
            (
                "\"pg://me:pa55@h/a:b\", \"x://me:${keyring:A}@h\", a:b@c",
                "\"pg://me:***@h/a:b\", \"x://me:${keyring:A}@h\", a:b@c",
            ),
            ("@@ -1,2 +1,2 @@\n ü", "@@ -1,2 +1,2 @@\n ü"),
        ] {
            assert_eq!(without_tokens(text), expected);
        }
    }

    #[test]
    fn passwords_of_many_programs_in_a_line_are_found_once_each() {
        let one = ["mysql", "-ps1z", "redis-cli", "-a", "t2y"];
        let args: Vec<String> = one.repeat(200).into_iter().map(str::to_owned).collect();
        let plain = ["x".to_owned()].into_iter().chain(args.clone()).collect();
        for (command, args) in [("x", args), ("mysql", plain)] {
            let mut found = Vec::new();
            passwords(&with_command(command, &args), &mut found);
            assert_eq!(found, ["s1z", "t2y"]);
        }
    }

    #[test]
    fn values_are_secret_but_for_paths_and_flags() {
        for plain in [
            "short",
            "/usr/bin:/bin",
            "~/data dir",
            r"C:\Users\me",
            "--max-old-space-size=4096",
            "--a --b=/x/y",
        ] {
            assert!(!is_secret_value(plain), "{plain}");
        }
        for secret in [
            "eight-ch",
            "/AbCdEf0123456789abcd/x",
            "-pS3cretWord",
            "--token=abcdefgh",
            "relative/path",
        ] {
            assert!(is_secret_value(secret), "{secret}");
        }
    }
}
