//! Prints the account of `mcpzip gain` as text.

use console::style;

use super::account::{Account, Sum};
use crate::cli::output::{Output, bad, faint, good, strong};
use crate::cli::printable::printable;
use crate::proxy::counted;
use crate::statistics::{aligned, bytes};

/// Width of the longest bar, in characters.
const WIDEST: usize = 24;

/// Number of rows shown of a table.
const MOST_ROWS: usize = 20;

pub(super) fn print(account: &Account, output: &Output) {
    let by_hand = match account.calls_by_hand {
        0 => String::new(),
        calls => format!(
            "; {} by `mcpzip call` cost and saved nothing, and `mcpzip stats` has them",
            number_of(calls, "call")
        ),
    };
    let is_empty = account.clients == 0 && account.servers.is_empty();
    let (Some(from), Some(to)) = (&account.from, &account.to) else {
        output.line("nothing is counted yet: `mcpzip serve` counts what its clients do");
        return;
    };
    if is_empty {
        output.line(format!(
            "nothing is counted yet: no client has used `mcpzip serve`{by_hand}"
        ));
        return;
    }
    let Sum {
        definitions,
        projected,
        stored,
        own,
        searches,
        descriptions,
        parts,
        wrapping,
        net,
    } = account.sum;
    output.line(format!(
        "{} {}",
        strong(format!("{from} to {to}")),
        faint(format!(
            "{}, tokens of {}; {}{by_hand}",
            number_of(account.clients, "client"),
            account.tokenizer,
            account.estimated
        ))
    ));
    let longest = [
        definitions,
        projected,
        stored,
        own,
        searches,
        descriptions,
        parts,
        wrapping,
    ];
    let longest = longest
        .into_iter()
        .map(i64::unsigned_abs)
        .max()
        .unwrap_or(0);
    let line = |what: &str, tokens: i64| {
        let bar = bar(tokens.unsigned_abs(), longest);
        let bar = if tokens < 0 {
            style(bar).red()
        } else {
            style(bar).green()
        };
        output.line(format!("  {what:<38}{:>14}  {bar}", grouped(tokens)));
    };
    output.line(good("saved"));
    line("definitions not sent", definitions);
    line("results reduced by `select`", projected);
    line("results over the budget", stored);
    output.line(bad("paid"));
    line("our own definitions and instructions", -own);
    line("searches", -searches);
    line("descriptions", -descriptions);
    line("parts of stored results", -parts);
    line("`execute_tool` around each call", -wrapping);
    let text = format!("{:<40}{:>14}", "net", grouped(net));
    output.line(if net < 0 { bad(text) } else { strong(text) });
    if net < 0 {
        output.line(faint(
            "so far mcpzip has cost more than it saved, which is usual with few tools or few sessions",
        ));
    }
    servers(account, output);
    days(account, output);
    candidates(account, output);
    if !account.unknown.is_empty() {
        let names = account.unknown.join(", ");
        output.line(faint(format!(
            "servers whose definitions are not known: nothing is counted as saved for {names}"
        )));
    }
    output.line(faint(
        "definitions count once per client, as clients without a tool search would send them; clients with one saved less",
    ));
}

fn servers(account: &Account, output: &Output) {
    let row = |cells: [String; 7]| cells.to_vec();
    let mut rows = vec![row([
        "server, tool",
        "calls",
        "whole",
        "in part",
        "stored",
        "received",
        "saved",
    ]
    .map(str::to_owned))];
    for server in &account.servers {
        let empty = String::new;
        rows.push(row([
            server.server.clone(),
            empty(),
            empty(),
            empty(),
            empty(),
            empty(),
            grouped(server.saved),
        ]));
        rows.extend(server.tools.iter().map(|tool| {
            row([
                format!("  {}", tool.tool),
                tool.calls.to_string(),
                tool.whole.to_string(),
                tool.projected.to_string(),
                tool.stored.to_string(),
                bytes(tool.received_bytes),
                grouped(tool.saved),
            ])
        }));
    }
    let more = rows.len().saturating_sub(MOST_ROWS + 1);
    rows.truncate(MOST_ROWS + 1);
    output.line(format!("\n{}", aligned(&rows)));
    if more > 0 {
        output.line(faint(format!("… {more} lines more; --json has all")));
    }
}

fn days(account: &Account, output: &Output) {
    let longest = account
        .days
        .iter()
        .map(|day| day.sum.net.unsigned_abs())
        .max()
        .unwrap_or(0);
    output.line("");
    for day in account.days.iter().rev().take(MOST_ROWS).rev() {
        let bar = bar(day.sum.net.unsigned_abs(), longest);
        let bar = if day.sum.net < 0 {
            style(bar).red()
        } else {
            style(bar).green()
        };
        output.line(format!(
            "{}  {:>12} {:>14}  {bar}",
            day.day,
            number_of(day.calls, "call"),
            grouped(day.sum.net)
        ));
    }
}

/// Tools for `show`, with a line to copy.
fn candidates(account: &Account, output: &Output) {
    if account.candidates.is_empty() {
        return;
    }
    output.line("\ntools that most clients call through `execute_tool`");
    for one in &account.candidates {
        output.line(format!(
            "  {:<40} {:>10}, {} tokens for each client if it is listed",
            printable(&one.tool),
            number_of(one.calls, "call"),
            one.tokens
        ));
    }
    let names: Vec<&str> = account
        .candidates
        .iter()
        .map(|one| one.tool.as_str())
        .collect();
    let names = serde_json::Value::from(names).to_string();
    output.line(faint(format!(
        "a listed tool needs no search: to list them next to the three, add `\"show\": {}` to the configuration",
        printable(&names)
    )));
}

/// A bar in eighths of a character.
pub(super) fn bar(value: u64, longest: u64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = u128::from(value) * (WIDEST as u128 * 8) / u128::from(longest.max(1));
    let eighths = usize::try_from(eighths).unwrap_or(WIDEST * 8);
    // A value above zero always shows.
    let eighths = if value > 0 { eighths.max(1) } else { eighths };
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

/// `1 call`, `2 calls`.
fn number_of(count: u64, noun: &str) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), noun)
}

/// A number with commas between groups of three digits.
pub(super) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let first = digits.len() % 3;
    let groups = digits.as_bytes()[first..]
        .chunks(3)
        .map(|group| String::from_utf8_lossy(group).into_owned());
    let head = (first > 0).then(|| digits[..first].to_owned());
    let text = head.into_iter().chain(groups).collect::<Vec<_>>().join(",");
    if number < 0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_numbers_are_easy_to_read() {
        assert_eq!(bar(10, 10), "█".repeat(WIDEST));
        assert_eq!(bar(1, 100_000), "▏");
        assert_eq!(bar(0, 0), "");
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (-1_234_567, "-1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
