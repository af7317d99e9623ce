//! `limits`: how much clients over HTTP may do. A limit that cannot be read would limit nothing, so every call is refused until it can be.

use std::collections::{BTreeMap, BTreeSet};

use super::error::EntryError;
use super::key::{Table, Value, key, with_default};
use super::policy::pattern::Pattern;
use super::reader::{At, Field, Read, Report};
use super::subject::{Audience, Subject};
use crate::tool::ServerName;

/// The keys of an entry in `limits`.
pub(super) const LIMIT: Table = &[
    with_default(
        "for",
        Value::Text,
        "\"*\"",
        "The people and tools that the limit is about, as in a rule: `@user:NAME`, `@role:NAME`, then a tool's name with `*` and `?`, such as `github__*`.",
    ),
    with_default(
        "shared",
        Value::Flag,
        "false",
        "Whether all people share the limit, in place of each having their own.",
    ),
    key(
        "requests_per_minute",
        Value::Number(1, None),
        "HTTP requests of any kind in a minute; only where `for` names no tools.",
    ),
    key(
        "calls_per_minute",
        Value::Number(1, None),
        "Requests to servers in a minute: calls of tools, prompts and resources.",
    ),
    key(
        "calls_in_flight",
        Value::Number(1, None),
        "Requests to servers at the same time. Others wait up to 30 seconds, those of people with the fewest in progress go first.",
    ),
    key(
        "bytes_per_minute",
        Value::Number(1, None),
        "Bytes of arguments and results in a minute.",
    ),
    key(
        "calls_per_day",
        Value::Number(1, None),
        "Requests to servers in a day (UTC).",
    ),
    key(
        "calls_per_month",
        Value::Number(1, None),
        "Requests to servers in a calendar month (UTC).",
    ),
    key(
        "bytes_per_day",
        Value::Number(1, None),
        "Bytes of arguments and results in a day (UTC).",
    ),
    key(
        "bytes_per_month",
        Value::Number(1, None),
        "Bytes of arguments and results in a calendar month (UTC).",
    ),
];

const EXPECTED: &str =
    "a list of limits like [{\"for\": \"@role:dev github__*\", \"calls_per_minute\": 30}]";
const FOR_EXPECTED: &str = "users, roles and names of tools, such as `@role:dev github__*`; classes such as `@write` and a leading `!` before tools are not possible here";
const NUMBER_EXPECTED: &str =
    "an object with at least one number, such as `\"calls_per_minute\": 30`";
const REQUESTS_EXPECTED: &str =
    "in a limit whose `for` names no tools, since a request is not about one";
const TWICE: &str = "about other people or tools than an earlier limit: put the numbers into one";

/// A quantity that a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Measure {
    /// HTTP requests in a minute.
    RequestsPerMinute,
    /// Requests to servers in a minute.
    CallsPerMinute,
    /// Requests to servers at the same time.
    CallsInFlight,
    /// Bytes of arguments and results in a minute.
    BytesPerMinute,
    /// Requests to servers in a day.
    CallsPerDay,
    /// Requests to servers in a month.
    CallsPerMonth,
    /// Bytes in a day.
    BytesPerDay,
    /// Bytes in a month.
    BytesPerMonth,
}

/// A limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The people and tools, as written.
    pub(crate) text: String,
    audience: Audience,
    pattern: Pattern,
    /// Whether all people have it together.
    pub(crate) is_shared: bool,
    most: BTreeMap<Measure, u64>,
}

/// The limits of the configuration.
pub(crate) type Limits = Result<Vec<Limit>, EntryError>;

impl Measure {
    const ALL: [Self; 8] = [
        Self::RequestsPerMinute,
        Self::CallsPerMinute,
        Self::CallsInFlight,
        Self::BytesPerMinute,
        Self::CallsPerDay,
        Self::CallsPerMonth,
        Self::BytesPerDay,
        Self::BytesPerMonth,
    ];

    /// The key of the configuration, which is also the word in metrics.
    #[must_use]
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::RequestsPerMinute => "requests_per_minute",
            Self::CallsPerMinute => "calls_per_minute",
            Self::CallsInFlight => "calls_in_flight",
            Self::BytesPerMinute => "bytes_per_minute",
            Self::CallsPerDay => "calls_per_day",
            Self::CallsPerMonth => "calls_per_month",
            Self::BytesPerDay => "bytes_per_day",
            Self::BytesPerMonth => "bytes_per_month",
        }
    }

    /// A number of it in words, such as "10 calls a minute".
    #[must_use]
    pub(crate) fn of(self, most: u64) -> String {
        let (what, when) = match self {
            Self::RequestsPerMinute => ("request", "a minute"),
            Self::CallsPerMinute => ("call", "a minute"),
            Self::CallsInFlight => ("call", "at the same time"),
            Self::BytesPerMinute => ("byte", "a minute"),
            Self::CallsPerDay => ("call", "a day"),
            Self::CallsPerMonth => ("call", "a month"),
            Self::BytesPerDay => ("byte", "a day"),
            Self::BytesPerMonth => ("byte", "a month"),
        };
        let plural = if most == 1 { "" } else { "s" };
        format!("{most} {what}{plural} {when}")
    }

    /// Whether it outlives the process.
    #[must_use]
    pub(crate) const fn is_quota(self) -> bool {
        matches!(
            self,
            Self::CallsPerDay | Self::CallsPerMonth | Self::BytesPerDay | Self::BytesPerMonth
        )
    }
}

impl Limit {
    /// The number of a measure, if it has one.
    #[must_use]
    pub(crate) fn most(&self, measure: Measure) -> Option<u64> {
        self.most.get(&measure).copied()
    }

    /// Whether any of its numbers outlives the process.
    #[must_use]
    pub(crate) fn has_quota(&self) -> bool {
        self.most.keys().any(|measure| measure.is_quota())
    }

    /// Whether it is about requests of this caller.
    #[must_use]
    pub(crate) fn is_about(&self, subject: &Subject) -> bool {
        // The user of the machine has no limits.
        *subject != Subject::Local && self.audience.restricts(subject)
    }

    /// Whether it is about a tool of a server that the file may call otherwise; a prompt or resource has an empty name.
    #[must_use]
    pub(crate) fn is_about_tool(
        &self,
        server: &ServerName,
        written: Option<&str>,
        tool: &str,
    ) -> bool {
        let tool = tool.to_lowercase();
        let names = [Some(server.as_str()), written];
        let mut names = names.into_iter().flatten().map(str::to_lowercase);
        self.pattern.names(&tool) || names.any(|name| self.pattern.is_of(&name, &tool))
    }

    /// The roles that it names.
    pub(crate) fn roles(&self) -> impl Iterator<Item = &str> {
        self.audience.roles()
    }
}

/// Reads `limits`.
pub(super) fn limits(field: &Field<'_>) -> Result<Vec<Limit>, At<EntryError>> {
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for element in field.elements(EXPECTED)? {
        let limit = limit(&element)?;
        if !known.insert((limit.text.clone(), limit.is_shared)) {
            return Err(element.wrong(TWICE));
        }
        all.push(limit);
    }
    Ok(all)
}

fn limit(field: &Field<'_>) -> Result<Limit, At<EntryError>> {
    let (mut text, mut is_shared, mut most) = ("*".to_owned(), false, BTreeMap::new());
    field.object()?;
    field.members(|name, field| {
        let measure = Measure::ALL.into_iter().find(|one| one.key() == name);
        match (name, measure) {
            ("for", _) => text = field.text()?.value.trim().to_owned(),
            ("shared", _) => is_shared = field.flag()?,
            (_, Some(measure)) => {
                most.insert(
                    measure,
                    u64::try_from(field.count()?.get()).unwrap_or(u64::MAX),
                );
            }
            // It could have been a limit.
            _ => {
                let keys = Measure::ALL
                    .map(|one| format!("`{}`", one.key()))
                    .join(", ");
                return Err(field.wrong(format!("one of the keys `for`, `shared`, {keys}")));
            }
        }
        Ok(())
    })?;
    let read = Audience::split(&text)
        .and_then(|(audience, tools)| Some((audience, Pattern::parse(tools)?)));
    let read = read
        .filter(|(_, pattern)| matches!(pattern, Pattern::Name(name) if !name.starts_with('!')));
    let (audience, pattern) = read.ok_or_else(|| {
        let found = format!("`\"{text}\"`");
        At::new(
            field.offset(),
            EntryError::value("limits", FOR_EXPECTED, found),
        )
    })?;
    if most.is_empty() {
        return Err(field.wrong(NUMBER_EXPECTED));
    }
    let is_for_all_tools = pattern == Pattern::Name("*".to_owned());
    if most.contains_key(&Measure::RequestsPerMinute) && !is_for_all_tools {
        let key = "limits.requests_per_minute";
        let fault = EntryError::value(key, REQUESTS_EXPECTED, format!("`\"{text}\"`"));
        return Err(At::new(field.offset(), fault));
    }
    Ok(Limit {
        text,
        audience,
        pattern,
        is_shared,
        most,
    })
}

/// The limits as written.
pub(super) fn of(read: Read<Vec<Limit>>, report: &Report) -> Limits {
    read.map(Option::unwrap_or_default).map_err(|fault| {
        let value = fault.value.clone();
        report.refuse(fault, "every call over HTTP is refused");
        value
    })
}
