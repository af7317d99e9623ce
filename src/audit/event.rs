//! An audit event and its line of JSON.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::chain::hash;
use crate::config::{AuditedArguments, arguments, shown_url};
use crate::secret::{MASK, is_secret_name};
use crate::tool::is_hidden;

/// UTC with microseconds, so that the lines of several chains can be sorted as text.
pub(super) const TIME: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");

/// Maximum characters of a text in a line.
const LONGEST_TEXT: usize = 1_000;

/// The bytes that most lines stay below, so that building one seldom moves it.
const LINE: usize = 768;

/// Above this size in bytes, redacted arguments are replaced by their hash.
const LARGEST_ARGUMENTS: usize = 64 * 1024;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A call that was sent to a server, or to a built-in tool.
    Call,
    /// A call that was not sent.
    Refusal,
    /// A request for a prompt.
    Prompt,
    /// A request for the contents of a resource.
    Resource,
    /// A request about a task: its result, an answer to it, or its cancellation.
    Task,
    /// A request of an extension that passes through.
    Extension,
    /// A person's decision about tools or a call.
    Approval,
    /// A login to a server, or its end.
    Login,
    /// A token for clients over HTTP was made or revoked.
    Identity,
    /// The configuration was loaded again.
    Configuration,
    /// The tools of a server differ from the approved ones.
    Trust,
    /// The scanner found something in a server's texts.
    Finding,
    /// A session of a daemon was opened, taken over or closed.
    Session,
    /// A daemon started or ended, or got an order by its control interface.
    Daemon,
    /// The store of several replicas was updated, does not answer, or answers again.
    Store,
    /// An event of the log itself.
    Log,
}

/// The outcome of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It succeeded.
    Ok,
    /// The tool answered with an error.
    Error,
    /// There was no usable answer.
    Failed,
    /// A rule, a pin or a person refused it.
    Refused,
    /// It is waiting for a person.
    Waiting,
    /// The client cancelled it or left before the answer. The server may have acted.
    Cancelled,
}

/// An audit event. Missing parts are left out of the line.
#[derive(Debug, Clone)]
pub(crate) struct Event<'a> {
    pub(crate) kind: Kind,
    pub(crate) outcome: Outcome,
    /// The session id.
    pub(crate) session: Option<&'a str>,
    /// The client's name and version, as the client gave them.
    pub(crate) client: Option<(&'a str, &'a str)>,
    /// The caller, if it is known.
    pub(crate) identity: Option<&'a str>,
    /// The working directory of the session.
    pub(crate) directory: Option<&'a Path>,
    /// The profiles of the session.
    pub(crate) profile: Option<&'a str>,
    pub(crate) server: Option<&'a str>,
    pub(crate) tool: Option<&'a str>,
    /// The time from sending a call to its answer.
    pub(crate) elapsed: Option<Duration>,
    /// Bytes of the arguments.
    pub(crate) sent: Option<usize>,
    /// Bytes of the result.
    pub(crate) received: Option<usize>,
    /// The rule that decided, as written in the configuration.
    pub(crate) rule: Option<&'a str>,
    /// The arguments as JSON.
    pub(crate) arguments: Option<&'a str>,
    /// A description of anything else.
    pub(crate) detail: Option<&'a str>,
}

impl Kind {
    /// All kinds.
    const ALL: [Self; 16] = [
        Self::Call,
        Self::Refusal,
        Self::Prompt,
        Self::Resource,
        Self::Task,
        Self::Extension,
        Self::Approval,
        Self::Login,
        Self::Identity,
        Self::Configuration,
        Self::Trust,
        Self::Finding,
        Self::Session,
        Self::Daemon,
        Self::Store,
        Self::Log,
    ];

    /// The names of all kinds as they stand in the log, without quotes.
    pub(crate) fn names() -> [&'static str; 16] {
        Self::ALL.map(|kind| kind.json().trim_matches('"'))
    }

    /// As it stands in the log, in quotes.
    #[must_use]
    const fn json(self) -> &'static str {
        match self {
            Self::Call => "\"call\"",
            Self::Refusal => "\"refusal\"",
            Self::Prompt => "\"prompt\"",
            Self::Resource => "\"resource\"",
            Self::Task => "\"task\"",
            Self::Extension => "\"extension\"",
            Self::Approval => "\"approval\"",
            Self::Login => "\"login\"",
            Self::Identity => "\"identity\"",
            Self::Configuration => "\"configuration\"",
            Self::Trust => "\"trust\"",
            Self::Finding => "\"finding\"",
            Self::Session => "\"session\"",
            Self::Daemon => "\"daemon\"",
            Self::Store => "\"store\"",
            Self::Log => "\"log\"",
        }
    }
}

impl Outcome {
    /// As it stands in the log, in quotes.
    #[must_use]
    const fn json(self) -> &'static str {
        match self {
            Self::Ok => "\"ok\"",
            Self::Error => "\"error\"",
            Self::Failed => "\"failed\"",
            Self::Refused => "\"refused\"",
            Self::Waiting => "\"waiting\"",
            Self::Cancelled => "\"cancelled\"",
        }
    }
}

impl<'a> Event<'a> {
    /// An event without its optional parts.
    #[must_use]
    pub(crate) const fn new(kind: Kind, outcome: Outcome) -> Self {
        Self {
            kind,
            outcome,
            session: None,
            client: None,
            identity: None,
            directory: None,
            profile: None,
            server: None,
            tool: None,
            elapsed: None,
            sent: None,
            received: None,
            rule: None,
            arguments: None,
            detail: None,
        }
    }

    /// An event of the log itself.
    #[must_use]
    pub(super) const fn of_log(detail: &'a str) -> Self {
        let mut event = Self::new(Kind::Log, Outcome::Ok);
        event.detail = Some(detail);
        event
    }

    /// The members that are known before the outcome, as JSON without the closing brace. `spent` is a buffer to use again.
    #[must_use]
    pub(super) fn beginning(&self, arguments: AuditedArguments, mut spent: String) -> String {
        spent.clear();
        spent.reserve(LINE);
        let mut line = Members(spent);
        line.time(OffsetDateTime::now_utc());
        line.text("session", self.session);
        line.text("client", self.client.map(|(name, _)| name));
        line.text("version", self.client.map(|(_, version)| version));
        line.text("identity", self.identity);
        line.text(
            "directory",
            self.directory.map(Path::to_string_lossy).as_deref(),
        );
        line.text("profile", self.profile);
        line.text("server", self.server);
        line.text("tool", self.tool);
        line.number("sent", self.sent);
        match (arguments, self.arguments) {
            (AuditedArguments::None, _) | (_, None) => {}
            (AuditedArguments::Hash, Some(raw)) => line.hash_of(raw),
            (AuditedArguments::Redacted, Some(raw)) => {
                let redacted = visible(&redacted(raw)).into_owned();
                if redacted.len() <= LARGEST_ARGUMENTS {
                    line.raw("arguments", &redacted);
                } else {
                    line.hash_of(raw);
                }
            }
        }
        line.0
    }

    /// Adds the members that the outcome decides; the chain adds its own, and the closing brace.
    #[must_use]
    pub(super) fn ending(&self, beginning: String) -> String {
        use std::fmt::Write as _;
        let mut line = Members(beginning);
        line.raw("kind", self.kind.json());
        line.raw("outcome", self.outcome.json());
        if let Some(elapsed) = self.elapsed {
            let micros = elapsed.as_micros();
            // Writing to a string does not fail.
            let _ = write!(line.0, ",\"ms\":{}.{:03}", micros / 1000, micros % 1000);
        }
        line.number("received", self.received);
        line.text("rule", self.rule);
        line.text("detail", self.detail);
        line.0
    }
}

/// The members of an object, without its closing brace.
struct Members(String);

impl Members {
    fn raw(&mut self, key: &str, json: &str) {
        self.key(key);
        self.0.push_str(json);
    }

    fn key(&mut self, key: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }

    fn hash_of(&mut self, arguments: &str) {
        self.raw("arguments", "\"sha256:");
        HEXLOWER.encode_append(&Sha256::digest(arguments), &mut self.0);
        self.0.push('"');
    }

    /// Adds a time in UTC, in the form of [`TIME`]. Digit by digit, because each call waits for it.
    fn time(&mut self, time: OffsetDateTime) {
        let (year, month, day) = time.to_calendar_date();
        let (hour, minute, second, micros) = time.to_hms_micro();
        let year = u32::try_from(year).unwrap_or_default();
        self.raw("time", "\"");
        for (value, width, end) in [
            (year, 4, '-'),
            (u8::from(month).into(), 2, '-'),
            (day.into(), 2, 'T'),
            (hour.into(), 2, ':'),
            (minute.into(), 2, ':'),
            (second.into(), 2, '.'),
            (micros, 6, 'Z'),
        ] {
            let digits = (0..width).rev().map(|place| value / 10_u32.pow(place) % 10);
            self.0
                .extend(digits.filter_map(|digit| char::from_digit(digit, 10)));
            self.0.push(end);
        }
        self.0.push('"');
    }

    /// Adds a text, truncated because clients and agents choose some of them.
    fn text(&mut self, key: &str, value: Option<&str>) {
        let Some(value) = value else {
            return;
        };
        let value = beginning(value, LONGEST_TEXT);
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        if value.bytes().all(is_plain) {
            self.key(key);
            self.0.push('"');
            self.0.push_str(&value);
            self.0.push('"');
        } else {
            self.raw(key, &visible(&crate::mcp::object::quoted(&value)));
        }
    }

    fn number(&mut self, key: &str, value: Option<usize>) {
        use std::fmt::Write as _;
        if let Some(value) = value {
            self.key(key);
            // Writing to a string does not fail.
            let _ = write!(self.0, "{value}");
        }
    }
}

/// JSON in which characters that control a terminal or hide text are escaped: people read the files and their copies with other programs, too.
fn visible(json: &str) -> Cow<'_, str> {
    use std::fmt::Write as _;
    let is_odd = |c: char| c.is_control() || is_hidden(c);
    if !json.contains(is_odd) {
        return json.into();
    }
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if is_odd(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// A text truncated to `longest` characters.
fn beginning(text: &str, longest: usize) -> Cow<'_, str> {
    if text.len() <= longest {
        return Cow::Borrowed(text);
    }
    match text.char_indices().nth(longest) {
        Some((at, _)) => Cow::Owned(format!("{}… ({} bytes)", &text[..at], text.len())),
        None => Cow::Borrowed(text),
    }
}

fn sha256(arguments: &str) -> String {
    format!("sha256:{}", hash(arguments.as_bytes()))
}

/// Arguments with secrets masked and long texts truncated. Arguments that are an object as a JSON string are read like the
/// object; of others, and of an object with a member that stands twice, only the hash.
fn redacted(raw: &str) -> String {
    let text = serde_json::from_str::<String>(raw);
    match arguments::read(text.as_deref().unwrap_or(raw)) {
        Value::Object(members) => {
            Value::Object(members.into_iter().map(redacted_member).collect()).to_string()
        }
        _ => json!(sha256(raw)).to_string(),
    }
}

fn redacted_member((key, value): (String, Value)) -> (String, Value) {
    let value = if is_secret_name(&key) && !value.is_null() {
        json!(MASK)
    } else {
        redacted_value(value)
    };
    (key, value)
}

fn redacted_value(value: Value) -> Value {
    /// Maximum characters of a text.
    const LONGEST: usize = 200;
    match value {
        Value::Object(members) => Value::Object(members.into_iter().map(redacted_member).collect()),
        Value::Array(items) => Value::Array(items.into_iter().map(redacted_value).collect()),
        Value::String(text) => json!(beginning(&without_credentials(&text), LONGEST)),
        other => other,
    }
}

/// A text without the credentials of the URLs in it: users with their passwords, secret parameters, and what looks like a token.
fn without_credentials(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_end = |c: char| c.is_whitespace() || "/?#\"'<>".contains(c);
        let (authority, rest) = part.split_at(part.find(is_end).unwrap_or(part.len()));
        shown.push_str("://");
        match authority.rsplit_once('@') {
            Some((_, host)) => shown.push_str(&format!("{MASK}@{host}")),
            None => shown.push_str(authority),
        }
        shown.push_str(&without_secret_parameters(rest));
    }
    match shown.contains("://") {
        true => shown_url(&shown),
        false => shown,
    }
}

/// A text in which `name=value` after `?`, `&`, `#` or `;` has no value if the name is one of a secret.
fn without_secret_parameters(text: &str) -> String {
    let mut shown = String::new();
    for part in text.split_inclusive(['?', '&', '#', ';', ' ']) {
        let end = part.trim_end_matches(['?', '&', '#', ';', ' ']).len();
        match part[..end].split_once('=') {
            Some((name, value)) if !value.is_empty() && is_secret_name(name) => {
                shown.push_str(&format!("{name}={MASK}{}", &part[end..]));
            }
            _ => shown.push_str(part),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted_of(raw: &str) -> Value {
        serde_json::from_str(&redacted(raw)).unwrap()
    }

    #[test]
    fn arguments_stand_there_as_the_user_wants() {
        let mut event = Event::new(Kind::Call, Outcome::Ok);
        event.tool = Some("a \"b\"");
        let raw = r#"{"path":"/a","deep":[{"api_key":"hunter22"}],"token":7}"#;
        event.arguments = Some(raw);
        let line = |arguments| {
            format!(
                "{}}}",
                event.ending(event.beginning(arguments, String::new()))
            )
        };
        assert!(!line(AuditedArguments::None).contains("arguments"));
        let mut stamp = Members(String::new());
        let time = time::macros::datetime!(2026-03-07 04:05:09.000120 UTC);
        stamp.time(time);
        assert_eq!(
            stamp.0,
            format!("{{\"time\":\"{}\"", time.format(TIME).unwrap())
        );
        let hashed: Value = serde_json::from_str(&line(AuditedArguments::Hash)).unwrap();
        assert_eq!(hashed["tool"], "a \"b\"");
        assert_eq!(
            hashed["arguments"],
            format!("sha256:{}", hash(raw.as_bytes()))
        );
        let redacted: Value = serde_json::from_str(&line(AuditedArguments::Redacted)).unwrap();
        assert_eq!(
            redacted["arguments"],
            json!({"path": "/a", "deep": [{"api_key": MASK}], "token": MASK})
        );
        assert_eq!(redacted_of(r#""{\"path\":\"/a\"}""#), json!({"path": "/a"}));
        for (uri, shown) in [
            ("file:///a b?x=1", "file:///a b?x=1"),
            ("db://me:pw@host:1/t", "db://***@host:1/t"),
            ("db://me:p@w@host", "db://***@host"),
            (
                "x://h/p?token=pw&n=1#access_token=pw",
                "x://h/p?token=***&n=1#access_token=***",
            ),
            ("a x://u:pw@h/1, y://u:pw@h/2", "a x://***@h/1, y://***@h/2"),
            ("me@host: a", "me@host: a"),
        ] {
            let raw = json!({ "uri": uri }).to_string();
            assert_eq!(redacted_of(&raw), json!({ "uri": shown }));
        }
        for unreadable in [r#"{"path":"/a","x":1e999}"#, r#"{"path":"/a","path":"/b"}"#] {
            assert_eq!(redacted_of(unreadable), sha256(unreadable));
        }
    }
}
