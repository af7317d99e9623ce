//! The paths of the configuration, the cache and the state.
//!
//! A flag takes precedence over a `MCPZIP_*` variable, and that over the platform's directory. The platform's
//! directories come from the crate `directories`, which reads the process itself (`XDG_*`, the user database) and not
//! the [`Environment`].

use std::path::{Path, PathBuf};

use directories::ProjectDirs;

use super::env::{self, Environment, Variable};
use super::error::Error;
use super::expand;

const FILE_NAME: &str = "config.json";

/// The directories and files of `mcpzip`, all absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paths {
    /// The configuration file; it need not exist. [`is_inline`] tells the configuration of a variable.
    pub config_file: PathBuf,
    /// The cache, which may be deleted at any time.
    pub cache_dir: PathBuf,
    /// Log files and data that must survive a restart.
    pub state_dir: PathBuf,
}

/// The paths given on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PathFlags {
    /// `--config`
    pub config_file: Option<PathBuf>,
    /// `--cache-dir`
    pub cache_dir: Option<PathBuf>,
    /// `--state-dir`
    pub state_dir: Option<PathBuf>,
}

impl Paths {
    /// Determines each path by flag, variable and platform, in this order.
    ///
    /// # Errors
    /// When a path depends on the platform and no home directory is known, or a path is relative and the current
    /// directory no longer exists.
    pub(crate) fn resolve(flags: PathFlags, environment: &Environment) -> Result<Self, Error> {
        let PathFlags {
            config_file,
            cache_dir,
            state_dir,
        } = flags;
        let has_text = environment
            .get(env::CONFIG_JSON.name)
            .is_some_and(|text| !text.trim().is_empty());
        let config_file = if config_file.is_none() && has_text {
            env::CONFIG_JSON.name.into()
        } else {
            directory(config_file, env::CONFIG, environment, |dirs| {
                dirs.config_dir().join(FILE_NAME)
            })?
        };
        Ok(Self {
            config_file,
            cache_dir: directory(cache_dir, env::CACHE_DIR, environment, |dirs| {
                dirs.cache_dir().to_owned()
            })?,
            // Only Linux has a directory for state.
            state_dir: directory(state_dir, env::STATE_DIR, environment, |dirs| {
                dirs.state_dir()
                    .unwrap_or_else(|| dirs.data_local_dir())
                    .to_owned()
            })?,
        })
    }
}

/// Whether the configuration at `path` is the text of `MCPZIP_CONFIG_JSON`, which no command can write. All other paths are
/// absolute.
#[must_use]
pub(crate) fn is_inline(path: &Path) -> bool {
    path == Path::new(env::CONFIG_JSON.name)
}

/// The configuration file of the older layout, if there is one.
#[must_use]
pub(crate) fn older_config_file(environment: &Environment) -> Option<PathBuf> {
    let file = environment
        .home()?
        .join(".config")
        .join("compressed-mcp-proxy")
        .join(FILE_NAME);
    file.is_file().then_some(file)
}

fn directory(
    flag: Option<PathBuf>,
    variable: Variable,
    environment: &Environment,
    platform: impl Fn(&ProjectDirs) -> PathBuf,
) -> Result<PathBuf, Error> {
    let path = match (
        flag,
        environment
            .get(variable.name)
            .filter(|value| !value.is_empty()),
    ) {
        (Some(flag), _) => flag,
        // A variable that a client's configuration sets was not expanded by a shell.
        (None, Some(value)) => {
            expand::home(value, environment).map_or_else(|| value.into(), PathBuf::from)
        }
        (None, None) => {
            let dirs = ProjectDirs::from("", "", "mcpzip").ok_or(Error::NoHome {
                variable: variable.name,
            })?;
            platform(&dirs)
        }
    };
    absolute(&path)
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|source| Error::Path {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_goes_before_a_variable_and_that_before_the_platform() {
        let environment = Environment::from_iter([
            ("HOME", "/home/me"),
            ("USERPROFILE", "/home/me"),
            ("MCPZIP_CONFIG", "/from/variable.json"),
            ("MCPZIP_CACHE_DIR", "~/cache"),
            ("MCPZIP_STATE_DIR", ""),
        ]);
        let flags = PathFlags {
            config_file: Some("from/flag.json".into()),
            ..PathFlags::default()
        };
        let paths = Paths::resolve(flags, &environment).unwrap();
        assert_eq!(
            paths.config_file,
            std::path::absolute("from/flag.json").unwrap()
        );
        assert_eq!(
            paths.cache_dir,
            std::path::absolute("/home/me/cache").unwrap()
        );
        assert!(
            paths.state_dir.is_absolute() && paths.state_dir.to_string_lossy().contains("mcpzip")
        );
        let paths = Paths::resolve(PathFlags::default(), &environment).unwrap();
        assert_eq!(
            paths.config_file,
            std::path::absolute("/from/variable.json").unwrap()
        );
    }

    #[test]
    fn a_configuration_in_a_variable_goes_before_a_file_of_another() {
        let environment = Environment::from_iter([
            ("MCPZIP_CONFIG", "/from/variable.json"),
            ("MCPZIP_CONFIG_JSON", "{}"),
        ]);
        let paths = Paths::resolve(PathFlags::default(), &environment).unwrap();
        assert!(is_inline(&paths.config_file));
        let flags = PathFlags {
            config_file: Some("MCPZIP_CONFIG_JSON".into()),
            ..PathFlags::default()
        };
        let paths = Paths::resolve(flags, &environment).unwrap();
        assert!(!is_inline(&paths.config_file));
    }

    #[test]
    fn the_platform_has_a_place_for_each() {
        let paths = Paths::resolve(PathFlags::default(), &Environment::default()).unwrap();
        assert!(paths.config_file.is_absolute() && paths.config_file.ends_with(FILE_NAME));
        assert!(paths.cache_dir != paths.state_dir);
    }

    #[test]
    fn an_older_file_is_found_where_it_exists() {
        let home = tempfile::tempdir().unwrap();
        let home_text = home.path().to_str().unwrap();
        let environment = Environment::from_iter([("HOME", home_text), ("USERPROFILE", home_text)]);
        assert_eq!(older_config_file(&environment), None);
        let file = home.path().join(".config/compressed-mcp-proxy/config.json");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(older_config_file(&environment), Some(file));
        assert_eq!(older_config_file(&Environment::default()), None);
    }
}
