//! The client of a request, or of a session, at any replica.

use std::sync::Arc;

use super::{IdentityHash, Replicas};

/// The client of a request, as all replicas know it.
#[derive(Debug, Clone)]
pub(crate) struct ClientOfReplica {
    replicas: Arc<Replicas>,
    identity: IdentityHash,
    /// Its session, if it has one.
    session: Option<String>,
}

impl ClientOfReplica {
    /// The client of a request, or of a session.
    pub(crate) fn new(
        replicas: Arc<Replicas>,
        identity: IdentityHash,
        session: Option<String>,
    ) -> Self {
        Self {
            replicas,
            identity,
            session,
        }
    }

    /// The replicas.
    #[must_use]
    pub(crate) fn replicas(&self) -> &Arc<Replicas> {
        &self.replicas
    }

    /// The client's identity.
    #[must_use]
    pub(crate) fn identity(&self) -> IdentityHash {
        self.identity
    }

    /// Its session, if it has one.
    #[must_use]
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The hash of its identity, in hexadecimal.
    #[must_use]
    pub(crate) fn identity_name(&self) -> String {
        crate::text::hex(&self.identity)
    }

    /// A word for a request that waits for its answers here.
    #[must_use]
    pub(crate) fn state_word(&self) -> String {
        self.replicas.keys.state(&self.replicas.id, &self.identity)
    }

    /// The id of a question to it, if it has a session.
    #[must_use]
    pub(crate) fn question(&self, number: u64) -> Option<String> {
        let (session, replicas) = (self.session.as_deref()?, &self.replicas);
        Some(replicas.keys.question(session, &replicas.id, number))
    }

    /// The replica that has asked it the question `id`, and the question's number there. `None` if none has.
    #[must_use]
    pub(crate) fn open_question<'i>(&self, id: &'i str) -> Option<(&'i str, u64)> {
        let session = self.session.as_deref()?;
        self.replicas.keys.open_question(session, id)
    }
}
