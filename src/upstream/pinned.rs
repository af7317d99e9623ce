//! Tool calls of servers under `"trust": "pin"` or `"quarantine"`, also one that outlives its entry, and calls that the user has agreed to.

use super::slot::Lease;
use super::{CallError, NotListed, Pool, ServerCall};
use crate::tool::ServerName;

impl Pool {
    /// Whether only approved tools may be called: by the server's entry, or as things stand.
    pub(super) fn is_pinned(&self, server: &ServerName, lease: &Lease) -> bool {
        lease.is_pinned() || self.audience.is_pinned(server)
    }

    /// Makes sure that a new process has listed its tools, and that they were compared with the pins, before one is
    /// called. The known tools may be those of another version of the server. A call that the user has agreed to is made only if the
    /// tool is the one that the user was asked about.
    pub(super) async fn check_pins(
        &self,
        server: &ServerName,
        lease: &Lease,
        call: &ServerCall<'_>,
    ) -> Result<(), CallError> {
        let is_pinned = self.is_pinned(server, lease);
        let is_checked = is_pinned || call.agreed.is_some();
        if call.method != "tools/call" || !is_checked {
            return Ok(());
        }
        let tool = call.name.unwrap_or_default();
        let uncompared = |reason| CallError::Uncompared {
            server: server.clone(),
            reason,
        };
        if !lease.compared.lock().contains(&lease.user) {
            let compare = async {
                let listing = lease
                    .list(server, call.limit, lease.user)
                    .await
                    .map_err(Box::new)?;
                self.audience.compare(server, listing).await
            };
            tokio::time::timeout(call.limit, Box::pin(compare))
                .await
                .map_err(|_| uncompared(NotListed::Late(call.limit)))?
                .map_err(uncompared)?;
        }
        if call.agreed.is_some() && self.audience.definition(server, tool) != call.agreed {
            return Err(CallError::Changed {
                server: server.clone(),
                tool: tool.to_owned(),
            });
        }
        if is_pinned && self.audience.is_withheld(server, tool) {
            return Err(CallError::Withheld {
                server: server.clone(),
                tool: tool.to_owned(),
            });
        }
        Ok(())
    }
}
