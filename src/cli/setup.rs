//! What the commands that edit clients' files share.

use clap::builder::PossibleValuesParser;

use super::diagnostics::Exit;
use crate::clients::{Client, Journal, Launch, Platform, Scope, Surroundings};
use crate::config::{Environment, Paths};

/// This machine, as those commands see it.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) around: Surroundings,
    pub(super) paths: Paths,
    /// Whether `--config` was given: then clients have to give it, too.
    has_own_config: bool,
}

impl Machine {
    /// # Errors
    /// When there is no home directory.
    pub(super) fn new(
        paths: Paths,
        environment: Environment,
        has_own_config: bool,
    ) -> Result<Self, Exit> {
        let no_home = || Exit::failed("no home directory is known, where clients have their files");
        let around = Surroundings {
            home: environment.home().ok_or_else(no_home)?,
            platform: Platform::current(),
            environment,
            // Where it is gone, there is no project either.
            directory: std::env::current_dir().ok(),
            managed: Some(Platform::current().managed()),
        };
        Ok(Self {
            around,
            paths,
            has_own_config,
        })
    }

    pub(super) fn journal(&self) -> Journal {
        Journal::new(&self.paths.state_dir)
    }

    /// # Errors
    /// When the system does not say which program this is.
    pub(super) fn launch(&self) -> Result<Launch, Exit> {
        let config = self
            .has_own_config
            .then_some(self.paths.config_file.as_path());
        Ok(Launch::of(
            &crate::executable::path()?,
            config,
            &self.around.environment,
        ))
    }
}

pub(super) fn client_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Client::ALL.map(Client::name))
}

pub(super) fn scope_names() -> PossibleValuesParser {
    PossibleValuesParser::new([Scope::User, Scope::Local, Scope::Project].map(Scope::name))
}

/// The clients of these names, which clap has checked; all where there are none.
pub(super) fn clients_of(names: &[String]) -> Vec<Client> {
    if names.is_empty() {
        return Client::ALL.to_vec();
    }
    names
        .iter()
        .filter_map(|name| Client::named(name))
        .collect()
}
