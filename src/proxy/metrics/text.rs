//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

/// The content type of the text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The name, help and type of a metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Metric families with their samples, in order.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) families: Vec<(Family, Vec<Sample>)>,
}

/// One value of a metric.
#[derive(Debug)]
pub(super) struct Sample {
    /// The suffix of its family's name.
    pub(super) part: &'static str,
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: String,
}

impl Family {
    pub(super) const fn new(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { name, kind, help }
    }
}

impl Text {
    /// Begins a family.
    pub(super) fn family(&mut self, family: &Family) -> &mut Self {
        self.families.push((*family, Vec::new()));
        self
    }

    /// Adds a sample of the family.
    pub(super) fn sample(&mut self, labels: &[(&'static str, &str)], value: impl Display) {
        self.part("", labels, value);
    }

    /// Adds a sample with a suffix to the family's name.
    pub(super) fn part(
        &mut self,
        part: &'static str,
        labels: &[(&'static str, &str)],
        value: impl Display,
    ) {
        let labels = labels
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        let value = value.to_string();
        if let Some((_, samples)) = self.families.last_mut() {
            samples.push(Sample {
                part,
                labels,
                value,
            });
        }
    }

    pub(super) fn into_string(self) -> String {
        let mut text = String::new();
        for (Family { name, kind, help }, samples) in self.families {
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            // Writing to memory cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for sample in samples {
                sample.write(name, &mut text);
            }
        }
        text
    }
}

impl Sample {
    fn write(&self, name: &str, text: &mut String) {
        text.push_str(name);
        text.push_str(self.part);
        if !self.labels.is_empty() {
            let labels: Vec<String> = self
                .labels
                .iter()
                .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
                .collect();
            // Writing to memory cannot fail.
            let _ = write!(text, "{{{}}}", labels.join(","));
        }
        // Writing to memory cannot fail.
        let _ = writeln!(text, " {}", self.value);
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
