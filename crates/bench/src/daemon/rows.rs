//! The figures of sessions alone and of attached ones, each with its bar.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;

use crate::table::number;

/// The requirement for attached sessions.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bar {
    AtMost(f64),
}

/// All figures.
pub(super) struct Rows {
    machine: String,
    rows: Vec<Row>,
}

struct Row {
    what: String,
    bar: Option<Bar>,
    alone: Option<f64>,
    attached: f64,
}

impl Row {
    fn cells(&self) -> [String; 5] {
        let verdict = self.bar.map_or("", |Bar::AtMost(most)| {
            if self.attached <= most {
                "met"
            } else {
                "**missed**"
            }
        });
        [
            self.what.clone(),
            self.bar.map_or_else(String::new, |Bar::AtMost(most)| {
                format!("≤ {}", number(most))
            }),
            self.alone.map_or_else(|| "–".to_owned(), number),
            number(self.attached),
            verdict.to_owned(),
        ]
    }
}

impl Rows {
    pub(super) fn new(machine: String) -> Self {
        Self {
            machine,
            rows: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        what: impl Into<String>,
        bar: Option<Bar>,
        alone: Option<f64>,
        attached: f64,
    ) {
        self.rows.push(Row {
            what: what.into(),
            bar,
            alone,
            attached,
        });
    }

    /// The figures as a table in Markdown.
    pub(super) fn to_markdown(&self) -> String {
        let mut text = format!("{}\n\n", self.machine);
        text.push_str("| what | bar | alone | attached | |\n|---|---|---:|---:|---|\n");
        for row in &self.rows {
            // Writing to memory cannot fail.
            let _ = writeln!(text, "| {} |", row.cells().join(" | "));
        }
        text
    }

    pub(super) fn print(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}\n", self.machine)?;
        for row in &self.rows {
            let [what, bar, alone, attached, verdict] = row.cells();
            writeln!(
                out,
                "{what:74} {bar:>7}  alone {alone:>8}  attached {attached:>8}  {verdict}"
            )?;
        }
        Ok(())
    }
}
