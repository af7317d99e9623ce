//! The option that names a profile.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::completions;
use crate::config::{Environment, env};

#[derive(Debug, Default, Args, Serialize, Deserialize)]
pub(super) struct ProfileOption {
    /// Use only the part of the configuration that this entry of `profiles` permits [default: MCPZIP_PROFILE]
    #[arg(long, value_name = "NAME", add = completions::of_profiles())]
    profile: Option<String>,
}

impl ProfileOption {
    /// The profile that the command line or a variable names. An empty name counts: it is not a profile, and is refused.
    pub(super) fn name(&self, environment: &Environment) -> Option<String> {
        let variable = environment.get(env::PROFILE.name);
        self.profile.clone().or_else(|| variable.map(str::to_owned))
    }
}
