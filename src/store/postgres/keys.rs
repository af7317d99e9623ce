//! The keys that seal what PostgreSQL keeps. They come from outside, so that a copy of the database opens nothing.

use crate::sealing::{Key, Sealed};
use crate::secret::Secret;

/// The key that seals, and the one before it, which still opens.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    current: Key,
    previous: Option<Key>,
}

/// A key that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not 32 bytes in base64url, as `openssl rand -base64 32 | tr '+/' '-_' | tr -d =` makes them"
)]
pub(crate) struct KeyFault;

impl Keys {
    /// Keys with this current key.
    #[cfg(test)]
    pub(crate) fn of(current: Key) -> Self {
        Self {
            current,
            previous: None,
        }
    }

    /// Reads the keys: each has 32 bytes in base64url.
    ///
    /// # Errors
    /// When a key is not 32 bytes in base64url.
    pub(crate) fn parse(
        current: &Secret<String>,
        previous: Option<&Secret<String>>,
    ) -> Result<Self, KeyFault> {
        let key = |text: &Secret<String>| {
            let text = text.expose().trim().trim_end_matches('=');
            Key::parse(text.as_bytes()).ok_or(KeyFault)
        };
        Ok(Self {
            current: key(current)?,
            previous: previous.map(key).transpose()?,
        })
    }

    /// The keys that open, the current one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.previous)
    }

    /// The ids of the current key and of the one before it, as they are in sealed values.
    pub(super) fn ids(&self) -> (&str, Option<&str>) {
        (self.current.id(), self.previous.as_ref().map(Key::id))
    }

    /// Whether one of the keys has sealed a body, or a value in it: its id is there in plain text.
    pub(super) fn have_sealed(&self, body: &[u8]) -> bool {
        self.all().any(|key| {
            let id = key.id().as_bytes();
            body.windows(id.len()).any(|part| part == id)
        })
    }

    /// Whether a value was sealed with the key before the current one.
    #[must_use]
    pub(crate) fn is_old(&self, sealed: &str) -> bool {
        let sealed = Sealed::parse(sealed);
        let previous = self
            .previous
            .as_ref()
            .filter(|key| key.id() != self.current.id());
        previous
            .zip(sealed)
            .is_some_and(|(key, sealed)| key.has_sealed(&sealed))
    }

    /// Seals `plain` for this context, with the id of the key in it.
    #[must_use]
    pub(crate) fn seal(&self, context: &str, plain: &[u8]) -> String {
        self.current.seal(context, plain).to_text()
    }

    /// Opens a value that was sealed for this context. `None` if it was changed, or is for another context or key.
    #[must_use]
    pub(crate) fn open(&self, context: &str, sealed: &str) -> Option<Vec<u8>> {
        let sealed = Sealed::parse(sealed)?;
        let key = self.all().find(|key| key.has_sealed(&sealed))?;
        key.open(context, &sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_before_the_current_one_still_opens() {
        let (old, new) = (Key::random(), Key::random());
        let text = |key: &Key| key.to_text();
        let before = Keys::of(old.clone());
        let sealed = before.seal("login", b"token");
        let after = Keys::parse(&text(&new), Some(&text(&old))).unwrap();
        assert_eq!(after.open("login", &sealed).unwrap(), b"token");
        assert!(after.is_old(&sealed) && !before.is_old(&sealed));
        assert!(!after.is_old(&after.seal("login", b"token")));
        assert!(after.open("other", &sealed).is_none());
        assert!(Keys::of(new).open("login", &sealed).is_none());
        let short = Secret::new("AAAA".to_owned());
        assert_eq!(Keys::parse(&short, None).unwrap_err(), KeyFault);
    }
}
