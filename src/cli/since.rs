//! Parses the start of a period in `--since`.

use crate::day::Day;

/// Reads a date, or a number of days or weeks that ends today, such as `7d` or `2w`.
pub(super) fn since(text: &str) -> Result<Day, String> {
    let back = |number: &str, days: u32| number.parse::<u32>().ok()?.checked_mul(days);
    let days = match text.strip_suffix('d') {
        Some(number) => back(number, 1),
        None => text.strip_suffix('w').and_then(|number| back(number, 7)),
    };
    let counted = days
        .filter(|days| *days > 0)
        .map(|days| Day::today().minus(days - 1));
    counted.or_else(|| Day::parse(text)).ok_or_else(|| {
        "a number of days or weeks such as 7d or 4w, or a date such as 2026-11-01".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_weeks_and_dates_are_understood() {
        let today = Day::today();
        assert_eq!(since("1d"), Ok(today));
        assert_eq!(since("7d"), Ok(today.minus(6)));
        assert_eq!(since("2w"), Ok(today.minus(13)));
        assert_eq!(since("2026-11-01"), Ok(Day::parse("2026-11-01").unwrap()));
        for wrong in ["", "d", "0d", "-1d", "7", "yesterday", "99999999999w"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
