//! The parts of the measurement. Each adds its rows to the table.

mod audit;
mod beside;
mod growth;
#[cfg_attr(not(target_os = "linux"), path = "memory_elsewhere.rs")]
mod memory;
mod overhead;
mod sandbox;
mod scripts;
mod search;
mod size;
mod start;
mod throughput;

use std::time::Duration;

use anyhow::Result;

use crate::stand::Stand;
use crate::table::Table;

/// Measures something and adds the results to the table.
type Part = fn(&Stand, &mut Table) -> Result<()>;

/// The parts, in the order of the table.
pub(crate) const PARTS: [(&str, Part); 11] = [
    ("start", start::measure),
    ("overhead", overhead::measure),
    ("throughput", throughput::measure),
    ("beside", beside::measure),
    ("audit", audit::measure),
    ("scripts", scripts::measure),
    ("sandbox", sandbox::measure),
    ("search", search::measure),
    ("memory", memory::measure),
    ("growth", growth::measure),
    ("size", size::measure),
];

/// The given percentile of the times, in seconds.
fn percentile(times: &[Duration], percent: usize) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100].as_secs_f64()
}

/// The middle one of these figures; `None` if there are none.
fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

/// The difference to the direct way for each other way. For the direct way, its own figure.
fn added(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let direct = values.first().copied().flatten().unwrap_or(0.0);
    values
        .iter()
        .enumerate()
        .map(|(at, value)| value.map(|value| if at == 0 { value } else { value - direct }))
        .collect()
}
