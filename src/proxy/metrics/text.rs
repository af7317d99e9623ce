//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

/// What the text is, for HTTP.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a figure is called, and what it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Families one after the other, each with its samples.
#[derive(Debug, Default)]
pub(super) struct Text {
    text: String,
    /// The family whose samples follow.
    name: &'static str,
}

impl Family {
    pub(super) const fn new(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { name, kind, help }
    }
}

impl Text {
    /// Begins a family.
    pub(super) fn family(&mut self, family: &Family) -> &mut Self {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.name = family.name;
        // Writing to memory cannot fail.
        let _ = writeln!(
            self.text,
            "# HELP {name} {}\n# TYPE {name} {kind}",
            family.help,
            name = family.name
        );
        self
    }

    /// A sample of the family.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.part("", labels, value);
    }

    /// A sample of a part of the family, which its name says at its end.
    pub(super) fn part(&mut self, part: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(part);
        if !labels.is_empty() {
            let labels: Vec<String> = labels
                .iter()
                .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
                .collect();
            // Writing to memory cannot fail.
            let _ = write!(self.text, "{{{}}}", labels.join(","));
        }
        // The same.
        let _ = writeln!(self.text, " {value}");
    }

    pub(super) fn into_string(self) -> String {
        self.text
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_samples_have_their_form() {
        let mut text = Text::default();
        text.family(&Family::new("a_total", Kind::Counter, "Of all."))
            .sample(&[("x", "q\"\\\n"), ("y", "1")], 5);
        text.family(&Family::new("b", Kind::Histogram, "Time."))
            .part("_sum", &[], 0.5);
        let expected = "# HELP a_total Of all.\n# TYPE a_total counter\na_total{x=\"q\\\"\\\\\\n\",y=\"1\"} 5\n\
                        # HELP b Time.\n# TYPE b histogram\nb_sum 0.5\n";
        assert_eq!(text.into_string(), expected);
    }
}
