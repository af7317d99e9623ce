//! Reads `store`, the database that replicas share, and the variables that belong to it.

use std::path::PathBuf;

use super::error::EntryError;
use super::reader::{At, Read};
use super::server::Resolver;
use super::{Environment, env};
use crate::secret::Secret;

/// The store of a configuration. Its URL is not checked yet, because a program without the feature does not know its form.
#[derive(Debug, Clone)]
pub(crate) struct StoreOptions {
    /// The URL, with the password.
    pub(crate) url: Secret<String>,
    /// The key that seals secrets in the store.
    pub(crate) key: Option<StoreKey>,
    /// The key before it, which still opens them.
    pub(crate) previous: Option<StoreKey>,
}

/// A key of the store.
#[derive(Debug, Clone)]
pub(crate) enum StoreKey {
    /// The key itself.
    Text(Secret<String>),
    /// A file that has it.
    File(PathBuf),
}

impl StoreOptions {
    /// The store of the variables and of the file; the variables go before it. `None` keeps everything in files.
    pub(super) fn of(
        environment: &Environment,
        read: Read<At<String>>,
        resolver: &mut Resolver<'_>,
    ) -> Result<Option<Self>, EntryError> {
        let variable = |name: &str| {
            let value = environment.get(name).map(str::trim);
            value.filter(|value| !value.is_empty()).map(str::to_owned)
        };
        let written = match variable(env::STORE.name) {
            Some(url) => Ok(Some(url)),
            None => read.and_then(|written| {
                let url = written.map(|at| resolver.secret("store", &at));
                url.transpose()
            }),
        };
        let url = written.map_err(|fault| {
            let value = fault.value.clone();
            resolver
                .report
                .refuse(fault, "`serve --http` does not start");
            value
        })?;
        let Some(url) = url else { return Ok(None) };
        let key = |text: env::Variable, file: env::Variable| {
            let text = variable(text.name).map(Secret::new).map(StoreKey::Text);
            text.or_else(|| variable(file.name).map(|path| StoreKey::File(path.into())))
        };
        let options = Self {
            url: Secret::new(url.clone()),
            key: key(env::STORE_KEY, env::STORE_KEY_FILE),
            previous: key(env::STORE_KEY_PREVIOUS, env::STORE_KEY_PREVIOUS_FILE),
        };
        resolver.secrets.push(Secret::new(url));
        for key in [&options.key, &options.previous].into_iter().flatten() {
            if let StoreKey::Text(text) = key {
                resolver.secrets.push(text.clone());
            }
        }
        Ok(Some(options))
    }
}
