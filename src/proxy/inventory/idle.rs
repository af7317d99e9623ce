//! Whether the machine has a core to spare for work in the background.

use std::path::Path;

/// Whether a second core may be used for work that can wait: nothing else runs, and the machine is not on its battery. Known on Linux
/// only; elsewhere work in the background has no lower priority either.
pub(super) fn has_spare_core() -> bool {
    if !cfg!(target_os = "linux") {
        return false;
    }
    let has_two = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    has_two && is_alone(&load) && !is_discharging(Path::new("/sys/class/power_supply"))
}

/// Whether the thread that asks is the only one that runs now, by a text such as `0.20 0.18 0.12 1/80 11206`.
fn is_alone(load: &str) -> bool {
    let running = load
        .split(' ')
        .nth(3)
        .and_then(|tasks| tasks.split_once('/'));
    running.is_some_and(|(running, _)| running == "1")
}

/// Whether a battery of the machine is being used up. Those of mice and keyboards do not count.
fn is_discharging(supplies: &Path) -> bool {
    let supplies = std::fs::read_dir(supplies).into_iter().flatten().flatten();
    supplies.map(|supply| supply.path()).any(|supply| {
        let read = |name: &str| std::fs::read_to_string(supply.join(name)).unwrap_or_default();
        read("type").trim() == "Battery"
            && read("scope").trim() != "Device"
            && read("status").trim() == "Discharging"
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_machine_is_idle_if_nothing_else_runs() {
        assert!(is_alone("0.20 0.18 0.12 1/80 11206\n"));
        for busy in [
            "0.20 0.18 0.12 2/80 11206\n",
            "0.20 0.18 0.12 11/80 11206\n",
            "",
        ] {
            assert!(!is_alone(busy), "{busy}");
        }
    }

    #[test]
    fn only_a_battery_of_the_machine_that_is_used_up_counts() {
        let directory = tempfile::tempdir().unwrap();
        let supply = |name: &str, files: &[(&str, &str)]| {
            let supply = directory.path().join(name);
            fs::create_dir_all(&supply).unwrap();
            for (file, text) in files {
                fs::write(supply.join(file), format!("{text}\n")).unwrap();
            }
        };
        assert!(!is_discharging(&directory.path().join("nothing")));
        supply("AC", &[("type", "Mains"), ("online", "0")]);
        supply(
            "mouse",
            &[
                ("type", "Battery"),
                ("scope", "Device"),
                ("status", "Discharging"),
            ],
        );
        supply("BAT0", &[("type", "Battery"), ("status", "Charging")]);
        assert!(!is_discharging(directory.path()));
        supply("BAT0", &[("status", "Discharging")]);
        assert!(is_discharging(directory.path()));
    }
}
