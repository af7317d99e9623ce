//! The table of calls that `mcpzip stats` prints, and the formats of its numbers.

use std::time::Duration;

use super::{DayRecord, Tally};

/// Maximum number of rows in the table.
const MOST_ROWS: usize = 100;

/// A row of the table.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    /// The server.
    pub server: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The counts of the tool's calls.
    pub tally: &'a Tally,
}

impl DayRecord {
    /// The called tools of one server or of all, by falling number of calls.
    #[must_use]
    pub fn rows(&self, server: Option<&str>) -> Vec<Row<'_>> {
        let servers = self
            .tools
            .iter()
            .filter(|(name, _)| server.is_none_or(|server| server == *name));
        let rows = servers.flat_map(|(server, tools)| {
            tools.iter().map(move |(tool, tally)| Row {
                server,
                tool,
                tally,
            })
        });
        let mut rows: Vec<_> = rows.filter(|row| row.tally.calls > 0).collect();
        rows.sort_by(|a, b| {
            b.tally
                .calls
                .cmp(&a.tally.calls)
                .then((a.server, a.tool).cmp(&(b.server, b.tool)))
        });
        rows
    }

    /// The table of [`DayRecord::rows`] as text.
    #[must_use]
    pub fn table(&self, server: Option<&str>) -> String {
        let rows = self.rows(server);
        if rows.is_empty() {
            return "no calls are counted".to_owned();
        }
        let mut cells = vec![
            ["tool", "calls", "errors", "p50", "p95", "sent", "received"]
                .map(str::to_owned)
                .to_vec(),
        ];
        cells.extend(rows.iter().take(MOST_ROWS).map(Row::cells));
        let mut text = aligned(&cells);
        if rows.len() > MOST_ROWS {
            text.push_str(&format!("\n… and {} tools more", rows.len() - MOST_ROWS));
        }
        text
    }
}

impl Row<'_> {
    fn cells(&self) -> Vec<String> {
        let Self {
            server,
            tool,
            tally,
        } = self;
        let time = |share| {
            tally
                .latency
                .quantile(share)
                .map_or_else(|| "-".to_owned(), time)
        };
        vec![
            format!("{server}__{tool}"),
            tally.calls.to_string(),
            tally.errors.to_string(),
            time(0.5),
            time(0.95),
            bytes(tally.sent),
            bytes(tally.received),
        ]
    }
}

/// Pads cells to columns. The first column is aligned left, the others right.
#[must_use]
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A duration in a suitable unit.
#[must_use]
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..0.001 => format!("{:.0} µs", seconds * 1e6),
        ..0.01 => format!("{:.1} ms", seconds * 1e3),
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        ..100.0 => format!("{seconds:.1} s"),
        _ => format!("{seconds:.0} s"),
    }
}

/// A size in a suitable unit.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "it is shown with two digits")]
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..10_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        10_000..1_000_000 => format!("{:.0} kB", bytes as f64 / 1e3),
        1_000_000..10_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.0} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_under_each_other() {
        let mut record = DayRecord::default();
        let tally = record.tally("shop", "list");
        (tally.calls, tally.errors, tally.sent, tally.received) = (12, 1, 340, 56_000);
        tally.latency.add(Duration::from_millis(20));
        record.tally("shop", "buy").calls = 3;
        record.tally("other", "x").calls = 9;
        let lines = record.table(Some("shop"));
        assert_eq!(
            lines,
            "tool        calls  errors    p50    p95   sent  received\n\
             shop__list     12       1  21 ms  21 ms  340 B     56 kB\n\
             shop__buy       3       0      -      -    0 B       0 B"
        );
        assert_eq!(record.table(Some("nobody")), "no calls are counted");
        assert_eq!(record.rows(None).len(), 3);
    }
}
