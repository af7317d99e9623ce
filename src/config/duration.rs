//! Times as the configuration writes them: `"500ms"`, `"120s"`, `"2m"`, `"1h"`, or a number of seconds.

use std::time::Duration;

/// The description of a valid time, for error messages.
pub(super) const EXPECTED: &str =
    "a time like \"500ms\", \"120s\", \"2m\" or \"1h\", a number being seconds, at most a year";

/// Longer times are refused; this is far beyond any use and safe to add to a clock.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Parses `text`; without a unit it is in seconds. `None` if it is not a time, negative, or longer than a year.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit.trim_start() {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number.parse::<f64>().ok()? * unit;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| *time <= LONGEST)
}

/// Formats `time` in the syntax of the configuration.
pub(super) fn text(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{}s", time.as_secs())
    } else {
        format!("{}ms", time.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_a_unit() {
        for (written, milliseconds) in [
            ("120s", 120_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("2min", 120_000),
            ("1h", 3_600_000),
            ("1.5s", 1500),
            ("30", 30_000),
            (" 30 s ", 30_000),
            ("0", 0),
        ] {
            assert_eq!(
                parse(written),
                Some(Duration::from_millis(milliseconds)),
                "{written}"
            );
        }
        for bad in [
            "",
            "s",
            "-1s",
            "1d",
            "1e9",
            "soon",
            "1h30m",
            "99999999999999999999",
            "9000h",
            "1..5s",
            "NaN",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_are_written_in_one_unit() {
        assert_eq!(text(Duration::from_secs(120)), "120s");
        assert_eq!(text(Duration::from_millis(1500)), "1500ms");
    }
}
