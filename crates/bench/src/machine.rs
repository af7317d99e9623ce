//! The machine that the figures come from.

use std::path::Path;

/// A line that describes the machine, the program and the time.
pub(crate) fn describe(mcpzip: &Path) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cpu = field(&read("/proc/cpuinfo"), "model name")
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let memory = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kilobytes| format!(", {} GB", kilobytes.div_ceil(1024 * 1024)));
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg")
        .split_whitespace()
        .next()
        .map(|load| format!(", load {load} at the start"));
    let profile = mcpzip
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy();
    let version = std::process::Command::new(mcpzip)
        .arg("--version")
        .output()
        .ok();
    let version = version
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default();
    format!(
        "{cpu}, {cores} cores{}, {} {}{}; {version}, profile `{profile}`",
        memory.unwrap_or_default(),
        std::env::consts::OS,
        kernel.trim(),
        load.unwrap_or_default()
    )
}
