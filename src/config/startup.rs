//! The part of the configuration that is read before all else: whether another process serves this session.

use super::daemon::{DaemonMode, DaemonOptions, variable};
use super::env::Environment;
use super::reader::{Field, Report};
use super::{Config, Paths, file};

impl DaemonOptions {
    /// The options of the file and the variable, before the rest of the configuration is read. A file that cannot be read is reported by
    /// the session itself, which then runs without a daemon.
    #[must_use]
    pub(crate) fn load(paths: &Paths, environment: &Environment) -> Self {
        let off = Self {
            mode: DaemonMode::Off,
            ..Self::default()
        };
        if variable(environment) == Some(Ok(DaemonMode::Off)) {
            return off;
        }
        let Ok(text) = Config::text(paths, environment) else {
            return off;
        };
        let report = Report::default();
        let root = file::parse(text.trim_start_matches('\u{feff}'))
            .ok()
            .flatten();
        let Some(object) = root.as_ref().and_then(|root| root.as_object()) else {
            return off;
        };
        let written = object
            .properties
            .iter()
            .rfind(|property| property.name.as_str() == "daemon");
        let read = written
            .map(|property| Field::of("daemon", &property.value, &report))
            .filter(|field| !field.is_null())
            .map(|field| file::daemon(&field))
            .transpose();
        Self::of(environment, read, &report)
    }
}
