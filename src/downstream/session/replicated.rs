//! A session that other replicas serve, too: what they learn, and what they tell.

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::mcp::{
    ClientCapabilities, Envelope, ErrorCode, Extensions, LogLevel, Message, Object, Outcome,
    RequestId, Revision,
};
use crate::proxy::Reply;
use crate::replicas::{
    Change, ClientOfReplica, Content, IdentityHash, SessionFacts, VALID, seconds,
};

/// The bytes that a client's list of followed resources may have.
const MOST_URIS: usize = 256 * 1024;

impl Session {
    /// Makes its client one that other replicas know. Its subscriptions end with `leaving`.
    pub(in crate::downstream) fn join_replicas(
        &self,
        client: ClientOfReplica,
        leaving: CancellationToken,
    ) {
        self.client.join_replicas(client);
        // It is served by one server.
        let _ = self.leaving.set(leaving);
    }

    /// Resolves when other replicas are to take over its subscriptions.
    pub(super) async fn left(&self) {
        match self.leaving.get() {
            Some(leaving) => leaving.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Continues with a client whose handshake another replica has answered.
    pub(in crate::downstream) fn continue_with(&self, facts: &SessionFacts, change: &Change) {
        *self.legacy.lock() = Some(facts.revision);
        let name = change.name.clone().unwrap_or_else(|| facts.name.clone());
        let version = change.version.as_ref().unwrap_or(&facts.version).clone();
        self.client.named(&name);
        self.client.note_software(|| (name, version));
        let capabilities = ClientCapabilities::of_bits(facts.capabilities);
        self.client.note_interfaces(capabilities);
        self.client
            .declare(Extensions::of_others(change.extensions.clone()));
        self.apply(change);
        self.proxy()
            .continue_with(&self.client, capabilities, facts.surface);
    }

    /// The facts for the id of a session whose handshake was just answered, and those that do not fit into it.
    pub(in crate::downstream) fn facts(
        &self,
        identity: IdentityHash,
    ) -> Option<(SessionFacts, Change)> {
        let (name, version) = self.client.software().cloned().unwrap_or_default();
        let mut rest = Change {
            extensions: self.client.extensions().others().clone(),
            ..Change::default()
        };
        if !SessionFacts::fits(&name) {
            (rest.name, rest.version) = (Some(name.clone()), Some(version.clone()));
        }
        let facts = SessionFacts {
            opened: u32::try_from(seconds()).ok()?,
            identity,
            revision: self.legacy_revision()?,
            capabilities: self.client.capabilities().unwrap_or_default().bits(),
            surface: self.client.surface_bits(),
            is_incomplete: rest != Change::default(),
            name,
            version,
        };
        Some((facts, rest))
    }

    /// Applies what has changed at another replica.
    pub(in crate::downstream) fn changed(&self, change: &Change) {
        self.apply(change);
        self.proxy().levels_changed();
    }

    fn apply(&self, change: &Change) {
        let level = change.log_level.as_deref().and_then(LogLevel::parse);
        if let Some(level) = level {
            self.client.set_log_level(level);
        }
        if self.client.followed_uris() != change.uris {
            self.client.follow_uris(change.uris.clone());
        }
    }

    /// Forgets the directories of its client, because they have changed.
    pub(in crate::downstream) fn moved(&self) {
        self.client.moved();
    }

    /// Cancels a request, whose id is JSON, if it is in flight here.
    pub(in crate::downstream) fn cancel(&self, id: &str) {
        let raw = serde_json::from_str(id).ok();
        if let Some(id) = raw.and_then(RequestId::parse) {
            self.in_flight.cancel(&id);
        }
    }

    /// Takes the answer to a question of this replica, which the client has sent to another one.
    pub(in crate::downstream) fn answered_elsewhere(&self, number: u64, message: &[u8]) {
        if let Ok(Envelope::Single(Message::Response { outcome, .. })) = Envelope::parse(message) {
            self.client.answered(number, &outcome);
        }
    }

    /// Passes an answer of the client on: to the server of this replica that has asked, or to the replica that has.
    pub(super) fn answered(&self, id: &RequestId, outcome: &Outcome<'_>) {
        let Some(replica) = self.client.replica() else {
            let number = id.as_integer().and_then(|id| u64::try_from(id).ok());
            if let Some(number) = number {
                self.client.answered(number, outcome);
            }
            return;
        };
        let name = id.as_text().unwrap_or_default();
        let Some((owner, number)) = replica.open_question(name) else {
            return;
        };
        let replicas = replica.replicas().clone();
        if owner == replicas.id() {
            return self.client.answered(number, outcome);
        }
        let Some(session) = replica.session().map(str::to_owned) else {
            return;
        };
        let (member, raw) = match outcome {
            Outcome::Result(raw) => ("result", raw),
            Outcome::Error(raw) => ("error", raw),
        };
        let message = Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":{number},"{member}":{raw}}}"#
        ));
        let owner = owner.to_owned();
        self.tasks.spawn(async move {
            let content = Content::Answer { session, number };
            if !replicas.deliver(&owner, content, message).await {
                tracing::warn!(
                    replica = owner,
                    "the answer to a question did not find the replica that has asked it"
                );
            }
        });
    }

    /// Tells other replicas that the client has cancelled a request, unless that is one of this replica.
    pub(super) fn cancel_elsewhere(&self, id: &RequestId, is_here: bool) {
        if let Some(replica) = self.client.replica().filter(|_| !is_here)
            && let Some(session) = replica.session()
        {
            replica.replicas().cancelled(session, id.as_json());
        }
    }

    /// Tells other replicas that the client's directories have changed.
    pub(super) fn move_elsewhere(&self) {
        if let Some(replica) = self.client.replica()
            && let Some(session) = replica.session()
        {
            replica.replicas().moved(session);
        }
    }

    /// Whether a request with this method changes what other replicas must know.
    pub(super) fn changes_elsewhere(&self, revision: Revision, method: &str) -> bool {
        let changes = matches!(
            method,
            "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe"
        );
        changes && !revision.is_modern() && self.client.replica().is_some()
    }

    fn unfollow(&self, uri: &str) {
        let mut uris = self.client.followed_uris();
        uris.remove(uri);
        self.client.follow_uris(uris);
    }

    /// Writes a change of the session to the store before it is answered.
    pub(super) async fn change_elsewhere(
        &self,
        method: &str,
        params: &Object<'_>,
        reply: Reply,
    ) -> Reply {
        let replica = self.client.replica().filter(|_| reply.is_result());
        let Some((replica, session)) = replica.and_then(|one| Some((one, one.session()?))) else {
            return reply;
        };
        let text = |key| params.text(key).unwrap_or_default();
        let (level, uri) = (text("level"), text("uri"));
        let edit = |change: &mut Change| match method {
            "logging/setLevel" => change.log_level = Some(level.clone()),
            "resources/unsubscribe" => drop(change.uris.remove(&uri)),
            _ => drop(change.uris.insert(uri.clone())),
        };
        if method == "resources/subscribe" {
            let known = replica.replicas().change(session);
            let size: usize = known.uris.iter().map(String::len).sum();
            if size + uri.len() > MOST_URIS {
                self.unfollow(&uri);
                let message = "this session follows too many resources; unsubscribe from some";
                return Reply::error(ErrorCode::INVALID_PARAMS, message.to_owned());
            }
        }
        let expires = seconds() + VALID;
        match replica
            .replicas()
            .change_session(replica.identity(), session, expires, edit)
            .await
        {
            Ok(()) => reply,
            Err(error) => {
                tracing::warn!(%error, method, "a session was not changed");
                if method == "resources/subscribe" {
                    self.unfollow(&uri);
                }
                let message = "the store of the gateway does not answer, so this was not noted; try again later";
                Reply::error(ErrorCode::INTERNAL, message.to_owned())
            }
        }
    }
}
