//! Results in the store of several replicas.
//!
//! A result is sealed for its holder, which is the identity and session that made the call and the rules that were in force. So another
//! session cannot read it, and neither can the same one once a rule withholds more than before. Results end after a time, and each owner, which is
//! an identity or a session without one, has room for some.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{Error, KEPT_FOR, ResultId, ResultLocation, Results, SHARED, Shelf};
use crate::store::{Item, ItemKind};
use crate::text::hex;

/// The largest result in the store, in bytes.
const LARGEST: usize = 8 * 1024 * 1024;

/// Those who may read a result at any replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder(String);

impl Holder {
    /// The holder of these facts, whose results have room with the others of `owner`. Two holders differ if any fact does.
    #[must_use]
    pub(crate) fn of(owner: &str, facts: &[&str]) -> Self {
        let owner = hex(&Sha256::digest(owner)[..8]);
        let mut hash = Sha256::new();
        for fact in facts {
            hash.update(fact.len().to_le_bytes());
            hash.update(fact);
        }
        Self(format!("{owner}.{}", hex(&hash.finalize()[..])))
    }
}

impl ResultLocation {
    /// A shelf of this process alone.
    #[cfg(test)]
    pub(super) const fn of(shelf: Shelf) -> Self {
        Self {
            shelf,
            holder: None,
        }
    }

    fn lifetime(&self) -> Duration {
        match self.shelf {
            Shelf::Common(time) => time,
            Shelf::Client(_) | Shelf::Run => KEPT_FOR,
        }
    }
}

impl Results {
    /// Writes a result to the store. Returns whether it is there.
    pub(super) fn share(&self, place: &ResultLocation, digits: &str, result: &[u8]) -> bool {
        let (Some(store), Some(holder)) = (&self.shared, &place.holder) else {
            return false;
        };
        if result.len() > LARGEST {
            return false;
        }
        let item = item(holder, digits);
        match store.keep(item, result, place.lifetime()) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "a result is stored at this replica alone");
                false
            }
        }
    }

    /// A result that another replica may have stored. `None` if there is none.
    ///
    /// # Errors
    /// When the store does not answer, or another replica alone can have it.
    pub(super) fn of_replicas(
        &self,
        place: &ResultLocation,
        id: &ResultId,
    ) -> Result<Option<Vec<u8>>, Error> {
        let (Some(store), Some(holder)) = (&self.shared, &place.holder) else {
            return Ok(None);
        };
        let Some(digits) = id.0.strip_prefix(SHARED) else {
            return Err(Error::Elsewhere { id: id.0.clone() });
        };
        let found = store.fetch(item(holder, digits));
        found.map_err(|source| Error::Store { source })
    }
}

fn item(Holder(scope): &Holder, digits: &str) -> Item {
    Item {
        kind: ItemKind::Result,
        scope: scope.clone(),
        key: digits.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_sets_of_facts_are_one_holder() {
        let holders = [
            Holder::of("anna", &["anna", "session", ""]),
            Holder::of("anna", &["anna", "", "session"]),
            Holder::of("anna", &["annasession"]),
            Holder::of("anna", &["anna", "session"]),
            Holder::of("", &["anna", "session"]),
        ];
        for (number, one) in holders.iter().enumerate() {
            for other in &holders[number + 1..] {
                assert_ne!(one, other);
            }
        }
    }
}
