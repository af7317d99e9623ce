//! The tools of scripted servers: any number, each with a name, texts and a schema of ordinary size.

use std::fmt::Write as _;

const VERBS: [&str; 16] = [
    "create",
    "list",
    "delete",
    "update",
    "archive",
    "export",
    "assign",
    "rename",
    "compare",
    "schedule",
    "approve",
    "translate",
    "summarize",
    "restore",
    "publish",
    "validate",
];
const NOUNS: [&str; 32] = [
    "invoice",
    "calendar event",
    "pull request",
    "customer",
    "shipment",
    "database table",
    "translation",
    "ticket",
    "playlist",
    "sensor reading",
    "meeting note",
    "contract",
    "deployment",
    "password",
    "survey",
    "newsletter",
    "budget",
    "photo album",
    "warehouse",
    "exchange rate",
    "chat channel",
    "log file",
    "certificate",
    "recipe",
    "flight booking",
    "employee",
    "subscription",
    "blog post",
    "backup",
    "product review",
    "timesheet",
    "holiday",
];
const QUALITIES: [&str; 20] = [
    "regional",
    "monthly",
    "shared",
    "draft",
    "external",
    "internal",
    "archived",
    "urgent",
    "recurring",
    "public",
    "private",
    "legacy",
    "signed",
    "incoming",
    "outgoing",
    "temporary",
    "verified",
    "bulk",
    "personal",
    "annual",
];

/// The name of a tool. Names on a server are unique.
pub(crate) fn name(server: usize, number: usize) -> String {
    let (verb, quality, noun) = words(server, number);
    let round = number / (VERBS.len() * NOUNS.len());
    let end = if round == 0 {
        String::new()
    } else {
        format!("_{round}")
    };
    format!("{verb}_{quality}_{}{end}", noun.replace(' ', "_"))
}

/// A query, different for each number.
pub(crate) fn query(number: usize) -> String {
    let (verb, quality, noun) = words(number % 7, number * 37);
    match number % 3 {
        0 => format!("{verb} {quality} {noun}"),
        1 => format!("I need to {verb} a {noun} that is {quality}"),
        _ => format!("{noun} {verb}"),
    }
}

/// The definition of a tool as JSON.
pub(crate) fn definition(server: usize, number: usize) -> String {
    let (verb, quality, noun) = words(server, number);
    let mut text = String::with_capacity(700);
    // Writing to memory cannot fail.
    let _ = write!(
        text,
        r#"{{"name":"{}","title":"{verb} {noun}","description":"Use this to {verb} a {quality} {noun}. The {noun} is found by its id; what changed is returned, with the time and the user. Fails when the {noun} is locked by somebody else."#,
        name(server, number)
    );
    let _ = write!(
        text,
        r#"","inputSchema":{{"type":"object","properties":{{"id":{{"type":"string","description":"Which {noun}"}},"fields":{{"type":"array","items":{{"type":"string"}},"description":"What of the {noun} is returned"}},"limit":{{"type":"integer","minimum":1,"maximum":100}},"state":{{"type":"string","enum":["open","closed","any"]}}}},"required":["id"]}},"annotations":{{"readOnlyHint":{}}}}}"#,
        number.is_multiple_of(3)
    );
    text
}

fn words(server: usize, number: usize) -> (&'static str, &'static str, &'static str) {
    let verb = VERBS[number % VERBS.len()];
    let noun = NOUNS[number / VERBS.len() % NOUNS.len()];
    (
        verb,
        QUALITIES[(server + number / 7) % QUALITIES.len()],
        noun,
    )
}
