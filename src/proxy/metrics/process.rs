//! Metrics of the process, with Prometheus's standard names. Values that the system does not provide are left out.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::text::{Family, Kind, Text};

/// Writes the metrics of the process, which started at `start`.
pub(super) fn write(text: &mut Text, start: SystemTime) {
    let mut gauge = |name, help, value: Option<u64>| {
        if let Some(value) = value {
            text.family(&Family::new(name, Kind::Gauge, help))
                .sample(&[], value);
        }
    };
    gauge(
        "process_resident_memory_bytes",
        "Resident memory of the process.",
        memory("VmRSS:"),
    );
    gauge(
        "process_virtual_memory_bytes",
        "Virtual memory of the process.",
        memory("VmSize:"),
    );
    gauge("process_open_fds", "Open file descriptors.", descriptors());
    gauge(
        "process_max_fds",
        "Maximum number of open file descriptors.",
        most_descriptors(),
    );
    if let Some(time) = time() {
        let help = "CPU time of the process.";
        text.family(&Family::new(
            "process_cpu_seconds_total",
            Kind::Counter,
            help,
        ))
        .sample(&[], time.as_secs_f64());
    }
    if let Ok(start) = start.duration_since(UNIX_EPOCH) {
        let help = "When the process started, in seconds since 1970.";
        text.family(&Family::new(
            "process_start_time_seconds",
            Kind::Gauge,
            help,
        ))
        .sample(&[], start.as_secs());
    }
}

/// A size in `/proc/self/status`, converted from kilobytes to bytes.
fn memory(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn descriptors() -> Option<u64> {
    let open = std::fs::read_dir("/proc/self/fd")
        .or_else(|_| std::fs::read_dir("/dev/fd"))
        .ok()?;
    // Without the descriptor that is used for reading the directory.
    Some((open.count() as u64).saturating_sub(1))
}

#[cfg(unix)]
fn most_descriptors() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn most_descriptors() -> Option<u64> {
    None
}

#[cfg(unix)]
fn time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(
        u64::try_from(time.tv_sec).ok()?,
        u32::try_from(time.tv_nsec).ok()?,
    ))
}

#[cfg(not(unix))]
fn time() -> Option<Duration> {
    None
}
