//! Configuration files as people write them, and their results.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::secret::Secret;
use crate::tool::ServerName;

#[cfg(unix)]
const PATH: &str = "/etc/zip/config.json";
#[cfg(not(unix))]
const PATH: &str = "C:\\etc\\zip\\config.json";

fn environment() -> Environment {
    Environment::from_iter([
        ("HOME", "/home/me"),
        ("USERPROFILE", "/home/me"),
        ("GITHUB_TOKEN", "ghp_0123456789"),
        ("PLAIN", "production"),
        ("NEWLINE_TOKEN", "abcdefg\n"),
    ])
}

fn parse(text: &str) -> Config {
    Config::parse(text, Path::new(PATH), &environment())
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Everything reported about `text`: the servers' names, then the faults, then the warnings.
fn said(text: &str) -> Vec<String> {
    let config = parse(text);
    let names: Vec<_> = config.servers.keys().map(ToString::to_string).collect();
    let names = (!names.is_empty()).then(|| names.join(" "));
    let faults = config.faults.iter().map(|fault| format!("fault {fault}"));
    check_schema(text, &config);
    names
        .into_iter()
        .chain(faults)
        .chain(config.warnings.iter().map(ToString::to_string))
        .collect()
}

/// A file that the reader accepts without a warning is valid by the schema, and an unknown key is invalid.
#[track_caller]
fn check_schema(text: &str, config: &Config) {
    static SCHEMA: std::sync::LazyLock<jsonschema::Validator> =
        std::sync::LazyLock::new(|| jsonschema::validator_for(&json_schema()).unwrap());
    let plain = Document::parse(text).unwrap().get(&[]).unwrap();
    let plain: serde_json::Value = serde_json::from_str(&plain).unwrap();
    if config.faults.is_empty() && config.warnings.is_empty() {
        let told: Vec<String> = SCHEMA
            .iter_errors(&plain)
            .map(|error| error.to_string())
            .collect();
        assert!(told.is_empty(), "{text}: {told:?}");
    }
    if config
        .warnings
        .iter()
        .any(|warning| matches!(warning.kind, ConfigWarning::UnknownKey { .. }))
    {
        assert!(!SCHEMA.is_valid(&plain), "{text}");
    }
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(said(text), expected, "{text}");
}

/// Checks the report on the server `s` with the entry `entry`, which begins at column 21.
#[track_caller]
fn check_entry(entry: &str, expected: &[&str]) {
    check(&format!(r#"{{"mcpServers":{{"s": {entry}}}}}"#), expected);
}

fn server(entry: &str) -> Server {
    let config = parse(&format!(r#"{{"mcpServers":{{"s":{entry}}}}}"#));
    let faults: Vec<_> = config.faults.iter().map(ToString::to_string).collect();
    config
        .servers
        .into_values()
        .next()
        .unwrap_or_else(|| panic!("{faults:?}"))
}

fn remote(server: &Server) -> Option<&Remote> {
    match &server.transport {
        Transport::Http(remote) | Transport::Sse(remote) => Some(remote),
        Transport::Stdio(_) | Transport::Folder(_) => None,
    }
}

fn exposed(values: &BTreeMap<String, Secret<String>>) -> Vec<(&str, &str)> {
    values
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose().as_str()))
        .collect()
}

#[test]
fn a_variable_without_a_value_is_not_set() {
    let config = parse(
        r#"{"mcpServers": {"s": {"command": "x", "env": {"A": "${NO:-}", "B": "${NO:-}b", "C": "", "D": "${PLAIN:-}"}}}}"#,
    );
    let server = config.servers.values().next().unwrap();
    let Transport::Stdio(stdio) = &server.transport else {
        panic!("{server:?}")
    };
    assert_eq!(
        exposed(&stdio.env),
        [("B", "b"), ("C", ""), ("D", "production")]
    );
}

#[test]
fn a_full_file_is_read_without_a_word() {
    let config = parse(
        r#"{
  // comments and trailing commas are welcome
  "$schema": "https://example.com/schema.json",
  "mcpServers": {
    "github": {
      "type": "stdio", "command": "github-mcp", "args": ["stdio", "--host=${HOST:-github.com}",],
      "env": { "TOKEN": "${GITHUB_TOKEN}" }, "cwd": "work",
      "disabled": false, "timeout": "30s", "idle_timeout": "never", "max_concurrent": 4, "era": "legacy", "description": "issues",
    },
    "linear": { "url": "https://mcp.linear.app/mcp", "headers": { "X-Mode": "fast" } }, /* remote */
    "old": { "type": "sse", "url": "http://127.0.0.1:9000/sse", "disabled": true, "idle_timeout": 90 },
  },
  "call_timeout": "90s", "idle_timeout": "5m", "search": { "default_limit": 8 },
}"#,
    );
    assert!(
        config.faults.is_empty() && config.warnings.is_empty(),
        "{:?} {:?}",
        config.faults,
        config.warnings
    );
    assert_eq!(config.path.as_deref(), Some(Path::new(PATH)));
    assert_eq!(config.call_timeout, Duration::from_secs(90));
    assert_eq!(
        config.idle_timeout,
        IdleTimeout::After(Duration::from_secs(300))
    );
    assert_eq!(config.search.default_limit, 8);

    let servers: Vec<_> = config.servers.values().collect();
    let [github, linear, old] = servers[..] else {
        panic!("{servers:?}")
    };
    let Transport::Stdio(Stdio {
        command,
        args,
        env,
        cwd,
        ..
    }) = &github.transport
    else {
        panic!("{github:?}")
    };
    assert_eq!(command, "github-mcp");
    assert_eq!(args[..], ["stdio", "--host=github.com"]);
    assert_eq!(exposed(env), [("TOKEN", "ghp_0123456789")]);
    assert_eq!(
        cwd.as_deref(),
        Some(Path::new(PATH).parent().unwrap().join("work").as_path())
    );
    assert_eq!(
        (github.timeout, github.idle_timeout),
        (Some(Duration::from_secs(30)), Some(IdleTimeout::Never))
    );
    assert_eq!(
        (github.max_concurrent, github.disabled),
        (NonZeroUsize::new(4), false)
    );
    assert_eq!((github.era, linear.era), (Era::Legacy, Era::Auto));
    assert_eq!(github.description.as_deref(), Some("issues"));

    let Transport::Http(Remote { url, headers, .. }) = &linear.transport else {
        panic!("{linear:?}")
    };
    assert_eq!(
        (url.as_str(), exposed(headers)),
        ("https://mcp.linear.app/mcp", vec![("X-Mode", "fast")])
    );
    assert_eq!(
        (linear.timeout, linear.idle_timeout, linear.max_concurrent),
        (None, None, None)
    );
    assert!(
        matches!(&old.transport, Transport::Sse(Remote { url, .. }) if url == "http://127.0.0.1:9000/sse")
    );
    assert!(old.disabled);
    assert_eq!(
        old.idle_timeout,
        Some(IdleTimeout::After(Duration::from_secs(90)))
    );
}

#[test]
fn what_is_left_out_or_null_has_its_default() {
    for text in [
        r#"{"mcpServers": {}}"#,
        "\u{feff}{\"mcpServers\": {}}",
        r#"{"mcpServers": {}, "call_timeout": null, "idle_timeout": null, "search": {"default_limit": null}}"#,
        r#"{"mcpServers": {}, "search": null}"#,
    ] {
        check(text, &[]);
        let config = parse(text);
        assert_eq!(config.call_timeout, Duration::from_secs(120));
        assert_eq!(config.idle_timeout, IdleTimeout::Adaptive);
        assert_eq!(config.search.default_limit, 5);
    }
    check_entry(
        r#"{"command": "x", "args": null, "env": null, "url": null, "timeout": null}"#,
        &["s"],
    );
}

#[test]
fn a_file_that_is_no_configuration_is_an_error_with_its_place() {
    for (text, expected) in [
        (
            "",
            "the configuration `PATH` is empty; the least it can be is `{}`",
        ),
        (
            " // nothing\n",
            "the configuration `PATH` is empty; the least it can be is `{}`",
        ),
        (
            "[1]",
            "PATH:1:1: `configuration` must be an object like {\"mcpServers\": …}, found a list",
        ),
        (
            "{\n \"mcpServers\": []}",
            "PATH:2:16: `mcpServers` must be an object of servers by name (mcpproxy-go writes a list: `mcpzip migrate --from mcpproxy-go FILE` imports it), found a list",
        ),
        ("{\n  \"a\": 1\n  \"b\": 2\n}", "PATH:2:9: expected comma"),
        ("{\"a\": }", "PATH:1:7: unexpected close brace"),
        ("{\"a\": 1", "PATH:1:1: unterminated object"),
        ("{\"ä\": \"x\ny", "PATH:1:7: unterminated string literal"),
        (
            "\u{feff}{\"a\": 'x'}",
            "PATH:1:7: single-quoted strings are not allowed",
        ),
        ("{a: 1}", "PATH:1:2: expected string for object property"),
        (
            "{} {}",
            "PATH:1:4: text cannot contain more than one JSON value",
        ),
    ] {
        let error = Config::parse(text, Path::new(PATH), &environment()).unwrap_err();
        assert_eq!(error.to_string(), expected.replace("PATH", PATH), "{text}");
    }
}

#[test]
fn an_unknown_key_is_reported_with_the_nearest_known_one() {
    check(
        "{\n  \"mcpservers\": {},\n  \"mcpServers\": {\n    \"s\": { \"command\": \"x\", \"timeot\": 9,\n      \"autoApprove\": [] }\n  }\n}",
        &[
            "s",
            "2:3: unknown key `mcpservers`; did you mean `mcpServers`?",
            "4:28: unknown key `mcpServers.s.timeot`; did you mean `timeout`?",
            "5:7: unknown key `mcpServers.s.autoApprove`",
        ],
    );
    check(
        r#"{"servers": {}}"#,
        &[
            "1:1: there is no `mcpServers`, so there is no server",
            "1:2: unknown key `servers`; did you mean `mcpServers`?",
        ],
    );
    check(
        r#"{"mcpServers": {}, "search": {"default-limit": 3}}"#,
        &["1:31: unknown key `search.default-limit`; did you mean `default_limit`?"],
    );
    check_entry(
        r#"{"url": "http://x", "cacert": "x"}"#,
        &[
            "s",
            "1:41: unknown key `mcpServers.s.cacert`; did you mean `ca_file`?",
        ],
    );
    // Keys of later releases are unknown to this one.
    check_entry(
        r#"{"command": "x", "quota": "pin"}"#,
        &["s", "1:38: unknown key `mcpServers.s.quota`"],
    );
}

#[test]
fn a_setting_that_cannot_be_used_falls_back_to_its_default() {
    let time =
        "a time like \"500ms\", \"120s\", \"2m\" or \"1h\", a number being seconds, at most a year";
    for (setting, expected) in [
        (
            r#""call_timeout": "soon""#,
            format!("1:36: `call_timeout` must be {time}, found `\"soon\"`; the default is used, 120s"),
        ),
        (
            r#""call_timeout": 0"#,
            "1:36: `call_timeout` must be longer than 0, found `0`; the default is used, 120s".to_owned(),
        ),
        (
            r#""call_timeout": true"#,
            format!("1:36: `call_timeout` must be {time}, found true; the default is used, 120s"),
        ),
        (
            r#""idle_timeout": "x""#,
            format!(
                "1:36: `idle_timeout` must be \"adaptive\", \"never\", or {time}, found `\"x\"`; the default is used, adaptive"
            ),
        ),
        (
            r#""search": {"default_limit": 51}"#,
            "1:48: `search.default_limit` must be a whole number from 1 to 50, found `51`; the default is used, 5"
                .to_owned(),
        ),
        (
            r#""search": []"#,
            "1:30: `search` must be an object like {\"key\": …}, found a list; the default is used, 5".to_owned(),
        ),
        (
            r#""call_timeout": 600000"#,
            "1:36: `call_timeout` is read as 600000 seconds; write `\"600000ms\"` if milliseconds are meant".to_owned(),
        ),
    ] {
        check(&format!(r#"{{"mcpServers": {{}}, {setting}}}"#), &[&expected]);
    }
}

#[test]
fn a_faulty_entry_says_what_to_write() {
    let texts = "an object of texts like {\"NAME\": \"value\"}";
    for (entry, at, expected) in [
        (
            r#""npx""#,
            21,
            "`entry` must be an object like {\"command\": \"program\"} or {\"url\": \"https://…\"}, found a string",
        ),
        (
            "null",
            21,
            "`entry` must be an object like {\"command\": \"program\"} or {\"url\": \"https://…\"}, found null",
        ),
        (
            "{}",
            16,
            "has neither a `command` (a local server) nor a `url` (a remote one)",
        ),
        (
            r#"{"command": "x", "url": "http://y"}"#,
            16,
            "has both a `command` (a local server) and a `url` (a remote one); keep one of them",
        ),
        (
            r#"{"command": ["npx", "-y"]}"#,
            33,
            "`command` must be the program alone, found a list; write the rest of the list as `args`",
        ),
        (
            r#"{"command": 7}"#,
            33,
            "`command` must be a string, found a number",
        ),
        (r#"{"command": " "}"#, 33, "`command` is empty"),
        (
            r#"{"command": "x", "args": "-y"}"#,
            46,
            "`args` must be a list of strings like [\"one\", \"two\"], found a string",
        ),
        (
            r#"{"command": "x", "args": ["a", 80]}"#,
            52,
            "`args[1]` must be a string, found a number",
        ),
        (
            r#"{"command": "x", "env": ["A=b"]}"#,
            45,
            &format!("`env` must be {texts}, found a list"),
        ),
        (
            r#"{"command": "x", "env": {"A": 8080}}"#,
            51,
            "`env.A` must be a string, in quotes, found a number",
        ),
        (
            r#"{"command": "x", "env": {"A=B": "c"}}"#,
            53,
            "`env.A=B` is not a valid name of a variable",
        ),
        (
            r#"{"command": "x", "args": ["\u0000"]}"#,
            47,
            "`args[0]` has a NUL character",
        ),
        (
            r#"{"command": "x", "disabled": "yes"}"#,
            50,
            "`disabled` must be true or false, found a string",
        ),
        (
            r#"{"command": "x", "timeout": "0s"}"#,
            49,
            "`timeout` must be longer than 0, found `\"0s\"`",
        ),
        (
            r#"{"command": "x", "max_concurrent": 0}"#,
            56,
            "`max_concurrent` must be a whole number from 1, found `0`",
        ),
        (
            r#"{"command": "x", "era": "new"}"#,
            45,
            "`era` must be \"auto\", \"legacy\" or \"modern\", found `\"new\"`",
        ),
        (
            r#"{"command": "x", "max_concurrent": 1.5}"#,
            56,
            "`max_concurrent` must be a whole number from 1, found `1.5`",
        ),
        (
            r#"{"type": "http", "command": "x"}"#,
            16,
            "is of type `http`, which needs a `url`, but has a `command`",
        ),
        (
            r#"{"type": "stdio", "url": "http://x"}"#,
            16,
            "is of type `stdio`, which needs a `command`, but has a `url`",
        ),
        (
            r#"{"type": "websocket", "url": "http://x"}"#,
            30,
            "`type` must be \"stdio\", \"http\" or \"sse\", found `\"websocket\"`",
        ),
        (
            r#"{"url": "mcp.linear.app"}"#,
            29,
            "`url` must begin with `http://` or `https://` and name a host",
        ),
        (
            r#"{"url": "ftp://x"}"#,
            29,
            "`url` must begin with `http://` or `https://` and name a host",
        ),
        (
            r#"{"url": "http://"}"#,
            29,
            "`url` must begin with `http://` or `https://` and name a host",
        ),
        (
            r#"{"url": "https://me@:80/"}"#,
            29,
            "`url` must begin with `http://` or `https://` and name a host",
        ),
        (
            r#"{"url": "http://a b"}"#,
            29,
            "`url` must begin with `http://` or `https://` and name a host",
        ),
        (
            r#"{"url": "http://x", "headers": {"A B": "c"}}"#,
            60,
            "`headers.A B` is not a valid name of a header",
        ),
        (
            r#"{"url": "http://x", "headers": {"X": "${NEWLINE_TOKEN}"}}"#,
            58,
            "`headers.X` has a line break or another control character",
        ),
        (
            r#"{"command": "x", "env": {"TOKEN": "${LINEAR_TOKEN}"}}"#,
            55,
            "`env.TOKEN` needs the variable `LINEAR_TOKEN`, which is not set; set it where mcpzip is started, store a value with `mcpzip secret set LINEAR_TOKEN` and write `${keyring:LINEAR_TOKEN}`, or write `${LINEAR_TOKEN:-default}`",
        ),
    ] {
        check_entry(entry, &[&format!("fault 1:{at}: server `s`: {expected}")]);
    }
}

#[test]
fn a_faulty_entry_costs_no_other() {
    check(
        r#"{"mcpServers": {
  "one": {"command": "x"},
  "two": {"command": "${NO}"},
  "three": 3,
  "a b": {"command": "x"},
  "a__b": {"command": "x"},
  "": {"command": "x"},
  "Mcpzip": {"command": "x"},
  "four": {"url": "https://x/"}
}}"#,
        &[
            "a-b a_b four one server",
            "fault 3:22: server `two`: `command` needs the variable `NO`, which is not set; set it where mcpzip is started, store a value with `mcpzip secret set NO` and write `${keyring:NO}`, or write `${NO:-default}`",
            "fault 4:12: server `three`: `entry` must be an object like {\"command\": \"program\"} or {\"url\": \"https://…\"}, found a number",
            "fault 8:3: server `Mcpzip`: the name is reserved for the built-in server",
            "5:3: the server `a b` is called `a-b` here: a name has at most 64 letters, digits, `-`, `_` and `.`, and no `__`",
            "6:3: the server `a__b` is called `a_b` here: a name has at most 64 letters, digits, `-`, `_` and `.`, and no `__`",
            "7:3: the server `` is called `server` here: a name has at most 64 letters, digits, `-`, `_` and `.`, and no `__`",
        ],
    );
}

#[test]
fn a_disabled_entry_is_no_failed_server() {
    check_entry(
        r#"{"command": "${NO}", "disabled": true}"#,
        &[
            "1:33: the disabled server `s` could not be used: `command` needs the variable `NO`, which is not set; set it where mcpzip is started, store a value with `mcpzip secret set NO` and write `${keyring:NO}`, or write `${NO:-default}`",
        ],
    );
}

#[test]
fn of_a_key_written_twice_the_last_counts() {
    let text = r#"{"mcpServers": {"s": {"command": "two", "env": {"A": "1", "A": "2"}}}}"#;
    check(
        text,
        &[
            "s",
            "1:59: `mcpServers.s.env.A` is written twice; this, the last one, counts",
        ],
    );
    let config = parse(text);
    let server = config.servers.values().next().unwrap();
    let Transport::Stdio(Stdio { env, .. }) = &server.transport else {
        panic!("{server:?}")
    };
    assert_eq!(exposed(env), vec![("A", "2")]);
}

#[test]
fn a_key_of_the_other_kind_of_server_is_reported() {
    check_entry(
        r#"{"url": "http://x", "args": ["a"], "env": {}}"#,
        &[
            "s",
            "1:16: `mcpServers.s.args` has no meaning for a server with a `url`",
        ],
    );
    check_entry(
        r#"{"command": "x", "headers": {"A": "b"}}"#,
        &[
            "s",
            "1:16: `mcpServers.s.headers` has no meaning for a server with a `command`",
        ],
    );
}

#[test]
fn the_way_to_a_server_is_its_own_or_that_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = |name: &str| {
        rcgen::generate_simple_self_signed([name.to_owned()])
            .unwrap()
            .cert
            .pem()
    };
    std::fs::write(directory.path().join("own.pem"), certificate("own")).unwrap();
    std::fs::write(
        directory.path().join("all.pem"),
        certificate("one") + "and\n" + &certificate("two"),
    )
    .unwrap();
    std::fs::write(directory.path().join("none.pem"), "# nothing\n").unwrap();
    std::fs::write(
        directory.path().join("odd.pem"),
        "-----BEGIN CERTIFICATE-----\n=\n-----END",
    )
    .unwrap();
    std::fs::write(directory.path().join("text.pem"), pem("dGV4dA==")).unwrap();
    let parse = |text: &str| {
        Config::parse(text, &directory.path().join("config.json"), &environment()).unwrap()
    };

    let config = parse(
        r#"{"proxy": "http://me:literal-1@proxy:3128", "ca_file": "./all.pem", "mcpServers": {
            "a": {"url": "https://a"},
            "b": {"url": "https://b", "proxy": "none", "ca_file": "${NO:-own}.pem"},
            "c": {"command": "x", "proxy": "none"}
        }}"#,
    );
    assert!(config.faults.is_empty(), "{:?}", config.faults);
    let warnings: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["4:13: `mcpServers.c.proxy` has no meaning for a server with a `command`"]
    );
    assert_eq!(config.masker.mask("literal-1"), "***");
    let remotes: Vec<_> = config
        .servers
        .values()
        .filter_map(|server| remote(server))
        .collect();
    let [a, b] = remotes[..] else {
        panic!("{remotes:?}")
    };
    assert_eq!(
        (&a.proxy, &b.proxy),
        (
            &Proxy::Url("http://me:literal-1@proxy:3128".to_owned()),
            &Proxy::None
        )
    );
    let count = |remote: &Remote| {
        remote
            .certificates
            .iter()
            .flat_map(Certificates::iter)
            .count()
    };
    assert_eq!((count(a), count(b)), (2, 1));

    let path = |name: &str| directory.path().join(name).display().to_string();
    let no_proxy = "`proxy` must be \"none\", or begin with `http://`, `https://` or `socks5://` and name a host";
    for (key, value, expected) in [
        ("proxy", "proxy:3128", no_proxy.to_owned()),
        ("proxy", "ftp://proxy", no_proxy.to_owned()),
        ("proxy", "http://", no_proxy.to_owned()),
        ("ca_file", "", "`ca_file` is empty".to_owned()),
        (
            "ca_file",
            "no.pem",
            format!("`ca_file`: `{}` cannot be read (", path("no.pem")),
        ),
        (
            "ca_file",
            "none.pem",
            format!(
                "`ca_file`: `{}` holds no certificate in PEM form",
                path("none.pem")
            ),
        ),
        (
            "ca_file",
            "odd.pem",
            format!("`ca_file`: `{}` is damaged", path("odd.pem")),
        ),
        (
            "ca_file",
            "text.pem",
            format!(
                "`ca_file`: `{}` holds a certificate that cannot be used",
                path("text.pem")
            ),
        ),
    ] {
        let config = parse(&format!(
            r#"{{"mcpServers": {{"s": {{"url": "https://x", "{key}": "{value}"}}}}}}"#
        ));
        let fault = config.faults[0].to_string();
        assert!(
            fault.contains(&format!("server `s`: {expected}")),
            "{fault}"
        );
        // A fault in the default affects only the servers that use it.
        let config = parse(&format!(
            r#"{{"{key}": "{value}", "mcpServers": {{"s": {{"url": "https://x"}}, "t": {{"command": "x"}}}}}}"#
        ));
        let fault = config.faults[0].to_string();
        assert!(
            fault.contains(&format!("server `s`: {expected}")),
            "{fault}"
        );
        assert_eq!((config.faults.len(), config.servers.len()), (1, 1));
    }
}

fn pem(base64: &str) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n")
}

#[test]
fn every_spelling_of_a_type_is_understood() {
    for (kind, expected) in [
        ("http", "http"),
        ("streamable-http", "http"),
        ("streamableHttp", "http"),
        ("streamable_http", "http"),
        ("HTTP", "http"),
        ("sse", "sse"),
    ] {
        let server = server(&format!(r#"{{"type": "{kind}", "url": "http://x"}}"#));
        let is = match server.transport {
            Transport::Stdio(_) => "stdio",
            Transport::Http(_) => "http",
            Transport::Sse(_) => "sse",
            Transport::Folder(_) => "folder",
        };
        assert_eq!(is, expected, "{kind}");
    }
    assert!(matches!(
        server(r#"{"type": "stdio", "command": "x"}"#).transport,
        Transport::Stdio(_)
    ));
}

#[cfg(unix)]
#[test]
fn paths_become_absolute_and_a_bare_command_stays() {
    for (written, expected) in [
        ("npx", "npx"),
        ("./server", "/etc/zip/server"),
        ("bin/server", "/etc/zip/bin/server"),
        ("../server", "/etc/zip/../server"),
        ("/bin/server", "/bin/server"),
        ("~/bin/server", "/home/me/bin/server"),
        ("${HOME}/server", "/home/me/server"),
    ] {
        let server = server(&format!(r#"{{"command": "{written}"}}"#));
        assert!(
            matches!(&server.transport, Transport::Stdio(Stdio { command, .. }) if command == expected),
            "{server:?}"
        );
    }
    for (written, expected) in [
        (".", "/etc/zip"),
        ("a/b", "/etc/zip/a/b"),
        ("/x", "/x"),
        ("~", "/home/me"),
        ("~/w", "/home/me/w"),
    ] {
        let server = server(&format!(r#"{{"command": "x", "cwd": "{written}"}}"#));
        let Transport::Stdio(Stdio { cwd, .. }) = &server.transport else {
            panic!()
        };
        assert_eq!(cwd.as_deref(), Some(Path::new(expected)));
    }
    let config = Config::parse(
        r#"{"mcpServers":{"s":{"command":"~/x"}}}"#,
        Path::new(PATH),
        &Environment::default(),
    );
    let fault = config.unwrap().faults.remove(0).to_string();
    assert_eq!(
        fault,
        "1:31: server `s`: `command` begins with `~/`, and no home directory is known"
    );
}

#[test]
fn variables_are_filled_in_everywhere_in_an_entry() {
    let server = server(
        r#"{"url": "https://x/${PLAIN}?mode=${NO:-none}", "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}", "A": "$${B}"}}"#,
    );
    let Transport::Http(Remote { url, headers, .. }) = &server.transport else {
        panic!()
    };
    assert_eq!(url, "https://x/production?mode=none");
    assert_eq!(
        exposed(headers),
        [("A", "${B}"), ("Authorization", "Bearer ghp_0123456789")]
    );
}

#[test]
fn the_same_entry_has_the_same_hash_however_it_is_written() {
    let hash = |entry: &str| server(entry).hash;
    let one = hash(r#"{"command": "x", "args": ["a"], "env": {"A": "1", "B": "${GITHUB_TOKEN}"}}"#);
    for same in [
        r#"{"env": {"B": "${GITHUB_TOKEN}", "A": "1"}, /* order */ "args": ["a",], "command": "x"}"#,
        r#"{"type": "stdio", "command": "x", "args": ["a"], "env": {"A": "${NO:-1}", "B": "ghp_0123456789"}}"#,
        r#"{"command": "x", "args": ["a"], "env": {"A": "1", "B": "${GITHUB_TOKEN}"}, "timeout": 5, "idle_timeout": "never",
            "max_concurrent": 1, "era": "modern", "description": "d", "disabled": true, "unknown": 1}"#,
    ] {
        assert_eq!(hash(same), one, "{same}");
    }
    for other in [
        r#"{"command": "x", "args": ["a"], "env": {"A": "2", "B": "${GITHUB_TOKEN}"}}"#,
        r#"{"command": "x", "args": ["a"], "env": {"A": "1", "B": "${PLAIN}"}}"#,
        r#"{"command": "x", "args": ["b"], "env": {"A": "1", "B": "${GITHUB_TOKEN}"}}"#,
        r#"{"command": "x", "args": ["a"], "env": {"A": "1", "B": "${GITHUB_TOKEN}"}, "cwd": "/"}"#,
    ] {
        assert_ne!(hash(other), one, "{other}");
    }
}

#[test]
fn secrets_are_masked_wherever_they_were_written() {
    let config = parse(
        r#"{"mcpServers": {
  "a": {"command": "x", "args": ["--api-key", "literal-1", "--token=literal-2", "--name=harmless"],
        "env": {"MODE": "${PLAIN}", "DIR": "${HOME}", "SECRET": "literal-3", "LEVEL": "verbose-log"}},
  "b": {"url": "https://me:literal-4@x/?api_key=literal-5&page=harmless#f", "headers": {"Authorization": "Bearer literal-6"}}
}}"#,
    );
    let text = "literal-1 literal-2 literal-3 literal-4 literal-5 literal-6 production /home/me harmless verbose-log";
    assert_eq!(
        config.masker.mask(text),
        "*** *** *** *** *** *** *** /home/me harmless ***"
    );
    let shown = format!(
        "{:?}",
        config
            .servers
            .values()
            .map(|server| server.transport.clone())
            .collect::<Vec<_>>()
    );
    let shown = config.masker.mask(&shown);
    assert!(
        !shown.contains("literal") && shown.contains("harmless"),
        "{shown}"
    );
}

#[test]
fn a_file_is_loaded_from_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.json");
    let paths = Paths {
        config_file: file.clone(),
        cache_dir: PathBuf::new(),
        state_dir: PathBuf::new(),
    };
    let load = || Config::load(&paths, &environment());
    let error = load().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("there is no configuration at `{}`", file.display())
    );
    std::fs::write(&file, [0xff, 0xfe, b'{', 0]).unwrap();
    assert!(matches!(load(), Err(Error::Encoding { .. })));
    std::fs::write(&file, r#"{"mcpServers": {"s": {"command": "x"}}}"#).unwrap();
    assert_eq!(load().unwrap().servers.len(), 1);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(matches!(load(), Err(Error::Read { .. })));
}

#[test]
fn what_is_seen_beside_the_tools_is_said_for_all_and_for_each() {
    #[track_caller]
    fn check(all: &str, own: &str, expected: (bool, bool), any: (bool, bool)) {
        let config = parse(&format!(
            r#"{{"mcpServers":{{"s":{{"command":"c"{own}}},"off":{{"command":"c","disabled":true}}}}{all}}}"#
        ));
        assert!(
            config.faults.is_empty() && config.warnings.is_empty(),
            "{:?} {:?}",
            config.faults,
            config.warnings
        );
        let seen = |name: &str| config.exposes(&ServerName::new(name).unwrap());
        assert_eq!(
            (seen("s").prompts, seen("s").resources),
            expected,
            "{all} {own}"
        );
        assert_eq!(seen("off"), Exposure::NOTHING);
        assert_eq!(
            (config.exposes_any().prompts, config.exposes_any().resources),
            any,
            "{all} {own}"
        );
    }
    check("", "", (true, true), (true, true));
    check(
        "",
        r#","expose":{"prompts":false}"#,
        (false, true),
        (true, true),
    );
    check(
        r#","expose":{"resources":false}"#,
        "",
        (true, false),
        (true, false),
    );
    check(
        r#","expose":{"resources":false,"prompts":false}"#,
        "",
        (false, false),
        (false, false),
    );
    check(
        r#","expose":{"resources":false}"#,
        r#","expose":{"resources":true}"#,
        (true, true),
        (true, true),
    );
}

#[test]
fn odd_words_on_what_is_seen_are_reported() {
    check(
        r#"{"mcpServers":{},"expose":{"prompts":1}}"#,
        &["1:38: `expose.prompts` must be true or false, found a number; clients see none of them"],
    );
    check_entry(
        r#"{"command":"c","expose":true}"#,
        &[r#"fault 1:45: server `s`: `expose` must be an object like {"key": …}, found true"#],
    );
}

#[test]
fn what_a_login_needs_is_read_and_its_secret_masked() {
    let entry = r#"{"url": "https://x/mcp", "oauth": {"client_id": "me", "client_secret": "${GITHUB_TOKEN}",
        "scopes": ["a b", "c"], "redirect_port": 8976}}"#;
    let server = server(entry);
    let oauth = &remote(&server).unwrap().oauth;
    assert_eq!(
        (oauth.client_id.as_deref(), oauth.redirect_port),
        (Some("me"), Some(8976))
    );
    assert_eq!(oauth.scopes, ["a", "b", "c"]);
    assert_eq!(
        oauth
            .client_secret
            .as_ref()
            .map(|secret| secret.expose().as_str()),
        Some("ghp_0123456789")
    );
    assert!(!format!("{oauth:?}").contains("ghp_"), "{oauth:?}");
    let masked = parse(&format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#)).masker;
    assert_eq!(masked.mask("is ghp_0123456789"), "is ***");
}

#[test]
fn a_login_that_cannot_be_made_so_says_what_to_write() {
    #[track_caller]
    fn check(oauth: &str, words: &str) {
        let config = parse(&format!(
            r#"{{"mcpServers": {{"s": {{"url": "https://x/mcp", "oauth": {oauth}}}}}}}"#
        ));
        let said: Vec<String> = config.faults.iter().map(ToString::to_string).collect();
        let odd = config.warnings.iter().map(ToString::to_string);
        assert!(
            said.iter()
                .cloned()
                .chain(odd)
                .any(|text| text.contains(words)),
            "{words}: {said:?}"
        );
    }
    check(
        r#"{"grant": "client_credentials", "client_id": "me"}"#,
        "needs a `client_id`, and a `client_secret`",
    );
    check(
        r#"{"grant": "password"}"#,
        r#"`oauth.grant` must be "authorization_code""#,
    );
    let idp = r#""idp": {"issuer": "https://idp.example", "client_id": "zip"}"#;
    for (oauth, words) in [
        (r#"{"grant": "id-jag", "client_id": "me"}"#.to_owned(), "\"id-jag\" needs an `idp`"),
        (format!(r#"{{"grant": "id-jag", {idp}}}"#), "needs a `client_id` or a `client_metadata_url`"),
        (format!(r#"{{"client_id": "me", {idp}}}"#), "is for \"id-jag\" only"),
        (
            r#"{"grant": "id-jag", "client_id": "me", "idp": {"issuer": "https://idp.example"}}"#.to_owned(),
            "an object with an `issuer` and a `client_id`",
        ),
        (
            r#"{"grant": "id-jag", "client_id": "me", "idp": {"issuer": "idp.example", "client_id": "zip"}}"#.to_owned(),
            "needs the issuer's URL",
        ),
        (
            r#"{"grant": "id-jag", "client_id": "me", "idp": {"issuer": "https://idp.example", "client_id": " "}}"#.to_owned(),
            "and a `client_id`",
        ),
        (
            r#"{"grant": "id-jag", "client_id": "me", "idp": {"issuer": "https://idp.example", "client_id": "zip", "url": "x"}}"#.to_owned(),
            "one of the keys `issuer`",
        ),
    ] {
        check(&oauth, words);
    }
    check(
        r#"{"redirect_port": 70000}"#,
        "`oauth.redirect_port` must be a port from 1 to 65535",
    );
    check(
        r#"{"client_metadata_url": "http://x/y"}"#,
        "`oauth.client_metadata_url` must begin with `https://`",
    );
    // On Windows it is on the configuration's drive.
    let nowhere = if cfg!(windows) {
        r"C:\nowhere"
    } else {
        "/nowhere"
    };
    let words = format!("`oauth.private_key_file`: `{nowhere}` cannot be read");
    check(r#"{"private_key_file": "/nowhere"}"#, &words);
    check(r#"{"clientid": "me"}"#, "did you mean `client_id`");
}

#[test]
fn how_results_are_answered_and_what_agents_may_do_is_read() {
    let config = Config::default();
    assert_eq!(
        (config.results.budget, config.results.duplicates),
        (100_000, Duplicates::Auto)
    );
    assert_eq!(
        (config.results.kept_for, config.management),
        (Lifetime::Session, Management::Read)
    );
    let text = r#"{"mcpServers": {}, "management": "full",
        "results": {"budget": 0, "duplicates": "keep", "kept_for": "48h"}}"#;
    let config = Config::parse(text, Path::new("/c.json"), &Environment::default()).unwrap();
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    assert_eq!(
        (config.results.budget, config.results.duplicates),
        (0, Duplicates::Keep)
    );
    assert_eq!(
        config.results.kept_for,
        Lifetime::For(Duration::from_secs(48 * 3600))
    );
    assert_eq!(config.management, Management::Full);
    let odd = r#"{"mcpServers": {}, "management": "all", "results": {"duplicates": true, "kept_for": "long", "bugdet": 1}}"#;
    let config = Config::parse(odd, Path::new("/c.json"), &Environment::default()).unwrap();
    let told: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        config.management,
        Management::Off,
        "what is not understood grants nothing"
    );
    assert_eq!(
        (config.results, told.len()),
        (ResultOptions::default(), 4),
        "{told:#?}"
    );
    assert!(
        told.iter()
            .any(|text| text.contains("`budget`") || text.contains("budget")),
        "{told:#?}"
    );
}
