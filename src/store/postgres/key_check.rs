//! A value in the store that only its keys open, so that no gateway with another key joins the others.

use super::{Store, StoreError};

const CONTEXT: &str = "key of the store";

const READ: &str = "select value from meta where name = 'key'";
const ADD: &str = "insert into meta (name, value) values ('key', $1) on conflict (name) do nothing";
const REPLACE: &str = "update meta set value = $2 where name = 'key' and value = $1";

impl Store {
    /// Looks whether the keys here are those of the store, which has its schema.
    ///
    /// # Errors
    /// When they are not, or PostgreSQL does not answer.
    pub(crate) async fn check_key(&self) -> Result<(), StoreError> {
        self.known_key().await.map(drop)
    }

    /// Makes the key here that of a store that has none yet, and seals the value again if it needs the key before the current one.
    ///
    /// # Errors
    /// When the store has another key, or PostgreSQL does not answer.
    pub(crate) async fn take_key(&self) -> Result<(), StoreError> {
        let sealed = || self.keys().seal(CONTEXT, b"mcpzip");
        match self.known_key().await? {
            None => {
                self.execute(ADD, &[&sealed()]).await?;
                // Another gateway may have been faster, with another key.
                self.check_key().await
            }
            Some(value) if self.keys().is_old(&value) => {
                self.execute(REPLACE, &[&value, &sealed()]).await?;
                Ok(())
            }
            Some(_) => Ok(()),
        }
    }

    async fn known_key(&self) -> Result<Option<String>, StoreError> {
        let row = self.query_opt(READ, &[]).await?;
        let value: Option<String> = row.map(|row| row.get(0));
        match &value {
            Some(value) if self.keys().open(CONTEXT, value).is_none() => Err(StoreError::Key),
            _ => Ok(value),
        }
    }
}
