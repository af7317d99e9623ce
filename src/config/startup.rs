//! What is read of the configuration before anything else: whether this session is served by another process.

use super::daemon::{DaemonMode, DaemonOptions, variable};
use super::env::Environment;
use super::reader::{Field, Report};
use super::{Paths, file};

impl DaemonOptions {
    /// What the file and the variable say, read before anything else of the configuration. A file that cannot be read is for the
    /// session itself to complain of, without a daemon.
    #[must_use]
    pub(crate) fn load(paths: &Paths, environment: &Environment) -> Self {
        let off = Self {
            mode: DaemonMode::Off,
            ..Self::default()
        };
        if variable(environment) == Some(Ok(DaemonMode::Off)) {
            return off;
        }
        let Ok(text) = std::fs::read_to_string(&paths.config_file) else {
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
