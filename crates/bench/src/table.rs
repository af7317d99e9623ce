//! The table of figures and their bars.

use std::fmt;

use serde::Serialize;

use crate::stand::{MCPZIP, RELAY};

/// The results of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) machine: String,
    pub(crate) ways: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// A figure for each way.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    what: String,
    unit: &'static str,
    /// The values by way. `None` if the way does not have this figure.
    values: Vec<Option<f64>>,
    bar: Option<Bar>,
    /// Whether `mcpzip` meets the bar. `None` without a bar.
    met: Option<bool>,
}

/// The limit for `mcpzip`'s value.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bar {
    AtMost(f64),
    TimesRelayAtMost(f64),
    TimesRelayAtLeast(f64),
}

impl Bar {
    fn is_met(self, values: &[Option<f64>]) -> Option<bool> {
        let value = (*values.get(MCPZIP)?)?;
        let relay = values.get(RELAY).copied().flatten();
        Some(match self {
            Self::AtMost(most) => value <= most,
            Self::TimesRelayAtMost(factor) => value <= factor * relay?,
            Self::TimesRelayAtLeast(factor) => value >= factor * relay?,
        })
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "≤ {}", number(*most)),
            Self::TimesRelayAtMost(factor) => write!(f, "≤ {factor} × relay"),
            Self::TimesRelayAtLeast(factor) => write!(f, "≥ {factor} × relay"),
        }
    }
}

impl Table {
    pub(crate) fn new(machine: String, ways: Vec<String>) -> Self {
        Self {
            machine,
            ways,
            rows: Vec::new(),
        }
    }

    /// Adds a row. `values` are in the order of the ways, and may be fewer.
    pub(crate) fn add(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        bar: Option<Bar>,
        mut values: Vec<Option<f64>>,
    ) {
        values.resize(self.ways.len(), None);
        let met = bar.and_then(|bar| bar.is_met(&values));
        self.rows.push(Row {
            what: what.into(),
            unit,
            values,
            bar,
            met,
        });
    }

    /// Adds a row with a value for `mcpzip` only.
    pub(crate) fn add_own(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        bar: Option<Bar>,
        value: f64,
    ) {
        self.add(what, unit, bar, vec![None, None, Some(value)]);
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("texts and numbers are JSON") + "\n"
    }

    /// The table in Markdown.
    pub(crate) fn to_markdown(&self) -> String {
        let mut text = String::new();
        for (at, cells) in self.cells().into_iter().enumerate() {
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
            if at == 0 {
                text.push_str(&format!(
                    "|---|---|{}---|\n",
                    "---:|".repeat(self.ways.len())
                ));
            }
        }
        text
    }

    /// The number of bars that are met, and of all bars.
    pub(crate) fn score(&self) -> (usize, usize) {
        let judged = self.rows.iter().filter_map(|row| row.met);
        (judged.clone().filter(|met| *met).count(), judged.count())
    }

    fn cells(&self) -> Vec<Vec<String>> {
        let head = ["what", "bar"]
            .map(str::to_owned)
            .into_iter()
            .chain(self.ways.clone())
            .chain([String::new()]);
        let rows = self.rows.iter().map(|row| {
            let what = format!("{}, {}", row.what, row.unit);
            let bar = row.bar.map_or_else(String::new, |bar| bar.to_string());
            let values = row
                .values
                .iter()
                .map(|value| value.map_or_else(|| "–".to_owned(), number));
            let verdict = row
                .met
                .map_or("", |met| if met { "met" } else { "**missed**" })
                .to_owned();
            [what, bar]
                .into_iter()
                .chain(values)
                .chain([verdict])
                .collect()
        });
        std::iter::once(head.collect()).chain(rows).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.machine)?;
        let cells = self.cells();
        let width = |at: usize| {
            cells
                .iter()
                .map(|row| row[at].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..cells[0].len()).map(width).collect();
        for row in &cells {
            let mut line = format!("{:<1$}", row[0], widths[0]);
            line.push_str(&format!("  {:<1$}", row[1], widths[1]));
            for (at, cell) in row.iter().enumerate().skip(2) {
                line.push_str(&format!("  {cell:>0$}", widths[at]));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        let (met, judged) = self.score();
        writeln!(f, "\n{met} of {judged} bars met")
    }
}

/// A number with three significant digits.
pub(crate) fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1000.0 {
        let digits = format!("{:.0}", magnitude);
        let groups: Vec<&str> = digits
            .as_bytes()
            .rchunks(3)
            .rev()
            .filter_map(|group| std::str::from_utf8(group).ok())
            .collect();
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}", groups.join(","))
    } else if magnitude >= 100.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_judged_by_what_they_say() {
        let mut table = Table::new(
            "here".into(),
            ["direct", "relay", "mcpzip"].map(str::to_owned).to_vec(),
        );
        table.add(
            "a",
            "µs",
            Some(Bar::TimesRelayAtMost(1.4)),
            vec![Some(1.0), Some(10.0), Some(14.0)],
        );
        table.add(
            "b",
            "calls/s",
            Some(Bar::TimesRelayAtLeast(0.5)),
            vec![Some(1.0), Some(10.0), Some(4.0)],
        );
        table.add_own("c", "ms", Some(Bar::AtMost(3.0)), 1234.5);
        table.add_own("d", "ms", None, 0.5);
        assert_eq!(
            table.rows.iter().map(|row| row.met).collect::<Vec<_>>(),
            [Some(true), Some(false), Some(false), None]
        );
        assert_eq!(table.score(), (1, 3));
        assert!(
            table
                .to_markdown()
                .contains("| c, ms | ≤ 3 | – | – | 1,234 | **missed** |")
                || table.to_markdown().contains("1,235")
        );
    }
}
