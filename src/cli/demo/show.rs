//! Prints the demo as text.

use std::time::Duration;

use super::measure;
use super::report::{Exchange, Report, Step};
use crate::cli::output::{Output, bad, faint, good, strong};
use crate::cli::tokens::ENCODING;
use crate::config::Environment;

/// Maximum width of a line.
const WIDTH: usize = 80;

/// Number of lines shown of an answer.
const LINES: usize = 6;

/// Prints the introduction.
pub(super) fn opening(tools: usize, output: &Output) {
    output.line(format!(
        "{}: four MCP servers with {tools} tools, behind one that shows three.",
        strong("mcpzip demo")
    ));
    output.line(faint(
        "Each server is a process, every call is real. → the agent sends, ← it reads.",
    ));
}

/// Prints one step.
pub(super) fn step(number: usize, step: &Step, output: &Output) {
    let title = format!("{number}. {}", step.title);
    let figures = format!(
        "{}, {} tokens",
        time(step.took()),
        self::number(step.tokens())
    );
    let gap = " ".repeat(WIDTH.saturating_sub(title.chars().count() + figures.chars().count()));
    output.line(format!("\n{}{gap}{}", strong(title), faint(figures)));
    for exchange in &step.exchanges {
        self::exchange(exchange, output);
    }
    for line in wrapped(&step.note, WIDTH - 3, ' ') {
        output.line(format!("   {}", good(line.trim_end())));
    }
}

fn exchange(exchange: &Exchange, output: &Output) {
    let arguments = exchange.arguments.get();
    let request = if arguments == "{}" {
        exchange.tool.to_owned()
    } else {
        format!("{} {arguments}", exchange.tool)
    };
    for (position, line) in wrapped(&request, WIDTH - 5, ',').into_iter().enumerate() {
        output.line(format!(
            "   {} {line}",
            if position == 0 {
                faint("→")
            } else {
                " ".to_owned()
            }
        ));
    }
    let arrow = if exchange.is_error {
        bad("←")
    } else {
        faint("←")
    };
    let lines: Vec<&str> = exchange.answer.lines().collect();
    for (position, line) in lines.iter().take(LINES).enumerate() {
        let mark = if position == 0 { arrow.as_str() } else { " " };
        output.line(format!("   {mark} {}", cut(line, WIDTH - 5)));
    }
    if lines.len() > LINES {
        output.line(faint(format!("     … {} lines more", lines.len() - LINES)));
    }
}

/// Prints the sums.
pub(super) fn totals(report: &Report, output: &Output) {
    let totals = &report.totals;
    let row = |what: &str, with: &str, without: &str| {
        format!("   {what:<46}{with:>15}{without:>12}")
            .trim_end()
            .to_owned()
    };
    let counts = |what, with, without| row(what, &number(with), &number(without));
    let (with, without) = (&totals.with, &totals.without);
    output.line(format!(
        "\n{}",
        strong(format!(
            "{:<49}{:>15}{:>12}",
            "Total", "with mcpzip", "without"
        ))
    ));
    let definitions = "tokens of definitions, in every request";
    output.line(counts(definitions, with.definitions, without.definitions));
    let walk = "tokens of requests and answers in this demo";
    output.line(counts(walk, with.exchanges, without.exchanges));
    output.line(strong(counts("together", with.sum(), without.sum())));
    let call = format!("a call, median of {}", measure::CALLS);
    output.line(row(&call, &time(totals.call), &time(totals.direct_call)));
    output.line(row(
        "from start to first answer",
        &time(totals.first_answer),
        "",
    ));
    let search = format!("from start to first search, {} tools indexed", totals.tools);
    output.line(row(&search, &time(totals.first_search), ""));
    let note = format!(
        "Tokens: {ENCODING}, by tiktoken-rs. Without: the same calls, nothing searched or described."
    );
    for line in wrapped(&note, WIDTH - 3, ' ') {
        output.line(faint(format!("   {}", line.trim_end())));
    }
}

/// Prints the next command for the user.
pub(super) fn next(environment: &Environment, output: &Output) {
    let program = program(environment);
    output.line(format!("\n{}", strong("Next")));
    output.line(format!("   {program} init"));
    output.line("   finds your clients and their servers, and asks before it writes anything.");
}

/// How the user calls this program: `mcpzip` if it is on the `PATH`, otherwise its path.
fn program(environment: &Environment) -> String {
    let Ok(path) = crate::executable::path() else {
        return "mcpzip".to_owned();
    };
    let directories = environment.get("PATH").unwrap_or_default();
    if std::env::split_paths(directories)
        .any(|directory| Some(directory.as_path()) == path.parent())
    {
        return "mcpzip".to_owned();
    }
    let path = path.display().to_string();
    if path.contains(' ') {
        format!("\"{path}\"")
    } else {
        path
    }
}

/// A number with commas between groups of three digits.
pub(super) fn number(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn time(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1e3;
    let decimals = if milliseconds < 1.0 {
        2
    } else {
        usize::from(milliseconds < 10.0)
    };
    format!("{milliseconds:.decimals$} ms")
}

/// Splits a line into pieces of at most `width` characters, after `separator` if possible.
fn wrapped(line: &str, width: usize, separator: char) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    let mut rest = characters.as_slice();
    let mut pieces = Vec::new();
    while rest.len() > width {
        let end = rest[..width]
            .iter()
            .rposition(|character| *character == separator);
        let (piece, following) = rest.split_at(end.map_or(width, |end| end + 1));
        pieces.push(piece.iter().collect());
        rest = following;
    }
    pieces.push(rest.iter().collect());
    pieces
}

/// Cuts a line to `width` and gives the number of omitted characters.
fn cut(line: &str, width: usize) -> String {
    let length = line.chars().count();
    if length <= width {
        return line.to_owned();
    }
    // A short rest is not counted.
    let tail = if length > 2 * width {
        format!("… {} characters more", number(length - width))
    } else {
        "…".to_owned()
    };
    let kept: String = line.chars().take(width - tail.chars().count()).collect();
    format!("{kept}{}", faint(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(
            [number(7), number(1234), number(1_234_567)],
            ["7", "1,234", "1,234,567"]
        );
        let times = [70, 1_250, 41_900].map(|micros| time(Duration::from_micros(micros)));
        assert_eq!(times, ["0.07 ms", "1.2 ms", "42 ms"]);
    }

    #[test]
    fn a_long_line_is_cut_visibly() {
        assert_eq!(wrapped("höher", 2, ','), ["hö", "he", "r"]);
        assert_eq!(wrapped("a,b,cde", 4, ','), ["a,b,", "cde"]);
        assert_eq!(cut("short", 10), "short");
        assert_eq!(
            console::strip_ansi_codes(&cut("somewhat longer", 10)),
            "somewhat …"
        );
        let long = cut(&"x".repeat(2000), 60);
        assert!(long.contains("characters more"), "{long}");
        assert_eq!(console::strip_ansi_codes(&long).chars().count(), 60);
    }
}
